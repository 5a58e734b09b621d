//! Calls of the text, and where their arguments are.

use loggap_core::trace::Direction::{self, Receive, Send};
use loggap_core::trace::Mode;

/// Effect of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Action {
    /// Sends, receives or both.
    Message(Mode),
    /// Prepares an operation.
    Persistent(Mode),
    /// Starts prepared operations.
    Start,
    /// Completes the operations that it names.
    Wait,
    /// Waits or looks for something that the text does not say.
    Test,
    /// Collective operation.
    Collective,
}

/// Role of an argument.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// Not looked at.
    Skip,
    /// Address that may stand for `MPI_IN_PLACE`.
    Buffer(Direction),
    Count(Direction),
    Type(Direction),
    /// Address and list.
    Counts(Direction),
    /// Address and list that is not looked at.
    List,
    Peer(Direction),
    Tag(Direction),
    Root,
    Comm,
    /// Address of a request, or of a list of as many as [`Role::Requests`] says.
    Request,
    Requests,
}

use Role::{Buffer, Comm, Count, Counts, List, Peer, Request, Requests, Root, Skip, Tag, Type};

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    /// Name without `MPI_`.
    pub(super) name: &'static str,
    pub(super) action: Action,
    /// Roles of the arguments, but for the request at their end.
    pub(super) roles: &'static [Role],
    pub(super) has_request: bool,
}

impl Call {
    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    const fn with_request(self) -> Self {
        Self { has_request: true, ..self }
    }
}

const fn call(name: &'static str, action: Action, roles: &'static [Role]) -> Call {
    Call { name, action, roles, has_request: false }
}

const SEND: &[Role] = &[Skip, Count(Send), Type(Send), Peer(Send), Tag(Send), Comm];
const RECV: &[Role] = &[Skip, Count(Receive), Type(Receive), Peer(Receive), Tag(Receive), Comm];
const ALL: &[Role] =
    &[Buffer(Send), Count(Send), Type(Send), Buffer(Receive), Count(Receive), Type(Receive), Comm];
const ROOTED: &[Role] = &[
    Buffer(Send),
    Count(Send),
    Type(Send),
    Buffer(Receive),
    Count(Receive),
    Type(Receive),
    Root,
    Comm,
];
const BCAST: &[Role] = &[Skip, Count(Send), Type(Send), Root, Comm];
const REDUCED_TO_ROOT: &[Role] =
    &[Buffer(Send), Buffer(Receive), Count(Send), Type(Send), Skip, Root, Comm];
const REDUCED: &[Role] = &[Buffer(Send), Buffer(Receive), Count(Send), Type(Send), Skip, Comm];

use Action::{Collective, Message, Persistent, Start, Test, Wait};
use Mode::{Buffered, Ready, Standard, Synchronous};

/// Calls whose arguments matter.
static CALLS: [Call; 52] = [
    call("Send", Message(Standard), SEND),
    call("Bsend", Message(Buffered), SEND),
    call("Ssend", Message(Synchronous), SEND),
    call("Rsend", Message(Ready), SEND),
    call("Isend", Message(Standard), SEND).with_request(),
    call("Ibsend", Message(Buffered), SEND).with_request(),
    call("Issend", Message(Synchronous), SEND).with_request(),
    call("Irsend", Message(Ready), SEND).with_request(),
    call("Recv", Message(Standard), RECV),
    call("Irecv", Message(Standard), RECV).with_request(),
    call(
        "Sendrecv",
        Message(Standard),
        &[
            Skip,
            Count(Send),
            Type(Send),
            Peer(Send),
            Tag(Send),
            Skip,
            Count(Receive),
            Type(Receive),
            Peer(Receive),
            Tag(Receive),
            Comm,
        ],
    ),
    call(
        "Sendrecv_replace",
        Message(Standard),
        &[Skip, Count(Send), Type(Send), Peer(Send), Tag(Send), Peer(Receive), Tag(Receive), Comm],
    ),
    call("Send_init", Persistent(Standard), SEND).with_request(),
    call("Bsend_init", Persistent(Buffered), SEND).with_request(),
    call("Ssend_init", Persistent(Synchronous), SEND).with_request(),
    call("Rsend_init", Persistent(Ready), SEND).with_request(),
    call("Recv_init", Persistent(Standard), RECV).with_request(),
    call("Start", Start, &[Request]),
    call("Startall", Start, &[Requests, Request]),
    call("Wait", Wait, &[Request]),
    call("Waitall", Wait, &[Requests, Request]),
    call("Waitany", Test, &[]),
    call("Waitsome", Test, &[]),
    call("Test", Test, &[]),
    call("Testall", Test, &[]),
    call("Testany", Test, &[]),
    call("Testsome", Test, &[]),
    call("Probe", Test, &[]),
    call("Iprobe", Test, &[]),
    call("Barrier", Collective, &[Comm]),
    call("Bcast", Collective, BCAST),
    call("Reduce", Collective, REDUCED_TO_ROOT),
    call("Allreduce", Collective, REDUCED),
    call("Scan", Collective, REDUCED),
    call("Exscan", Collective, REDUCED),
    call("Gather", Collective, ROOTED),
    call("Scatter", Collective, ROOTED),
    call("Allgather", Collective, ALL),
    call("Alltoall", Collective, ALL),
    call(
        "Gatherv",
        Collective,
        &[
            Buffer(Send),
            Count(Send),
            Type(Send),
            Buffer(Receive),
            Counts(Receive),
            List,
            Type(Receive),
            Root,
            Comm,
        ],
    ),
    call(
        "Scatterv",
        Collective,
        &[
            Buffer(Send),
            Counts(Send),
            List,
            Type(Send),
            Buffer(Receive),
            Count(Receive),
            Type(Receive),
            Root,
            Comm,
        ],
    ),
    call(
        "Allgatherv",
        Collective,
        &[
            Buffer(Send),
            Count(Send),
            Type(Send),
            Buffer(Receive),
            Counts(Receive),
            List,
            Type(Receive),
            Comm,
        ],
    ),
    call(
        "Alltoallv",
        Collective,
        &[
            Buffer(Send),
            Counts(Send),
            List,
            Type(Send),
            Buffer(Receive),
            Counts(Receive),
            List,
            Type(Receive),
            Comm,
        ],
    ),
    call(
        "Reduce_scatter",
        Collective,
        &[Buffer(Send), Buffer(Receive), Counts(Receive), Type(Receive), Skip, Comm],
    ),
    call(
        "Reduce_scatter_block",
        Collective,
        &[Buffer(Send), Buffer(Receive), Count(Receive), Type(Receive), Skip, Comm],
    ),
    call("Ibarrier", Collective, &[Comm]).with_request(),
    call("Ibcast", Collective, BCAST).with_request(),
    call("Iallreduce", Collective, REDUCED).with_request(),
    call("Ireduce", Collective, REDUCED_TO_ROOT).with_request(),
    call("Iallgather", Collective, ALL).with_request(),
    call("Ialltoall", Collective, ALL).with_request(),
    call("Request_free", Wait, &[Request]),
];

/// The call of this name without `MPI_`, in any case.
pub(super) fn find(name: &str) -> Option<&'static Call> {
    let plain = name.strip_suffix('_').unwrap_or(name);
    CALLS.iter().find(|call| call.name.eq_ignore_ascii_case(plain))
}
