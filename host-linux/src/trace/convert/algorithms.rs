//! Choice of the algorithms of collective operations.

use std::collections::BTreeMap;

use crate::collective::{Algorithm, COMPONENTS, Chosen, FixedRules, Operation, REDUCTIONS, Shape};
use crate::trace::Description;

/// Algorithms of collective operations: those that are named, else by a file of rules, else those
/// that the traced library took.
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    named: Named,
    /// Named algorithm of `MPI_Reduce`.
    reduction: Option<Chosen>,
    rules: Vec<Rules>,
    library: Library,
}

/// Algorithms with their segment sizes, of which the last that is possible counts.
type Named = Vec<(&'static Algorithm, u64)>;

/// Algorithms that a library takes by itself: by a file of rules, else those forced, else by fixed rules.
#[derive(Clone, Debug)]
struct Library {
    rules: Vec<Rules>,
    forced: Named,
    /// Forced algorithm of `MPI_Reduce`.
    reduction: Option<Chosen>,
    fixed: FixedRules,
    /// Why it may take another algorithm than `fixed` says.
    unknown: Option<String>,
}

/// First line of a file of rules of version 2; the first version has none.
const SECOND: &str = "rule-file-version-2";

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
    #[error("no collective operation is called '{name}': {}", names(Operation::ALL.iter().map(|o| o.name()).chain([REDUCE])))]
    Operation {
        /// Name.
        name: String,
    },
    /// The operation has no algorithm of this name.
    #[error("{operation} has no algorithm '{name}': {}", names(known.iter().copied()))]
    Algorithm {
        /// Operation.
        operation: &'static str,
        /// Name.
        name: String,
        /// Names of all its algorithms.
        known: Vec<&'static str>,
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

/// The collective operation that is no [`Operation`], as no rules are made for it.
const REDUCE: &str = "reduce";
/// Its number in rules.
const REDUCE_NUMBER: u32 = 11;

/// The algorithm of `MPI_Reduce` with Open MPI's number.
fn reduction(number: u64) -> Option<Chosen> {
    REDUCTIONS.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
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
        let (name, segment) = algorithm.split_once(':').unwrap_or((algorithm, "0"));
        let is_it = |known: &str| known.replace('-', "_") == name.replace('-', "_");
        let wrong = |operation, known| {
            let name = algorithm.to_owned();
            AlgorithmsError::Algorithm { operation, name, known }
        };
        if operation == REDUCE {
            let found = REDUCTIONS.into_iter().find(|known| is_it(known.name));
            let all = || REDUCTIONS.map(|known| known.name).to_vec();
            let chosen = found.filter(|_| !algorithm.contains(':'));
            self.reduction = Some(chosen.ok_or_else(|| wrong(REDUCE, all()))?);
            return Ok(());
        }
        let found = Operation::named(operation);
        let operation =
            found.ok_or_else(|| AlgorithmsError::Operation { name: operation.to_owned() })?;
        let found = operation.with_stand_ins().find(|known| is_it(known.name));
        let all = || operation.with_stand_ins().map(|known| known.name).collect();
        let wrong = || wrong(operation.name(), all());
        let known = found.ok_or_else(wrong)?;
        let segment = crate::flags::parse::size(segment).map_err(|_| wrong())?;
        if segment > 0 && !known.segments {
            return Err(wrong());
        }
        self.named.push((known, segment));
        Ok(())
    }

    /// Sets what the library of a trace took by itself.
    pub(in crate::trace) fn set_library(&mut self, trace: &Description) {
        self.library = Library::of(trace);
    }

    /// Why the library may have taken another algorithm than [`Algorithms::of_call`] says; `None` if
    /// it is known.
    pub(in crate::trace) fn unknown(&self, name: &str, ranks: u32) -> Option<&str> {
        let Library { forced, reduction, unknown, .. } = &self.library;
        let is_forced = match Operation::named(name) {
            Some(operation) => possible(forced, operation, ranks).is_some(),
            None => name == REDUCE && reduction.is_some(),
        };
        unknown.as_deref().filter(|_| !is_forced)
    }

    /// Why the messages of a call are not those that the library sends; `None` if they are.
    pub(super) fn unlike(&self, name: &str, ranks: u32, size: u64) -> Option<&'static str> {
        let is_chosen = match Operation::named(name) {
            Some(operation) => {
                possible(&self.named, operation, ranks).is_some()
                    || by_rules(&self.rules, operation, ranks, u64::MAX / 2).is_some()
            }
            None => {
                let is_named = self.reduction.is_some();
                let by_rules = || reduction_by_rules(&self.rules, ranks, size).is_some();
                name == REDUCE && (is_named || by_rules())
            }
        };
        if ranks < 2 {
            None
        } else if !is_chosen && self.unknown(name, ranks).is_some() {
            Some("the library's choice of an algorithm is not known")
        } else if self.of_call(name, ranks, size).is_some_and(|chosen| chosen.is_stand_in()) {
            Some("a similar algorithm in place of the library's")
        } else {
            None
        }
    }

    /// Adds a file of rules for Open MPI (`coll_tuned_dynamic_rules_filename`), as `loggap best
    /// --rules` writes it in both versions.
    ///
    /// # Errors
    ///
    /// [`AlgorithmsError::Rules`].
    pub fn rules(&mut self, text: &str) -> Result<(), AlgorithmsError> {
        self.rules.append(&mut read_rules(text)?);
        Ok(())
    }

    /// Algorithm for a call whose vector, or block, has `size` bytes.
    fn choose(&self, operation: Operation, ranks: u32, size: u64) -> Chosen {
        let Library { rules, forced, fixed, .. } = &self.library;
        possible(&self.named, operation, ranks).unwrap_or_else(|| {
            by_rules(&self.rules, operation, ranks, size)
                .or_else(|| by_rules(rules, operation, ranks, size))
                .or_else(|| possible(forced, operation, ranks))
                .unwrap_or_else(|| fixed.choose(operation, ranks, size))
                .for_elements(ranks, size)
        })
    }

    /// Algorithm of a call by its name in lower case; `None` if libraries have one only, or which is
    /// not known.
    pub(in crate::trace) fn of_call(&self, name: &str, ranks: u32, size: u64) -> Option<Chosen> {
        if name == REDUCE {
            let Library { rules, reduction: forced, fixed, .. } = &self.library;
            let chosen = self.reduction.or_else(|| reduction_by_rules(&self.rules, ranks, size));
            let own = || reduction_by_rules(rules, ranks, size).or(*forced);
            return Some(chosen.or_else(own).unwrap_or_else(|| fixed.reduce(ranks, size)));
        }
        Some(self.choose(Operation::named(name)?, ranks, size))
    }
}

