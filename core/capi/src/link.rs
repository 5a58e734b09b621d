//! Link and clock as tables of C functions.

use core::ffi::c_void;

use loggap_core::measure::{Clock as _, LinkProperties};
use loggap_core::stats::Sorted;
use loggap_core::units::{Bytes, Picos};

use crate::boundary::{input, plain};
use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status, finish};

/// Reads the counter of a clock. It never decreases and never wraps: extend a
/// narrower counter to 64 bits. `context` is the clock's.
pub type NowFunction = Option<unsafe extern "C" fn(context: *mut c_void) -> u64>;

/// Sends one whole message, and returns as soon as its bytes may be reused: the
/// duration of this call is the send overhead. Returns 0, or a code of your own
/// if the peer is gone; the session then ends with this code in
/// `loggap_detail.found`.
pub type SendFunction =
    Option<unsafe extern "C" fn(context: *mut c_void, message: *const u8, length: usize) -> i32>;

/// Polls once for a message, without waiting or for a bounded time. Returns 0
/// if none is complete; 1 if one is, with its bytes at the front of `buffer`
/// and their number, at most `capacity`, in `length`; a negative code of your
/// own if the peer is gone, which ends the session.
///
/// A byte stream collects exactly `capacity` bytes, in the same buffer across
/// calls. A datagram link never merges two messages, and drops messages longer
/// than `capacity` as if they had not arrived (0): no peer of loggap sends
/// them, but a stranger may.
pub type PollFunction = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        buffer: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> i32,
>;

/// Drops a partly received message and everything else that has arrived.
/// Returns 0, or a code of your own if the peer is gone.
pub type DiscardFunction = Option<unsafe extern "C" fn(context: *mut c_void) -> i32>;

/// A clock. The caller fills it in; the library reads it during calls only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Clock {
    /// Passed to `now`.
    pub context: *mut c_void,
    /// Reads the counter; not null.
    pub now: NowFunction,
    /// Picoseconds per tick, times 2^32; not 0. `LOGGAP_PICOS_PER_TICK_Q32(hz)`
    /// for a counter of `hz` ticks per second, below 2^32.
    pub picos_per_tick_q32: u64,
    /// Cost of one call of `now`, in ps; `loggap_clock_calibrate` measures it.
    pub read_cost_ps: u64,
}

/// A connection that carries messages both ways. The caller fills it in; the
/// library reads it during calls only, and calls the functions on the thread
/// that called the library. They must return normally.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Link {
    /// Passed to all functions.
    pub context: *mut c_void,
    /// Sends a message; not null.
    pub send: SendFunction,
    /// Polls for a message; not null.
    pub poll_receive: PollFunction,
    /// Drops what has arrived; may be null if the link is reliable.
    pub discard: DiscardFunction,
    /// Largest message that one `send` accepts, in bytes; at least `LOGGAP_FRAME_BYTES`.
    pub max_message: u64,
    /// 1 if every message arrives, in order; 0 if some may be lost.
    pub reliable: u32,
}

plain!(Clock, Link);

/// A clock whose table has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedClock {
    context: *mut c_void,
    now: unsafe extern "C" fn(*mut c_void) -> u64,
    scale: u64,
    read_cost: Picos,
}

impl Clock {
    pub(crate) fn checked(&self) -> Outcome<CheckedClock> {
        let (status, reason) = match (self.now, self.picos_per_tick_q32) {
            (None, _) => (Status::Null, Reason::NowNull),
            (_, 0) => (Status::Option, Reason::TickZero),
            (Some(now), scale) => {
                let (context, read_cost) = (self.context, Picos(self.read_cost_ps));
                return Ok(CheckedClock { context, now, scale, read_cost });
            }
        };
        Err(Detail::because(status, reason))
    }
}

impl loggap_core::measure::Clock for CheckedClock {
    #[inline]
    fn now(&self) -> u64 {
        // SAFETY: the caller of the library vouches for its function and
        // context.
        unsafe { (self.now)(self.context) }
    }

    #[inline(never)]
    fn duration(&self, ticks: u64) -> Picos {
        Picos(u64::try_from(self.exactly(ticks) >> 32).unwrap_or(u64::MAX))
    }

