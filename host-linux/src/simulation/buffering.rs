//! Detects programs that rely on buffering: schedules that deadlock because sends above the eager
//! limit S wait for their receivers.

use std::collections::{BTreeMap, BTreeSet};

use loggap_core::goal::OpKind;
use loggap_core::sim::{Survey, Unfinished};
use loggap_core::units::Bytes;

use super::{Job, ParameterSets, RunError, Source, Stuck, Wanted};
use crate::schedule::EachOp;

/// A send above S whose receive would be posted only if sends did not block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlockedSend {
    /// Rank of the send.
    pub rank: u32,
    /// Index of the send on its rank.
    pub op: u32,
    /// Size of the message.
    pub size: Bytes,
    /// Eager limit of the message.
    pub eager_limit: Bytes,
}

/// Blocked sends, and the smallest eager limit with which the schedule completes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Buffering {
    /// Sends whose messages were reported as unreceived, but are received with a higher S.
    pub blocked: Vec<BlockedSend>,
    /// Smallest S with which the schedule completes; otherwise the number of unfinished operations
    /// that remain with any S.
    pub smallest: Result<Bytes, u64>,
}

impl Buffering {
    /// Blocked sends of a run of `job` with `sets` that ended `stuck`; `None` if no send is the
    /// cause. Repeats the run with a higher S: once, and then for each step of a binary search over
    /// the message sizes.
    ///
    /// # Errors
    ///
    /// [`RunError`] of the repeated runs.
    pub fn of(
        source: &Source,
        sets: &ParameterSets,
        job: &Job<'_>,
        stuck: &Stuck,
    ) -> Result<Option<Self>, RunError> {
        let (sizes, mut blocked) = sent(source, sets, stuck)?;
        let (Some(&largest), false) = (sizes.last(), blocked.is_empty()) else { return Ok(None) };
        let raised = Raised { source, sets, job };
        let left = raised.stuck(largest)?;
        if left.total > 0 {
            let still: BTreeSet<_> = unreceived(&left).map(|(place, _)| place).collect();
            let all_listed = left.total <= Stuck::LISTED as u64;
            blocked.retain(|send| all_listed && !still.contains(&(send.rank, send.op)));
            let buffering = Self { blocked, smallest: Err(left.total) };
            return Ok(Some(buffering).filter(|buffering| !buffering.blocked.is_empty()));
        }
        let smallest = Ok(raised.smallest(&sizes, largest)?);
        Ok(Some(Self { blocked, smallest }))
    }
}

/// Rank and index of the sends of unreceived messages, each with the receiving rank.
fn unreceived(stuck: &Stuck) -> impl Iterator<Item = ((u32, u32), u32)> {
    stuck.listed().filter_map(|left| match *left {
        Unfinished::Unreceived { rank, from, op, .. } => Some(((from, op), rank)),
        _ => None,
    })
}

/// Message sizes of a schedule above the smallest eager limit, ascending, and unreceived messages
/// above theirs.
fn sent(
    source: &Source,
    sets: &ParameterSets,
    stuck: &Stuck,
) -> Result<(Vec<Bytes>, Vec<BlockedSend>), RunError> {
    let least = sets.protocols.iter().map(|protocol| protocol.parameters.eager_limit).min();
    let parameters = sets.parameters()?;
    let unreceived: BTreeMap<_, _> = unreceived(stuck).collect();
    let (mut sizes, mut blocked) = (BTreeSet::new(), Vec::new());
    // Rank and index of the next operation.
    let mut next = (0, 0);
    let mut survey = Survey::default();
    let mut sends = EachOp::new(&mut survey, |rank, seen| {
        let op = if next.0 == rank { next.1 } else { 0 };
        next = (rank, op + 1);
        let OpKind::Send { size, .. } = seen.kind else { return Ok(seen) };
        if Some(Bytes(size)) > least {
            sizes.insert(Bytes(size));
        }
        let Some(&to) = unreceived.get(&(rank, op)) else { return Ok(seen) };
        let number = parameters.number(parameters.level(rank, to), size);
        let set = sets.protocols.get(number);
        let eager_limit = set.map_or(Bytes(size), |set| set.parameters.eager_limit);
        if Bytes(size) > eager_limit {
            blocked.push(BlockedSend { rank, op, size: Bytes(size), eager_limit });
        }
        Ok(seen)
    });
    source.feed(&mut sends, None).map_err(RunError::Load)?;
    Ok((sizes.into_iter().collect(), blocked))
}

/// Runs with a raised eager limit.
struct Raised<'a> {
    source: &'a Source,
    sets: &'a ParameterSets,
    job: &'a Job<'a>,
}

impl Raised<'_> {
    /// Unfinished operations if S is at least `limit`.
    fn stuck(&self, limit: Bytes) -> Result<Stuck, RunError> {
        let mut sets = self.sets.clone();
        for protocol in &mut sets.protocols {
            let own = &mut protocol.parameters.eager_limit;
            *own = limit.max(*own);
        }
        let (parameters, wanted) = (sets.parameters()?, Wanted::default());
        let job = Job { parameters, wanted, hints: None, ..self.job.clone() };
        Ok(job.simulate(self.source, &|_| {})?.stuck)
    }

    /// Smallest of the ascending `sizes` with which the schedule completes, by binary search; it
    /// completes with `largest`.
    fn smallest(&self, sizes: &[Bytes], largest: Bytes) -> Result<Bytes, RunError> {
        let (mut sizes, mut smallest) = (sizes, largest);
        while let Some((below, [size, above @ ..])) = sizes.split_at_checked(sizes.len() / 2) {
            if *size == largest || self.stuck(*size)?.total == 0 {
                (sizes, smallest) = (below, *size);
            } else {
                sizes = above;
            }
        }
        Ok(smallest)
    }
}
