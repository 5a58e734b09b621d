//! Calls of the text, and where their arguments are.

use loggap_core::trace::Direction::{self, Receive as Recv, Send};
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
}

/// Calls whose arguments matter: their action, names without and with a request at the end, and roles.
macro_rules! calls {
    ($($action:expr, [$($name:ident)*] [$($posted:ident)*] $roles:expr;)*) => {
        &[$(
            $(Call { name: stringify!($name), action: $action, roles: $roles, has_request: false },)*
            $(Call { name: stringify!($posted), action: $action, roles: $roles, has_request: true },)*
        )*]
    };
}

const SEND: &[Role] = &[Skip, Count(Send), Type(Send), Peer(Send), Tag(Send), Comm];
const RECV: &[Role] = &[Skip, Count(Recv), Type(Recv), Peer(Recv), Tag(Recv), Comm];

use Action::{Collective, Message, Persistent, Start, Test, Wait};
use Mode::{Buffered, Ready, Standard, Synchronous};

static CALLS: &[Call] = calls! {
    Message(Standard), [Send] [Isend] SEND;
    Message(Buffered), [Bsend] [Ibsend] SEND;
    Message(Synchronous), [Ssend] [Issend] SEND;
    Message(Ready), [Rsend] [Irsend] SEND;
    Message(Standard), [Recv] [Irecv] RECV;
    Message(Standard), [Sendrecv] []
        &[Skip, Count(Send), Type(Send), Peer(Send), Tag(Send), Skip, Count(Recv), Type(Recv), Peer(Recv), Tag(Recv), Comm];
    Message(Standard), [Sendrecv_replace] []
        &[Skip, Count(Send), Type(Send), Peer(Send), Tag(Send), Peer(Recv), Tag(Recv), Comm];
    Persistent(Standard), [] [Send_init] SEND;
    Persistent(Buffered), [] [Bsend_init] SEND;
    Persistent(Synchronous), [] [Ssend_init] SEND;
    Persistent(Ready), [] [Rsend_init] SEND;
    Persistent(Standard), [] [Recv_init] RECV;
    Start, [Start] [] &[Request];
    Start, [Startall] [] &[Requests, Request];
    Wait, [Wait Request_free] [] &[Request];
    Wait, [Waitall] [] &[Requests, Request];
    Test, [Waitany Waitsome Test Testall Testany Testsome Probe Iprobe] [] &[];
    Collective, [Barrier] [Ibarrier] &[Comm];
    Collective, [Bcast] [Ibcast] &[Skip, Count(Send), Type(Send), Root, Comm];
    Collective, [Reduce] [Ireduce] &[Buffer(Send), Buffer(Recv), Count(Send), Type(Send), Skip, Root, Comm];
    Collective, [Allreduce Scan Exscan] [Iallreduce]
        &[Buffer(Send), Buffer(Recv), Count(Send), Type(Send), Skip, Comm];
    Collective, [Gather Scatter] []
        &[Buffer(Send), Count(Send), Type(Send), Buffer(Recv), Count(Recv), Type(Recv), Root, Comm];
    Collective, [Allgather Alltoall] [Iallgather Ialltoall]
        &[Buffer(Send), Count(Send), Type(Send), Buffer(Recv), Count(Recv), Type(Recv), Comm];
    Collective, [Gatherv] []
        &[Buffer(Send), Count(Send), Type(Send), Buffer(Recv), Counts(Recv), List, Type(Recv), Root, Comm];
    Collective, [Scatterv] []
        &[Buffer(Send), Counts(Send), List, Type(Send), Buffer(Recv), Count(Recv), Type(Recv), Root, Comm];
    Collective, [Allgatherv] []
        &[Buffer(Send), Count(Send), Type(Send), Buffer(Recv), Counts(Recv), List, Type(Recv), Comm];
    Collective, [Alltoallv] []
        &[Buffer(Send), Counts(Send), List, Type(Send), Buffer(Recv), Counts(Recv), List, Type(Recv), Comm];
    Collective, [Reduce_scatter] [] &[Buffer(Send), Buffer(Recv), Counts(Recv), Type(Recv), Skip, Comm];
    Collective, [Reduce_scatter_block] [] &[Buffer(Send), Buffer(Recv), Count(Recv), Type(Recv), Skip, Comm];
};

/// The call of this name without `MPI_`, in any case.
pub(super) fn find(name: &str) -> Option<&'static Call> {
    let plain = name.strip_suffix('_').unwrap_or(name);
    CALLS.iter().find(|call| call.name.eq_ignore_ascii_case(plain))
}
