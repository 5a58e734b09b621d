//! Rings and trees found in traced programs: the messages of all ranks as a sequence of patterns
//! and collective operations, the same in each trace.

use std::collections::HashMap;
use std::iter;

use loggap_core::goal::{ANY, Edge, Op, OpKind};
use loggap_core::trace::Direction;
use loggap_core::units::Picos;

use super::ExtrapolateError;
use super::build::Traced;
use super::pattern::Pattern;
use super::sequence::Captured;
use crate::collective::Round;

/// A part of the program of all ranks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// A collective operation, by its bytes sent and received in each trace.
    Call(Vec<[u64; 2]>),
    /// Messages of this tag, by their bytes in each trace.
    Pattern(Pattern, u64, Vec<u64>),
}

/// Step of a rank: a message, or a collective operation.
#[derive(Debug)]
struct Step<'t> {
    op: u32,
    what: What<'t>,
    /// Steps that it waits for, and whether only for their start; calculations are left out.
    waits: Vec<(u32, bool)>,
}

#[derive(Debug)]
enum What<'t> {
    Message { direction: Direction, peer: u32, size: u64, tag: u64 },
    Call { name: &'t str, tag: u64, sizes: [u64; 2] },
}

/// Steps of a rank, and how many of them are explained.
struct Flow<'t> {
    steps: Vec<Step<'t>>,
    done: usize,
    /// Steps inside a pattern, for which nothing outside may wait.
    inner: Vec<bool>,
}

impl<'t> Flow<'t> {
    fn new(traced: &'t Traced<'_>) -> Self {
        let Captured { ops, edges } = &traced.captured;
        let mut calls = traced.calls.iter().peekable();
        let mut edges = edges.iter().peekable();
        let (mut steps, mut number) = (Vec::new(), vec![None; ops.len()]);
        let mut through: Vec<Vec<(u32, bool)>> = vec![Vec::new(); ops.len()];
        for (at, op) in (0u32..).zip(ops) {
            let mut waits = Vec::new();
            while let Some(edge) = edges.next_if(|edge| edge.op == at) {
                let on = edge.on as usize;
                match number.get(on).copied().flatten() {
                    Some(step) => waits.push((step, edge.start)),
                    None => waits.extend(through.get(on).into_iter().flatten()),
                }
            }
            waits.sort_unstable();
            waits.dedup();
            let message = |direction, peer, size, tag| What::Message { direction, peer, size, tag };
            let what = match op.kind {
                OpKind::Send { peer, size, tag } => message(Direction::Send, peer, size, tag),
                OpKind::Receive { peer, size, tag } => message(Direction::Receive, peer, size, tag),
                OpKind::Calc { .. } => match calls.next_if(|call| call.op == at) {
                    Some(noted) => What::Call {
                        name: &noted.call.name,
                        tag: noted.tag,
                        sizes: [noted.call.sent, noted.call.received],
                    },
                    None => {
                        if let Some(place) = through.get_mut(at as usize) {
                            *place = waits;
                        }
                        continue;
                    }
                },
            };
            if let Some(place) = number.get_mut(at as usize) {
                *place = u32::try_from(steps.len()).ok();
            }
            steps.push(Step { op: at, what, waits });
        }
        let inner = vec![false; steps.len()];
        Self { steps, done: 0, inner }
    }

    fn next(&self) -> Option<&Step<'t>> {
        self.steps.get(self.done)
    }

    /// True if a step waits for no message inside a pattern.
    fn is_outside(&self, step: &Step<'_>) -> bool {
        let is_inner = |at: u32| self.inner.get(at as usize).copied().unwrap_or(false);
        !step.waits.iter().any(|&(at, _)| is_inner(at))
    }

    /// True if the next steps are these rounds, of messages of this size and tag.
    fn begins_with(&self, rounds: &[Round], tag: u64) -> bool {
        let mut at = self.done;
        let mut before: Option<Vec<(u32, bool)>> = None;
        for round in rounds {
            let first = at;
            let sends = round.sends.iter().map(|message| (Direction::Send, message));
            let receives = round.receives.iter().map(|message| (Direction::Receive, message));
            for (way, message) in sends.chain(receives) {
                let Some(step) = self.steps.get(at) else { return false };
                let What::Message { direction, peer, size, tag: own } = step.what else {
                    return false;
                };
                if (direction, peer, size, own) != (way, message.peer, message.size, tag) {
                    return false;
                }
                let waits = match &before {
                    Some(before) => step.waits == *before,
                    None => self.is_outside(step),
                };
                if !waits {
                    return false;
                }
                at += 1;
            }
            let all = first..at;
            before = Some(all.map(|at| (u32::try_from(at).unwrap_or(u32::MAX), false)).collect());
        }
        !rounds.is_empty()
    }

    /// Goes behind these rounds.
    fn skip(&mut self, rounds: &[Round]) {
        let count = |round: &Round| round.sends.len() + round.receives.len();
        let all: usize = rounds.iter().map(count).sum();
        let last = rounds.last().map_or(0, count);
        let inner = self.inner.get_mut(self.done..self.done + all - last);
        inner.unwrap_or_default().fill(true);
        self.done += all;
    }
}

