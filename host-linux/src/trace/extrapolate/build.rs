//! From the traces of a program to the programs of its ranks on more of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::{iter, mem};

use loggap_core::goal::{ANY, ANY_TAG, OpKind};
use loggap_core::trace::{ANY_PEER, Envelope};
use loggap_core::units::Picos;

use super::between;
use super::communication::{Communication, communications};
use super::expansion::{Kind, Span, Work};
use super::fit::{self, Growth, Runs, SizeOn};
use super::grid::{self, Grid};
use super::mapping::{DIMENSIONS, Dimension, Mapping, Step, Vector};
use super::phases::{self, Cut, Phase};
use super::sequence::{Captured, PlacedCall, Sequence};
use super::{ExtrapolateError, Extrapolation, Scaling};
use crate::schedule::TagNumbers;
use crate::trace::convert::{CollectiveCall, Conversion, NotedCall, Notes, NullMessage, Report};
use crate::trace::rank::Communicator;
use crate::trace::record::Counts;

/// A rank of a trace, or one between others.
#[derive(Default)]
pub(super) struct Traced<'t> {
    pub(super) captured: Captured,
    pub(super) calls: Vec<NotedCall<'t>>,
    pub(super) nulls: Vec<NullMessage>,
    /// Ways to the peers of its messages, if these do not tell them.
    ways: Vec<Vector>,
    /// Cartesian topologies of all ranks in their order.
    pub(super) grids: Vec<&'t [(u32, bool)]>,
}

/// What holds for all numbers of ranks.
struct Rule {
    /// From each trace to the ranks of the last one, and from that to the larger program.
    mappings: Vec<Mapping>,
    /// Rings and trees of all ranks; empty on grids.
    phases: Vec<Phase>,
}

/// Extrapolates traces, see [`Extrapolation::new`].
pub(super) fn build(
    conversions: &[Conversion],
    scaling: &Scaling,
) -> Result<Extrapolation, ExtrapolateError> {
    let mut conversions: Vec<&Conversion> = conversions.iter().collect();
    conversions.sort_by_key(|conversion| conversion.ranks());
    let mut report = Report::default();
    let mut traces = Vec::new();
    for conversion in &conversions {
        report = Report::default();
        traces.push(captured(conversion, &mut report)?);
    }
    let rule = rule(&traces, scaling)?;
    let mapping = rule.mappings.last().cloned().ok_or(ExtrapolateError::Several)?;
    let ranks = mapping.ranks().ok_or(ExtrapolateError::Ranks)?;
    let growths = growths(&traces, &rule, ranks);
    let (Some(mut all), Some(conversion)) = (traces.pop(), conversions.pop()) else {
        return Err(ExtrapolateError::Several);
    };
    let nulls = match scaling {
        Scaling::Grid(_) => between::check(&all, &mapping).map_err(|misfit| misfit.of(&mapping))?,
        Scaling::Copies(_) | Scaling::Ranks(_) => 0,
    };
    let sizes = rule.sizes(&traces, &all, ranks)?.into_iter().chain(iter::repeat(Vec::new()));
    for ((rank, traced), sizes) in (0..).zip(&mut all).zip(sizes) {
        resize(traced, &sizes);
        let growth = growths.get(&rule.place(&mapping, rank));
        slow_down(traced, growth.map_or(1.0, |growth| growth.factor));
    }
    let counts: Vec<u32> = traces.iter().map(|all| count(all)).chain([count(&all)]).collect();
    let mut building = Building::new(&mapping, scaling);
    let patterns = building.cut(&mut all, &rule.phases, &counts, ranks)?;
    let mut between = Vec::new();
    for program in (0..mapping.programs()).filter(|program| mapping.is_between(*program)) {
        let growth = growths.get(&mapping.ends(mapping.origin(program)));
        let mut traced = between_others(&all, program, &mapping, conversion)?;
        slow_down(&mut traced, growth.map_or(1.0, |growth| growth.factor));
        between.push((program, traced));
    }
    let mut between = between.into_iter().peekable();
    let mut sequences = Vec::with_capacity(mapping.programs() as usize);
    for program in 0..mapping.programs() {
        let rank = mapping.origin(program);
        let (traced, report) = match between.next_if(|(number, _)| *number == program) {
            // Its calls are in the report already.
            Some((_, traced)) => (traced, &mut Report::default()),
            None => (all.get_mut(rank as usize).map(mem::take).unwrap_or_default(), &mut report),
        };
        sequences.push(building.sequence(rank, traced, conversion, report)?);
    }
    let Building { steps, kinds, tags, .. } = building;
    let name = |(ends, growth): ([u32; DIMENSIONS], Growth)| (mapping.name(ends), growth);
    Ok(Extrapolation {
        ranks,
        sequences: sequences.into(),
        steps: steps.all,
        kinds: kinds.all,
        options: conversion.options().clone(),
        tags: Arc::new(tags),
        report,
        nulls,
        patterns,
        growths: growths.into_iter().map(name).collect(),
        mapping,
    })
}

