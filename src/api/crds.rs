//! The CustomResourceDefinitions, made from the types and written as files.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use thiserror::Error;

use super::{AdapterReport, Claim, OwnerRelease, Receipt, Resource, ResourceClass, Revocation, schema};

/// Why the definitions could not be made or written.
#[derive(Debug, Error)]
pub enum Error {
    /// A type's schema is none that an API server takes.
    #[error("the schema of {kind}: {problem}")]
    Schema {
        /// The kind.
        kind: String,
        /// Where, and what is wrong with it.
        problem: schema::Error,
    },
    /// A definition has no YAML form.
    #[error("{name} can't be written as YAML: {problem}")]
    Yaml {
        /// The definition's name.
        name: String,
        /// Why.
        problem: serde_norway::Error,
    },
    /// A file or folder can't be written.
    #[error("{}: {problem}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
}

/// All definitions, in the order in which they are best applied.
pub fn all() -> Result<Vec<CustomResourceDefinition>, Error> {
    let plain =
        [Resource::crd(), ResourceClass::crd(), AdapterReport::crd(), Claim::crd(), Receipt::crd(), Revocation::crd(), OwnerRelease::crd()];
    plain.into_iter().map(finished).collect()
}

/// A definition with its schema made structural, bounded and guarded.
fn finished(mut definition: CustomResourceDefinition) -> Result<CustomResourceDefinition, Error> {
    let kind = definition.spec.names.kind.clone();
    for version in &mut definition.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            schema::finish(&kind, root).map_err(|problem| Error::Schema { kind: kind.clone(), problem })?;
        }
    }
    Ok(definition)
}

/// The file a definition is kept in.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}.yaml", definition.metadata.name.as_deref().unwrap_or(&definition.spec.names.plural))
}

/// A definition as YAML.
pub fn yaml(definition: &CustomResourceDefinition) -> Result<String, Error> {
    serde_norway::to_string(definition).map_err(|problem| Error::Yaml { name: file_name(definition), problem })
}

/// What `tenure crds` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Writes one file for each definition here, in place of all of them to standard output.
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
}

/// Runs `tenure crds`.
pub fn run(options: &Options) -> Result<(), Error> {
    match &options.output_dir {
        Some(folder) => write_files(folder),
        None => print(),
    }
}

fn write_files(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|problem| Error::Write { path: folder.to_owned(), problem })?;
    for definition in all()? {
        let path = folder.join(file_name(&definition));
        fs::write(&path, yaml(&definition)?).map_err(|problem| Error::Write { path, problem })?;
    }
    Ok(())
}

fn print() -> Result<(), Error> {
    let mut documents = String::new();
    for definition in all()? {
        documents.push_str("---\n");
        documents.push_str(&yaml(&definition)?);
    }
    match io::stdout().lock().write_all(documents.as_bytes()) {
        // Whoever reads has enough: `tenure crds | head`.
        Err(problem) if problem.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|problem| Error::Write { path: PathBuf::from("standard output"), problem }),
    }
}
