//! Predictions by the equations of the model.

use loggap_core::model::{
    ClosedForm, LogGops as CoreSet, PredictError, Prediction as CorePrediction, Prtt,
    UnusableParameter,
};
use loggap_core::units::{Bytes, PerByte, Picos};

use crate::boundary::{Place, input, plain};
use crate::profile::Profile;
use crate::status::{Detail, Status, finish};

/// Parameter set of the LogGOPS model.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct LogGops {
    /// L: latency of the wire, in ps.
    pub latency_ps: u64,
    /// o: time that an end spends on a message of one byte, in ps.
    pub overhead_ps: u64,
    /// g: minimum time between two messages of one byte, in ps.
    pub gap_ps: u64,
    /// G: time of each further byte on the wire, in 2^-16 ps.
    pub gap_per_byte_q16: u64,
    /// O: time of each further byte at an end, in 2^-16 ps.
    pub overhead_per_byte_q16: u64,
    /// S: largest eager message, in bytes; larger ones wait for their receiver.
    pub eager_limit: u64,
}

/// A predicted time, with the interval in which a measurement is expected.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Prediction {
    /// Predicted value, in ps.
    pub value_ps: u64,
    /// Lower end of the interval, in ps.
    pub low_ps: u64,
    /// Upper end of the interval, in ps.
    pub high_ps: u64,
}

/// A collective operation with a closed form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum FormKind {
    /// Linear scatter.
    Scatter = 0,
    /// Linear gather.
    Gather = 1,
    /// Broadcast or reduction along a binomial tree.
    BinomialTree = 2,
    /// Dissemination: a barrier or an allgather.
    Dissemination = 3,
}

const FORMS: [(FormKind, ClosedForm); 4] = [
    (FormKind::Scatter, ClosedForm::Scatter),
    (FormKind::Gather, ClosedForm::Gather),
    (FormKind::BinomialTree, ClosedForm::BinomialTree),
    (FormKind::Dissemination, ClosedForm::Dissemination),
];

plain!(LogGops);

impl LogGops {
    const fn from_core(set: &CoreSet) -> Self {
        Self {
            latency_ps: set.latency.0,
            overhead_ps: set.overhead.0,
            gap_ps: set.gap.0,
            gap_per_byte_q16: set.gap_per_byte.0,
            overhead_per_byte_q16: set.overhead_per_byte.0,
            eager_limit: set.eager_limit.0,
        }
    }

    pub(crate) const fn to_core(self) -> CoreSet {
        CoreSet {
            latency: Picos(self.latency_ps),
            overhead: Picos(self.overhead_ps),
            gap: Picos(self.gap_ps),
            gap_per_byte: PerByte(self.gap_per_byte_q16),
            overhead_per_byte: PerByte(self.overhead_per_byte_q16),
            eager_limit: Bytes(self.eager_limit),
        }
    }
}

/// Parameters of the range that contains `size` as one LogGOPS set, for
/// simulations. `eager_limit` becomes S; `UINT64_MAX` makes all messages eager.
///
/// Errors: `LOGGAP_STATUS_OUTSIDE_PROFILE`; `LOGGAP_STATUS_NOT_MEASURED` and
/// `LOGGAP_STATUS_UNUSABLE` with the name of the parameter;
/// `LOGGAP_STATUS_OPTION` for an invalid profile; `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_profile_loggops(
    profile: *const Profile,
    size: u64,
    eager_limit: u64,
    set: *mut LogGops,
    detail: *mut Detail,
) -> i32 {
    let take = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(set) }?;
        // SAFETY: by the contract of this function.
        let ranges = unsafe { input(profile) }?.ranges()?;
        let inside = |first: u64, last: u64| (first..=last).contains(&size.max(1));
        let range = ranges.iter().find(|range| inside(range.first, range.last));
        let outside = Detail::of(Status::OutsideProfile).at(size);
        let range = range.ok_or(outside)?.as_core()?;
        let set = range.loggops(Bytes(eager_limit)).map_err(unusable)?;
        place.put(LogGops::from_core(&set));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(take(), detail) }
}

