//! Published schemes, for comparison: offsets only, without a bound of their error.

use loggap_core::sync::{ClockModel, MergeStep, Offset, Scheme, stop_after};
use loggap_core::units::SignedPicos;
use mpi::topology::Communicator as _;

use super::pass::Ends;
use super::{GlobalClock, unknown};
use crate::job::{CONTROLLER, Job};
use crate::waiting::Waiting;

/// Maximum number of pings in a series.
const MOST: u32 = 100_000;

/// Model of this rank's clock by `scheme`. Each series ends after `patience`
/// pings without a smaller round trip. All ranks call this together.
#[must_use]
pub fn synchronise(
    clock: &GlobalClock,
    job: &Job,
    scheme: Scheme,
    patience: u32,
    waiting: Waiting<'_>,
) -> ClockModel {
    let ranks = clock.domains().len();
    let count = u32::try_from(ranks).unwrap_or(u32::MAX);
    let power = count.checked_ilog2().map_or(1, |log| 1_u32 << log);
    let is_last = |step: &MergeStep| scheme == Scheme::Binomial && step.server >= power;
    let mut side = Side { clock, job, waiting, patience, offsets: vec![SignedPicos(0); ranks] };
    let (last, first): (Vec<MergeStep>, Vec<MergeStep>) =
        scheme.steps(count).partition(|step| is_last(step));
    first.iter().for_each(|step| side.take_part(step));
    side.spread();
    // Ranks beyond the largest power of two follow a rank that knows its offset by now.
    for step in &last {
        side.take_part(step);
        side.hand_on(step);
    }
    let own = usize::try_from(job.rank()).unwrap_or(0);
    // Value to add to the own clock; its error is unknown.
    let value = side.offsets.get(own).map_or(0, |offset| offset.0.saturating_neg());
    let model = if job.rank() == CONTROLLER { ClockModel::reference() } else { unknown() };
    ClockModel { offset: SignedPicos(value), ..model }
}

/// State of one rank in a published scheme.
struct Side<'a> {
    clock: &'a GlobalClock,
    job: &'a Job,
    waiting: Waiting<'a>,
    patience: u32,
    /// Value to add to the clock of each rank; 0 until this rank knows it.
    offsets: Vec<SignedPicos>,
}

impl Side<'_> {
    /// Pings or answers if this rank is part of `step`.
    fn take_part(&mut self, step: &MergeStep) {
        let own = self.job.rank().unsigned_abs();
        let [client, server] =
            [step.client, step.server].map(|rank| i32::try_from(rank).unwrap_or(0));
        let merged = usize::try_from(step.merged).unwrap_or(0);
        let begin = usize::try_from(step.server).unwrap_or(0);
        if own == step.server {
            let peer = self.job.control().process_at_rank(client);
            Ends { clock: self.clock, peer, waiting: self.waiting }.answer();
            let known = self.offsets.iter().skip(begin).take(merged);
            let known: Vec<u64> = known.map(|offset| offset.0.cast_unsigned()).collect();
            self.waiting.send(&peer, &known);
        }
        if own == step.client {
            let peer = self.job.control().process_at_rank(server);
            let mut ends = Ends { clock: self.clock, peer, waiting: self.waiting };
            let offset: Option<Offset> = stop_after(&mut ends, self.patience, MOST).ok();
            ends.end();
            let mut known = vec![0_u64; merged.min(self.offsets.len().saturating_sub(begin))];
            self.waiting.numbers_from(&peer, &mut known);
            for (offset, known) in self.offsets.iter_mut().skip(begin).zip(known) {
                offset.0 = known.cast_signed();
            }
            // A series that failed, because a ping went back in time, counts as offset 0.
            Scheme::merge(
                step,
                offset.map_or(SignedPicos(0), |offset| offset.value),
                &mut self.offsets,
            );
        }
    }

    /// Broadcasts the offsets that the root knows.
    fn spread(&mut self) {
        let mut all: Vec<u64> =
            self.offsets.iter().map(|offset| offset.0.cast_unsigned()).collect();
        self.waiting.share(self.job.control(), CONTROLLER, &mut all);
        for (offset, known) in self.offsets.iter_mut().zip(all) {
            offset.0 = known.cast_signed();
        }
    }

    /// Sends the offset that the client of `step` has found to its server.
    fn hand_on(&mut self, step: &MergeStep) {
        let own = self.job.rank().unsigned_abs();
        let server = usize::try_from(step.server).unwrap_or(0);
        let Some(offset) = self.offsets.get_mut(server) else { return };
        let peer = |rank| self.job.control().process_at_rank(i32::try_from(rank).unwrap_or(0));
        if own == step.client {
            self.waiting.send(&peer(step.server), &[offset.0.cast_unsigned()]);
        }
        if own == step.server {
            offset.0 = self.waiting.number_from(&peer(step.client)).cast_signed();
        }
    }
}