/// Number of ranks.
pub(super) fn count(all: &[Traced<'_>]) -> u32 {
    u32::try_from(all.len()).unwrap_or(u32::MAX)
}

fn captured<'t>(
    conversion: &'t Conversion,
    report: &mut Report,
) -> Result<Vec<Traced<'t>>, ExtrapolateError> {
    if let Some(rank) = conversion.lost() {
        return Err(ExtrapolateError::Lost(rank));
    }
    let mut traced = |rank| {
        let (mut captured, mut notes) = (Captured::default(), Notes::default());
        conversion.rank(rank, &mut captured, report, Some(&mut notes))?;
        let Notes { calls, nulls, .. } = notes;
        let whole = conversion.communicators(rank).filter(|one| is_whole(one, conversion));
        let grids = whole.map(|one| one.dimensions.as_slice());
        let grids = grids.filter(|dimensions| !dimensions.is_empty()).collect();
        Ok(Traced { captured, calls, nulls, ways: Vec::new(), grids })
    };
    (0..conversion.ranks()).map(&mut traced).collect()
}

/// The program of ranks between traced ones: that of the first of these, converted once more with the
/// messages of the others where it has `MPI_PROC_NULL`. It computes what that one does.
fn between_others<'t>(
    all: &[Traced<'_>],
    program: u32,
    mapping: &Mapping,
    conversion: &'t Conversion,
) -> Result<Traced<'t>, ExtrapolateError> {
    let merged = between::merged(all, program, mapping).map_err(|misfit| misfit.of(mapping))?;
    let rank = mapping.origin(program);
    let own = communications(all, rank, mapping).zip(&merged);
    let instead = own.filter(|(own, _)| own.as_ref().is_ok_and(Communication::is_null));
    let instead = instead.map(|(_, found)| {
        // Its peer is one of `ways`.
        let peer = if found.way().is_some() { rank.cast_signed() } else { ANY_PEER };
        let (tag, bytes) = (found.tag()?.cast_signed(), found.bytes[0]);
        Some(Envelope { peer, tag, bytes, communicator: 0 })
    });
    let instead = instead.collect::<Vec<_>>().into_iter();
    let (mut captured, mut notes) = (Captured::default(), Notes { instead, ..Notes::default() });
    conversion.rank(rank, &mut captured, &mut Report::default(), Some(&mut notes))?;
    let ways = merged.iter().filter_map(Communication::way).collect();
    let mut traced = Traced { captured, calls: notes.calls, ways, ..Traced::default() };
    let sizes = merged.iter().filter(|one| !one.is_null()).map(|one| one.bytes);
    resize(&mut traced, &sizes.collect::<Vec<_>>());
    Ok(traced)
}

fn rule(traces: &[Vec<Traced<'_>>], scaling: &Scaling) -> Result<Rule, ExtrapolateError> {
    check_lists(traces)?;
    let grids =
        |grid: &Grid| Ok(Rule { mappings: grid::find_all(traces, grid)?, phases: Vec::new() });
    match (scaling, traces) {
        (Scaling::Copies(copies), [traced]) => {
            let mapping = Mapping::of_copies(count(traced), *copies);
            Ok(Rule { mappings: vec![mapping], phases: Vec::new() })
        }
        (Scaling::Copies(_), _) => Err(ExtrapolateError::Several),
        (Scaling::Grid(grid), _) => {
            let last = traces.last().map_or(&[][..], Vec::as_slice);
            grids(grid).map_err(|error| grid::or_other_shape(error, last, grid))
        }
        (Scaling::Ranks(target), _) => {
            let line = grids(&Grid { traced: None, target: vec![*target] });
            line.or_else(|_: ExtrapolateError| {
                let one = |traced: &Vec<Traced<'_>>| {
                    let (traced, target) = (count(traced), *target);
                    Mapping { dimensions: vec![Dimension { traced, target, is_ring: true }] }
                };
                let phases = phases::find(traces, *target)?;
                Ok(Rule { mappings: traces.iter().map(one).collect(), phases })
            })
        }
    }
}

