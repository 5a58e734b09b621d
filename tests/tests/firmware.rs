//! The core in machines without an operating system: its own test, the
//! responder and the initiator. Needs the images and QEMU, which
//! `tests/firmware/check` builds and installs; times under emulation mean
//! nothing, so the logic, losses, bounds and encodings are what is tested.

use std::collections::HashMap;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loggap::link::{EthLink, LinkSettings, Waiting, parse_address};
use loggap::machine::clock::HostClock;
use loggap::simulation::OwnedMemory;
use loggap_core::goal::pattern::{Options, Pattern, generate};
use loggap_core::measure::{Ending, Link, serve};
use loggap_core::model::{Profile, compact};
use loggap_core::random::Random;
use loggap_core::selftest;
use loggap_core::sim::{Builder, Engine, Parameters, Settings, Survey};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire::Bounds;
use loggap_tests::command::{finish, loggap_process, start};
use loggap_tests::emulator::{Machine, Tap};
use loggap_tests::lossy::{Loss, LossyLink};
use loggap_tests::timing::{Attempt, undisturbed};
use serde_json::Value;

/// Longest message in a frame of an MTU of 1500 bytes.
const LONGEST: u64 = 1_496;
/// QEMU's own address for the first network card of a machine.
const BOARD: &str = "52:54:00:12:34:56";

/// Checks that a machine said what this one says: a line for every known
/// answer and the closing count.
fn assert_passed(lines: &[String]) {
    let mut right = Vec::new();
    let count = selftest::run(|check| right.push(check.to_string()));
    right.push(count.to_string());
    let said = lines.iter().filter_map(|line| {
        let start = line.find("check ").or_else(|| line.find("self-test: "))?;
        Some(&line[start..])
    });
    assert_eq!(said.collect::<Vec<_>>(), right);
    assert_eq!(count.failed, 0);
}

#[test]
#[ignore = "run tests/firmware/check"]
fn the_core_passes_its_test_on_a_cortex_m4f() {
    let (lines, status) = Machine::board("selftest", None, &["-icount", "shift=0"]).finish();
    assert_eq!(status.code(), Some(0));
    assert_passed(&lines);
    let costs = ["line", "growing line", "look-ahead", "ranges of 24", "ranges of 64"];
    for cost in costs.into_iter().chain(["schedule", "simulation"]) {
        let counted = format!("cost {cost} ");
        assert!(lines.iter().any(|line| line.contains(&counted)), "no {counted}in {lines:?}");
    }
}

#[test]
#[ignore = "run tests/firmware/check"]
fn the_core_passes_its_test_on_a_bare_pc() {
    let (lines, status) = Machine::pc().finish();
    // The device turns code 0 into status 1.
    assert_eq!(status.code(), Some(1));
    assert_passed(&lines);
    assert!(lines.iter().any(|line| line.ends_with("time passes: true")));
}

fn loggap(tap: &Tap, arguments: &str) -> Child {
    let mut command = loggap_process();
    command.args(arguments.split(' '));
    // The emulator needs the processors that polling would take.
    command.args(["--block", "--transport", "eth", "--interface", tap.name()]);
    start(&mut command)
}

/// An emulator that does not get its processor stalls for tens of
/// milliseconds, and what it measures then is refused, as it should be: such a
/// run is repeated.
fn measured(tap: &Tap, arguments: &str) -> Value {
    undisturbed("a board under emulation", || {
        let output = finish(loggap(tap, &format!("measure -J --max-time 4 {arguments}")));
        let said = output.stderr.clone();
        if output.code == Some(0) {
            return Attempt::Right(output.json());
        }
        let is_stalled = said.contains("nothing to assess") || said.contains(" stall for ");
        if is_stalled { Attempt::Disturbed(said) } else { Attempt::Wrong(said) }
    })
}

/// Numbers of a line such as `rounds 7 received 9`, by the word before them.
fn numbers(line: &str) -> HashMap<&str, i128> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| Some((pair[0], pair[1].parse().ok()?)));
    pairs.collect()
}

