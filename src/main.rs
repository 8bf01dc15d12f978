//! The binary: a role a subcommand.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tenure::{
    api::crds,
    controller::{
        run::Ended,
        serve::{Error, serve},
    },
    engine::{Engine, Settings},
    runtime::{clock::Clock, config::Controller, memory, trace},
    simulator::command::{Gauges, Simulate},
};

/// It could not go on.
const BROKEN: u8 = 1;
/// A flag, a kubeconfig or a file is wrong.
const CONFIGURATION: u8 = 3;
/// Another process leads now.
const LEADERSHIP_LOST: u8 = 10;

#[derive(Debug, Parser)]
#[command(name = "tenure", version, about = "Lends out scarce things in a Kubernetes cluster and knows when they are really free again")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Decides who gets what: one leads, others stand by.
    Controller(Box<Controller>),
    /// Writes the CustomResourceDefinitions as YAML.
    Crds(crds::Options),
    /// Runs the engine on a virtual clock with a generated workload, and checks its invariants.
    Simulate(Simulate),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Controller(config) => ExitCode::from(controller(&config)),
        Command::Simulate(simulate) => {
            let watch = Clock::machine().stopwatch();
            let gauges = Gauges { seconds: &|| watch.elapsed().as_secs_f64(), peak_mib: &memory::peak_mib };
            if simulate.run(&gauges) { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) }
        }
        Command::Crds(options) => match crds::run(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("tenure crds: {problem}");
                ExitCode::FAILURE
            }
        },
    }
}

fn controller(config: &Controller) -> u8 {
    if let Err(error) = trace::start(&config.log, config.log_format) {
        eprintln!("tenure controller: {error}");
        return CONFIGURATION;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no threads");
            return BROKEN;
        }
    };
    let engine = |term| {
        // Without an election nobody counts terms; the engine then adopts the highest that it finds in a ledger.
        let term = if config.leader_election { term } else { 0 };
        Engine::new(Settings { term, operator_namespace: config.namespace.clone() })
    };
    match runtime.block_on(serve(config, engine)) {
        Ok(Ended::Asked) => 0,
        Ok(Ended::LeadershipLost) => LEADERSHIP_LOST,
        Ok(Ended::Broken(why)) => {
            tracing::error!(why, "can't go on");
            BROKEN
        }
        Err(error) => {
            tracing::error!(%error, "can't begin");
            match error {
                Error::Configuration(_) | Error::Client(_) | Error::Health(_) | Error::Audit(_) => CONFIGURATION,
                Error::Leader(_) | Error::Machine { .. } => BROKEN,
            }
        }
    }
}
