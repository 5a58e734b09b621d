//! Collective operations among all ranks of the larger program, or among a part of them.

use std::ops::Range;

use loggap_core::goal::{Edge, Op, OpKind, Sink};
use loggap_core::units::Picos;

use super::Extrapolation;
use super::mapping::{DIMENSIONS, Mapping, Step};
use super::pattern::Pattern;
use super::runs::{Ops, Stages};
use crate::collective::{Placement, write_rounds};
use crate::trace::convert::{CollectiveCall, Plan};
use crate::trace::record::Counts;

/// Members of the group of a collective operation in the larger program.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Span {
    /// All ranks.
    All,
    /// Ranks that differ in these dimensions only.
    Lines([bool; DIMENSIONS]),
    /// Ranks at these steps from the own one, which has this number among them.
    Steps(Vec<u32>, u32),
    /// Not known: nothing stands for the operation.
    Unknown,
}

/// Operation of a group of ranks.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Work {
    Call(CollectiveCall),
    /// Messages of the program itself, with computation between them.
    Pattern {
        pattern: Pattern,
        size: u64,
        /// Before each message behind the first: of rank 0, and of the others.
        compute: [Picos; 2],
    },
}

/// What equal collective operations have in common.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Kind {
    pub(super) work: Work,
    pub(super) span: Span,
    pub(super) is_immediate: bool,
}

/// The own number in a group, and its size.
struct Group {
    own: u32,
    size: u32,
}

impl Span {
    fn group(&self, mapping: &Mapping, rank: u32, ranks: u32) -> Group {
        match self {
            Self::All => Group { own: rank, size: ranks },
            Self::Lines(varies) => {
                let at = mapping.at_target(rank);
                let along = mapping.dimensions.iter().zip(at).zip(varies);
                let mut group = Group { own: 0, size: 1 };
                for ((one, at), _) in along.filter(|(_, varies)| **varies) {
                    group.own = group.own.wrapping_mul(one.target).wrapping_add(at.cast_unsigned());
                    group.size = group.size.wrapping_mul(one.target);
                }
                group
            }
            Self::Steps(steps, own) => {
                Group { own: *own, size: u32::try_from(steps.len()).unwrap_or(0) }
            }
            Self::Unknown => Group { own: 0, size: 0 },
        }
    }

    /// Rank of a member of the group of `rank`.
    fn member(&self, mapping: &Mapping, steps: &[Step], rank: u32, member: u32) -> u32 {
        match self {
            Self::All | Self::Unknown => member,
            Self::Lines(varies) => {
                let (mut at, mut rest) = (mapping.at_target(rank), member);
                let along = mapping.dimensions.iter().zip(&mut at).zip(varies);
                let along: Vec<_> = along.filter(|(_, varies)| **varies).collect();
                for ((one, at), _) in along.into_iter().rev() {
                    *at = (rest % one.target).cast_signed();
                    rest /= one.target;
                }
                mapping.target_rank(at)
            }
            Self::Steps(all, _) => {
                let step = all.get(member as usize).and_then(|step| steps.get(*step as usize));
                step.map_or(rank, |step| mapping.after(rank, step))
            }
        }
    }
}

/// Operations of a rank in a collective operation. They come in stages: each operation waits for
/// all of the stage before.
#[derive(Debug)]
pub(super) struct Expansion {
    ops: Ops,
    stages: Stages,
    last: u32,
}

impl Expansion {
    /// Operations of `rank` of a program in an operation of this `kind`.
    pub(super) fn new(program: &Extrapolation, kind: &Kind, rank: u32) -> Self {
        let Extrapolation { mapping, steps, options, ranks, .. } = program;
        let (ranks, mut draft) = (*ranks, Draft { ops: Vec::new(), stages: vec![0] });
        let Group { own, size } = kind.span.group(mapping, rank, ranks);
        let combine = options.combine_on(mapping.origin(mapping.source(rank)));
        let plan = match &kind.work {
            Work::Pattern { pattern, size: bytes, compute } => {
                let mut rounds = pattern.rounds(own, size, *bytes);
                let [first, others] = *compute;
                let calc = if own == 0 { first } else { others };
                rounds.iter_mut().skip(1).for_each(|round| round.calc = calc);
                Some(Plan { rounds, root: 0 })
            }
            Work::Call(call) if kind.span == Span::All && call.has_lists() => {
                with_lists(call, mapping, ranks).plan(&options.algorithms, combine, [own, size])
            }
            Work::Call(call) => call.plan(&options.algorithms, combine, [own, size]),
        };
        if let Some(plan) = plan.filter(|_| size > 1) {
            let member = |rank_in_plan| {
                kind.span.member(mapping, steps, rank, plan.member(rank_in_plan, size))
            };
            let placement = Placement { rank: member, tag: 0, cpu: 0 };
            let Ok(_ends) = write_rounds(&plan.rounds, &placement, Vec::new(), &mut draft);
        }
        draft.finish(kind, ranks)
    }

