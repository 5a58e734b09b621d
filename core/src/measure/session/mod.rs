//! Session between initiator and responder: control frames, timed loops, recovery from losses.

pub(in crate::measure) mod batch;
pub(in crate::measure) mod exchange;
#[cfg(test)]
mod hostile;
pub(in crate::measure) mod initiator;
pub(in crate::measure) mod kernel;
pub(in crate::measure) mod poller;
pub(in crate::measure) mod responder;
pub(in crate::measure) mod responder_state;
pub(in crate::measure) mod retransmission;
pub(in crate::measure) mod traffic;
