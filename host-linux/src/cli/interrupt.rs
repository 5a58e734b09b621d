//! Ctrl-C as a question that a driver asks between two rounds. A request to
//! terminate and a terminal that hangs up count as Ctrl-C.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::{process, thread};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};

use super::{CliError, Exit};
use crate::machine::environment::read_entry;
use crate::output::remove_unfinished;

/// Whether the user or the system has asked to stop.
///
/// At first a request ends the process at once, as nothing would be lost.
/// Between [`Interrupt::listen`] and the end, it is only noted for a driver
/// that looks at [`Interrupt::is_requested`]; a second one ends the process.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    requested: AtomicBool,
    /// Whether somebody asks [`Interrupt::is_requested`] for now.
    listening: AtomicBool,
    /// Written to standard output before the process ends at once.
    last_words: Mutex<String>,
}

impl Interrupt {
    /// Takes over Ctrl-C, the polite request to terminate, and the end of
    /// the terminal. Those that were ignored when the process started, as by
    /// `nohup` and by a shell's `&` in a script, stay ignored.
    ///
    /// To be called before other threads start, as they inherit that the
    /// signals wait for this one.
    ///
    /// # Errors
    ///
    /// The system does not let signals be blocked, or no thread start.
    pub fn catch() -> io::Result<Self> {
        let ignored = ignored_signals();
        let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
        let heeded = |signal: &Signal| ignored & (1 << (*signal as u32 - 1)) == 0;
        let signals: SigSet = all.into_iter().filter(heeded).collect();
        signals.thread_block()?;
        let interrupt = Self::default();
        let noted = interrupt.clone();
        let (apart, is_apart) = mpsc::channel();
        let waiting = move || {
            // A table of open files of its own: as long as threads share one, the kernel counts
            // references at each of their system calls, those that are timed included.
            let _shared_otherwise = unshare(CloneFlags::CLONE_FILES);
            drop(apart);
            wait(signals, &noted);
        };
        thread::Builder::new().name("interrupt".into()).spawn(waiting)?;
        // What is opened before would be in both tables, and not closed when it is closed here.
        let _no_message: Result<(), _> = is_apart.recv();
        Ok(interrupt)
    }

    /// From now on a request is noted, for somebody who looks soon.
    pub fn listen(&self) {
        self.0.listening.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Becomes true where [`Interrupt::is_requested`] does.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0.requested
    }

    /// Does `work`, during which nobody looks: a request meanwhile ends the
    /// process.
    pub fn ending_at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.listening.store(false, Ordering::Relaxed);
        let outcome = work();
        self.listen();
        outcome
    }

    /// What standard output is to hold when the process ends at once: for
    /// readers who expect a document whatever happens.
    pub fn write_at_end(&self, text: impl Into<String>) {
        if let Ok(mut words) = self.0.last_words.lock() {
            *words = text.into();
        }
    }

    #[allow(clippy::exit, reason = "nothing is under way that could be handed on")]
    fn end(&self) -> ! {
        remove_unfinished();
        if let Ok(words) = self.0.last_words.lock() {
            let _reader_gone = io::stdout().write_all(words.as_bytes());
        }
        let mut talk = io::stderr();
        // Clears a line of progress.
        let clear = if talk.is_terminal() { "\r\x1b[2K" } else { "" };
        let _nobody_reads = writeln!(talk, "{clear}interrupted");
        process::exit(i32::from(Exit::Interrupted.code()))
    }
}

/// Mask of the signals that this process ignores, signal 1 its lowest bit. A blocked
/// signal would be waited for although it is ignored.
fn ignored_signals() -> u64 {
    let mask = read_entry("/proc/self/status", "SigIgn");
    mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0)
}

/// Ctrl-C, which ends the process with exit code 130 until [`Interrupt::listen`].
pub(super) fn end_on_request() -> Result<Interrupt, CliError> {
    Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))
}

/// What to say where only `done` of `all` were done.
pub(super) fn interrupted(done: usize, all: usize, what: &str) -> Option<String> {
    (done < all).then(|| format!("interrupted after {done} of {all} {what}"))
}

fn wait(signals: SigSet, noted: &Interrupt) {
    while signals.wait().is_ok() {
        let again = noted.0.requested.swap(true, Ordering::Relaxed);
        if again || !noted.0.listening.load(Ordering::Relaxed) {
            noted.end();
        }
    }
}
