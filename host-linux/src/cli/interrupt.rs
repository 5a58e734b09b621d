//! Ctrl-C as a question that a driver asks between two rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, process, thread};

use nix::sys::signal::{SigSet, Signal};

use super::Exit;

/// Whether the user or the system has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over Ctrl-C and the polite request to terminate: the first is
    /// only noted, so that the command ends with what it has; the second
    /// ends the process at once.
    ///
    /// To be called before other threads start, as they inherit that the
    /// signals wait for this one.
    ///
    /// # Errors
    ///
    /// The system does not let signals be blocked, or no thread start.
    pub fn catch() -> io::Result<Self> {
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        signals.thread_block()?;
        let interrupt = Self::default();
        let noted = interrupt.clone();
        thread::Builder::new().name("interrupt".into()).spawn(move || wait(signals, &noted))?;
        Ok(interrupt)
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[allow(clippy::exit, reason = "the second Ctrl-C asks for just that")]
fn wait(signals: SigSet, noted: &Interrupt) {
    while signals.wait().is_ok() {
        if noted.0.swap(true, Ordering::Relaxed) {
            process::exit(i32::from(Exit::Interrupted.code()));
        }
    }
}
