//! The pool of threads of the windowed simulator, under every order in which threads
//! may go on and memory may show what they wrote, up to a number of preemptions.
#![cfg(test)]

mod threads {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(super) use loom::sync::{Condvar, Mutex};
    pub(super) use loom::thread::yield_now;

    pub(super) const SPINS: u32 = 1;
    pub(super) const YIELDS: u32 = 1;
}

mod workers {
    include!(concat!(env!("OUT_DIR"), "/workers.rs"));
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use workers::Workers;

/// What partitions hold: how often each has run. Loom fails where two threads reach
/// one without an order between them.
struct Shared {
    workers: Workers,
    runs: Vec<UnsafeCell<u32>>,
}

impl Shared {
    fn run(&self, partition: u32) {
        self.runs[partition as usize].with_mut(|runs| {
            // SAFETY: the pool gives a partition to one thread at a time, which is what
            // loom looks for.
            unsafe { *runs += 1 }
        });
    }
}

/// Each of the windows runs each partition once, and what it leaves is seen by
/// whoever has the partition next, and by the leader.
fn windows(followers: usize, partitions: u32, windows: u32, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let shared = Arc::new(Shared {
            workers: Workers::new(partitions as usize),
            runs: (0..partitions).map(|_| UnsafeCell::new(0)).collect(),
        });
        let others: Vec<_> = (0..followers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.workers.follow(|| shared.workers.work(|index| shared.run(index)));
                })
            })
            .collect();
        for window in 1..=windows {
            let assigned = shared.workers.assign(0..partitions);
            assert_eq!(assigned, partitions as usize);
            shared.workers.run_together(|index| shared.run(index));
            for runs in &shared.runs {
                // SAFETY: the window is over.
                runs.with(|runs| assert_eq!(unsafe { *runs }, window));
            }
        }
        shared.workers.end();
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn two_threads_run_each_partition_once_a_window() {
    windows(1, 2, 2, 3);
}

#[test]
fn three_threads_run_each_partition_once_a_window() {
    windows(2, 2, 1, 2);
}
