//! The fuzzer's target on the inputs that are kept, and on random bytes.

use crate::fuzzing::c_interface;
use loggap_core::random::Random;
use std::fs;

/// What Miri runs, which reads no files: it is slow, and these reach far.
const FEW: [&[u8]; 1] =
    [include_bytes!("../../../../../fuzz/seeds/c_interface/found_time_beside_overflow.bin")];

#[test]
fn few_kept_inputs_are_taken() {
    FEW.into_iter().for_each(c_interface);
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn every_kept_input_is_taken() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/c_interface");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        c_interface(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 0, "no inputs");
}

#[test]
fn random_bytes_are_taken() {
    let (inputs, length) = if cfg!(miri) { (3, 300) } else { (500, 2_000) };
    let mut random = Random::new(6);
    for _ in 0..inputs {
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        c_interface(&bytes);
    }
}
