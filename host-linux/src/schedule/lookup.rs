//! Random access to the operations of a binary file of either format.

use loggap_core::goal::binary::{NativeLookup, Reference};
use loggap_core::goal::{DependsOn, Lookup, Op, OpIndex};

use super::tags::{TagNumbers, with_number};

/// A binary file whose large tags are replaced by their numbers.
#[derive(Clone, Copy, Debug)]
pub struct NumberedLookup<'f> {
    pub(super) file: FileLookup<'f>,
    pub(super) tags: &'f TagNumbers,
}

/// A binary file of either format. A single type, so that the simulation of files is compiled only
/// once.
#[derive(Clone, Copy, Debug)]
pub enum FileLookup<'f> {
    /// Native format.
    Native(NativeLookup<'f>),
    /// LogGOPSim's format.
    Reference(Reference<'f>),
}

/// Forwards a call to the file, whichever format it has.
macro_rules! forward {
    ($self:ident, $file:ident => $asked:expr) => {
        match $self {
            FileLookup::Native($file) => $asked,
            FileLookup::Reference($file) => $asked,
        }
    };
}

impl Lookup for FileLookup<'_> {
    fn op(&self, index: OpIndex) -> Option<Op> {
        forward!(self, file => file.op(index))
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        forward!(self, file => file.dependencies(index))
    }

    fn dependents(&self, index: OpIndex, tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        forward!(self, file => file.dependents(index, tell))
    }

    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()> {
        forward!(self, file => file.roots(rank, tell))
    }
}

impl Lookup for NumberedLookup<'_> {
    fn op(&self, index: OpIndex) -> Option<Op> {
        with_number(self.file.op(index)?, |tag| self.tags.number(tag))
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        self.file.dependencies(index)
    }

    fn dependents(&self, index: OpIndex, tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        self.file.dependents(index, tell)
    }

    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()> {
        self.file.roots(rank, tell)
    }
}
