//! Parsing and writing of control frames and Ethernet frames.

use loggap_core::units::Picos;
use loggap_core::wire::{
    self, FRAME_LEN, Hello, Limited, Message, ParseError, ParseErrorKind, Refusal, ReplyPolicy,
    Rounds, Versions, Welcome, ethernet,
};

use crate::boundary::{Place, Places, bytes_mut, input, slice};
use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status, finish};
use crate::wire::{Bounds, Frame, FrameKind, LimitedKind, RefusalKind, Round};

/// Parses the control frame at the front of `length` bytes; ignores what follows it.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` with the offset of the wrong byte in `at`,
/// the reason, and the value found; `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`. On error `frame` is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_frame_parse(
    bytes: *const u8,
    length: usize,
    frame: *mut Frame,
    detail: *mut Detail,
) -> i32 {
    let parse = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(frame) }?;
        // SAFETY: by the contract of this function.
        let bytes = unsafe { slice(bytes, length) }?;
        let message = Message::parse(bytes).map_err(refused)?;
        place.put(from_core(&message));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(parse(), detail) }
}

/// Writes `frame` into the first `LOGGAP_FRAME_BYTES` of `bytes`.
///
/// Errors: `LOGGAP_STATUS_FULL` if `capacity` is less; `LOGGAP_STATUS_OPTION`
/// with the name of a field whose value a frame cannot carry;
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_frame_emit(
    frame: *const Frame,
    bytes: *mut u8,
    capacity: usize,
    detail: *mut Detail,
) -> i32 {
    let emit = || {
        // SAFETY: by the contract of this function.
        let message = to_core(unsafe { input(frame) }?)?;
        // SAFETY: by the contract of this function.
        let bytes = unsafe { bytes_mut(bytes, capacity.min(FRAME_LEN)) }?;
        let full = Detail::of(Status::Full).needed(FRAME_LEN as u64).found(capacity as u64);
        message.emit(bytes.first_chunk_mut().ok_or(full)?);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(emit(), detail) }
}

/// Detail of an error in parsing a control frame.
pub(crate) fn refused(error: ParseError) -> Detail {
    let (reason, needed, found) = match error.kind {
        ParseErrorKind::Truncated(missing) => (Reason::FrameEnds, missing as u64, 0),
        ParseErrorKind::Magic => (Reason::FrameMagic, 0, 0),
        ParseErrorKind::BodyLength(length) => (Reason::FrameBody, 0, length.into()),
        ParseErrorKind::Checksum { found, computed } => {
            (Reason::Checksum, computed.into(), found.into())
        }
        ParseErrorKind::Kind(kind) => (Reason::FrameKind, 0, kind.into()),
        ParseErrorKind::Version(version) => (Reason::Version, 0, version.into()),
        ParseErrorKind::Field(_, value) => (Reason::FieldRange, 0, value),
    };
    let detail = Detail::because(Status::Malformed, reason).at(error.at as u64);
    let detail = detail.needed(needed).found(found);
    if let ParseErrorKind::Field(name, _) = error.kind { detail.named(name) } else { detail }
}

/// `loggap_limited_kind` of a limit of the core.
pub(crate) const fn limited_code(what: Limited) -> LimitedKind {
    match what {
        Limited::Message => LimitedKind::Message,
        Limited::Messages => LimitedKind::Messages,
        Limited::Rounds => LimitedKind::Rounds,
        Limited::Pause => LimitedKind::Pause,
        Limited::Silence => LimitedKind::Silence,
        Limited::Session => LimitedKind::Session,
    }
}

const LIMITED: [Limited; 6] = [
    Limited::Message,
    Limited::Messages,
    Limited::Rounds,
    Limited::Pause,
    Limited::Silence,
    Limited::Session,
];

const fn pair(versions: Versions) -> [u32; 2] {
    [versions.lowest as u32, versions.highest as u32]
}

