//! What the fuzzer calls: one function for each parser and each sequence of
//! operations. A function that returns has found nothing; one that panics,
//! hangs or takes memory without bound has found a bug.
//!
//! `fuzz/` runs these functions on new inputs, `tests/tests/fuzzed.rs` runs
//! them on the inputs that are kept in `fuzz/seeds`.

mod assessing;
mod clocks;
mod networks;
mod parsers;
mod profiles;
mod responding;
mod schedules;
mod sessions;
mod simulating;
mod traces;

pub use assessing::{fit, planner};
pub use clocks::clocks;
pub use networks::topology;
pub use parsers::{argument, conversion, liballprof, noise_trace, samples_csv, trace, wire_frame};
pub use profiles::{profile_compact, profile_json};
pub use responding::responder_state;
pub use schedules::{goal_native, goal_reference, goal_text};
pub use sessions::{initiator, responder};
pub use simulating::{overflow, simulator};
pub use traces::extrapolation;

/// A target: what one input is put through.
pub type Target = fn(&[u8]);

/// Every target with its name, which is that of its seeds' folder and of its
/// binary in `fuzz/`.
pub const TARGETS: [(&str, Target); 22] = [
    ("argument", argument),
    ("clocks", clocks),
    ("conversion", conversion),
    ("extrapolation", extrapolation),
    ("fit", fit),
    ("goal_native", goal_native),
    ("goal_reference", goal_reference),
    ("goal_text", goal_text),
    ("initiator", initiator),
    ("liballprof", liballprof),
    ("noise_trace", noise_trace),
    ("overflow", overflow),
    ("planner", planner),
    ("profile_compact", profile_compact),
    ("profile_json", profile_json),
    ("responder", responder),
    ("responder_state", responder_state),
    ("samples_csv", samples_csv),
    ("simulator", simulator),
    ("topology", topology),
    ("trace", trace),
    ("wire_frame", wire_frame),
];

/// Takes numbers from an input; zeros when it is used up.
struct Numbers<'d>(&'d [u8]);

impl Numbers<'_> {
    /// Whether nothing is left.
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let (now, later) = self.0.split_at(N.min(self.0.len()));
        bytes[..now.len()].copy_from_slice(now);
        self.0 = later;
        bytes
    }

    fn byte(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }
}
