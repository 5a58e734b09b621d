//! Pings between two virtual clocks.

use core::fmt;

use super::path::{Way, exponential};
use super::{Path, VirtualClock};
use crate::random::Random;
use crate::sync::{Ping, Pinger};
use crate::units::Picos;

/// A rank's clock is missing: too few were lent. Holds the clock's index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoClock(pub usize);

impl fmt::Display for NoClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no virtual clock {}", self.0)
    }
}

impl core::error::Error for NoClock {}

/// Client end of an edge on virtual time, which advances by the duration of pings.
#[derive(Debug)]
pub struct VirtualPinger<'c> {
    clocks: &'c mut [VirtualClock],
    own: usize,
    peer: usize,
    path: Path,
    /// True time, in ps.
    now: u64,
    /// True time at which the phase of contention ends.
    contended_until: u64,
    /// True if it is the peer that waits for its processor in this phase.
    peer_waits: bool,
    pings: u64,
    random: Random,
}

impl<'c> VirtualPinger<'c> {
    /// Pinger in which clock `own` pings clock `peer`, which may be the same, from the true time
    /// `now` on; `random` draws the delays.
    #[must_use]
    pub fn new(
        clocks: &'c mut [VirtualClock],
        (own, peer): (usize, usize),
        path: Path,
        now: Picos,
        random: Random,
    ) -> Self {
        let now = now.0;
        let (contended_until, peer_waits, pings) = (0, false, 0);
        Self { clocks, own, peer, path, now, contended_until, peer_waits, pings, random }
    }

    /// Current true time.
    #[must_use]
    pub const fn true_now(&self) -> Picos {
        Picos(self.now)
    }

    /// Number of exchanges.
    #[must_use]
    pub const fn pings(&self) -> u64 {
        self.pings
    }

    fn read(&mut self, clock: usize) -> Result<Picos, NoClock> {
        let reading = self.clocks.get_mut(clock).ok_or(NoClock(clock))?.read(Picos(self.now));
        self.pass(self.path.reading.0);
        Ok(reading)
    }

    fn travel(&mut self, way: Way) {
        let time = self.path.draw(way, &mut self.random);
        self.pass(time);
    }

    const fn pass(&mut self, time: u64) {
        self.now = self.now.saturating_add(time);
    }

    /// Additional delays before and after the peer's reading, in ps.
    fn contention(&mut self) -> (u64, u64) {
        let contention = self.path.contention;
        if self.now >= self.contended_until && self.random.chance(contention.probability) {
            let phase = exponential(&mut self.random, contention.phase);
            self.contended_until = self.now.saturating_add(phase);
            self.peer_waits = self.random.draw() & 1 == 0;
        }
        if self.now >= self.contended_until {
            return (0, 0);
        }
        let delay = exponential(&mut self.random, contention.delay);
        if self.peer_waits { (delay, 0) } else { (0, delay) }
    }
}

impl Pinger for VirtualPinger<'_> {
    type Error = NoClock;

    fn now(&mut self) -> Picos {
        self.read(self.own).unwrap_or(Picos::MAX)
    }

    fn ping(&mut self) -> Result<Ping, NoClock> {
        self.pings = self.pings.saturating_add(1);
        let (before, after) = self.contention();
        let sent = self.read(self.own)?;
        self.travel(Way::There);
        self.pass(before);
        let stamped = self.read(self.peer)?;
        self.pass(after);
        self.travel(Way::Back);
        let received = self.read(self.own)?;
        Ok(Ping { sent, stamped, received })
    }

    /// Advances true time until the own clock has reached `own`.
    fn wait_until(&mut self, own: Picos) {
        loop {
            let missing = own.since(self.now());
            if missing == Picos::ZERO || self.now == u64::MAX {
                return;
            }
            self.pass(missing.0);
        }
    }
}
