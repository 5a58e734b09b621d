//! Waits for control messages.

use std::thread;
use std::time::Duration;

use mpi::collective::{CommunicatorCollectives as _, Root as _};
use mpi::point_to_point::{Destination as _, Source as _};
use mpi::request::{self, Request, Scope};
use mpi::topology::{Communicator as _, Process, SimpleCommunicator};

use crate::watch::Watch;

/// Polls for completion, and yields the processor between polls, at once or
/// after a while: MPI libraries poll, and if ranks share processors the rank
/// that is waited for would not be scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    watch: &'a Watch,
    /// Number of tests before the processor is yielded.
    patience: u32,
}

impl<'a> Waiting<'a> {
    /// Number of tests in some 100 us.
    const PATIENCE: u32 = 2_000;

    /// For ranks with processors of their own, as far as is known: ranks that
    /// are not bound may meet on one.
    #[must_use]
    pub const fn polling(watch: &'a Watch) -> Self {
        Self { watch, patience: Self::PATIENCE }
    }

    /// For ranks that share processors.
    #[must_use]
    pub const fn yielding(watch: &'a Watch) -> Self {
        Self { watch, patience: 0 }
    }

    /// True if the processor is yielded at once.
    #[must_use]
    pub const fn yields(self) -> bool {
        self.patience == 0
    }

    /// Watchdog for waits that end only when another rank has done its part.
    pub fn watch(self) -> &'a Watch {
        self.watch
    }

    /// Barrier over all of `ranks`.
    pub fn meet(self, ranks: &SimpleCommunicator) {
        self.end(ranks.immediate_barrier());
    }

    /// Broadcasts `numbers` of `root` to all ranks.
    pub fn share(self, ranks: &SimpleCommunicator, root: i32, numbers: &mut [u64]) {
        self.share_after(Duration::ZERO, ranks, root, numbers);
    }

    /// As [`Waiting::share`], but ranks may be later by `later`.
    pub fn share_after(
        self,
        later: Duration,
        ranks: &SimpleCommunicator,
        root: i32,
        numbers: &mut [u64],
    ) {
        let root = ranks.process_at_rank(root);
        request::scope(|scope| {
            self.end_after(later, root.immediate_broadcast_into(scope, numbers));
        });
    }

    /// Numbers of all ranks, in their order, at `root`; none elsewhere.
    pub fn gather(self, ranks: &SimpleCommunicator, root: i32, numbers: &[u64]) -> Vec<u64> {
        let count = if ranks.rank() == root { ranks.size() } else { 0 };
        let mut all = vec![0; numbers.len() * usize::try_from(count).unwrap_or(0)];
        let root = ranks.process_at_rank(root);
        request::scope(|scope| match count {
            0 => self.end(root.immediate_gather_into(scope, numbers)),
            _ => self.end(root.immediate_gather_into_root(scope, numbers, &mut all[..])),
        });
        all
    }

    /// Sends `numbers` to `peer`; may wait for buffer space.
    pub fn send(self, peer: &Process<'_>, numbers: &[u64]) {
        self.watch.during(|| peer.send(numbers));
    }

    /// Receives a number from `peer`.
    #[must_use]
    pub fn number_from(self, peer: &Process<'_>) -> u64 {
        let mut number = [0];
        self.numbers_from(peer, &mut number);
        let [number] = number;
        number
    }

    /// Receives numbers from `peer`, as many as it sends and fit.
    pub fn numbers_from(self, peer: &Process<'_>, numbers: &mut [u64]) {
        request::scope(|scope| self.end(peer.immediate_receive_into(scope, numbers)));
    }

    /// Calls `is_done` until it returns true. Others may take any time: they compute.
    pub fn poll(self, mut is_done: impl FnMut() -> bool) {
        let mut tests = 0;
        while !is_done() {
            if tests < self.patience {
                tests += 1;
            } else {
                thread::yield_now();
            }
        }
    }

    fn end<'s, D: ?Sized, S: Scope<'s>>(self, request: Request<'s, D, S>) {
        self.end_after(Duration::ZERO, request);
    }

    fn end_after<'s, D: ?Sized, S: Scope<'s>>(self, later: Duration, request: Request<'s, D, S>) {
        self.watch.during_work(later, || {
            let mut pending = Some(request);
            self.poll(|| is_done(&mut pending));
        });
    }
}

/// True if a request is complete; tests it if it is pending.
pub(crate) fn is_done<'s, D: ?Sized, S: Scope<'s>>(
    pending: &mut Option<Request<'s, D, S>>,
) -> bool {
    *pending = pending.take().and_then(|request| request.test().err());
    pending.is_none()
}
