//! MPI as a link: parameters, changes of protocol, and what goes wrong.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a wrong assumption should end the test"
)]

mod common;

use common::{binary, document, is_open_mpi, ranks, ranks_on, run, with_options};
use loggap_tests::timing::{Attempt, undisturbed};
use serde_json::Value;

/// A change of protocol, with its place and the setting that is named.
fn changes(document: &Value) -> Vec<(u64, u64, String)> {
    let list = document["changes"].as_array().unwrap();
    let number = |change: &Value, key: &str| change[key].as_u64().unwrap();
    list.iter()
        .map(|change| {
            let setting = change["setting"].as_str().unwrap_or_default().to_owned();
            (number(change, "lo_bytes"), number(change, "hi_bytes"), setting)
        })
        .collect()
}

/// Least send overheads of `size` bytes by `send` and by another call, in seconds,
/// once they are as `wanted`: of two or three measurements in turn, as other
/// processes take the processors now and then.
fn send_overheads(call: &str, size: &str, wanted: impl Fn(f64, f64) -> bool) {
    let mut least = [f64::INFINITY; 2];
    let is_found = (1..=3).any(|round| {
        for (least, call) in least.iter_mut().zip(["send", call]) {
            let arguments = ["measure", "--send", call, "-s", size, "--max-time", "0.7", "-J"];
            let document = document(ranks(2).args(arguments));
            // A disturbed run may end without one.
            let found = document["sizes"][0]["send_overhead_s"].as_f64();
            *least = found.map_or(*least, |found| least.min(found));
        }
        round > 1 && wanted(least[0], least[1])
    });
    assert!(is_found, "send and {call} of {size}: {least:?}");
}

#[test]
fn a_send_that_waits_for_the_receiver_takes_longer_and_one_that_does_not_copy_shorter() {
    send_overheads("ssend", "8", |send, ssend| ssend > 1.2 * send);
    send_overheads("isend", "256K", |send, isend| isend < 0.5 * send);
}

#[test]
fn two_ranks_give_the_document_of_a_link() {
    for calls in [["send", "recv"], ["ssend", "irecv"], ["isend", "recv"]] {
        let [send, receive] = calls;
        let arguments = ["measure", "-s", "1,64,1K", "--max-time", "1", "-J"];
        let keys = ["half_rtt_s", "gap_s", "send_overhead_s", "recv_overhead_s"];
        let document = undisturbed("a link of two ranks", || {
            let calls = ["--send", send, "--recv", receive];
            let document = document(ranks(2).args(arguments).args(calls));
            let range = &document["ranges"][0];
            // A disturbed run may not converge.
            match keys.iter().find(|key| range[**key].is_null()) {
                Some(key) => Attempt::Disturbed(format!("no {key}: {range}")),
                None => Attempt::Right(document),
            }
        });
        assert_eq!(document["transport"], "mpi");
        let library = &document["host"]["link"]["mpi"];
        assert_eq!((&library["send"], &library["receive"]), (&send.into(), &receive.into()));
        let name = if is_open_mpi() { "Open MPI" } else { "MPICH" };
        assert!(library["version"].as_str().unwrap().starts_with(name), "{library}");
        assert!(document["messages_sent"].as_u64() > Some(100), "{document}");
        assert_eq!(
            document["responder"]["link"]["peer"].as_str().map(|peer| &peer[..6]),
            Some("rank 0")
        );
        let range = &document["ranges"][0];
        for key in keys {
            let (low, value, high) = (
                range[format!("{key}_lo")].as_f64(),
                range[key].as_f64(),
                range[format!("{key}_hi")].as_f64(),
            );
            assert!(low <= value && value <= high && value.is_some(), "{key}: {range}");
            assert!(range[format!("{key}_next_lo")].is_null(), "of another mpirun: {range}");
        }
        let warnings = document["warnings"].to_string();
        assert!(warnings.contains("only one mpirun: variation between runs unknown"), "{warnings}");
    }
}

