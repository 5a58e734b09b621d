//! Long messages: an RTS, a CTS, the data.
//!
//! The send itself sends the RTS. The CTS and the data leave from records of
//! their own, which are released like operations: that of the CTS on the
//! receiver, when the RTS has met its receive; that of the data on the sender,
//! when the CTS is handled.

use super::partition::Partition;
use super::rank::WindowRank;
use super::record::BY_ARRIVAL;
use crate::sim::hooks::{Noise, Observer};

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// The RTS of `send` has met `receive` at `time`, through `creator`: the CTS
    /// may leave.
    pub(super) fn answer(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        (send, receive): (u32, u32),
        (creator, time): (u32, u64),
    ) {
        let cts = self.shared.at(send).next.get();
        self.shared.handshake(cts).meet(receive, time);
        // The processor may have been idle before the receive was posted.
        self.shared.set_time_of(cts, self.shared.time_of(send).max(time));
        self.release((rank, state), cts, creator);
    }

    /// The sender has handled a CTS at `time`, and is done with it later: the data
    /// may leave.
    pub(super) fn resume(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        cts: u32,
        (time, done): (u64, u64),
    ) {
        let data = cts.wrapping_add(1);
        self.shared.handshake(data).time.set(time);
        self.shared.set_time_of(data, done);
        self.release((rank, state), data, cts | BY_ARRIVAL);
    }
}
