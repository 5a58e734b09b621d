//! The fuzzer's targets on the inputs that are kept: small ones that reach
//! far, and each that has found a bug.

use loggap_core::model::compact;
use loggap_core::random::Random;
use loggap_tests::fuzzing::{TARGETS, Target};
use std::fs;
use std::path::{Path, PathBuf};

/// The kept inputs of a target.
fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name);
    let paths = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    let mut seeds: Vec<_> = paths.map(|entry| read(entry.unwrap().path())).collect();
    seeds.sort();
    seeds
}

/// Names in a folder of `fuzz/`, without what follows a dot.
fn names(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(folder);
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| stem(entry.unwrap().path())).collect();
    names.sort();
    names
}

/// Targets elsewhere: `c_interface`, in `core/capi/hosted`, whose tests run it
/// on its inputs. It calls unsafe functions.
const ELSEWHERE: &str = "c_interface";

#[test]
fn every_target_has_a_binary_and_inputs_and_nothing_else_has() {
    let targets = TARGETS.map(|(name, _)| name);
    for folder in ["fuzz_targets", "seeds"] {
        let mut names = names(folder);
        names.retain(|name| name != ELSEWHERE);
        assert_eq!(names, targets);
    }
    for (name, _) in TARGETS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets").join(name);
        let source = fs::read_to_string(path.with_extension("rs")).unwrap();
        assert!(source.contains(&format!("fuzzing::{name}(data)")), "{name} runs another target");
    }
}

#[test]
fn every_target_takes_its_kept_inputs() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no inputs");
        for (path, bytes) in seeds {
            println!("{}", path.display());
            target(&bytes);
        }
    }
}

/// `bytes` with one to four of them changed, taken out or doubled.
fn spoilt(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
        match random.below(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, bytes[at]),
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
    bytes
}

#[test]
fn every_target_takes_its_kept_inputs_spoilt() {
    let mut random = Random::new(4);
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        let short: Vec<_> = seeds.iter().filter(|(_, bytes)| bytes.len() < 3_000).collect();
        for round in 0..2_000 {
            let (_, bytes) = short[round % short.len()];
            spoil_and_run(&mut random, target, bytes);
        }
    }
}

fn spoil_and_run(random: &mut Random, target: Target, bytes: &[u8]) {
    target(&spoilt(random, bytes));
}

#[test]
fn a_profile_in_which_any_one_bit_is_wrong_is_refused() {
    for (path, bytes) in seeds("profile_compact") {
        if compact::decode::<16>(&bytes).is_err() {
            continue;
        }
        for bit in 0..8 * bytes.len() {
            let mut spoilt = bytes.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert!(compact::decode::<16>(&spoilt).is_err(), "{path:?} bit {bit}");
        }
    }
}