/// Also where sends wait for their receiver, which sends as well: beyond the eager
/// limit, and by `MPI_Ssend`.
#[test]
fn every_method_measures_over_mpi_too() {
    let sizes = ["--give-up", "10s", "measure", "-s", "1,64,64K", "--max-time", "1", "-J"];
    for (method, call) in [("signature", "send"), ("signature", "ssend"), ("plogp", "ssend")] {
        let how = ["--method", method, "--send", call];
        let document = document(ranks(2).args(sizes).args(how));
        assert_eq!(document["method"], method);
        assert!(document["ranges"][0]["gap_s"].is_f64(), "{how:?}: {document}");
    }
}

#[test]
fn buffers_begin_at_a_page_unless_told_otherwise() {
    let measure = ["measure", "-s", "64", "--max-time", "0.2", "-J"];
    let coll = ["coll", "--op", "allgather", "-s", "64", "--max-time", "50ms", "-J"];
    for (options, bytes) in [(&[][..], 4_096), (&["--align", "64"], 64)] {
        let link = document(ranks(2).args(measure).args(options));
        assert_eq!(link["host"]["link"]["mpi"]["align_bytes"], bytes, "{link}");
        assert_eq!(link["host"]["link"]["mpi"]["huge_pages"], false, "{link}");
        let coll = document(ranks(2).args(coll).args(options));
        assert_eq!((&coll["align_bytes"], &coll["huge_pages"]), (&bytes.into(), &false.into()));
    }
    for wrong in ["0", "100", "4M"] {
        let output = run(ranks(2).args(["measure", "--align", wrong]));
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains("a power of two from 1 to 2M"), "{}", output.stderr);
    }
}

