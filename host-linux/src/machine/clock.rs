//! Clock for measurements.
//!
//! The processor's own counter is preferred (invariant TSC on x86-64, the generic timer on
//! aarch64): a reading costs about 30 ns with its fences and does not enter the kernel. Conditions:
//! the processor calls the counter invariant or the kernel keeps time by it, the kernel offers it
//! as a clock source, and its rate against `CLOCK_MONOTONIC_RAW` is the same in two consecutive
//! intervals. Otherwise `CLOCK_MONOTONIC_RAW` itself is read.
//!
//! Ticks are converted to picoseconds by one fixed-point multiplication, exact to 2⁻⁴⁰ ps per tick.
//! The remaining error is the calibration's, see [`HostClock::uncertainty_ppb`].

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use loggap_core::measure::Clock;
use loggap_core::units::Picos;
use nix::time::{ClockId, clock_gettime};

use crate::machine::interruptions;
use crate::sys::counter;

/// Counter that a [`HostClock`] reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClockSource {
    /// The time stamp counter of an x86-64 processor.
    Tsc,
    /// The virtual counter of an aarch64 processor, `cntvct_el0`.
    VirtualCounter,
    /// `CLOCK_MONOTONIC_RAW` of the kernel.
    MonotonicRaw,
}

impl ClockSource {
    /// Name in reports and profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::VirtualCounter => "cntvct_el0",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        }
    }
}

/// Why the processor's counter is not used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fallback {
    /// The caller requested the kernel's clock.
    Asked,
    /// The processor does not promise a constant rate, and the kernel keeps time by another clock.
    NotInvariant,
    /// The kernel does not offer the counter as a clock source.
    NotOffered,
    /// The counter's rate differed between two consecutive intervals.
    Unsteady,
}

/// A calibrated clock. Copies read the same counter.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    source: ClockSource,
    fallback: Option<Fallback>,
    scale: Scale,
    read_ticks: u64,
    uncertainty_ppb: u32,
}

impl HostClock {
    /// Calibrates the best clock of this machine and measures its read cost. Sleeps for 35 ms.
    #[must_use]
    pub fn calibrated() -> Self {
        match Self::counter() {
            Ok(clock) => clock,
            Err(reason) => Self::kernel(reason, PAUSE),
        }
    }

    /// `CLOCK_MONOTONIC_RAW`, to compare with the processor's counter, and as a stopwatch: its read
    /// cost is measured without pauses.
    #[must_use]
    pub fn monotonic_raw() -> Self {
        Self::kernel(Fallback::Asked, Duration::ZERO)
    }

    /// Counter that is read.
    #[must_use]
    pub const fn source(&self) -> ClockSource {
        self.source
    }

    /// Why the processor's counter is not used; `None` if it is.
    #[must_use]
    pub const fn fallback(&self) -> Option<Fallback> {
        self.fallback
    }

    /// Bound on the relative error of the rate against `CLOCK_MONOTONIC_RAW`, in parts per 10⁹:
    /// uncertainty of the calibrating readings over their distance.
    #[must_use]
    pub const fn uncertainty_ppb(&self) -> u32 {
        self.uncertainty_ppb
    }

    /// Ticks per second, rounded to whole hertz.
    #[must_use]
    pub const fn hertz(&self) -> u64 {
        self.scale.hertz()
    }

    fn counter() -> Result<Self, Fallback> {
        Claims::read().admit()?;
        let calibration = Calibration::run()?;
        let source = if cfg!(target_arch = "x86_64") {
            ClockSource::Tsc
        } else {
            ClockSource::VirtualCounter
        };
        Ok(Self::with_read_cost(source, None, calibration, PAUSE))
    }

    fn kernel(reason: Fallback, pause: Duration) -> Self {
        let exact = Calibration { scale: Scale::NANOS, uncertainty_ppb: 0 };
        Self::with_read_cost(ClockSource::MonotonicRaw, Some(reason), exact, pause)
    }

    fn with_read_cost(
        source: ClockSource,
        fallback: Option<Fallback>,
        rate: Calibration,
        pause: Duration,
    ) -> Self {
        let Calibration { scale, uncertainty_ppb } = rate;
        let mut clock = Self { source, fallback, scale, read_ticks: 0, uncertainty_ppb };
        let pair = || {
            let before = clock.now();
            clock.now().saturating_sub(before)
        };
        clock.read_ticks = read_ticks(pair, || thread::sleep(pause));
        clock
    }
}

