//! Control frames as plain structs.

use loggap_core::units::Picos;
use loggap_core::wire::{self, FRAME_LEN, ROUNDS_PER_BATCH};

use crate::boundary::{Place, plain};
use crate::status::finish;

/// Length of every control frame, in bytes.
pub const LOGGAP_FRAME_BYTES: usize = 448;
const _: () = assert!(LOGGAP_FRAME_BYTES == FRAME_LEN, "the core's frames have another length");

/// Maximum number of different rounds that one frame announces.
pub const LOGGAP_FRAME_ROUNDS: usize = 16;
const _: () = assert!(LOGGAP_FRAME_ROUNDS == ROUNDS_PER_BATCH, "the core's batches differ");

/// Limits that a responder enforces.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Bounds {
    /// Largest message and largest reply, in bytes.
    pub message: u32,
    /// Maximum number of messages per round.
    pub messages: u32,
    /// Maximum number of rounds per batch, repetitions included.
    pub rounds: u32,
    /// Longest pause between two receives that an initiator may request, in ps.
    pub pause_ps: u64,
    /// Longest silence of the initiator, in ps.
    pub silence_ps: u64,
    /// Longest session, in ps.
    pub session_ps: u64,
}

impl Bounds {
    pub(crate) fn from_core(bounds: &wire::Bounds) -> Self {
        Self {
            message: bounds.message,
            messages: bounds.messages,
            rounds: bounds.rounds,
            pause_ps: bounds.pause.0,
            silence_ps: bounds.silence.0,
            session_ps: bounds.session.0,
        }
    }

    pub(crate) fn to_core(self) -> wire::Bounds {
        wire::Bounds {
            message: self.message,
            messages: self.messages,
            rounds: self.rounds,
            pause: Picos(self.pause_ps),
            silence: Picos(self.silence_ps),
            session: Picos(self.session_ps),
        }
    }
}

/// Fills in the default limits of a responder: 1 MiB, 65,536 messages per
/// round, 65,536 rounds per batch, 1 s of pause, 10 s of silence, 1 h per
/// session.
///
/// Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_bounds_default(bounds: *mut Bounds) -> i32 {
    // SAFETY: by the contract of this function.
    let place = unsafe { Place::new(bounds) };
    let outcome = place.map(|mut place| place.put(Bounds::from_core(&wire::Bounds::default())));
    // SAFETY: a null detail is allowed.
    unsafe { finish(outcome, core::ptr::null_mut()) }
}

/// Kind of a control frame, with the fields that it uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum FrameKind {
    /// Initiator: opens a session. `versions`, `capabilities`, `bounds`, `nonce`.
    Hello = 1,
    /// Responder: accepts the session. `version`, `capabilities`, `bounds`.
    Welcome = 2,
    /// Responder: refuses to continue. `refusal`, `limited`, `asked`,
    /// `allowed`, `versions`, `responder_versions`.
    Refuse = 3,
    /// Responder: other initiators come first. `position`.
    Queue = 4,
    /// Initiator: announces rounds. `sequence`, `rounds`, `round_count`.
    Batch = 5,
    /// Responder: waits for the first message of the batch. `sequence`.
    Ready = 6,
    /// Responder: its own timings of a batch. `sequence`, `values_ps`, `round_count`.
    Report = 7,
    /// Initiator: drops the batch under way. `token`.
    Sync = 8,
    /// Responder: has dropped the batch. `token`, `received`, `replied`.
    Synced = 9,
    /// Initiator: ends the session.
    Bye = 10,
    /// Responder: asks for the hello again, with this `nonce`.
    Challenge = 11,
}

/// Reason why a responder refuses to continue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum RefusalKind {
    /// Initiator and responder have no version in common: `versions`,
    /// `responder_versions`.
    Version = 0,
    /// Another initiator is being served, and `asked` others wait.
    Busy = 1,
    /// The initiator asks for `asked` units of `limited`; `allowed` are allowed.
    Bounds = 2,
    /// A frame of kind `asked` is out of order.
    OutOfOrder = 3,
    /// A frame was expected, but byte `asked` of the message is wrong.
    Malformed = 4,
}

/// Quantity that a limit bounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum LimitedKind {
    /// Bytes in a message.
    Message = 0,
    /// Messages in a round.
    Messages = 1,
    /// Rounds in a batch.
    Rounds = 2,
    /// Picoseconds between two receives.
    Pause = 3,
    /// Picoseconds of silence.
    Silence = 4,
    /// Picoseconds of the whole session.
    Session = 5,
}

/// A round, and how often it is repeated.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Round {
    /// Messages from the initiator, at least 1.
    pub messages: u32,
    /// Bytes in each of them, at least 1.
    pub size: u32,
    /// Bytes in each reply, at least 1.
    pub reply_size: u32,
    /// Number of times that the round is run, 1 to 65,535.
    pub repeats: u32,
    /// 0: one reply after the last message; 1: one after each.
    pub reply_each: u32,
    /// 1 if the responder times its receive calls; only if `repeats` is 1.
    pub timed: u32,
    /// Time that the responder waits before polling for each message but the
    /// first, in ps.
    pub pause_ps: u64,
}

/// A control frame. Each `loggap_frame_kind` lists the fields that it uses; the
/// others are 0 and ignored.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Frame {
    /// A `loggap_frame_kind`.
    pub kind: u32,
    /// Sequence number of the batch's first round.
    pub sequence: u32,
    /// Number that identifies a synchronisation.
    pub token: u32,
    /// Number of initiators before this one.
    pub position: u32,
    /// Lowest and highest version that the initiator speaks.
    pub versions: [u32; 2],
    /// Lowest and highest version that the responder speaks.
    pub responder_versions: [u32; 2],
    /// Version that both speak.
    pub version: u32,
    /// Capability bits. Bit 0: the sender can request, or provide, a
    /// description of the responder, with frames of kinds that are not listed
    /// here.
    pub capabilities: u32,
    /// Limits that the initiator requests, or the responder enforces.
    pub bounds: Bounds,
    /// A `loggap_refusal_kind`.
    pub refusal: u32,
    /// A `loggap_limited_kind`.
    pub limited: u32,
    /// Value asked for; see `loggap_refusal_kind`.
    pub asked: u64,
    /// Value allowed; see `loggap_refusal_kind`.
    pub allowed: u64,
    /// Number of data messages that the responder has received.
    pub received: u64,
    /// Number of data messages that the responder has sent.
    pub replied: u64,
    /// Nonce of a challenge; 0 if there was none.
    pub nonce: u64,
    /// Number of elements of `rounds` or `values_ps` in use, 1 to `LOGGAP_FRAME_ROUNDS`.
    pub round_count: u32,
    /// Rounds of a batch.
    pub rounds: [Round; LOGGAP_FRAME_ROUNDS],
    /// Time in the receive calls of each round, in ps; 0 if not timed.
    pub values_ps: [u64; LOGGAP_FRAME_ROUNDS],
}

plain!(Bounds, Round, Frame);
