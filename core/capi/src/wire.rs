//! Control frames as plain structs.

use loggap_core::units::Picos;
use loggap_core::wire::{self, FRAME_LEN, ROUNDS_PER_BATCH};

use crate::boundary::{Place, plain};
use crate::status::finish;

/// Bytes of every control frame.
pub const LOGGAP_FRAME_BYTES: usize = 448;
const _: () = assert!(LOGGAP_FRAME_BYTES == FRAME_LEN, "the core's frames have another length");

/// Most different rounds that one frame announces.
pub const LOGGAP_FRAME_ROUNDS: usize = 16;
const _: () = assert!(LOGGAP_FRAME_ROUNDS == ROUNDS_PER_BATCH, "the core's batches differ");

/// What a responder allows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Bounds {
    /// Bytes of the largest message and of the largest reply.
    pub message: u32,
    /// Most messages in one round.
    pub messages: u32,
    /// Most rounds in one batch, repetitions counted.
    pub rounds: u32,
    /// Longest pause between two receives that the responder is asked for,
    /// in ps.
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

/// Fills in the bounds that a responder has unless told otherwise: 1 MiB,
/// 65,536 messages a round, 65,536 rounds a batch, 1 s of pause, 10 s of
/// silence, 1 h altogether.
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

/// What a frame says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum FrameKind {
    /// Initiator: opens a session. `versions`, `capabilities`, `bounds`, `nonce`.
    Hello = 1,
    /// Responder: accepts it. `version`, `capabilities`, `bounds`.
    Welcome = 2,
    /// Responder: does not go on. `refusal`, `limited`, `asked`, `allowed`,
    /// `versions`, `responder_versions`.
    Refuse = 3,
    /// Responder: others are before. `position`.
    Queue = 4,
    /// Initiator: announces rounds. `sequence`, `rounds`, `round_count`.
    Batch = 5,
    /// Responder: waits for the first message of the batch. `sequence`.
    Ready = 6,
    /// Responder: its own timings. `sequence`, `values_ps`, `round_count`.
    Report = 7,
    /// Initiator: drops whatever is under way. `token`.
    Sync = 8,
    /// Responder: has dropped it. `token`, `received`, `replied`.
    Synced = 9,
    /// Initiator: the session is over.
    Bye = 10,
    /// Responder: asks for a hello with this `nonce`.
    Challenge = 11,
}

/// Why a responder does not go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum RefusalKind {
    /// No version is known to both: `versions`, `responder_versions`.
    Version = 0,
    /// Another initiator is served and `asked` wait.
    Busy = 1,
    /// `asked` of what `limited` says, where `allowed` are allowed.
    Bounds = 2,
    /// A frame of kind `asked` does not belong there.
    OutOfOrder = 3,
    /// No frame where one belongs; byte `asked` was wrong.
    Malformed = 4,
}

/// What a bound is about.
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

/// A round, or the same round several times in a row.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Round {
    /// Messages from the initiator, at least 1.
    pub messages: u32,
    /// Bytes in each of them, at least 1.
    pub size: u32,
    /// Bytes in each reply, at least 1.
    pub reply_size: u32,
    /// How often the round is repeated, 1 to 65,535.
    pub repeats: u32,
    /// 0: one reply after the last message; 1: one after each.
    pub reply_each: u32,
    /// 1 where the responder times its receive calls; only without
    /// repetition.
    pub timed: u32,
    /// How long the responder waits before it looks for each message but the
    /// first, in ps.
    pub pause_ps: u64,
}

/// A control frame. Which fields count is said at each `loggap_frame_kind`;
/// the others are 0 and are not looked at.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Frame {
    /// A `loggap_frame_kind`.
    pub kind: u32,
    /// Sequence number of the batch's first round.
    pub sequence: u32,
    /// Of a synchronisation.
    pub token: u32,
    /// Initiators before this one.
    pub position: u32,
    /// Lowest and highest version that the initiator speaks.
    pub versions: [u32; 2],
    /// Lowest and highest version that the responder speaks.
    pub responder_versions: [u32; 2],
    /// The version that both speak.
    pub version: u32,
    /// Bits of what a side can do. Bit 0: it can ask for, or give, a description
    /// of the responder, by frames of kinds that are not among these.
    pub capabilities: u32,
    /// Bounds asked for, or enforced.
    pub bounds: Bounds,
    /// A `loggap_refusal_kind`.
    pub refusal: u32,
    /// A `loggap_limited_kind`.
    pub limited: u32,
    /// See `loggap_refusal_kind`.
    pub asked: u64,
    /// See `loggap_refusal_kind`.
    pub allowed: u64,
    /// Data messages that the responder has received.
    pub received: u64,
    /// Data messages that the responder has sent.
    pub replied: u64,
    /// Of a challenge; 0 where there was none.
    pub nonce: u64,
    /// Used elements of `rounds` or `values_ps`, 1 to `LOGGAP_FRAME_ROUNDS`.
    pub round_count: u32,
    /// The rounds of a batch.
    pub rounds: [Round; LOGGAP_FRAME_ROUNDS],
    /// Time in the receive calls of each round, in ps; 0 where not timed.
    pub values_ps: [u64; LOGGAP_FRAME_ROUNDS],
}

plain!(Bounds, Round, Frame);
