//! Environment of a measurement, as stored in a profile: machine and link.

use std::fs;

use loggap_core::measure::Clock;
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

use crate::link::LinkFingerprint;
use crate::machine::clock::HostClock;
use crate::machine::kernel_files::read_setting;
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

/// Frequency governor of a processor.
pub(crate) fn governor(cpu: Cpu) -> Option<String> {
    read_setting(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
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
    use crate::link::{HostLink, LinkSettings, UnixLink};

    #[test]
    fn the_model_of_a_processor_is_found_on_x86_and_arm() {
        let intel = "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\n";
        assert_eq!(cpu_model(intel).as_deref(), Some("Intel(R) Xeon(R)"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("ARM implementer 0x41 part 0xd0c"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn a_fingerprint_survives_json() {
        let (link, _far) = UnixLink::pair(LinkSettings::default()).unwrap();
        let print = Fingerprint::take(&HostClock::monotonic_raw(), link.fingerprint(), Some(0));
        assert!(!print.hostname.is_empty() && print.cpus > 0, "{print:?}");
        let json = serde_json::to_string(&print).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), print);
    }
}
