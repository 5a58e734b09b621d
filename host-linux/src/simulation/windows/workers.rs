//! Threads that share the partitions of a window.
//!
//! The leader opens a window, works on it like the other threads, and closes it when no partition
//! is left to take; then it waits only for the threads that have joined. So a thread that is
//! scheduled late, or not at all, delays none of the others.

use std::sync::PoisonError;

use super::threads::{
    AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, SPINS, YIELDS, spin_loop,
    yield_now,
};

/// Bit of [`Workers::state`] that is set while a window is open. The bits above are the number of
/// the window; those below, the number of threads that have joined.
const OPEN: u64 = 1 << 15;
const JOINED: u64 = OPEN - 1;
/// Value of the state after the last window.
const OVER: u64 = u64::MAX;

/// Shared state of the threads.
#[derive(Debug)]
pub(super) struct Workers {
    state: AtomicU64,
    /// Number of joined threads that are done with the window.
    done: AtomicU64,
    /// Partitions to run, of which the first `count` are valid; `next` is the index of the next one
    /// to take.
    active: Vec<AtomicU32>,
    count: AtomicUsize,
    next: AtomicUsize,
    sleeping: Mutex<u32>,
    wake: Condvar,
}

impl Workers {
    /// State for up to `partitions` partitions.
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

    /// Runs partitions until none is left to take.
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

    /// Sets the partitions to run in a window; called by the leader. Returns their number.
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

    /// Runs the assigned partitions on all threads, and returns when they are done; called by the
    /// leader.
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

    /// Ends all threads; called by the leader.
    pub(super) fn end(&self) {
        self.publish(OVER);
    }

    fn publish(&self, state: u64) {
        // Sequentially consistent with the counting of sleepers: either a sleeper sees this state,
        // or it is counted here.
        self.state.store(state, Ordering::SeqCst);
        if *self.sleeping.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            self.wake.notify_all();
        }
    }

    /// Calls `work` in each window that it can join, until the end; called by the other threads.
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
                // Counted even if `work` panics, because the leader waits for it.
                let _done = AtEnd(|| _ = self.done.fetch_add(1, Ordering::Release));
                work();
            }
        }
    }

    /// Sleeps until a window other than that of `state` is opened.
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

/// Waits briefly: spins at first, then yields.
fn wait(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if *spins < SPINS {
        spin_loop();
    } else {
        yield_now();
    }
}
