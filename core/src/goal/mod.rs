//! GOAL schedules: what each rank sends, receives and computes, and in which
//! order.

mod op;
pub mod pattern;

pub use op::{ANY, Op, OpKind, Sink};
