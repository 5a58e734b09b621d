//! Parts of MPI that its bindings lack. The only unsafe code of this crate.

pub(crate) mod environment;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod settings;

/// Tag of all messages: the bindings' own default.
const TAG: i32 = 0;
