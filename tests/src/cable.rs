//! Two network namespaces with a virtual cable between them, shaped or not.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns};
use nix::unistd::{Pid, Uid};

use crate::cleanup::{Namespace, Process, ip, run};
use crate::command::binary;

/// Ethernet address of the serving station.
pub const SERVER: &str = "02:00:00:00:00:01";
/// Ethernet address of the measuring station.
pub const CLIENT: &str = "02:00:00:00:00:02";
/// Internet addresses, the server's first.
pub const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
/// The interface at either end.
pub const INTERFACE: &str = "eth";

/// Which end of a cable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Where `loggap serve` runs.
    Server,
    /// Where `loggap measure` runs.
    Client,
}

/// Who counts the bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shaper {
    /// The token bucket filter.
    Tbf,
    /// A class of the hierarchical token bucket.
    Htb,
}

/// A limit to the bytes a second, whole frames counted.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Who limits.
    pub shaper: Shaper,
    /// Bits a second.
    pub rate: u64,
    /// Bytes that pass at once.
    pub burst: u64,
    /// The client's end alone, or both.
    pub ends: &'static [End],
}

/// What kind of cable.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Longest packet.
    pub mtu: u32,
    /// Whether packets are cut only after the qdisc.
    pub offload: Offload,
    /// A limit.
    pub shape: Option<Shape>,
}

/// Who cuts a stream into packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Offload {
    /// The interface, as by default.
    On,
    /// TCP itself, one packet at a time.
    Off,
}

/// Two namespaces joined by a cable; gone when dropped.
#[derive(Debug)]
pub struct Cable {
    ends: [Namespace; 2],
}

impl Kind {
    /// A cable without a limit.
    #[must_use]
    pub const fn plain(mtu: u32) -> Self {
        Self { mtu, offload: Offload::On, shape: None }
    }
}

impl Cable {
    /// A new cable.
    ///
    /// # Errors
    ///
    /// Why this machine allows none.
    pub fn plug(kind: &Kind) -> Result<Self, String> {
        if !Uid::effective().is_root() {
            return Err("network namespaces need root".to_owned());
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("lg{}n{number}{end}", Pid::this());
        let cable = Self { ends: [Namespace::add(name("s"))?, Namespace::add(name("c"))?] };
        let [server, client] = cable.ends.each_ref().map(Namespace::name);
        let mtu = kind.mtu;
        ip(&format!(
            "link add {INTERFACE} netns {server} address {SERVER} mtu {mtu} type veth peer name {INTERFACE} netns {client} address {CLIENT} mtu {mtu}"
        ))?;
        for (end, address) in [(server, ADDRESSES[0]), (client, ADDRESSES[1])] {
            if kind.offload == Offload::Off {
                ip(&format!("-n {end} link set {INTERFACE} gso_max_segs 1"))?;
            }
            ip(&format!("-n {end} address add {address}/24 dev {INTERFACE}"))?;
            ip(&format!("-n {end} link set {INTERFACE} up"))?;
        }
        if let Some(shape) = kind.shape {
            shape.ends.iter().try_for_each(|end| cable.shape(*end, &shape))?;
        }
        Ok(cable)
    }

    fn shape(&self, end: End, shape: &Shape) -> Result<(), String> {
        let Shape { shaper, rate, burst, .. } = shape;
        let commands = match shaper {
            Shaper::Tbf => {
                vec![format!(
                    "qdisc add dev {INTERFACE} root tbf rate {rate}bit burst {burst} latency 800ms"
                )]
            }
            Shaper::Htb => vec![
                format!("qdisc add dev {INTERFACE} root handle 1: htb default 1"),
                format!(
                    "class add dev {INTERFACE} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {burst} cburst {burst}"
                ),
            ],
        };
        for words in commands {
            run(Command::new("tc").args(["-n", self.name(end)]).args(words.split(' ')), &words)?;
        }
        Ok(())
    }

    /// The namespace of one end.
    #[must_use]
    pub fn name(&self, end: End) -> &str {
        self.ends[end as usize].name()
    }

    /// `loggap` at one end, ready for arguments.
    #[must_use]
    pub fn loggap(&self, end: End) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(end)]).arg(binary());
        command
    }

    /// Moves this thread to one end.
    pub fn enter(&self, end: End) {
        let file = File::open(format!("/run/netns/{}", self.name(end))).unwrap();
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
    }

    /// A server that listens already, and its endpoint.
    ///
    /// # Errors
    ///
    /// What it said instead.
    pub fn serve(&self, transport: &str, arguments: &[&str]) -> Result<(Process, String), String> {
        let mut command = self.loggap(End::Server);
        command.args(["serve", "--transport", transport]).args(arguments);
        match transport {
            "eth" => command.args(["--interface", INTERFACE]),
            _ => command.args(["--bind", ADDRESSES[0], "-p", "0"]),
        };
        let mut process = Process::start(&mut command);
        let mut line = String::new();
        if let Some(out) = process.child().and_then(|child| child.stdout.as_mut()) {
            // The line is short: nothing behind it is read yet.
            BufReader::with_capacity(1, out).read_line(&mut line).unwrap();
        }
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["listening", _, endpoint] => Ok((process, endpoint.to_owned())),
            _ => Err(process.finish().stderr.trim().to_owned()),
        }
    }
}
