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

/// Positions of arguments by role; [`NONE`] if the call has no such argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions {
    /// Send and receive buffer, which may be `MPI_IN_PLACE`.
    pub(crate) sbuf: u8,
    pub(crate) rbuf: u8,
    /// Count, list of counts, datatype and list of datatypes of what is sent and received.
    pub(crate) scount: u8,
    pub(crate) scounts: u8,
    pub(crate) stype: u8,
    pub(crate) stypes: u8,
    pub(crate) rcount: u8,
    pub(crate) rcounts: u8,
    pub(crate) rtype: u8,
    pub(crate) rtypes: u8,
    /// Peers and tags.
    pub(crate) dest: u8,
    pub(crate) stag: u8,
    pub(crate) source: u8,
    pub(crate) rtag: u8,
    pub(crate) root: u8,
    pub(crate) comm: u8,
    pub(crate) newcomm: u8,
    /// Message of a matched probe.
    pub(crate) message: u8,
    /// Request, or list of `incount` requests.
    pub(crate) request: u8,
    pub(crate) incount: u8,
    /// Results of completion calls.
    pub(crate) flag: u8,
    pub(crate) index: u8,
    pub(crate) outcount: u8,
    pub(crate) indices: u8,
    pub(crate) status: u8,
    pub(crate) statuses: u8,
}

impl Positions {
    /// Positions of a call without arguments.
    pub(crate) const NOWHERE: Self = Self {
        sbuf: NONE,
        rbuf: NONE,
        scount: NONE,
        scounts: NONE,
        stype: NONE,
        stypes: NONE,
        rcount: NONE,
        rcounts: NONE,
        rtype: NONE,
        rtypes: NONE,
        dest: NONE,
        stag: NONE,
        source: NONE,
        rtag: NONE,
        root: NONE,
        comm: NONE,
        newcomm: NONE,
        message: NONE,
        request: NONE,
        incount: NONE,
        flag: NONE,
        index: NONE,
        outcount: NONE,
        indices: NONE,
        status: NONE,
        statuses: NONE,
    };
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
