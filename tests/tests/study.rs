//! `loggap study`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use loggap_tests::cable::{Cable, End, Kind, Offload, Shape, Shaper};
use loggap_tests::command::{
    Run, finish, interrupted, loggap, loggap_process, machine, send, skipped, start,
};
use loggap_tests::folder::Folder;
use loggap_tests::timing::go_with_others;
use nix::sys::signal::Signal;
use serde_json::Value;

#[test]
fn the_papers_conclusions_come_out() {
    let output = loggap().args(["study", "pipelining", "-J"]).succeeds();
    let document = output.json();
    let links = document["links"].as_array().unwrap();
    assert_eq!(links.len(), 2);
    // On Ethernet the pipeline looks better up to 256 ranks, then no more.
    let misled: Vec<u64> =
        serde_json::from_value(links[0]["loop_misleads_at_ranks"].clone()).unwrap();
    assert_eq!(misled, [8, 16, 32, 64, 128, 256]);
    let near = ["study", "pipelining", "--ranks", "460,470,512,1024", "--preset", "mpich2-tcp"];
    let near = loggap().args(near).arg("-J").succeeds().json();
    assert_eq!(near["links"][0]["loop_misleads_at_ranks"], serde_json::json!([460]));
    for link in links {
        let error = |algorithm: &str, ranks: u64| {
            let rows = link["rows"].as_array().unwrap().iter();
            let mut rows = rows.filter(|row| row["algorithm"] == algorithm);
            rows.find(|row| row["ranks"] == ranks).unwrap()["loop_error_s"].as_f64()
        };
        let growth = |algorithm| {
            let errors = (error(algorithm, 1_024).unwrap(), error(algorithm, 512).unwrap());
            Some(errors.0 / errors.1)
        };
        // Doubling the ranks doubles one error and adds a tenth to the other.
        assert!((growth("pipeline").unwrap() - 2.0).abs() < 0.01);
        assert!((growth("binomial").unwrap() - 10.0 / 9.0).abs() < 0.01);
    }
}

#[test]
fn the_plots_appear_and_the_table_names_its_units() {
    let folder = Folder::new();
    let prefix = folder.path("fig9");
    let text = loggap()
        .args(["study", "pipelining", "--ranks", "2:32", "-n", "20", "--preset", "odin", "--plot"])
        .arg(&prefix)
        .succeeds()
        .stdout;
    assert!(text.contains("loop[us]"), "{text}");
    for ending in ["-time.svg", "-error.svg"] {
        let picture = folder.read(&format!("fig9{ending}"));
        assert!(
            picture.starts_with("<svg")
                && picture.contains("pipeline, loop")
                && picture.contains("odin")
        );
    }
    let two = folder.path("two");
    let run = ["study", "pipelining", "--ranks", "2:8", "-n", "5", "--plot"];
    loggap().args(run).arg(&two).assert().success();
    let times = folder.read("two-mpich2-tcp-time.svg");
    // Lines of the chart, and of its legend.
    assert_eq!(times.matches("synchronised").count(), 2, "two algorithms");
    assert_eq!(times.matches("root moves").count(), 2, "six lines in all");
    assert!(folder.has("two-ompi-ib-sdr-error.svg"));
}

#[test]
fn absurd_requests_are_refused_before_any_work() {
    for arguments in [
        &["--ranks", "0"][..],
        &["--ranks", "8G"],
        &["--ranks", "1G", "-n", "4000000000"],
        &["-s", "1G", "--segment", "1", "-n", "4000000000"],
        &["--preset", "abacus"],
        &["-n", "0"],
    ] {
        let message = loggap().args(["study", "pipelining"]).args(arguments).ends(2).stderr;
        assert!(!message.contains("unrecognized"), "{arguments:?}: {message}");
    }
}

/// A message of 101 bytes; the sender then calculates for 1000 ns.
const ONE_MESSAGE: &str = "num_ranks 2\n\
    rank 0 {\ns: send 101b to 1 tag 0\nc: calc 1000\nc requires s\n}\n\
    rank 1 {\nr: recv 101b from 0 tag 0\n}\n";

