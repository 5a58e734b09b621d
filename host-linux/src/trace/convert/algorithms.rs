//! Choice of the algorithms of collective operations.

use std::collections::BTreeMap;

use crate::collective::{ALGORITHMS, Algorithm, Chosen, Operation, Shape, known};

/// Algorithms of collective operations: those that are named, else by a file of rules, else by the
/// known rules of Open MPI.
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    named: Vec<(&'static Algorithm, u64)>,
    rules: Vec<Rules>,
}

/// Rules of one operation.
#[derive(Clone, Debug)]
struct Rules {
    operation: u32,
    /// Rules of a number of ranks, ascending: size from which a rule counts, algorithm, fan-out,
    /// segment.
    rows: Vec<(u32, Vec<[u64; 4]>)>,
}

/// Why a choice of algorithms was refused.
#[derive(Debug, thiserror::Error)]
pub enum AlgorithmsError {
    /// No operation has this name.
    #[error("no collective operation is called '{name}': {}", names(Operation::ALL.iter().map(|o| o.name())))]
    Operation {
        /// Name.
        name: String,
    },
    /// The operation has no algorithm of this name.
    #[error("{operation} has no algorithm '{name}': {}", names(operation.algorithms().map(|known| known.name)))]
    Algorithm {
        /// Operation.
        operation: Operation,
        /// Name.
        name: String,
    },
    /// A file of rules is wrong.
    #[error("line {line}: {expected} expected")]
    Rules {
        /// Line, from 1.
        line: usize,
        /// What should have stood there.
        expected: &'static str,
    },
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl Algorithms {
    /// Adds `operation=algorithm` or `operation=algorithm:segment`.
    ///
    /// # Errors
    ///
    /// [`AlgorithmsError`].
    pub fn name(&mut self, operation: &str, algorithm: &str) -> Result<(), AlgorithmsError> {
        let found = Operation::ALL.into_iter().find(|known| known.name() == operation);
        let wrong = || AlgorithmsError::Operation { name: operation.to_owned() };
        let operation = found.ok_or_else(wrong)?;
        let (name, segment) = algorithm.split_once(':').unwrap_or((algorithm, "0"));
        let plain = name.replace('-', "_");
        let found = operation.algorithms().find(|known| known.name == plain);
        let wrong = || AlgorithmsError::Algorithm { operation, name: algorithm.to_owned() };
        let known = found.ok_or_else(wrong)?;
        let segment = crate::flags::parse::size(segment).map_err(|_| wrong())?;
        if segment > 0 && !known.segments {
            return Err(wrong());
        }
        self.named.push((known, segment));
        Ok(())
    }

    /// Adds, behind all that are named, the algorithms that variables of Open MPI's `tuned`
    /// component forced.
    pub(super) fn forced(&mut self, settings: &BTreeMap<String, String>) {
        let value = |name: &str| {
            let value = settings.get(&format!("OMPI_MCA_coll_tuned_{name}"))?;
            value.parse::<u64>().ok()
        };
        if value("use_dynamic_rules").unwrap_or(0) == 0 {
            return;
        }
        for operation in Operation::ALL {
            let number = value(&format!("{operation}_algorithm"));
            let known = |known: &&Algorithm| Some(u64::from(known.number)) == number;
            let Some(known) = operation.algorithms().find(known) else { continue };
            let segment = value(&format!("{operation}_algorithm_segmentsize")).unwrap_or(0);
            self.named.insert(0, (known, if known.segments { segment } else { 0 }));
        }
    }

    /// Adds a file of rules for Open MPI 4.1 (`coll_tuned_dynamic_rules_filename`), as `loggap best
    /// --rules` writes it.
    ///
    /// # Errors
    ///
    /// [`AlgorithmsError::Rules`].
    pub fn rules(&mut self, text: &str) -> Result<(), AlgorithmsError> {
        let mut numbers = Numbers::of(text);
        let operations = numbers.next("number of operations")?;
        for _ in 0..operations {
            let operation = numbers.small("number of an operation")?;
            let mut rows = Vec::new();
            for _ in 0..numbers.next("number of rank counts")? {
                let (ranks, count) =
                    (numbers.small("rank count")?, numbers.next("number of sizes")?);
                let mut row = Vec::new();
                for _ in 0..count {
                    let mut next = || numbers.next("size, algorithm, fan-out and segment");
                    row.push([next()?, next()?, next()?, next()?]);
                }
                rows.push((ranks, row));
            }
            self.rules.push(Rules { operation, rows });
        }
        Ok(())
    }

    /// Algorithm for a call whose vector, or block, has `size` bytes.
    pub(super) fn choose(&self, operation: Operation, ranks: u32, size: u64) -> Chosen {
        let holds =
            |known: &Algorithm| known.operation == operation && known.condition.holds(ranks);
        let named = self.named.iter().rev().find(|(known, _)| holds(known));
        if let Some(&(known, segment)) = named {
            return Chosen { shape: known.shape, segment };
        }
        let rule = self.rule(operation, ranks, size);
        rule.unwrap_or_else(|| known(operation, ranks, size))
    }

    fn rule(&self, operation: Operation, ranks: u32, size: u64) -> Option<Chosen> {
        let rules = self.rules.iter().rev().find(|rules| rules.operation == operation.number())?;
        let rows = || rules.rows.iter();
        let (_, row) = rows().rev().find(|(from, _)| *from <= ranks).or_else(|| rows().next())?;
        let all = operation.rule_size(size, ranks);
        let &[_, number, fanout, segment] = row.iter().rev().find(|[from, ..]| *from <= all)?;
        let mut known = ALGORITHMS.iter().filter(|known| known.operation == operation);
        let known = known.find(|known| u64::from(known.number) == number)?;
        if !known.condition.holds(ranks) {
            return None;
        }
        let shape = match (known.shape, u32::try_from(fanout)) {
            (Shape::BroadcastChains { chains }, Ok(fanout @ 1..)) if chains > 1 => {
                Shape::BroadcastChains { chains: fanout }
            }
            (shape, _) => shape,
        };
        Some(Chosen { shape, segment: if known.segments { segment } else { 0 } })
    }
}

/// Numbers of a file of rules, with their lines; a `#` begins a comment.
struct Numbers<'a> {
    words: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    line: usize,
}

