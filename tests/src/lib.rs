//! Shared parts of the end-to-end tests.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test support: a wrong assumption should end the test"
)]

pub mod cable;
pub mod cases;
pub mod cleanup;
pub mod command;
pub mod document;
pub mod emulator;
pub mod engine;
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
