//! One record of a trace.

use loggap_core::trace::{Collective, Completed, Envelope, Message};

/// A call of a rank, or a loop of unsuccessful tests. Times are nanoseconds after the rank's base,
/// its entry into `MPI_Init`.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'t> {
    /// Name without `MPI_`. In parentheses what the tracer did itself: `(flush)` of its records,
    /// `(off)` and `(on)` of `MPI_Pcontrol`.
    pub call: &'t str,
    /// Thread of the rank, from 0.
    pub thread: u32,
    /// Time of entry.
    pub enter: u64,
    /// Time of return.
    pub leave: u64,
    /// Effect of the call.
    pub what: What<'t>,
}

/// Effect of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum What<'t> {
    /// Nothing that is known but its name.
    Call,
    /// Point-to-point operations that it executed or posted: one, two of `Sendrecv`, or many of
    /// `Startall`. Those with a request are complete when a [`What::Completions`] names it.
    Messages(Vec<Message>),
    /// Operations whose completion it reported. None, if only others were complete, such as of files.
    Completions(Vec<Completed>),
    /// A collective operation.
    Collective {
        /// Communicator, root, bytes, request.
        operation: Collective,
        /// Bytes to each peer, where the call has a list.
        sent: Counts,
        /// Bytes from each peer, where the call has a list.
        received: Counts,
    },
    /// The message that a probe found.
    Probe(Envelope),
    /// A loop of unsuccessful tests and probes, folded.
    Tests(Tests<'t>),
    /// It made (or with `freed`, gave up) the communicator of this number.
    Communicator {
        /// Number, for [`RankTrace::communicator`](super::RankTrace::communicator).
        number: u32,
        /// True if it was freed.
        freed: bool,
    },
}

impl Record<'_> {
    /// True for what the tracer did itself.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.call.starts_with('(')
    }

    /// True for a call that moves nothing, or nothing that a schedule can hold: its time counts as
    /// computing. `MPI_Finalize` is one of them.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self.what, What::Call | What::Communicator { freed: true, .. })
    }

    /// Number of calls of the program.
    #[must_use]
    pub fn calls(&self) -> u64 {
        match &self.what {
            What::Tests(tests) => {
                tests.counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
            }
            _ => u64::from(!self.is_own()),
        }
    }

    /// Time in MPI: the whole, or of tests without what the program computed between them.
    #[must_use]
    pub fn time(&self) -> u64 {
        let span = self.leave.saturating_sub(self.enter);
        match &self.what {
            What::Tests(tests) => span.saturating_sub(tests.computing),
            _ => span,
        }
    }
}

/// Unsuccessful tests of a loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tests<'t> {
    /// Number of calls by name.
    pub counts: Vec<(&'t str, u64)>,
    /// Time inside the calls, in nanoseconds.
    pub inside: u64,
    /// What gaps between them that were longer than twice the shortest exceed it by, in nanoseconds:
    /// the program computed there.
    pub computing: u64,
}

/// Bytes to or from each peer of a collective, by runs of equal ones.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Counts(pub(super) Vec<(u64, u64)>);

impl Counts {
    /// True without a list.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs: number of consecutive peers, and bytes of each.
    #[must_use]
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Bytes of each peer, in order of their ranks.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let each = |&(peers, bytes): &(u64, u64)| (0..peers).map(move |_| bytes);
        self.0.iter().flat_map(each)
    }

    /// Bytes of all together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let run = |&(peers, bytes): &(u64, u64)| peers.saturating_mul(bytes);
        self.0.iter().map(run).fold(0, u64::saturating_add)
    }
}
