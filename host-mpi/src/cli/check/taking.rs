//! Measurements for a comparison: the link, the operations, and the parts that
//! operations consist of.

use std::time::Duration;

use loggap::drive::{Options, SizePlan};
use loggap::machine::buffer::Alignment;
use loggap::machine::noise::THRESHOLD;
use loggap::profile::ProfileDocument;
use loggap::terminal::{CliError, Console};
use loggap_core::model::Estimate;
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;
use nix::sys::resource::{UsageWho, getrusage};

use super::super::Session;
use super::super::measure::{DONE, MpiEnds, respond};
use crate::collective::interval::median;
use crate::collective::operation::Cell;
use crate::collective::piece::Piece;
use crate::collective::run::{Bench, CollectiveError};
use crate::collective::series::{Measured, Sample};
use crate::job::CONTROLLER;
use crate::link::Calls;

/// Distance between two ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// On the same machine.
    Machine,
    /// On two machines.
    Network,
}

/// A pair of ranks that represents a level: rank 0 and `peer`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Pair {
    pub(super) level: Level,
    pub(super) peer: i32,
}

/// Pairs of rank 0 with the first rank on its machine and with the first one
/// elsewhere, as far as they exist; the farthest last.
pub(super) fn pairs(session: &Session<'_>) -> Vec<Pair> {
    let job = session.job;
    let near = job.others().find(|rank| job.share_a_host(CONTROLLER, *rank));
    let far = job.others().find(|rank| !job.share_a_host(CONTROLLER, *rank));
    let near = near.map(|peer| Pair { level: Level::Machine, peer });
    let far = far.map(|peer| Pair { level: Level::Network, peer });
    near.into_iter().chain(far).collect()
}

/// Subject of the measured profiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profiled<'a> {
    pub(super) pairs: &'a [Pair],
    /// Message sizes in bytes.
    pub(super) sizes: &'a [u32],
    /// Time limit of each profile.
    pub(super) time: Duration,
    pub(super) alignment: Alignment,
}

/// Measures the profiles of all pairs; returns them at rank 0. All ranks call
/// this together.
pub(super) fn profiles(
    profiled: &Profiled<'_>,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Vec<ProfileDocument>, CliError> {
    let Profiled { pairs, sizes, time, alignment } = *profiled;
    let calls = Calls { alignment, ..Calls::default() };
    if !session.job.leads() {
        let longest = sizes.iter().max().copied().unwrap_or(0);
        respond(calls, longest, session, CONTROLLER)?;
        return Ok(Vec::new());
    }
    let options = Options {
        sizes: SizePlan::Listed(sizes.to_vec()),
        max_time: Some(Picos::from_duration(time)),
        launches: Some(3),
        ..Options::default()
    };
    let profile = |&Pair { peer, .. }: &Pair| {
        options.clone().profile(MpiEnds { session, calls, peer }, session.interrupt, console)
    };
    let found = pairs.iter().map(profile).collect();
    session.job.others().for_each(|rank| session.job.tell(rank, DONE));
    found
}

/// Measurements of one operation and size, from the common start and without
/// the duration of the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// Duration of the start and of reading the clock, which all other values exclude.
    pub(super) start: Picos,
    /// The operation.
    pub(super) operation: Estimate<Picos>,
    /// Message of this size from rank 0.
    pub(super) message: Estimate<Picos>,
    /// Message of this size to rank 0.
    pub(super) back: Estimate<Picos>,
    /// Time until the sender of `message` continues.
    pub(super) sender: Picos,
    /// An exchange of messages of this size.
    pub(super) exchange: Estimate<Picos>,
    /// Posting of a receive.
    pub(super) post: Estimate<Picos>,
    /// The operation on one rank alone.
    pub(super) local: Estimate<Picos>,
    /// Combination of two vectors, if the operation does that.
    pub(super) combine: Estimate<Picos>,
    /// Median skew of the starts.
    pub(super) skew: Picos,
    /// Number of repetitions that counted.
    pub(super) valid: u64,
    /// Number of repetitions that did not.
    pub(super) discarded: u64,
    /// Ratio of the operation's 90th percentile to its median.
    pub(super) spread: f64,
    /// Share of the repetitions that exceeded the median by more than the
    /// shortest detour or did not fit into their window.
    pub(super) slow: Share,
    /// Page faults of rank 0 per repetition of the operation, its start included.
    pub(super) page_faults: f64,
}