/// That of a trace which does not name it.
impl Default for Library {
    fn default() -> Self {
        let unknown = Some("the trace does not name its library".to_owned());
        let (rules, forced, fixed) = (Vec::new(), Vec::new(), FixedRules::default());
        Self { rules, forced, reduction: None, fixed, unknown }
    }
}

impl Library {
    fn of(trace: &Description) -> Self {
        let mut library = Self { unknown: None, ..Self::default() };
        let version = |prefix| {
            let mut numbers = trace.library.strip_prefix(prefix)?.split(['.', ',']);
            Some([numbers.next()?, numbers.next()?].map(|word| word.parse().unwrap_or(0)))
        };
        if trace.library.starts_with("MPICH") {
            library.mpich(&trace.settings);
        } else if let Some(version) = version("Open MPI v") {
            library.fixed = if version < [4, 1] { FixedRules::V40 } else { FixedRules::V41 };
            library.open_mpi(trace);
        } else {
            library.unknown = Some("the rules of this library are not known".to_owned());
        }
        library
    }

    /// Algorithms that variables of the `tuned` component chose.
    fn open_mpi(&mut self, trace: &Description) {
        let value = |name: &str| trace.settings.get(&format!("OMPI_MCA_coll_{name}"));
        let number = |name: &str| value(name)?.parse::<u64>().ok();
        let tuned = number("tuned_priority").unwrap_or(TUNED);
        // HAN leaves communicators of one host to others.
        let is_one_host = trace.hosts.windows(2).all(|pair| pair.first() == pair.last());
        let may_be = |name: &&&str| !(is_one_host && **name == "han");
        let rival = COMPONENTS.iter().filter(may_be).find(|name| {
            number(&format!("{name}_priority")).is_some_and(|priority| priority >= tuned)
        });
        self.unknown = rival.map(|name| format!("chosen by component '{name}'"));
        let is_on = value("tuned_use_dynamic_rules").is_some_and(|on| on == "1" || on == "true");
        if !is_on || rival.is_some() {
            return;
        }
        // Open MPI ignores a file that is wrong, and may read one that is not read here.
        match trace.rules.as_deref().map(read_rules).transpose() {
            Ok(rules) => self.rules = rules.unwrap_or_default(),
            Err(error) => self.unknown = Some(format!("chosen by a file of rules: {error}")),
        }
        self.reduction = number("tuned_reduce_algorithm").and_then(reduction);
        for operation in Operation::ALL {
            let number_of = |what: &str| number(&format!("tuned_{operation}_algorithm{what}"));
            let Some(chosen) = number_of("") else { continue };
            let known = operation.with_stand_ins().find(|known| u64::from(known.number) == chosen);
            let Some(known) = known else { continue };
            let segment = number_of("_segmentsize").unwrap_or(0);
            self.forced.push((known, if known.segments { segment } else { 0 }));
        }
    }

