//! Environment of a measurement, as stored in a profile: machine and link.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use loggap_core::measure::Clock;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{SockaddrStorage, getsockopt, sockopt};
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

use crate::link::{AnyLink, VerbsRecord, canonical, receive_buffer};
use crate::machine::buffer::Alignment;
use crate::machine::clock::HostClock;
use crate::machine::placement::Cpu;

/// Properties of one end's machine that numbers depend on. Values that the system does not report
/// are `None`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Fingerprint {
    /// Host name.
    pub hostname: String,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Number of logical processors online.
    pub cpus: usize,
    /// Processor that the measuring process was pinned to.
    pub cpu: Option<Cpu>,
    /// Frequency governor of that processor.
    pub governor: Option<String>,
    /// Hypervisor's own name; `None` on bare metal.
    pub hypervisor: Option<String>,
    /// Name, release and architecture of the kernel.
    pub kernel: String,
    /// Kernel's current clock source.
    pub kernel_clocksource: Option<String>,
    /// Clock that the measurement read, see [`ClockSource::name`](super::clock::ClockSource::name).
    pub clock: String,
    /// Rate of `clock`, hertz.
    pub clock_hz: u64,
    /// Bound on the error of that rate, parts per 10⁹.
    pub clock_uncertainty_ppb: u32,
    /// Cost of a reading of `clock`, seconds.
    pub clock_read_s: f64,
    /// Link.
    pub link: LinkFingerprint,
}

/// Properties of a link that numbers depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LinkFingerprint {
    /// `tcp`, `udp`, `unix`, `shm`, `eth` or `verbs`.
    pub transport: String,
    /// Address or name of the peer.
    pub peer: String,
    /// How this end waits for messages: `poll` or `block`; empty if unknown.
    #[serde(default)]
    pub waiting: String,
    /// Network interface that owns this end's address.
    pub interface: Option<String>,
    /// Maximum transmission unit of the interface, bytes.
    pub mtu_bytes: Option<u64>,
    /// Driver of the interface.
    pub driver: Option<String>,
    /// Speed that the interface reports, bits per second.
    pub speed_bits_per_s: Option<u64>,
    /// Congestion control of a TCP connection.
    pub congestion_control: Option<String>,
    /// Maximum segment size of a TCP connection, bytes.
    pub segment_bytes: Option<u64>,
    /// Receive buffer of a UDP socket, bytes.
    pub receive_buffer_bytes: Option<u64>,
    /// MPI library that carries the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiLibrary>,
    /// Options of RDMA verbs, and the devices of both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbs: Option<VerbsRecord>,
}

/// Properties of an MPI library that numbers depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct MpiLibrary {
    /// Name and version.
    pub version: String,
    /// Sending call: `send`, `ssend` or `isend`.
    pub send: String,
    /// Receiving call: `recv` or `irecv`.
    pub receive: String,
    /// Alignment of message buffers; `None` in profiles whose buffers an allocator placed.
    #[serde(flatten)]
    pub alignment: Option<Alignment>,
    /// Library settings that decide how messages travel, by the library's names.
    pub settings: BTreeMap<String, String>,
}

impl Fingerprint {
    /// Reads the properties of this machine; `cpu` is the processor that this process is pinned to.
    #[must_use]
    pub fn take(clock: &HostClock, link: LinkFingerprint, cpu: Option<Cpu>) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            hostname: uname()
                .map(|name| name.nodename().to_string_lossy().into_owned())
                .unwrap_or_default(),
            cpu_model: cpu_model(&cpuinfo),
            cpus: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            cpu,
            governor: cpu.and_then(governor),
            hypervisor: hypervisor(),
            kernel: kernel(),
            kernel_clocksource: read_setting(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            clock: clock.source().name().to_owned(),
            clock_hz: clock.hertz(),
            clock_uncertainty_ppb: clock.uncertainty_ppb(),
            clock_read_s: clock.read_cost().seconds(),
            link,
        }
    }
}

impl LinkFingerprint {
    /// Reads the properties of `link`.
    #[must_use]
    pub fn take(link: &AnyLink) -> Self {
        let basic = Self {
            transport: link.transport().name().to_owned(),
            peer: link.peer().to_owned(),
            ..Self::default()
        };
        match link {
            AnyLink::Tcp(link) => {
                let stream = link.stream();
                let congestion = getsockopt(stream, sockopt::TcpCongestion).ok();
                let segment = getsockopt(stream, sockopt::TcpMaxSeg).ok();
                Self {
                    congestion_control: congestion.and_then(|name| name.into_string().ok()),
                    segment_bytes: segment.map(u64::from),
                    ..basic.with_interface(stream.local_addr().ok(), stream.peer_addr().ok())
                }
            }
            AnyLink::Udp(link) => {
                let socket = link.socket();
                Self {
                    receive_buffer_bytes: receive_buffer(socket).ok().map(|bytes| bytes.0),
                    ..basic.with_interface(socket.local_addr().ok(), socket.peer_addr().ok())
                }
            }
            AnyLink::Eth(link) => basic.on_interface(link.interface().to_owned()),
            AnyLink::Verbs(link) => basic.with_verbs(link.record()),
            AnyLink::Unix(_) | AnyLink::Shm(_) => basic,
        }
    }

