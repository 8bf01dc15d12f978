//! SIGTERM and SIGINT as something every part can wait for.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Tells every part that the process should end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Asks for the end.
#[derive(Clone, Debug)]
pub struct Trigger(watch::Sender<bool>);

/// A pair of which nothing is asked yet.
#[must_use]
pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Shutdown(receiver))
}

/// Ends on the first SIGTERM or SIGINT.
///
/// # Errors
/// When the handlers can't be installed.
pub fn on_signal() -> std::io::Result<(Trigger, Shutdown)> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (trigger, shutdown) = channel();
    let asks = trigger.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to end");
        asks.fire();
    });
    Ok((trigger, shutdown))
}

impl Trigger {
    /// Asks every holder of the `Shutdown` to end.
    pub fn fire(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// True once the end was asked for.
    #[must_use]
    pub fn asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the end was asked for, or nobody is left who could ask.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        let _ended = receiver.wait_for(|asked| *asked).await;
    }
}
