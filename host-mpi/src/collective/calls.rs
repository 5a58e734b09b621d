//! Calls of MPI with prepared arguments.

use std::hint::black_box;

use mpi::Count;
use mpi::collective::{CommunicatorCollectives as _, Root, SystemOperation};
use mpi::datatype::{Partition, PartitionMut};
use mpi::request::{self, LocalScope, Request, Scope};
use mpi::topology::{Communicator as _, Process, SimpleCommunicator};

use crate::clocks::GlobalClock;

type Parts<'a> = Partition<'a, [u8], &'a [Count], &'a [Count]>;
type PartsMut<'a> = PartitionMut<'a, [u8], &'a [Count], &'a [Count]>;

/// An operation on buffers: the send buffer first, then the receive buffer.
pub(super) enum Call<'a> {
    Barrier,
    Bcast(&'a mut [u8]),
    Reduce(&'a [u32], &'a mut [u32]),
    Allreduce(&'a [u32], &'a mut [u32]),
    Scan(&'a [u32], &'a mut [u32]),
    Exscan(&'a [u32], &'a mut [u32]),
    ReduceScatterBlock(&'a [u32], &'a mut [u32]),
    Gather(&'a [u8], &'a mut [u8]),
    Allgather(&'a [u8], &'a mut [u8]),
    Scatter(&'a [u8], &'a mut [u8]),
    Alltoall(&'a [u8], &'a mut [u8]),
    Gatherv(&'a [u8], PartsMut<'a>),
    Allgatherv(&'a [u8], PartsMut<'a>),
    Scatterv(Parts<'a>, &'a mut [u8]),
    Alltoallv(Parts<'a>, PartsMut<'a>),
}

/// Root of a call, and whether it is this rank.
pub(super) struct RootOf<'a> {
    process: Process<'a>,
    here: bool,
}

impl<'a> RootOf<'a> {
    pub(super) fn new(ranks: &'a SimpleCommunicator, root: i32) -> Self {
        Self { process: ranks.process_at_rank(root), here: ranks.rank() == root }
    }
}

/// Completion of an immediate operation after its start.
pub(super) trait Completion {
    fn complete<'a, D: ?Sized, S: Scope<'a>>(&mut self, request: Request<'a, D, S>);
}

/// Waits at once.
pub(super) struct AtOnce;

impl Completion for AtOnce {
    #[inline]
    fn complete<'a, D: ?Sized, S: Scope<'a>>(&mut self, request: Request<'a, D, S>) {
        request.wait_without_status();
    }
}

/// Computation with calls of `MPI_Test` in between, before the wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Computing {
    /// Iterations of the computing loop, in all.
    pub(super) turns: u64,
    /// Number of calls of `MPI_Test`, evenly spaced.
    pub(super) tests: u32,
}

/// Computes as [`Computing`] says, and measures the time that it took.
pub(super) struct Busy<'a> {
    pub(super) plan: Computing,
    pub(super) clock: &'a GlobalClock,
    /// Ticks spent computing.
    pub(super) spent: u64,
}

impl Busy<'_> {
    #[inline]
    fn compute(&mut self, turns: u64) {
        let begin = self.clock.read();
        compute(turns);
        self.spent += self.clock.read().saturating_sub(begin);
    }
}

impl Completion for Busy<'_> {
    #[inline]
    fn complete<'a, D: ?Sized, S: Scope<'a>>(&mut self, request: Request<'a, D, S>) {
        let Computing { turns, tests } = self.plan;
        let slice = turns / (u64::from(tests) + 1);
        let mut pending = Some(request);
        for _ in 0..tests {
            self.compute(slice);
            pending = pending.and_then(|request| request.test().err());
        }
        self.compute(slice);
        if let Some(request) = pending {
            request.wait_without_status();
        }
    }
}

/// Keeps the processor busy without memory accesses, by dependent multiplications.
#[inline(never)]
pub(super) fn compute(turns: u64) {
    let mut value = 1_u64;
    for turn in 0..turns {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(turn));
    }
    black_box(value);
}

