//! RDMA verbs: devices, registered memory and queue pairs.
//!
//! The `ibverbs` crate lists devices and names completions. Its queue pairs
//! know neither datagrams nor inline data, signalling, service levels or ports
//! beyond the first, and its memory cannot be reached while a peer writes to
//! it: for those its `ffi`, the crate `ibverbs-sys`, is called here.

mod device;
mod memory;
mod queue;
mod work;

pub(crate) use device::{Context, Domain, Gid, GidKind, LinkLayer, Port};
pub(crate) use memory::{PageSize, Region};
pub(crate) use queue::{Path, Queue, QueueKind, QueueOptions, QueuePeer};
pub(crate) use work::{Completion, Failure, Source, Verb, Work};
