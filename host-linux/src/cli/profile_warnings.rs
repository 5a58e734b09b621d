//! Warnings about a profile whose parameters are used by a simulation or formula.

use std::path::Path;

use loggap_core::model::{Coefficient, Parameter, Range, SizeLine};
use loggap_core::units::{Bytes, Picos};

use crate::output::number;
use crate::profile::{ProfileDocument, SizeSpan};
use crate::terminal::Console;

/// Warns about parameters of `document`, read from `path`, that did not converge.
pub(super) fn not_converged(path: &Path, document: &ProfileDocument, console: &mut Console) {
    let several = document.ranges.len() > 1;
    let of_range = |range: &Range| {
        let symbols = symbols_not_converged(range).join(", ");
        let of = if several { format!(" of {}", SizeSpan::of(range)) } else { String::new() };
        (!symbols.is_empty()).then(|| symbols + &of)
    };
    let ranges = document.ranges.iter().map(|record| &record.range);
    let named: Vec<String> = ranges.filter_map(of_range).collect();
    if !named.is_empty() {
        console.warn(format_args!(
            "{}: {} did not converge: bounds, not measurements",
            path.display(),
            named.join("; ")
        ));
    }
}

/// Symbols of the parameters of `range` that did not converge.
fn symbols_not_converged(range: &Range) -> Vec<&'static str> {
    let used = Coefficient::ALL.into_iter().filter(|of| of.parameter() != Parameter::HalfRtt);
    let is_doubtful =
        |of: &Coefficient| range.estimate(*of).is_some_and(|found| !found.mark.converged());
    used.filter(is_doubtful).map(Coefficient::symbol).collect()
}

/// Warns if a message of `largest` bytes exceeds the measured sizes.
pub(super) fn extrapolated(
    path: &Path,
    document: &ProfileDocument,
    largest: Bytes,
    console: &mut Console,
) {
    let Some(last) = document.ranges.last().map(|record| record.range.last) else { return };
    if largest > last {
        console.warn(format_args!(
            "{}: ends at {}; messages of up to {} are extrapolated",
            path.display(),
            number::size(last.0),
            number::size(largest.0)
        ));
    }
}

/// Ratio of one-way times that is worth a warning.
const UNLIKE: f64 = 1.2;

/// Warns if a message of up to `largest` bytes takes, by o_s + L + o_r + (s − 1)·max(G, O_r), another
/// time than the RTT/2 that was measured for it: the model has no other slope (copies at both ends,
/// one after the other, are slower).
pub(super) fn unlike_half_rtt(
    path: &Path,
    document: &ProfileDocument,
    largest: Bytes,
    console: &mut Console,
) {
    let used = document.ranges.iter().map(|record| &record.range);
    let differences = used.filter(|range| range.first <= largest).filter_map(|range| {
        let size = range.last.min(largest);
        let measured = range.half_rtt.filter(SizeLine::has_slope)?.at(size).picos()?;
        let (set, receive) = range.loggops_apart(Bytes::default()).ok()?;
        let per_byte = set.gap_per_byte.max(receive.overhead_per_byte);
        let further = per_byte.times(size.after_first()).ok()?;
        let modelled = set.one_byte(&receive).plus(further).ok()?;
        let [measured, modelled] = [measured, modelled].map(Picos::seconds);
        let (least, most) = (measured.min(modelled), measured.max(modelled));
        (least > 0.0).then_some((most / least, size, measured, modelled))
    });
    let farthest = differences.max_by(|(one, ..), (other, ..)| one.total_cmp(other));
    if let Some((ratio, size, measured, modelled)) = farthest
        && ratio > UNLIKE
    {
        console.warn(format_args!(
            "{}: RTT/2 of {} is {} as measured and {} by the other parameters, which the simulation \
             uses",
            path.display(),
            number::size(size.0),
            number::in_units(measured, number::TIME),
            number::in_units(modelled, number::TIME),
        ));
    }
}
