//! Ends the job where a rank waits for one that never comes.
//!
//! MPI's blocking calls have no limit of time: a rank that never calls would
//! keep the others waiting, at full load, until somebody ends the job.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often the watch looks.
const LOOKS: Duration = Duration::from_millis(500);

/// Looks from a thread of its own whether one and the same wait goes on for
/// too long. Costs the one who waits two stores.
#[derive(Clone)]
pub struct Watch {
    /// Odd while a wait goes on; another number for each wait.
    turns: Arc<AtomicU64>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches from now on: after a wait of `limit` the process says that
    /// `rank` waited in vain and ends, and `mpirun` ends the others.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn start(rank: i32, limit: Duration) -> io::Result<Self> {
        let turns = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&turns);
        let looks = limit.as_millis().div_ceil(LOOKS.as_millis()).max(1);
        let watch = move || {
            if waits_too_long(&seen, looks) {
                end(rank, limit);
            }
        };
        thread::Builder::new().name("watch".into()).spawn(watch)?;
        Ok(Self { turns })
    }

    /// Does `work`, which waits for another rank.
    #[inline]
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        // Only the own thread writes: no read-modify-write is needed.
        let turn = self.turns.load(Ordering::Relaxed);
        self.turns.store(turn.wrapping_add(1), Ordering::Relaxed);
        let outcome = work();
        self.turns.store(turn.wrapping_add(2), Ordering::Relaxed);
        outcome
    }
}

/// Returns once a wait was seen in so many looks one after the other, or
/// nobody can wait any more: false then.
fn waits_too_long(turns: &Arc<AtomicU64>, looks: u128) -> bool {
    let (mut last, mut count) = (0, 0);
    while Arc::strong_count(turns) > 1 {
        thread::sleep(LOOKS);
        let turn = turns.load(Ordering::Relaxed);
        count = if turn == last && turn % 2 == 1 { count + 1 } else { 0 };
        last = turn;
        if count >= looks {
            return true;
        }
    }
    false
}

#[allow(clippy::exit, reason = "the main thread is inside of a call that does not return")]
fn end(rank: i32, limit: Duration) -> ! {
    let seconds = limit.as_secs_f64();
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

    #[test]
    fn one_long_wait_is_noticed_and_many_short_ones_are_not() {
        let watch = Watch { turns: Arc::default() };
        let (seen, short) = (Arc::clone(&watch.turns), watch.clone());
        let worker = thread::spawn(move || {
            for _ in 0..3_000 {
                short.during(|| thread::sleep(Duration::from_micros(500)));
            }
        });
        let watching = thread::spawn(move || waits_too_long(&seen, 3));
        worker.join().unwrap();
        drop(watch);
        assert!(!watching.join().unwrap());
        let watch = Watch { turns: Arc::default() };
        let seen = Arc::clone(&watch.turns);
        let watching = thread::spawn(move || waits_too_long(&seen, 2));
        watch.during(|| assert!(watching.join().unwrap()));
    }
}