    /// Smallest number of ticks that last `duration`: one more than the largest
    /// number that is shorter. That is found bit by bit, because the compiler's
    /// division of 128 bits takes two kilobytes of flash.
    fn ticks(&self, duration: Picos) -> u64 {
        let needed = u128::from(duration.0) << 32;
        let mut shorter = 0;
        for bit in (0..u64::BITS).rev() {
            let more = shorter | (1 << bit);
            if self.exactly(more) < needed {
                shorter = more;
            }
        }
        if needed > 0 { shorter.saturating_add(1) } else { 0 }
    }

    fn read_cost(&self) -> Picos {
        self.read_cost
    }
}

impl CheckedClock {
    /// Duration of `ticks` in units of 2⁻³² ps.
    #[inline(never)]
    fn exactly(&self, ticks: u64) -> u128 {
        u128::from(ticks) * u128::from(self.scale)
    }
}

/// A link whose table has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedLink {
    context: *mut c_void,
    send: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> i32,
    poll: unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut usize) -> i32,
    discard: DiscardFunction,
    max_message: u64,
    reliable: bool,
}

impl Link {
    pub(crate) fn checked(&self) -> Outcome<CheckedLink> {
        let Self { context, discard, max_message, .. } = *self;
        let (status, reason) = match (self.send, self.poll_receive, self.reliable) {
            (None, ..) => (Status::Null, Reason::SendNull),
            (_, None, _) => (Status::Null, Reason::PollNull),
            (.., 2..) => (Status::Option, Reason::ReliableValue),
            (.., 0) if discard.is_none() => (Status::Null, Reason::DiscardNull),
            (Some(send), Some(poll), reliable) => {
                let reliable = reliable == 1;
                return Ok(CheckedLink { context, send, poll, discard, max_message, reliable });
            }
        };
        let found = if status == Status::Option { self.reliable } else { 0 };
        Err(Detail::because(status, reason).found(found.into()))
    }
}

/// A code that a callback of the link returned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LinkCode(pub(crate) i32);

impl LinkCode {
    /// Reported when `poll_receive` returns a length beyond the buffer's.
    pub(crate) const TOO_LONG: Self = Self(i32::MIN);

    pub(crate) fn failure(self) -> Detail {
        let reason = if self == Self::TOO_LONG { Reason::PollLength } else { Reason::None };
        Detail::because(Status::Link, reason).found(i64::from(self.0).cast_unsigned())
    }
}

impl loggap_core::measure::Link for CheckedLink {
    type Error = LinkCode;

    fn properties(&self) -> LinkProperties {
        LinkProperties {
            reliable: self.reliable,
            ..LinkProperties::reliable(Bytes(self.max_message))
        }
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkCode> {
        // SAFETY: the caller of the library vouches for its function and
        // context; the message outlives the call.
        match unsafe { (self.send)(self.context, message.as_ptr(), message.len()) } {
            0 => Ok(()),
            code => Err(LinkCode(code)),
        }
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkCode> {
        let mut length = 0;
        let (room, capacity) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: as for `send`; the buffer has `capacity` bytes.
        match unsafe { (self.poll)(self.context, room, capacity, &raw mut length) } {
            0 => Ok(None),
            1 if length <= capacity => Ok(Some(length)),
            1 => Err(LinkCode::TOO_LONG),
            code => Err(LinkCode(code)),
        }
    }

    fn discard(&mut self) -> Result<(), LinkCode> {
        let Some(discard) = self.discard else { return Ok(()) };
        // SAFETY: as for `send`.
        match unsafe { discard(self.context) } {
            0 => Ok(()),
            code => Err(LinkCode(code)),
        }
    }
}

/// Pairs of readings that [`loggap_clock_calibrate`] takes.
const READINGS: usize = 33;

/// Measures the cost of one reading of `clock`, as the median distance between
/// the readings of 33 pairs, and writes it to its `read_cost_ps`. Takes
/// microseconds.
///
/// Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`,
/// `LOGGAP_STATUS_OPTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_clock_calibrate(clock: *mut Clock, detail: *mut Detail) -> i32 {
    let calibrate = || {
        // SAFETY: by the contract of this function.
        let checked = unsafe { input(clock.cast_const()) }?.checked()?;
        let mut distances = [0; READINGS];
        for distance in &mut distances {
            let before = checked.now();
            *distance = checked.now().saturating_sub(before);
        }
        let median = Sorted::new(&mut distances).median().unwrap_or_default();
        // SAFETY: `input` has checked it for null and alignment.
        let cost = unsafe { &raw mut (*clock).read_cost_ps };
        // SAFETY: as above; the caller lends it for writing.
        unsafe { cost.write(checked.duration(median).0) };
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(calibrate(), detail) }
}
