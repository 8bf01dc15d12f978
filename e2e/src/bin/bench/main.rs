//! `make bench`: how fast the engine decides and how fast a real control plane grants. Prints a table and writes
//! `target/bench.json`.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod cluster;
mod engine;
mod figure;

use figure::Figure;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let quick = std::env::var("QUICK").is_ok_and(|value| value == "1");
    let mut figures: Vec<Figure> = engine::measure(quick);
    figure::print(&figures);
    let outcome = cluster::measure(quick, &mut figures).await;
    figure::print(&figures);
    if let Err(problem) = outcome.and_then(|()| figure::write(&figures).map_err(Into::into)) {
        eprintln!("bench: {problem}");
        return std::process::ExitCode::FAILURE;
    }
    std::process::ExitCode::SUCCESS
}