/// Number of rounds in which all parts are measured, so that a machine that
/// changes meanwhile changes them alike.
pub(super) const ROUNDS: u32 = 3;

impl Taken {
    /// Merges rounds: medians, in intervals that cover those of all rounds.
    /// `None` without rounds.
    pub(super) fn merged(rounds: &[Self]) -> Option<Self> {
        rounds.first()?;
        let sum = |part: fn(&Self) -> u64| rounds.iter().map(part).sum();
        let least = |part: fn(&Self) -> f64| rounds.iter().map(part).fold(f64::INFINITY, f64::min);
        let times = |part: fn(&Self) -> Picos| median(rounds.iter().map(part)).unwrap_or_default();
        let estimates = |part: fn(&Self) -> Estimate<Picos>| {
            let all = || rounds.iter().map(part);
            Estimate {
                value: median(all().map(|estimate| estimate.value)).unwrap_or_default(),
                low: all().map(|estimate| estimate.low).min().unwrap_or_default(),
                high: all().map(|estimate| estimate.high).max().unwrap_or_default(),
                ..Estimate::default()
            }
        };
        Some(Self {
            start: times(|taken| taken.start),
            operation: estimates(|taken| taken.operation),
            message: estimates(|taken| taken.message),
            back: estimates(|taken| taken.back),
            sender: times(|taken| taken.sender),
            exchange: estimates(|taken| taken.exchange),
            post: estimates(|taken| taken.post),
            local: estimates(|taken| taken.local),
            combine: estimates(|taken| taken.combine),
            skew: times(|taken| taken.skew),
            valid: sum(|taken| taken.valid),
            discarded: sum(|taken| taken.discarded),
            spread: least(|taken| taken.spread),
            page_faults: least(|taken| taken.page_faults),
            slow: Share { part: sum(|taken| taken.slow.part), all: sum(|taken| taken.slow.all) },
        })
    }
}

/// Part of a number of repetitions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    part: u64,
    all: u64,
}

impl Share {
    #[allow(clippy::cast_precision_loss, reason = "shown to three digits")]
    pub(super) fn value(self) -> f64 {
        if self.all > 0 { self.part as f64 / self.all as f64 } else { 0.0 }
    }
}

/// Result of a round, or the reason why a part has no repetition that counts.
pub(super) type Round = Result<Taken, String>;

/// Measures `cell` and its parts. `Some` at the leader.
pub(super) fn take(
    bench: &mut Bench<'_>,
    cell: Cell,
    peer: i32,
) -> Result<Option<Round>, CollectiveError> {
    let bytes = cell.bytes();
    let start = bench.piece(Piece::Nothing, bytes)?;
    let message = bench.piece(Piece::Message(peer), bytes)?;
    let back = bench.piece(Piece::Back(peer), bytes)?;
    let exchange = bench.piece(Piece::Exchange(peer), bytes)?;
    let post = bench.piece(Piece::Post(peer), bytes)?;
    let local = bench.local_part(cell)?;
    let reduces = cell.operation.reduces();
    let combine = if reduces { bench.piece(Piece::Combine, bytes)? } else { None };
    let faults_before = page_faults();
    let operation = bench.measure(cell)?;
    let faults = page_faults().saturating_sub(faults_before);
    let all = [&operation, &start, &message, &back, &exchange, &post, &local].map(Option::as_ref);
    let [
        Some(operation),
        Some(start),
        Some(message),
        Some(back),
        Some(exchange),
        Some(post),
        Some(local),
    ] = all
    else {
        return Ok(None);
    };
    let diagnosis = all.iter().flatten().find_map(|measured| measured.diagnosis.clone());
    let taken = start.median.and_then(|offset| {
        let without = |measured: &Measured| estimate(measured, offset);
        Some(Taken {
            start: offset,
            operation: without(operation)?,
            message: without(message)?,
            back: without(back)?,
            sender: root_exit(message)?.since(root_exit(start)?),
            exchange: without(exchange)?,
            post: without(post)?,
            local: without(local)?,
            combine: combine.as_ref().and_then(without).unwrap_or_default(),
            skew: operation.skew.map_or(Picos::ZERO, |(median, _)| median),
            valid: operation.valid,
            discarded: operation.counts.late + operation.counts.too_long,
            spread: spread(operation),
            slow: slow(operation),
            page_faults: faults as f64 / (operation.valid + operation.counts.late).max(1) as f64,
        })
    });
    Ok(Some(taken.ok_or_else(|| diagnosis.unwrap_or_else(|| "no repetition counted".to_owned()))))
}

