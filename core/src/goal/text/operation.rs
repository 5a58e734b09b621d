//! Parser of the operands of `send`, `recv` and `calc`, up to and including the line end.

use super::cursor::Cursor;
use super::error::{Quantity, Wanted};
use super::outline::{Fault, number_up_to, take_comment};
use crate::goal::op::{ANY, ANY_TAG, Op, OpKind};
use crate::units::Picos;

/// Largest peer and tag: [`ANY`] and [`ANY_TAG`] are reserved.
const MOST_PEER: u64 = ANY as u64 - 1;
const MOST_TAG: u64 = ANY_TAG - 1;
const MOST_UNIT: u64 = u16::MAX as u64;
/// Longest calculation in nanoseconds that a [`Picos`] can hold.
const MOST_NANOS: u64 = u64::MAX / 1_000;

/// Operands of `send N b to P [tag T] [cpu C] [nic N]`.
#[inline]
pub(super) fn take_send(cursor: &mut Cursor<'_>) -> Result<Op, Fault> {
    let size = take_size(cursor)?;
    if !cursor.take(b"to") {
        return Err(Fault::expected(cursor, Wanted::To));
    }
    let peer = take_peer(cursor)?;
    let Tail { tag, cpu, nic } = take_tail(cursor)?;
    Ok(Op { kind: OpKind::Send { peer, size, tag }, cpu, nic })
}

/// Operands of `recv N b from P [tag T] [cpu C] [nic N]`.
#[inline]
pub(super) fn take_receive(cursor: &mut Cursor<'_>) -> Result<Op, Fault> {
    let size = take_size(cursor)?;
    if !cursor.take(b"from") {
        return Err(Fault::expected(cursor, Wanted::From));
    }
    let peer = take_peer_or_any(cursor)?;
    let Tail { tag, cpu, nic } = take_tail(cursor)?;
    Ok(Op { kind: OpKind::Receive { peer, size, tag }, cpu, nic })
}

/// Operands of `calc N [cpu C]`.
#[inline]
pub(super) fn take_calc(cursor: &mut Cursor<'_>) -> Result<Op, Fault> {
    let nanos = number_up_to(cursor, MOST_NANOS, Quantity::Duration)?;
    let duration = Picos(nanos.saturating_mul(1_000));
    let mut cpu = 0;
    let mut wanted = Wanted::CpuOrEnd;
    if cursor.take(b"cpu") {
        cpu = take_unit(cursor, Quantity::Cpu)?;
        wanted = Wanted::End;
    }
    take_end(cursor, wanted)?;
    Ok(Op { kind: OpKind::Calc { duration }, cpu, nic: 0 })
}

#[inline]
fn take_size(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
    let size = number_up_to(cursor, u64::MAX, Quantity::Size)?;
    if !cursor.take(b"b") {
        return Err(Fault::expected(cursor, Wanted::ByteUnit));
    }
    Ok(size)
}

/// Optional operands after the peer.
struct Tail {
    tag: u64,
    cpu: u16,
    nic: u16,
}

#[inline]
fn take_tail(cursor: &mut Cursor<'_>) -> Result<Tail, Fault> {
    let mut tail = Tail { tag: 0, cpu: 0, nic: 0 };
    let mut wanted = Wanted::TagCpuNicOrEnd;
    if cursor.take(b"tag") {
        tail.tag = take_or_any(cursor, MOST_TAG, Quantity::Tag)?;
        wanted = Wanted::CpuNicOrEnd;
    }
    if cursor.byte() == b'\n' {
        cursor.advance(1);
        return Ok(tail);
    }
    if cursor.take(b"cpu") {
        tail.cpu = take_unit(cursor, Quantity::Cpu)?;
        wanted = Wanted::NicOrEnd;
    }
    if cursor.take(b"nic") {
        tail.nic = take_unit(cursor, Quantity::Nic)?;
        wanted = Wanted::End;
    }
    take_end(cursor, wanted)?;
    Ok(tail)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most MOST_PEER")]
fn take_peer(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    number_up_to(cursor, MOST_PEER, Quantity::Peer).map(|number| number as u32)
}

/// Sending rank; [`ANY`] for `-1`.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the wildcards are all ones")]
fn take_peer_or_any(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    take_or_any(cursor, MOST_PEER, Quantity::Peer).map(|number| number as u32)
}

/// Number up to `most`; all ones for the wildcard `-1`.
#[inline]
fn take_or_any(cursor: &mut Cursor<'_>, most: u64, what: Quantity) -> Result<u64, Fault> {
    match cursor.byte() {
        b'0'..=b'9' => number_up_to(cursor, most, what),
        b'-' if cursor.byte_after(1) == b'1' && !cursor.byte_after(2).is_ascii_digit() => {
            cursor.advance(2);
            cursor.skip_blanks();
            Ok(ANY_TAG)
        }
        _ => Err(Fault::expected(cursor, Wanted::NumberOrAny)),
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most MOST_UNIT")]
fn take_unit(cursor: &mut Cursor<'_>, what: Quantity) -> Result<u16, Fault> {
    number_up_to(cursor, MOST_UNIT, what).map(|number| number as u16)
}

/// Skips blanks, comments and the line end.
#[inline]
pub(super) fn take_end(cursor: &mut Cursor<'_>, wanted: Wanted) -> Result<(), Fault> {
    if cursor.byte() == b'\n' {
        cursor.advance(1);
        return Ok(());
    }
    take_other_end(cursor, wanted)
}

#[inline(never)]
fn take_other_end(cursor: &mut Cursor<'_>, wanted: Wanted) -> Result<(), Fault> {
    loop {
        cursor.skip_blanks();
        if cursor.take_line_end() {
            return Ok(());
        }
        if !take_comment(cursor)? {
            return Err(Fault::expected(cursor, wanted));
        }
    }
}
