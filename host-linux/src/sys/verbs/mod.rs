//! RDMA verbs: devices, registered memory and queue pairs.
//!
//! The `ibverbs` crate is used to list devices and to decode completions. Its queue pairs do not
//! support datagrams, inline data, selective signalling, service levels or ports beyond the first,
//! and its memory cannot be accessed while a peer writes to it. For these, its `ffi`, the crate
//! `ibverbs-sys`, is called here.

mod device;
mod memory;
mod queue;
mod work;

pub(crate) use device::{Context, Domain, Gid, GidKind, LinkLayer, Port};
pub(crate) use memory::{PageSize, Region};
pub(crate) use queue::{Path, Queue, QueueKind, QueueOptions, QueuePeer};
pub(crate) use work::{Completion, Failure, Repost, Source, Verb, Work};
