//! Watchdog that ends the job if a rank waits in vain for another one.
//!
//! MPI's blocking calls have no timeout: a rank that never calls would keep the
//! others waiting, at full load, until a person ends the job.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Interval between two checks.
const LOOKS: Duration = Duration::from_millis(500);

/// Watchdog thread, which checks whether a single wait takes too long. Costs
/// the waiting thread two stores.
#[derive(Clone)]
pub struct Watch(Arc<State>);

#[derive(Default)]
struct State {
    /// Odd during a wait; a different number for each wait.
    turns: AtomicU64,
    /// Extra time of the current wait beyond the limit, in milliseconds.
    longer: AtomicU64,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Starts the watchdog: after a wait of `limit` the process reports that
    /// `rank` waited in vain and ends, and `mpirun` ends the others.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(rank: i32, limit: Duration) -> io::Result<Self> {
        let state = Arc::new(State::default());
        let seen = Arc::clone(&state);
        let watch = move || {
            if let Some(waited) = waits_too_long(&seen, limit) {
                end(rank, waited);
            }
        };
        thread::Builder::new().name("watch".into()).spawn(watch)?;
        Ok(Self(state))
    }

    /// Runs `work`, which waits for another rank.
    #[inline]
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.begin_wait();
        let outcome = work();
        self.end_wait();
        outcome
    }

    /// As [`Watch::during`], with `longer` added to the limit.
    pub fn during_work<T>(&self, longer: Duration, work: impl FnOnce() -> T) -> T {
        let millis = u64::try_from(longer.as_millis()).unwrap_or(u64::MAX);
        self.0.longer.store(millis, Ordering::Relaxed);
        let outcome = self.during(work);
        self.0.longer.store(0, Ordering::Relaxed);
        outcome
    }

    /// Begins a wait that ends in another function.
    #[inline]
    pub(crate) fn begin_wait(&self) {
        // Only this thread writes: no read-modify-write is needed.
        let turn = self.0.turns.load(Ordering::Relaxed);
        self.0.turns.store(turn.wrapping_add(1 + turn % 2), Ordering::Relaxed);
    }

    /// Ends the wait.
    #[inline]
    pub(crate) fn end_wait(&self) {
        let turn = self.0.turns.load(Ordering::Relaxed);
        self.0.turns.store(turn.wrapping_add(2 - turn % 2), Ordering::Relaxed);
    }
}

/// Returns the limit plus its extra time once a single wait has taken that
/// long; `None` when no other thread holds the state any more.
fn waits_too_long(state: &Arc<State>, limit: Duration) -> Option<Duration> {
    let (mut last, mut count) = (0, 0);
    while Arc::strong_count(state) > 1 {
        thread::sleep(LOOKS);
        let turn = state.turns.load(Ordering::Relaxed);
        count = if turn == last && turn % 2 == 1 { count + 1 } else { 0 };
        last = turn;
        let longer = Duration::from_millis(state.longer.load(Ordering::Relaxed));
        let allowed = limit.saturating_add(longer);
        let looks = allowed.as_millis().div_ceil(LOOKS.as_millis()).max(1);
        if count >= looks {
            return Some(allowed);
        }
    }
    None
}

#[allow(clippy::exit, reason = "the main thread is inside of a call that does not return")]
fn end(rank: i32, waited: Duration) -> ! {
    let seconds = waited.as_secs_f64();
    let _nowhere_left_to_say_so = writeln!(
        io::stderr(),
        "error: rank {rank} waited {seconds} s for another rank; is one stopped, or not part of \
         this command? --give-up sets the limit"
    );
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a watchdog on `watch` in a thread; returns its result.
    fn watching(watch: &Watch, limit: Duration) -> thread::JoinHandle<Option<Duration>> {
        let seen = Arc::clone(&watch.0);
        thread::spawn(move || waits_too_long(&seen, limit))
    }

    #[test]
    fn one_long_wait_is_noticed_and_many_short_ones_are_not() {
        let watch = Watch(Arc::default());
        let looks = watching(&watch, Duration::from_millis(1_500));
        for _ in 0..3_000 {
            watch.during(|| thread::sleep(Duration::from_micros(500)));
        }
        drop(watch);
        assert_eq!(looks.join().unwrap(), None);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "times a wait of seconds")]
    fn a_wait_ends_at_its_limit_and_what_the_other_rank_has_to_do_is_added() {
        let limit = Duration::from_secs(1);
        for work in [Duration::ZERO, Duration::from_secs(1)] {
            let watch = Watch(Arc::default());
            let looks = watching(&watch, limit);
            let began = std::time::Instant::now();
            let waited = watch.during_work(work, || looks.join().unwrap());
            assert_eq!(waited, Some(limit + work));
            let took = began.elapsed();
            assert!(
                took >= limit + work && took < limit + work + Duration::from_secs(3),
                "{took:?}"
            );
        }
    }
}