fn overlap(goal: &str, arguments: &[&str]) -> Value {
    let folder = Folder::new();
    let path = folder.written("app.goal", goal);
    loggap().args(["study", "overlap", "-J"]).arg(path).args(arguments).succeeds().json()
}

/// Full, present and no overlap, in ns.
fn three(times: &Value) -> [u64; 3] {
    ["full_ps", "present_ps", "none_ps"].map(|key| times[key].as_u64().unwrap_or(u64::MAX) / 1_000)
}

/// Times of [`ONE_MESSAGE`] on both ranks by the rules, with L = 500 ns.
fn one_message([o_s, o_r, w_o_s, w_o_r, w_g]: [u64; 5]) -> [u64; 2] {
    [o_s + w_o_s + 1_000, o_s + 500 + o_r + w_o_r.max(w_g)]
}

#[test]
fn overlap_of_one_message_is_its_closed_form() {
    let link = ["-L", "500", "-o", "200", "-O", "1", "-g", "300", "-G", "2", "--factors", "1,4"];
    let document = overlap(ONE_MESSAGE, &link);
    let full = one_message([0, 0, 0, 0, 200]);
    let present = one_message([200, 200, 100, 100, 200]);
    let none = one_message([300, 300, 200, 200, 200]);
    for rank in [0, 1] {
        let expected = [full[rank], present[rank], none[rank]];
        assert_eq!(three(&document["ranks"][rank]), expected);
        assert_eq!(document["ranks"][rank]["rank"], rank);
    }
    assert_eq!(three(&document["makespan"]), [1_000, 1_300, 1_500]);
    assert_eq!(document["makespan"]["saved_share"], 300.0 / 1_300.0);
    assert_eq!(document["makespan"]["used_share"], 0.4);
    assert_eq!(document["overhead_exceeds_gap"], false);
    // o and O stay where g and G grow; without overlap they grow, too.
    let present = one_message([200, 200, 100, 100, 800]);
    let none = one_message([1_200, 1_200, 800, 800, 800]);
    assert_eq!(document["gaps"][1]["factor"], 4.0);
    assert_eq!(three(&document["gaps"][0]), [1_000, 1_300, 1_500]);
    assert_eq!(three(&document["gaps"][1])[1..], [present[1], none[1].max(none[0])]);
}

#[test]
fn overlap_knows_both_overheads_and_a_receiver_that_is_not_held() {
    let apart = ["--send-overhead", "200", "--recv-overhead", "250", "-O", "1"];
    let link = [&["-L", "500", "-g", "300", "-G", "2"], &apart[..]].concat();
    let document = overlap(ONE_MESSAGE, &link);
    let full = one_message([0, 0, 0, 0, 200]);
    let present = one_message([200, 250, 100, 100, 200]);
    let none = one_message([300, 300, 200, 200, 200]);
    for rank in [0, 1] {
        let expected = [full[rank], present[rank], none[rank]];
        assert_eq!(three(&document["ranks"][rank]), expected);
    }
    // A calculation beside the message: held, the receiver begins it after the
    // bytes; otherwise they arrive meanwhile.
    let busy = ONE_MESSAGE.replace("from 0 tag 0\n", "from 0 tag 0\nc: calc 100000\n");
    let full = |how: &str| {
        let link = ["-L", "0", "-o", "0", "-g", "0", "-G", "100", "--receive", how];
        three(&overlap(&busy, &link)["ranks"][1])[0]
    };
    assert_eq!([full("hold"), full("overlap")], [110_000, 100_000]);
}