impl Clock for HostClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        match self.source {
            ClockSource::Tsc | ClockSource::VirtualCounter => counter::read(),
            ClockSource::MonotonicRaw => raw_nanos(),
        }
    }

    #[inline]
    fn duration(&self, ticks: u64) -> Picos {
        self.scale.duration(ticks)
    }

    #[inline]
    fn ticks(&self, duration: Picos) -> u64 {
        self.scale.ticks(duration)
    }

    fn read_cost(&self) -> Picos {
        self.duration(self.read_ticks)
    }

    fn interruptions(&self) -> u64 {
        interruptions::count()
    }
}

/// Time limit on waiting, precise to a millisecond. Not for measuring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

#[allow(clippy::disallowed_methods, reason = "this is the one place that limits waiting")]
impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    pub(crate) fn expired(self) -> bool {
        Instant::now() >= self.0
    }

    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Picoseconds per tick, in 2⁻⁴⁰ ps: below 2⁶⁰ at 1 MHz, above 2⁴⁶ at 10 GHz. The rounding error is
/// below 10⁻¹³ of the rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Scale(u64);

impl Scale {
    const FRACTION_BITS: u32 = 40;
    const NANOS: Self = Self(1_000 << Self::FRACTION_BITS);

    /// Scale of a counter that advances by `ticks` in `nanos`; `None` outside 1 MHz to 1 THz, the
    /// range of processors' counters.
    fn from_rate(ticks: u64, nanos: u64) -> Option<Self> {
        let picos = u128::from(nanos) * 1_000;
        let scaled = (picos << Self::FRACTION_BITS).checked_div(u128::from(ticks))?;
        let scale = u64::try_from(scaled).ok()?;
        (1 << Self::FRACTION_BITS..=1_000_000 << Self::FRACTION_BITS)
            .contains(&scale)
            .then_some(Self(scale))
    }

    fn duration(self, ticks: u64) -> Picos {
        let picos = (u128::from(ticks) * u128::from(self.0)) >> Self::FRACTION_BITS;
        Picos(u64::try_from(picos).unwrap_or(u64::MAX))
    }

    fn ticks(self, duration: Picos) -> u64 {
        let scaled = u128::from(duration.0) << Self::FRACTION_BITS;
        u64::try_from(scaled.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)
    }

    const fn hertz(self) -> u64 {
        let per_second = 1_000_000_000_000_u128 << Self::FRACTION_BITS;
        let scale = if self.0 == 0 { 1 } else { self.0 as u128 };
        let hertz = (per_second + scale / 2) / scale;
        if hertz > u64::MAX as u128 {
            return u64::MAX;
        }
        #[allow(clippy::cast_possible_truncation, reason = "checked just before")]
        let whole = hertz as u64;
        whole
    }
}

/// A rate and the bound on its relative error.
#[derive(Clone, Copy, Debug)]
struct Calibration {
    scale: Scale,
    uncertainty_ppb: u32,
}

impl Calibration {
    /// Sleep between two of the three readings. Readings precise to about 25 ns give a rate precise
    /// to about 2 parts per million.
    const INTERVAL: Duration = Duration::from_millis(15);

    /// Largest difference between the rates of two intervals, beyond their own uncertainty: a
    /// counter that follows the core's frequency is off by percents, and after a suspend by much
    /// more.
    const STEADY_PPB: u64 = 50_000;

    fn run() -> Result<Self, Fallback> {
        let first = Reading::take();
        thread::sleep(Self::INTERVAL);
        let second = Reading::take();
        thread::sleep(Self::INTERVAL);
        let third = Reading::take();
        let early = Self::between(first, second).ok_or(Fallback::Unsteady)?;
        let late = Self::between(second, third).ok_or(Fallback::Unsteady)?;
        if !early.agrees_with(late) {
            return Err(Fallback::Unsteady);
        }
        Self::between(first, third).ok_or(Fallback::Unsteady)
    }

    fn between(from: Reading, to: Reading) -> Option<Self> {
        let ticks = to.ticks.checked_sub(from.ticks)?;
        let nanos = to.nanos.checked_sub(from.nanos)?;
        let scale = Scale::from_rate(ticks, nanos)?;
        let doubt = u128::from(from.half_width + to.half_width) * 1_000_000_000;
        let uncertainty = doubt.div_ceil(u128::from(ticks.max(1)));
        Some(Self { scale, uncertainty_ppb: u32::try_from(uncertainty).ok()? })
    }

