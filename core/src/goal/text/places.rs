//! Positions in the text: of operations, and of unused labels.

use core::convert::Infallible;

use super::error::{Name, ReadError, TextError};
use super::labels::Label;
use super::read::{Events, Reader, TextMemory};
use super::survey::Survey;
use crate::goal::op::{Edge, Op};

/// Operation to locate. The caller sets rank and index; [`locate`] fills in the rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OpPlace {
    /// Rank of the operation.
    pub rank: u32,
    /// Index of the operation on its rank.
    pub op: u32,
    /// Byte offset of its statement.
    pub at: Option<usize>,
    /// Its label, if it has one.
    pub label: Option<Name>,
}

impl OpPlace {
    /// Operation `op` of `rank`, not located yet.
    #[must_use]
    pub const fn new(rank: u32, op: u32) -> Self {
        Self { rank, op, at: None, label: None }
    }
}

/// Locates operations in the surveyed `text`. `wanted` must be in ascending order of rank and
/// operation.
///
/// # Errors
///
/// The first error of the text.
pub fn locate(
    text: &[u8],
    survey: &Survey,
    memory: TextMemory<'_>,
    wanted: &mut [OpPlace],
) -> Result<(), TextError> {
    run(text, survey, memory, &mut Locator { text, here: (0, 0), wanted: wanted.iter_mut() })
}

/// Label of an operation of the open rank, and whether a dependency names it. The content on entry
/// does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelUse {
    label: Option<Label>,
    used: bool,
}

/// Reports every label of the surveyed `text` that no dependency names, in the order of ranks and
/// operations. `uses` needs [`Survey::ops_most`] elements.
///
/// # Errors
///
/// The first error of the text.
pub fn unused_labels(
    text: &[u8],
    survey: &Survey,
    memory: TextMemory<'_>,
    uses: &mut [LabelUse],
    report: impl FnMut(OpPlace),
) -> Result<(), TextError> {
    run(text, survey, memory, &mut Uses { text, rank: 0, ops: 0, uses, report })
}

fn run<E: Events<Error = Infallible>>(
    text: &[u8],
    survey: &Survey,
    memory: TextMemory<'_>,
    events: &mut E,
) -> Result<(), TextError> {
    let mut reader = Reader::new(text, survey, memory.labels);
    let done = reader.read_all(text, survey, memory.blocks, events);
    match done.map_err(|stop| stop.in_text(text)) {
        Ok(()) => Ok(()),
        Err(ReadError::Text(error)) => Err(error),
        Err(ReadError::Sink { error, .. }) => match error {},
    }
}

/// Fills in the wanted operations while the text is read.
struct Locator<'t, 'w> {
    text: &'t [u8],
    /// Rank and index of the next operation.
    here: (u32, u32),
    wanted: core::slice::IterMut<'w, OpPlace>,
}

impl Events for Locator<'_, '_> {
    type Error = Infallible;

    fn ranks(&mut self, _ranks: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Infallible> {
        self.here = (rank, 0);
        Ok(())
    }

    fn op(&mut self, at: usize, label: Option<Label>, _op: Op) -> Result<(), Infallible> {
        while let Some(next) = self.wanted.as_slice().first() {
            if (next.rank, next.op) > self.here {
                break;
            }
            if let Some(next) = self.wanted.next()
                && (next.rank, next.op) == self.here
            {
                next.at = Some(at);
                next.label = label.map(|label| Name::new(label.name(self.text)));
            }
        }
        self.here.1 = self.here.1.saturating_add(1);
        Ok(())
    }

    fn edge(&mut self, _edge: Edge) -> Result<(), Infallible> {
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Records the labels of the open rank and their use.
struct Uses<'t, 'u, F> {
    text: &'t [u8],
    rank: u32,
    ops: usize,
    uses: &'u mut [LabelUse],
    report: F,
}

impl<F: FnMut(OpPlace)> Events for Uses<'_, '_, F> {
    type Error = Infallible;

    fn ranks(&mut self, _ranks: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Infallible> {
        self.rank = rank;
        self.ops = 0;
        Ok(())
    }

    fn op(&mut self, _at: usize, label: Option<Label>, _op: Op) -> Result<(), Infallible> {
        if let Some(slot) = self.uses.get_mut(self.ops) {
            *slot = LabelUse { label, used: false };
        }
        self.ops += 1;
        Ok(())
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Infallible> {
        for op in [edge.op, edge.on] {
            if let Some(slot) = self.uses.get_mut(op as usize) {
                slot.used = true;
            }
        }
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        let uses = self.uses.get(..self.ops).unwrap_or(self.uses);
        for (op, LabelUse { label, used }) in (0..).zip(uses) {
            if let Some(label) = label.filter(|_| !used) {
                let name = Some(Name::new(label.name(self.text)));
                let at = Some(label.start);
                (self.report)(OpPlace { rank: self.rank, op, at, label: name });
            }
        }
        Ok(())
    }
}
