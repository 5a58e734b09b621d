//! Positions in the text: of operations, and of unused labels.

use core::cell::Cell;
use core::convert::Infallible;

use super::error::{Name, ReadError, TextError};
use super::labels::Label;
use super::read::{Placed, TextMemory, read_and_note};
use super::survey::Survey;
use crate::goal::op::{Edge, Op, Sink};

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
    let mut wanted = wanted.iter_mut();
    let note = |Placed { rank, op, at, label }: Placed| {
        while let Some(next) = wanted.as_slice().first() {
            if (next.rank, next.op) > (rank, op) {
                break;
            }
            if let Some(next) = wanted.next()
                && (next.rank, next.op) == (rank, op)
            {
                next.at = Some(at);
                next.label = label.map(|label| Name::new(label.name(text)));
            }
        }
    };
    let mut sink = Uses { rank: 0, ops: 0, uses: &[], report: |_, _, _| () };
    run(read_and_note(text, survey, memory, &mut sink, note))
}

/// Label of an operation of the open rank, and whether a dependency names it. The content on entry
/// does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelUse {
    label: Option<Label>,
    used: bool,
}

/// Reports every label of the surveyed `text` that no dependency names, in the order of ranks and
/// operations. `uses` needs an element for each operation of the largest rank.
///
/// # Errors
///
/// The first error of the text.
pub fn unused_labels(
    text: &[u8],
    survey: &Survey,
    memory: TextMemory<'_>,
    uses: &mut [LabelUse],
    mut report: impl FnMut(OpPlace),
) -> Result<(), TextError> {
    let uses = Cell::from_mut(uses).as_slice_of_cells();
    let note = |Placed { op, label, .. }: Placed| {
        if let Some(slot) = uses.get(op as usize) {
            slot.set(LabelUse { label, used: false });
        }
    };
    let report = |rank, op, label: Label| {
        let name = Some(Name::new(label.name(text)));
        report(OpPlace { rank, op, at: Some(label.start), label: name });
    };
    run(read_and_note(text, survey, memory, &mut Uses { rank: 0, ops: 0, uses, report }, note))
}

fn run(done: Result<(), ReadError<Infallible>>) -> Result<(), TextError> {
    done.map_err(|error| match error {
        ReadError::Text(error) => error,
        ReadError::Sink { error, .. } => match error {},
    })
}

/// Sink that notes the use of the labels of the open rank, and reports those without.
struct Uses<'u, F> {
    rank: u32,
    ops: u32,
    uses: &'u [Cell<LabelUse>],
    report: F,
}

impl<F: FnMut(u32, u32, Label)> Sink for Uses<'_, F> {
    type Error = Infallible;

    fn begin_rank(&mut self, rank: u32) -> Result<(), Infallible> {
        (self.rank, self.ops) = (rank, 0);
        Ok(())
    }

    fn op(&mut self, _op: Op) -> Result<u32, Infallible> {
        self.ops += 1;
        Ok(self.ops - 1)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Infallible> {
        for op in [edge.op, edge.on] {
            if let Some(slot) = self.uses.get(op as usize) {
                slot.set(LabelUse { used: true, ..slot.get() });
            }
        }
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        for (op, slot) in (0..self.ops).zip(self.uses) {
            let LabelUse { label, used } = slot.get();
            if let Some(label) = label.filter(|_| !used) {
                (self.report)(self.rank, op, label);
            }
        }
        Ok(())
    }
}
