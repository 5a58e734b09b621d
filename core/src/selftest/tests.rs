//! The self-test passes on this machine and detects every wrong answer.

use super::*;
use std::string::ToString;
use std::vec::Vec;

fn vectors() -> Vec<Vector> {
    PARTS.concat()
}

#[test]
fn every_check_passes_on_this_machine() {
    let count = run(|check| assert!(check.passed(), "{check:?}"));
    assert_eq!(count.passed as usize, vectors().len());
    assert_eq!(count.failed, 0);
}

#[test]
fn a_wrong_vector_fails_and_no_other() {
    let all = vectors();
    for wrong in 0..all.len() {
        let mut spoilt = all.clone();
        spoilt[wrong].answer ^= 1;
        let mut failed = Vec::new();
        let count = run_all(&spoilt, |check| {
            if !check.passed() {
                failed.push(check.name);
            }
        });
        assert_eq!(failed, [all[wrong].name]);
        assert_eq!((count.passed as usize, count.failed), (all.len() - 1, 1));
    }
}

#[test]
fn a_check_without_a_result_fails() {
    let giving_up = Vector { name: "none", compute: || None, answer: 0 };
    assert_eq!(run_all(&[giving_up], |_| {}), Count { passed: 0, failed: 1 });
}

#[test]
fn every_part_of_the_core_has_checks_with_names_of_their_own() {
    let mut names: Vec<_> = vectors().iter().map(|vector| vector.name).collect();
    for part in [
        "units", "random", "stats", "model", "fit", "wire", "measure", "sync", "noise", "goal",
        "sim",
    ] {
        let of_part = |name: &&&str| name.split_once(": ").is_some_and(|(front, _)| front == part);
        assert!(names.iter().filter(of_part).count() > 0, "{part}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), vectors().len());
}

#[test]
fn a_check_and_the_count_are_lines() {
    let check = |computed| Check { name: "units: a sum", computed, answer: 3 };
    assert_eq!(check(Some(3)).to_string(), "check units: a sum ... ok");
    assert_eq!(check(Some(4)).to_string(), "check units: a sum ... FAILED: computed 4, right is 3");
    let nothing = "check units: a sum ... FAILED: nothing computed, right is 3";
    assert_eq!(check(None).to_string(), nothing);
    let count = Count { passed: 2, failed: 1 };
    assert_eq!(count.to_string(), "self-test: 2 passed, 1 failed");
}
