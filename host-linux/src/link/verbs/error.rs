//! Errors of RDMA verbs, with remedies.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use thiserror::Error;

use super::settings::Operation;

/// Status of a work request that was flushed because another one failed.
#[cfg(feature = "verbs")]
pub(super) const FLUSHED: u32 = 5;
/// Status of a work request that was not acknowledged.
pub(super) const UNANSWERED: u32 = 12;

/// Error of creating or using an RDMA verbs link.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// The program was built without RDMA verbs.
    #[error(
        "this program was built without RDMA verbs; build it with `cargo build --release -p loggap --features verbs`, which needs cmake, clang, libclang-dev, libibverbs-dev, libnl-3-dev and libnl-route-3-dev"
    )]
    NotBuilt,
    /// There is no such device.
    #[error("{}", no_device(asked.as_deref(), present, source.as_ref()))]
    NoDevice {
        /// Name that was asked for.
        asked: Option<String>,
        /// Names of existing devices.
        present: Vec<String>,
        /// Error of listing the devices, if that failed.
        source: Option<io::Error>,
    },
    /// The device cannot be opened.
    #[error("{}", not_opened(device, source))]
    Open {
        /// Name of the device.
        device: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The device does not have this port.
    #[error(
        "{device} has {ports} port{}, no port {port}; choose one with --ib-port",
        if *ports == 1 { "" } else { "s" }
    )]
    NoPort {
        /// Name of the device.
        device: String,
        /// Port that was asked for.
        port: u8,
        /// Number of ports of the device.
        ports: u8,
    },
    /// The port is not active.
    #[error(
        "port {port} of {device} is {state}, not ACTIVE; set its interface up (`rdma link` names it, `ip link set NAME up`), look at the cable, or, on InfiniBand, at the subnet manager"
    )]
    PortDown {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// Its state.
        state: &'static str,
    },
    /// The port has no suitable GID.
    #[error("{}", no_address(device, *port, *index))]
    NoAddress {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// GID index that was asked for; `None` if no GID was found.
        index: Option<u8>,
    },
    /// The requested packet payload exceeds that of a port.
    #[error(
        "--mtu {asked} is over the {active} bytes of {whose}; leave --mtu out, or raise the MTU of the interface (RoCE needs 4200 for 4096) on both ends and the switches between"
    )]
    Mtu {
        /// Requested payload in bytes.
        asked: u16,
        /// Payload of the port in bytes.
        active: u16,
        /// Device and end.
        whose: String,
    },
    /// Registering memory failed.
    #[error("{}", not_registered(*bytes, *limit, source))]
    Register {
        /// Size of the memory in bytes.
        bytes: usize,
        /// Limit of this process on locked memory in bytes; `None` if it is unlimited.
        limit: Option<u64>,
        /// Error of the system.
        source: io::Error,
    },
    /// There are not enough huge pages.
    #[error(
        "cannot register {} MiB of huge pages ({source}): `sysctl vm.nr_hugepages` reserves some, of 2 MiB usually; or leave --huge-pages out",
        bytes.div_ceil(1 << 20)
    )]
    HugePages {
        /// Size of the memory in bytes.
        bytes: usize,
        /// Error of the system.
        source: io::Error,
    },
    /// A call to the device failed.
    #[error("{device}: {action} failed ({source}); {hint}")]
    Device {
        /// Name of the device.
        device: String,
        /// The action that failed.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
        /// Remedy.
        hint: &'static str,
    },
    /// Creating a queue pair failed.
    #[error(
        "{device}: creating a queue pair failed ({source}); {}; `ibv_devinfo -v` shows the limits",
        queue_pair_hint(*inline)
    )]
    QueuePair {
        /// Name of the device.
        device: String,
        /// Requested size of inline data, unless it was left to the device.
        inline: Option<u32>,
        /// Error of the system.
        source: io::Error,
    },
    /// A work request ended with an error.
    #[error(
        "{peer}: {action} ended with '{}' (status {status}, {}): {}",
        status_name(*status), vendor_code(*status, *vendor), status_hint(*status)
    )]
    Completion {
        /// The peer.
        peer: String,
        /// Operation in progress.
        action: &'static str,
        /// Status code of the interface.
        status: u32,
        /// Error code of the vendor.
        vendor: u32,
    },
    /// The other end refused the connection.
    #[error("{peer} refuses: {reason}")]
    Refused {
        /// The peer.
        peer: String,
        /// Reason given by the peer.
        reason: String,
    },
    /// The server at the peer's port does not exchange connection data of loggap.
    #[error("{peer} serves something else; start `loggap serve --transport verbs` there")]
    Foreign {
        /// The peer.
        peer: String,
    },
    /// The server at the peer's port did not answer.
    #[error(
        "{peer} took the connection and answered nothing within {:.0} s: what listens there is stopped, or is no `loggap serve --transport verbs`",
        limit.as_secs_f64()
    )]
    Unanswered {
        /// The peer.
        peer: String,
        /// Time limit.
        limit: Duration,
    },
    /// The peer's connection data are of another version.
    #[error("{peer} runs another version of loggap; use the same version on both ends")]
    Version {
        /// The peer.
        peer: String,
    },
    /// The peer's connection data are invalid.
    #[error(
        "{peer} sent connection data that ask for {what}; use the same version of loggap on both ends"
    )]
    Asked {
        /// The peer.
        peer: String,
        /// The invalid request.
        what: &'static str,
    },
    /// The peer sent data over the control connection, which must be silent once both ends are
    /// connected.
    #[error(
        "{peer} sent bytes over the control connection, which carries none after the connection data; use the same version of loggap on both ends"
    )]
    Talks {
        /// The peer.
        peer: String,
    },
    /// The responder is restricted to another operation.
    #[error(
        "this responder was started with --op {served}, and --op {asked} was asked for; use the same on both ends, or leave it out there"
    )]
    Operation {
        /// Operation of the responder.
        served: Operation,
        /// Operation that was asked for.
        asked: Operation,
    },
    /// The requested messages are longer than the responder allows.
    #[error(
        "messages of up to {asked} bytes were asked for, and this responder takes {allowed}; use smaller sizes, or `loggap serve --max-message {asked}`"
    )]
    Longest {
        /// Requested length in bytes.
        asked: u32,
        /// Allowed length in bytes.
        allowed: u32,
    },
    /// The method needs a peer that answers.
    #[error(
        "with --op read nobody at the other end answers: a read's completion stands for the reply, and only of the last one of a round; use --method prtt, or another --op"
    )]
    Answers,
    /// The operation generates no receive completions to wait for.
    #[error(
        "with --op {operation} nothing completes at the receiver, so that there is no event to sleep for; leave --events and --block out, or use --op write-imm"
    )]
    Events {
        /// The operation.
        operation: Operation,
    },
}

