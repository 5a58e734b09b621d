#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loggap_tests::fuzzing::extrapolation(data));
