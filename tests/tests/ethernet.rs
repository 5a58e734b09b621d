//! Raw Ethernet between two stations, and paths of which a part takes shorter
//! packets: network namespaces and virtual cables between them. Needs root and `ip`; without them each test says so
//! and does nothing.

use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loggap::link::{Endpoint, EthLink, LinkError, LinkSettings, Transport, Waiting, parse_address};
use loggap::machine::clock::HostClock;
use loggap::serve::listener::{Arrival, Listener};
use loggap_core::measure::{Clock, Ending, Link, serve};
use loggap_core::random::Random;
use loggap_core::units::Picos;
use loggap_core::wire::{Bounds, FRAME_LEN, Message, Versions};
use loggap_tests::cable::{CLIENT, Cable, End, INTERFACE, Kind, SERVER};
use loggap_tests::cleanup::{Namespace, Process, ip};
use loggap_tests::command::{Ended, binary, machine, skipped};
use loggap_tests::lossy::{Loss, LossyLink};
use loggap_tests::server::{frame, hello};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Uid;

/// Address of another station beside both.
const OTHER: &str = "02:00:00:00:00:03";

/// A cable for packets of that length; `None`, with the reason printed, where
/// this machine allows none.
fn plug(mtu: u32) -> Option<Cable> {
    Cable::plug(&Kind::plain(mtu)).inspect_err(|reason| refused("raw Ethernet", reason)).ok()
}

/// Skips what only root may.
fn refused(what: &str, reason: &str) {
    assert!(!Uid::effective().is_root(), "root may: {reason}");
    skipped(what, reason);
}

/// A server that listens already.
fn serve_once(cable: &Cable) -> Process {
    let (server, endpoint) = cable.serve("eth", &["--once", "--block"]).unwrap();
    assert_eq!(endpoint, INTERFACE);
    server
}

fn measure(cable: &Cable, arguments: &str) -> Ended {
    let mut command = cable.loggap(End::Client);
    command.args(["measure", "--transport", "eth", "--interface", INTERFACE]);
    command.args(["--block", "--max-time", "2"]).args(arguments.split(' '));
    Process::start(&mut command).finish()
}

#[test]
fn two_stations_measure_up_to_the_longest_frame() {
    let _alone = machine();
    for mtu in [1_500, 9_000] {
        let Some(cable) = plug(mtu) else { return };
        let server = serve_once(&cable);
        let longest = mtu - 4;
        let sizes = format!("-s 1,64,{longest} -J --peer {SERVER}");
        let document = measure(&cable, &sizes).exited(0).json();
        assert_eq!(document["transport"], "eth");
        assert_eq!(document["host"]["link"]["mtu_bytes"], mtu);
        let range = document["ranges"].as_array().unwrap().last().unwrap();
        assert_eq!(range["last_bytes"], longest);
        // Where both ends sleep between frames, waking up for the first one may
        // take longer than all others: then the gap is 0 as far as can be told.
        let largest = document["sizes"].as_array().unwrap().last().unwrap();
        for key in ["half_rtt_s_lo", "gap_s_hi", "send_overhead_s"] {
            assert!(largest[key].as_f64().unwrap() > 0.0, "{key}: {largest}");
        }
        let _ended = server.finish().exited(0);
    }
}

#[test]
fn a_message_longer_than_a_frame_is_refused_beforehand() {
    let Some(cable) = plug(1_500) else { return };
    let said = measure(&cable, "-s 1,1497").exited(2).stderr;
    assert!(said.contains("1497") && said.contains("1496"), "{said}");
}

#[test]
fn nobody_there_is_an_error_in_bounded_time() {
    let Some(cable) = plug(1_500) else { return };
    let _built = binary();
    let (clock, limit) = (HostClock::monotonic_raw(), Picos::from_micros(20_000_000).unwrap());
    let began = clock.now();
    let output = measure(&cable, "-s 1").exited(1);
    assert!(clock.duration(clock.now() - began) < limit);
    let talk = &output.stderr;
    assert!(talk.contains("no answer from a station on eth: start `loggap serve"), "{talk}");
}

/// A cable whose client's end takes longer packets than the server's.
fn unequal() -> Option<Cable> {
    let cable = plug(1_500)?;
    ip(&format!("-n {} link set {INTERFACE} mtu 9000", cable.name(End::Client))).unwrap();
    Some(cable)
}

