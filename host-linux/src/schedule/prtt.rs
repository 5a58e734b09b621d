//! A measuring round as a schedule.

use loggap_core::goal::{Op, OpKind, Sink};
use loggap_core::units::Picos;

/// PRTT(n, d, s) of "`LogGP` in Theory and Practice" (section 2.2, Fig. 2): rank 0 sends n messages
/// of s bytes, with a calculation of d between two of them, and rank 1 replies to the last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PrttRound {
    /// Number of messages, n.
    pub messages: u32,
    /// Calculation between two sends, d.
    pub delay: Picos,
    /// Bytes of a message and of the reply, s.
    pub size: u64,
}

impl PrttRound {
    /// Number of ranks.
    pub const RANKS: u32 = 2;

    /// Writes the round into `sink`.
    ///
    /// # Errors
    ///
    /// Errors of `sink`.
    pub fn feed<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        let Self { messages, delay, size } = *self;
        let peer = |rank: u32| 1 - rank;
        let send = |rank| OpKind::Send { peer: peer(rank), size, tag: 0 };
        let receive = |rank| OpKind::Receive { peer: peer(rank), size, tag: 0 };
        sink.ranks(Self::RANKS)?;
        sink.begin_rank(0)?;
        let mut last = None;
        for message in 0..messages {
            if message > 0 && delay > Picos::ZERO {
                last = Some(add(sink, OpKind::Calc { duration: delay }, last)?);
            }
            last = Some(add(sink, send(0), last)?);
        }
        add(sink, receive(0), last)?;
        sink.end_rank()?;
        sink.begin_rank(1)?;
        let mut last = None;
        for _ in 0..messages {
            last = Some(add(sink, receive(1), last)?);
        }
        add(sink, send(1), last)?;
        sink.end_rank()
    }
}

/// Adds an operation that follows `last`; returns its index.
fn add<S: Sink>(sink: &mut S, kind: OpKind, last: Option<u32>) -> Result<u32, S::Error> {
    let op = sink.op(Op { kind, cpu: 0, nic: 0 })?;
    if let Some(last) = last {
        sink.requires(op, last)?;
    }
    Ok(op)
}
