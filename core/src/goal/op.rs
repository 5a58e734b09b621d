//! Operations of a schedule, and the trait [`Sink`] through which producers (parsers, generators)
//! pass them to consumers (writers, the simulator's builders).

use crate::units::Picos;

/// Wildcard of a receive's peer.
pub const ANY: u32 = u32::MAX;

/// Wildcard of a tag, on either side.
pub const ANY_TAG: u64 = u64::MAX;

/// Kind of an operation, with its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OpKind {
    /// Sends `size` bytes to `peer`.
    Send {
        /// Receiving rank.
        peer: u32,
        /// Message length in bytes.
        size: u64,
        /// Message tag, possibly [`ANY_TAG`].
        tag: u64,
    },
    /// Receives `size` bytes from `peer`.
    Receive {
        /// Sending rank, or [`ANY`].
        peer: u32,
        /// Expected message length in bytes.
        size: u64,
        /// Message tag, possibly [`ANY_TAG`].
        tag: u64,
    },
    /// Computes.
    Calc {
        /// Duration of the calculation.
        duration: Picos,
    },
}

/// One operation of one rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Op {
    /// Kind of the operation.
    pub kind: OpKind,
    /// Processor of the rank that it occupies.
    pub cpu: u16,
    /// Network interface of the rank that it occupies; 0 for a calc.
    pub nic: u16,
}

/// A dependency between two operations of a rank, by their indices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Edge {
    /// Operation that waits.
    pub op: u32,
    /// Operation that it waits for.
    pub on: u32,
    /// True if it waits for the start only.
    pub start: bool,
}

/// Consumer of a schedule.
///
/// Calls come rank by rank, in ascending order, each rank once: `begin_rank`, then its operations
/// and dependencies in any order in which a dependency follows both its operations, then
/// `end_rank`.
pub trait Sink {
    /// Reason why an element was refused.
    type Error;

    /// Announces the number of ranks, once, before everything else.
    ///
    /// # Errors
    ///
    /// The sink cannot hold as many.
    #[inline]
    fn ranks(&mut self, _ranks: u32) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Opens a rank.
    ///
    /// # Errors
    ///
    /// The sink is full, or the rank is not the next one.
    #[inline]
    fn begin_rank(&mut self, _rank: u32) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Adds an operation to the open rank and returns its index there,
    /// counted from 0.
    ///
    /// # Errors
    ///
    /// The sink is full, or the operation is out of its range.
    fn op(&mut self, op: Op) -> Result<u32, Self::Error>;

    /// Adds a dependency.
    ///
    /// # Errors
    ///
    /// The sink is full, or an index is unknown.
    fn edge(&mut self, edge: Edge) -> Result<(), Self::Error>;

    /// Lets operation `op` wait until operation `on` has completed.
    ///
    /// # Errors
    ///
    /// As [`Sink::edge`].
    #[inline]
    fn requires(&mut self, op: u32, on: u32) -> Result<(), Self::Error> {
        self.edge(Edge { op, on, start: false })
    }

    /// Closes the open rank.
    ///
    /// # Errors
    ///
    /// The sink is full.
    #[inline]
    fn end_rank(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
