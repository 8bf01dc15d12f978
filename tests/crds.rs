//! The definitions as files are the ones the types make.

use std::{collections::BTreeSet, error::Error, fs, path::Path};

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
