//! Raw Ethernet between two stations: two network namespaces and a virtual
//! cable between them. Needs root and `ip`; without them each test says so
//! and does nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loggap::clock::HostClock;
use loggap::link::{EthLink, LinkError, LinkSettings, Waiting, parse_address};
use loggap_core::measure::{Clock, Ending, Link, LinkProperties, serve};
use loggap_core::random::Random;
use loggap_core::units::Picos;
use loggap_core::wire::Bounds;
use loggap_tests::command::{binary, finish, machine};
use nix::sched::{CloneFlags, setns};
use nix::unistd::{Pid, Uid};
use serde_json::Value;

/// Address of the serving station.
const SERVER: &str = "02:00:00:00:00:01";
/// Address of the measuring station.
const CLIENT: &str = "02:00:00:00:00:02";

/// Two namespaces joined by a cable; gone when dropped.
struct Cable {
    names: [String; 2],
}

impl Cable {
    /// `None`, with the reason printed, where this machine allows none.
    fn plug(test: &str, mtu: u32) -> Option<Self> {
        if !Uid::effective().is_root() {
            eprintln!("skipped: network namespaces need root");
            return None;
        }
        let names = ["s", "c"].map(|end| format!("lg{}{test}{end}", Pid::this()));
        let [server, client] = &names;
        let cable = Self { names: names.clone() };
        let mtu = mtu.to_string();
        let commands = [
            format!("netns add {server}"),
            format!("netns add {client}"),
            format!(
                "link add eth netns {server} address {SERVER} mtu {mtu} type veth peer name eth netns {client} address {CLIENT} mtu {mtu}"
            ),
            format!("-n {server} link set eth up"),
            format!("-n {client} link set eth up"),
        ];
        for command in commands {
            match Command::new("ip").args(command.split(' ')).output() {
                Ok(output) if output.status.success() => {}
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    eprintln!("skipped: `ip {command}`: {said}");
                    return None;
                }
                Err(error) => {
                    eprintln!("skipped: no `ip` ({error})");
                    return None;
                }
            }
        }
        Some(cable)
    }

    /// `loggap` at one end: 0 is the server's.
    fn loggap(&self, end: usize, arguments: &str) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end]]).arg(binary());
        command.args(arguments.split(' ')).args(["--transport", "eth", "--interface", "eth"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A server that listens already.
    fn serve(&self) -> Child {
        let mut child = self.loggap(0, "serve --once --block");
        let mut line = String::new();
        // The line is short: nothing behind it is read yet.
        let out = child.stdout.as_mut().unwrap();
        BufReader::with_capacity(1, out).read_line(&mut line).unwrap();
        assert_eq!(line, "listening eth eth\n");
        child
    }

    fn measure(&self, arguments: &str) -> Output {
        finish(self.loggap(1, &format!("measure --block --max-time 2 {arguments}")))
    }

    /// Moves this thread to one end.
    fn enter(&self, end: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[end])).unwrap();
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            let _not_made = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_stations_measure_up_to_the_longest_frame() {
    let _alone = machine();
    for mtu in [1_500, 9_000] {
        let Some(cable) = Cable::plug("a", mtu) else { return };
        let server = cable.serve();
        let longest = mtu - 4;
        let sizes = format!("-s 1,64,{longest} -J --peer {SERVER}");
        let document = json(&cable.measure(&sizes));
        assert_eq!(document["transport"], "eth");
        assert_eq!(document["host"]["link"]["mtu_bytes"], mtu);
        let range = document["ranges"].as_array().unwrap().last().unwrap();
        assert_eq!(range["last_bytes"], longest);
        assert!(range["gap_s"].as_f64().unwrap() > 0.0, "{range}");
        let output = finish(server);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_message_longer_than_a_frame_is_refused_beforehand() {
    let Some(cable) = Cable::plug("b", 1_500) else { return };
    let output = cable.measure("-s 1,1497");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("1497") && said.contains("1496"), "{said}");
}

#[test]
fn nobody_there_is_an_error_in_bounded_time() {
    let Some(cable) = Cable::plug("c", 1_500) else { return };
    let _built = binary();
    let (clock, limit) = (HostClock::monotonic_raw(), Picos::from_micros(20_000_000).unwrap());
    let began = clock.now();
    let output = cable.measure("-s 1");
    assert_eq!(output.status.code(), Some(1));
    assert!(clock.duration(clock.now() - began) < limit);
    assert!(String::from_utf8_lossy(&output.stderr).contains("silent"));
}

/// Ends the babble when dropped, also by a failed assertion.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frames with any content from both stations' own addresses, some of them
/// longer than any message.
fn babble(cable: &Cable, over: &AtomicBool) {
    let open = |end: usize, peer| {
        cable.enter(end);
        EthLink::open("eth", peer, LinkSettings::default()).unwrap()
    };
    let mut links = [open(0, None), open(1, parse_address(SERVER))];
    let mut random = Random::new(7);
    let mut message = [0; 1_496];
    while !over.load(Ordering::Relaxed) {
        for byte in &mut message {
            *byte = random.draw().to_le_bytes()[0];
        }
        let length = usize::try_from(random.below(1_496)).unwrap();
        for link in &mut links {
            link.send(&message[..length]).unwrap();
        }
        thread::sleep(Duration::from_micros(500));
    }
}

#[test]
fn frames_that_belong_to_nothing_are_passed_over() {
    let _alone = machine();
    let Some(cable) = Cable::plug("d", 1_500) else { return };
    let server = cable.serve();
    let over = AtomicBool::new(false);
    let document = thread::scope(|scope| {
        scope.spawn(|| babble(&cable, &over));
        let _over = Over(&over);
        json(&cable.measure("-s 1,64,700 -J"))
    });
    assert_eq!(document["ranges"].as_array().unwrap().last().unwrap()["last_bytes"], 700);
    assert!(finish(server).status.success());
}

/// A link that loses every 97th message on its way out.
struct Lossy(EthLink, u64);

impl Link for Lossy {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        self.0.properties()
    }

    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.1 += 1;
        if self.1.is_multiple_of(97) { Ok(()) } else { self.0.send(message) }
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        self.0.poll_receive(buffer)
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        self.0.discard()
    }
}

#[test]
fn lost_frames_are_counted_and_cost_no_more_than_their_round() {
    let _alone = machine();
    let Some(cable) = Cable::plug("e", 1_500) else { return };
    let document = thread::scope(|scope| {
        let server = scope.spawn(|| {
            cable.enter(0);
            let settings = LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() };
            let link = EthLink::open("eth", parse_address(CLIENT), settings).unwrap();
            let clock = HostClock::calibrated();
            serve(&clock, &mut Lossy(link, 0), &mut [0; 2_000], Bounds::default()).unwrap()
        });
        let document = json(&cable.measure("-s 1,1496 -J"));
        let (served, ending) = server.join().unwrap();
        assert_eq!(ending, Ending::Goodbye);
        assert!(served.rounds > 97);
        document
    });
    assert!(document["messages_lost"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(document["ranges"].as_array().unwrap().last().unwrap()["last_bytes"], 1_496);
}
