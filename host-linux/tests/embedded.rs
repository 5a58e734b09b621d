//! The responder in a second process: it answers over every transport, dies
//! with its parent, and its death is noticed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::fs;
use std::hint;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loggap::link::{AnyLink, LinkError, LinkSettings, Transport, Waiting};
use loggap::machine::clock::HostClock;
use loggap::machine::placement::allowed;
use loggap::serve::local::{COMMAND, EmbeddedError, Responder};
use loggap_core::measure::{
    Buffers, Experiment, Initiator, Outcome, Quantity, SessionError, SessionOptions,
};
use loggap_core::units::Picos;
use nix::sys::signal::Signal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_loggap");
const LONGEST: u32 = 3 << 20;

fn responder(transport: Transport) -> Responder {
    Responder {
        program: PathBuf::from(PROGRAM),
        transport,
        // Test machines have fewer processors than tests have processes.
        settings: LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() },
        cpu: None,
        longest_message: LONGEST,
    }
}

fn experiments(longest: u32) -> Vec<Experiment> {
    let sizes = [1, 100, 5_000, longest];
    let of = |size| {
        [
            (Quantity::RoundTrip, 1, 0),
            (Quantity::Gap, 10, 0),
            (Quantity::Paced, 4, 30),
            (Quantity::Receive, 1, 200),
        ]
        .map(|(quantity, messages, micros)| Experiment {
            quantity,
            messages,
            delay: Picos::from_micros(micros).unwrap(),
            size,
        })
    };
    sizes.into_iter().flat_map(of).collect()
}

/// Runs every kind of experiment and returns how many gave a sample.
fn measure(mut link: AnyLink, longest: u32) -> Result<usize, SessionError<LinkError>> {
    let (mut outgoing, mut incoming) = (vec![0; LONGEST as usize], vec![0; LONGEST as usize]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let nobody_waits = |_| ControlFlow::Break(());
    let clock = HostClock::calibrated();
    let mut session =
        Initiator::connect(clock, &mut *link, buffers, SessionOptions::default(), nobody_waits)?;
    let mut samples = 0;
    session.run(&experiments(longest), |outcome| {
        match outcome {
            Outcome::Sample(sample) => {
                assert!(sample.elapsed > Picos::ZERO, "{sample:?}");
                samples += 1;
            }
            // Where the processors are busy a reply may be late.
            Outcome::Late(_) => samples += 1,
            Outcome::Lost(_) => {}
        }
    })?;
    session.close()?;
    Ok(samples)
}

#[test]
fn every_transport_measures_with_a_responder_of_its_own() {
    for transport in Transport::LOCAL {
        let (link, process) = responder(transport).spawn().unwrap();
        let longest = if transport == Transport::Udp { 60_000 } else { LONGEST };
        let samples = measure(link, longest).unwrap();
        // Datagrams may be lost, nothing else may.
        let least = if transport == Transport::Udp { 8 } else { 16 };
        assert!(samples >= least, "{transport}: {samples} samples");
        process.finish().unwrap();
    }
}

#[test]
fn the_death_of_the_responder_is_an_error_and_no_hang() {
    for transport in Transport::LOCAL {
        let (mut link, process) = responder(transport).spawn().unwrap();
        drop(process);
        let error = loop {
            // A stream ends by itself. A datagram shows that nobody is there, unless it comes
            // to a copy of the socket: a process that another test begins has one for a moment.
            if transport == Transport::Udp {
                let _may_fail_already = link.send(&[1]);
            }
            match link.poll_receive(&mut [0; 448]) {
                Ok(None) => {}
                Ok(Some(length)) => panic!("{length} bytes from nobody"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, LinkError::Closed { .. }), "{transport}: {error}");
        assert!(error.to_string().contains("responder on this machine"), "{error}");
    }
}

/// How a responder ends whose initiator has gone.
fn left_alone(transport: Transport) -> Result<(), EmbeddedError> {
    let (link, process) = responder(transport).spawn()?;
    drop(link);
    process.finish()
}

#[test]
fn a_responder_without_its_initiator_ends() {
    for transport in [Transport::Tcp, Transport::Unix, Transport::Shm] {
        let error = left_alone(transport).unwrap_err();
        assert!(matches!(error, EmbeddedError::Failed { .. }), "{transport}: {error}");
    }
}

/// Where others have the processors, each look takes milliseconds.
#[test]
fn a_responder_over_shared_memory_ends_on_a_busy_machine() {
    let is_over = AtomicBool::new(false);
    let busy = || {
        while !is_over.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    };
    let ended = thread::scope(|scope| {
        for _ in 0..2 * thread::available_parallelism().unwrap().get() {
            scope.spawn(busy);
        }
        let ended = left_alone(Transport::Shm);
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    assert!(matches!(ended, Err(EmbeddedError::Failed { .. })), "{ended:?}");
}

#[test]
fn a_responder_dies_with_its_parent() {
    // `sh` starts the responder in the background, with itself as parent,
    // says its number and is killed.
    let script =
        format!("'{PROGRAM}' {COMMAND} udp block 65536 $$ -:1:-:usual null <&3 & echo $!; wait");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", &format!("exec 3<&0; {script}")])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let process: u32 = line.trim().parse().unwrap();
    // The shell has the program's name among its arguments, too, but runs another file.
    let program = fs::canonicalize(PROGRAM).unwrap();
    let runs = || fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|file| file == program);
    // It holds Ctrl-C back once it is to die with its parent.
    let is_set_up = || runs() && blocks_interrupts(process);
    assert!(within_two_seconds(is_set_up), "{process} never became a responder");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(within_two_seconds(|| !runs()), "{process} has outlived its parent");
}

/// Whether the process holds SIGINT back, by the mask of signals in its status.
fn blocks_interrupts(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return false };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (Signal::SIGINT as u32 - 1)) != 0
}

fn within_two_seconds(happens: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        let now = happens();
        if !now {
            thread::sleep(Duration::from_millis(10));
        }
        now
    })
}

#[test]
fn the_responder_runs_where_it_was_told_to() {
    let cpu = *allowed().last().unwrap();
    let (link, process) =
        Responder { cpu: Some(cpu), ..responder(Transport::Unix) }.spawn().unwrap();
    process.pinned().as_ref().unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
    assert_eq!(line.split_whitespace().last(), Some(cpu.to_string().as_str()));
    drop(link);
    let (_link, process) =
        Responder { cpu: Some(9_999), ..responder(Transport::Unix) }.spawn().unwrap();
    assert!(process.pinned().as_ref().unwrap_err().to_string().contains("9999"));
}

#[test]
fn a_program_that_cannot_start_is_named() {
    let missing =
        Responder { program: PathBuf::from("/nonexistent/loggap"), ..responder(Transport::Shm) };
    let error = missing.spawn().unwrap_err().to_string();
    assert!(error.contains("/nonexistent/loggap") && error.contains("loggap serve"), "{error}");
}

#[test]
fn the_hidden_command_explains_itself_when_called_by_hand() {
    for arguments in [&[][..], &["carrier-pigeon", "poll", "1", "1"], &["tcp", "poll", "x", "1"]] {
        let output =
            Command::new(Path::new(PROGRAM)).arg(COMMAND).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains("loggap serve --help"), "{text}");
        assert!(output.stdout.is_empty());
    }
}