#[test]
fn frames_end_at_the_smaller_mtu_of_both_ends() {
    let _alone = machine();
    let Some(cable) = unequal() else { return };
    let _server = serve_once(&cable);
    let document = measure(&cable, "--launches 1 -J").exited(0).json();
    let last = document["sizes"].as_array().unwrap().last().unwrap();
    assert_eq!(last["size_bytes"], 1_496);
    let told = document["warnings"].to_string();
    assert!(told.contains("messages of up to 1496 B"), "{told}");
}

#[test]
fn sizes_that_never_arrive_are_given_up_and_the_path_is_named() {
    let _alone = machine();
    let Some(cable) = unequal() else { return };
    let (_server, endpoint) = cable.serve("udp", &["--block"]).unwrap();
    let run = |arguments: &str| {
        let mut command = cable.loggap(End::Client);
        command.args(arguments.split(' ')).args(["--transport", "udp", "--block", &endpoint]);
        Process::start(&mut command).finish()
    };
    let document = run("measure --max-time 3 -J").exited(0).json();
    let warnings = document["warnings"].as_array().unwrap();
    let told = |part: &str| warnings.iter().any(|warning| warning.as_str().unwrap().contains(part));
    assert!(told("nothing above") && told("path MTU?"), "{warnings:?}");
    // A busy machine is told to take more time for other sizes.
    assert!(!told("-n 4"), "{warnings:?}");
    let ranges = document["ranges"].as_array().unwrap();
    let last = ranges.last().unwrap()["last_bytes"].as_u64().unwrap();
    assert!((1_024..1_500).contains(&last), "{last}");
    assert!(document["wall_s"].as_f64().unwrap() < 6.0, "{document}");
    for method in ["signature -s 1,1K,4K", "plogp -s 1,1K,4K"] {
        let document = run(&format!("measure --max-time 4 -J --method {method}")).exited(0).json();
        let told = document["warnings"].to_string();
        assert!(told.contains("nothing above 1024 B arrives: path MTU?"), "{method}: {told}");
    }
    for command in ["lat -s 1K,8K,16K", "bw -s 1K,8K -n 640"] {
        let output = run(command).exited(1);
        let told = &output.stderr;
        assert!(told.contains("nothing above 1024 B arrives: path MTU?"), "{command}: {told}");
        let rows = &output.stdout;
        assert!(rows.lines().any(|row| row.starts_with("1024 ")), "{rows}");
    }
}

#[test]
fn a_router_that_takes_shorter_packets_costs_a_round_and_is_named() {
    let _alone = machine();
    let name = |end| format!("lg{}r{end}", std::process::id());
    let [client, router, server] = ["c", "r", "s"].map(|end| Namespace::add(name(end)));
    let (client, router, server) = match (client, router, server) {
        (Ok(client), Ok(router), Ok(server)) => (client, router, server),
        (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => {
            return refused("a path over a router", &reason);
        }
    };
    for (end, host, mtu) in [(&client, 1, 1_500), (&server, 2, 1_400)] {
        let (end, router) = (end.name(), router.name());
        for words in [
            format!(
                "link add r{host} netns {router} mtu {mtu} type veth peer name eth netns {end} mtu {mtu}"
            ),
            format!("-n {router} address add fd77:{host}::1/64 dev r{host} nodad"),
            format!("-n {end} address add fd77:{host}::2/64 dev eth nodad"),
            format!("-n {router} link set r{host} up"),
            format!("-n {end} link set eth up"),
            format!("-n {end} route add default via fd77:{host}::1"),
        ] {
            ip(&words).unwrap();
        }
    }
    let forwarding = "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding";
    let mut forward = Command::new("ip");
    forward.args(["netns", "exec", router.name(), "sh", "-c", forwarding]);
    assert!(forward.status().unwrap().success());
    let loggap = |end: &Namespace, arguments: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", end.name()]).arg(binary()).args(arguments.split(' '));
        Process::start(&mut command)
    };
    let _server = loggap(&server, "serve --transport udp --block");
    thread::sleep(Duration::from_millis(500));
    let arguments = "measure --transport udp --block fd77:2::2 -s 1:4K --max-time 2 -J";
    let document = loggap(&client, arguments).finish().exited(0).json();
    let told = document["warnings"].to_string();
    assert!(told.contains("packets of up to 1400 B, the interface of up to 1500 B"), "{told}");
    let last = document["sizes"].as_array().unwrap().last().unwrap();
    assert_eq!(last["size_bytes"], 4_096);
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
    let open = |end: End, peer| {
        cable.enter(end);
        EthLink::open(INTERFACE, peer, LinkSettings::default()).unwrap()
    };
    let mut links = [open(End::Server, None), open(End::Client, parse_address(SERVER))];
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
    let Some(cable) = plug(1_500) else { return };
    let server = serve_once(&cable);
    let over = AtomicBool::new(false);
    let document = thread::scope(|scope| {
        scope.spawn(|| babble(&cable, &over));
        let _over = Over(&over);
        measure(&cable, "-s 1,64,700 -J").exited(0).json()
    });
    assert_eq!(document["ranges"].as_array().unwrap().last().unwrap()["last_bytes"], 700);
    let _ended = server.finish().exited(0);
}

