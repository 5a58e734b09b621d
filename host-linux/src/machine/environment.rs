//! What a profile says about the machine and the link it was measured on.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use loggap_core::measure::Clock;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{SockaddrStorage, getsockopt, sockopt};
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

use crate::link::{AnyLink, VerbsRecord, receive_buffer};
use crate::machine::buffer::Alignment;
use crate::machine::clock::HostClock;
use crate::machine::placement::Cpu;

/// What numbers of one end depend on. A value that the system does not tell
/// is `None`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Fingerprint {
    /// Name of the machine.
    pub hostname: String,
    /// Model of the processor.
    pub cpu_model: Option<String>,
    /// Logical processors that are on.
    pub cpus: usize,
    /// The one that the measuring process was pinned to.
    pub cpu: Option<Cpu>,
    /// Frequency governor of that one.
    pub governor: Option<String>,
    /// The hypervisor's own name; `None` on bare metal.
    pub hypervisor: Option<String>,
    /// Name, release and architecture of the kernel.
    pub kernel: String,
    /// What the kernel keeps time with.
    pub kernel_clocksource: Option<String>,
    /// What the measurement read.
    pub clock: String,
    /// Its rate in hertz.
    pub clock_hz: u64,
    /// Bound on the error of that rate, in parts per 10⁹.
    pub clock_uncertainty_ppb: u32,
    /// What reading it costs, in seconds.
    pub clock_read_s: f64,
    /// The link.
    pub link: LinkFingerprint,
}

/// What numbers of a link depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LinkFingerprint {
    /// `tcp`, `udp`, `unix`, `shm`, `eth` or `verbs`.
    pub transport: String,
    /// The other end.
    pub peer: String,
    /// How this end waits for messages: `poll` or `block`; empty where it is
    /// not known.
    #[serde(default)]
    pub waiting: String,
    /// The network interface that owns this end's address.
    pub interface: Option<String>,
    /// Its maximum transmission unit.
    pub mtu_bytes: Option<u64>,
    /// Its driver.
    pub driver: Option<String>,
    /// Its speed in bits a second, as it reports it.
    pub speed_bits_per_s: Option<u64>,
    /// Congestion control of a TCP connection.
    pub congestion_control: Option<String>,
    /// Maximum segment of a TCP connection.
    pub segment_bytes: Option<u64>,
    /// Receive buffer of a UDP socket.
    pub receive_buffer_bytes: Option<u64>,
    /// The MPI library that carries the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiLibrary>,
    /// How RDMA verbs are used, and the devices of both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbs: Option<VerbsRecord>,
}

/// What numbers of a link over MPI depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct MpiLibrary {
    /// Name and version.
    pub version: String,
    /// Which call sends: `send`, `ssend` or `isend`.
    pub send: String,
    /// Which call receives: `recv` or `irecv`.
    pub receive: String,
    /// Place of message buffers; `None` in profiles in which an allocator chose it.
    #[serde(flatten)]
    pub alignment: Option<Alignment>,
    /// Settings of the library that decide how messages travel, by their own
    /// names.
    pub settings: BTreeMap<String, String>,
}

impl Fingerprint {
    /// Looks at this machine; `cpu` is the processor that this process is
    /// pinned to.
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
    /// Looks at `link`.
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
        let (Some(local), Some(peer)) = (local, peer) else { return self };
        // Packets to an address of this machine never leave it, whichever
        // interface owns the address.
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

/// The frequency governor of a processor.
pub(crate) fn governor(cpu: Cpu) -> Option<String> {
    read_setting(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
}

/// The content of a file of `/sys` or `/proc` without the line's end.
pub(crate) fn read_setting(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What stands behind `key:` in a file of `/proc`.
pub(crate) fn read_entry(path: impl AsRef<Path>, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Bytes that the kernel's account of memory names `key`.
pub(crate) fn memory_entry(key: &str) -> Option<u64> {
    let kilobytes = read_entry("/proc/meminfo", key)?;
    kilobytes.strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The interface that owns `address`.
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

/// `model name` on x86; on ARM the numbers of implementer and part.
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

/// The twelve characters by which a hypervisor names itself to its guests.
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

/// Where the processor cannot be asked, the kernel may know.
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