/// Refuses lists of counts that have other values in another trace.
fn check_lists(traces: &[Vec<Traced<'_>>]) -> Result<(), ExtrapolateError> {
    let values = |all: &Vec<Traced<'_>>| -> BTreeSet<(String, u64)> {
        let calls = all.iter().flat_map(|traced| &traced.calls);
        let of_call = |noted: &NotedCall<'_>| {
            let runs: Vec<_> = noted.call.lists.iter().flat_map(|list| list.runs()).collect();
            runs.into_iter().map(|(_, value)| (noted.name.clone(), *value)).collect::<Vec<_>>()
        };
        calls.flat_map(of_call).collect()
    };
    let mut all = traces.iter().map(values);
    let first = all.next().unwrap_or_default();
    let other = all.find_map(|next| next.symmetric_difference(&first).next().cloned());
    other.map_or(Ok(()), |(name, _)| Err(ExtrapolateError::Lists(name)))
}

impl Rule {
    /// Place of a rank among those whose computation grows alike: that in the grid, and of rings and
    /// trees rank 0 apart, as [`phases::computation`] has it.
    fn place(&self, mapping: &Mapping, rank: u32) -> [u32; DIMENSIONS] {
        let mut place = mapping.ends(rank);
        if rank == 0 && !self.phases.is_empty() {
            place[0] = 0;
        }
        place
    }

    /// Sizes of the communications of each rank of the last trace on `target` ranks, in order; none
    /// for those of patterns, which have their own.
    fn sizes(
        &self,
        smaller: &[Vec<Traced<'_>>],
        last: &[Traced<'_>],
        target: u32,
    ) -> Result<Vec<Vec<[u64; 2]>>, ExtrapolateError> {
        if !self.phases.is_empty() || smaller.is_empty() {
            return Ok(Vec::new());
        }
        grid::sizes(smaller, last, &self.mappings, target)
    }
}

/// Gives communications their sizes.
fn resize(traced: &mut Traced<'_>, sizes: &[[u64; 2]]) {
    let (mut sizes, mut calls) = (sizes.iter(), traced.calls.iter_mut().peekable());
    for (at, op) in (0..).zip(&mut traced.captured.ops) {
        match &mut op.kind {
            OpKind::Send { size, .. } | OpKind::Receive { size, .. } => {
                *size = sizes.next().map_or(*size, |[bytes, _]| *bytes);
            }
            OpKind::Calc { .. } => {
                let call = calls.next_if(|noted| noted.op == at).map(|noted| &mut noted.call);
                if let Some((call, [sent, received])) =
                    call.and_then(|call| Some((call, sizes.next()?)))
                {
                    (call.sent, call.received) = (*sent, *received);
                }
            }
        }
    }
}

/// Computation of a traced rank, in picoseconds.
#[allow(clippy::cast_precision_loss, reason = "a sum of measured times")]
fn computed(traced: &Traced<'_>) -> f64 {
    let time = |kind: OpKind| if let OpKind::Calc { duration } = kind { duration.0 } else { 0 };
    traced.captured.ops.iter().map(|op| time(op.kind) as f64).sum()
}

/// Multiplies the computation of a rank.
fn slow_down(traced: &mut Traced<'_>, factor: f64) {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "times are whole nanoseconds, and saturate"
    )]
    let times = |time: u64| ((time as f64 * factor / 1e3).round() as u64).saturating_mul(1_000);
    let calcs = traced.captured.ops.iter_mut().filter_map(|op| match &mut op.kind {
        OpKind::Calc { duration } => Some(duration),
        _ => None,
    });
    if (factor - 1.0).abs() > 1e-9 {
        calcs.for_each(|duration| *duration = Picos(times(duration.0)));
    }
}