impl VerbsError {
    /// True if the cause lies in this machine, not in the peer or the network.
    #[must_use]
    pub const fn is_environment(&self) -> bool {
        matches!(
            self,
            Self::NotBuilt
                | Self::NoDevice { .. }
                | Self::Open { .. }
                | Self::PortDown { .. }
                | Self::NoAddress { index: None, .. }
                | Self::Register { .. }
                | Self::HugePages { .. }
        )
    }

    /// True if the command line asks for something impossible.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoPort { .. }
                | Self::NoAddress { index: Some(_), .. }
                | Self::Mtu { .. }
                | Self::Events { .. }
                | Self::Answers
        )
    }
}

fn no_device(asked: Option<&str>, present: &[String], source: Option<&io::Error>) -> String {
    let reason = source.map(|source| match Errno::from_raw(source.raw_os_error().unwrap_or(0)) {
        // The library finds no directory of devices.
        Errno::ENOSYS => " (the module ib_uverbs is not loaded)".to_owned(),
        _ => format!(" ({source})"),
    });
    let reason = reason.unwrap_or_default();
    match asked {
        Some(asked) if !present.is_empty() => {
            format!("no RDMA device '{asked}'; there are: {}", present.join(", "))
        }
        _ => format!(
            "no RDMA device on this machine{reason}: load its driver (`rdma link` lists devices), or make one of a network interface: `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0`"
        ),
    }
}

fn queue_pair_hint(inline: Option<u32>) -> String {
    match inline {
        None | Some(0) => "a smaller --depth may be granted".to_owned(),
        Some(bytes) => format!(
            "{bytes} bytes within a work request were asked for: a smaller --inline or --depth may be granted"
        ),
    }
}

fn not_opened(device: &str, source: &io::Error) -> String {
    let hint = match source.kind() {
        // The library reports a missing device if this user may not open it.
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
            "this user may not open /dev/infiniband/uverbs*: join its group (often `rdma`), or, in a container, pass the devices in; without those files, load the module ib_uverbs"
        }
        _ => "load the module ib_uverbs, and look at the kernel's log",
    };
    format!("cannot open {device} ({source}); {hint}")
}

fn no_address(device: &str, port: u8, index: Option<u8>) -> String {
    let entries = format!("/sys/class/infiniband/{device}/ports/{port}/gids");
    match index {
        Some(index) => format!(
            "--gid-index {index} is no address of port {port} of {device}; {entries} lists them, or leave --gid-index out"
        ),
        None => format!(
            "port {port} of {device} has no RoCE v2 address for IPv4; give its interface an IPv4 address, choose another address with --gid-index ({entries} lists them), or another device with -d"
        ),
    }
}

fn not_registered(bytes: usize, limit: Option<u64>, source: &io::Error) -> String {
    let megabytes = bytes.div_ceil(1 << 20);
    match limit {
        Some(limit) if source.kind() == io::ErrorKind::OutOfMemory => format!(
            "cannot register {megabytes} MiB of memory ({source}): this process may lock {} KiB (`ulimit -l`), all its links together; raise it (memlock in /etc/security/limits.conf, LimitMEMLOCK= of a service), or use smaller sizes or a smaller --depth",
            limit >> 10
        ),
        _ => format!(
            "cannot register {megabytes} MiB of memory ({source}); use smaller sizes or a smaller --depth"
        ),
    }
}

