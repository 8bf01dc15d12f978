//! Flags and the environment. Nothing else reads the environment.

use std::net::SocketAddr;

use clap::{ArgAction, Args};

use super::{audit::Destination, leader::Election, trace::Format};

/// The Lease that the controllers of one installation compete for.
pub const LEASE: &str = "tenure-controller";

/// `tenure controller`.
#[derive(Args, Clone, Debug)]
pub struct Controller {
    /// The operator's own namespace: its Lease is there, and an annotation there pauses it
    #[arg(long, env = "TENURE_NAMESPACE", default_value = "tenure-system")]
    pub namespace: String,
    /// Compete for the Lease; without it this must be the only controller of the cluster
    #[arg(long, env = "TENURE_LEADER_ELECTION", default_value_t = true, action = ArgAction::Set)]
    pub leader_election: bool,
    /// Who this process is among the competitors; left out: the host's name
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
    /// Seconds after which others may take a Lease that nobody renewed
    #[arg(long, env = "TENURE_LEASE_DURATION", default_value_t = 15)]
    pub lease_duration: u32,
    /// Seconds after which a leader that could not renew stops writing; less than the lease duration
    #[arg(long, env = "TENURE_RENEW_DEADLINE", default_value_t = 10)]
    pub renew_deadline: u32,
    /// Seconds between two renewals; less than half the renew deadline
    #[arg(long, env = "TENURE_RETRY_PERIOD", default_value_t = 2)]
    pub retry_period: u32,
    /// Where `/metrics` is served
    #[arg(long, env = "TENURE_METRICS_ADDRESS", default_value = "127.0.0.1:9464")]
    pub metrics_address: SocketAddr,
    /// Where `/healthz` and `/readyz` are served
    #[arg(long, env = "TENURE_HEALTH_ADDRESS", default_value = "127.0.0.1:9465")]
    pub health_address: SocketAddr,
    /// One JSON line for each ledger write: a file, `-` for standard output, or `off`
    #[arg(long, env = "TENURE_AUDIT", default_value = "off")]
    pub audit: Destination,
    /// Writes on their way at one time
    #[arg(long, env = "TENURE_CONCURRENCY", default_value_t = 32)]
    pub concurrency: u16,
    /// What is logged, as in `info` or `tenure=debug,info`
    #[arg(long, env = "TENURE_LOG", default_value = "info")]
    pub log: String,
    /// How log lines look
    #[arg(long, env = "TENURE_LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: Format,
}

/// What a flag says that it can't.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number is out of range.
    #[error("--{flag} is {value}: {right}")]
    Range {
        /// The flag.
        flag: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        right: &'static str,
    },
}

impl Controller {
    /// Checks what the parser can't.
    ///
    /// # Errors
    /// Names the first flag that is out of range, and what would be right.
    pub fn check(&self) -> Result<(), Error> {
        let range = |flag, value: &dyn ToString, right| Err(Error::Range { flag, value: value.to_string(), right });
        if self.namespace.is_empty() || self.namespace.len() > 63 {
            return range("namespace", &format!("{:?}", self.namespace), "give the name of the operator's namespace");
        }
        if !(1..=512).contains(&self.concurrency) {
            return range("concurrency", &self.concurrency, "give 1 to 512");
        }
        if !(2..=600).contains(&self.lease_duration) {
            return range("lease-duration", &self.lease_duration, "give 2 to 600 seconds");
        }
        if self.renew_deadline == 0 || self.renew_deadline >= self.lease_duration {
            return range("renew-deadline", &self.renew_deadline, "it must be at least 1 and less than --lease-duration");
        }
        if self.retry_period == 0 || self.retry_period.saturating_mul(2) > self.renew_deadline.max(2) {
            return range("retry-period", &self.retry_period, "it must be at least 1 and at most half of --renew-deadline");
        }
        Ok(())
    }

    /// How this process competes. `unique` makes its identity its own, even after a restart under the same name.
    #[must_use]
    pub fn election(&self, unique: &str) -> Election {
        let name = self.identity.clone().or_else(host_name).unwrap_or_else(|| "controller".to_owned());
        Election {
            namespace: self.namespace.clone(),
            name: LEASE.to_owned(),
            identity: format!("{name}_{unique}"),
            lease_duration: i64::from(self.lease_duration) * 1_000,
            renew_deadline: i64::from(self.renew_deadline) * 1_000,
            retry_period: i64::from(self.retry_period) * 1_000,
        }
    }
}

/// Sixteen hexadecimal digits that no other process has: from the kernel.
///
/// # Errors
/// When the kernel's random numbers can't be read.
pub fn unique() -> std::io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().replace('-', "").chars().take(16).collect())
}

fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        controller: Controller,
    }

    fn parse(flags: &[&str]) -> Controller {
        Line::parse_from([&["tenure"], flags].concat()).controller
    }

    #[test]
    fn the_defaults_are_right() {
        assert_eq!(parse(&[]).check(), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let message = |flags| parse(flags).check().unwrap_err().to_string();
        assert!(message(&["--renew-deadline=15"]).contains("--renew-deadline is 15"));
        assert!(message(&["--retry-period=6"]).contains("half of --renew-deadline"));
        assert!(message(&["--concurrency=0"]).contains("1 to 512"));
        assert!(message(&["--namespace="]).contains("namespace"));
    }

    #[test]
    fn two_processes_of_one_name_differ() {
        let controller = parse(&["--identity=pod-1"]);
        assert_ne!(controller.election("a").identity, controller.election("b").identity);
    }
}
