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
    /// A file in the native format, and the numbers.
    Native(NativeLookup<'f>, &'f TagNumbers),
    /// A file in LogGOPSim's format, and the numbers.
    Reference(Reference<'f>, &'f TagNumbers),
    /// An extrapolated trace, whose tags are numbers.
    Extrapolated(ExtrapolatedLookup<'f>),
}

/// Forwards a call to the program, whichever it is.
macro_rules! forward {
    ($self:ident, $program:ident => $asked:expr) => {
        match $self {
            Self::Native($program, _) => $asked,
            Self::Reference($program, _) => $asked,
            Self::Extrapolated($program) => $asked,
        }
    };
}

impl Lookup for NumberedLookup<'_> {
    fn op(&self, index: OpIndex) -> Option<Op> {
        let op = forward!(self, program => program.op(index))?;
        match self {
            Self::Native(_, tags) | Self::Reference(_, tags) => {
                with_number(op, |tag| tags.number(tag))
            }
            Self::Extrapolated(_) => Some(op),
        }
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        forward!(self, program => program.dependencies(index))
    }

    fn dependents(&self, index: OpIndex, tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        forward!(self, program => program.dependents(index, tell))
    }

    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()> {
        forward!(self, program => program.roots(rank, tell))
    }

    #[inline]
    fn prefetch<T>(place: &T) {
        prefetch::prefetch(place);
    }

    #[inline]
    fn prefetch_rank(&self, rank: u32) {
        if let Self::Extrapolated(program) = self {
            program.prefetch_rank(rank);
        }
    }
}
