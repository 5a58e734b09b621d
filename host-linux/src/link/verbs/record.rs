//! Profile entries of an RDMA verbs link.

use serde::{Deserialize, Serialize};

/// Settings of an RDMA verbs link, and both ends.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct VerbsRecord {
    /// `send`, `write`, `write-imm`, `read` or `ud`.
    pub operation: String,
    /// Largest packet payload, bytes.
    pub mtu_bytes: u16,
    /// Longest message sent inline, bytes.
    pub inline_bytes: u32,
    /// Messages in flight.
    pub depth: u16,
    /// Number of sends for each completion.
    pub signal_every: u16,
    /// Service level.
    pub service_level: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// True if the receiver sleeps until a receive completion.
    pub events: bool,
    /// Memory registered at this end, bytes.
    pub registered_bytes: u64,
    /// Durations of posts and polls at this end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallTimes>,
    /// This end.
    pub here: VerbsPort,
    /// The other end.
    pub there: VerbsPort,
}

/// Durations of posts and polls of one end at one message size: medians of rounds in which nothing
/// else was measured. `None` for calls that did not occur.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CallTimes {
    /// Message size, bytes.
    pub size_bytes: u32,
    /// Posts timed.
    pub posts: u32,
    /// Completions timed.
    pub completions: u32,
    /// Building the work request, s.
    pub build_s: Option<f64>,
    /// `ibv_post_send`, s.
    pub doorbell_s: Option<f64>,
    /// `ibv_poll_cq` when it returns a completion, s.
    pub completion_s: Option<f64>,
}

/// Device of one end. Values that the system does not report are `None`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct VerbsPort {
    /// Name of the device.
    pub device: String,
    /// Port number.
    pub port: u8,
    /// Firmware version.
    pub firmware: String,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Data rate of the port, bit/s.
    pub rate_bits_per_s: Option<u64>,
    /// Largest packet payload of the port, bytes.
    pub mtu_bytes: u16,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// Network interface of the device.
    pub interface: Option<String>,
    /// GID index; `None` if the peer is addressed by LID.
    pub gid_index: Option<u8>,
}
