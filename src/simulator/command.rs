//! `tenure simulate`.

use std::io::{IsTerminal as _, Write as _};

use clap::Args;

use super::{
    run::{Outcome, run},
    workload::Workload,
};

/// Runs the engine on a virtual clock with a workload made from a seed.
#[derive(Args, Clone, Debug)]
pub struct Simulate {
    /// How many Resources there are.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    resources: u64,
    /// How many claims come in all.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    claims: u64,
    /// How long a claim holds on average, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    hold_seconds: u64,
    /// How long a claim waits at most, in seconds.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(i64).range(0..=86_400))]
    wait_seconds: i64,
    /// How busy the Resources are, in percent of what they could hold; over 100 the queues overflow.
    #[arg(long, default_value_t = 70, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    load_percent: u64,
    /// How many claims of a hundred ask for two Resources.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=100))]
    several_percent: u64,
    /// How many claims of a hundred ask by label selector.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=100))]
    selector_percent: u64,
    /// What decides every choice: the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A stopwatch and a memory gauge, read by the caller, which may touch the machine.
pub struct Gauges<'a> {
    /// Seconds since the run began.
    pub seconds: &'a dyn Fn() -> f64,
    /// The most memory this process has used. MiB; `None` where the system does not tell.
    pub peak_mib: &'a dyn Fn() -> Option<u64>,
}

impl Simulate {
    /// Runs it, with a progress bar on a terminal, and prints a table. False if an invariant did not hold.
    pub fn run(&self, gauges: &Gauges<'_>) -> bool {
        let workload = Workload {
            resources: self.resources as usize,
            claims: self.claims as usize,
            hold_seconds: self.hold_seconds,
            wait_seconds: self.wait_seconds,
            load_percent: self.load_percent,
            several_percent: self.several_percent,
            selector_percent: self.selector_percent,
            seed: self.seed,
        };
        let shows = std::io::stderr().is_terminal();
        let total = workload.claims;
        let outcome = run(&workload, |came| {
            if shows {
                bar(came, total, (gauges.seconds)());
            }
        });
        if shows {
            eprintln!();
        }
        print!("{}", table(&workload, &outcome, (gauges.seconds)(), (gauges.peak_mib)()));
        outcome.violations.is_empty()
    }
}

fn bar(came: usize, total: usize, seconds: f64) {
    let done = (came * 40 / total.max(1)).min(40);
    let rate = came as f64 / seconds.max(0.001);
    eprint!("\r[{}{}] {came} of {total} claims, {rate:.0} a second ", "#".repeat(done), "-".repeat(40 - done));
    let _ = std::io::stderr().flush();
}

fn table(workload: &Workload, outcome: &Outcome, seconds: f64, peak: Option<u64>) -> String {
    let at = |thousandth: usize| {
        let last = outcome.waits.len().saturating_sub(1);
        let wait = outcome.waits.get((outcome.waits.len() * thousandth / 1_000).min(last)).copied().unwrap_or(0);
        format!("{:.3} s", f64::from(wait) / 1_000.0)
    };
    let rows = [
        ("Seed", workload.seed.to_string()),
        ("Resources", workload.resources.to_string()),
        ("Claims", workload.claims.to_string()),
        ("  granted", outcome.granted.to_string()),
        ("  denied", outcome.denied.to_string()),
        ("  timed out", outcome.timed_out.to_string()),
        ("Virtual time", format!("{:.0} s", outcome.elapsed as f64 / 1_000.0)),
        ("Real time", format!("{seconds:.1} s")),
        ("Claims a second", format!("{:.0}", workload.claims as f64 / seconds.max(0.001))),
        ("Engine steps", outcome.steps.to_string()),
        ("Writes", format!("{} ({:.2} a claim)", outcome.writes, outcome.writes as f64 / workload.claims.max(1) as f64)),
        ("Queue time p50", at(500)),
        ("Queue time p99", at(990)),
        ("Queue time p99.9", at(999)),
        ("Peak memory", peak.map_or("not known here".to_owned(), |peak| format!("{peak} MiB"))),
        ("Invariants", format!("checked {} times, {} did not hold", outcome.checks, outcome.violations.len())),
    ];
    let mut text: String = rows.iter().map(|(name, value)| format!("{name:<18}{value}\n")).collect();
    for violation in &outcome.violations {
        text.push_str(&format!("{} does not hold: {}\n", violation.rule, violation.what));
    }
    text
}
