//! Processors near the interface that a peer is reached by.

use std::path::Path;

use crate::machine::environment::read_setting;
use crate::machine::placement::{Cpu, parse_cpu_list};

/// The NUMA node of a network interface; `None` where it has none, as virtual
/// ones have, or the machine has one node only.
pub(crate) fn node_of(interface: &str) -> Option<u32> {
    node_below(Path::new("/sys"), interface)
}

/// Those of `allowed` that are on the NUMA node of `interface`; all of them
/// where the node is not known or none of it is allowed.
pub(crate) fn near_interface(interface: Option<&str>, allowed: &[Cpu]) -> Vec<Cpu> {
    near_below(Path::new("/sys"), interface, allowed)
}

fn node_below(sys: &Path, interface: &str) -> Option<u32> {
    let file = sys.join("class/net").join(interface).join("device/numa_node");
    // -1 stands for none.
    read_setting(file)?.parse().ok()
}

fn near_below(sys: &Path, interface: Option<&str>, allowed: &[Cpu]) -> Vec<Cpu> {
    let list = interface
        .and_then(|interface| node_below(sys, interface))
        .and_then(|node| read_setting(sys.join(format!("devices/system/node/node{node}/cpulist"))));
    let of_node = list.as_deref().and_then(parse_cpu_list).unwrap_or_default();
    let near: Vec<Cpu> = allowed.iter().copied().filter(|cpu| of_node.contains(cpu)).collect();
    if near.is_empty() { allowed.to_vec() } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn processors_of_the_interfaces_node_go_before_all_others() {
        let machine = machine();
        let near = |interface, allowed: &[Cpu]| near_below(machine.path(), interface, allowed);
        assert_eq!(near(Some("eth1"), &[0, 1, 4, 6, 7]), [4, 7]);
        assert_eq!(node_below(machine.path(), "eth1"), Some(1));
    }

    #[test]
    fn without_a_node_or_without_its_processors_all_are_near() {
        let machine = machine();
        let near = |interface, allowed: &[Cpu]| near_below(machine.path(), interface, allowed);
        assert_eq!(near(Some("eth1"), &[0, 1]), [0, 1]);
        assert_eq!(near(Some("veth0"), &[0, 4]), [0, 4]);
        assert_eq!(near(Some("wlan0"), &[0, 4]), [0, 4]);
        assert_eq!(near(None, &[0, 4]), [0, 4]);
    }
}
