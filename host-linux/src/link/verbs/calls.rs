//! Timing of the parts of posting a request and polling its completion.
//!
//! Reading the clock in between makes a post longer, so this is done in separate rounds.

use loggap_core::measure::Clock;
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;

use super::record::CallTimes;
use crate::machine::clock::HostClock;

/// Limit on the stored values of each kind; further ones are discarded.
const MOST_VALUES: usize = 256;

/// Times the parts of posts and polls.
#[derive(Debug)]
pub(super) struct CallTimer {
    clock: HostClock,
    build: Vec<Picos>,
    doorbell: Vec<Picos>,
    completion: Vec<Picos>,
}

impl CallTimer {
    pub(super) fn new(clock: HostClock) -> Self {
        let [build, doorbell, completion] = [(); 3].map(|()| Vec::with_capacity(MOST_VALUES));
        Self { clock, build, doorbell, completion }
    }

    /// Times a post; `post` calls its argument when the request is built.
    pub(super) fn post<R>(&mut self, post: impl FnOnce(&mut dyn FnMut()) -> R) -> R {
        let clock = self.clock;
        let began = clock.now();
        let mut built = began;
        let posted = post(&mut || built = clock.now());
        let ended = clock.now();
        keep(&mut self.build, self.clock, built.saturating_sub(began));
        keep(&mut self.doorbell, self.clock, ended.saturating_sub(built));
        posted
    }

    /// Times a poll for a completion, if it finds one.
    pub(super) fn poll<E>(&mut self, poll: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
        let began = self.clock.now();
        let found = poll();
        let ended = self.clock.now();
        if matches!(found, Ok(true)) {
            keep(&mut self.completion, self.clock, ended.saturating_sub(began));
        }
        found
    }

    /// Medians for messages of `size_bytes`.
    pub(super) fn into_times(mut self, size_bytes: u32) -> CallTimes {
        let count = |values: &[Picos]| u32::try_from(values.len()).unwrap_or(u32::MAX);
        let (posts, completions) = (count(&self.build), count(&self.completion));
        let median = |values: &mut Vec<Picos>| Some(Sorted::new(values).median()?.seconds());
        CallTimes {
            size_bytes,
            posts,
            completions,
            build_s: median(&mut self.build),
            doorbell_s: median(&mut self.doorbell),
            completion_s: median(&mut self.completion),
        }
    }
}

/// Stores the duration of `ticks` minus the cost of a clock reading.
fn keep(values: &mut Vec<Picos>, clock: HostClock, ticks: u64) {
    if values.len() < MOST_VALUES {
        values.push(clock.duration(ticks).since(clock.read_cost()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn parts_of_calls_are_told_apart() {
        let mut timer = CallTimer::new(HostClock::monotonic_raw());
        let nap = || thread::sleep(Duration::from_millis(2));
        for _ in 0..3 {
            let posted = timer.post(|built| {
                built();
                nap();
                7
            });
            assert_eq!(posted, 7);
        }
        let nothing: Result<bool, ()> = timer.poll(|| Ok(false));
        assert_eq!(nothing, Ok(false));
        let some: Result<bool, ()> = timer.poll(|| {
            nap();
            Ok(true)
        });
        assert_eq!(some, Ok(true));
        let times = timer.into_times(64);
        assert_eq!((times.size_bytes, times.posts, times.completions), (64, 3, 1));
        assert!(times.doorbell_s.unwrap() >= 2e-3 && times.completion_s.unwrap() >= 2e-3);
        assert!(times.build_s.unwrap() < 2e-3, "{times:?}");
    }

    #[test]
    fn what_did_not_happen_has_no_time_and_no_more_is_kept_than_fits() {
        let mut timer = CallTimer::new(HostClock::monotonic_raw());
        for _ in 0..2 * MOST_VALUES {
            timer.post(|built| built());
        }
        let times = timer.into_times(1);
        assert_eq!((times.posts as usize, times.completion_s), (MOST_VALUES, None));
    }
}
