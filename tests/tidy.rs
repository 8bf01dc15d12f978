//! The house rules of CONTRIBUTING.md that a program can check. A failure lists each place that breaks one.

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

type Outcome = Result<(), Box<dyn Error>>;

/// Lines in a source file before it is taken to hold two subjects.
const LONGEST: usize = 400;

/// Files that are longer for a reason: the path, the lines it may have, and why they belong together.
const LONGER: &[(&str, usize, &str)] =
    &[("src/controller/reader.rs", 460, "a list, the watch that goes on from it, and what both know: one loop, to be read in one piece")];

/// Names that say nothing about what a module holds.
const NAMELESS: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];

/// What the engine, which decides and does nothing else, has no use for.
const NOT_IN_THE_ENGINE: &[&str] = &[
    "async",
    "kube::Api",
    "kube::Client",
    "kube::client",
    "kube::runtime",
    "std::env",
    "std::fs",
    "std::net",
    "std::thread",
    "std::time",
    "tokio",
    "tracing",
];

/// The lower layers, each with the crate's modules that it may name; their tests may name others, such as an API server to run on.
const LAYERS: &[(&str, &[&str])] = &[("src/api", &["api"]), ("src/engine", &["api", "engine"])];

/// Where a developer's or a build machine keeps its checkouts. Split, so that this file doesn't break its own rule.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

#[test]
fn a_source_file_holds_one_subject() -> Outcome {
    let mut broken = Vec::new();
    for file in rust_files("src")? {
        let (lines, name) = (read(&file)?.lines().count(), shown(&file));
        match LONGER.iter().find(|(path, ..)| *path == name) {
            Some((_, most, why)) if lines > *most => {
                broken.push(format!("{name}: {lines} lines; it may have {most} ({why}): split it by subject"));
            }
            Some(_) if lines <= LONGEST => broken.push(format!("{name}: {lines} lines, so it need not be in LONGER any more")),
            None if lines > LONGEST => broken.push(format!("{name}: {lines} lines, more than {LONGEST}: split it by subject")),
            _ => {}
        }
    }
    broken.extend(LONGER.iter().filter(|(path, ..)| !root().join(path).exists()).map(|(path, ..)| format!("{path}: in LONGER, but gone")));
    none(&broken)
}

#[test]
fn a_module_is_named_for_what_it_holds() -> Outcome {
    let mut broken = Vec::new();
    for folder in ["src", "tests", "e2e", "benches"] {
        for file in rust_files(folder)? {
            let name = shown(&file);
            let parts = name.trim_end_matches(".rs").split('/');
            broken.extend(parts.filter(|part| NAMELESS.contains(part)).map(|part| format!("{name}: `{part}` says nothing")));
        }
    }
    none(&broken)
}

#[test]
fn a_folder_of_modules_says_what_it_is() -> Outcome {
    let mut broken = Vec::new();
    for file in rust_files("src")? {
        let is_root = file.file_name().is_some_and(|name| ["mod.rs", "lib.rs", "main.rs"].iter().any(|root| name == *root));
        if is_root && !read(&file)?.starts_with("//! ") {
            broken.push(format!("{}: begins with no `//!` line", shown(&file)));
        }
    }
    none(&broken)
}

#[test]
fn the_engine_is_pure() -> Outcome {
    let mut broken = Vec::new();
    for file in rust_files("src/engine")? {
        for (number, code) in code_lines(&read(&file)?) {
            let found = NOT_IN_THE_ENGINE.iter().filter(|word| mentions(&code, word));
            broken.extend(found.map(|word| format!("{}:{number}: `{word}`", shown(&file))));
        }
    }
    none(&broken)
}

#[test]
fn a_lower_layer_names_no_higher_one() -> Outcome {
    let mut broken = Vec::new();
    for (layer, allowed) in LAYERS {
        for file in rust_files(layer)?.into_iter().filter(|file| !shown(file).contains("/tests/")) {
            for (number, code) in code_lines(&read(&file)?) {
                let named = code.match_indices("crate::").map(|(at, prefix)| word_at(&code[at + prefix.len()..]));
                let wrong = named.filter(|module| !allowed.contains(module));
                broken.extend(wrong.map(|module| format!("{}:{number}: `crate::{module}`", shown(&file))));
            }
        }
    }
    none(&broken)
}

