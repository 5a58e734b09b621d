//! The offset and the drift of clocks, whatever their readings are.

use super::Numbers;
use loggap_core::stats::Confidence;
use loggap_core::sync::{
    ClockModel, DriftEstimator, MOST_DRIFT_PPM, Offset, OffsetEstimator, OffsetOptions, Ping,
};
use loggap_core::units::{Picos, SignedPicos};

/// Pings of one series, then the next, until the input is used up; a model
/// from all of them, and one from each pair.
pub fn clocks(data: &[u8]) {
    let mut input = Numbers(data);
    let options = OffsetOptions {
        patience: input.byte().into(),
        target: time(&mut input, 0),
        widest: time(&mut input, 0),
        most: input.byte().into(),
        drift_ppm: input.word(),
        resolution: time(&mut input, 0),
    };
    let mut drift = DriftEstimator::default();
    let (mut before, mut now) = (None, 0);
    while !input.is_empty() {
        let Some(offset) = series(&mut input, options, &mut now) else { continue };
        let in_order = before.is_none_or(|before: Offset| before.at < offset.at);
        assert_eq!(drift.push(&offset).is_ok(), in_order);
        if let Some(before) = before
            && let Ok(model) = ClockModel::between(&before, &offset)
        {
            goes_back(&model);
            // Through both, unless that is steeper than clocks drift.
            let beside = model.offset_at(offset.at).0.abs_diff(offset.value.0);
            let rounded = 1 + offset.at.since(before.at).0 / 1_000_000_000_000;
            let is_steepest = model.drift.unsigned_abs() == u64::from(MOST_DRIFT_PPM) * 1_000_000;
            assert!(beside <= rounded || is_steepest, "{model:?}");
            assert!(beside <= model.error_at(offset.at).0.max(rounded), "{model:?}");
        }
        goes_back(&ClockModel::of_offset(&offset, options.drift_ppm));
        before = if in_order { Some(offset) } else { before };
    }
    if let Ok(model) = drift.model() {
        goes_back(&model);
        goes_back(&model.after(&model));
    }
}

/// One series to its end, or to that of the input.
fn series(input: &mut Numbers<'_>, options: OffsetOptions, now: &mut u64) -> Option<Offset> {
    let mut middles = [SignedPicos(0); 9];
    let kept = usize::from(input.byte()) % 10;
    let mut estimator = OffsetEstimator::new(options, &mut middles[..kept]);
    let mut taken = 0;
    while !estimator.is_done() && !input.is_empty() {
        let sent = time(input, *now);
        let received = time(input, sent.0);
        let ping = Ping { sent, stamped: time(input, sent.0), received };
        *now = received.0;
        taken += u32::from(estimator.handle(&ping).is_ok());
        assert!(taken <= options.most, "a series ends");
        let offset = estimator.offset();
        assert_eq!(offset.map_or(0, |offset| offset.pings), taken);
    }
    if let Some(median) = estimator.median(Confidence::P95) {
        assert!(median.low <= median.median && median.median <= median.high);
    }
    estimator.offset()
}

/// A time near `last`, or anywhere.
fn time(input: &mut Numbers<'_>, last: u64) -> Picos {
    Picos(match input.byte() % 4 {
        0 => last.saturating_add(input.byte().into()),
        1 => last.saturating_add(input.word().into()),
        2 => last.saturating_sub(input.short().into()),
        _ => input.long(),
    })
}

/// From the own clock to the reference and back, wherever neither ends.
fn goes_back(model: &ClockModel) {
    for local in [model.at.0, model.until.0, model.at.0.saturating_add(1 << 50), 0, u64::MAX] {
        let reference = model.reference_at(Picos(local));
        let back = model.local_at(reference);
        let _any = model.error_at(Picos(local));
        let within = |time: u64| (1..u64::MAX).contains(&time);
        let near = local.abs_diff(model.at.0) < 1 << 60;
        if near && within(reference.0) && within(back.0) && model.offset.0.unsigned_abs() < 1 << 62
        {
            // A drift of at most 500 ppm, rounded twice.
            assert!(back.0.abs_diff(local) <= 3, "{model:?} at {local}");
        }
    }
}
