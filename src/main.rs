//! The binary: a role a subcommand.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about = "Lends out scarce things in a Kubernetes cluster and knows when they are really free again")]
struct Line {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Decide who gets what: one leads, others stand by
    Controller(Box<tenure::runtime::config::Controller>),
}

fn main() -> ExitCode {
    match Line::parse().role {
        Role::Controller(config) => controller(&config),
    }
}

fn controller(_: &tenure::runtime::config::Controller) -> ExitCode { ExitCode::FAILURE }