    fn agrees_with(self, other: Self) -> bool {
        let apart = u128::from(self.scale.0.abs_diff(other.scale.0)) * 1_000_000_000;
        let allowed =
            u64::from(self.uncertainty_ppb) + u64::from(other.uncertainty_ppb) + Self::STEADY_PPB;
        apart <= u128::from(self.scale.0) * u128::from(allowed)
    }
}

/// Both clocks at one moment: the counter was within `half_width` of `ticks` when the kernel's
/// clock was `nanos`.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    nanos: u64,
    half_width: u64,
}

impl Reading {
    /// The most precise of several attempts; an interruption widens an attempt.
    fn take() -> Self {
        const TRIES: u32 = 64;
        let mut best = Self::take_once();
        for _ in 1..TRIES {
            let next = Self::take_once();
            if next.half_width < best.half_width {
                best = next;
            }
        }
        best
    }

    fn take_once() -> Self {
        let before = counter::read();
        let nanos = raw_nanos();
        let after = counter::read();
        let half_width = (after.saturating_sub(before)).div_ceil(2);
        Self { ticks: before.saturating_add(half_width), nanos, half_width }
    }
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds; 0 where it does not exist (Linux before 2.6.28).
#[inline]
fn raw_nanos() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC_RAW).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
    })
}

/// Pause between groups of readings that measure the cost of one.
const PAUSE: Duration = Duration::from_micros(500);

/// Distance of two readings back to back, in ticks: the least of the medians of
/// several groups, as a processor that others use is several times as slow for
/// a millisecond now and then. `pair` is one distance, and `pause` goes between
/// groups.
fn read_ticks(mut pair: impl FnMut() -> u64, mut pause: impl FnMut()) -> u64 {
    const GROUPS: usize = 8;
    const PAIRS: usize = 201;
    let mut group = || {
        let mut distances = [0; PAIRS];
        // Twice: the first pass warms the caches and the branch predictor.
        for _ in 0..2 {
            distances.fill_with(&mut pair);
        }
        pause();
        *distances.select_nth_unstable(PAIRS / 2).1
    };
    (0..GROUPS).map(|_| group()).min().unwrap_or(0)
}

/// Properties of the counter as processor and kernel report them, and the kernel's clock sources;
/// `None` if unreadable (a container without /sys).
#[derive(Debug)]
struct Claims {
    invariant: bool,
    available: Option<String>,
    current: Option<String>,
}

impl Claims {
    fn read() -> Self {
        let setting = |name: &str| {
            fs::read_to_string(format!("/sys/devices/system/clocksource/clocksource0/{name}")).ok()
        };
        Self {
            invariant: counter::is_invariant(),
            available: setting("available_clocksource"),
            current: setting("current_clocksource"),
        }
    }

