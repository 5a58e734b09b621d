//! Shared parts of the end-to-end tests.

pub mod cable;
pub mod cases;
pub mod cleanup;
pub mod command;
pub mod docs;
pub mod document;
pub mod emulator;
pub mod engine;
pub mod folder;
pub mod fuzzing;
pub mod lossy;
pub mod plain;
pub mod program;
pub mod random_pattern;
pub mod random_program;
pub mod relay;
pub mod server;
pub mod shadow;
pub mod streamed;
pub mod timing;

/// Seeds of a random test: all of them with `tests/run-all --long`, else the first quarter.
#[must_use]
pub fn seeds(all: core::ops::Range<u64>) -> core::ops::Range<u64> {
    let count = all.end.saturating_sub(all.start);
    let drawn = if std::env::var_os("LOGGAP_LONG").is_some() { count } else { count.div_ceil(4) };
    all.start..all.start + drawn
}
