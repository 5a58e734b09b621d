//! loggap on Linux: clocks, links, drivers and exporters around
//! [`loggap_core`].
//!
//! # Tour, from the outside in
//!
//! - [`clock`]: [`HostClock`](clock::HostClock), the processor's own counter
//!   where it can be trusted.
//! - [`link`]: connections that carry messages: TCP, UDP, Unix sockets and
//!   shared memory.

pub mod clock;
pub mod link;
mod sys;
