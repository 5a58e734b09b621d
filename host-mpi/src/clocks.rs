//! Clocks that agree over ranks.
//!
//! All ranks of a machine read `CLOCK_MONOTONIC_RAW`, which is one clock
//! there: its rate needs no calibration, and only where each rank counts from
//! differs. Between machines the drift is bounded, not measured, so that
//! clocks are to be synchronised again before each series of repetitions.

use loggap::machine::clock::HostClock;
use loggap_core::measure::Clock as _;
use loggap_core::sync::{ClockModel, OffsetEstimator, OffsetOptions, Ping};
use loggap_core::units::Picos;
use mpi::point_to_point::Destination as _;
use mpi::topology::{Communicator as _, Process};

use crate::job::Job;
use crate::waiting::Waiting;

/// The rank whose clock is the global one.
pub const REFERENCE: i32 = 0;

/// The clock of this rank and its relation to the global axis, which begins
/// when the reference rank made its own.
#[derive(Clone, Copy, Debug)]
pub struct GlobalClock {
    clock: HostClock,
    /// Reading that this rank counts from.
    base: u64,
    model: ClockModel,
}

impl GlobalClock {
    /// This rank's clock, not synchronised yet.
    #[must_use]
    pub fn new() -> Self {
        let clock = HostClock::monotonic_raw();
        Self { clock, base: clock.now(), model: ClockModel::reference() }
    }

    /// A reading, to be converted later: this is all that a timed part does.
    #[inline(always)]
    #[must_use]
    pub fn read(&self) -> u64 {
        self.clock.now()
    }

    /// The time between two readings.
    #[must_use]
    pub fn between(&self, from: u64, to: u64) -> Picos {
        self.clock.duration(to.saturating_sub(from))
    }

    /// The own time of a reading.
    #[must_use]
    pub fn local(&self, reading: u64) -> Picos {
        self.clock.duration(reading.saturating_sub(self.base))
    }

    /// The global time of a reading.
    #[must_use]
    pub fn global(&self, reading: u64) -> Picos {
        self.model.reference_at(self.local(reading))
    }

    /// The global time.
    #[must_use]
    pub fn now(&self) -> Picos {
        self.global(self.read())
    }

    /// The first reading at or after `global`.
    #[must_use]
    pub fn reading_at(&self, global: Picos) -> u64 {
        self.base.saturating_add(self.clock.ticks(self.model.local_at(global)))
    }

    /// What global times of now may be off by.
    #[must_use]
    pub fn error(&self) -> Picos {
        self.model.error_at(self.local(self.read()))
    }

    /// What a reading costs.
    #[must_use]
    pub fn read_cost(&self) -> Picos {
        self.clock.read_cost()
    }

    /// The name of what is read.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.clock.source().name()
    }

    /// Puts all ranks onto the reference's axis: one rank after the other
    /// exchanges pings with the reference. All ranks call this together.
    pub fn synchronise(&mut self, job: &Job, waiting: Waiting<'_>) {
        let control = job.control();
        if job.rank() == REFERENCE {
            self.model = ClockModel::reference();
            for rank in (0..job.size()).filter(|rank| *rank != REFERENCE) {
                self.answer(&control.process_at_rank(rank), waiting);
            }
        } else {
            /// Faster than this no two crystals of machines in use move apart.
            const BETWEEN_HOSTS_PPM: u32 = 100;
            let shared = job.share_a_host(job.rank(), REFERENCE);
            let drift_ppm = if shared { 0 } else { BETWEEN_HOSTS_PPM };
            self.model = self.ask(&control.process_at_rank(REFERENCE), drift_ppm, waiting);
        }
    }

    /// Answers pings until there are no more.
    fn answer(&self, peer: &Process<'_>, waiting: Waiting<'_>) {
        while waiting.number_from(peer) == PING {
            peer.send(&self.local(self.read()).0);
        }
    }

    /// Pings `reference` until more would not help.
    fn ask(&self, reference: &Process<'_>, drift_ppm: u32, waiting: Waiting<'_>) -> ClockModel {
        /// A rank that lost its processor in all pings so far goes on.
        const WIDEST: Picos = Picos(5_000_000);
        const MOST: u32 = 2_000;
        /// And ends when that takes too long: the bounds are as wide as they are.
        const LONGEST: Picos = Picos(200_000_000_000);
        let options =
            OffsetOptions { widest: WIDEST, most: MOST, drift_ppm, ..OffsetOptions::default() };
        let begin = self.local(self.read());
        let mut estimator = OffsetEstimator::new(options, &mut []);
        for _ in 0..MOST {
            let sent = self.read();
            reference.send(&PING);
            let stamped = waiting.number_from(reference);
            let received = self.read();
            let (sent, received) = (self.local(sent), self.local(received));
            // A ping that says nothing does not count.
            let _taken = estimator.handle(&Ping { sent, stamped: Picos(stamped), received });
            if estimator.is_done() || received.since(begin) > LONGEST {
                break;
            }
        }
        reference.send(&DONE);
        let unknown = ClockModel { error: Picos::MAX, ..ClockModel::reference() };
        estimator.offset().map_or(unknown, |offset| ClockModel::of_offset(&offset, drift_ppm))
    }
}

impl Default for GlobalClock {
    fn default() -> Self {
        Self::new()
    }
}

/// What a rank that is being synchronised says to the reference.
const PING: u64 = 1;
const DONE: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_global_axis_and_its_reading_agree() {
        let mut clock = GlobalClock::new();
        clock.model.offset.0 = -7_000_000;
        let reading = clock.read();
        let global = clock.global(reading);
        assert!(global >= Picos(7_000_000));
        assert!(clock.reading_at(global).abs_diff(reading) <= 1);
    }

    #[test]
    fn the_global_time_goes_on() {
        let clock = GlobalClock::new();
        let before = clock.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(clock.now().since(before) >= Picos(2_000_000_000));
    }
}
