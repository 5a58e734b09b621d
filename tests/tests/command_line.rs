//! What holds for every verb of the command line.

use std::io::Read;
use std::process::Stdio;

use loggap_tests::command::{loggap, loggap_process};

#[test]
fn help_and_version_go_to_standard_output_and_succeed() {
    for arguments in [&["--help"][..], &["measure", "--help"], &["fit", "-h"], &["--version"]] {
        let output = loggap().args(arguments).assert().success().get_output().clone();
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn wrong_usage_exits_with_two_and_leaves_standard_output_alone() {
    for arguments in [&[][..], &["no-such-verb"], &["measure", "--no-such-option"]] {
        let output = loggap().args(arguments).assert().code(2).get_output().clone();
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = loggap_process()
        .args(["serve", "--help"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}
