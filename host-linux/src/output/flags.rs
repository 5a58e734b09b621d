//! Parameters as options of LogGOPSim and similar simulators.

use loggap_core::model::{LogGops, UnusableParameter};
use loggap_core::units::{PerByte, Picos};

use crate::decimal;
use crate::profile::{ProfileDocument, RangeRecord, USUAL_EAGER_LIMIT};

/// Parameters of the first range as `-L -o -g -G -O -S`, times in nanoseconds; `S` as `simulate
/// --profile` chooses it. `None` without any range.
///
/// # Errors
///
/// [`UnusableParameter`] if the range lacks one of them.
pub fn line(document: &ProfileDocument) -> Option<Result<String, UnusableParameter>> {
    let first = &document.ranges.first()?.range;
    let eager_limit = document.eager_limit().unwrap_or(USUAL_EAGER_LIMIT);
    Some(first.loggops(eager_limit).map(|set| format(&set)))
}

/// True if all values of [`line()`] converged.
pub fn has_converged(document: &ProfileDocument) -> bool {
    let Some(RangeRecord { range, .. }) = document.ranges.first() else { return false };
    let lines = [Some(range.gap), range.send_overhead, range.recv_overhead];
    lines.iter().flatten().all(|line| line.mark().converged())
        && range.latency.is_none_or(|latency| latency.mark.converged())
}

fn format(set: &LogGops) -> String {
    format!(
        "-L {} -o {} -g {} -G {} -O {} -S {}",
        nanos(set.latency),
        nanos(set.overhead),
        nanos(set.gap),
        nanos_per_byte(set.gap_per_byte),
        nanos_per_byte(set.overhead_per_byte),
        set.eager_limit.0
    )
}

/// Formats as exact decimal nanoseconds.
fn nanos(time: Picos) -> String {
    decimal::fixed(u128::from(time.0), 3)
}

/// Formats as decimal nanoseconds per byte, to 10⁻⁹ ns.
fn nanos_per_byte(slope: PerByte) -> String {
    const MILLION: u128 = 1_000_000;
    const HALF: u128 = 1 << (PerByte::FRACTION_BITS - 1);
    let millionths = (u128::from(slope.0) * MILLION + HALF) >> PerByte::FRACTION_BITS;
    decimal::fixed(millionths, 9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::parse;
    use loggap_core::model::{Change, Estimate, Mark, Range, SizeLine};
    use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};

    fn profile() -> ProfileDocument {
        let line = |at_one, per_byte| SizeLine::exact(SignedPicos(at_one), SignedPerByte(per_byte));
        let range = Range {
            first: Bytes(1),
            last: Bytes(4_095),
            gap: line(1_234_567, 20 << 16),
            half_rtt: Some(line(5_000_000, 0)),
            send_overhead: Some(line(1_000_000, 1 << 15)),
            recv_overhead: Some(line(2_000_000, 0)),
            latency: Some(Estimate::exact(SignedPicos(2_000_500))),
        };
        ProfileDocument { ranges: vec![range.into()], ..ProfileDocument::default() }
    }

    #[test]
    fn the_line_is_what_the_simulators_take() {
        let mut profile = profile();
        let expected = "-L 2000.5 -o 1500 -g 1234.567 -G 0.02 -O 0.00025 -S 65535";
        assert_eq!(line(&profile), Some(Ok(expected.to_owned())));
        let change = Change {
            at: Bytes(512),
            low: Bytes(512),
            high: Bytes(512),
            splits: true,
            ..Change::default()
        };
        profile.changes.push(change.into());
        for (transport, limit) in [("verbs", "-S 65535"), ("mpi", "-S 511")] {
            profile.transport = transport.to_owned();
            let flags = line(&profile).unwrap().unwrap();
            assert!(flags.ends_with(limit), "{transport}: {flags}");
        }
    }

    #[test]
    fn one_value_that_did_not_converge_shows() {
        let mut profile = profile();
        assert!(has_converged(&profile));
        profile.ranges[0].range.gap.per_byte.mark = Mark::BudgetSpent;
        assert!(!has_converged(&profile));
        assert!(!has_converged(&ProfileDocument::default()));
    }

    #[test]
    fn the_line_is_read_back_by_simulate() {
        assert_eq!(parse::time("2000.5"), Ok(Picos(2_000_500)));
        assert_eq!(parse::time_per_byte(&nanos_per_byte(PerByte(12_345))), Ok(PerByte(12_345)));
    }

    #[test]
    fn without_a_parameter_there_is_no_line() {
        let mut profile = profile();
        profile.ranges[0].range.recv_overhead = None;
        assert!(line(&profile).unwrap().is_err());
        assert!(line(&ProfileDocument::default()).is_none());
    }
}
