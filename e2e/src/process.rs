//! One process that is started, watched and ended: a server, or the operator.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::{Error, tether};

/// How often one that is waited for is looked at.
const GLANCE: Duration = Duration::from_millis(15);
/// How much of a log's end an error shows, in bytes and in lines.
const TAIL_BYTES: u64 = 16 * 1024;
const TAIL_LINES: usize = 20;

/// A process with its log. Dropping it kills it; if that is because a test failed, the end of its log is shown.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts what [`tether::command`] made. What it writes goes to `FOLDER/NAME.log`, after what an earlier one of that name wrote.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn spawn(name: &str, mut command: Command, folder: &Path) -> Result<Self, Error> {
        let log = folder.join(format!("{name}.log"));
        let open = || File::options().create(true).append(true).open(&log).map_err(Error::machine(log.display().to_string()));
        command.stdin(Stdio::null()).stdout(open()?).stderr(open()?);
        // A group of its own: Ctrl-C reaches the owner alone, which ends its processes in order.
        command.process_group(0);
        let child = tether::spawn(command).map_err(Error::machine(format!("starting {name}")))?;
        Ok(Self { name: name.to_owned(), child, log, ended: None })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its log is.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// All that it wrote so far.
    ///
    /// # Errors
    /// When its log can't be read.
    pub fn log(&self) -> Result<String, Error> {
        let bytes = std::fs::read(&self.log).map_err(Error::machine(self.log.display().to_string()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Stops it from running, as a paused virtual machine or a long collection of garbage would (SIGSTOP). On return none of its
    /// threads runs any more, which on a busy machine is a moment after the signal.
    ///
    /// # Errors
    /// When it has ended, or its threads don't stop within two seconds.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.signal(Signal::STOP)?;
        for _ in 0..400 {
            if self.stands_still() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let why = std::io::Error::new(std::io::ErrorKind::TimedOut, "its threads go on after SIGSTOP");
        Err(Error::machine(format!("process {}", self.pid()))(why))
    }

    /// True when the system says of every thread that it is stopped.
    fn stands_still(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid())) else { return false };
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which stands in parentheses and may contain anything.
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Lets it run on (SIGCONT).
    ///
    /// # Errors
    /// When it has ended.
    pub fn thaw(&mut self) -> Result<(), Error> {
        self.signal(Signal::CONT)
    }

    /// Kills it, frozen or not (SIGKILL), and waits until it is gone.
    ///
    /// # Errors
    /// When it can't be waited for.
    pub fn kill(&mut self) -> Result<ExitStatus, Error> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.child.kill().map_err(Error::machine(format!("killing {}", self.name)))?;
        let status = self.child.wait().map_err(Error::machine(format!("waiting for {}", self.name)))?;
        self.ended = Some(status);
        Ok(status)
    }

    /// Asks it to end (SIGTERM), and waits until it has.
    ///
    /// # Errors
    /// When it has ended before, or hasn't within `bound`.
    pub async fn terminate(&mut self, bound: Duration) -> Result<ExitStatus, Error> {
        self.signal(Signal::TERM)?;
        self.wait(bound).await
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it hasn't within `bound`.
    pub async fn wait(&mut self, bound: Duration) -> Result<ExitStatus, Error> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if started.elapsed() >= bound {
                return Err(self.late("ended", bound, "it still runs".to_owned()));
            }
            sleep(GLANCE).await;
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the machine doesn't tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().map_err(Error::machine(format!("looking at {}", self.name)))?;
        }
        Ok(self.ended)
    }

    /// Waits until its log contains `text`.
    ///
    /// # Errors
    /// When it ends before, or `bound` is over; with the end of the log.
    pub async fn logged(&mut self, text: &str, bound: Duration) -> Result<(), Error> {
        let log = self.log.clone();
        let look = async || match std::fs::read(&log) {
            Ok(bytes) if String::from_utf8_lossy(&bytes).contains(text) => Ok(()),
            Ok(_) => Err(format!("its log has no {text:?}")),
            Err(error) => Err(error.to_string()),
        };
        self.until("as far as expected", bound, look).await
    }

    /// Asks `probe` until it answers, this process ends, or `bound` is over. `state` is the word for what is waited for.
    ///
    /// # Errors
    /// With the end of the log.
    pub async fn until<T>(
        &mut self,
        state: &'static str,
        bound: Duration,
        mut probe: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        loop {
            let why = match probe().await {
                Ok(answer) => return Ok(answer),
                Err(why) => why,
            };
            if let Some(status) = self.ended()? {
                return Err(Error::Ended { name: self.name.clone(), status, log: self.tail() });
            }
            if started.elapsed() >= bound {
                return Err(self.late(state, bound, why));
            }
            sleep(GLANCE).await;
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        let name = self.name.clone();
        // One that has ended has been reaped by this look, so its id may belong to another process.
        if let Some(status) = self.ended()? {
            return Err(Error::Ended { name, status, log: self.tail() });
        }
        kill_process(Pid::from_child(&self.child), signal).map_err(|error| Error::machine(format!("signal to {name}"))(error.into()))
    }

    fn late(&self, state: &'static str, waited: Duration, why: String) -> Error {
        Error::Late { name: self.name.clone(), state, waited, why, log: self.tail() }
    }

    /// The last lines of the log; what can't be read is left out.
    fn tail(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            drop(file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))));
            drop(file.read_to_end(&mut bytes));
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.kill());
        if std::thread::panicking() {
            eprintln!("--- the end of {}'s log\n{}", self.name, self.tail());
        }
    }
}