/// Frame with the fields that `message` has.
fn from_core(message: &Message) -> Frame {
    let mut frame = Frame { kind: message.kind().into(), ..Frame::default() };
    match message {
        Message::Hello(Hello { versions, capabilities, bounds, nonce }) => {
            (frame.versions, frame.nonce) = (pair(*versions), *nonce);
            (frame.capabilities, frame.bounds) = (*capabilities, Bounds::from_core(bounds));
        }
        Message::Welcome(Welcome { version, capabilities, bounds }) => {
            frame.version = (*version).into();
            (frame.capabilities, frame.bounds) = (*capabilities, Bounds::from_core(bounds));
        }
        Message::Refuse(refusal) => set_refusal(&mut frame, refusal),
        Message::Queue { position } => frame.position = *position,
        Message::Batch { sequence, rounds } => {
            frame.sequence = *sequence;
            for (place, round) in frame.rounds.iter_mut().zip(rounds) {
                *place = round_from_core(round);
                frame.round_count += 1;
            }
        }
        Message::Ready { sequence } => frame.sequence = *sequence,
        Message::Report { sequence, values } => {
            frame.sequence = *sequence;
            for (place, value) in frame.values_ps.iter_mut().zip(values) {
                *place = value.0;
                frame.round_count += 1;
            }
        }
        Message::Sync { token } => frame.token = *token,
        Message::Synced { token, received, replied } => {
            (frame.token, frame.received, frame.replied) = (*token, *received, *replied);
        }
        Message::Challenge { nonce } => frame.nonce = *nonce,
        Message::Bye => {}
    }
    frame
}

fn set_refusal(frame: &mut Frame, refusal: &Refusal) {
    let kind = match *refusal {
        Refusal::Version { initiator, responder } => {
            (frame.versions, frame.responder_versions) = (pair(initiator), pair(responder));
            RefusalKind::Version
        }
        Refusal::Busy { waiting } => {
            frame.asked = waiting;
            RefusalKind::Busy
        }
        Refusal::Bounds { what, asked, allowed } => {
            (frame.limited, frame.asked, frame.allowed) =
                (limited_code(what) as u32, asked, allowed);
            RefusalKind::Bounds
        }
        Refusal::OutOfOrder { kind } => {
            frame.asked = kind.into();
            RefusalKind::OutOfOrder
        }
        Refusal::Malformed { at } => {
            frame.asked = at;
            RefusalKind::Malformed
        }
    };
    frame.refusal = kind as u32;
}

fn round_from_core(round: &wire::Round) -> Round {
    Round {
        messages: round.messages,
        size: round.size,
        reply_size: round.reply_size,
        repeats: round.repeats.into(),
        reply_each: u32::from(round.policy == ReplyPolicy::AfterEach),
        timed: round.timed.into(),
        pause_ps: round.pause.0,
    }
}

fn invalid(name: &'static str, value: impl Into<u64>) -> Detail {
    let reason = Reason::FieldRange;
    Detail::because(Status::Option, reason).named(name).found(value.into())
}

fn byte(name: &'static str, value: u32) -> Outcome<u8> {
    u8::try_from(value).map_err(|_| invalid(name, value))
}

fn versions(name: &'static str, [lowest, highest]: [u32; 2]) -> Outcome<Versions> {
    if lowest > highest {
        return Err(invalid(name, lowest));
    }
    Ok(Versions { lowest: byte(name, lowest)?, highest: byte(name, highest)? })
}

fn to_core(frame: &Frame) -> Outcome<Message> {
    let &Frame { sequence, token, capabilities, nonce, .. } = frame;
    let is = |kind: FrameKind| frame.kind == kind as u32;
    let bounds = frame.bounds.to_core();
    Ok(match frame.kind {
        _ if is(FrameKind::Hello) => {
            let versions = versions("versions", frame.versions)?;
            Message::Hello(Hello { versions, capabilities, bounds, nonce })
        }
        _ if is(FrameKind::Welcome) => {
            let version = byte("version", frame.version)?;
            Message::Welcome(Welcome { version, capabilities, bounds })
        }
        _ if is(FrameKind::Refuse) => Message::Refuse(refusal_to_core(frame)?),
        _ if is(FrameKind::Queue) => Message::Queue { position: frame.position },
        _ if is(FrameKind::Batch) => Message::Batch { sequence, rounds: rounds_to_core(frame)? },
        _ if is(FrameKind::Ready) => Message::Ready { sequence },
        _ if is(FrameKind::Report) => {
            let mut values = heapless::Vec::new();
            for value in used(&frame.values_ps, frame.round_count)? {
                // `used` allows no more than fit.
                let _ = values.push(Picos(*value));
            }
            Message::Report { sequence, values }
        }
        _ if is(FrameKind::Sync) => Message::Sync { token },
        _ if is(FrameKind::Synced) => {
            Message::Synced { token, received: frame.received, replied: frame.replied }
        }
        _ if is(FrameKind::Bye) => Message::Bye,
        _ if is(FrameKind::Challenge) => Message::Challenge { nonce },
        unknown => return Err(invalid("kind", unknown)),
    })
}

