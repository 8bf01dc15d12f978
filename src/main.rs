//! The binary.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tenure::api::crds;

#[derive(Debug, Parser)]
#[command(name = "tenure", version, about = "Lends out scarce things in a Kubernetes cluster and knows when they are really free again")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes the CustomResourceDefinitions as YAML.
    Crds(crds::Options),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Crds(options) => crds::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("tenure: {problem}");
            ExitCode::FAILURE
        }
    }
}
