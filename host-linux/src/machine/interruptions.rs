//! Number of times that an end of a link on this machine was preempted.
//!
//! Linux counts for each thread, in nanoseconds, how long it was runnable without a processor, and
//! how often it got one (`/proc/…/schedstat`). An end that sleeps waits briefly at each wake-up,
//! which is part of its link; a preempted one waits for another thread's time slice, 0.7 ms and
//! more.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Allowance for a wake-up on a free processor, nanoseconds.
const WAKE_UP: u64 = 100_000;
/// Time without a processor between two samplings, beyond wake-ups, that counts as a preemption,
/// nanoseconds. Shorter interruptions are the kernel's own threads and belong to the machine.
const NOTABLE: u64 = 300_000;

thread_local! {
    static WATCHED: RefCell<Watched> = RefCell::default();
}

/// Ends that this thread watches: itself and a local responder.
#[derive(Debug, Default)]
struct Watched {
    ends: Vec<End>,
    count: u64,
}

#[derive(Debug)]
struct End {
    schedstat: File,
    last: Waits,
}

/// Time that a thread has been runnable without a processor, nanoseconds, and the number of times
/// it got one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Waits {
    time: u64,
    times: u64,
}

/// Watches the calling thread and, until the next call, the process `responder`. Watches nothing if
/// the system has no `schedstat`.
pub fn watch(responder: Option<u32>) {
    let own = "/proc/thread-self/schedstat".to_owned();
    let other = responder.map(|process| format!("/proc/{process}/schedstat"));
    let ends = [Some(own), other].into_iter().flatten().filter_map(|path| End::open(&path));
    let ends = ends.collect();
    WATCHED.with_borrow_mut(|watched| watched.ends = ends);
}

/// Number of preemptions of the watched ends so far, as sampled from the calling thread.
#[must_use]
pub fn count() -> u64 {
    WATCHED.with_borrow_mut(Watched::look)
}

impl Watched {
    fn look(&mut self) -> u64 {
        for end in &mut self.ends {
            let Some(now) = Waits::read(&end.schedstat) else { continue };
            self.count = self.count.saturating_add(u64::from(now.is_pushed_aside(end.last)));
            end.last = now;
        }
        self.count
    }
}

impl End {
    fn open(path: &str) -> Option<Self> {
        let schedstat = File::open(path).ok()?;
        let last = Waits::read(&schedstat)?;
        Some(Self { schedstat, last })
    }
}

impl Waits {
    /// Reads an open file, which takes about a microsecond.
    fn read(schedstat: &File) -> Option<Self> {
        let mut text = [0; 96];
        let length = schedstat.read_at(&mut text, 0).ok()?;
        Self::parse(str::from_utf8(text.get(..length)?).ok()?)
    }

    /// Parses the fields: time on a processor, time without one, number of time slices.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().skip(1);
        let mut next = || fields.next()?.parse().ok();
        Some(Self { time: next()?, times: next()? })
    }

    fn is_pushed_aside(self, before: Self) -> bool {
        let wake_ups = self.times.saturating_sub(before.times).saturating_mul(WAKE_UP);
        self.time.saturating_sub(before.time) > wake_ups.saturating_add(NOTABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::clock::HostClock;
    use crate::machine::placement;
    use loggap_core::measure::Clock;
    use loggap_core::units::Picos;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{hint, thread};

    #[test]
    fn a_thread_that_shares_its_processor_is_told_of_and_wake_ups_are_not() {
        let before = Waits { time: 1_000, times: 10 };
        let after = |time, times| Waits { time, times }.is_pushed_aside(before);
        assert!(after(1_401_000, 11) && !after(401_000, 11));
        assert!(!after(3_000_000, 40), "30 wake-ups of 0.1 ms");
        assert_eq!(Waits::parse("5 7 9\n"), Some(Waits { time: 7, times: 9 }));
        assert_eq!(Waits::parse("5 7"), None);
    }

    #[test]
    fn two_threads_on_one_processor_take_it_from_each_other() {
        let clock = HostClock::calibrated();
        let cpu = placement::allowed()[0];
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                placement::pin(cpu).unwrap();
                while !over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
            placement::pin(cpu).unwrap();
            watch(None);
            let (before, began) = (count(), clock.now());
            while clock.duration(clock.now() - began) < Picos::from_micros(200_000).unwrap() {
                let _looked = clock.interruptions();
            }
            over.store(true, Ordering::Relaxed);
            assert!(clock.interruptions() > before + 4, "{}", count() - before);
        });
    }
}
