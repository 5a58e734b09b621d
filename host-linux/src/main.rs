//! The command `loggap`.

fn main() {}
