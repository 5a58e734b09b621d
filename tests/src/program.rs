//! A schedule as plain vectors: what generators and readers write in tests,
//! and what the shadow model runs.

use core::convert::Infallible;
use loggap_core::goal::pattern::{self, Options, Pattern};
use loggap_core::goal::{Op, OpKind, Sink};
use loggap_core::units::Picos;
use std::fmt::Write as _;

/// A schedule.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Program {
    /// Each rank's part.
    pub ranks: Vec<RankProgram>,
}

/// One rank's part of a schedule.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RankProgram {
    /// Its operations.
    pub ops: Vec<Op>,
    /// Its dependencies, in the order of their statements.
    pub edges: Vec<Edge>,
}

/// One dependency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Edge {
    /// The operation that waits.
    pub op: u32,
    /// What it waits for.
    pub on: u32,
    /// Whether it waits for the start alone (`irequires`).
    pub start: bool,
}

impl Program {
    /// A pattern's schedule.
    ///
    /// # Panics
    ///
    /// Where the options make no schedule.
    #[must_use]
    pub fn of_pattern(pattern: Pattern, options: &Options) -> Self {
        let words = pattern::scratch_words(pattern, options).expect("small enough");
        let mut scratch = vec![0; words];
        let mut program = Self::default();
        pattern::generate(pattern, options, &mut scratch, &mut program).expect("sound options");
        program
    }

    /// Number of operations.
    #[must_use]
    pub fn ops(&self) -> usize {
        self.ranks.iter().map(|rank| rank.ops.len()).sum()
    }

    /// Writes the schedule into `sink`, each dependency as soon as both its
    /// operations are there.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn replay<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        sink.ranks(u32::try_from(self.ranks.len()).expect("few ranks"))?;
        for (rank, part) in (0u32..).zip(&self.ranks) {
            sink.begin_rank(rank)?;
            for op in &part.ops {
                sink.op(*op)?;
            }
            for edge in &part.edges {
                if edge.start {
                    sink.requires_start(edge.op, edge.on)?;
                } else {
                    sink.requires(edge.op, edge.on)?;
                }
            }
            sink.end_rank()?;
        }
        Ok(())
    }

    /// The schedule as GOAL text with labels `l0`, `l1`, …; calculations in
    /// whole nanoseconds, rounded down.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("num_ranks {}\n", self.ranks.len());
        for (rank, part) in self.ranks.iter().enumerate() {
            writeln!(text, "rank {rank} {{").expect("strings grow");
            for (index, op) in part.ops.iter().enumerate() {
                let Op { cpu, nic, .. } = op;
                match op.kind {
                    OpKind::Send { peer, size, tag } => writeln!(
                        text,
                        "l{index}: send {size}b to {peer} tag {} cpu {cpu} nic {nic}",
                        tag.cast_signed()
                    ),
                    OpKind::Receive { peer, size, tag } => writeln!(
                        text,
                        "l{index}: recv {size}b from {} tag {} cpu {cpu} nic {nic}",
                        peer.cast_signed(),
                        tag.cast_signed()
                    ),
                    OpKind::Calc { duration } => {
                        writeln!(text, "l{index}: calc {} cpu {cpu}", duration.0 / 1_000)
                    }
                }
                .expect("strings grow");
            }
            for Edge { op, on, start } in &part.edges {
                let word = if *start { "irequires" } else { "requires" };
                writeln!(text, "l{op} {word} l{on}").expect("strings grow");
            }
            text.push_str("}\n");
        }
        text
    }

    fn open(&mut self) -> &mut RankProgram {
        self.ranks.last_mut().expect("a rank is open")
    }
}

impl Sink for Program {
    type Error = Infallible;

    fn ranks(&mut self, _ranks: u32) -> Result<(), Infallible> {
        self.ranks.clear();
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Infallible> {
        assert_eq!(u32::try_from(self.ranks.len()), Ok(rank), "ranks come in order");
        self.ranks.push(RankProgram::default());
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, Infallible> {
        let ops = &mut self.open().ops;
        ops.push(op);
        Ok(u32::try_from(ops.len() - 1).expect("few operations"))
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), Infallible> {
        self.open().edges.push(Edge { op, on, start: false });
        Ok(())
    }

    fn requires_start(&mut self, op: u32, on: u32) -> Result<(), Infallible> {
        self.open().edges.push(Edge { op, on, start: true });
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Program {
    /// Reads GOAL text of the simplest form.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut program = Self::default();
        let mut labels: Vec<&str> = Vec::new();
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] | ["}"] | ["num_ranks", _] => {}
                ["rank", _, "{"] => {
                    program.ranks.push(RankProgram::default());
                    labels.clear();
                }
                [op, word @ ("requires" | "irequires"), on] => {
                    let index = |label| {
                        labels.iter().position(|known| *known == label).expect("a label") as u32
                    };
                    let edge = Edge { op: index(op), on: index(on), start: word == "irequires" };
                    program.open().edges.push(edge);
                }
                [label, ..] => {
                    labels.push(label.strip_suffix(':').expect("a label"));
                    program.open().ops.push(op_of_words(&words[1..]));
                }
            }
        }
        program
    }
}

fn op_of_words(words: &[&str]) -> Op {
    let number = |word: &str| word.trim_end_matches('b').parse::<i64>().expect("a number");
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key);
        at.map_or(0, |at| number(words[at + 1]))
    };
    let size = number(words[1]).cast_unsigned();
    let tag = after("tag") as u32;
    let kind = match words[0] {
        "send" => OpKind::Send { peer: after("to") as u32, size, tag },
        "recv" => OpKind::Receive { peer: after("from") as u32, size, tag },
        "calc" => OpKind::Calc { duration: Picos(size * 1_000) },
        other => panic!("unknown operation {other}"),
    };
    Op { kind, cpu: after("cpu") as u8, nic: after("nic") as u8 }
}
