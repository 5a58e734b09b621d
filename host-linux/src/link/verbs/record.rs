//! What a profile says about a link over RDMA verbs.

use serde::{Deserialize, Serialize};

/// How messages travel, and both ends.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct VerbsRecord {
    /// `send`, `write`, `write-imm`, `read` or `ud`.
    pub operation: String,
    /// Largest packet payload.
    pub mtu_bytes: u16,
    /// Longest message that travels within its work request.
    pub inline_bytes: u32,
    /// Messages under way at a time.
    pub depth: u16,
    /// A completion for each so many sends.
    pub signal_every: u16,
    /// Service level.
    pub service_level: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Whether receive completions are slept for.
    pub events: bool,
    /// Memory registered at this end.
    pub registered_bytes: u64,
    /// What the calls of this end take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallTimes>,
    /// This end.
    pub here: VerbsPort,
    /// The other end.
    pub there: VerbsPort,
}

/// What the calls of one end take at one size: medians, of rounds in which
/// nothing else was measured. `None` for what did not happen.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CallTimes {
    /// Length of the messages.
    pub size_bytes: u32,
    /// Posts that were timed.
    pub posts: u32,
    /// Completions that were timed.
    pub completions: u32,
    /// Building the work request.
    pub build_s: Option<f64>,
    /// `ibv_post_send`.
    pub doorbell_s: Option<f64>,
    /// `ibv_poll_cq`, when it gives a completion.
    pub completion_s: Option<f64>,
}

/// One end's device. A value that the system does not tell is `None`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct VerbsPort {
    /// Name of the device.
    pub device: String,
    /// Its port.
    pub port: u8,
    /// Version of its firmware.
    pub firmware: String,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Rate of the port.
    pub rate_bits_per_s: Option<u64>,
    /// Largest packet payload that the port takes.
    pub mtu_bytes: u16,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// Its network interface.
    pub interface: Option<String>,
    /// Index of the address; `None` where the peer is found by LID.
    pub gid_index: Option<u8>,
}