impl<'a> Numbers<'a> {
    fn of(text: &'a str) -> Self {
        let lines = (1..).zip(text.lines());
        let words = lines.flat_map(|(number, line)| {
            let line = line.split('#').next().unwrap_or_default();
            line.split_whitespace().map(move |word| (number, word))
        });
        Self { words: Box::new(words), line: 1 }
    }

    fn next(&mut self, expected: &'static str) -> Result<u64, AlgorithmsError> {
        let found = self.words.next();
        self.line = found.map_or(self.line, |(line, _)| line);
        let number = found.and_then(|(_, word)| word.parse().ok());
        number.ok_or(AlgorithmsError::Rules { line: self.line, expected })
    }

    fn small(&mut self, expected: &'static str) -> Result<u32, AlgorithmsError> {
        let wrong = AlgorithmsError::Rules { line: self.line, expected };
        u32::try_from(self.next(expected)?).map_err(|_| wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_goes_before_rules_and_these_before_what_is_known() {
        let mut all = Algorithms::default();
        let plain = |shape| Chosen { shape, segment: 0 };
        assert_eq!(all.choose(Operation::Allreduce, 6, 8), plain(Shape::AllreduceDoubling));
        // Allreduce (2): ring from 1 KiB on, for 4 ranks and more.
        all.rules("1 # operations\n2\n2\n0 1\n0 0 0 0\n4 2\n0 0 0 0 # own\n1024 4 0 0\n").unwrap();
        assert_eq!(all.choose(Operation::Allreduce, 6, 8), plain(Shape::AllreduceDoubling));
        assert_eq!(all.choose(Operation::Allreduce, 6, 2_000), plain(Shape::AllreduceRing));
        assert_eq!(all.choose(Operation::Allreduce, 3, 2_000), plain(Shape::AllreduceDoubling));
        all.name("allreduce", "rabenseifner").unwrap();
        assert_eq!(all.choose(Operation::Allreduce, 6, 8), plain(Shape::AllreduceRabenseifner));
        all.name("bcast", "pipeline:64K").unwrap();
        let pipeline = Chosen { shape: Shape::BroadcastChains { chains: 1 }, segment: 64 << 10 };
        assert_eq!(all.choose(Operation::Bcast, 6, 8), pipeline);
        // The library's own come last.
        let settings =
            [("use_dynamic_rules", "1"), ("allreduce_algorithm", "4"), ("barrier_algorithm", "6")];
        let name =
            |(name, value): (&str, &str)| (format!("OMPI_MCA_coll_tuned_{name}"), value.to_owned());
        all.forced(&settings.map(name).into());
        assert_eq!(all.choose(Operation::Allreduce, 6, 8), plain(Shape::AllreduceRabenseifner));
        assert_eq!(all.choose(Operation::Barrier, 6, 0), plain(Shape::BarrierTree));
        // For a power of two only: elsewhere the known rule counts.
        all.name("allgather", "recursive-doubling").unwrap();
        assert_eq!(all.choose(Operation::Allgather, 6, 8), plain(Shape::AllgatherBruck));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_there_is() {
        let mut all = Algorithms::default();
        let said = |error: AlgorithmsError| error.to_string();
        assert!(said(all.name("bcst", "ring").unwrap_err()).contains("allreduce, allgather"));
        let error = said(all.name("allreduce", "bruck").unwrap_err());
        assert!(
            error.contains("no algorithm 'bruck': basic_linear, recursive_doubling"),
            "{error}"
        );
        assert!(all.name("allreduce", "ring:4K").is_err());
        let error = said(all.rules("1\n2\n1 # counts\n0 1\n0 x 0 0").unwrap_err());
        assert_eq!(error, "line 5: size, algorithm, fan-out and segment expected");
        assert!(all.rules("99999999999\n7\n").is_err());
    }
}
