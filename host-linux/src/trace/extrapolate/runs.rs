//! Compact lists of a rank's operations in a collective, which may be as many as there are ranks.

use loggap_core::goal::{ANY, OpKind};

/// Length up to which lists stay as they are.
const SHORT: usize = 64;
/// Longest part that repeats: a send, a receive and a calculation.
const PERIOD: usize = 3;

/// Operations of a rank.
#[derive(Debug)]
pub(super) enum Ops {
    Short(Vec<OpKind>),
    /// Repetitions, their number, and that of the ranks.
    Long(Vec<Repetition>, u32, u32),
}

/// Up to three operations, again and again with peers that advance evenly around all ranks.
#[derive(Debug)]
pub(super) struct Repetition {
    /// Number of its first operation.
    first: u32,
    ops: Vec<(OpKind, u32)>,
}

const fn peer(kind: &OpKind) -> u32 {
    match kind {
        OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } => *peer,
        OpKind::Calc { .. } => 0,
    }
}

/// The operation with another peer.
const fn towards(mut kind: OpKind, to: u32) -> OpKind {
    if let OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } = &mut kind {
        *peer = to;
    }
    kind
}

/// `from + count · step`, around `ranks`.
fn advanced(from: u32, step: u32, count: u32, ranks: u32) -> u32 {
    let ranks = u64::from(ranks.max(1));
    let at = u64::from(from) + u64::from(step) * u64::from(count) % ranks;
    u32::try_from(at % ranks).unwrap_or(ANY)
}

impl Ops {
    pub(super) fn new(ops: Vec<OpKind>, ranks: u32) -> Self {
        if ops.len() <= SHORT {
            return Self::Short(ops);
        }
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(rest) = ops.get(at..).filter(|rest| !rest.is_empty()) {
            let longest = (1..=PERIOD).map(|period| (covered(rest, period, ranks), period));
            let (count, period) = longest.max_by_key(|(count, _)| *count).unwrap_or((1, 1));
            let one = |number: usize| {
                let kind = rest.get(number).copied()?;
                let step = rest.get(number + period).map_or(0, |next| step(&kind, next, ranks));
                Some((kind, step))
            };
            let first = u32::try_from(at).unwrap_or(u32::MAX);
            found.push(Repetition { first, ops: (0..period).map_while(one).collect() });
            at += count;
        }
        Self::Long(found, u32::try_from(ops.len()).unwrap_or(u32::MAX), ranks)
    }

    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Short(ops) => u32::try_from(ops.len()).unwrap_or(u32::MAX),
            Self::Long(_, count, _) => *count,
        }
    }

    /// Number of operations that are kept.
    pub(super) fn kept(&self) -> usize {
        match self {
            Self::Short(ops) => ops.len(),
            Self::Long(all, ..) => PERIOD * all.len(),
        }
    }

    pub(super) fn get(&self, at: u32) -> Option<OpKind> {
        match self {
            Self::Short(ops) => ops.get(at as usize).copied(),
            Self::Long(all, count, ranks) => {
                let behind = all.partition_point(|one| one.first <= at);
                let Repetition { first, ops } = all.get(behind.checked_sub(1)?)?;
                let (period, at) =
                    (u32::try_from(ops.len()).ok()?, (at < *count).then(|| at - first)?);
                let &(kind, step) = ops.get((at % period) as usize)?;
                Some(towards(kind, advanced(peer(&kind), step, at / period, *ranks)))
            }
        }
    }
}

/// Way from the peer of an operation to that of the next.
const fn step(kind: &OpKind, next: &OpKind, ranks: u32) -> u32 {
    let ranks = if ranks == 0 { 1 } else { ranks };
    (peer(next) + ranks - peer(kind) % ranks) % ranks
}

/// Number of operations that the first `period` of `rest` repeat to.
fn covered(rest: &[OpKind], period: usize, ranks: u32) -> usize {
    let continues = |(at, kind): (usize, &OpKind)| {
        let begin = rest.get(at % period).zip(rest.get(at % period + period));
        begin.is_some_and(|(first, second)| {
            let count = u32::try_from(at / period).unwrap_or(u32::MAX);
            let to = advanced(peer(first), step(first, second, ranks), count, ranks);
            *kind == towards(*first, to)
        })
    };
    let count = rest.iter().enumerate().take_while(|one| continues(*one)).count();
    if period == 1 { count.max(1) } else { count / period * period }
}

/// First operations of stages, by runs of stages of equal lengths: stage, operation, length.
#[derive(Debug)]
pub(super) struct Stages(Vec<[u32; 3]>);

impl Stages {
    /// Stages that begin with these operations, up to `end`.
    pub(super) fn new(firsts: &[u32], end: u32) -> Self {
        let mut runs: Vec<[u32; 3]> = Vec::new();
        let ends = firsts.iter().skip(1).copied().chain([end]);
        for (stage, (first, end)) in (0..).zip(firsts.iter().zip(ends)) {
            let length = end - first;
            if runs.last().is_none_or(|run| run[2] != length) {
                runs.push([stage, *first, length]);
            }
        }
        Self(runs)
    }

    /// Stage of the operation at `at`.
    pub(super) fn of(&self, at: u32) -> u32 {
        let behind = self.0.partition_point(|[_, first, _]| *first <= at);
        let run = behind.checked_sub(1).and_then(|run| self.0.get(run));
        run.map_or(0, |[stage, first, length]| stage + (at - first) / (*length).max(1))
    }

    /// First operation of a stage.
    pub(super) fn first(&self, stage: u32) -> u32 {
        let behind = self.0.partition_point(|[known, ..]| *known <= stage);
        let run = behind.checked_sub(1).and_then(|run| self.0.get(run));
        run.map_or(0, |[known, first, length]| first + (stage - known) * length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_short_and_say_the_same() {
        let ranks = 1_000;
        let send = |peer: u32, size| OpKind::Send { peer: peer % ranks, size, tag: 0 };
        let receive = |peer: u32, size| OpKind::Receive { peer: peer % ranks, size, tag: 0 };
        // Pairwise, all at once, and a ring whose blocks become shorter.
        let pairs = (1..ranks).flat_map(|step| [send(7 + step, 8), receive(7 + ranks - step, 8)]);
        let linear = (1..ranks).map(|step| send(7 + step, 8));
        let linear = linear.chain((1..ranks).map(|step| receive(7 + step, 8)));
        let ring = (1..ranks).flat_map(|step| {
            let size = if step < 600 { 8 } else { 7 };
            [send(8, size), receive(6, size)]
        });
        let lists: [Vec<OpKind>; 3] = [pairs.collect(), linear.collect(), ring.collect()];
        for list in lists {
            let ops = Ops::new(list.clone(), ranks);
            assert!(ops.kept() <= 12 && ops.len() as usize == list.len(), "{}", ops.kept());
            let found: Vec<_> = (0..ops.len()).map_while(|at| ops.get(at)).collect();
            assert_eq!(found, list);
            assert_eq!(ops.get(ops.len()), None);
        }
        let firsts = [0, 1, 3, 5, 7, 8];
        let stages = Stages::new(&firsts, 20);
        for (stage, first) in (0..).zip(firsts) {
            assert_eq!((stages.first(stage), stages.of(first)), (first, stage));
        }
        assert_eq!((stages.of(6), stages.of(19), stages.first(6)), (3, 5, 20));
    }
}
