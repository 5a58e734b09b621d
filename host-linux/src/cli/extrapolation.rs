//! Report of an extrapolated trace.

use std::io::{self, Write};

use serde::Serialize;

use crate::output::{Fields, number};
use crate::terminal::Console;
use crate::trace::convert::{Line, Report};
use crate::trace::extrapolate::{Dimension, Extrapolation, Growth};

/// Messages of a trace that its schedule lacks.
#[derive(Serialize)]
pub(super) struct LeftOut {
    messages_left_out: u64,
    /// Share of all messages.
    messages_left_out_share: f64,
}

impl LeftOut {
    /// Share above which the rest of a program says little about the whole.
    const MUCH: f64 = 0.05;

    pub(super) fn new(report: &Report) -> Self {
        Self {
            messages_left_out: report.messages_left_out(),
            messages_left_out_share: report.share_left_out(),
        }
    }

    pub(super) fn warn(&self, console: &mut Console) {
        let Self { messages_left_out: messages, messages_left_out_share: share } = *self;
        if messages > 0 {
            let much =
                if share > Self::MUCH { ": a makespan without them means little" } else { "" };
            console.warn(format_args!(
                "{} ({}% of all) left out, as the trace has only one end{much}",
                number::counted(messages, "message"),
                number::significant(share * 100.0)
            ));
        }
    }
}

/// Extrapolation of a trace, as JSON and as text.
#[derive(Serialize)]
pub(super) struct ExtrapolationReport {
    /// Traced and larger program in words.
    summary: String,
    dimensions: Vec<Fields>,
    point_to_point_messages: u64,
    /// Growth of the computation, from several traces.
    computation: Vec<Fields>,
    #[serde(skip)]
    growths: Vec<(String, Growth)>,
    approximated: Vec<Line>,
    not_understood: Vec<Line>,
    #[serde(flatten)]
    pub(super) left_out: LeftOut,
    /// Time that the traced program took, from the return of `MPI_Init` to the last call.
    traced_s: f64,
}

/// Fields of the growth at a place in the grid.
fn fields((place, growth): &(String, Growth)) -> Fields {
    let [low, high] = growth.interval.map_or([None; 2], |ends| ends.map(Some));
    Fields(vec![
        ("place", place.clone().into()),
        ("form", growth.form.to_string().into()),
        ("factor", growth.factor.into()),
        ("factor_lo", low.into()),
        ("factor_hi", high.into()),
        ("left_out_error", growth.left_out.into()),
    ])
}

impl ExtrapolationReport {
    pub(super) fn new(program: &Extrapolation) -> Self {
        let dimension = |one: &Dimension| {
            Fields(vec![
                ("traced", one.traced.into()),
                ("ranks", one.target.into()),
                ("is_ring", one.is_ring.into()),
            ])
        };
        Self {
            summary: program.summary(),
            dimensions: program.dimensions().iter().map(dimension).collect(),
            point_to_point_messages: program.messages(),
            computation: program.growths().iter().map(fields).collect(),
            growths: program.growths().to_vec(),
            approximated: program.report().approximated(),
            not_understood: program.report().refused(),
            left_out: LeftOut::new(program.report()),
            traced_s: program.report().longest(),
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "extrapolated           {}", self.summary)?;
        write_traced(out, self.traced_s)?;
        let messages = self.point_to_point_messages;
        writeln!(out, "point-to-point         {messages} messages")?;
        for (place, Growth { form, factor, interval, left_out }) in &self.growths {
            let digits = number::significant;
            let interval =
                interval.map(|[low, high]| format!("{} to {}", digits(low), digits(high)));
            let error = left_out.map(|error| digits(error * 100.0) + "%");
            writeln!(
                out,
                "computation            {place}: x {} ({}) as {form}, error left out {}",
                digits(*factor),
                interval.unwrap_or_else(|| "-".to_owned()),
                error.unwrap_or_else(|| "-".to_owned())
            )?;
        }
        write_left_out(out, "approximated", &self.approximated)?;
        if self.not_understood.is_empty() {
            return writeln!(out, "not understood         nothing");
        }
        write_left_out(out, "not understood", &self.not_understood)
    }
}

/// Calls of a trace that its schedule lacks, or has only something like.
#[derive(Serialize)]
pub(super) struct ConversionReport {
    /// Time that the traced program took, from the return of `MPI_Init` to the last call.
    traced_s: f64,
    approximated: Vec<Line>,
    refused: Vec<Line>,
    #[serde(flatten)]
    pub(super) left_out: LeftOut,
}

impl ConversionReport {
    pub(super) fn new(report: &Report) -> Self {
        Self {
            traced_s: report.longest(),
            approximated: report.approximated(),
            refused: report.refused(),
            left_out: LeftOut::new(report),
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write_traced(out, self.traced_s)?;
        write_left_out(out, "approximated", &self.approximated)?;
        write_left_out(out, "not converted", &self.refused)
    }
}

fn write_traced(out: &mut dyn Write, seconds: f64) -> io::Result<()> {
    let time = number::in_units(seconds, number::TIME);
    writeln!(out, "traced                 {time}, from MPI_Init to the last call")
}

fn write_left_out(out: &mut dyn Write, name: &str, lines: &[Line]) -> io::Result<()> {
    for Line { call, reason, calls, share, .. } in lines {
        // A message that is left out takes no time; without it others may wait less or for ever.
        let share = match *share > 0.0 {
            true => format!(", {:.2}% of the time", share * 100.0),
            false => String::new(),
        };
        writeln!(out, "{name:<22} {calls} {call}{share}: {}", reason.unwrap_or_default())?;
    }
    Ok(())
}
