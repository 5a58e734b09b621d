#![no_main]

#[path = "../../core/capi/hosted/fuzzing/mod.rs"]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::c_interface(data));
