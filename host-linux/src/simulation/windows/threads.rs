//! What threads agree by. `tests/threads` puts its own in place of these, which go
//! through every order of what threads do.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Condvar, Mutex};
pub(super) use std::thread::yield_now;

/// Looks at the state without leaving the processor, then with, before a
/// thread sleeps.
pub(super) const SPINS: u32 = 4_000;
pub(super) const YIELDS: u32 = 200;
