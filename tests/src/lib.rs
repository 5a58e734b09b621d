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