impl Call<'_> {
    /// Makes the blocking call.
    #[inline]
    pub(super) fn blocking(&mut self, ranks: &SimpleCommunicator, root: &RootOf<'_>) {
        let sum = SystemOperation::sum();
        let at = &root.process;
        match (self, root.here) {
            (Self::Barrier, _) => ranks.barrier(),
            (Self::Bcast(data), _) => at.broadcast_into(*data),
            (Self::Reduce(give, get), true) => at.reduce_into_root(*give, *get, sum),
            (Self::Reduce(give, _), false) => at.reduce_into(*give, sum),
            (Self::Allreduce(give, get), _) => ranks.all_reduce_into(*give, *get, sum),
            (Self::Scan(give, get), _) => ranks.scan_into(*give, *get, sum),
            (Self::Exscan(give, get), _) => ranks.exclusive_scan_into(*give, *get, sum),
            (Self::ReduceScatterBlock(give, get), _) => {
                ranks.reduce_scatter_block_into(*give, *get, sum);
            }
            (Self::Gather(give, get), true) => at.gather_into_root(*give, *get),
            (Self::Gather(give, _), false) => at.gather_into(*give),
            (Self::Gatherv(give, get), true) => at.gather_varcount_into_root(*give, get),
            (Self::Gatherv(give, _), false) => at.gather_varcount_into(*give),
            (Self::Allgather(give, get), _) => ranks.all_gather_into(*give, *get),
            (Self::Allgatherv(give, get), _) => ranks.all_gather_varcount_into(*give, get),
            (Self::Scatter(give, get), true) => at.scatter_into_root(*give, *get),
            (Self::Scatter(_, get), false) => at.scatter_into(*get),
            (Self::Scatterv(give, get), true) => at.scatter_varcount_into_root(give, *get),
            (Self::Scatterv(_, get), false) => at.scatter_varcount_into(*get),
            (Self::Alltoall(give, get), _) => ranks.all_to_all_into(*give, *get),
            (Self::Alltoallv(give, get), _) => ranks.all_to_all_varcount_into(give, get),
        }
    }

    /// Makes the immediate call, and completes it with `then`.
    #[inline]
    pub(super) fn immediate(
        &mut self,
        ranks: &SimpleCommunicator,
        root: &RootOf<'_>,
        then: &mut impl Completion,
    ) {
        let sum = SystemOperation::sum();
        let at = &root.process;
        request::scope(|s| match (self, root.here) {
            (Self::Barrier, _) => then.complete(ranks.immediate_barrier()),
            (Self::Bcast(data), _) => then.complete(at.immediate_broadcast_into(s, *data)),
            (Self::Reduce(give, get), true) => {
                then.complete(at.immediate_reduce_into_root(s, *give, *get, sum));
            }
            (Self::Reduce(give, _), false) => {
                then.complete(at.immediate_reduce_into(s, *give, sum));
            }
            (Self::Allreduce(give, get), _) => {
                then.complete(ranks.immediate_all_reduce_into(s, *give, *get, sum));
            }
            (Self::Scan(give, get), _) => {
                then.complete(ranks.immediate_scan_into(s, *give, *get, sum));
            }
            (Self::Exscan(give, get), _) => {
                then.complete(ranks.immediate_exclusive_scan_into(s, *give, *get, sum));
            }
            (Self::ReduceScatterBlock(give, get), _) => {
                then.complete(ranks.immediate_reduce_scatter_block_into(s, *give, *get, sum));
            }
            (call, _) => call.immediate_bytes(ranks, root, s, then),
        });
    }

    /// [`Call::immediate`] for the operations that move bytes from many ranks or to many.
    #[inline]
    fn immediate_bytes<'s>(
        &'s mut self,
        ranks: &SimpleCommunicator,
        root: &RootOf<'_>,
        s: &LocalScope<'s>,
        then: &mut impl Completion,
    ) {
        let at = &root.process;
        match (self, root.here) {
            (Self::Gather(give, get), true) => {
                then.complete(at.immediate_gather_into_root(s, *give, *get));
            }
            (Self::Gather(give, _), false) => then.complete(at.immediate_gather_into(s, *give)),
            (Self::Gatherv(give, get), true) => {
                then.complete(at.immediate_gather_varcount_into_root(s, *give, get));
            }
            (Self::Gatherv(give, _), false) => {
                then.complete(at.immediate_gather_varcount_into(s, *give));
            }
            (Self::Allgather(give, get), _) => {
                then.complete(ranks.immediate_all_gather_into(s, *give, *get));
            }
            (Self::Allgatherv(give, get), _) => {
                then.complete(ranks.immediate_all_gather_varcount_into(s, *give, get));
            }
            (Self::Scatter(give, get), true) => {
                then.complete(at.immediate_scatter_into_root(s, *give, *get));
            }
            (Self::Scatter(_, get), false) => then.complete(at.immediate_scatter_into(s, *get)),
            (Self::Scatterv(give, get), true) => {
                then.complete(at.immediate_scatter_varcount_into_root(s, give, *get));
            }
            (Self::Scatterv(_, get), false) => {
                then.complete(at.immediate_scatter_varcount_into(s, *get));
            }
            (Self::Alltoall(give, get), _) => {
                then.complete(ranks.immediate_all_to_all_into(s, *give, *get));
            }
            (Self::Alltoallv(give, get), _) => {
                then.complete(ranks.immediate_all_to_all_varcount_into(s, give, get));
            }
            (
                Self::Barrier
                | Self::Bcast(_)
                | Self::Reduce(..)
                | Self::Allreduce(..)
                | Self::Scan(..)
                | Self::Exscan(..)
                | Self::ReduceScatterBlock(..),
                _,
            ) => debug_assert!(false, "a call of `immediate` itself"),
        }
    }
}