/// Growth of the computation of ranks with the same place, from traces on several numbers of ranks.
fn growths(
    traces: &[Vec<Traced<'_>>],
    rule: &Rule,
    target: u32,
) -> BTreeMap<[u32; DIMENSIONS], Growth> {
    let mut runs: BTreeMap<[u32; DIMENSIONS], BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for (traced, mapping) in traces.iter().zip(&rule.mappings) {
        let mut values: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for (rank, one) in (0..).zip(traced) {
            values.entry(rule.place(mapping, rank)).or_default().push(computed(one));
        }
        for (place, values) in values {
            let of_place = runs.entry(place).or_default();
            of_place.entry(count(traced)).or_default().push(fit::median(values));
        }
    }
    let several = runs.into_iter().filter(|(_, by_ranks)| by_ranks.len() > 1);
    let growth = |(place, by_ranks): (_, BTreeMap<u32, Vec<f64>>)| {
        let runs = by_ranks.into_iter().map(|(ranks, values)| Runs { ranks, values });
        (place, fit::growth(&runs.collect::<Vec<_>>(), target))
    };
    several.map(growth).collect()
}

/// True for a communicator of all traced ranks in their order.
fn is_whole(communicator: &Communicator, conversion: &Conversion) -> bool {
    let members = communicator.members().map(i32::cast_unsigned);
    !communicator.is_inter() && members.eq(0..conversion.ranks())
}

/// Distinct values with their numbers.
struct Numbered<T, V> {
    numbers: HashMap<T, u32>,
    all: Vec<V>,
}

impl<T: std::hash::Hash + Eq + Clone, V> Numbered<T, V> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), all: Vec::new() }
    }

    fn number(&mut self, one: T, value: impl FnOnce(T) -> V) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let all = &mut self.all;
        *self.numbers.entry(one.clone()).or_insert_with(|| {
            all.push(value(one));
            next
        })
    }
}

/// Tables that the sequences share while they are built.
struct Building<'m> {
    mapping: &'m Mapping,
    is_grid: bool,
    steps: Numbered<Vector, Step>,
    kinds: Numbered<Kind, Kind>,
    tags: TagNumbers,
    /// Patterns that were cut out of each rank.
    cuts: Vec<Vec<PlacedCall>>,
}

impl<'m> Building<'m> {
    fn new(mapping: &'m Mapping, scaling: &Scaling) -> Self {
        let (steps, kinds) = (Numbered::new(), Numbered::new());
        let is_grid = !matches!(scaling, Scaling::Copies(_));
        Self { mapping, is_grid, steps, kinds, tags: TagNumbers::default(), cuts: Vec::new() }
    }

