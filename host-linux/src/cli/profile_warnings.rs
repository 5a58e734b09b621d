//! Warnings about a profile whose parameters are used by a simulation or formula.

use std::path::Path;

use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{Coefficient, Parameter, Range, SizeLine};
use loggap_core::sim::Settings;
use loggap_core::units::{Bytes, Picos};

use crate::output::number;
use crate::profile::{ProfileDocument, SizeSpan};
use crate::simulation::{Job, ParameterSets, Sent, Source, makespan};
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

/// Time of a message between two ranks that share no level, as simulated.
fn one_way(sets: &ParameterSets, settings: Settings, size: Bytes) -> Option<Picos> {
    let source = Source::Pattern(Pattern::BinomialBroadcast, Options::new(2, size.0.max(1)));
    makespan(&source, &Job::new(sets.parameters().ok()?, settings)).ok()
}

/// Warns if a message that is `sent` takes another time in the simulation than the RTT/2 that was
/// measured for its size: the simulation has the other parameters, and one slope (copies at both
/// ends, one after the other, are slower). Between the ends of what is sent of a range, the ratio is
/// between those at the ends.
pub(super) fn unlike_half_rtt(
    path: &Path,
    document: &ProfileDocument,
    sets: &ParameterSets,
    settings: Settings,
    sent: &[Sent],
    console: &mut Console,
) {
    let sets = sets.without_levels();
    let ends = sent.iter().flat_map(|sent| [sent.least, sent.most].map(|size| (sent, size)));
    let differences = ends.filter_map(|(sent, size)| {
        let mut ranges = document.ranges.iter().map(|record| &record.range);
        let half_rtt = ranges.find(|range| range.contains(size))?.half_rtt;
        let measured = half_rtt.filter(SizeLine::has_slope)?.at(size).picos()?;
        let simulated = one_way(&sets, settings, size)?;
        let [measured, simulated] = [measured, simulated].map(Picos::seconds);
        let (least, most) = (measured.min(simulated), measured.max(simulated));
        (least > 0.0).then_some((most / least, sent, size, [measured, simulated]))
    });
    let farthest = differences.max_by(|(one, ..), (other, ..)| one.total_cmp(other));
    if let Some((ratio, Sent { messages, .. }, size, times)) = farthest
        && ratio > UNLIKE
    {
        let [measured, simulated] = times.map(|time| number::in_units(time, number::TIME));
        let all: u64 = sent.iter().map(|sent| sent.messages).sum();
        console.warn(format_args!(
            "{}: RTT/2 of {} is {measured} as measured and {simulated} by the other parameters, which \
             the simulation uses; of this range are {} of {} messages",
            path.display(),
            number::size(size.0),
            number::count(*messages),
            number::count(all),
        ));
    }
}