#[test]
fn no_file_names_a_path_of_one_machine() -> Outcome {
    let mut broken = Vec::new();
    let mut count = 0;
    for name in tracked_files()? {
        // Deleted but not committed yet, or a link to nowhere.
        let Ok(bytes) = fs::read(root().join(&name)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        count += 1;
        for (number, line) in (1..).zip(text.lines()) {
            let found = MACHINE_PATHS.iter().filter(|path| names_path(line, path));
            broken.extend(found.map(|path| format!("{name}:{number}: `{path}`")));
        }
    }
    assert!(count > LAYERS.len(), "git lists {count} text files, so nothing was checked");
    none(&broken)
}

#[test]
fn mentions_finds_whole_words_in_code_only() {
    assert!(mentions("use tokio::time;", "tokio"));
    assert!(mentions("pub async fn read() {}", "async"));
    assert!(mentions("use std::time::Instant;", "std::time"));
    assert!(!mentions("let asynchronous = 1;", "async"));
    assert!(!mentions("fn tracing_on() {}", "tracing"));
    assert_eq!(code_lines("//! No async.\nlet a = 1; // tokio\n"), [(1, String::new()), (2, "let a = 1; ".to_owned())]);
    assert_eq!(code_lines("use std::{\n    time::Duration,\n};\n")[0], (1, "use std::time::Duration;".to_owned()));
    assert_eq!(code_lines("use crate::{api::{A, B}, c};"), [(1, "use crate::api::{A, B}, crate::c;".to_owned())]);
    assert_eq!(code_lines("let url = \"http://a\";"), [(1, "let url = \"http://a\";".to_owned())]);
}

#[test]
fn names_path_finds_a_path_from_the_root_only() {
    let path = MACHINE_PATHS[0];
    assert!(names_path(&format!("cd {path}main"), path));
    assert!(names_path(&format!("\"{path}main\""), path));
    assert!(!names_path(&format!("src{path}queue.rs"), path));
    assert!(!names_path(&format!("..{path}queue.rs"), path));
    assert!(!names_path(&format!("$HOME{path}"), path));
}

/// Fails with one line each.
fn none(broken: &[String]) -> Outcome {
    if broken.is_empty() { Ok(()) } else { Err(format!("{} broken:\n  {}", broken.len(), broken.join("\n  ")).into()) }
}

/// The code of a file by line number (from 1), without its comments. An import in braces is one line, written out.
fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let code = without_comment(line);
        match lines.last_mut().filter(|_| is_open) {
            Some((_, open)) => open.push_str(code.trim()),
            None => lines.push((number, code.to_owned())),
        }
        let Some((_, last)) = lines.last_mut() else { continue };
        is_open = is_import(last) && !last.contains(';');
        if !is_open && is_import(last) {
            *last = written_out(last);
        }
    }
    lines
}

/// `use a::{b::C, d};` becomes `use a::b::C, a::d;`, one level deep: what is named stands whole.
fn written_out(import: &str) -> String {
    let Some((before, rest)) = import.split_once('{') else { return import.to_owned() };
    let Some((inside, after)) = rest.rsplit_once('}') else { return import.to_owned() };
    let prefix = before.trim_start().trim_start_matches("pub ").trim_start_matches("use ");
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, character) in inside.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&inside[start..]);
    let whole = items.into_iter().map(str::trim).filter(|item| !item.is_empty()).map(|item| format!("{prefix}{item}"));
    format!("use {}{after}", whole.collect::<Vec<_>>().join(", "))
}

fn is_import(code: &str) -> bool {
    code.trim_start().trim_start_matches("pub ").starts_with("use ")
}

/// Up to `//`, unless that is part of a URL.
fn without_comment(line: &str) -> &str {
    let comment = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// Whether `word` stands in `code` as a word of its own.
fn mentions(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| !code[..at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word))
}

/// The identifier that `code` begins with; empty when it begins with something else.
fn word_at(code: &str) -> &str {
    code.split(|character| !is_word(character)).next().unwrap_or_default()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether `path` stands in `line` as an absolute path, not as the end of a longer one.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(|before: char| is_word(before) || "-.*})".contains(before)))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A path as a reader knows it: from the repository's root.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// All Rust files below a folder of the repository, which may be missing.
fn rust_files(folder: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn tracked_files() -> Result<Vec<String>, Box<dyn Error>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr)).into());
    }
    let names = String::from_utf8(listed.stdout)?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}