    /// Cuts the patterns out of the last trace; `counts` are the numbers of ranks of all traces.
    /// Returns the patterns in words.
    fn cut(
        &mut self,
        all: &mut [Traced<'_>],
        phases: &[Phase],
        counts: &[u32],
        target: u32,
    ) -> Result<Vec<String>, ExtrapolateError> {
        if phases.is_empty() {
            return Ok(Vec::new());
        }
        let ranks = count(all);
        let cuts = (0..).zip(all.iter_mut());
        let cuts: Vec<_> = cuts.map(|(rank, one)| phases::cut(one, rank, ranks, phases)).collect();
        let means = phases::computation(phases, &cuts);
        let fitted = |sizes: Vec<u64>, message: usize| {
            let sizes = counts.iter().zip(sizes);
            let sizes: Vec<_> = sizes.map(|(&ranks, bytes)| SizeOn { ranks, bytes }).collect();
            let size = fit::size(&sizes, target);
            size.ok_or(ExtrapolateError::Sizes { rank: 0, message, sizes })
        };
        let (mut words, mut kinds, mut calls) = (Vec::new(), Vec::new(), 0);
        for (number, phase) in (1..).zip(phases) {
            match phase {
                Phase::Call(sizes) => {
                    let (sent, received) =
                        sizes.iter().map(|[sent, received]| (*sent, *received)).unzip();
                    let (sent, received) = (fitted(sent, number)?, fitted(received, number)?);
                    for noted in all.iter_mut().filter_map(|one| one.calls.get_mut(calls)) {
                        let CollectiveCall { sent: old, received: other, .. } = &mut noted.call;
                        *old = if *old > 0 { sent } else { 0 };
                        *other = if *other > 0 { received } else { 0 };
                    }
                    calls += 1;
                    kinds.push((0, 0));
                }
                Phase::Pattern(pattern, tag, sizes) => {
                    let pattern = *pattern;
                    let known = (pattern, sizes.last().copied().unwrap_or(0));
                    let compute = means.get(&known).copied().unwrap_or_default();
                    let word = pattern.to_string();
                    if !words.contains(&word) {
                        words.push(word);
                    }
                    let size = fitted(sizes.clone(), number)?;
                    let work = Work::Pattern { pattern, size, compute };
                    let kind = Kind { work, span: Span::All, is_immediate: false };
                    kinds.push((self.kinds.number(kind, |kind| kind), self.tag(*tag)?));
                }
            }
        }
        let placed = |cut: Cut| {
            let (kind, tag) = kinds.get(cut.phase).copied().unwrap_or_default();
            PlacedCall { element: cut.element, kind, tag }
        };
        self.cuts = cuts.into_iter().map(|cuts| cuts.into_iter().map(placed).collect()).collect();
        Ok(words)
    }

    fn step(&mut self, way: Option<Vector>) -> u32 {
        self.steps.number(way.unwrap_or_default(), |way| self.mapping.step(way))
    }

    fn tag(&mut self, tag: u64) -> Result<u64, ExtrapolateError> {
        if tag == ANY_TAG {
            return Ok(tag);
        }
        self.tags.add(tag).map(u64::from).ok_or(ExtrapolateError::Tags)
    }

    fn sequence(
        &mut self,
        rank: u32,
        traced: Traced<'_>,
        conversion: &Conversion,
        report: &mut Report,
    ) -> Result<Sequence, ExtrapolateError> {
        let Traced { captured: Captured { mut ops, edges }, calls, ways, .. } = traced;
        let mut ways = ways.into_iter();
        for op in &mut ops {
            if let OpKind::Send { peer, tag, .. } | OpKind::Receive { peer, tag, .. } = &mut op.kind
            {
                *tag = self.tag(*tag)?;
                if *peer != ANY {
                    let way = ways.next().or_else(|| self.mapping.way(rank, *peer));
                    *peer = self.step(way);
                }
            }
        }
        let mut placed = self.cuts.get_mut(rank as usize).map(mem::take).unwrap_or_default();
        for NotedCall { op, mut call, name, communicator, tag, is_immediate, nanos } in calls {
            let span = match self.span(rank, &mut call, communicator, conversion) {
                Ok(span) => span,
                Err(reason) => {
                    report.refuse(&name, reason, nanos);
                    Span::Unknown
                }
            };
            let kind = Kind { work: Work::Call(call), span, is_immediate };
            let kind = self.kinds.number(kind, |kind| kind);
            placed.push(PlacedCall { element: op, kind, tag: self.tag(tag)? });
        }
        placed.sort_unstable_by_key(|call| call.element);
        Ok(Sequence::new(ops, &edges, placed))
    }

    /// The larger group of a collective operation of `rank`; moves its root there.
    fn span(
        &mut self,
        rank: u32,
        call: &mut CollectiveCall,
        communicator: &Communicator,
        conversion: &Conversion,
    ) -> Result<Span, &'static str> {
        let members: Vec<u32> = communicator.members().map(i32::cast_unsigned).collect();
        let root = members.get(call.root as usize).copied().unwrap_or(0);
        let root = self.mapping.end(root);
        if is_whole(communicator, conversion) {
            let is_to_each = call.name.starts_with("alltoall");
            let is_even = |list: &Counts| list.runs().len() < 2;
            if self.is_grid && is_to_each && !call.lists.iter().all(is_even) {
                return Err("not extrapolated: bytes differ from peer to peer");
            }
            call.root = self.mapping.target_rank(root);
            return Ok(Span::All);
        }
        let own = self.mapping.at_traced(rank);
        let mut varies = [false; DIMENSIONS];
        for member in &members {
            let at = self.mapping.at_traced(*member);
            varies.iter_mut().zip(own.iter().zip(at)).for_each(|(varies, (own, at))| {
                *varies |= *own != at;
            });
        }
        let dimensions = self.mapping.dimensions.iter().zip(varies);
        let grows = dimensions.clone().any(|(one, varies)| varies && one.grows());
        if !grows {
            let own = members.iter().position(|member| *member == rank).unwrap_or(0);
            let steps = members.iter().map(|member| self.step(self.mapping.way(rank, *member)));
            let steps = steps.collect();
            return Ok(Span::Steps(steps, u32::try_from(own).unwrap_or(0)));
        }
        if call.has_lists() || !self.mapping.is_line(&members, rank, varies) {
            return Err("not extrapolated: its members are no line or plane of the grid");
        }
        let along = dimensions.zip(root).filter(|((_, varies), _)| *varies);
        call.root = along.fold(0, |sum, ((one, _), at)| sum * one.target + at.cast_unsigned());
        Ok(Span::Lines(varies))
    }
}