    /// Algorithms that variables named, where they count.
    fn mpich(&mut self, settings: &BTreeMap<String, String>) {
        let value = |name: &str| settings.get(&format!("MPIR_CVAR_{name}")).map(String::as_str);
        self.unknown = Some("chosen by MPICH, whose rules are not known".to_owned());
        if value("DEVICE_COLLECTIVES") != Some("none") {
            return;
        }
        for operation in Operation::ALL {
            let name = value(&format!("{}_INTRA_ALGORITHM", operation.name().to_uppercase()));
            let known = name.and_then(|name| {
                let own = MPICH.iter().find(|(mpich, ..)| *mpich == name);
                let name = own.map_or(name, |(_, own)| own);
                operation.algorithms().find(|known| known.name == name)
            });
            self.forced.extend(known.map(|known| (known, 0)));
        }
    }
}

/// Priority of the `tuned` component by default.
const TUNED: u64 = 30;

/// Names of MPICH's algorithms that Open MPI calls otherwise.
const MPICH: [(&str, &str); 6] = [
    ("brucks", "bruck"),
    ("dissemination", "bruck"),
    ("reduce_scatter_allgather", "rabenseifner"),
    ("scattered", "linear"),
    ("scatter_recursive_doubling_allgather", "scatter_allgather"),
    ("scatter_ring_allgather", "scatter_allgather_ring"),
];

/// The last of `named` that is possible for `ranks`.
fn possible(named: &Named, operation: Operation, ranks: u32) -> Option<Chosen> {
    let holds = |known: &Algorithm| known.operation == operation && known.condition.holds(ranks);
    let &(known, segment) = named.iter().rev().find(|(known, _)| holds(known))?;
    Some(Chosen { name: known.name, shape: known.shape, segment })
}

fn by_rules(all: &[Rules], operation: Operation, ranks: u32, size: u64) -> Option<Chosen> {
    let rule_size = operation.rule_size(size, ranks);
    let &[_, number, fanout, segment] = rule(all, operation.number(), ranks, rule_size)?;
    let known = operation.with_stand_ins().find(|known| u64::from(known.number) == number)?;
    if !known.condition.holds(ranks) {
        return None;
    }
    let shape = match (known.shape, u32::try_from(fanout)) {
        (Shape::BroadcastChains { chains }, Ok(fanout @ 1..)) if chains > 1 => {
            Shape::BroadcastChains { chains: fanout }
        }
        (shape, _) => shape,
    };
    Some(Chosen { name: known.name, shape, segment: if known.segments { segment } else { 0 } })
}

fn reduction_by_rules(all: &[Rules], ranks: u32, size: u64) -> Option<Chosen> {
    let &[_, number, ..] = rule(all, REDUCE_NUMBER, ranks, size)?;
    reduction(number)
}

/// The row of a rule for `size` bytes, as rules count them.
fn rule(all: &[Rules], operation: u32, ranks: u32, size: u64) -> Option<&[u64; 4]> {
    let rules = all.iter().rev().find(|rules| rules.operation == operation)?;
    let rows = || rules.rows.iter();
    let (_, row) = rows().rev().find(|(from, _)| *from <= ranks).or_else(|| rows().next())?;
    row.iter().rev().find(|[from, ..]| *from <= size)
}

