//! Where log lines go and how they look.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// Logs every failed connection as an error, which whoever asked logs too, with what it was for.
const NOISE: &str = "kube_client::client::builder";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter does not parse.
    #[error("--log {filter:?} is not a filter: {source}; try `info` or `tenure=debug,info`")]
    Filter {
        /// What was given.
        filter: String,
        /// Why not.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something else already logs in this process.
    #[error("logging is already set up: {0}")]
    Taken(String),
}

/// Sends log lines to standard error. `filter` has the form `info` or `tenure=debug,info`.
///
/// # Errors
/// When the filter does not parse, or logging is already set up.
pub fn start(filter: &str, format: Format) -> Result<(), Error> {
    let quiet = if filter.contains("kube_client") { String::new() } else { format!(",{NOISE}=off") };
    let parsed = EnvFilter::try_new(format!("{filter}{quiet}")).map_err(|source| Error::Filter { filter: filter.to_owned(), source })?;
    let lines = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    match format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(|source| Error::Taken(source.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_filter_is_named() {
        let error = start("tenure=loud", Format::Text).unwrap_err().to_string();
        assert!(error.contains("tenure=loud"), "{error}");
    }
}
