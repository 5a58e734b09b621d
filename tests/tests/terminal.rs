//! What a user at a terminal sees while `loggap` measures and simulates.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::thread;

use loggap_tests::command::{finish, loggap_process, machine};
use nix::pty::{Winsize, openpty};

/// Runs `loggap` with a terminal as standard error; what it showed there and
/// what it printed.
fn at_a_terminal(arguments: &[&str]) -> (String, String) {
    let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    let child = loggap_process()
        .args(arguments)
        .env("TERM", "xterm")
        .stdout(Stdio::piped())
        .stderr(Stdio::from(terminal.slave))
        .spawn()
        .unwrap();
    let mut screen = File::from(terminal.master);
    let shown = thread::spawn(move || {
        let mut shown = Vec::new();
        // Ends with an error when the last process has closed the terminal.
        let _closed = screen.read_to_end(&mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    });
    let output = finish(child).exited(0);
    (shown.join().unwrap(), output.stdout)
}

/// What `loggap` shows at a terminal of 80 columns.
fn shown_at_80_columns(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    let mut command = loggap_process();
    command.args(arguments).env("TERM", "xterm").envs(environment.iter().copied());
    let child = command.stdout(Stdio::from(terminal.slave)).stderr(Stdio::piped()).spawn().unwrap();
    // The command holds its end of the terminal until it is dropped.
    drop(command);
    let mut screen = File::from(terminal.master);
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // Ends with an error when the last process has closed the terminal.
        let _closed = screen.read_to_end(&mut shown);
        String::from_utf8(shown).unwrap()
    });
    let output = finish(child);
    assert!(output.code == Some(0) && output.stderr.is_empty(), "{output:?}");
    reader.join().unwrap()
}

#[test]
fn a_terminal_gets_a_screen_as_wide_as_it_and_colours_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let samples = folder.path().join("gaps.csv");
    let mut text = String::from("size_bytes,value_s\n");
    for size in [1, 16, 256, 4_096, 65_536] {
        for step in 0..9 {
            text += &format!("{size},{}e-12\n", 2_000_000 + size * 100 + step * 5_000);
        }
    }
    std::fs::write(&samples, text).unwrap();
    let samples = samples.to_str().unwrap();
    let coloured = shown_at_80_columns(&["fit", samples], &[]);
    assert!(coloured.contains("\u{1b}[1m1 B to 64 KiB"), "{coloured:?}");
    for (option, environment) in [("--no-color", [("LANG", "C")]), ("-v", [("NO_COLOR", "1")])] {
        let plain = shown_at_80_columns(&["fit", samples, option], &environment);
        assert!(!plain.contains('\u{1b}'), "{plain:?}");
        assert!(plain.contains("gap g") && plain.contains("2.02 us"), "{plain}");
        assert!(
            plain.contains("no change of protocol found") && plain.contains("next: "),
            "{plain}"
        );
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
    }
    let table = shown_at_80_columns(&["fit", samples, "--table"], &[]);
    assert!(table.contains("#first[B]") && !table.contains("next: "), "{table}");
}

#[test]
fn progress_shows_time_left_and_the_widest_interval_and_leaves_no_trace() {
    let _machine = machine();
    // Sleeping ends get their turn on a busy machine, too.
    let arguments = ["measure", "--block", "--max-time", "3s", "--rel-err", "0.0001%"];
    let (shown, printed) = at_a_terminal(&arguments);
    let lines: Vec<&str> = shown.split(['\r', '\n']).collect();
    let progress: Vec<&&str> = lines.iter().filter(|line| line.contains("measuring [")).collect();
    assert!(progress.len() >= 3, "{shown:?}");
    let last = progress.last().unwrap();
    assert!(
        last.contains("s left") && last.contains("launch ") && last.contains("RTT/2 "),
        "{last}"
    );
    // Known from the first assessment on.
    let tells_width = |line: &&str| line.contains(", ±") && line.contains("wanted ±0.0001%");
    assert!(progress.iter().any(|line| tells_width(line)), "{shown:?}");
    assert!(last.chars().count() <= 120 + 16, "one line of 120 columns and its controls: {last}");
    // Cleared before anything else is said, and never on standard output.
    let after = shown.rfind("measuring [").unwrap();
    assert!(shown.get(after..).unwrap().contains("\u{1b}[2K"), "{shown:?}");
    assert!(printed.contains("#first[B]") && !printed.contains("measuring"));
}

/// On a network early operations take much less time than those that come when many
/// messages share the links, so that the share that is done tells no time.
#[test]
fn a_simulation_on_a_network_shows_its_share_and_no_time_left() {
    let alltoall = ["simulate", "--pattern", "all-to-all", "-s", "1M", "--ranks", "64"];
    let (shown, _) = at_a_terminal(&[&alltoall[..], &["--topology", "fat-tree:8"]].concat());
    assert!(shown.contains("% of the operations in ") && !shown.contains("left"), "{shown}");
}

#[test]
fn a_simulation_at_a_terminal_has_units_and_three_digits_and_exact_ones_on_request() {
    let run = ["simulate", "--pattern", "all-to-all", "--ranks", "8", "-s", "64K", "--finish"];
    let shown = shown_at_80_columns(&run, &[]);
    assert!(shown.contains("makespan               2.79 ms, on rank 0"), "{shown}");
    assert!(shown.contains("L = 2.50 us,") && shown.contains("O = 0 ns/B"), "{shown}");
    assert!(shown.lines().any(|line| line == "      0          2.79 ms"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let exact = shown_at_80_columns(&[&run[..], &["--exact"]].concat(), &[]);
    assert!(exact.contains("makespan               2790970 ns") && exact.contains("finish[ns]"));
    let tables = [&run[..], &["--counters", "--sensitivity", "--explain"]].concat();
    let shown = shown_at_80_columns(&tables, &[]);
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    for arguments in [
        &["predict", "gather", "--ranks", "64"][..],
        &["best", "bcast", "--ranks", "4", "-s", "8"],
        &["study", "overlap", "--pattern", "bcast", "--ranks", "4", "-o", "900"],
        &["study", "pipelining", "--ranks", "4", "-n", "2"],
    ] {
        // Progress goes to standard error, which is no terminal here.
        let shown = shown_at_80_columns(arguments, &[]);
        assert!(shown.contains(" us") && !shown.contains("[ns]"), "{shown}");
        let exact = shown_at_80_columns(&[arguments, &["--exact"]].concat(), &[]);
        assert!(exact.contains("[ns]") || exact.contains("[us]"), "{exact}");
    }
}

#[test]
fn noise_shows_the_time_left() {
    let _machine = machine();
    let (shown, printed) = at_a_terminal(&["noise", "--duration", "1s"]);
    assert!(shown.contains("measuring [") && shown.contains("s left"), "{shown:?}");
    assert!(printed.contains("longest[us]"), "{printed}");
}
