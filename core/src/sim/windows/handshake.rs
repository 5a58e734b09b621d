//! Long messages: a request, a ready, the data.
//!
//! The send itself sends the request. The ready and the data leave from
//! records of their own, which are released like operations: that of the
//! ready on the receiver, when the request has met its receive; that of the
//! data on the sender, when the ready is handled.

use super::partition::Partition;
use super::rank::WindowRank;
use super::record::BY_ARRIVAL;
use crate::sim::hooks::Noise;

impl<N: Noise> Partition<'_, N> {
    /// The request of `send` has met `receive` at `time`, through `creator`:
    /// the ready may leave.
    pub(super) fn answer(
        &mut self,
        state: &mut WindowRank,
        (send, receive): (u32, u32),
        (creator, time): (u32, u64),
    ) {
        let ready = self.shared.at(send).next();
        self.shared.handshake(ready).meet(receive, time);
        // The processor may have been idle before the receive was posted.
        self.shared.set_time_of(ready, self.shared.time_of(send).max(time));
        self.release(state, ready, creator);
    }

    /// The sender has handled a ready at `time`, and is done with it later:
    /// the data may leave.
    pub(super) fn go_on(&mut self, state: &mut WindowRank, ready: u32, (time, done): (u64, u64)) {
        let data = ready.wrapping_add(1);
        self.shared.handshake(data).set_time(time);
        self.shared.set_time_of(data, done);
        self.release(state, data, ready | BY_ARRIVAL);
    }
}
