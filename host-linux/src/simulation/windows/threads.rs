//! Synchronisation primitives of the threads. `tests/threads` substitutes its own, which explore
//! all interleavings.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Condvar, Mutex};
pub(super) use std::thread::yield_now;

/// Number of spins, then of yields, before a thread sleeps.
pub(super) const SPINS: u32 = 4_000;
pub(super) const YIELDS: u32 = 200;
