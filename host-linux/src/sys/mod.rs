//! All unsafe code of this crate: processor counters, shared and own memory, huge pages, mapped
//! files, raw Ethernet sockets and RDMA verbs.
//!
//! Everything exported from here is safe to call; each unsafe block says why.

#![allow(unsafe_code, reason = "the one place of this crate that may; see each SAFETY line")]

pub(crate) mod counter;
pub(crate) mod file_map;
pub(crate) mod huge;
pub(crate) mod mapping;
pub(crate) mod packet;
pub(crate) mod pages;
pub(crate) mod pass;
pub(crate) mod ring;
#[cfg(feature = "verbs")]
pub(crate) mod verbs;
