//! Warnings about a profile whose parameters are used by a simulation or formula.

use std::path::Path;

use loggap_core::model::{Coefficient, Parameter, Range};
use loggap_core::units::Bytes;

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