fn read_rules(text: &str) -> Result<Vec<Rules>, AlgorithmsError> {
    let second = text.strip_prefix(SECOND);
    let mut numbers = Numbers::of(second.unwrap_or(text));
    let mut rules = Vec::new();
    for _ in 0..numbers.next("number of operations")? {
        let operation = numbers.small("number of an operation")?;
        let mut rows = Vec::new();
        for _ in 0..numbers.next("number of rank counts")? {
            let (ranks, count) = (numbers.small("rank count")?, numbers.next("number of sizes")?);
            let mut row = Vec::new();
            for _ in 0..count {
                let mut next = || numbers.next("size, algorithm, fan-out and segment");
                row.push([next()?, next()?, next()?, next()?]);
                if second.is_some() {
                    next()?; // Requests at once.
                }
            }
            rows.push((ranks, row));
        }
        rules.push(Rules { operation, rows });
    }
    Ok(rules)
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

    fn trace(library: &str, settings: &[(&str, &str)], rules: Option<&str>) -> Description {
        let settings: BTreeMap<_, _> = settings.iter().copied().collect();
        let json = serde_json::json!({
            "schema_version": 1, "format": "loggap-trace", "run": "1", "ranks": 1, "hosts": ["a"],
            "library": library, "settings": settings, "rules": rules, "bases_ns": [0],
            "clocks_begin": [], "clocks_end": [], "cost_per_call_s": 0.0, "clock_reads_s": 0.0,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_named_goes_before_rules_and_these_before_what_is_known() {
        let mut all = Algorithms::default();
        let plain = |name, shape| Chosen { name, shape, segment: 0 };
        let doubling = plain("recursive_doubling", Shape::AllreduceDoubling);
        assert_eq!(all.choose(Operation::Allreduce, 6, 80), doubling);
        // Allreduce (2): ring from 1 KiB on, for 4 ranks and more.
        all.rules("1 # operations\n2\n2\n0 1\n0 0 0 0\n4 2\n0 0 0 0 # own\n1024 4 0 0\n").unwrap();
        assert_eq!(all.choose(Operation::Allreduce, 6, 80), doubling);
        let ring = plain("ring", Shape::AllreduceRing);
        assert_eq!(all.choose(Operation::Allreduce, 6, 2_000), ring);
        assert_eq!(all.choose(Operation::Allreduce, 3, 2_000), doubling);
        assert_eq!(all.choose(Operation::Allreduce, 300, 2_000), doubling, "250 elements");
        all.name("allreduce", "rabenseifner").unwrap();
        let rabenseifner = plain("rabenseifner", Shape::AllreduceRabenseifner);
        assert_eq!(all.choose(Operation::Allreduce, 6, 80), rabenseifner);
        all.name("bcast", "pipeline:64K").unwrap();
        let shape = Shape::BroadcastChains { chains: 1 };
        let pipeline = Chosen { name: "pipeline", shape, segment: 64 << 10 };
        assert_eq!(all.choose(Operation::Bcast, 6, 8), pipeline);
        // For a power of two only: elsewhere the known rule counts.
        all.name("allgather", "recursive-doubling").unwrap();
        assert_eq!(all.choose(Operation::Allgather, 6, 8).name, "bruck");
    }

    /// By version, forced variables, a file that goes before these, and other components.
    #[test]
    fn a_library_takes_what_its_version_and_settings_say() {
        let of = |library: &str, settings: &[(&str, &str)], rules| {
            let mut all = Algorithms::default();
            all.set_library(&trace(library, settings, rules));
            let [one, other] = [Operation::Barrier, Operation::Allreduce]
                .map(|operation| all.choose(operation, 6, 9_000).name);
            (one, other, all.unknown("barrier", 6).map(str::to_owned))
        };
        let old = of("Open MPI v4.0.7, package: x", &[], None);
        assert_eq!(old, ("bruck", "recursive_doubling", None));
        let new = of("Open MPI v4.1.4, package: x", &[], None);
        assert_eq!(new, ("linear", "rabenseifner", None));
        let forced = [
            ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
            ("OMPI_MCA_coll_tuned_barrier_algorithm", "6"),
            ("OMPI_MCA_coll_tuned_allreduce_algorithm", "3"),
        ];
        let five = "Open MPI v5.0.3, package: x";
        assert_eq!(of(five, &forced, None), ("tree", "recursive_doubling", None));
        let file = Some("1\n2\n1\n0 1\n0 4 0 0\n");
        assert_eq!(of(five, &forced, file), ("tree", "ring", None));
        assert_eq!(of(five, &forced[1..], file), new, "not switched on");
        let han = ("OMPI_MCA_coll_han_priority", "35");
        assert_eq!(of(five, &[han], None), new, "on one host");
        let rival = ("OMPI_MCA_coll_hcoll_priority", "90");
        let said = of(five, &[forced[0], forced[1], rival], None);
        assert_eq!(
            said,
            ("linear", "rabenseifner", Some("chosen by component 'hcoll'".to_owned()))
        );
        let own = ("MPIR_CVAR_BARRIER_INTRA_ALGORITHM", "dissemination");
        let said = of("MPICH Version: 4.0.2", &[own], None);
        assert_eq!(said.2.as_deref(), Some("chosen by MPICH, whose rules are not known"));
        let mut guessed = Algorithms::default();
        guessed.set_library(&trace("MPICH Version: 4.0.2", &[], None));
        let is_guess = |all: &Algorithms, name, ranks| all.unlike(name, ranks, 8).is_some();
        assert!(is_guess(&guessed, "barrier", 6) && !is_guess(&guessed, "barrier", 1));
        guessed.name("barrier", "tree").unwrap();
        assert!(is_guess(&guessed, "allreduce", 6) && !is_guess(&guessed, "barrier", 6));
        // Allreduce (2): ring.
        guessed.rules("1\n2\n1\n0 1\n0 4 0 0\n").unwrap();
        assert!(!is_guess(&guessed, "allreduce", 6) && is_guess(&guessed, "bcast", 6));
        // Before 4.1, long broadcasts go down a split binary tree, for which a binary one stands.
        let mut old = Algorithms::default();
        assert!(is_guess(&old, "bcast", 6), "no library is named");
        old.set_library(&trace("Open MPI v4.0.7, package: x", &[], None));
        assert_eq!(old.unlike("bcast", 6, 8), None);
        let similar = Some("a similar algorithm in place of the library's");
        assert_eq!(old.unlike("bcast", 6, 4_096), similar);
        assert_eq!(old.unlike("scan", 6, 4_096), None);
        let second = Some("rule-file-version-2\n1\n2\n1\n0 1\n0 4 0 0 0\n");
        assert_eq!(of(five, &forced, second), ("tree", "ring", None));
        let (_, _, wrong) = of(five, &forced[..1], Some("{}"));
        assert!(wrong.unwrap().starts_with("chosen by a file of rules: line 1: number"));
        let none = ("MPIR_CVAR_DEVICE_COLLECTIVES", "none");
        let said = of("MPICH Version: 4.0.2", &[own, none], None);
        assert_eq!(said, ("bruck", "rabenseifner", None));
    }

    #[test]
    fn a_forced_reduction_and_rules_for_it_count() {
        let reduce = |settings: &[(&str, &str)], rules| {
            let mut all = Algorithms::default();
            all.set_library(&trace("Open MPI v5.0.3, package: x", settings, rules));
            (all.of_call(REDUCE, 6, 9_000).unwrap().name, all.unlike(REDUCE, 6, 9_000).is_some())
        };
        let binary = [
            ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
            ("OMPI_MCA_coll_tuned_reduce_algorithm", "4"),
        ];
        assert_eq!(reduce(&binary, None), ("binary", false));
        let rules = Some("1\n11\n1\n0 1\n0 6 0 0\n");
        assert_eq!(reduce(&binary, rules), ("in-order_binary", true));
        assert_ne!(reduce(&binary[1..], None).0, "binary");
    }

    /// Whatever `trace info` prints.
    #[test]
    fn what_a_library_takes_can_be_named() {
        let names = Operation::ALL.map(Operation::name);
        for library in ["Open MPI v4.0.7, package: x", "Open MPI v4.1.4, package: x"] {
            let mut own = Algorithms::default();
            own.set_library(&trace(library, &[], None));
            for ranks in [2, 3, 4, 5, 6, 8, 16, 33, 64, 128, 256, 1_024, 4_096] {
                for size in (0..24).map(|power| 1 << power) {
                    for name in names.into_iter().chain([REDUCE]) {
                        let chosen = own.of_call(name, ranks, size).unwrap();
                        let mut named = Algorithms::default();
                        named.name(name, chosen.name).unwrap();
                        let found = named.of_call(name, ranks, size).unwrap();
                        let taken = |of: Chosen| (of.name, of.shape);
                        // A stand-in, where its own algorithm is not possible.
                        let is_impossible =
                            chosen.name == "scatter_allgather" && !ranks.is_power_of_two();
                        assert!(
                            is_impossible || taken(found) == taken(chosen),
                            "{name} {chosen:?} {found:?}"
                        );
                    }
                }
            }
        }
        let mut all = Algorithms::default();
        let error = all.name(REDUCE, "binary:4K").unwrap_err().to_string();
        assert!(error.starts_with("reduce has no algorithm 'binary:4K': linear, chain"), "{error}");
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
        let error = said(all.rules("rule-file-version-2\n1\n2\n1\n0 1\n0 4 0 0\n").unwrap_err());
        assert!(error.starts_with("line 6"), "{error}");
    }
}
