//! A measuring round as a schedule.

use loggap_core::goal::{Op, OpKind, Sink};
use loggap_core::units::Picos;

/// PRTT(n, d, s) of "`LogGP` in Theory and Practice" (section 2.2, Fig. 2): rank 0 sends n messages
/// of s bytes, with a calculation of d between two of them, and rank 1 replies to the last. With
/// several repliers each message goes to one after the other, and each replies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PrttRound {
    /// Number of messages, n.
    pub messages: u32,
    /// Calculation between two sends, d.
    pub delay: Picos,
    /// Bytes of a message and of the reply, s.
    pub size: u64,
    /// Number of ranks that reply.
    pub repliers: u32,
}

impl PrttRound {
    /// Number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.repliers + 1
    }

    /// Writes the round into `sink`.
    ///
    /// # Errors
    ///
    /// Errors of `sink`.
    pub fn feed<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        let Self { messages, delay, size, repliers } = *self;
        let send = |peer| OpKind::Send { peer, size, tag: 0 };
        let receive = |peer| OpKind::Receive { peer, size, tag: 0 };
        sink.ranks(self.ranks())?;
        sink.begin_rank(0)?;
        let mut last = None;
        for message in 0..messages {
            if message > 0 && delay > Picos::ZERO {
                last = Some(add(sink, OpKind::Calc { duration: delay }, last)?);
            }
            for rank in 1..=repliers {
                last = Some(add(sink, send(rank), last)?);
            }
        }
        for rank in 1..=repliers {
            last = Some(add(sink, receive(rank), last)?);
        }
        sink.end_rank()?;
        for rank in 1..=repliers {
            sink.begin_rank(rank)?;
            let mut last = None;
            for _ in 0..messages {
                last = Some(add(sink, receive(0), last)?);
            }
            add(sink, send(0), last)?;
            sink.end_rank()?;
        }
        Ok(())
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
