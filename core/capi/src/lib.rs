//! The C interface of loggap's core: `libloggap.a`, and `loggap.h`, which is
//! generated from this crate.
//!
//! The documentation of exported items is written for C programmers, who read
//! it in the header. Rules of this crate:
//!
//! - No computation: an exported function turns pointers into references
//!   ([`boundary`]), calls the core, and converts its result into plain
//!   structs.
//! - Structs from C hold no Rust enum, `bool` or reference, so that every bit
//!   pattern is valid. Integers represent enums and are checked.
//! - No pointer outlives the call, except within memory that was lent for an object.
//!
//! `hosted/Cargo.toml` builds the same sources with the feature `hosted`, as a
//! Rust library with the standard library, through which Miri and the fuzzer
//! call the functions.

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

/// Never called: the script `check` links all exported functions without unused
/// sections, and fails if a panic is left.
#[cfg(not(feature = "hosted"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
