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
const EXCHANGES: u32 = 20;
const TIMINGS: usize = 50;
/// Longest time of all timings, 20 ms: the other processor may be busy.
const PATIENCE: Picos = Picos(20_000_000_000);
/// Ratio of distances of different placements: neighbours take 20 to 60 ns, other caches and sockets
/// 100 to 400 ns.
const FARTHER: f64 = 2.0;
/// Value that ends the answers.
const END: u32 = u32::MAX;

/// Distances around the launches of a run.
#[derive(Debug)]
pub struct Distances {
    clock: HostClock,
    launches: Vec<Launch>,
}

/// Ends of a launch on this machine, with their distances before and after it, seconds, where they
/// are known.
#[derive(Clone, Copy, Debug, Default)]
struct Launch {
    ends: Option<Placement>,
    found: [Option<f64>; 2],
}

/// Launches whose processors were equally far apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    /// Their least distance, seconds.
    pub distance_s: f64,
    /// A distance of another launch, seconds.
    pub other_s: Option<f64>,
    /// True for each launch that counts, at least half of all.
    pub launches: Vec<bool>,
}

impl Distances {
    /// Without launches.
    #[must_use]
    pub const fn new(clock: HostClock) -> Self {
        Self { clock, launches: Vec::new() }
    }

    /// Times the distance before a launch between `ends`, of which the calling thread is the
    /// initiator.
    pub fn before(&mut self, ends: Option<Placement>) {
        let ends = ends.filter(|both| both.initiator != both.responder);
        self.launches.push(Launch { ends, found: [self.to(ends), None] });
    }

    /// Times the distance after the launch.
    pub fn after(&mut self) {
        let Some(Launch { ends, found: [before, _] }) = self.launches.pop() else { return };
        self.launches.push(Launch { ends, found: [before, self.to(ends)] });
    }

    fn to(&self, ends: Option<Placement>) -> Option<f64> {
        distance(&self.clock, ends?.responder)
    }

    /// Known distances of all launches; none if they were between several pairs of processors.
    fn known(&self) -> Vec<f64> {
        let pair = |launch: &Launch| {
            let ends = launch.ends?;
            Some([ends.initiator.min(ends.responder), ends.initiator.max(ends.responder)])
        };
        if self.launches.windows(2).any(|two| two.first().map(pair) != two.last().map(pair)) {
            return Vec::new();
        }
        self.launches.iter().flat_map(|launch| launch.found).flatten().collect()
    }

    /// Least and largest distance, seconds, if they differ.
    #[must_use]
    pub fn range(&self) -> Option<[f64; 2]> {
        let known = self.known();
        let least = known.iter().copied().min_by(f64::total_cmp)?;
        let largest = known.iter().copied().max_by(f64::total_cmp)?;
        differ(least, largest).then_some([least, largest])
    }