#[test]
#[ignore = "run tests/firmware/check"]
fn a_host_measures_a_board_up_to_the_longest_frame() {
    let tap = Tap::new("lgmeasure");
    let board = Machine::board("responder", Some(&tap), &[]);
    assert_eq!(board.after("ready"), "");
    let document = measured(&tap, &format!("-n 4 --peer {BOARD}"));
    let ranges = document["ranges"].as_array().unwrap();
    assert_eq!(ranges[0]["first_bytes"], 1);
    assert_eq!(ranges.last().unwrap()["last_bytes"], LONGEST);
    for range in ranges {
        assert!(range["half_rtt_s"].is_number() && range["send_overhead_s"].is_number());
    }
    // The host also counts its control frames and those it got.
    let session = board.after("session");
    let counted = numbers(&session);
    let sent = document["messages_sent"].as_u64().unwrap();
    assert!(document["messages_lost"].is_u64());
    let data = counted["received"] + counted["replied"];
    assert!(data > 200 && data <= i128::from(sent), "{session} {sent}");
    assert!(session.ends_with("Goodbye"), "{session}");
}

#[test]
#[ignore = "run tests/firmware/check"]
fn a_board_keeps_to_its_bounds_and_serves_again() {
    let tap = Tap::new("lgbounds");
    let board = Machine::board("responder", Some(&tap), &[]);
    assert_eq!(board.after("ready"), "");
    // Time for bursts as long as that, which are shortened otherwise.
    let output = finish(loggap(&tap, "measure -n 1025 -s 1,64,1496 --max-time 600"));
    let said = &output.stderr;
    assert!(output.code != Some(0) && said.contains("1024"), "{said}");
    let document = measured(&tap, "-n 4 -s 1,64,1496");
    assert_eq!(document["ranges"].as_array().unwrap().last().unwrap()["last_bytes"], LONGEST);
}

