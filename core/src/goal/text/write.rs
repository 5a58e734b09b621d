//! Writer of GOAL text, with Schedgen's labels: `l1`, `l2`, … in the order of each rank's
//! operations.

use heapless::Vec;

use crate::goal::op::{ANY, ANY_TAG, Edge, Op, OpKind, Sink};
use crate::goal::output::Output;
use crate::goal::protocol::{Misuse, Protocol};
use crate::worded::errors;

errors! {
    /// Reason why a schedule could not be written as text.
    pub enum TextWriteError<E> {
        /// The output refused bytes.
        Output(error: E) => "{error}";
        /// The calls came in a wrong order.
        Misuse(misuse: Misuse) => "{misuse}";
        /// A calculation does not last a whole number of nanoseconds, the unit of the text.
        FractionOfNano {
            /// Rank of the calculation.
            rank: u32,
            /// Index of the calculation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} lasts a fraction of a nanosecond, \
                 which GOAL text cannot say: write the loggap binary format";
        /// A calculation has a network interface, which the text cannot express.
        CalcNic {
            /// Rank of the calculation.
            rank: u32,
            /// Index of the calculation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} is a calc with a nic, \
                 which GOAL text cannot say: write a binary format";
        /// The peer of a send is the wildcard.
        SendToAny {
            /// Rank of the send.
            rank: u32,
            /// Index of the send on its rank.
            op: u32,
        } => "operation {op} of rank {rank} sends to no particular rank";
    }
}

impl<E> From<Misuse> for TextWriteError<E> {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

/// Sink that writes GOAL text.
#[derive(Debug)]
pub struct TextWriter<O> {
    output: O,
    protocol: Protocol,
}

impl<O: Output> TextWriter<O> {
    /// Writes to `output`.
    pub fn new(output: O) -> Self {
        Self { output, protocol: Protocol::default() }
    }

    /// Checks that every rank was written, and returns the output.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if ranks are missing.
    pub fn finish(self) -> Result<O, TextWriteError<O::Error>> {
        self.protocol.finish()?;
        Ok(self.output)
    }

    fn append(&mut self, line: &Line) -> Result<(), TextWriteError<O::Error>> {
        self.output.append(&line.0).map_err(TextWriteError::Output)
    }

    /// Appends the part of an operation's line after its label.
    fn describe(
        &self,
        line: &mut Line,
        index: u32,
        op: Op,
    ) -> Result<(), TextWriteError<O::Error>> {
        let rank = self.protocol.rank();
        match op.kind {
            OpKind::Send { peer: ANY, .. } => {
                return Err(TextWriteError::SendToAny { rank, op: index });
            }
            OpKind::Send { peer, size, tag } => {
                line.text(b": send ").number(size).text(b"b to ").peer(peer);
                line.text(b" tag ").tag(tag);
            }
            OpKind::Receive { peer, size, tag } => {
                line.text(b": recv ").number(size).text(b"b from ").peer(peer);
                line.text(b" tag ").tag(tag);
            }
            OpKind::Calc { duration } => {
                if !duration.0.is_multiple_of(1_000) {
                    return Err(TextWriteError::FractionOfNano { rank, op: index });
                }
                if op.nic != 0 {
                    return Err(TextWriteError::CalcNic { rank, op: index });
                }
                line.text(b": calc ").number(duration.0 / 1_000);
            }
        }
        line.unit(b" cpu ", op.cpu).unit(b" nic ", op.nic).text(b"\n");
        Ok(())
    }
}

impl<O: Output> Sink for TextWriter<O> {
    type Error = TextWriteError<O::Error>;

    fn ranks(&mut self, ranks: u32) -> Result<(), Self::Error> {
        self.protocol.ranks(ranks)?;
        let mut line = Line::new();
        line.text(b"num_ranks ").number(u64::from(ranks)).text(b"\n");
        self.append(&line)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Self::Error> {
        self.protocol.begin_rank(rank)?;
        let mut line = Line::new();
        line.text(b"\nrank ").number(u64::from(rank)).text(b" {\n");
        self.append(&line)
    }

    fn op(&mut self, op: Op) -> Result<u32, Self::Error> {
        let index = self.protocol.op()?;
        let mut line = Line::new();
        line.label(index);
        self.describe(&mut line, index, op)?;
        self.append(&line)?;
        Ok(index)
    }

    fn edge(&mut self, Edge { op, on, start }: Edge) -> Result<(), Self::Error> {
        self.protocol.edge(op, on)?;
        let word: &[u8] = if start { b" irequires " } else { b" requires " };
        let mut line = Line::new();
        line.label(op).text(word).label(on).text(b"\n");
        self.append(&line)
    }

    fn end_rank(&mut self) -> Result<(), Self::Error> {
        self.protocol.end_rank()?;
        self.output.append(b"}\n").map_err(TextWriteError::Output)
    }
}

/// A line; the longest, a send with every number at its longest, takes 109 bytes.
struct Line(Vec<u8, 128>);

impl Line {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn text(&mut self, text: &[u8]) -> &mut Self {
        let fits = self.0.extend_from_slice(text);
        debug_assert!(fits.is_ok(), "a longer line");
        self
    }

    #[allow(clippy::cast_possible_truncation, reason = "a remainder of 10 fits")]
    fn number(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [b'0'; 20];
        let mut used = 0;
        for slot in digits.iter_mut().rev() {
            *slot = b'0' + (number % 10) as u8;
            number /= 10;
            used += 1;
            if number == 0 {
                break;
            }
        }
        self.text(digits.get(digits.len() - used..).unwrap_or(&[]))
    }

    fn peer(&mut self, peer: u32) -> &mut Self {
        if peer == ANY { self.text(b"-1") } else { self.number(u64::from(peer)) }
    }

    fn tag(&mut self, tag: u64) -> &mut Self {
        if tag == ANY_TAG { self.text(b"-1") } else { self.number(tag) }
    }

    /// Appends the label of operation `op`.
    fn label(&mut self, op: u32) -> &mut Self {
        self.text(b"l").number(u64::from(op) + 1)
    }

    /// Appends a cpu or nic, unless it is 0.
    fn unit(&mut self, word: &[u8], unit: u16) -> &mut Self {
        if unit == 0 { self } else { self.text(word).number(u64::from(unit)) }
    }
}