/// Whether something is to be read within a fifth of a second.
fn is_readable(socket: &(impl AsFd + ?Sized)) -> bool {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::from(200_u8)).unwrap() > 0
}

fn received(link: &mut (impl Link<Error = LinkError> + ?Sized)) -> Option<Message> {
    let mut frame = [0; 2_000];
    (0..20).find_map(|_| link.poll_receive(&mut frame).unwrap())?;
    Some(Message::parse(&frame).unwrap())
}

#[test]
fn the_listening_socket_gets_hellos_only_and_a_session_its_peers_frames_only() {
    let Some(cable) = plug(1_500) else { return };
    let settings = LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() };
    // Sockets stay in the namespace that they were made in.
    let open = |end: End, interface: &str, peer: &str| {
        thread::scope(|scope| {
            let opened = scope.spawn(|| {
                cable.enter(end);
                EthLink::open(interface, parse_address(peer), settings).unwrap()
            });
            opened.join().unwrap()
        })
    };
    let endpoint = Endpoint::Station { interface: INTERFACE.into(), peer: None };
    let mut listener = thread::scope(|scope| {
        let listens = scope.spawn(|| {
            cable.enter(End::Server);
            Listener::bind(Transport::Eth, &endpoint, settings).unwrap()
        });
        listens.join().unwrap()
    });
    let mut client = open(End::Client, INTERFACE, SERVER);
    client.send(&[5; 1_000]).unwrap();
    client.send(&[5; FRAME_LEN]).unwrap();
    client.send(&frame(&Message::Sync { token: 1 })).unwrap();
    assert!(!is_readable(&listener), "the filter lets something else through");
    client.send(&hello(Versions::OURS, 0)).unwrap();
    assert!(is_readable(&listener));
    // A new socket is made for the session: in the server's namespace.
    let mut accept = || {
        thread::scope(|scope| {
            let accepts = scope.spawn(|| {
                cable.enter(End::Server);
                listener.try_accept().unwrap()
            });
            accepts.join().unwrap()
        })
    };
    assert!(accept().is_none(), "no session before the nonce came back");
    let Some(Message::Challenge { nonce }) = received(&mut client) else { panic!() };
    client.send(&hello(Versions::OURS, nonce)).unwrap();
    thread::sleep(Duration::from_millis(50));
    let Some(Arrival::Client(mut session)) = accept() else { panic!("no session") };
    assert!(matches!(received(&mut *session), Some(Message::Hello(_))));
    // Another station on the same cable.
    let client_end = cable.name(End::Client);
    let second =
        format!("-n {client_end} link add other link {INTERFACE} address {OTHER} type macvlan");
    let up = format!("-n {client_end} link set other up");
    if let Err(reason) = ip(&second).and_then(|()| ip(&up)) {
        refused("a second station", &reason);
        return;
    }
    let mut stranger = open(End::Client, "other", SERVER);
    stranger.send(&frame(&Message::Bye)).unwrap();
    assert!(!is_readable(&*session), "a frame of another station reaches the session");
    client.send(&frame(&Message::Bye)).unwrap();
    assert_eq!(received(&mut *session), Some(Message::Bye));
}

#[test]
fn lost_frames_are_counted_and_cost_no_more_than_their_round() {
    let _alone = machine();
    let Some(cable) = plug(1_500) else { return };
    let document = thread::scope(|scope| {
        let server = scope.spawn(|| {
            cable.enter(End::Server);
            let settings = LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() };
            let link = EthLink::open(INTERFACE, parse_address(CLIENT), settings).unwrap();
            let clock = HostClock::calibrated();
            serve(
                &clock,
                &mut LossyLink { link, loss: Loss::Every(97), sent: 0 },
                &mut [0; 2_000],
                Bounds::default(),
            )
            .unwrap()
        });
        let document = measure(&cable, "-s 1,1496 -J").exited(0).json();
        let (served, ending) = server.join().unwrap();
        assert_eq!(ending, Ending::Goodbye);
        assert!(served.rounds > 97);
        document
    });
    assert!(document["messages_lost"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(document["ranges"].as_array().unwrap().last().unwrap()["last_bytes"], 1_496);
}