fn refusal_to_core(frame: &Frame) -> Outcome<Refusal> {
    let is = |kind: RefusalKind| frame.refusal == kind as u32;
    let &Frame { asked, allowed, .. } = frame;
    Ok(match frame.refusal {
        _ if is(RefusalKind::Version) => Refusal::Version {
            initiator: versions("versions", frame.versions)?,
            responder: versions("responder_versions", frame.responder_versions)?,
        },
        _ if is(RefusalKind::Busy) => Refusal::Busy { waiting: asked },
        _ if is(RefusalKind::Bounds) => {
            let known =
                LIMITED.into_iter().find(|what| limited_code(*what) as u32 == frame.limited);
            let what = known.ok_or(invalid("limited", frame.limited))?;
            Refusal::Bounds { what, asked, allowed }
        }
        _ if is(RefusalKind::OutOfOrder) => {
            Refusal::OutOfOrder { kind: u8::try_from(asked).map_err(|_| invalid("asked", asked))? }
        }
        _ if is(RefusalKind::Malformed) => Refusal::Malformed { at: asked },
        unknown => return Err(invalid("refusal", unknown)),
    })
}

/// First `count` elements; `count` must be at least 1.
fn used<T>(list: &[T], count: u32) -> Outcome<&[T]> {
    let used = usize::try_from(count).ok().filter(|&count| count > 0);
    used.and_then(|count| list.get(..count)).ok_or(invalid("round_count", count))
}

fn rounds_to_core(frame: &Frame) -> Outcome<Rounds> {
    let mut rounds = Rounds::new();
    for round in used(&frame.rounds, frame.round_count)? {
        // `used` allows no more than fit.
        let _ = rounds.push(round_to_core(round)?);
    }
    Ok(rounds)
}

fn round_to_core(round: &Round) -> Outcome<wire::Round> {
    let &Round { messages, size, reply_size, .. } = round;
    for (name, value) in [("messages", messages), ("size", size), ("reply_size", reply_size)] {
        if value == 0 {
            return Err(invalid(name, value));
        }
    }
    let repeats = u16::try_from(round.repeats).ok().filter(|&repeats| repeats > 0);
    let repeats = repeats.ok_or(invalid("repeats", round.repeats))?;
    let policy = match round.reply_each {
        0 => ReplyPolicy::AfterLast,
        1 => ReplyPolicy::AfterEach,
        other => return Err(invalid("reply_each", other)),
    };
    if round.timed > 1 || (round.timed == 1 && repeats != 1) {
        return Err(invalid("timed", round.timed));
    }
    let (timed, pause) = (round.timed == 1, Picos(round.pause_ps));
    Ok(wire::Round { messages, size, reply_size, policy, timed, repeats, pause })
}

/// Finds the message in a raw Ethernet frame (without its checksum) that has
/// our EtherType. `destination` and `source` have room for 6 bytes each and may
/// be null; `message` becomes a pointer into `frame`.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` for a truncated frame, and for frames of
/// other protocols, which any station receives and should skip;
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_ethernet_parse(
    frame: *const u8,
    length: usize,
    destination: *mut u8,
    source: *mut u8,
    message: *mut *const u8,
    message_length: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let parse = || {
        // SAFETY: by the contract of this function.
        let mut message = unsafe { Place::new(message) }?;
        // SAFETY: by the contract of this function.
        let mut message_length = unsafe { Place::new(message_length) }?;
        // SAFETY: by the contract of this function; an address has 6 bytes.
        let mut to = unsafe { Place::optional(destination.cast::<[u8; 6]>()) }?;
        // SAFETY: as above.
        let mut from = unsafe { Place::optional(source.cast::<[u8; 6]>()) }?;
        // SAFETY: by the contract of this function.
        let bytes = unsafe { slice(frame, length) }?;
        let parsed = ethernet::EthernetFrame::parse(bytes).map_err(not_ours)?;
        to.put(parsed.destination());
        from.put(parsed.source());
        message.put(parsed.message().as_ptr());
        message_length.put(parsed.message().len());
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(parse(), detail) }
}