/// Ends the babble when dropped, also by a failed assertion.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frames to everybody and to the board, with any content and length.
fn babble(tap: &Tap, over: &AtomicBool) {
    let peers = [None, parse_address(BOARD)];
    let mut links =
        peers.map(|peer| EthLink::open(tap.name(), peer, LinkSettings::default()).unwrap());
    let mut random = Random::new(3);
    let mut message = [0; 1_496];
    while !over.load(Ordering::Relaxed) {
        for byte in &mut message {
            *byte = random.draw().to_le_bytes()[0];
        }
        let length = usize::try_from(random.below(LONGEST)).unwrap();
        for link in &mut links {
            link.send(&message[..length]).unwrap();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[ignore = "run tests/firmware/check"]
fn a_board_passes_over_what_belongs_to_nothing() {
    let tap = Tap::new("lgbabble");
    let board = Machine::board("responder", Some(&tap), &[]);
    assert_eq!(board.after("ready"), "");
    let over = AtomicBool::new(false);
    let document = thread::scope(|scope| {
        scope.spawn(|| babble(&tap, &over));
        let _over = Over(&over);
        measured(&tap, "-n 4 -s 1,200,1496")
    });
    assert_eq!(document["ranges"].as_array().unwrap().last().unwrap()["last_bytes"], LONGEST);
    let session = board.after("session");
    let counted = numbers(&session);
    // From the host's own address, so some pass for late messages.
    assert!(counted["strays"] + counted["foreign"] > 0, "{session}");
}

/// The profile that an initiator printed as bytes.
fn profile(lines: &[String]) -> Profile<4> {
    let rows = lines.iter().filter_map(|line| line.split_once("profile ["));
    let bytes: Vec<u8> = rows
        .flat_map(|(_, row)| row.trim_end_matches(']').split(", "))
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    compact::decode(&bytes).unwrap()
}

fn predicted(profile: &Profile<4>, pattern: Pattern, size: u64) -> Picos {
    let options = Options::new(64, size);
    let mut survey = Survey::default();
    generate(pattern, &options, &mut [], &mut survey).unwrap();
    let requirements = survey.requirements(Settings::default()).unwrap();
    let mut memory = OwnedMemory::new(&requirements).unwrap();
    let mut builder = Builder::new(memory.lend(), requirements).unwrap();
    generate(pattern, &options, &mut [], &mut builder).unwrap();
    let link = profile.range(Bytes(size)).unwrap().loggops(Bytes(u64::MAX)).unwrap();
    let schedule = builder.finish().unwrap();
    Engine::new(schedule, Parameters::one(link), Settings::default()).run().unwrap().makespan
}

/// What an initiator printed in the first run that its machine did not spoil;
/// a run that it did says so and has status 1.
fn unstalled(run: &mut impl FnMut() -> (Vec<String>, ExitStatus)) -> Vec<String> {
    undisturbed("an initiator under emulation", || {
        let (lines, status) = run();
        if status.code() == Some(0) {
            return Attempt::Right(lines);
        }
        // A host that gets no processor for seconds is silent.
        let refusals =
            ["does not serve for a prediction", "no assessment", "session failed: Silent"];
        let is_refused = |line: &String| refusals.iter().any(|refusal| line.contains(refusal));
        let said = format!("{lines:?}");
        if lines.iter().any(is_refused) { Attempt::Disturbed(said) } else { Attempt::Wrong(said) }
    })
}

/// Checks what an initiator printed: its ranges, its profile and that its
/// predictions are those that the host computes from the same profile.
fn assert_assessed(lines: &[String]) {
    let profile = profile(lines);
    let (first, last) = (profile.ranges.first().unwrap(), profile.ranges.last().unwrap());
    assert_eq!((first.first, last.last), (Bytes(1), Bytes(LONGEST)));
    let line = |mark: &str| lines.iter().find(|line| line.contains(mark)).unwrap();
    assert!(line(" range 1 ").ends_with(&format!(" {}", first.last.0)));
    let gap = first.gap.at_one;
    let said = format!("  gap at-one {} ps, {} to {};", gap.value.0, gap.low.0, gap.high.0);
    assert!(line("  gap at-one").contains(&said), "{said}");
    assert!(line("  gap at-one").ends_with(&format!(": {:?}", first.gap.mark())));
    for (name, pattern, size) in [
        ("predicted barrier", Pattern::Dissemination, 1),
        ("predicted broadcast", Pattern::BinomialBroadcast, 1_024),
    ] {
        let said = numbers(line(name));
        assert_eq!(said["ps"], i128::from(predicted(&profile, pattern, size).0), "{name}");
        assert!(said["memory"] <= 64 << 10, "{name}");
    }
}

#[test]
#[ignore = "run tests/firmware/check"]
fn a_board_assesses_its_own_link_and_predicts_from_it() {
    let tap = Tap::new("lgassess");
    let mut serve_and_assess = || {
        let server = loggap(&tap, "serve --once");
        let ran = Machine::board("initiator", Some(&tap), &[]).finish();
        let served = finish(server);
        if ran.1.code() == Some(0) {
            let _ended = served.exited(0);
        }
        ran
    };
    assert_assessed(&unstalled(&mut serve_and_assess));
}

#[test]
#[ignore = "run tests/firmware/check"]
fn a_board_counts_its_losses_and_goes_on() {
    let tap = Tap::new("lglossy");
    let settings = LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() };
    let mut lose_and_assess = || {
        let link = EthLink::open(tap.name(), parse_address(BOARD), settings).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (clock, mut link) =
                    (HostClock::calibrated(), LossyLink { link, loss: Loss::Every(61), sent: 0 });
                let (_, ending) =
                    serve(&clock, &mut link, &mut [0; 2_000], Bounds::default()).unwrap();
                assert_eq!(ending, Ending::Goodbye);
            });
            Machine::board("initiator", Some(&tap), &[]).finish()
        })
    };
    let lines = unstalled(&mut lose_and_assess);
    assert_assessed(&lines);
    let traffic = lines.iter().find(|line| line.contains("rounds-lost")).unwrap();
    assert!(numbers(traffic)["rounds-lost"] > 0, "{traffic}");
}
