//! What a user at a terminal sees while `loggap measure` runs.

#![allow(clippy::unwrap_used, reason = "a wrong assumption should end the test")]

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
    let output = finish(child);
    assert!(output.status.success());
    (shown.join().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn progress_shows_time_left_and_the_widest_interval_and_leaves_no_trace() {
    let _machine = machine();
    let arguments = ["measure", "--max-time", "1500ms", "--rel-err", "0.0001%"];
    let (shown, printed) = at_a_terminal(&arguments);
    let lines: Vec<&str> = shown.split(['\r', '\n']).collect();
    let progress: Vec<&&str> = lines.iter().filter(|line| line.contains("measuring [")).collect();
    assert!(progress.len() >= 3, "{shown:?}");
    let last = progress.last().unwrap();
    assert!(last.contains("s left") && last.contains("messages"), "{last}");
    assert!(last.contains("widest interval ±") && last.contains("wanted ±0.0001%"), "{last}");
    // Cleared before anything else is said, and never on standard output.
    let after = shown.rfind("measuring [").unwrap();
    assert!(shown.get(after..).unwrap().contains("\u{1b}[2K"), "{shown:?}");
    assert!(printed.contains("#first[B]") && !printed.contains("measuring"));
}