/// Settings of a library that move its change of protocol to `size`, and what
/// it adds to a message at most.
fn moved(size: u64) -> (Vec<(&'static str, String)>, Vec<String>, &'static str) {
    if is_open_mpi() {
        let option = |name: &str, value: &str| ["--mca", name, value].map(str::to_owned);
        let limit = option("btl_vader_eager_limit", &size.to_string());
        let list = option("btl", "vader,self");
        (Vec::new(), [list, limit].concat(), "btl_vader_eager_limit")
    } else {
        // MPICH's ranks are not bound unless one asks for it.
        let bound = ["-bind-to", "core"].map(str::to_owned).to_vec();
        (vec![("UCX_MM_SEG_SIZE", size.to_string())], bound, "UCX_SYSV_SEG_SIZE")
    }
}

#[test]
fn the_change_of_protocol_is_where_the_setting_puts_it() {
    /// Longest header that these libraries count as part of the message.
    const HEADER: u64 = 64;
    /// Headers that the program allows for.
    const HEADERS: u64 = 256;
    // UCX 1.13 aborts with segments of 64 KiB.
    let sizes = [1 << 10, 8 << 10, if is_open_mpi() { 64 << 10 } else { 32 << 10 }];
    let mut found = 0;
    for size in sizes {
        let (variables, options, name) = moved(size);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let measured = |time: &str| {
            let mut command = with_options(2, &options);
            command.envs(variables.clone());
            changes(&document(command.args(["measure", "-s", "1:128K", "--max-time", time, "-J"])))
        };
        // MPICH's step is small: in some runs only an interval around it is known.
        let widest = if is_open_mpi() { 64 } else { size / 3 };
        let near =
            |low: u64, high: u64| low <= size + 1 && size - HEADER <= high && high - low <= widest;
        let right = |change: &&(u64, u64, String)| near(change.0, change.1);
        // More time where that does not find it.
        let mut changes = measured("2");
        if !changes.iter().any(|change| right(&change)) {
            changes = measured("5");
        }
        // Nothing far from the limit is blamed on it.
        for (low, high, setting) in &changes {
            let is_named = setting.contains(&format!("{name} = {size} B"));
            let is_near = *low <= size + 1 && size - HEADERS <= *high;
            assert!(is_near || !is_named, "{changes:?}");
        }
        let change = changes.iter().find(right);
        println!("limit {size}: {changes:?}");
        if let Some((.., setting)) = change {
            assert!(setting.contains(&format!("{name} = {size} B")), "{changes:?}");
            found += 1;
        }
    }
    // Nine of ten are asked for; a machine that is disturbed for seconds
    // hides one.
    assert!(found >= sizes.len() - 1, "{found} of {} were found", sizes.len());
}

#[test]
fn over_tcp_the_limit_of_tcp_is_named() {
    if !is_open_mpi() {
        loggap_tests::command::skipped("the limit of TCP", "MPICH's UCX takes shared memory");
        return;
    }
    let options = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_eager_limit", "8192"];
    let measured = || {
        let mut command = with_options(2, &options);
        changes(&document(command.args(["measure", "-s", "1:128K", "--max-time", "3", "-J"])))
    };
    let is_found = |changes: &[(u64, u64, String)]| {
        changes.iter().any(|(low, high, setting)| {
            let is_near = *low <= 8_193 && *high >= 8_192 - 64;
            is_near && setting.contains("btl_tcp_eager_limit = 8192 B")
        })
    };
    // A machine that somebody else uses meanwhile gets a second chance.
    let first = measured();
    assert!(is_found(&first) || is_found(&measured()), "{first:?}");
}

/// Messages and replies have places of their own; control frames arrive whole.
#[test]
fn buffers_rotate_through_memory_that_caches_do_not_hold() {
    let rotated = |more: &[&str]| {
        let arguments = ["measure", "--rotate", "-s", "1,1K,64K,1M", "--max-time", "2", "-J"];
        let mut command = ranks(2);
        command.args(arguments).args(more);
        command
    };
    for send in ["send", "ssend"] {
        let document = document(&mut rotated(&["--send", send]));
        let bytes = document["host"]["link"]["mpi"]["rotated_bytes"].as_u64().unwrap();
        assert!(bytes > 2 << 20, "{bytes}");
        let ranges = document["ranges"].as_array().unwrap();
        assert!(ranges.iter().all(|range| range["half_rtt_s"].is_f64()), "{document}");
        assert_eq!(ranges.last().unwrap()["last_bytes"], 1 << 20);
    }
    let refused = run(&mut rotated(&["--recv", "irecv"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--rotate is for --send send"), "{}", refused.stderr);
}

#[test]
fn one_rank_is_no_link_and_wrong_options_are_named_once() {
    let output = run(ranks(1).arg("measure"));
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("mpirun -n 2 loggap-mpi measure"), "{}", output.stderr);
    let output = run(ranks(2).args(["measure", "--send", "pigeon"]));
    assert_eq!(output.code, Some(2));
    assert_eq!(output.stderr.matches("invalid value 'pigeon'").count(), 1, "{}", output.stderr);
    let output = run(ranks(2).args(["measure", "--times", "5"]));
    assert_eq!(output.code, Some(2));
    assert_eq!(output.stderr.matches("--times is about many pairs").count(), 1);
    let output = run(ranks(3).args(["measure", "--pairs", "0-to-1"]));
    assert!(output.stderr.contains("random:3"), "{}", output.stderr);
}

#[test]
fn pairs_make_a_matrix_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("pairs.svg");
    let mut command = ranks(4);
    command.args([
        "measure",
        "-s",
        "1,1K",
        "--times",
        "1",
        "--max-time",
        "0.3",
        "-J",
        "--heat-map",
    ]);
    let document = document(command.arg(&picture));
    let pairs = document["pairs"].as_array().unwrap();
    assert_eq!((pairs.len(), document["ranks"].as_array().unwrap().len()), (6, 4));
    for pair in pairs {
        assert!(pair["low_rank"].as_i64() < pair["high_rank"].as_i64());
        assert!(pair["half_rtt_s"].as_f64() > Some(0.0) && pair["gap_s"].is_number(), "{pair}");
    }
    assert!(std::fs::read_to_string(picture).unwrap().contains("2 - 3: "));
}

/// The pairs of a choice of `times` sessions each, and how many each had.
fn sessions(count: u32, which: &str, times: &str) -> Vec<(i64, i64, u64)> {
    let arguments = ["-s", "1", "--times", times, "--max-time", "0.1", "-J"];
    let mut command = ranks(count);
    let output = run(command.args(["measure", "--pairs", which]).args(arguments));
    // How long it takes comes first.
    assert!(output.stderr.contains(" sessions of pairs in "), "{}", output.stderr);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["pairs_asked"], which);
    let pairs = document["pairs"].as_array().unwrap().iter();
    let rank = |pair: &Value, key: &str| pair[key].as_i64().unwrap();
    pairs
        .map(|pair| {
            let sessions = pair["sessions"].as_u64().unwrap();
            (rank(pair, "low_rank"), rank(pair, "high_rank"), sessions)
        })
        .collect()
}

#[test]
fn each_pair_of_a_choice_is_measured_as_often_as_asked() {
    assert_eq!(sessions(4, "ring", "2"), [(0, 1, 2), (0, 3, 2), (1, 2, 2), (2, 3, 2)]);
    assert_eq!(sessions(4, "from-first:2", "2"), [(0, 1, 2), (0, 2, 2)]);
    assert_eq!(sessions(3, "to-first:2", "2"), [(0, 1, 2), (0, 2, 2)]);
    let random = sessions(4, "random:2", "3");
    assert!(random.len() == 4 && random.iter().all(|pair| pair.2 == 3), "{random:?}");
    for rank in 0..4 {
        let partners = random.iter().filter(|pair| pair.0 == rank || pair.1 == rank);
        assert_eq!(partners.count(), 2, "{rank}: {random:?}");
    }
}

#[test]
fn contention_of_ranks_that_share_processors_is_marked() {
    let ask = ["contention", "--max-time", "1"];
    let output = run(ranks_on("0,1", 3).args(ask).arg("-J"));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("3 ranks may use 2"), "{}", output.stderr);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&document["transport"], &document["verdict"]), (&"mpi".into(), &"unusable".into()));
    // Two pairs would be four ranks.
    let rows = document["rows"].as_array().unwrap().iter();
    let rows: Vec<_> =
        rows.map(|row| (&row["shape"], &row["processes"], &row["is_shared"])).collect();
    let [many, one] = ["K-to-1", "1-to-K"].map(Value::from);
    assert_eq!(rows, [(&many, &2.into(), &true.into()), (&one, &2.into(), &true.into())]);
    let output = run(ranks(3).args(ask).args(["--processes", "3"]));
    assert!(output.stderr.contains("K = 3 needs 4 ranks, not 3"), "{}", output.stderr);
}

/// One rank asks before it sends, which takes another round trip.
#[test]
fn a_slowed_rank_is_named_and_nobody_else() {
    let measure = ["measure", "-s", "300,400", "--times", "2", "--max-time", "0.3", "-J"];
    let (open_mpi, ucx) = ("OMPI_MCA_btl_vader_eager_limit=128", "UCX_RNDV_THRESH=128");
    let variable = if is_open_mpi() { open_mpi } else { ucx };
    let mut command = ranks(5);
    command.args(measure).args([":", "-n", "1", "env", variable, binary()]).args(measure);
    let document = document(&mut command);
    let slow = document["slow"].as_array().unwrap();
    let named = |rank: &str, quantity: &str| {
        let is = |one: &&Value| one["name"] == rank && one["quantity"] == quantity;
        slow.iter().any(|one| is(&one) && one["factor"].as_f64() > Some(1.3))
    };
    assert!(named("5", "half_rtt"), "{document}");
    // One that is slow for a while is not named, so that this holds beside others'
    // processes as well.
    assert!(slow.iter().all(|one| one["name"] == "5"), "{slow:?}");
}