/// Minor page faults of this process so far.
fn page_faults() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    usage.ok().and_then(|usage| u64::try_from(usage.minor_page_faults()).ok()).unwrap_or(0)
}

/// Median and interval, less `offset`; the range if there are too few
/// repetitions for an interval.
pub(super) fn estimate(measured: &Measured, offset: Picos) -> Option<Estimate<Picos>> {
    let value = measured.median?;
    let exits = last_exits(measured);
    let all = exits.iter().min().copied().zip(exits.iter().max().copied());
    let (low, high) = measured.interval.or(all).unwrap_or((value, value));
    Some(Estimate {
        value: value.since(offset),
        low: low.since(offset),
        high: high.since(offset),
        ..Estimate::default()
    })
}

/// Repetitions that count.
fn counted(measured: &Measured) -> impl Iterator<Item = &Sample> {
    measured.samples.iter().filter(|sample| sample.valid)
}

/// Median exit of rank 0 after the common start.
pub(super) fn root_exit(measured: &Measured) -> Option<Picos> {
    median(counted(measured).filter_map(|sample| sample.exits.first().copied()))
}

/// Exit times of the last rank.
fn last_exits(measured: &Measured) -> Vec<Picos> {
    counted(measured).filter_map(|sample| sample.exits.iter().max().copied()).collect()
}

/// Numbers of slow and of all repetitions. Late ones are left out, as late is not slow.
fn slow(measured: &Measured) -> Share {
    let Some(median) = measured.median else { return Share::default() };
    let (limit, too_long) = (Picos(median.0.saturating_add(THRESHOLD.0)), measured.counts.too_long);
    let above = last_exits(measured).iter().filter(|time| **time > limit).count() as u64;
    Share { part: above + too_long, all: measured.valid + too_long }
}

fn spread(measured: &Measured) -> f64 {
    let mut exits = last_exits(measured);
    let exits = Sorted::new(&mut exits);
    match (exits.median(), exits.quantile(90, 100)) {
        (Some(median), Some(high)) if median > Picos::ZERO => high.seconds() / median.seconds(),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_give_their_medians_and_intervals_that_hold_all() {
        let round = |value: u64| {
            let picos = Picos(value);
            let (low, high) = (Picos(value - 1), Picos(value + 1));
            let estimate = Estimate { value: picos, low, high, ..Estimate::default() };
            Taken {
                start: picos,
                operation: estimate,
                message: estimate,
                back: estimate,
                sender: picos,
                exchange: estimate,
                post: estimate,
                local: estimate,
                combine: estimate,
                skew: picos,
                valid: value,
                discarded: 1,
                spread: 1.0,
                slow: Share { part: 1, all: value },
                page_faults: value as f64,
            }
        };
        let merged = Taken::merged(&[round(30), round(10), round(20)]).unwrap();
        let operation = merged.operation;
        let ends = (operation.low, operation.value, operation.high);
        assert_eq!(ends, (Picos(9), Picos(20), Picos(31)));
        assert_eq!((merged.start, merged.valid, merged.discarded), (Picos(20), 60, 3));
        assert!((merged.slow.value() - 0.05).abs() < 1e-12);
        assert!(Taken::merged(&[]).is_none());
    }
}