/// A trace whose steps are explained one after the other.
struct Flows<'t> {
    ranks: u32,
    all: Vec<Flow<'t>>,
}

impl<'t> Flows<'t> {
    fn new(traced: &'t [Traced<'_>]) -> Self {
        let ranks = u32::try_from(traced.len()).unwrap_or(u32::MAX);
        Self { ranks, all: traced.iter().map(Flow::new).collect() }
    }

    /// Direction, peer, size and tag of the next message of rank 0.
    fn first(&self) -> Option<(Direction, u32, u64, u64)> {
        match self.all.first()?.next()?.what {
            What::Message { direction, peer, size, tag } if peer != ANY => {
                Some((direction, peer, size, tag))
            }
            _ => None,
        }
    }

    /// Number of messages, if the next steps of all ranks are a pattern.
    fn begin_with(&self, pattern: Pattern, tag: u64) -> Option<usize> {
        let (_, _, size, _) = self.first()?;
        let mut count = 0;
        for (rank, flow) in (0..).zip(&self.all) {
            let rounds = pattern.rounds(rank, self.ranks, size);
            if !flow.begins_with(&rounds, tag) {
                return None;
            }
            count += rounds.iter().map(|one| one.sends.len() + one.receives.len()).sum::<usize>();
        }
        Some(count)
    }

    /// Bytes of the collective operation that comes next on all ranks.
    fn call(&self, expected: &What<'_>) -> Option<[u64; 2]> {
        let mut found = [0u64; 2];
        for flow in &self.all {
            let step = flow.next().filter(|step| flow.is_outside(step))?;
            let What::Call { name, tag, sizes } = step.what else { return None };
            if !matches!(*expected, What::Call { name: known, tag: of, .. } if (known, of) == (name, tag))
            {
                return None;
            }
            found.iter_mut().zip(sizes).for_each(|(most, size)| *most = size.max(*most));
        }
        Some(found)
    }

    fn skip(&mut self, phase: &Phase, size: u64) {
        for (rank, flow) in (0..).zip(&mut self.all) {
            match phase {
                Phase::Call(_) => flow.done += 1,
                Phase::Pattern(pattern, ..) => flow.skip(&pattern.rounds(rank, self.ranks, size)),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.all.iter().all(|flow| flow.next().is_none())
    }

    /// The first rank with steps that are not explained, and the number of the next one, from 1.
    fn stuck(&self) -> (u32, usize) {
        let rank = self.all.iter().position(|flow| flow.next().is_some()).unwrap_or(0);
        let done = self.all.get(rank).map_or(0, |flow| flow.done);
        (u32::try_from(rank).unwrap_or(u32::MAX), done + 1)
    }
}

/// Most ranks of the larger program on which patterns are compared.
const COMPARED: u32 = 4_096;

/// The phases of all traces, to be used on `target` ranks.
pub(super) fn find(
    traces: &[Vec<Traced<'_>>],
    target: u32,
) -> Result<Vec<Phase>, ExtrapolateError> {
    let mut flows: Vec<Flows<'_>> = traces.iter().map(|traced| Flows::new(traced)).collect();
    let mut phases = Vec::new();
    while flows.iter().any(|flows| !flows.is_done()) {
        let phase = next(&flows, target)?;
        let sizes: Vec<u64> =
            flows.iter().map(|flows| flows.first().map_or(0, |(_, _, size, _)| size)).collect();
        flows.iter_mut().zip(&sizes).for_each(|(flows, size)| flows.skip(&phase, *size));
        phases.push(phase);
    }
    Ok(phases)
}

/// The phase that comes next in all traces.
fn next(flows: &[Flows<'_>], target: u32) -> Result<Phase, ExtrapolateError> {
    let unknown = || {
        let flows = flows.iter().find(|flows| !flows.is_done());
        let (rank, message) = flows.map_or((0, 0), Flows::stuck);
        ExtrapolateError::NoPattern { ranks: flows.map_or(0, |flows| flows.ranks), rank, message }
    };
    let first = flows.last().ok_or_else(unknown)?;
    let step = first.all.first().and_then(Flow::next).ok_or_else(unknown)?;
    if let What::Call { .. } = step.what {
        let sizes: Option<_> = flows.iter().map(|flows| flows.call(&step.what)).collect();
        return Ok(Phase::Call(sizes.ok_or_else(unknown)?));
    }
    let (direction, peer, _, tag) = first.first().ok_or_else(unknown)?;
    let mut best: Option<(usize, Pattern)> = None;
    let mut tied = None;
    for pattern in Pattern::of(direction, peer, first.ranks) {
        let counts: Option<Vec<usize>> =
            flows.iter().map(|flows| flows.begin_with(pattern, tag)).collect();
        let Some(count) = counts.and_then(|counts| counts.last().copied()) else { continue };
        match best {
            Some((most, _)) if count < most => {}
            Some((most, other)) if count == most => {
                let differs =
                    |rank| pattern.rounds(rank, target, 1) != other.rounds(rank, target, 1);
                if (0..target.min(COMPARED)).any(differs) {
                    tied = Some([other, pattern]);
                }
            }
            _ => (best, tied) = (Some((count, pattern)), None),
        }
    }
    if let Some(patterns) = tied {
        let ranks = first.ranks;
        let patterns = patterns.map(|pattern| pattern.to_string());
        return Err(ExtrapolateError::PatternTie { ranks, patterns });
    }
    let (_, pattern) = best.ok_or_else(unknown)?;
    let size = |flows: &Flows<'_>| flows.first().map_or(0, |(_, _, size, _)| size);
    Ok(Phase::Pattern(pattern, tag, flows.iter().map(size).collect()))
}

/// A pattern of a rank that was cut out.
pub(super) struct Cut {
    /// The empty calculation that stands for it.
    pub(super) element: u32,
    /// Its number among the phases.
    pub(super) phase: usize,
    /// Computation in it, and the number of rounds behind the first.
    pub(super) inside: (Picos, u64),
}

/// Puts an empty calculation in the place of each pattern of `rank`.
pub(super) fn cut(traced: &mut Traced<'_>, rank: u32, ranks: u32, phases: &[Phase]) -> Vec<Cut> {
    // The last trace is the one that is used.
    let mut flow = Flow::new(traced);
    let mut spans = Vec::new();
    for (number, phase) in phases.iter().enumerate() {
        let Phase::Pattern(pattern, _, sizes) = phase else {
            flow.done += 1;
            continue;
        };
        let rounds = pattern.rounds(rank, ranks, sizes.last().copied().unwrap_or(0));
        let first = flow.next().map_or(0, |step| step.op);
        flow.skip(&rounds);
        let last = flow.steps.get(flow.done.wrapping_sub(1)).map_or(0, |step| step.op);
        spans.push((first, last, number, rounds.len() as u64 - 1));
    }
    drop(flow);
    let Captured { ops, edges } = std::mem::take(&mut traced.captured);
    let (mut places, mut cuts, mut new) = (Vec::new(), Vec::new(), Captured::default());
    let mut spans = spans.into_iter().peekable();
    let mut open: Option<(u32, Cut)> = None;
    for (at, op) in (0u32..).zip(ops) {
        let here = u32::try_from(new.ops.len()).unwrap_or(u32::MAX);
        if let Some((first, last, phase, rounds)) = spans.next_if(|span| span.0 == at) {
            debug_assert!(first <= last && open.is_none());
            open = Some((last, Cut { element: here, phase, inside: (Picos::ZERO, rounds) }));
            new.ops.push(Op { kind: OpKind::Calc { duration: Picos::ZERO }, ..op });
        }
        let Some((last, cut)) = &mut open else {
            places.push(here);
            new.ops.push(op);
            continue;
        };
        if let OpKind::Calc { duration } = op.kind {
            cut.inside.0 = cut.inside.0.plus(duration).unwrap_or(cut.inside.0);
        }
        places.push(cut.element);
        if *last == at {
            cuts.extend(open.take().map(|(_, cut)| cut));
        }
    }
    let place = |at: u32| places.get(at as usize).copied().unwrap_or(0);
    for edge in edges {
        let moved = Edge { op: place(edge.op), on: place(edge.on), ..edge };
        let mut same = new.edges.iter().rev().take_while(|known| known.op == moved.op);
        if moved.op != moved.on && !same.any(|known| *known == moved) {
            new.edges.push(moved);
        }
    }
    traced.calls.iter_mut().for_each(|call| call.op = place(call.op));
    traced.captured = new;
    cuts
}

/// Mean computation before a message behind the first, of rank 0, where rings and trees begin or end,
/// and of the others, from the cuts of each rank; by phase, and equal patterns share theirs.
pub(super) fn computation(
    phases: &[Phase],
    cuts: &[Vec<Cut>],
) -> HashMap<(Pattern, u64), [Picos; 2]> {
    let mut sums: HashMap<(Pattern, u64), [(u64, u64); 2]> = HashMap::new();
    let each = cuts.iter().enumerate().flat_map(|(rank, cuts)| iter::repeat(rank).zip(cuts));
    for (rank, cut) in each {
        let Some(Phase::Pattern(pattern, _, sizes)) = phases.get(cut.phase) else { continue };
        let size = sizes.last().copied().unwrap_or(0);
        let [first, others] = sums.entry((*pattern, size)).or_default();
        let sum = if rank == 0 { first } else { others };
        *sum = (sum.0.saturating_add(cut.inside.0.0), sum.1 + cut.inside.1);
    }
    // Whole nanoseconds, which texts hold.
    let mean = |(sum, count): (u64, u64)| Picos(sum / count.max(1) / 1_000 * 1_000);
    sums.into_iter().map(|(kind, sums)| (kind, sums.map(mean))).collect()
}
