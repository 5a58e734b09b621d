//! A traced call: its name, what happens to it, and where its arguments are.

/// Treatment of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    /// Begins tracing.
    Init,
    /// Ends tracing.
    Finalize,
    /// Ends the job: what is there is written before.
    Abort,
    /// Send, receive or both; persistent where the name ends in `_init`.
    Message,
    /// As `Message`, of a buffered send.
    Buffered,
    /// As `Message`, of a synchronous send.
    Synchronous,
    /// As `Message`, of a ready send.
    Ready,
    /// Receive of a message that a probe matched.
    Matched,
    /// Any probe; with a flag it may be unsuccessful.
    Probe,
    /// Start of persistent operations.
    Start,
    /// A request is given up.
    Free,
    /// Any wait or test.
    Complete,
    /// A test that completes nothing.
    Peek,
    /// Collective operation.
    Collective,
    /// Collective operation whose receive arguments are significant at the root only.
    Gather,
    /// Collective operation whose send arguments are significant at the root only.
    Scatter,
    /// Collective operation among neighbours.
    Neighbor,
    /// A new communicator.
    Create,
    /// A new communicator with the members of the old one, not usable yet.
    Duplicate,
    /// A communicator is given up.
    FreeComm,
    /// Recorded by name only.
    Name,
}

/// Number of an argument that a call does not have.
pub(crate) const NONE: u8 = u8::MAX;

macro_rules! positions {
    ($($(#[doc = $doc:literal])* $role:ident)*) => {
        /// Positions of arguments by role; [`NONE`] if the call has no such argument.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Positions {
            $($(#[doc = $doc])* pub(crate) $role: u8,)*
        }

        impl Positions {
            /// Positions of a call without arguments.
            pub(crate) const NOWHERE: Self = Self { $($role: NONE,)* };
        }
    };
}

positions! {
    /// Send and receive buffer, which may be `MPI_IN_PLACE`.
    sbuf rbuf
    /// Count, list of counts, datatype and list of datatypes of what is sent and received.
    scount scounts stype stypes rcount rcounts rtype rtypes
    /// Peers and tags.
    dest stag source rtag root comm newcomm
    /// Message of a matched probe.
    message
    /// Request, or list of `incount` requests.
    request incount
    /// Results of completion calls.
    flag index outcount indices status statuses
}

impl Positions {
    /// True if the call changes handles that are recorded, or has statuses that a caller may ignore.
    pub(crate) const fn are_kept(&self) -> bool {
        self.status != NONE
            || self.statuses != NONE
            || self.request != NONE
            || self.newcomm != NONE
            || self.message != NONE
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Number in the table.
    pub(crate) id: u32,
    /// Name without `MPI_`.
    pub(crate) name: &'static str,
    pub(crate) action: Action,
    pub(crate) at: Positions,
    pub(crate) count: Count,
}

impl Call {
    /// True for `Send_init` and the like.
    pub(crate) fn is_persistent(&self) -> bool {
        self.name.ends_with("_init")
    }
}

/// Type of the counts of a call, in C.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Count {
    /// `int`.
    Int,
    /// `MPI_Count`.
    Large,
}

/// Language of the caller, which decides how arguments are passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Language {
    /// By value; handles are the library's own.
    C,
    /// By reference; handles are integers. Fortran 77 and 90.
    Fortran,
    /// As Fortran, of Fortran 2008.
    Modern,
    /// As Fortran 2008, with descriptors of buffers (`mpi_f08` of MPICH).
    Descriptors,
}
