//! Tests of times on a machine that does other things, too.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::gettid;

/// What came of measuring something whose truth is known.
#[derive(Debug)]
pub enum Attempt<T> {
    /// The result is right.
    Right(T),
    /// The result is wrong, and nothing else took the processors.
    Wrong(String),
    /// Something independent of the result says that the machine had no time:
    /// the result says nothing.
    Disturbed(String),
}

/// Attempts until the machine leaves one alone.
const MOST: usize = 8;
/// Disturbed attempts that a test program may have, whatever it measures.
const ALLOWANCE: usize = 6;

/// The first attempt that the machine left alone: it has to be right. One at a
/// time in this process. Of all attempts that a test program makes at most a
/// half, and [`ALLOWANCE`], may be disturbed, so that a program that disturbs
/// itself is found.
///
/// # Panics
///
/// When an attempt is wrong, or the machine disturbs too many.
pub fn undisturbed<T>(what: &str, mut attempt: impl FnMut() -> Attempt<T>) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static DISTURBED: AtomicUsize = AtomicUsize::new(0);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut reasons = Vec::new();
    while reasons.len() < MOST {
        let made = MADE.fetch_add(1, Ordering::Relaxed) + 1;
        match attempt() {
            Attempt::Right(result) => return result,
            Attempt::Wrong(problem) => panic!("{what}: {problem}"),
            Attempt::Disturbed(why) => reasons.push(why),
        }
        let disturbed = DISTURBED.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(
            disturbed <= made / 2 + ALLOWANCE,
            "{what}: {disturbed} of {made} attempts were disturbed: {reasons:#?}"
        );
    }
    panic!("{what} needs a machine with time; all attempts were disturbed: {reasons:#?}");
}

/// Lets this thread, and the processes and threads that it starts from now on,
/// go before what else the machine does, where that is allowed.
pub fn go_first() {
    let thread = gettid().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["--rr", "--pid", "1", &thread]).stdout(Stdio::null()).stderr(Stdio::null());
    // A user who may not gets a test that the machine disturbs more often.
    let _allowed = chrt.status();
}

/// How often another process took the processor from this thread.
#[must_use]
pub fn interruptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).expect("a thread").involuntary_context_switches()
}