#[test]
fn overlap_draws_a_plot_and_says_what_is_wrong() {
    let folder = Folder::new();
    let plot = folder.path("gap.svg");
    let pattern = ["study", "overlap", "--pattern", "all-to-all", "--ranks", "8", "-s", "4K"];
    let output = loggap().args(pattern).args(["--summary", "--plot"]).arg(&plot).succeeds();
    let picture = fs::read_to_string(&plot).unwrap();
    assert!(picture.contains("full overlap") && picture.contains("makespan ["), "{picture}");
    assert_eq!(picture.matches("<circle").count(), 3 * 7);
    // Lines that coincide are as many widths.
    for width in [2, 5, 8] {
        assert!(picture.contains(&format!("stroke-width=\"{width}\"")), "{picture}");
    }
    let text = &output.stdout;
    assert!(text.contains("full[ns]") && !text.contains("rank "), "{text}");
    // The customary o is above the customary g.
    assert!(output.stderr.contains("o > g"));

    let missing = folder.path("lonely.goal");
    fs::write(&missing, "num_ranks 2\nrank 0 {\nr: recv 1b from 1\n}\nrank 1 {\n}\n").unwrap();
    let message = loggap().args(["study", "overlap"]).arg(&missing).ends(1).stderr;
    assert!(message.contains("loggap simulate"), "{message}");
    for arguments in
        [&["--factors", "0"][..], &["--factors", "nan"], &["-g", "1e9", "--factors", "1e9"]]
    {
        loggap().args(pattern).args(arguments).assert().code(2);
    }
    loggap().args(pattern).args(["--max-memory", "1K"]).assert().code(1);
    loggap().args(["study", "overlap", "absent.goal"]).assert().code(2);
    loggap().args(["study", "overlap"]).assert().code(2);
}

#[test]
fn ctrl_c_leaves_the_runs_of_overlap_that_are_complete() {
    const FACTORS: usize = 9_000;
    let folder = Folder::new();
    let ring = ["--pattern", "dissemination", "--ranks", "4K", "-s", "8"];
    let (goal, plot) = (folder.generated("ring.goal", &ring), folder.path("overlap.svg"));
    let (goal, plot) = (&*goal, &*plot);
    let factors: Vec<String> =
        (1..=FACTORS).map(|at| format!("{}", 1.0 + at as f64 / 1e4)).collect();
    let factors = ["--factors", &factors.join(",")];
    // Alone, several in one run, and in windows.
    for schedule in [&ring[..], &[&ring[..], &["--summary"]].concat(), &[goal, "--summary"]] {
        let ask = [&["study", "overlap"], schedule].concat();
        let arguments = [&ask[..], &factors, &["--plot", plot, "-J"]].concat();
        let output = interrupted(&arguments, |output| output.stdout.contains("\"factor\":"));
        let found = output.json();
        let gaps = found["gaps"].as_array().unwrap();
        assert!(gaps.len() < FACTORS, "{schedule:?}: {}", gaps.len());
        let told = found["incomplete"].as_str().unwrap();
        let runs = told.strip_prefix("interrupted after ").and_then(|told| told.split_once(' '));
        let (runs, of) = runs.unwrap();
        assert!(runs.parse::<usize>().unwrap() >= 3 * (1 + gaps.len()), "{told}");
        assert_eq!(of, format!("of {} runs", 3 * (1 + FACTORS)));
        assert!(fs::read_to_string(plot).unwrap().contains("(incomplete)"), "{schedule:?}");
        // What is there is what runs to the end have.
        let ends = [&gaps[0], &gaps[gaps.len() - 1]];
        let ends = ends.map(|gap| gap["factor"].to_string()).join(",");
        let alone = [&ask[..], &["--factors", &ends, "-J"]].concat();
        let alone = loggap().args(alone).succeeds().json();
        assert_eq!(alone.get("incomplete"), None);
        assert_eq!([&alone["makespan"], &alone["ranks"]], [&found["makespan"], &found["ranks"]]);
        let last = alone["gaps"].as_array().and_then(|gaps| gaps.last());
        assert_eq!([Some(&alone["gaps"][0]), last], [gaps.first(), gaps.last()], "{schedule:?}");
    }
    // A text says so, too, however early that was.
    let text = interrupted(&[&["study", "overlap"], &ring[..], &factors].concat(), |_| true);
    let text = &text.stdout;
    assert!(text.contains("# INCOMPLETE: interrupted after "), "{text}");
    assert_eq!(folder.count(), 2);
}

