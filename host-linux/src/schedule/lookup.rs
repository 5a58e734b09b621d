//! Random access to the operations of programs that are looked up as they run: binary files of
//! either format, and extrapolated traces.

use loggap_core::goal::binary::{NativeLookup, Reference};
use loggap_core::goal::{DependsOn, Lookup, Op, OpIndex};

use super::tags::{TagNumbers, with_number};
use crate::sys::prefetch;
use crate::trace::extrapolate::ExtrapolatedLookup;

/// A program whose large tags are replaced by their numbers. A single type, so that the simulation
/// is compiled only once.
#[derive(Clone, Copy, Debug)]
pub enum NumberedLookup<'f> {
    /// A binary file, and the numbers.
    File(FileLookup<'f>, &'f TagNumbers),
    /// An extrapolated trace, whose tags are numbers.
    Extrapolated(ExtrapolatedLookup<'f>),
}

/// A binary file of either format.
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
        match self {
            Self::File(file, tags) => with_number(file.op(index)?, |tag| tags.number(tag)),
            Self::Extrapolated(program) => program.op(index),
        }
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        match self {
            Self::File(file, _) => file.dependencies(index),
            Self::Extrapolated(program) => program.dependencies(index),
        }
    }

    fn dependents(&self, index: OpIndex, tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        match self {
            Self::File(file, _) => file.dependents(index, tell),
            Self::Extrapolated(program) => program.dependents(index, tell),
        }
    }

    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()> {
        match self {
            Self::File(file, _) => file.roots(rank, tell),
            Self::Extrapolated(program) => program.roots(rank, tell),
        }
    }

    #[inline]
    fn fetch<T>(place: &T) {
        prefetch::fetch(place);
    }

    #[inline]
    fn fetch_rank(&self, rank: u32) {
        if let Self::Extrapolated(program) = self {
            program.fetch_rank(rank);
        }
    }
}
