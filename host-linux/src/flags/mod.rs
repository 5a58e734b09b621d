//! Flags that both programs take, and the texts of their values.

pub mod parse;
