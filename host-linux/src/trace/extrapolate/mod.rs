//! Traced programs on more ranks than were traced.
//!
//! A rank of the larger program runs the program of a traced rank, with its peers shifted
//! (`mapping`). With copies, as Schedgen 1 makes them (`--traces-extr`), the traced ranks are
//! repeated, and only their collective operations are common. On a grid, neighbours stay
//! neighbours: the traced ranks of a corner, an edge and so on have to do the same (`grid`).
//! Collective operations are the messages of an algorithm among all members of the larger group
//! (`expansion`).
//!
//! Only the traced programs are stored (`sequence`). The operations of the larger program are made
//! as they are asked for (`lookup`).

mod between;
mod build;
mod communication;
mod error;
mod expansion;
mod fit;
mod grid;
mod lookup;
mod mapping;
mod pattern;
mod phases;
mod runs;
mod sequence;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use loggap_core::goal::{ANY, DependsOn, Edge, Op, OpKind, Sink};

pub use communication::{Difference, Misfit};
pub use error::ExtrapolateError;
pub use fit::{Form, Growth, SizeOn};
pub use grid::Grid;
pub use lookup::{ExtrapolatedLookup, UnderWay};
pub use mapping::Dimension;

use super::convert::{Algorithms, Conversion, ConvertError, Options, Report};
use crate::schedule::TagNumbers;
use expansion::{Expansion, Kind, Work};
use mapping::{Extents, Mapping, Step};
use sequence::Sequence;
pub(crate) use sequence::count;

/// Memory for something of each of `ranks` ranks.
fn room<T>(ranks: u32) -> io::Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(ranks as usize)?;
    Ok(all)
}

/// Size of the larger program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Scaling {
    /// Number of copies of the traced ranks.
    Copies(u32),
    /// A larger grid.
    Grid(Grid),
    /// Number of ranks of a ring, of a line, or of trees.
    Ranks(u32),
}

/// A traced program on more ranks. Clones share its operations.
#[derive(Clone, Debug)]
pub struct Extrapolation {
    mapping: Mapping,
    ranks: u32,
    /// Programs of the traced ranks, and of those between two of them.
    sequences: Arc<[Sequence]>,
    steps: Vec<Step>,
    kinds: Vec<Kind>,
    options: Options,
    tags: Arc<TagNumbers>,
    report: Report,
    /// Communications of a rank that are taken for those along a dimension of one rank.
    nulls: usize,
    /// Rings and trees that were found, in words.
    patterns: Vec<String>,
    /// Growth of the computation of ranks with the same place, by its name.
    growths: Vec<(String, Growth)>,
}

impl Extrapolation {
    /// Extrapolates traces of a program on different numbers of ranks. The one on the most is used,
    /// the others test the rule, and tell how sizes and computation grow.
    ///
    /// # Errors
    ///
    /// [`ExtrapolateError`].
    pub fn new(conversions: &[Conversion], scaling: &Scaling) -> Result<Self, ExtrapolateError> {
        build::build(conversions, scaling)
    }