#[test]
fn messages_names_an_n_and_draws_the_deviations() {
    let _machine = machine();
    let folder = Folder::new();
    let plot = folder.path("fig4.svg");
    let study = ["study", "messages", "--transport", "unix", "-s", "1:4K", "--max-time", "1"];
    let document =
        loggap().args(study).args(["-n", "2,16,4", "-J", "--plot", &plot]).succeeds().json();
    assert_eq!(document["study"], "messages");
    assert!((3..=13).contains(&document["sizes"].as_u64().unwrap()), "{document}");
    assert!(document["repetitions"].as_u64().unwrap() >= 6, "{document}");
    let rows = document["messages"].as_array().unwrap();
    let counts: Vec<u64> = rows.iter().map(|row| row["messages"].as_u64().unwrap()).collect();
    assert_eq!(counts, [2, 4, 16]);
    for row in rows {
        let [low, value, high] =
            ["gap_lsq_s2_lo", "gap_lsq_s2", "gap_lsq_s2_hi"].map(|key| row[key].as_f64().unwrap());
        assert!(0.0 < low && low <= value && value <= high, "{row}");
    }
    // Null where a busy machine makes the interval too wide.
    let chosen = document["chosen_messages"].as_u64();
    assert!(chosen.is_none_or(|chosen| counts.contains(&chosen)), "{document}");
    // Half round trip and gap of 1 B, and the overhead by two methods.
    let smallest = &document["smallest"];
    assert_eq!(smallest["size_bytes"], 1);
    assert!(smallest["half_rtt_s"].as_f64().unwrap() > 0.0, "{smallest}");
    let bell = &document["bell"];
    assert!(bell.is_null() || bell["gap_s"].as_f64() > Some(0.0), "{document}");
    let picture = folder.read("fig4.svg");
    assert_eq!(picture.matches("<circle").count(), 3, "{picture}");
    let text = loggap().args(study).args(["-n", "2,8"]).succeeds().stdout;
    assert!(
        text.contains("lsq[us2]") && (text.contains("\n# n = ") || text.contains("# no n is")),
        "{text}"
    );
    for wrong in [["-n", "1"], ["-n", "2,x"], ["-s", "0"], ["-s", "8"]] {
        loggap().args(["study", "messages"]).args(wrong).ends(2);
    }
}

/// At 100 Mb/s all sizes would take over half a minute.
#[test]
fn messages_keeps_its_time_on_a_slow_link_and_leaves_long_sizes_out() {
    let shape =
        Shape { shaper: Shaper::Tbf, rate: 100_000_000, burst: 32_000, ends: &[End::Client] };
    let kind = Kind { mtu: 1_500, offload: Offload::On, shape: Some(shape) };
    let cable = match Cable::plug(&kind) {
        Ok(cable) => cable,
        Err(reason) => return skipped("a slow link", &reason),
    };
    let _machine = machine();
    let (_server, endpoint) = cable.serve("tcp", &["--block"]).unwrap();
    let mut study = cable.loggap(End::Client);
    study.args(["study", "messages", &endpoint, "--block", "--max-time", "2", "-J"]);
    let began = Instant::now();
    let ended = finish(start(&mut study)).exited(0);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(ended.stderr.contains("no time for messages of "), "{}", ended.stderr);
    assert!(ended.json()["sizes"].as_u64().unwrap() >= 3);
}

