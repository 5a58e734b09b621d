//! Distance of two processors: the time of a cache line from one to the other and back.
//!
//! Messages within a machine move by cache lines. A hypervisor may move virtual processors between
//! caches and sockets at any time, which changes the times of such links severalfold for seconds to
//! minutes; no task on one processor shows it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use loggap_core::measure::Clock;
use loggap_core::units::Picos;

use super::placement::{Cpu, Placement, pin};
use crate::machine::clock::HostClock;

/// Exchanges of a timing, and timings; the least one counts, as disturbances only add to it.
const EXCHANGES: u32 = 200;
const TIMINGS: usize = 5;
/// Longest time for an answer, 20 ms: the other processor may be busy.
const PATIENCE: Picos = Picos(20_000_000_000);
/// Ratio of distances of different placements: neighbours take 20 to 60 ns, other caches and sockets
/// 100 to 400 ns.
const FARTHER: f64 = 2.0;
/// Value that ends the answers.
const END: u32 = u32::MAX;

/// Distances between launches.
#[derive(Debug)]
pub struct Distances {
    clock: HostClock,
    /// The other processor; `None` if the ends share one, or are on two machines.
    other: Option<Cpu>,
    /// Distances before each launch and after the last, seconds, where they are known.
    found: Vec<Option<f64>>,
}

/// Launches whose processors were equally far apart, the most.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    /// Their least distance, seconds.
    pub distance_s: f64,
    /// A distance before or after another launch, seconds; `None` if there is none.
    pub other_s: Option<f64>,
    /// True for each launch that counts.
    pub launches: Vec<bool>,
}

impl Distances {
    /// Times the distance for the first time. The calling thread runs on the initiator's processor.
    #[must_use]
    pub fn before(clock: HostClock, placement: Option<Placement>) -> Self {
        let other = placement.filter(|both| both.initiator != both.responder);
        let mut distances =
            Self { clock, other: other.map(|both| both.responder), found: Vec::new() };
        distances.time();
        distances
    }

    /// Times the distance again.
    pub fn time(&mut self) {
        self.found.push(self.other.and_then(|cpu| distance(&self.clock, cpu)));
    }

    /// The largest group of launches whose distances before and after are alike, of two the nearer
    /// one; `None` if no distance is known. Unknown distances are like any.
    #[must_use]
    pub fn alike(&self) -> Option<Alike> {
        let mut known: Vec<f64> = self.found.iter().flatten().copied().collect();
        known.sort_unstable_by(|one, other| other.total_cmp(one));
        let group = |least: &f64| {
            let is_like = |found: &Option<f64>| {
                found.is_none_or(|found| found >= *least && !differ(found, *least))
            };
            let launches = self.found.windows(2).map(|both| both.iter().all(is_like)).collect();
            let other_s = known.iter().copied().find(|found| !is_like(&Some(*found)));
            Alike { distance_s: *least, other_s, launches }
        };
        let size = |group: &Alike| group.launches.iter().filter(|is_in| **is_in).count();
        known.iter().map(group).max_by_key(size)
    }
}

/// True if two distances are of different placements.
pub(crate) fn differ(one: f64, other: f64) -> bool {
    one.max(other) > FARTHER * one.min(other)
}

/// Time of a cache line to `cpu` and back, seconds; `None` if `cpu` does not answer in time.
fn distance(clock: &HostClock, cpu: Cpu) -> Option<f64> {
    let line = Line::default();
    let answer = || {
        if pin(cpu).is_ok() {
            line.answer();
        }
    };
    thread::scope(|scope| {
        thread::Builder::new().name("distance".into()).spawn_scoped(scope, answer).ok()?;
        let timings = (0..TIMINGS).map_while(|_| line.exchange(clock));
        let least = timings.min();
        line.0.store(END, Ordering::Release);
        Some(least?.seconds() / f64::from(EXCHANGES))
    })
}

/// A cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU32);

impl Line {
    /// Adds one to each odd value, until the end.
    fn answer(&self) {
        loop {
            match self.0.load(Ordering::Acquire) {
                END => return,
                // Not over an end that comes at the same time.
                asked if asked % 2 == 1 => {
                    let _ended = self.0.compare_exchange(
                        asked,
                        asked + 1,
                        Ordering::Release,
                        Ordering::Relaxed,
                    );
                }
                _ => spin_loop(),
            }
        }
    }

    /// Duration of a number of exchanges.
    fn exchange(&self, clock: &HostClock) -> Option<Picos> {
        let began = clock.now();
        let passed = || clock.duration(clock.now().saturating_sub(began));
        for _ in 0..EXCHANGES {
            let asked = self.0.load(Ordering::Acquire) + 1;
            self.0.store(asked, Ordering::Release);
            let mut polls = 0_u32;
            while self.0.load(Ordering::Acquire) == asked {
                polls = polls.wrapping_add(1);
                if polls.is_multiple_of(1_024) && passed() > PATIENCE {
                    return None;
                }
                spin_loop();
            }
        }
        Some(passed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::placement::allowed;

    fn distances(found: &[f64]) -> Distances {
        let found = found.iter().map(|&found| (found > 0.0).then_some(found)).collect();
        Distances { clock: HostClock::monotonic_raw(), other: None, found }
    }

    #[test]
    fn a_line_goes_to_another_processor_and_back_in_less_than_a_few_microseconds() {
        let &[initiator, responder] = allowed().first_chunk().expect("two processors");
        let clock = HostClock::calibrated();
        let of = |both| Distances::before(clock, Some(both)).found;
        // A busy processor may not answer in time.
        let mut tries = (0..20).filter_map(|_| of(Placement { initiator, responder })[0]);
        let distance = tries.next().unwrap();
        assert!((1e-9..1e-5).contains(&distance), "{distance}");
        assert_eq!(of(Placement { initiator, responder: initiator }), [None]);
        assert_eq!(Distances::before(clock, None).alike(), None);
    }

    #[test]
    fn launches_count_whose_processors_were_as_far_apart_as_in_most() {
        let of = |found: &[f64]| distances(found).alike().unwrap();
        let near = Alike {
            distance_s: 5e-8,
            other_s: Some(3e-7),
            launches: vec![true, false, false, true],
        };
        assert_eq!(of(&[5e-8, 6e-8, 3e-7, 0.0, 5e-8]), near);
        let far = Alike {
            distance_s: 2.9e-7,
            other_s: Some(5e-8),
            launches: vec![false, true, true, false],
        };
        assert_eq!(of(&[5e-8, 3.1e-7, 2.9e-7, 3e-7, 9e-7]).launches, far.launches);
        let always_far = of(&[3.1e-7, 2.9e-7, 3e-7]);
        assert_eq!((always_far.other_s, always_far.launches), (None, vec![true; 2]));
    }
}
