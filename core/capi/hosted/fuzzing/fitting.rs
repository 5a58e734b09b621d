//! Fits and predictions.

use super::World;
use super::lent::{Lent, Plain};
use super::numbers::Numbers;
use super::place::{Place, Told, scribbled};
use loggap_capi::{
    FitOptions, FitPoint, FitSegment, LogGops, Prediction, Status, loggap_fit,
    loggap_fit_look_ahead,
};
use loggap_core::model::{self, ClosedForm};
use loggap_core::units::{Bytes, PerByte, Picos};

const FIT: [Status; 7] = [
    Status::NoData,
    Status::Malformed,
    Status::Full,
    Status::Memory,
    Status::Option,
    Status::Null,
    Status::Alignment,
];

/// Most points of a sweep.
const POINTS: usize = 24;

fn point(last: u64, input: &mut Numbers<'_>) -> FitPoint {
    let step = if input.seldom() { input.number() } else { u64::from(input.byte()) + 1 };
    let sigma_ps = if input.seldom() { input.double() } else { 0.0 };
    FitPoint { size: last.wrapping_add(step), value_ps: input.double(), sigma_ps }
}

impl World {
    pub(super) fn add_points(&mut self, input: &mut Numbers<'_>) {
        if self.points.len() >= POINTS || input.seldom() {
            self.points.clear();
        }
        for _ in 0..=input.below(8) {
            let last = self.points.last().map_or(0, |point| point.size);
            self.points.push(point(last, input));
        }
    }

    pub(super) fn fit(&mut self, input: &mut Numbers<'_>) {
        let mut usual = FitOptions::zeros();
        assert_eq!(call!(loggap_fit_options_default(&raw mut usual)), 0);
        let options = scribbled(usual, input);
        let options = Place::holding(input, &[options]);
        let points = Place::holding(input, &self.points);
        let (told, count) = (Told::new(input), Place::<usize>::new(input));
        let capacity = input.below(18);
        let segments = Place::<FitSegment>::for_many(input, capacity);
        let needed = call!(loggap_fit_bytes(self.points.len()));
        let bytes = input.length(needed);
        let memory = Lent::shifted(bytes, if input.seldom() { 4 } else { 0 });
        let fit = if input.byte() & 1 == 0 { loggap_fit } else { loggap_fit_look_ahead };
        let (given, number) = (points.pointer(), self.points.len());
        // SAFETY: as `call!`.
        let status = unsafe {
            fit(
                given,
                number,
                options.pointer(),
                memory.pointer(),
                bytes,
                segments.pointer(),
                capacity,
                count.pointer(),
                told.pointer(),
            )
        };
        told.check(status, &FIT);
        assert!(memory.is_guarded());
        let full = status == Status::Full as i32;
        assert!(!full || count.get() > capacity);
        count.holds(if full { 0 } else { status });
        if bytes < needed || points.is_wrong() || options.is_wrong() || segments.is_wrong() {
            assert_ne!(status, 0);
        }
        if status == 0 {
            self.check_segments(&segments, count.get());
        } else if !full {
            assert!(segments.is_untouched());
        }
        assert!(segments.is_guarded());
    }

    /// Segments divide the points among themselves.
    fn check_segments(&self, segments: &Place<FitSegment>, count: usize) {
        let mut next = 0;
        for index in 0..count {
            let segment = segments.at(index);
            assert_eq!(segment.first, next);
            assert!(segment.last >= segment.first && segment.bound <= 3);
            assert!(segment.begins_low <= segment.first_size);
            next = segment.last + 1;
        }
        assert_eq!(next, self.points.len() as u64);
    }

    pub(super) fn predict(&mut self, input: &mut Numbers<'_>) {
        let profile = Place::holding(input, &[self.profile]);
        let (told, prediction) = (Told::new(input), Place::<Prediction>::new(input));
        let (size, given) = (input.number(), profile.pointer());
        let (place, detail) = (prediction.pointer(), told.pointer());
        let documented = [
            Status::OutsideProfile,
            Status::NotMeasured,
            Status::Overflow,
            Status::Option,
            Status::Null,
            Status::Alignment,
        ];
        let status = if input.byte() & 1 == 0 {
            call!(loggap_predict_message(given, size, place, detail))
        } else {
            let (messages, delay) = (input.word(), input.number());
            call!(loggap_predict_prtt(given, messages, delay, size, place, detail))
        };
        told.check(status, &documented);
        prediction.holds(status);
        assert!(!(profile.is_wrong() && status == 0));
        let set = Place::<LogGops>::new(input);
        let (place, eager) = (set.pointer(), input.number());
        let status = call!(loggap_profile_loggops(given, size, eager, place, detail));
        told.check(status, &[&documented[..], &[Status::Unusable]].concat());
        set.holds(status);
        if status == 0 {
            assert_eq!(set.get().eager_limit, eager);
            message(&set.get(), input);
        }
    }
}

/// Parameters that are anything.
pub(super) fn parameters(input: &mut Numbers<'_>) -> LogGops {
    LogGops {
        latency_ps: input.number(),
        overhead_ps: input.number(),
        gap_ps: input.number(),
        gap_per_byte_q16: input.number(),
        overhead_per_byte_q16: input.number(),
        eager_limit: input.number(),
    }
}

fn core(set: &LogGops) -> model::LogGops {
    model::LogGops {
        latency: Picos(set.latency_ps),
        overhead: Picos(set.overhead_ps),
        gap: Picos(set.gap_ps),
        gap_per_byte: PerByte(set.gap_per_byte_q16),
        overhead_per_byte: PerByte(set.overhead_per_byte_q16),
        eager_limit: Bytes(set.eager_limit),
    }
}

const FORMS: [ClosedForm; 4] =
    [ClosedForm::Scatter, ClosedForm::Gather, ClosedForm::BinomialTree, ClosedForm::Dissemination];

/// Closed forms of messages and collectives: the same as the core's.
pub(super) fn form(input: &mut Numbers<'_>) {
    let set = parameters(input);
    message(&set, input);
    let given = Place::holding(input, &[set]);
    let (told, time) = (Told::new(input), Place::<u64>::new(input));
    let exact = Place::<u32>::new(input);
    let (form, ranks, size) = (input.below(5), input.word(), input.number());
    let number = u32::try_from(form).unwrap_or_default();
    let (set_pointer, place, is_exact) = (given.pointer(), time.pointer(), exact.pointer());
    let detail = told.pointer();
    let status =
        call!(loggap_loggops_collective(set_pointer, number, ranks, size, place, is_exact, detail));
    told.check(status, &[Status::Option, Status::Overflow, Status::Null, Status::Alignment]);
    time.holds(status);
    exact.holds(status);
    assert!(!(given.is_wrong() && status == 0));
    if status == 0 {
        let core = FORMS[form].time(&core(&set), ranks, Bytes(size));
        assert_eq!(core.map(|time| time.0), Ok(time.get()));
    }
}

fn message(set: &LogGops, input: &mut Numbers<'_>) {
    let (told, time) = (Told::new(input), Place::<u64>::new(input));
    let size = input.number();
    let (place, detail) = (time.pointer(), told.pointer());
    let status = call!(loggap_loggops_message(&raw const *set, size, place, detail));
    told.check(status, &[Status::Overflow, Status::Null, Status::Alignment]);
    time.holds(status);
    if time.is_right() {
        let core = core(set).one_way(Bytes(size)).ok().map(|time| time.0);
        assert_eq!((status == 0).then(|| time.get()), core);
    }
}