fn not_ours(error: ethernet::FrameError) -> Detail {
    match error {
        ethernet::FrameError::Truncated { needed, had } => {
            Detail::because(Status::Malformed, Reason::EthernetEnds)
                .at(had as u64)
                .needed(needed as u64)
        }
        ethernet::FrameError::Foreign { at } => {
            Detail::because(Status::Malformed, Reason::EthernetForeign).at(at as u64)
        }
    }
}

/// Writes a message as a raw Ethernet frame from `source` to `destination`,
/// both of 6 bytes, into `frame`, and its length into `frame_length`: at least
/// 60 bytes, at most `LOGGAP_ETHERNET_FRAME` for messages of up to
/// `LOGGAP_ETHERNET_MESSAGE` bytes.
///
/// Errors: `LOGGAP_STATUS_FULL` if the frame does not fit;
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_ethernet_emit(
    destination: *const u8,
    source: *const u8,
    message: *const u8,
    message_length: usize,
    frame: *mut u8,
    capacity: usize,
    frame_length: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let emit = || {
        // SAFETY: by the contract of this function; an address has 6 bytes.
        let to = unsafe { slice(destination, 6) }?;
        // SAFETY: as above.
        let from = unsafe { slice(source, 6) }?;
        let null = Detail::of(Status::Null);
        let (to, from) = (to.first_chunk().ok_or(null)?, from.first_chunk().ok_or(null)?);
        // SAFETY: by the contract of this function.
        let message = unsafe { slice(message, message_length) }?;
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(frame_length) }?;
        let needed = message_length.saturating_add(ethernet::HEADER).max(ethernet::MIN_FRAME);
        let full = Detail::of(Status::Full).needed(needed as u64).found(capacity as u64);
        // SAFETY: by the contract of this function.
        let mut room = unsafe { Places::new(frame, capacity.min(needed)) }?;
        let header = ethernet::header(*to, *from, message_length).ok_or(full)?;
        // Senders call this within the timed section, so each byte is written only once.
        room.put_all(&header, message, ethernet::MIN_FRAME).ok_or(full)?;
        place.put(needed);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(emit(), detail) }
}

/// Longest Ethernet frame without its checksum, in bytes.
pub const LOGGAP_ETHERNET_FRAME: usize = 1514;
/// Longest message in an Ethernet frame, in bytes.
pub const LOGGAP_ETHERNET_MESSAGE: usize = 1496;
const _: () = assert!(LOGGAP_ETHERNET_FRAME == ethernet::MAX_FRAME, "the core's frames differ");
const _: () =
    assert!(LOGGAP_ETHERNET_MESSAGE == ethernet::MAX_MESSAGE, "the core's messages differ");

/// Reason for a request that exceeds a limit of the responder.
pub(crate) const fn limited_text(what: Limited) -> Reason {
    match what {
        Limited::Message => Reason::AllowedMessage,
        Limited::Messages => Reason::AllowedMessages,
        Limited::Rounds => Reason::AllowedRounds,
        Limited::Pause => Reason::AllowedPause,
        Limited::Silence => Reason::AllowedSilence,
        Limited::Session => Reason::AllowedSession,
    }
}

/// Detail of a refusal by the responder.
pub(crate) fn refusal(refusal: &Refusal) -> Detail {
    let because = |reason| Detail::because(Status::Refused, reason);
    match *refusal {
        Refusal::Version { initiator, responder } => because(Reason::VersionsDiffer)
            .needed(initiator.highest.into())
            .found(responder.highest.into()),
        Refusal::Busy { waiting } => because(Reason::Busy).found(waiting),
        Refusal::Bounds { what, asked, allowed } => {
            because(limited_text(what)).needed(asked).found(allowed)
        }
        Refusal::OutOfOrder { kind } => because(Reason::RefusedOrder).found(kind.into()),
        Refusal::Malformed { at } => because(Reason::RefusedFrame).at(at),
    }
}
