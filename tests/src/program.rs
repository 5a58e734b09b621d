//! A schedule as plain vectors: what generators and readers write in tests,
//! and what the shadow model runs.

use core::convert::Infallible;
pub use loggap_core::goal::Edge;
use loggap_core::goal::pattern::{self, Options, Pattern};
use loggap_core::goal::text::{self, Block, LabelMemory, Survey, TextMemory};
use loggap_core::goal::{Op, Sink};

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

    /// The schedule that GOAL text describes.
    ///
    /// # Panics
    ///
    /// Where the text is not GOAL.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let text = text.as_bytes();
        let survey = Survey::of(text).expect("sound text");
        let most = survey.labels_most();
        let mut blocks = vec![Block::default(); survey.blocks_to_lend()];
        let labels =
            LabelMemory { entries: &mut vec![[0; 2]; most], buckets: &mut vec![0; most], seed: 0 };
        let memory = TextMemory { blocks: &mut blocks, labels };
        let mut program = Self::default();
        text::read(text, &survey, memory, &mut program).expect("sound text");
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
                sink.edge(*edge)?;
            }
            sink.end_rank()?;
        }
        Ok(())
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

    fn edge(&mut self, edge: Edge) -> Result<(), Infallible> {
        self.open().edges.push(edge);
        Ok(())
    }
}
