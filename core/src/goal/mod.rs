//! GOAL schedules: what each rank sends, receives and computes, and in which
//! order.

mod op;
<<<<<<< HEAD
pub mod pattern;
=======
mod output;
mod protocol;
#[cfg(test)]
mod testing;
pub mod text;
>>>>>>> 2b88ee2 (Read and write GOAL text)

pub use op::{ANY, Op, OpKind, Sink};
pub use output::{NoRoom, Output, SliceOutput};
pub use protocol::Misuse;
