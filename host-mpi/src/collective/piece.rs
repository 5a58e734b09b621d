//! Parts of collective algorithms, each measured alone from the common start: a
//! message, an exchange, the local work.
//!
//! Round trips repeat the same call at once. Here, as before a collective
//! operation, the rank has waited for its start and done other things.

use loggap_core::units::Picos;
use mpi::collective::SystemOperation;
use mpi::point_to_point::{self, Destination as _, Source as _};
use mpi::request;
use mpi::topology::{Communicator as _, Process, SimpleCommunicator};

use super::calls::{Call, RootOf};
use super::operation::{Cell, Collective, Operation};
use super::run::{Bench, Body, CollectiveError};
use super::series::Measured;
use super::stop::StopRule;
use crate::clocks::GlobalClock;

/// A part of an algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece {
    /// No operation: the duration of the start and of reading the clock.
    Nothing,
    /// Rank 0 sends, this rank receives (`MPI_Send`, `MPI_Recv`).
    Message(i32),
    /// This rank sends, rank 0 receives.
    Back(i32),
    /// Rank 0 and this rank exchange messages (`MPI_Sendrecv`).
    Exchange(i32),
    /// Rank 0 and this rank post a receive (`MPI_Irecv`); its message comes
    /// later, and is not timed.
    Post(i32),
    /// Each rank combines two vectors of its own (`MPI_Reduce_local`).
    Combine,
}

impl Bench<'_> {
    /// Measures `piece` with messages or vectors of `bytes` bytes. `Some` at the leader.
    ///
    /// # Errors
    ///
    /// [`CollectiveError`]: all ranks have to end then.
    pub fn piece(&mut self, piece: Piece, bytes: u64) -> Result<Option<Measured>, CollectiveError> {
        // Operations whose buffers suffice: two vectors, or a block to send and
        // more to receive.
        let collective = match piece {
            Piece::Combine => Collective::Allreduce,
            Piece::Nothing
            | Piece::Message(_)
            | Piece::Back(_)
            | Piece::Exchange(_)
            | Piece::Post(_) => Collective::Allgather,
        };
        let operation = Operation { collective, immediate: false };
        let cell = Cell { operation, elements: operation.elements(bytes) };
        self.series(cell, Body::Piece(piece), self.part_of_the_time())
    }

    /// Measures `cell` on each rank alone: the work of the call besides
    /// messages. `Some` at the leader.
    ///
    /// # Errors
    ///
    /// [`CollectiveError`]: all ranks have to end then.
    pub fn local_part(&mut self, cell: Cell) -> Result<Option<Measured>, CollectiveError> {
        self.series(cell, Body::Local, self.part_of_the_time())
    }

    /// Stop rule of the parts that are measured beside an operation.
    fn part_of_the_time(&self) -> StopRule {
        const PARTS: u64 = 2;
        let rule = self.plan.rule;
        StopRule { max_time: Picos(rule.max_time.0 / PARTS), ..rule }
    }
}

/// Carries out this rank's share of `piece`, and reads the clock at its end;
/// ranks without a share do nothing.
#[inline]
pub(super) fn carry_out(
    piece: Piece,
    call: &mut Call<'_>,
    ranks: &SimpleCommunicator,
    clock: &GlobalClock,
) -> u64 {
    let rank = ranks.rank();
    match (piece, call) {
        (Piece::Message(peer), Call::Allgather(give, get)) => one_way(0, peer, give, get, ranks),
        (Piece::Back(peer), Call::Allgather(give, get)) => one_way(peer, 0, give, get, ranks),
        (Piece::Exchange(peer), Call::Allgather(give, get)) => {
            if rank == 0 || rank == peer {
                let get = get.get_mut(..give.len()).unwrap_or_default();
                let other = ranks.process_at_rank(if rank == 0 { peer } else { 0 });
                point_to_point::send_receive_into(*give, &other, get, &other);
            }
        }
        (Piece::Post(peer), Call::Allgather(give, get)) => {
            if rank == 0 || rank == peer {
                let get = get.get_mut(..give.len()).unwrap_or_default();
                let other = ranks.process_at_rank(if rank == 0 { peer } else { 0 });
                return posted(give, get, &other, clock);
            }
        }
        (Piece::Combine, Call::Allreduce(give, get)) => {
            mpi::collective::reduce_local_into(*give, *get, SystemOperation::sum());
        }
        (Piece::Nothing, _) => {}
        (piece, _) => debug_assert!(false, "{piece:?} on buffers of another operation"),
    }
    clock.read()
}

/// Posts a receive, reads the clock, then sends and completes the receive.
#[inline]
fn posted(give: &[u8], get: &mut [u8], other: &Process<'_>, clock: &GlobalClock) -> u64 {
    request::scope(|scope| {
        let receive = other.immediate_receive_into(scope, get);
        let ended = clock.read();
        other.send(give);
        receive.wait_without_status();
        ended
    })
}

#[inline]
fn one_way(from: i32, to: i32, give: &[u8], get: &mut [u8], ranks: &SimpleCommunicator) {
    if ranks.rank() == from {
        ranks.process_at_rank(to).send(give);
    } else if ranks.rank() == to {
        let get = get.get_mut(..give.len()).unwrap_or_default();
        ranks.process_at_rank(from).receive_into(get);
    }
}

/// Carries the operation out on this rank alone.
#[inline]
pub(super) fn alone(call: &mut Call<'_>, own: &SimpleCommunicator) {
    call.blocking(own, &RootOf::new(own, 0));
}
