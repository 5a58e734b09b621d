//! Calls every function of `loggap.h` as a C program does: by raw pointers,
//! with lent memory and callbacks. Under Miri this shows accesses that Rust
//! leaves undefined, which no test of results can see.

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests, all of them small")]

#[macro_use]
#[path = "../../fuzzing/mod.rs"]
mod fuzzing;

/// Calls a function that takes a detail last, and expects a status.
macro_rules! gives {
    ($status:ident, $name:ident($($argument:expr),* $(,)?)) => {{
        let mut detail = <loggap_capi::Detail as crate::fuzzing::lent::Plain>::zeros();
        let status = call!($name($($argument,)* &raw mut detail));
        let wanted = loggap_capi::Status::$status as i32;
        assert_eq!(status, wanted, "{detail:?}");
        assert_eq!(detail.status, status);
        detail
    }};
}

mod assessing;
mod errors;
mod fitting;
mod frames;
mod fuzzed;
mod profiles;
mod responding;
mod schedules;
mod texts;

/// All tests that call functions.
const SOURCES: [&str; 7] = [
    include_str!("assessing.rs"),
    include_str!("fitting.rs"),
    include_str!("frames.rs"),
    include_str!("profiles.rs"),
    include_str!("responding.rs"),
    include_str!("schedules.rs"),
    include_str!("texts.rs"),
];

/// The functions that `loggap.h` declares.
fn declared() -> Vec<&'static str> {
    let header = include_str!("../../../include/loggap.h");
    let begins = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
    let declaration = |line: &'static str| {
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        name.starts_with("loggap_").then_some(name)
    };
    let functions = header.lines().filter(begins).filter(|line| !line.contains("typedef"));
    // What the header defines itself is C.
    functions.filter_map(declaration).filter(|name| *name != "loggap_check_abi").collect()
}

#[test]
#[cfg_attr(miri, ignore = "looks at texts only")]
fn every_function_of_the_header_is_called() {
    let declared = declared();
    assert!(declared.len() > 40, "{declared:?}");
    let is_called = |name: &str| {
        let calls = ["(", ","].map(|end| format!("{name}{end}"));
        SOURCES.iter().any(|source| calls.iter().any(|call| source.contains(call)))
    };
    let missing: Vec<_> = declared.into_iter().filter(|name| !is_called(name)).collect();
    assert!(missing.is_empty(), "no test calls {missing:?}");
}

/// A line of text with a zero byte at its end.
fn text(pointer: *const core::ffi::c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: a text of the library, ended by a zero byte and valid for ever.
    unsafe { core::ffi::CStr::from_ptr(pointer) }.to_str().unwrap().to_owned()
}

/// The name in `detail`.
fn name(detail: &loggap_capi::Detail) -> String {
    if detail.name.is_null() {
        return String::new();
    }
    // SAFETY: a name of the library, of this length and valid for ever.
    let bytes = unsafe { core::slice::from_raw_parts(detail.name.cast(), detail.name_length) };
    String::from_utf8(bytes.to_vec()).unwrap()
}
