//! Trace event format of Chrome's `about:tracing`, which Perfetto reads too. A rank is a process,
//! its processors and each direction of its interfaces are threads, and messages are arrows.
//!
//! Times are in microseconds with six decimals, so they are exact to the picosecond.

use std::io::{self, Write};

use loggap_core::goal::ANY_TAG;
use loggap_core::units::Picos;

use super::{Activity, Lane, Message, Span, Timeline};

/// Writes `timeline` to `out` as one JSON document.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut events = Events { out, first: true };
    for (rank, lanes) in timeline.lanes() {
        events.next()?;
        write!(
            events.out,
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{rank},\"args\":{{\"name\":\"rank {rank}\"}}}}"
        )?;
        for lane in lanes {
            events.next()?;
            let thread = thread(lane);
            write!(
                events.out,
                "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{rank},\"tid\":{thread},\
                 \"args\":{{\"name\":\"{}\"}}}}",
                lane_name(lane)
            )?;
        }
    }
    for calc in &timeline.calcs {
        for span in calc.spans() {
            events.span(&span, None, calc.op)?;
        }
    }
    for message in &timeline.messages {
        for span in message.spans() {
            events.span(&span, Some(message), message.op)?;
        }
    }
    for (index, message) in timeline.messages.iter().enumerate() {
        events.flow(index, message)?;
    }
    writeln!(out, "\n]}}")
}

/// Name of the lane in the viewer.
fn lane_name(lane: Lane) -> String {
    match lane {
        Lane::Cpu(index) => format!("CPU {index}"),
        Lane::NicOut(index) => format!("NIC {index} out"),
        Lane::NicIn(index) => format!("NIC {index} in"),
    }
}

/// First thread number of interfaces, beyond those of all processors.
const INTERFACES: u32 = 1 << 16;

/// Thread number of a lane; viewers sort by it.
fn thread(lane: Lane) -> u32 {
    match lane {
        Lane::Cpu(index) => u32::from(index),
        Lane::NicOut(index) => INTERFACES + 2 * u32::from(index),
        Lane::NicIn(index) => INTERFACES + 1 + 2 * u32::from(index),
    }
}

/// A time, displayed exactly in microseconds.
struct Micros(Picos);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0.0 / 1_000_000, self.0.0 % 1_000_000)
    }
}

/// A tag, displayed as a number or `any`.
pub(super) struct Tag(pub(super) u64);

impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == ANY_TAG { f.write_str("any") } else { write!(f, "{}", self.0) }
    }
}

struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Events<'_> {
    /// Writes the separator before an event.
    fn next(&mut self) -> io::Result<()> {
        if self.first {
            self.first = false;
            return Ok(());
        }
        self.out.write_all(b",\n")
    }

    fn span(&mut self, span: &Span, message: Option<&Message>, op: u32) -> io::Result<()> {
        self.next()?;
        write!(
            self.out,
            "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"cat\":\"{}\",\"name\":\"",
            span.rank,
            thread(span.lane),
            Micros(span.start),
            Micros(span.end.since(span.start)),
            span.activity.name(),
        )?;
        match (message, span.activity) {
            (Some(message), Activity::Send) => {
                write!(self.out, "send {} B to {}", message.size, message.to.rank)?;
            }
            (Some(message), Activity::Receive) => {
                write!(self.out, "receive {} B from {}", message.size, message.from.rank)?;
            }
            _ => self.out.write_all(span.activity.name().as_bytes())?,
        }
        write!(self.out, "\",\"args\":{{\"op\":{op}")?;
        if let Some(message) = message {
            write!(self.out, ",\"tag\":\"{}\"", Tag(message.tag))?;
        }
        write!(self.out, "}}}}")
    }

    /// Writes both ends of a message's arrow; each binds to the slice that encloses it.
    fn flow(&mut self, index: usize, message: &Message) -> io::Result<()> {
        let ends = [
            ("s", message.from, message.sent, ""),
            ("f", message.to, message.handled, ",\"bp\":\"e\""),
        ];
        for (phase, end, time, binding) in ends {
            self.next()?;
            write!(
                self.out,
                "{{\"ph\":\"{phase}\",\"id\":{index},\"cat\":\"message\",\"name\":\"message\",\
                 \"pid\":{},\"tid\":{},\"ts\":{}{binding}}}",
                end.rank,
                thread(Lane::Cpu(end.cpu)),
                Micros(time),
            )?;
        }
        Ok(())
    }
}