    /// The largest group of launches with known distances that are alike, of two the nearer one;
    /// `None` if fewer than half of the launches are.
    #[must_use]
    pub fn alike(&self) -> Option<Alike> {
        let mut known = self.known();
        known.sort_unstable_by(|one, other| other.total_cmp(one));
        let group = |least: &f64| {
            let is_like = |found: &f64| found >= least && !differ(*found, *least);
            let counts = |launch: &Launch| {
                let mut found = launch.found.iter().flatten().peekable();
                found.peek().is_some() && found.all(is_like)
            };
            let launches = self.launches.iter().map(counts).collect();
            let other_s = known.iter().copied().find(|found| !is_like(found));
            Alike { distance_s: *least, other_s, launches }
        };
        let size = |group: &Alike| group.launches.iter().filter(|counts| **counts).count();
        let most = known.iter().map(group).max_by_key(size)?;
        (2 * size(&most) >= self.launches.len()).then_some(most)
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
        let began = clock.now();
        let timings = (0..TIMINGS).map_while(|_| line.exchange(clock, began));
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

    /// Duration of a number of exchanges; `None` if the time since `began` is over.
    fn exchange(&self, clock: &HostClock, began: u64) -> Option<Picos> {
        let since = |reading| clock.duration(clock.now().saturating_sub(reading));
        let now = clock.now();
        for _ in 0..EXCHANGES {
            let asked = self.0.load(Ordering::Acquire) + 1;
            self.0.store(asked, Ordering::Release);
            let mut polls = 0_u32;
            while self.0.load(Ordering::Acquire) == asked {
                polls = polls.wrapping_add(1);
                if polls.is_multiple_of(1_024) && since(began) > PATIENCE {
                    return None;
                }
                spin_loop();
            }
        }
        Some(since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::placement::allowed;

    const ENDS: Placement = Placement { initiator: 0, responder: 1 };

    /// Launches with distances in nanoseconds before and after, 0 if unknown.
    fn distances(found: &[[u32; 2]]) -> Distances {
        let known = |found: u32| (found > 0).then_some(f64::from(found) / 1e9);
        let launch = |found: &[u32; 2]| Launch { ends: Some(ENDS), found: found.map(known) };
        let launches = found.iter().map(launch).collect();
        Distances { clock: HostClock::monotonic_raw(), launches }
    }

    #[test]
    fn a_line_goes_to_another_processor_and_back_in_less_than_ten_microseconds() {
        let &[initiator, responder] = allowed().first_chunk().expect("two processors");
        let mut distances = Distances::new(HostClock::calibrated());
        pin(initiator).unwrap();
        // A busy processor may not answer in time.
        for _ in 0..20 {
            distances.before(Some(Placement { initiator, responder }));
            distances.after();
        }
        let least = distances.known().into_iter().min_by(f64::total_cmp).unwrap();
        assert!((1e-9..1e-5).contains(&least), "{least}");
        let mut alone = Distances::new(HostClock::calibrated());
        alone.before(Some(Placement { initiator, responder: initiator }));
        alone.before(None);
        alone.after();
        assert_eq!((alone.launches.len(), alone.alike(), alone.range()), (2, None, None));
    }

    #[test]
    fn launches_count_whose_processors_were_as_far_apart_as_in_most() {
        let counted = |found: &[[u32; 2]]| distances(found).alike().map(|alike| alike.launches);
        let near = distances(&[[50, 60], [60, 300], [0, 0], [0, 55]]);
        let expected = Alike {
            distance_s: 50.0 / 1e9,
            other_s: Some(300.0 / 1e9),
            launches: vec![true, false, false, true],
        };
        assert_eq!(near.alike(), Some(expected));
        assert_eq!(near.range(), Some([50.0 / 1e9, 300.0 / 1e9]));
        let far = counted(&[[50, 310], [310, 290], [290, 300], [300, 900]]);
        assert_eq!(far, Some(vec![false, true, true, false]));
        // Of two groups the nearer one; twice is alike.
        assert_eq!(counted(&[[300, 300], [50, 50]]), Some(vec![false, true]));
        assert_eq!([100.0, 101.0].map(|other| differ(50.0, other)), [false, true]);
        let always_far = distances(&[[310, 290], [290, 300]]);
        assert_eq!(always_far.alike().unwrap().other_s, None);
        // Fewer than half: one of three, none of one; nothing known.
        for few in [&[[50, 300], [300, 300], [300, 50]][..], &[[300, 86]], &[[0, 0]]] {
            assert_eq!(counted(few), None, "{few:?}");
        }
    }

    #[test]
    fn distances_of_several_pairs_are_not_compared() {
        let mut pairs = distances(&[[40, 40], [140, 140], [40, 40]]);
        pairs.launches[1].ends = Some(Placement { initiator: 0, responder: 4 });
        assert_eq!((pairs.alike(), pairs.range()), (None, None));
        let mut turned = distances(&[[40, 40], [45, 45]]);
        turned.launches[1].ends = Some(Placement { initiator: 1, responder: 0 });
        assert_eq!(turned.alike().unwrap().launches, [true; 2]);
    }
}
