//! The C interface of loggap's core: `libloggap.a`, and `loggap.h`, which is
//! generated from this crate.
//!
//! What a C programmer has to know stands in the header; so the documentation
//! of every exported item is written for C. Rules for this crate:
//!
//! - Nothing is computed here: an exported function turns pointers into
//!   references ([`boundary`]), calls the core, and turns the answer into plain
//!   structs.
//! - What comes from C holds no Rust enum, `bool` or reference, so that every
//!   bit pattern is valid; numbers stand for enums and are checked.
//! - No pointer is kept beyond the call, except inside of memory that was lent
//!   for an object.
//!
//! `hosted/Cargo.toml` builds the same sources as a library for Rust programs
//! with the standard library, by the feature `hosted`: Miri and the fuzzer call
//! the functions so.

#![no_std]
#![allow(
    clippy::missing_safety_doc,
    reason = "one contract for all exported functions: the rules for pointers at the head of loggap.h"
)]
#![warn(clippy::std_instead_of_core, clippy::alloc_instead_of_core)]

mod arena;
mod assess;
mod boundary;
mod compact;
mod detector;
mod fit;
mod frame;
mod goal;
mod goal_error;
mod link;
mod noise;
mod object;
mod pattern;
mod predict;
mod profile;
mod reason;
mod report;
mod responder;
mod responder_state;
mod selftest;
mod simulate;
mod status;
mod version;
mod wire;

#[cfg(feature = "hosted")]
#[doc(hidden)]
pub use self::{
    assess::*, compact::*, detector::*, fit::*, frame::*, goal::*, link::*, noise::*, pattern::*,
    predict::*, profile::*, reason::*, report::*, responder::*, responder_state::*, selftest::*,
    simulate::*, status::*, version::*, wire::*,
};

/// Never called: the script `check` links all exported functions without what
/// none of them needs, and this is not among what is left.
#[cfg(not(feature = "hosted"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
