//! All unsafe code of this crate: processor counters, shared and private memory, huge pages, mapped
//! files, raw Ethernet and stream sockets, and RDMA verbs.
//!
//! Every exported function is safe to call; each unsafe block states why it is sound.

#![allow(unsafe_code, reason = "the one place of this crate that may; see each SAFETY line")]

pub(crate) mod counter;
pub(crate) mod file_map;
pub(crate) mod huge;
pub(crate) mod mapping;
pub(crate) mod packet;
pub(crate) mod pages;
pub(crate) mod pass;
pub(crate) mod path;
pub(crate) mod prefetch;
pub(crate) mod ring;
pub(crate) mod socket;
#[cfg(feature = "verbs")]
pub(crate) mod verbs;