    /// An empty calculation.
    pub(super) fn nothing() -> Self {
        let empty = OpKind::Calc { duration: Picos::ZERO };
        Self { ops: Ops::new(vec![empty], 1), stages: Stages::new(&[0], 1), last: 0 }
    }

    /// Number of operations.
    pub(super) fn len(&self) -> u32 {
        self.ops.len()
    }

    /// Number of operations that are kept in memory.
    pub(super) fn kept(&self) -> usize {
        self.ops.kept()
    }

    /// Operation at `at`, with this tag.
    pub(super) fn operation(&self, at: u32, tag: u64) -> Option<OpKind> {
        let mut kind = self.ops.get(at)?;
        if let OpKind::Send { tag: own, .. } | OpKind::Receive { tag: own, .. } = &mut kind {
            *own = tag;
        }
        Some(kind)
    }

    /// Stage of the operation at `at`.
    pub(super) fn stage_of(&self, at: u32) -> u32 {
        self.stages.of(at)
    }

    /// Operations of a stage; `None` behind the last one.
    pub(super) fn stage(&self, number: u32) -> Option<Range<u32>> {
        let first = self.stages.first(number);
        let end = if number == self.last { self.len() } else { self.stages.first(number + 1) };
        (number <= self.last).then_some(first..end)
    }

    /// Operations of the last stage.
    pub(super) fn last(&self) -> Range<u32> {
        self.stage(self.last).unwrap_or(0..0)
    }
}

/// The call with its lists for the larger program: each rank has what its traced one has.
fn with_lists(call: &CollectiveCall, mapping: &Mapping, ranks: u32) -> CollectiveCall {
    let mut call = call.clone();
    for list in call.lists.iter_mut().filter(|list| !list.is_empty()) {
        // A hostile list may go on.
        let traced: Vec<u64> = list.iter().take(mapping.programs() as usize).collect();
        let of = |rank| {
            let traced_rank = mapping.origin(mapping.source(rank));
            (1, traced.get(traced_rank as usize).copied().unwrap_or(0))
        };
        *list = Counts((0..ranks).map(of).collect());
    }
    call
}

/// Operations as they are written, and the first one of each stage.
struct Draft {
    ops: Vec<OpKind>,
    stages: Vec<u32>,
}

impl Draft {
    fn len(&self) -> u32 {
        u32::try_from(self.ops.len()).unwrap_or(u32::MAX)
    }

    /// Adds an operation without time if there are no others, or behind the several last ones of an
    /// immediate operation, so that its end is a single operation.
    fn finish(mut self, kind: &Kind, ranks: u32) -> Expansion {
        let last = self.stages.last().copied().unwrap_or(0);
        if self.ops.is_empty() || kind.is_immediate && self.len() - last > 1 {
            if !self.ops.is_empty() {
                self.stages.push(self.len());
            }
            self.ops.push(OpKind::Calc { duration: Picos::ZERO });
        }
        let stages = Stages::new(&self.stages, self.len());
        let last = u32::try_from(self.stages.len() - 1).unwrap_or(u32::MAX);
        Expansion { ops: Ops::new(self.ops, ranks), stages, last }
    }
}

impl Sink for Draft {
    type Error = std::convert::Infallible;

    fn op(&mut self, op: Op) -> Result<u32, Self::Error> {
        self.ops.push(op.kind);
        Ok(self.len() - 1)
    }

    fn edge(&mut self, Edge { op, on, .. }: Edge) -> Result<(), Self::Error> {
        if self.stages.last().is_some_and(|first| *first <= on) {
            self.stages.push(op);
        }
        Ok(())
    }
}
