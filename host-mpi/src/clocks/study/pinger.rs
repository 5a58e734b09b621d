//! Pings between two virtual clocks.

use std::convert::Infallible;

use loggap_core::random::Random;
use loggap_core::sync::{Ping, Pinger};
use loggap_core::units::Picos;

use super::clock::VirtualClock;
use super::path::{Path, exponential};

/// Client end of an edge on virtual time, which advances by the duration of pings.
pub(super) struct VirtualPinger<'c> {
    clocks: &'c mut [VirtualClock],
    /// Index of the own clock.
    own: usize,
    /// Index of the peer's clock.
    peer: usize,
    path: Path,
    /// Current true time.
    pub(super) now: Picos,
    /// True time, in ps, at which the phase of contention ends.
    contended_until: u64,
    /// True if it is the peer that waits for its processor in this phase.
    peer_waits: bool,
    /// Number of exchanges.
    pub(super) pings: u64,
    random: Random,
}

impl<'c> VirtualPinger<'c> {
    /// Pinger in which the first of `clocks` pings the second from the true time `now` on; `random`
    /// draws the delays.
    pub(super) const fn new(
        clocks: &'c mut [VirtualClock],
        path: Path,
        now: Picos,
        random: Random,
    ) -> Self {
        let (contended_until, peer_waits, pings) = (0, false, 0);
        Self { clocks, own: 0, peer: 1, path, now, contended_until, peer_waits, pings, random }
    }

    /// This pinger, in which the first of these clocks pings the second, which may be the same.
    pub(super) const fn between(self, [own, peer]: [usize; 2]) -> Self {
        Self { own, peer, ..self }
    }

    /// Advances true time until the own clock has reached `own`.
    pub(super) fn wait_until(&mut self, own: Picos) {
        loop {
            let missing = own.since(self.now());
            if missing == Picos::ZERO {
                return;
            }
            self.pass(missing.0);
        }
    }

    fn read(&mut self, clock: usize) -> Picos {
        let reading = self.clocks.get_mut(clock).map(|clock| clock.read(self.now));
        self.pass(self.path.reading.0);
        reading.unwrap_or_default()
    }

    const fn pass(&mut self, time: u64) {
        self.now.0 += time;
    }

    /// Additional delay by contention, in ps.
    fn contention(&mut self) -> u64 {
        let contention = self.path.contention;
        if self.now.0 >= self.contended_until && self.random.chance(contention.probability) {
            let phase = exponential(&mut self.random, contention.phase);
            self.contended_until = self.now.0 + phase;
            self.peer_waits = self.random.draw() & 1 == 0;
        }
        if self.now.0 >= self.contended_until {
            return 0;
        }
        exponential(&mut self.random, contention.delay)
    }
}

impl Pinger for VirtualPinger<'_> {
    type Error = Infallible;

    fn now(&mut self) -> Picos {
        self.read(self.own)
    }

    fn ping(&mut self) -> Result<Ping, Infallible> {
        self.pings += 1;
        let delay = self.contention();
        let sent = self.read(self.own);
        let there = self.path.draw(&mut self.random);
        self.pass(there + if self.peer_waits { delay } else { 0 });
        let stamped = self.read(self.peer);
        let back = self.path.reversed().draw(&mut self.random);
        self.pass(back + if self.peer_waits { 0 } else { delay });
        let received = self.read(self.own);
        Ok(Ping { sent, stamped, received })
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECOND;
    use super::super::clock::ClockTruth;
    use super::*;

    #[test]
    fn waiting_ends_when_the_own_clock_says_so() {
        let mut clocks = [0, 1].map(|stream| VirtualClock::new(ClockTruth::USUAL, 9, stream));
        let target = Picos(clocks[0].exact_at(Picos::ZERO).0 + 3 * SECOND);
        let path = Path::of(Picos(1_000_000));
        let mut pinger = VirtualPinger::new(&mut clocks, path, Picos::ZERO, Random::new(1));
        pinger.wait_until(target);
        let now = pinger.now();
        assert!(now >= target && now.0 < target.0 + 1_000_000);
    }
}
