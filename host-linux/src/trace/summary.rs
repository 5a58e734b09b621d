//! Totals of a trace: calls, bytes, and time in MPI.

use std::collections::BTreeMap;

use loggap_core::trace::{Direction, Message, NO_PEER};
use serde::Serialize;

use super::matching::{Tally, ends};
use super::used::{AlgorithmUse, Calls};
use super::{RankTrace, Trace, TraceError, Unfinished, Unmatched, What};

/// Calls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallSummary {
    /// Number of calls.
    pub calls: u64,
    /// Time inside, in seconds, all ranks together.
    pub mpi_s: f64,
    /// Bytes of the messages that these calls sent, and of the send counts of collectives as the
    /// calls have them.
    pub bytes_sent: u64,
}

/// A rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankSummary {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Host.
    pub host: String,
    /// Number of threads that called MPI.
    pub threads: u32,
    /// Number of calls.
    pub calls: u64,
    /// From the return of `MPI_Init` to the entry into `MPI_Finalize`, or to the last record, in seconds.
    pub span_s: f64,
    /// Time inside MPI, all threads together, in seconds, besides `MPI_Init` and `MPI_Finalize`.
    pub mpi_s: f64,
    /// Time outside of MPI of the thread that called first, in seconds.
    pub compute_s: f64,
    /// Time that the tracer wrote, in seconds: part of neither.
    pub flush_s: f64,
    /// Bytes that it sent in messages.
    pub bytes_sent: u64,
    /// Messages that it sent.
    pub messages: u64,
    /// True if the trace ends with `MPI_Finalize`.
    pub is_finished: bool,
    /// True if its file could not be opened.
    pub is_lost: bool,
    /// Bytes at the end of the file that are no whole block.
    pub cut_bytes: usize,
}

/// A whole trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of calls.
    pub calls: u64,
    /// Time inside MPI, all ranks together, in seconds.
    pub mpi_s: f64,
    /// Time outside, all ranks together, in seconds.
    pub compute_s: f64,
    /// Mean over the largest time outside MPI of a rank; 1 is balanced.
    pub load_balance: Option<f64>,
    /// Bytes sent in messages.
    pub bytes_sent: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages of which only one end was found.
    pub unmatched: u64,
    /// Operations that were not completed.
    pub unfinished: usize,
    /// By name.
    pub calls_by_name: BTreeMap<String, CallSummary>,
    /// Algorithms that the library used for collective operations.
    pub algorithms: Vec<AlgorithmUse>,
    /// By rank.
    pub by_rank: Vec<RankSummary>,
    /// Messages of which only one end was found, by sender, receiver, tag and communicator.
    #[serde(skip)]
    pub unmatched_list: Vec<Unmatched>,
    /// Operations that were not completed.
    #[serde(skip)]
    pub unfinished_list: Vec<Unfinished>,
}

impl Summary {
    /// Reads a whole trace twice.
    ///
    /// # Errors
    ///
    /// [`TraceError`].
    pub fn of(trace: &Trace) -> Result<Self, TraceError> {
        let mut all = Self { ranks: trace.description().ranks, ..Self::default() };
        let (mut tally, mut calls) = (Tally::default(), Calls::default());
        for (rank, host) in trace.ranks().iter().zip(&trace.description().hosts) {
            let mut one = all.rank(rank, host, &mut calls)?;
            let unfinished = ends(rank, |end| {
                if end.direction == Direction::Send {
                    one.messages += 1;
                    one.bytes_sent = one.bytes_sent.saturating_add(end.bytes);
                }
                tally.add(&end);
            })?;
            all.unfinished_list.extend(unfinished);
            all.by_rank.push(one);
        }
        all.algorithms = calls.used(trace);
        all.unmatched_list = tally.unmatched();
        let differ = all.unmatched_list.iter().map(|one| one.sends.abs_diff(one.receives));
        all.unmatched = differ.sum();
        all.unfinished = all.unfinished_list.len();
        let ranks = &all.by_rank;
        let sum = |of: fn(&RankSummary) -> u64| ranks.iter().map(of).fold(0, u64::saturating_add);
        all.calls = sum(|rank| rank.calls);
        all.messages = sum(|rank| rank.messages);
        all.bytes_sent = sum(|rank| rank.bytes_sent);
        all.mpi_s = ranks.iter().map(|rank| rank.mpi_s).sum();
        all.compute_s = ranks.iter().map(|rank| rank.compute_s).sum();
        let longest = ranks.iter().map(|rank| rank.compute_s).fold(0.0, f64::max);
        let mean = all.compute_s / f64::from(all.ranks.max(1));
        all.load_balance = (longest > 0.0).then(|| mean / longest);
        Ok(all)
    }

    fn rank<'t>(
        &mut self,
        rank: &'t RankTrace,
        host: &str,
        calls: &mut Calls<'t>,
    ) -> Result<RankSummary, TraceError> {
        let mut one = RankSummary {
            rank: rank.header().rank,
            host: host.to_owned(),
            is_lost: rank.is_lost(),
            cut_bytes: rank.cut(),
            ..RankSummary::default()
        };
        let (mut first_thread, mut inside, mut flushed) = (None, 0_u64, 0_u64);
        let (mut begin, mut end) = (None, 0);
        for record in rank.records() {
            let record = record?;
            let thread = *first_thread.get_or_insert(record.thread);
            one.threads = one.threads.max(record.thread + 1);
            let is_init = matches!(record.call, "Init" | "Init_thread");
            let is_finalize = record.call == "Finalize";
            begin = begin.or(is_init.then_some(record.leave));
            end = end.max(if is_finalize { record.enter } else { record.leave });
            one.is_finished |= is_finalize;
            let time = if is_init || is_finalize { 0 } else { record.time() };
            inside = inside.saturating_add(if record.thread == thread { time } else { 0 });
            if record.is_own() {
                flushed = flushed.saturating_add(time);
                continue;
            }
            one.calls = one.calls.saturating_add(record.calls());
            one.mpi_s += seconds(time);
            self.add(&record);
            calls.add(rank, &record);
        }
        one.span_s = seconds(end.saturating_sub(begin.unwrap_or(0)));
        one.flush_s = seconds(flushed);
        one.compute_s = (one.span_s - seconds(inside)).max(0.0);
        Ok(one)
    }

    fn add(&mut self, record: &super::Record<'_>) {
        let sent = match &record.what {
            What::Messages(messages) => {
                let is_sent = |one: &&Message| {
                    one.direction == Direction::Send && one.envelope.peer != NO_PEER
                };
                let sends = messages.iter().filter(is_sent);
                sends.map(|one| one.envelope.bytes).fold(0, u64::saturating_add)
            }
            What::Collective { operation, sent, .. } => operation.sent.saturating_add(sent.total()),
            _ => 0,
        };
        let mut name = |name: &str, calls, time| {
            if !self.calls_by_name.contains_key(name) {
                self.calls_by_name.insert(name.to_owned(), CallSummary::default());
            }
            if let Some(call) = self.calls_by_name.get_mut(name) {
                call.calls = call.calls.saturating_add(calls);
                call.mpi_s += time;
                call.bytes_sent = call.bytes_sent.saturating_add(sent);
            }
        };
        if let What::Tests(tests) = &record.what {
            let all = record.calls().max(1);
            for (kind, count) in &tests.counts {
                #[allow(clippy::cast_precision_loss, reason = "a share")]
                let share = *count as f64 / all as f64;
                name(kind, *count, seconds(record.time()) * share);
            }
        } else {
            name(record.call, 1, seconds(record.time()));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "below 104 days the nanosecond is kept")]
pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 * 1e-9
}
