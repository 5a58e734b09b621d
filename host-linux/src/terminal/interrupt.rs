//! Ctrl-C, SIGTERM and SIGHUP as a flag that drivers check between rounds.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::{process, thread};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};

use super::{CliError, Exit};
use crate::machine::kernel_files::read_entry;
use crate::output::remove_unfinished;

/// Request of the user or system to stop.
///
/// At first a request ends the process immediately, as nothing would be lost. After
/// [`Interrupt::listen`] it only sets a flag, which the driver checks by
/// [`Interrupt::is_requested`]; a second request ends the process.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    requested: AtomicBool,
    /// True while a driver checks [`Interrupt::is_requested`].
    listening: AtomicBool,
    /// Text written to standard output before the process ends immediately.
    last_words: Mutex<String>,
    /// Message in place of `interrupted`; none if it is empty.
    talk: Mutex<Option<String>>,
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP. Signals that were ignored at the start of the process,
    /// as by `nohup` and by a shell's `&` in a script, stay ignored.
    ///
    /// To be called before other threads start: they inherit the signal mask, so that only this
    /// thread receives the signals.
    ///
    /// # Errors
    ///
    /// System error: signals could not be blocked, or no thread started.
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
            // Gets a file table of its own: while threads share one, the kernel counts references
            // at each of their system calls, including timed ones.
            let _shared_otherwise = unshare(CloneFlags::CLONE_FILES);
            drop(apart);
            wait(signals, &noted);
        };
        thread::Builder::new().name("interrupt".into()).spawn(waiting)?;
        // Waits for that: files opened before would be in both tables and stay open in the other
        // one.
        let _no_message: Result<(), _> = is_apart.recv();
        Ok(interrupt)
    }

    /// Makes requests set a flag, to be checked frequently from now on.
    pub fn listen(&self) {
        self.0.listening.store(true, Ordering::Relaxed);
    }

    /// True after a request to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Break after a request to stop.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        if self.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Flag behind [`Interrupt::is_requested`].
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0.requested
    }

    /// Runs `work`, which does not check the flag: a request meanwhile ends the process.
    pub fn ending_at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.listening.store(false, Ordering::Relaxed);
        let outcome = work();
        self.listen();
        outcome
    }

    /// Sets the text for standard output in case the process ends immediately, for readers that
    /// expect a document in any case.
    pub fn write_at_end(&self, text: impl Into<String>) {
        if let Ok(mut words) = self.0.last_words.lock() {
            *words = text.into();
        }
    }

    /// Sets what is said if the process ends immediately, in place of "interrupted"; an empty text
    /// says nothing.
    pub fn say_at_end(&self, text: impl Into<String>) {
        if let Ok(mut talk) = self.0.talk.lock() {
            *talk = Some(text.into());
        }
    }

    #[allow(clippy::exit, reason = "nothing is under way that could be handed on")]
    fn end(&self) -> ! {
        remove_unfinished();
        if let Ok(words) = self.0.last_words.lock() {
            let _reader_gone = io::stdout().write_all(words.as_bytes());
        }
        let said = self.0.talk.lock().ok().and_then(|talk| talk.clone());
        let said = said.unwrap_or_else(|| "interrupted".to_owned());
        let mut talk = io::stderr();
        // Clears a progress line.
        let clear = if talk.is_terminal() { "\r\x1b[2K" } else { "" };
        if !said.is_empty() {
            let _nobody_reads = writeln!(talk, "{clear}{said}");
        }
        process::exit(i32::from(Exit::Interrupted.code()))
    }
}

/// Mask of the signals that this process ignores; the lowest bit is signal 1. An ignored signal
/// must not be waited for.
fn ignored_signals() -> u64 {
    let mask = read_entry("/proc/self/status", "SigIgn");
    mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0)
}

/// Handles Ctrl-C: it ends the process with exit code 130 until [`Interrupt::listen`].
pub(crate) fn end_on_request() -> Result<Interrupt, CliError> {
    Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))
}

/// Message for a series of which only `done` of `all` were completed; `None` if all were.
pub(crate) fn interrupted(done: usize, all: usize, what: &str) -> Option<String> {
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
