//! The definitions as files are the ones the types make.

use std::{collections::BTreeSet, error::Error, fs, path::Path};

use serde_json::Value;
use tenure::api::crds;

type Outcome = Result<(), Box<dyn Error>>;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds")
}

#[test]
fn the_files_in_crds_are_what_the_types_say() -> Outcome {
    let mut expected = BTreeSet::new();
    for definition in crds::all()? {
        let name = crds::file_name(&definition);
        let kept = fs::read_to_string(folder().join(&name)).unwrap_or_default();
        assert!(kept == crds::yaml(&definition)?, "crds/{name} is not what src/api says: run `make generate`");
        expected.insert(name);
    }
    let kept: BTreeSet<String> = fs::read_dir(folder())?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()?;
    assert_eq!(kept, expected, "crds/ holds a file that no type makes");
    Ok(())
}

/// Lists every list, string and number of a schema that has no bound.
fn unbounded(path: &str, part: &Value, found: &mut Vec<String>) {
    let open = match part["type"].as_str() {
        Some("array") => part["maxItems"].is_null(),
        Some("string") => part["maxLength"].is_null() && part["enum"].is_null() && part["format"] != "date-time",
        Some("integer") => part["minimum"].is_null() || part["maximum"].is_null(),
        Some("object") => part["properties"].is_null() && part["maxProperties"].is_null(),
        Some("boolean") => false,
        _ => true,
    };
    if open {
        found.push(format!("{path} ({})", part["type"]));
    }
    for (name, property) in part["properties"].as_object().into_iter().flatten() {
        unbounded(&format!("{path}.{name}"), property, found);
    }
    for (inside, name) in [("items", "[]"), ("additionalProperties", ".*")] {
        if part[inside].is_object() {
            unbounded(&format!("{path}{name}"), &part[inside], found);
        }
    }
}

#[test]
fn every_list_string_and_number_is_bounded() -> Outcome {
    let mut found = Vec::new();
    for definition in crds::all()? {
        let kind = definition.spec.names.kind.clone();
        for version in serde_json::to_value(&definition)?["spec"]["versions"].as_array().into_iter().flatten() {
            for part in ["spec", "status"] {
                let schema = &version["schema"]["openAPIV3Schema"]["properties"][part];
                if !schema.is_null() {
                    unbounded(&format!("{kind}.{part}"), schema, &mut found);
                }
            }
        }
    }
    assert!(found.is_empty(), "without a bound (#[schemars(length(..))] or range(..)):\n{}", found.join("\n"));
    Ok(())
}