/// Name of a status in the interface's documentation.
const fn status_name(status: u32) -> &'static str {
    match status {
        1 => "local length error",
        2 => "local QP operation error",
        3 => "local EE context operation error",
        4 => "local protection error",
        5 => "work request flushed",
        6 => "memory window bind error",
        7 => "bad response",
        8 => "local access error",
        9 => "remote invalid request",
        10 => "remote access error",
        11 => "remote operation error",
        12 => "transport retry counter exceeded",
        13 => "RNR retry counter exceeded",
        14 => "local RDD violation",
        15 => "remote invalid RD request",
        16 => "remote aborted",
        17 => "invalid EE context number",
        18 => "invalid EE context state",
        19 => "fatal error",
        20 => "response timeout",
        21 => "general error",
        22 => "tag matching error",
        23 => "tag matching rendezvous incomplete",
        _ => "unknown error",
    }
}

/// Text for a vendor's error code, which only the vendor's documentation explains. Two codes of
/// mlx5 are known from reports of users.
fn vendor_code(status: u32, code: u32) -> String {
    match (status, code) {
        (_, 0) => "no vendor code".to_owned(),
        (UNANSWERED, 0x81) => "vendor code 0x81: mlx5 has sent it as often as it may".to_owned(),
        (10, 0x88) => "vendor code 0x88: mlx5 was refused by the other end's device".to_owned(),
        _ => format!("vendor code {code:#x}, explained by the device's maker"),
    }
}

const fn status_hint(status: u32) -> &'static str {
    match status {
        1 => "a message was longer than the place posted for it; use the same version on both ends",
        2 => {
            "the QP could not carry it out; its port is down (`rdma link`), or, with soft-RoCE, a message was longer than the place posted for it (the same version on both ends?)"
        }
        5 => {
            "the QP is in the error state, because an earlier request failed; see what the other end printed"
        }
        9 => {
            "the other end does not take this request: its receive was too small, or the operation is not enabled there; use the same version on both ends"
        }
        10 => {
            "the other end does not allow access to that memory: a wrong key or address; use the same version on both ends"
        }
        11 => "the other end could not complete it; see what it printed",
        12 => {
            "nothing was acknowledged, and the connection to the peer's process is still open: packets do not reach its queue pair; look at --gid-index and --mtu, at the MTU of all interfaces and switches, and, on RoCE, at lost packets (PFC, ECN); use the same version on both ends"
        }
        13 => "the other end posts no receives: it is stopped or overloaded",
        _ => "see the kernel's log and the device's counters (`rdma statistic`)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_request_is_named_with_status_vendor_code_and_remedy() {
        let failed = |status| {
            VerbsError::Completion { peer: "node7".into(), action: "send", status, vendor: 0x81 }
                .to_string()
        };
        let text = failed(12);
        assert!(text.starts_with("node7: send ended with 'transport retry counter"), "{text}");
        assert!(text.contains("vendor code 0x81: mlx5") && text.contains("--gid-index"), "{text}");
        assert!(failed(10).contains("vendor code 0x81, explained by the device's maker"));
        assert!(failed(10).contains("wrong key"));
        assert!(failed(99).contains("unknown error"));
    }

    #[test]
    fn what_was_asked_for_and_is_not_there_is_named() {
        let (device, source) = ("rxe0".to_owned(), || io::Error::from_raw_os_error(22));
        let port = VerbsError::NoPort { device: device.clone(), port: 2, ports: 1 };
        assert!(port.to_string().starts_with("rxe0 has 1 port, no port 2; "), "{port}");
        let address = |index| VerbsError::NoAddress { device: device.clone(), port: 1, index };
        assert!(address(Some(200)).is_usage() && !address(Some(200)).is_environment());
        assert!(address(None).is_environment() && !address(None).is_usage());
        let pair = |inline| {
            VerbsError::QueuePair { device: device.clone(), inline, source: source() }.to_string()
        };
        assert!(pair(Some(5_000)).contains("5000 bytes within a work request"));
        assert!(!pair(None).contains("inline"), "{}", pair(None));
        let source = Some(io::Error::from_raw_os_error(38));
        let none = VerbsError::NoDevice { asked: None, present: Vec::new(), source }.to_string();
        assert!(
            none.contains("(the module ib_uverbs is not loaded)") && !none.contains("os error")
        );
    }

    #[test]
    fn another_version_is_not_taken_for_another_program() {
        let other = VerbsError::Version { peer: "node7".into() }.to_string();
        assert!(other.contains("another version") && !other.contains("something else"), "{other}");
    }

    #[test]
    fn memory_that_may_not_be_locked_comes_with_the_limit() {
        let error = |limit| VerbsError::Register {
            bytes: 32 << 20,
            limit,
            source: io::Error::from_raw_os_error(12),
        };
        let text = error(Some(8 << 20)).to_string();
        assert!(text.contains("32 MiB") && text.contains("8192 KiB"), "{text}");
        assert!(!error(None).to_string().contains("ulimit"));
    }
}
