//! Several processes, on one or many machines, that simulate one schedule together.

use std::num::NonZeroUsize;
use std::{fmt, thread};

/// The processes of a simulation. Each has a block of the ranks, and all call each method in the
/// same order.
pub trait Processes: fmt::Debug {
    /// Number of this process.
    fn index(&self) -> u32;

    /// Number of processes.
    fn count(&self) -> u32;

    /// True for a program that is not one of several processes, not even of one.
    fn is_alone(&self) -> bool {
        false
    }

    /// Number of threads that a process has processors for.
    fn threads(&self) -> usize {
        thread::available_parallelism().map_or(1, NonZeroUsize::get)
    }

    /// Ends a window: sends to each process its words of `outgoing`, if there are any, and appends
    /// to `incoming` those that others sent. Returns `next` of all processes, in their order.
    fn exchange(&self, outgoing: &[Vec<u32>], incoming: &mut Vec<u32>, next: u64) -> Vec<u64>;

    /// Numbers of all processes, in their order; all have equally many.
    fn all(&self, own: &[u64]) -> Vec<u64>;

    /// Numbers of all processes, in their order, at the first; none at the others.
    fn at_first(&self, own: Vec<u64>) -> Vec<u64>;
}

/// This process alone.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Processes for Alone {
    fn is_alone(&self) -> bool {
        true
    }

    fn index(&self) -> u32 {
        0
    }

    fn count(&self) -> u32 {
        1
    }

    fn exchange(&self, _outgoing: &[Vec<u32>], _incoming: &mut Vec<u32>, next: u64) -> Vec<u64> {
        vec![next]
    }

    fn all(&self, own: &[u64]) -> Vec<u64> {
        own.to_vec()
    }

    fn at_first(&self, own: Vec<u64>) -> Vec<u64> {
        own
    }
}

/// An error that can be that of another process.
pub(crate) trait Elsewhere {
    /// Another process failed, and reports why.
    const ELSEWHERE: Self;

    /// True for [`Elsewhere::ELSEWHERE`].
    fn is_elsewhere(&self) -> bool;
}

/// `own` result, unless a process failed: then the first of these has its own error, and all others
/// [`Elsewhere::ELSEWHERE`].
pub(crate) fn agreed<T, E: Elsewhere>(
    processes: &dyn Processes,
    own: Result<T, E>,
) -> Result<T, E> {
    let failed = own.as_ref().is_err_and(|error| !error.is_elsewhere());
    let all = processes.all(&[u64::from(failed)]);
    match all.iter().position(|failed| *failed != 0) {
        Some(first) if first != processes.index() as usize => Err(E::ELSEWHERE),
        _ => own,
    }
}
