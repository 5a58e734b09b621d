//! What became of the calls of a trace.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::trace::summary::seconds;

/// What became of a call.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// The schedule has what it did.
    #[default]
    Converted,
    /// The schedule has something like it, for this reason.
    Approximated(&'static str),
    /// The schedule lacks it, for this reason.
    Refused(&'static str),
}

/// Calls and their time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Total {
    calls: u64,
    nanos: u64,
}

/// What became of the calls of a trace.
#[derive(Clone, Debug, Default)]
pub struct Report {
    by_class: BTreeMap<Class, BTreeMap<String, Total>>,
    /// Nanoseconds of [`Report::time`].
    span: u64,
    /// Nanoseconds of [`Report::longest`].
    longest: u64,
    /// See [`Report::computed_by_rank`].
    by_rank: Vec<u64>,
    /// Nanoseconds of [`Report::compute`].
    pub(super) computed: u64,
    /// Sends and receives that were kept and left out, of a lenient conversion.
    ends: [u64; 2],
}

/// Calls of one name that became the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Name without `MPI_`.
    pub call: String,
    /// Reason for the approximation or the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Number of calls.
    pub calls: u64,
    /// Time inside, all ranks together, in seconds.
    pub time_s: f64,
    /// Share of the time of all ranks.
    pub share: f64,
}

impl Report {
    /// Time from the return of `MPI_Init` to the last call, all ranks together, in seconds.
    #[must_use]
    pub fn time(&self) -> f64 {
        seconds(self.span)
    }

    /// Time from the return of `MPI_Init` to the last call of the rank that took longest, in seconds.
    #[must_use]
    pub fn longest(&self) -> f64 {
        seconds(self.longest)
    }

    /// Nanoseconds that the first thread of each rank computes in the schedule, without what
    /// reductions do.
    #[must_use]
    pub fn computed_by_rank(&self) -> &[u64] {
        &self.by_rank
    }

    /// Adds a rank: begin and end of its calls, and computing time of its first thread, in
    /// nanoseconds.
    pub(super) fn add_rank(&mut self, begin: u64, end: u64, computed: u64) {
        self.by_rank.push(computed);
        let span = end.saturating_sub(begin);
        self.span = self.span.saturating_add(span);
        self.longest = self.longest.max(span);
    }

    /// Time of the calculations in the schedule, all ranks together, in seconds.
    #[must_use]
    pub fn compute(&self) -> f64 {
        seconds(self.computed)
    }

    /// Adds sends and receives that were kept, and those that were left out.
    pub(super) fn add_ends(&mut self, ends: [u64; 2]) {
        self.ends.iter_mut().zip(ends).for_each(|(sum, more)| *sum += more);
        let [_, left_out] = ends;
        if left_out > 0 {
            let reason = Class::Refused("only one end of the message is in the trace");
            self.add(reason, "(message)", left_out, 0);
        }
    }

    /// Messages that were left out for want of the other end.
    #[must_use]
    pub const fn messages_left_out(&self) -> u64 {
        let [_, left_out] = self.ends;
        left_out
    }

    /// Share of the messages that were left out for want of the other end.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share of few digits")]
    pub fn share_left_out(&self) -> f64 {
        let [kept, left_out] = self.ends.map(|ends| ends as f64);
        // A message that was kept has two ends, one that was left out has one.
        if left_out > 0.0 { left_out / (left_out + kept / 2.0) } else { 0.0 }
    }

    pub(super) fn add(&mut self, class: Class, call: &str, calls: u64, nanos: u64) {
        let names = self.by_class.entry(class).or_default();
        if !names.contains_key(call) {
            names.insert(call.to_owned(), Total::default());
        }
        if let Some(total) = names.get_mut(call) {
            total.calls = total.calls.saturating_add(calls);
            total.nanos = total.nanos.saturating_add(nanos);
        }
    }

    /// Moves a call from those that were converted to those that were refused, for `reason`.
    pub(in crate::trace) fn refuse(&mut self, call: &str, reason: &'static str, nanos: u64) {
        for (class, names) in &mut self.by_class {
            let Some(total) = names.get_mut(call) else { continue };
            if !matches!(class, Class::Refused(_)) && total.calls > 0 {
                total.calls -= 1;
                total.nanos = total.nanos.saturating_sub(nanos);
                break;
            }
        }
        self.by_class.values_mut().for_each(|names| names.retain(|_, total| total.calls > 0));
        self.add(Class::Refused(reason), call, 1, nanos);
    }

    /// Calls that the schedule has, those with the most time first.
    #[must_use]
    pub fn converted(&self) -> Vec<Line> {
        self.lines(|class| matches!(class, Class::Converted))
    }

    /// Calls that the schedule has something like.
    #[must_use]
    pub fn approximated(&self) -> Vec<Line> {
        self.lines(|class| matches!(class, Class::Approximated(_)))
    }

    /// Calls that the schedule lacks.
    #[must_use]
    pub fn refused(&self) -> Vec<Line> {
        self.lines(|class| matches!(class, Class::Refused(_)))
    }

    fn lines(&self, is_wanted: fn(&Class) -> bool) -> Vec<Line> {
        let mut lines = Vec::new();
        for (class, names) in self.by_class.iter().filter(|(class, _)| is_wanted(class)) {
            let reason = match *class {
                Class::Converted => None,
                Class::Approximated(reason) | Class::Refused(reason) => Some(reason),
            };
            lines.extend(names.iter().map(|(call, &Total { calls, nanos })| {
                let time_s = seconds(nanos);
                let share = time_s / seconds(self.span.max(1));
                Line { call: call.clone(), reason, calls, time_s, share }
            }));
        }
        lines.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
        lines
    }
}
