//! Threads that share the partitions of a window.
//!
//! The leader opens a window, works at it as the others do, and closes it when
//! no partition is left to take; it then waits only for those that joined. So
//! a thread that the kernel runs late, or not at all, delays none of the others.

use std::sync::PoisonError;

use super::threads::{
    AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, SPINS, YIELDS, spin_loop,
    yield_now,
};

/// In [`Workers::state`]: whether a window is open; above it the number of the
/// window, below it how many have joined.
const OPEN: u64 = 1 << 15;
const JOINED: u64 = OPEN - 1;
/// In place of everything: there will be no more windows.
const OVER: u64 = u64::MAX;

/// What the threads agree by.
#[derive(Debug)]
pub(super) struct Workers {
    state: AtomicU64,
    /// How many of those that joined are done.
    done: AtomicU64,
    /// Partitions to run, of which the first `count` are meant, and the next
    /// to take.
    active: Vec<AtomicU32>,
    count: AtomicUsize,
    next: AtomicUsize,
    sleeping: Mutex<u32>,
    wake: Condvar,
}

impl Workers {
    /// For so many partitions.
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            state: AtomicU64::new(0),
            done: AtomicU64::new(0),
            active: (0..partitions).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            sleeping: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    /// Takes partitions until none is left.
    pub(super) fn work(&self, mut run: impl FnMut(u32)) {
        let count = self.count.load(Ordering::Relaxed);
        loop {
            let taken = self.next.fetch_add(1, Ordering::Relaxed);
            match self.active.get(taken) {
                Some(partition) if taken < count => run(partition.load(Ordering::Relaxed)),
                _ => return,
            }
        }
    }

    /// The leader: says which partitions have a turn in a window.
    pub(super) fn assign(&self, partitions: impl Iterator<Item = u32>) -> usize {
        let mut count = 0;
        for (place, partition) in self.active.iter().zip(partitions) {
            place.store(partition, Ordering::Relaxed);
            count += 1;
        }
        self.count.store(count, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        count
    }

    /// The leader: has all threads run what was assigned, and returns when
    /// it is done.
    pub(super) fn run_together(&self, run: impl FnMut(u32)) {
        self.done.store(0, Ordering::Relaxed);
        let window = self.state.load(Ordering::Relaxed) / (2 * OPEN) + 1;
        self.publish((window * 2 + 1) * OPEN);
        self.work(run);
        let joined = self.state.fetch_and(!OPEN, Ordering::Relaxed) & JOINED;
        let mut spins = 0;
        while self.done.load(Ordering::Acquire) < joined {
            wait(&mut spins);
        }
    }

    /// The leader: ends all threads.
    pub(super) fn end(&self) {
        self.publish(OVER);
    }

    fn publish(&self, state: u64) {
        // In sequence with the sleepers' counting themselves, so that either
        // they see the state or are counted here.
        self.state.store(state, Ordering::SeqCst);
        if *self.sleeping.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            self.wake.notify_all();
        }
    }

    /// The other threads: call `work` in each window that it can join, until
    /// the end.
    pub(super) fn follow(&self, mut work: impl FnMut()) {
        let mut last = 0;
        let mut spins = 0;
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == OVER {
                return;
            }
            let window = state & !(OPEN | JOINED);
            if state & OPEN == 0 || window == last {
                if spins >= SPINS + YIELDS {
                    self.sleep(state);
                    spins = 0;
                }
                wait(&mut spins);
                continue;
            }
            let joining = self.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if joining.is_ok() {
                (last, spins) = (window, 0);
                // Counted also where `work` panics: the leader waits for it.
                let _done = AtEnd(|| _ = self.done.fetch_add(1, Ordering::Release));
                work();
            }
        }
    }

    /// Sleeps until another window is opened than that of `state`.
    fn sleep(&self, state: u64) {
        let window = |state: u64| state & !(OPEN | JOINED);
        let mut sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        *sleeping += 1;
        while window(self.state.load(Ordering::SeqCst)) == window(state) {
            sleeping = self.wake.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
        }
        *sleeping -= 1;
    }
}

/// Calls a function when it is dropped.
pub(super) struct AtEnd<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Waits a moment, longer the more often.
fn wait(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if *spins < SPINS {
        spin_loop();
    } else {
        yield_now();
    }
}