    /// Number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Dimensions of the grid; for copies a first one along which they stand.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.mapping.dimensions
    }

    /// Algorithms of its collective operations.
    pub const fn algorithms(&mut self) -> &mut Algorithms {
        &mut self.options.algorithms
    }

    /// What became of the calls of the trace.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Tags of the trace; simulations see their numbers.
    pub fn tags(&self) -> Arc<TagNumbers> {
        Arc::clone(&self.tags)
    }

    /// Memory, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sequences: u64 = self.sequences.iter().map(Sequence::bytes).sum();
        sequences + UnderWay::BYTES_A_RANK * u64::from(self.ranks)
    }

    /// Growth of the computation of ranks with the same place, by its name; none from one trace.
    #[must_use]
    pub fn growths(&self) -> &[(String, Growth)] {
        &self.growths
    }

    /// Sends, receives and calculations of each rank, if all are on the first processor of their rank
    /// and without wildcards. Calls `note` with sizes of messages and the number of messages of that size.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub(crate) fn counts(
        &self,
        note: &mut dyn FnMut(u64, u64),
    ) -> io::Result<Option<Vec<[u32; 3]>>> {
        let plain: Option<Vec<_>> = self.sequences.iter().map(Sequence::counts).collect();
        let Some(plain) = plain else { return Ok(None) };
        let kinds: Vec<_> = self.sequences.iter().map(Sequence::kinds).collect();
        let mut ranks_of = vec![0u64; plain.len()];
        let mut all = room(self.ranks())?;
        for rank in 0..self.ranks {
            let program = self.mapping.source(rank) as usize;
            if let Some(ranks) = ranks_of.get_mut(program) {
                *ranks += 1;
            }
            let mut counts = plain.get(program).copied().unwrap_or_default();
            for (kind, times) in kinds.get(program).into_iter().flatten() {
                let expansion = self.expansion(*kind, rank);
                let mut once = [0; 3];
                for kind in (0..expansion.len()).filter_map(|at| expansion.operation(at, 0)) {
                    count(kind, &mut once);
                    if let OpKind::Send { size, .. } = kind {
                        note(size, (*times).into());
                    }
                }
                counts.iter_mut().zip(once).for_each(|(count, once)| *count += times * once);
            }
            all.push(counts);
        }
        for (sequence, ranks) in self.sequences.iter().zip(ranks_of).filter(|(_, ranks)| *ranks > 0)
        {
            for op in &sequence.ops {
                if let OpKind::Send { size, .. } = op.kind {
                    note(size, ranks);
                }
            }
        }
        Ok(Some(all))
    }

    /// True if there are at most `most` operations. Stops counting beyond these.
    pub(crate) fn has_at_most(&self, most: u64) -> bool {
        let kinds: Vec<_> = self.sequences.iter().map(Sequence::kinds).collect();
        let mut ops = 0u64;
        for rank in 0..self.ranks {
            let program = self.mapping.source(rank) as usize;
            ops += self.sequences.get(program).map_or(0, |sequence| sequence.len().into());
            for (kind, times) in kinds.get(program).into_iter().flatten() {
                // An element stands for each call.
                let further = self.expansion(*kind, rank).len().saturating_sub(1);
                ops += u64::from(further) * u64::from(*times);
            }
            if ops > most {
                return false;
            }
        }
        true
    }

    /// Point-to-point messages of all ranks.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let plain: Vec<u64> = self.sequences.iter().map(Sequence::sends).collect();
        let of = |rank| plain.get(self.mapping.source(rank) as usize).copied().unwrap_or(0);
        (0..self.ranks).map(of).sum::<u64>() + self.messages_of_patterns()
    }

    fn messages_of_patterns(&self) -> u64 {
        // All ranks have the same patterns.
        let kinds = self.sequences.first().map(Sequence::kinds).unwrap_or_default();
        let of = |(kind, times): (u32, u32)| match self
            .kinds
            .get(kind as usize)
            .map(|kind| &kind.work)
        {
            Some(Work::Pattern { pattern, .. }) => {
                let rounds =
                    (0..self.ranks()).flat_map(|rank| pattern.rounds(rank, self.ranks(), 0));
                u64::from(times) * rounds.map(|round| round.sends.len() as u64).sum::<u64>()
            }
            _ => 0,
        };
        kinds.into_iter().map(of).sum()
    }

    /// One line: extents in the trace and in the larger program.
    #[must_use]
    pub fn summary(&self) -> String {
        let [traced, target] = [
            Extents(&self.mapping.dimensions, |one| one.traced),
            Extents(&self.mapping.dimensions, |one| one.target),
        ];
        match self.mapping.dimensions.as_slice() {
            [copies, ranks] if copies.traced == 1 => {
                let (copies, ranks) = (copies.target, ranks.traced);
                format!(
                    "{copies} copies of {ranks} ranks, joined by collectives: {copies} times the work"
                )
            }
            _ if self.patterns.is_empty() => format!("a grid of {target} from {traced} ranks"),
            _ => {
                let (ranks, traced) = (self.ranks(), self.sequences.len());
                format!("{} on {ranks} ranks from {traced}", self.patterns.join(", "))
            }
        }
    }

    /// Warning, in one line, that sends and receives of `MPI_PROC_NULL` may have been misunderstood.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let nulls = Some(self.nulls).filter(|nulls| *nulls > 0)?;
        let far = self.mapping.dimensions.iter().position(Dimension::has_ends_only);
        let Some(far) = far.map(|at| at + 1) else {
            return Some(format!(
                "{nulls} sends and receives of a rank between others are with MPI_PROC_NULL; if they go \
                 past the ends of the traced grid, they are missing: trace more ranks"
            ));
        };
        Some(format!(
            "{nulls} sends and receives of a rank are with MPI_PROC_NULL on all traced ranks, and are \
             taken for those along a dimension of one rank; if some go over 2 or more ranks along \
             dimension {far}, they are missing: a trace on 3 or more ranks along it tells"
        ))
    }

    /// Writes the program into `sink`, with the numbers of tags in their place.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Sink`].
    pub fn feed_numbered<S: Sink>(&self, sink: &mut S) -> Result<(), ConvertError<S::Error>> {
        let ranks = self.ranks();
        sink.ranks(ranks).map_err(|error| ConvertError::Sink { rank: 0, error })?;
        let mut begins = Vec::new();
        for rank in 0..ranks {
            self.feed_rank(rank, &mut begins, sink)
                .map_err(|error| ConvertError::Sink { rank, error })?;
        }
        Ok(())
    }

    /// Writes a rank; `begins` is scratch memory for the first operation of each element.
    fn feed_rank<S: Sink>(
        &self,
        rank: u32,
        begins: &mut Vec<u32>,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        begins.clear();
        let source = self.mapping.source(rank) as usize;
        let Some(sequence) = self.sequences.get(source) else { return Ok(()) };
        let mut expansions: HashMap<u32, Expansion> = HashMap::new();
        let mut calls = sequence.calls.iter().peekable();
        sink.begin_rank(rank)?;
        let mut waited_for = Vec::new();
        for (element, op) in (0..).zip(&sequence.ops) {
            waited_for.clear();
            for link in sequence.waits(element) {
                let begin = begins.get(link.element() as usize).copied().unwrap_or(0);
                let kind = sequence.kind_of(link.element()).filter(|_| link.is_call());
                let last =
                    kind.and_then(|kind| expansions.get(&kind)).map_or(0..1, Expansion::last);
                let start = link.event() == DependsOn::Start;
                waited_for.extend(last.map(|at| Edge { op: 0, on: begin + at, start }));
            }
            let Some(call) = calls.next_if(|call| call.element == element) else {
                let Some(placed) = self.placed(*op, rank) else { continue };
                begins.push(write(placed, &waited_for, sink)?);
                continue;
            };
            let new = || self.expansion(call.kind, rank);
            let expansion = expansions.entry(call.kind).or_insert_with(new);
            let mut first = None;
            for stage in (0..).map_while(|number| expansion.stage(number)) {
                let mut written = Vec::with_capacity(stage.len());
                for kind in stage.filter_map(|at| expansion.operation(at, call.tag)) {
                    let on = write(Op { kind, ..*op }, &waited_for, sink)?;
                    written.push(Edge { op: 0, on, start: false });
                }
                first = first.or(written.first().map(|edge| edge.on));
                waited_for = written;
            }
            begins.push(first.unwrap_or(0));
        }
        sink.end_rank()
    }

    fn expansion(&self, kind: u32, rank: u32) -> Expansion {
        match self.kinds.get(kind as usize) {
            Some(kind) => Expansion::new(self, kind, rank),
            None => Expansion::nothing(),
        }
    }

    /// An operation of a sequence, at a rank of the larger program.
    #[inline]
    fn placed(&self, mut op: Op, rank: u32) -> Option<Op> {
        if let OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } = &mut op.kind
            && *peer != ANY
        {
            *peer = self.mapping.after(rank, self.steps.get(*peer as usize)?);
        }
        Some(op)
    }
}

/// Writes an operation with its dependencies, whose own number is added.
fn write<S: Sink>(op: Op, waited_for: &[Edge], sink: &mut S) -> Result<u32, S::Error> {
    let op = sink.op(op)?;
    for edge in waited_for {
        sink.edge(Edge { op, ..*edge })?;
    }
    Ok(op)
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of tests are small"
)]
mod tests;
