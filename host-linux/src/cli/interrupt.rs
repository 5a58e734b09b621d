//! Ctrl-C as a question that a driver asks between two rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, process, thread};

use nix::sys::signal::{SigSet, Signal};

use super::Exit;

/// Whether the user or the system has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    requested: AtomicBool,
    /// Whether nobody can ask [`Interrupt::is_requested`] for now.
    deaf: AtomicBool,
}

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
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Does `work`, which does not ask: Ctrl-C meanwhile ends the process.
    pub fn ending_at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.deaf.store(true, Ordering::Relaxed);
        let outcome = work();
        self.0.deaf.store(false, Ordering::Relaxed);
        outcome
    }
}

#[allow(clippy::exit, reason = "a second Ctrl-C asks for just that")]
fn wait(signals: SigSet, noted: &Interrupt) {
    while signals.wait().is_ok() {
        let again = noted.0.requested.swap(true, Ordering::Relaxed);
        if again || noted.0.deaf.load(Ordering::Relaxed) {
            process::exit(i32::from(Exit::Interrupted.code()));
        }
    }
}
