//! GOAL text: the language of LogGOPSim's `txt2bin`, one block of statements
//! for each rank.
//!
//! ```text
//! file    = { "num_ranks" int | "rank" int "{" { stmt } "}" | NL | comment } ;
//! stmt    = op END | dep END | NL | comment ;
//! op      = [ label ":" ] ( calc | send | recv ) ;
//! calc    = "calc" int [ "cpu" int ] ;                    nanoseconds
//! send    = "send" int "b" "to" int tail ;                bytes
//! recv    = "recv" int "b" "from" ( int | "-1" ) tail ;
//! tail    = [ "tag" ( int | "-1" ) ] [ "cpu" int ] [ "nic" int ] ;
//! dep     = label ( "requires" | "irequires" ) label ;
//! label   = [A-Za-z][A-Za-z0-9_]* ;   int = [0-9]+ ;
//! END     = { comment } NL ;          NL = ["\r"] "\n" | end of text ;
//! comment = "//" up to the line end | "/*" ... "*/" ;
//! ```
//!
//! Blanks and tabs are allowed between any two tokens, and required only where two words would
//! become one. `docs/goal.md` lists the differences from the reference: lines may be indented,
//! comments may end a line, blocks may be in any order, and input that the reference truncates,
//! overwrites or crashes on is an error with its position.
//!
//! Reading takes two steps. [`Survey::of`] scans the text and computes the memory to lend; [`read`]
//! then passes the schedule to a [`Sink`](super::Sink), rank by rank in ascending order. On any
//! input both take linear time, without recursion or panic. Threads can do both in parts of the
//! text: [`Survey::of_part`].

mod cursor;
mod error;
mod labels;
mod operation;
mod outline;
mod places;
mod read;
mod survey;
mod write;

pub use error::{
    Dialect, Name, Quantity, ReadError, TextError, TextErrorKind, Wanted, line_and_column,
};
pub use labels::LabelMemory;
pub use places::{LabelUse, OpPlace, locate, unused_labels};
pub use read::{TextMemory, read};
pub use survey::{Block, Survey};
pub use write::{TextWriteError, TextWriter};

#[cfg(test)]
mod tests;
