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
    /// The machine had no time, so that the result says nothing. Where that can
    /// be seen it is seen beside the result; an emulator's stalls are seen only
    /// by the refusals that they lead to, which is why their share is bounded.
    Disturbed(String),
}

/// Disturbed attempts that a test program may have more than others.
const ALLOWANCE: usize = 2;

/// Whether so many disturbed attempts are the machine's doing: more than
/// others, but for [`ALLOWANCE`], and the program disturbs itself.
const fn is_bearable(made: usize, disturbed: usize) -> bool {
    disturbed <= made / 2 + ALLOWANCE
}

/// The first attempt that the machine left alone, or that is right in spite of
/// it. One at a time in this process; of all attempts that a test program makes
/// not many more than a half may be disturbed.
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
    loop {
        let made = MADE.fetch_add(1, Ordering::Relaxed) + 1;
        match attempt() {
            Attempt::Right(result) => return result,
            Attempt::Wrong(problem) => panic!("{what}: {problem}"),
            Attempt::Disturbed(why) => reasons.push(why),
        }
        let disturbed = DISTURBED.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(
            is_bearable(made, disturbed),
            "{what} needs a machine with time; {disturbed} of {made} attempts in this program were \
             disturbed, here by: {reasons:#?}"
        );
    }
}

/// Lets this thread, and the processes and threads that it starts from now on,
/// go before what else the machine does, where that is allowed.
pub fn go_first() {
    set_priority("--rr", "1");
}

/// Lets this thread, and the processes and threads that it starts from now on,
/// take turns with everything else: where a busy machine is what is tested.
/// Turns of those that go first last 100 ms, which no user's do.
pub fn go_with_others() {
    set_priority("--other", "0");
}

/// Lets this thread go before those that go first: who only passes messages on
/// would wait for a tenth of a second behind one that polls.
pub fn go_before_the_first() {
    set_priority("--rr", "2");
}

fn set_priority(policy: &str, priority: &str) {
    let thread = gettid().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args([policy, "--pid", priority, &thread]).stdout(Stdio::null()).stderr(Stdio::null());
    // A user who may not gets a test that the machine disturbs more often.
    let _allowed = chrt.status();
}

/// How often another process took the processor from this thread.
#[must_use]
pub fn interruptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).expect("a thread").involuntary_context_switches()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_disturbed_attempts_are_borne_and_many_are_not() {
        assert!(is_bearable(3, 3) && is_bearable(100, 52));
        assert!(!is_bearable(5, 5) && !is_bearable(100, 53));
    }

    #[test]
    fn what_was_disturbed_is_repeated_until_it_is_right() {
        let mut attempts = [Attempt::Disturbed("busy".to_owned()), Attempt::Right(7)].into_iter();
        assert_eq!(undisturbed("a number", || attempts.next().expect("two are enough")), 7);
    }

    #[test]
    #[should_panic(expected = "a number: it is 8")]
    fn what_is_wrong_undisturbed_is_not_repeated() {
        let mut attempts = [Attempt::Wrong("it is 8".to_owned()), Attempt::Right(7)].into_iter();
        undisturbed("a number", || attempts.next().expect("one is enough"));
    }
}