    /// Checks that the counter may be calibrated. If the kernel keeps time by it, it is steady
    /// enough, whatever the processor promises: emulators and some hypervisors promise nothing. The
    /// kernel removes a TSC from the available sources when its watchdog finds it unstable; without
    /// that list the calibration alone decides.
    fn admit(&self) -> Result<(), Fallback> {
        let is_counter = |source: &str| Some(source) == counter::KERNEL_NAME;
        let keeps_time = self.current.as_ref().is_some_and(|source| is_counter(source.trim()));
        if !self.invariant && !keeps_time {
            return Err(Fallback::NotInvariant);
        }
        match &self.available {
            Some(list) if !list.split_whitespace().any(is_counter) => Err(Fallback::NotOffered),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn a_slow_moment_does_not_make_reading_dear() {
        let slow = std::cell::Cell::new(7);
        let pair = || if slow.get() > 0 { 400 } else { 25 };
        assert_eq!(read_ticks(pair, || slow.set(slow.get() - 1)), 25);
    }

    quickcheck! {
        fn ticks_of_a_duration_last_at_least_that_long(megahertz: u16, picos: u64) -> bool {
            let ticks = (u64::from(megahertz) % 9_999 + 1) * 1_000_000;
            let scale = Scale::from_rate(ticks, 1_000_000_000).unwrap();
            let duration = Picos(picos >> 1);
            let count = scale.ticks(duration);
            // Rounded up, and not by a whole tick more than needed.
            scale.duration(count + 1) >= duration && scale.duration(count.saturating_sub(1)) <= duration
        }

        fn a_rate_survives_the_scale_to_within_a_hertz(hertz: u32) -> bool {
            let hertz = u64::from(hertz).max(1_000_000);
            Scale::from_rate(hertz, 1_000_000_000).unwrap().hertz() == hertz
        }
    }

    #[test]
    fn durations_are_exact_to_a_millionth_over_a_day() {
        let scale = Scale::from_rate(2_999_999_987, 1_000_000_000).unwrap();
        let day = 86_400 * 2_999_999_987_u64;
        let error = scale.duration(day).0.abs_diff(86_400_000_000_000_000);
        assert!(error < 86_400_000_000_000_000 / 1_000_000, "off by {error} ps in a day");
    }

    #[test]
    fn rates_that_no_processor_has_are_refused() {
        assert_eq!(Scale::from_rate(0, 1_000), None);
        assert_eq!(Scale::from_rate(1, 1_001), None);
        assert_eq!(Scale::from_rate(1_001, 1), None);
        assert_eq!(Scale::from_rate(u64::MAX, 1), None);
    }

    #[test]
    fn durations_saturate() {
        assert_eq!(Scale::NANOS.duration(u64::MAX), Picos::MAX);
        assert!(Scale::NANOS.ticks(Picos::MAX) >= u64::MAX / 1_000);
    }

    #[test]
    fn the_counter_is_read_where_processor_or_kernel_vouch_for_it() {
        let Some(counter) = counter::KERNEL_NAME else { return };
        let admitted = |invariant, available: &[&str], current: &str| {
            let available = Some(available.join(" ") + " \n");
            Claims { invariant, available, current: Some(format!("{current}\n")) }.admit()
        };
        assert_eq!(admitted(true, &[counter, "hpet"], counter), Ok(()));
        // A guest of KVM keeps time by kvm-clock.
        assert_eq!(admitted(true, &["kvm-clock", counter], "kvm-clock"), Ok(()));
        // An emulated processor promises nothing.
        assert_eq!(admitted(false, &[counter, "hpet"], counter), Ok(()));
        assert_eq!(admitted(false, &[counter, "hpet"], "hpet"), Err(Fallback::NotInvariant));
        assert_eq!(admitted(true, &["hpet"], "hpet"), Err(Fallback::NotOffered));
        let unknown = |invariant| Claims { invariant, available: None, current: None }.admit();
        assert_eq!(unknown(true), Ok(()));
        assert_eq!(unknown(false), Err(Fallback::NotInvariant));
    }

    #[test]
    fn a_rate_that_changes_between_intervals_is_unsteady() {
        let calibration = |ticks| Calibration {
            scale: Scale::from_rate(ticks, 1_000_000_000).unwrap(),
            uncertainty_ppb: 2_000,
        };
        assert!(calibration(2_000_000_000).agrees_with(calibration(2_000_050_000)));
        assert!(!calibration(2_000_000_000).agrees_with(calibration(2_020_000_000)));
    }

    #[test]
    fn the_clock_of_this_machine_agrees_with_the_kernel() {
        let clock = HostClock::calibrated();
        let (start, start_raw) = (clock.now(), raw_nanos());
        thread::sleep(Duration::from_millis(50));
        let (end, end_raw) = (clock.now(), raw_nanos());
        let ours = clock.duration(end - start).0;
        let kernels = (end_raw - start_raw) * 1_000;
        // A preemption between the two readings of a pair costs milliseconds
        // on a loaded machine; a wrong rate would cost percents as well.
        assert!(ours.abs_diff(kernels) < kernels / 10, "{ours} ps against {kernels} ps");
        assert!(clock.uncertainty_ppb() < 1_000_000, "{} ppb", clock.uncertainty_ppb());
    }

    #[test]
    fn readings_never_decrease_and_their_cost_is_known() {
        for clock in [HostClock::calibrated(), HostClock::monotonic_raw()] {
            let mut last = clock.now();
            for _ in 0..10_000 {
                let now = clock.now();
                assert!(now >= last);
                last = now;
            }
            assert!(clock.read_cost() > Picos::ZERO, "{:?}", clock.source());
            assert!(clock.read_cost() < Picos(100_000_000), "{:?}", clock.read_cost());
        }
    }
}