#[test]
fn messages_ends_on_request_within_a_size() {
    let _machine = machine();
    let sizes = ["-s", "4M,6M,8M", "-n", "64", "--max-time", "60"];
    let study = ["study", "messages", "--transport", "unix", "--block"];
    let study = start(loggap_process().args(study).args(sizes));
    thread::sleep(Duration::from_secs(1));
    send(Signal::SIGINT, study.id());
    let began = Instant::now();
    let _empty = finish(study).exited(130);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn noise_slows_collectives_down_with_the_number_of_ranks() {
    let folder = Folder::new();
    let plot = folder.path("noise.svg");
    let study = ["study", "noise", "--noise-periodic", "1ms:100us", "--draws", "40"];
    let ask = ["--ranks", "2,64,4096", "--pattern", "dissemination,gather"];
    let document = loggap().args(study).args(ask).args(["-J", "--plot", &plot]).succeeds().json();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "{document}");
    let slowdown: Vec<f64> =
        rows[..3].iter().map(|row| row["slowdown"].as_f64().unwrap()).collect();
    assert!(1.0 <= slowdown[0] && slowdown[0] < slowdown[1], "{slowdown:?}");
    // At 4,096 ranks a detour delays nearly every run, by its whole length and more.
    let quiet = rows[2]["quiet_s"].as_f64().unwrap();
    assert!(slowdown[2] > 1.0 + 0.9 * 100e-6 / quiet, "{slowdown:?} {quiet}");
    for row in rows {
        let [low, mean, high, largest] =
            ["slowdown_lo", "slowdown", "slowdown_hi", "slowdown_largest"]
                .map(|key| row[key].as_f64().unwrap());
        assert!(low <= mean && mean <= high && mean <= largest, "{row}");
    }
    assert!(folder.read("noise.svg").contains("time with noise / without"));
    let text = loggap().args(study).args(["--ranks", "8"]).succeeds().stdout;
    assert!(text.contains("10.0% of the time") && text.contains("allreduce_recdoub"), "{text}");
    let message = loggap().args(["study", "noise"]).ends(2).stderr;
    assert!(message.contains("--noise FILE"), "{message}");
}

#[test]
fn a_linear_broadcast_hides_its_time_in_a_loop_as_well() {
    let ask = ["study", "pipelining", "--algorithms", "linear,binomial", "--ranks", "2:64", "-J"];
    let document = loggap().args(ask).succeeds().json();
    let rows = document["links"][0]["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["algorithm"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["linear", "binomial"]);
    for row in rows.iter().filter(|row| row["algorithm"] == "linear") {
        // The loop lacks L and the receiver's o, and so does a moving root with many ranks.
        let time = |key: &str| row[key].as_f64().unwrap();
        let lost = 45.74e-6 + 3.46e-6;
        assert!((time("loop_error_s") / lost - 1.0).abs() < 0.02, "{row}");
        let is_large = row["ranks"].as_u64().unwrap() >= 32;
        assert!(time("rotated_error_s") >= if is_large { 0.9 * lost } else { 0.0 }, "{row}");
    }
}

#[test]
fn contention_marks_what_shares_processors_and_a_handler_lengthens_every_gap() {
    const HANDLER_S: f64 = 100e-6;
    let _machine = machine();
    go_with_others();
    let ask = ["study", "contention", "--transport", "unix", "--processes", "2"];
    let ask = [&ask[..], &["--handler-time", "100us", "--max-time", "1", "-J"]].concat();
    let output = loggap().args(&ask).ended();
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let shapes: Vec<&str> = rows.iter().map(|row| row["shape"].as_str().unwrap()).collect();
    assert_eq!(shapes, ["K-to-1", "1-to-K", "pairs"]);
    let processors = thread::available_parallelism().unwrap().get();
    for (row, processes) in rows.iter().zip([3, 3, 4]) {
        assert!(row["is_shared"] == true || processors >= processes, "{row}");
        // A replier is busy for this long at least, whoever else there is.
        let least = if row["shape"] == "K-to-1" { 2.0 * HANDLER_S } else { HANDLER_S / 2.0 };
        for (name, least) in
            [("single_request_reply_gap_s", HANDLER_S), ("request_reply_gap_s", least)]
        {
            let gap = row[name].as_f64();
            assert!(gap.is_none_or(|gap| gap > 0.9 * least), "{name}: {row}");
        }
    }
    let is_usable = rows.iter().any(|row| row["is_shared"] == false && !row["ratio"].is_null());
    assert_eq!(output.code, Some(if is_usable { 0 } else { 4 }), "{document}");
}

#[test]
fn contention_refuses_what_it_cannot_do() {
    for (arguments, words) in [
        (["--processes", "1"], "from 2 to 64"),
        (["--size", "2K"], "1 to 1K"),
        (["--handler-time", "2ms"], "up to 1ms"),
        (["--transport", "udp"], "tcp, unix or shm"),
    ] {
        let ended = loggap().args(["study", "contention"]).args(arguments).ends(2);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
}
