//! Processors near the network device of a link.

use std::path::Path;

use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::kernel_files::read_setting;
use super::placement::{Cpu, allowed, parse_cpu_list, set_of};
use crate::link::LinkFingerprint;

/// Root of the system's device descriptions.
const SYS: &str = "/sys";

/// NUMA node of a link's RDMA device, else of its network interface; `None` for virtual devices and
/// on machines with a single node.
pub(crate) fn node_of(link: &LinkFingerprint) -> Option<u32> {
    node_below(Path::new(SYS), link)
}

/// Processors of `allowed` on the NUMA node `node`; all of `allowed` if there are none, or the node
/// is unknown.
pub(crate) fn near_node(node: Option<u32>, allowed: &[Cpu]) -> Vec<Cpu> {
    near_below(Path::new(SYS), node, allowed)
}

/// Runs `work` on processors of the NUMA node `node`, as far as this thread may, and restores the
/// affinity afterwards. Memory first touched by `work` is then on that node.
pub(crate) fn run_on_node<R>(node: Option<u32>, work: impl FnOnce() -> R) -> R {
    let this = Pid::from_raw(0);
    let all = allowed();
    let near = near_node(node, &all);
    let before = (near.len() < all.len()).then(|| sched_getaffinity(this).ok()).flatten();
    let Some(before) = before else { return work() };
    let moved = set_of(&near).and_then(|near| sched_setaffinity(this, &near));
    let done = work();
    if moved.is_ok() {
        let _stays_near = sched_setaffinity(this, &before);
    }
    done
}

fn node_below(sys: &Path, link: &LinkFingerprint) -> Option<u32> {
    let of_device = link.verbs.as_ref().and_then(|verbs| verbs.here.numa_node);
    // An InfiniBand device may have no network interface.
    of_device.or_else(|| {
        let file = sys.join("class/net").join(link.interface.as_ref()?).join("device/numa_node");
        // -1 means no node.
        read_setting(file)?.parse().ok()
    })
}

fn near_below(sys: &Path, node: Option<u32>, allowed: &[Cpu]) -> Vec<Cpu> {
    let list = node
        .and_then(|node| read_setting(sys.join(format!("devices/system/node/node{node}/cpulist"))));
    let of_node = list.as_deref().and_then(parse_cpu_list).unwrap_or_default();
    let near: Vec<Cpu> = allowed.iter().copied().filter(|cpu| of_node.contains(cpu)).collect();
    if near.is_empty() { allowed.to_vec() } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{VerbsPort, VerbsRecord};
    use std::fs;

    /// A machine of two nodes, with `eth1` on the second and `veth0` on none.
    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, content) in [
            ("class/net/eth1/device/numa_node", "1\n"),
            ("class/net/veth0/device/numa_node", "-1\n"),
            ("devices/system/node/node0/cpulist", "0-3\n"),
            ("devices/system/node/node1/cpulist", "4-5,7\n"),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    /// A link over this interface.
    fn over(interface: Option<&str>) -> LinkFingerprint {
        LinkFingerprint { interface: interface.map(str::to_owned), ..LinkFingerprint::default() }
    }

    #[test]
    fn processors_of_a_node_go_before_all_others() {
        let machine = machine();
        let near = |node, allowed: &[Cpu]| near_below(machine.path(), node, allowed);
        assert_eq!(near(Some(1), &[0, 1, 4, 6, 7]), [4, 7]);
        assert_eq!(near(Some(0), &[0, 3, 4]), [0, 3]);
        // No processor of the node is allowed; the node does not exist; the node is unknown.
        assert_eq!(near(Some(1), &[0, 1]), [0, 1]);
        assert_eq!(near(Some(2), &[0, 4]), [0, 4]);
        assert_eq!(near(None, &[0, 4]), [0, 4]);
    }

    #[test]
    fn the_node_of_an_rdma_device_counts_and_no_interface_is_needed() {
        let machine = machine();
        let node = |numa_node, interface| {
            let here = VerbsPort { numa_node, ..VerbsPort::default() };
            let verbs = Some(VerbsRecord { here, ..VerbsRecord::default() });
            node_below(machine.path(), &LinkFingerprint { verbs, ..over(interface) })
        };
        assert_eq!(node(Some(1), None), Some(1));
        assert_eq!(node(Some(0), Some("eth1")), Some(0));
        assert_eq!(node(None, Some("eth1")), Some(1));
        assert_eq!(node(None, None), None);
        let over = |interface| node_below(machine.path(), &over(Some(interface)));
        assert_eq!(["eth1", "veth0", "wlan0"].map(over), [Some(1), None, None]);
    }

    #[test]
    fn a_thread_is_where_it_was_after_work_near_a_device() {
        let before = allowed();
        let within = run_on_node(Some(0), allowed);
        assert!(!within.is_empty() && within.iter().all(|cpu| before.contains(cpu)));
        assert_eq!(allowed(), before);
    }
}