/// End-to-end time of one message of `size` bytes, with the interval in which
/// a measurement is expected.
///
/// Errors: `LOGGAP_STATUS_OUTSIDE_PROFILE`, `LOGGAP_STATUS_NOT_MEASURED`,
/// `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_OPTION` for an invalid profile,
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_predict_message(
    profile: *const Profile,
    size: u64,
    prediction: *mut Prediction,
    detail: *mut Detail,
) -> i32 {
    let predict = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(prediction) }?;
        // SAFETY: by the contract of this function.
        let profile = unsafe { input(profile) }?.as_core()?;
        let time = profile.predict_one_way(Bytes(size)).map_err(no_prediction)?;
        place.put(Prediction::from_core(&time));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(predict(), detail) }
}

/// `PRTT(n, d, s)`: time of `messages` messages of `size` bytes, with a wait of
/// `delay_ps` between two sends, and one reply of `size` bytes.
///
/// Errors: as `loggap_predict_message`, and `LOGGAP_STATUS_OPTION` if `messages` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_predict_prtt(
    profile: *const Profile,
    messages: u32,
    delay_ps: u64,
    size: u64,
    prediction: *mut Prediction,
    detail: *mut Detail,
) -> i32 {
    let predict = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(prediction) }?;
        // SAFETY: by the contract of this function.
        let profile = unsafe { input(profile) }?.as_core()?;
        let prtt = Prtt { messages, delay: Picos(delay_ps), size: Bytes(size) };
        place.put(Prediction::from_core(&profile.predict_prtt(prtt).map_err(no_prediction)?));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(predict(), detail) }
}

/// End-to-end time of one eager message by the LogGOPS set,
/// `2 (o + (s-1) O) + L + (s-1) G`, in ps.
///
/// Errors: `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_loggops_message(
    set: *const LogGops,
    size: u64,
    time_ps: *mut u64,
    detail: *mut Detail,
) -> i32 {
    let predict = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(time_ps) }?;
        // SAFETY: by the contract of this function.
        let set = unsafe { input(set) }?.to_core();
        place.put(set.one_way(Bytes(size)).map_err(|_| Detail::of(Status::Overflow))?.0);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(predict(), detail) }
}

/// Time of a collective operation on `ranks` ranks with messages of `size`
/// bytes by its closed form, a `loggap_form_kind`, in ps. `exact` receives 0 if
/// a simulation gives, or may give, another time; it may be null.
///
/// Errors: `LOGGAP_STATUS_OPTION` for an unknown form,
/// `LOGGAP_STATUS_OVERFLOW`, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_loggops_collective(
    set: *const LogGops,
    form: u32,
    ranks: u32,
    size: u64,
    time_ps: *mut u64,
    exact: *mut u32,
    detail: *mut Detail,
) -> i32 {
    let predict = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(time_ps) }?;
        // SAFETY: by the contract of this function.
        let mut exact = unsafe { Place::optional(exact) }?;
        // SAFETY: by the contract of this function.
        let set = unsafe { input(set) }?.to_core();
        let known = FORMS.into_iter().find(|(kind, _)| *kind as u32 == form);
        let (_, form) = known.ok_or(Detail::of(Status::Option).named("form").found(form.into()))?;
        let overflow = |_| Detail::of(Status::Overflow);
        let time = form.time(&set, ranks, Bytes(size)).map_err(overflow)?;
        let caveat = form.caveat(&set, ranks, Bytes(size)).map_err(overflow)?;
        place.put(time.0);
        exact.put(caveat.is_none().into());
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(predict(), detail) }
}

impl Prediction {
    const fn from_core(prediction: &CorePrediction) -> Self {
        Self { value_ps: prediction.value.0, low_ps: prediction.low.0, high_ps: prediction.high.0 }
    }
}

fn no_prediction(error: PredictError) -> Detail {
    match error {
        PredictError::OutsideProfile(size) => Detail::of(Status::OutsideProfile).at(size.0),
        PredictError::NotMeasured(parameter) => {
            Detail::of(Status::NotMeasured).named(parameter.key())
        }
        PredictError::NoMessages => Detail::of(Status::Option).named("messages"),
        PredictError::Overflow => Detail::of(Status::Overflow),
    }
}

fn unusable(error: UnusableParameter) -> Detail {
    let (status, parameter) = match error {
        UnusableParameter::NotMeasured(parameter) => (Status::NotMeasured, parameter),
        UnusableParameter::Negative(parameter) | UnusableParameter::OneSize(parameter) => {
            (Status::Unusable, parameter)
        }
    };
    Detail::of(status).named(parameter.key())
}
