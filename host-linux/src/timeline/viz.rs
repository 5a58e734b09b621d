//! Text format of LogGOPSim's `-V`, which its `drawviz` reads: times in whole nanoseconds, one
//! record a line, colours as red, green, blue.
//!
//! Differences from LogGOPSim's own files: noise records are written only where there was noise;
//! there is no record for receiving a message that had arrived before its receive was posted, which
//! takes no time then. Fractions of a nanosecond are cut off.

use std::io::{self, Write};

use loggap_core::units::Picos;

use super::{Activity, Lane, Timeline};

/// Writes `timeline` to `out`.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let nanos = |time: Picos| time.0 / 1_000;
    writeln!(out, "numranks {};", timeline.ranks)?;
    for (span, _) in timeline.spans() {
        let Lane::Cpu(cpu) = span.lane else { continue };
        let (record, colour) = match span.activity {
            Activity::Send => ("osend", "0 0 1"),
            Activity::Receive => ("orecv", "0 0 1"),
            Activity::Calc => ("loclop", "1 0 0"),
            Activity::Noise => ("noise", "0 1 0"),
        };
        let (rank, start, end) = (span.rank, nanos(span.start), nanos(span.end));
        writeln!(out, "{record} {rank} {cpu} {start} {end} {colour};")?;
    }
    for message in &timeline.messages {
        let rest = message.size.saturating_sub(1).max(1);
        writeln!(
            out,
            "transmission {} {} {} {} {} {} 0 0 1;",
            message.from.rank,
            message.to.rank,
            nanos(message.left()),
            nanos(message.handled),
            message.size,
            nanos(message.costs.gap_bytes) / rest,
        )?;
    }
    Ok(())
}