    fn with_verbs(self, record: &VerbsRecord) -> Self {
        let on_interface = match record.here.interface.clone() {
            Some(name) => self.on_interface(name),
            None => self,
        };
        Self {
            mtu_bytes: Some(record.mtu_bytes.into()),
            speed_bits_per_s: record.here.rate_bits_per_s,
            verbs: Some(record.clone()),
            ..on_interface
        }
    }

    fn with_interface(self, local: Option<SocketAddr>, peer: Option<SocketAddr>) -> Self {
        let (Some(local), Some(peer)) = (local.map(canonical), peer.map(canonical)) else {
            return self;
        };
        // Packets between two addresses of one machine use the loopback, whichever interface owns
        // the address.
        let same_machine = local.ip() == peer.ip() || interface_of(peer.ip()).is_some();
        let name = if same_machine { Some("lo".to_owned()) } else { interface_of(local.ip()) };
        match name {
            Some(name) => self.on_interface(name),
            None => self,
        }
    }

    fn on_interface(self, name: String) -> Self {
        let folder = Path::new("/sys/class/net").join(&name);
        let number = |file: &str| read_setting(folder.join(file))?.parse::<u64>().ok();
        let driver = fs::read_link(folder.join("device/driver")).ok();
        Self {
            mtu_bytes: number("mtu"),
            speed_bits_per_s: number("speed").map(|megabits| megabits * 1_000_000),
            driver: driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())),
            interface: Some(name),
            ..self
        }
    }
}

/// Frequency governor of a processor.
pub(crate) fn governor(cpu: Cpu) -> Option<String> {
    read_setting(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
}

/// Trimmed content of a file of `/sys` or `/proc`; `None` if empty or unreadable.
pub(crate) fn read_setting(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Value of the line `key: value` in a file of `/proc`.
pub(crate) fn read_entry(path: impl AsRef<Path>, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Entry `key` of `/proc/meminfo`, bytes.
pub(crate) fn memory_entry(key: &str) -> Option<u64> {
    let kilobytes = read_entry("/proc/meminfo", key)?;
    kilobytes.strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// Name of the interface that owns `address`.
fn interface_of(address: IpAddr) -> Option<String> {
    let owned = |storage: &SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|owner| IpAddr::V4(owner.ip()));
        let v6 = || storage.as_sockaddr_in6().map(|owner| IpAddr::V6(owner.ip()));
        v4.or_else(v6)
    };
    let found =
        getifaddrs().ok()?.find(|entry| entry.address.as_ref().and_then(owned) == Some(address))?;
    Some(found.interface_name)
}

/// `model name` on x86; numbers of implementer and part on ARM.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == key).then(|| value.trim().to_owned())
        })
    };
    let arm = || {
        Some(format!("ARM implementer {} part {}", value("CPU implementer")?, value("CPU part")?))
    };
    value("model name").or_else(arm)
}

fn kernel() -> String {
    uname().map_or_else(
        |_| "unknown".to_owned(),
        |name| {
            let word = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
            format!("{} {} {}", word(name.sysname()), word(name.release()), word(name.machine()))
        },
    )
}

/// Vendor name of twelve characters that a hypervisor reports to its guests.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & PRESENT == 0 {
        return None;
    }
    let name = __cpuid(0x4000_0000);
    let bytes = [name.ebx, name.ecx, name.edx].map(u32::to_le_bytes).concat();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(char::from(0)).trim();
    Some(if text.is_empty() { "unnamed".to_owned() } else { text.to_owned() })
}

/// Hypervisor's name from the kernel, where the processor cannot report it.
#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    read_setting("/sys/hypervisor/type")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkSettings, TcpLink, UnixLink};
    use std::net::TcpListener;

    #[test]
    fn the_model_of_a_processor_is_found_on_x86_and_arm() {
        let intel = "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\n";
        assert_eq!(cpu_model(intel).as_deref(), Some("Intel(R) Xeon(R)"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("ARM implementer 0x41 part 0xd0c"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn a_tcp_link_over_loopback_is_described() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link =
            TcpLink::connect(listener.local_addr().unwrap(), LinkSettings::default()).unwrap();
        let print = LinkFingerprint::take(&AnyLink::Tcp(link));
        assert_eq!(print.interface.as_deref(), Some("lo"));
        assert!(print.mtu_bytes.is_some_and(|bytes| bytes >= 1_500), "{print:?}");
        assert!(print.congestion_control.is_some() && print.segment_bytes.is_some(), "{print:?}");
    }

    #[test]
    fn a_fingerprint_survives_json() {
        let (link, _far) = UnixLink::pair(LinkSettings::default()).unwrap();
        let print = Fingerprint::take(
            &HostClock::monotonic_raw(),
            LinkFingerprint::take(&AnyLink::Unix(link)),
            Some(0),
        );
        assert!(!print.hostname.is_empty() && print.cpus > 0, "{print:?}");
        let json = serde_json::to_string(&print).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), print);
    }
}
