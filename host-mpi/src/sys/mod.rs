//! What the bindings of MPI lack. The only unsafe code of this crate.

pub(crate) mod environment;
pub(crate) mod receive;
pub(crate) mod settings;
