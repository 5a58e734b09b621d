//! Predictions of a link beside its measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loggap::machine::clock::HostClock;
use loggap_core::measure::serve;
use loggap_core::units::{PerByte, Picos};
use loggap_core::wire::Bounds;
use loggap_tests::command::{Run, loggap, machine};
use loggap_tests::relay::{Jitter, Mishaps, Range, Relay, Wire};
use serde_json::Value;

fn results(document: &Value) -> &[Value] {
    document["results"].as_array().unwrap()
}

#[test]
fn round_trips_over_a_known_wire_are_as_predicted() {
    let _machine = machine();
    let range = Range {
        first: 1,
        gap: Picos::from_micros(50).unwrap(),
        gap_per_byte: PerByte::from_picos(100_000).unwrap(),
    };
    let latency = Picos::from_micros(1_000).unwrap();
    let wire =
        Wire { latency, ranges: vec![range], jitter: Jitter::None, mishaps: Mishaps::default() };
    let mut command = loggap();
    let over = Arc::new(AtomicBool::new(false));
    let mut relay = Relay::new(wire).until(Duration::from_secs(60), Arc::clone(&over));
    let address = relay.address().to_string();
    let responder = thread::spawn(move || {
        Relay::sleep_exactly();
        let mut buffer = vec![0; 65_536];
        while serve(&HostClock::calibrated(), &mut relay, &mut buffer, Bounds::default()).is_ok() {}
    });
    let check = [
        "check",
        "--transport",
        "udp",
        &address,
        "-s",
        "1,1000",
        "--assert",
        "10%",
        "--max-time",
        "1",
    ];
    let ended = command.args(check).arg("-J").ended();
    over.store(true, Ordering::Relaxed);
    responder.join().unwrap();
    let document = ended.exited(0).json();
    for (row, more_us) in results(&document).iter().zip([0.0, 100.0]) {
        let value = |key: &str| row[key].as_f64().unwrap();
        // Each direction takes the latency, and a byte 0.1 us.
        let expected = 2e-6 * (1_000.0 + more_us);
        assert!((value("predicted_s") / expected - 1.0).abs() < 0.1, "{row}");
        assert!((value("measured_s") / expected - 1.0).abs() < 0.1, "{row}");
        assert!(value("predicted_s_lo") <= value("predicted_s_hi"), "{row}");
        assert!(row["rounds"].as_u64().unwrap() > 100, "{row}");
    }
    assert_eq!(results(&document).len(), 2);
}

#[test]
fn a_message_goes_to_several_processes_which_all_answer() {
    let _machine = machine();
    let check = ["check", "--transport", "unix", "--block", "--processes", "1,3", "-s", "8,4K"];
    let check = [&check[..], &["--max-time", "0.5"]].concat();
    let document = loggap().args(&check).arg("-J").succeeds().json();
    let rows: Vec<_> = (results(&document).iter())
        .map(|row| (row["processes"].as_u64().unwrap(), row["size_bytes"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, [(1, 8), (1, 4_096), (3, 8), (3, 4_096)]);
    let predicted = |at: usize| results(&document)[at]["predicted_s"].as_f64().unwrap();
    assert!(predicted(2) > predicted(0) && predicted(3) > predicted(1), "{document}");
    let processors = thread::available_parallelism().unwrap().get();
    let crowded = &results(&document)[2];
    assert_eq!(crowded["is_crowded"], processors < 4, "{crowded}");
    assert!(crowded["is_crowded"] == false || crowded["verdict"] == "cannot_tell", "{crowded}");
    assert!(crowded["measured_s"].as_f64() > Some(0.0), "{crowded}");
    let table = loggap().args(&check).succeeds().stdout;
    assert!(table.contains("round trip") && table.lines().count() >= 6, "{table}");
}

#[test]
fn what_cannot_be_checked_is_refused() {
    for (arguments, words) in [
        (&["--transport", "udp", "--processes", "2"][..], "without losses"),
        (&["127.0.0.1", "--processes", "2"], "leave HOST out"),
        (&["--processes", "0"], "processes"),
        (&["--assert", "x"], "percentage"),
    ] {
        let ended = loggap().arg("check").args(arguments).ends(2);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
}
