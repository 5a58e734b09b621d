//! Files with the host or node of each rank.

use std::path::Path;
use std::{fmt, fs, io};

use super::NetworkError;

/// Limit on the length of a file of hosts: 1 GiB.
const LONGEST: u64 = 1 << 30;

/// Reads a text file of bounded length.
pub(super) fn read(path: &Path) -> Result<String, NetworkError> {
    let failed = |error| NetworkError::Io(path.to_owned(), error);
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    io::Read::read_to_string(&mut io::Read::take(file, LONGEST + 1), &mut text).map_err(failed)?;
    match text.len() as u64 > LONGEST {
        true => Err(NetworkError::TooLong(path.to_owned(), LONGEST)),
        false => Ok(text),
    }
}

/// Kind of location that a file gives for each rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RankLocation {
    /// Host of a topology.
    Host,
    /// Compute node.
    Node,
    /// Process of a simulation.
    Process,
}

impl fmt::Display for RankLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Node => "node",
            Self::Process => "process",
        })
    }
}

/// Reads the host, node or process of each rank: numbers separated by white space; the rest of a line
/// after `#` is ignored. If every line has two numbers, they are pairs of a rank and its location,
/// provided that a header says `rank host` or the ranks are in order from 0 on, as in the `.map`
/// files of LogGOPSim; their number may stand before them.
///
/// # Errors
///
/// [`NetworkError`] with the file and the line.
pub fn read_locations(path: &Path, what: RankLocation) -> Result<Vec<u32>, NetworkError> {
    let text = read(path)?;
    let mut numbers = Numbers::default();
    for (line, number) in text.lines().zip(1..) {
        if numbers.lines == 0 && is_header(line) {
            numbers.headed = true;
            continue;
        }
        let content = line.split('#').next().unwrap_or_default();
        let before = numbers.all.len();
        for word in content.split_whitespace() {
            let location = word.parse().map_err(|_| NetworkError::Word {
                path: path.to_owned(),
                line: number,
                word: word.to_owned(),
                what,
            })?;
            numbers.all.push(location);
        }
        match numbers.all.len() - before {
            0 => continue,
            2 => {}
            _ => {
                numbers.unpaired = numbers.unpaired.or(Some(number));
                numbers.unpaired_lines += 1;
            }
        }
        numbers.lines += 1;
    }
    numbers.locations().map_err(|reason| NetworkError::Pairs { path: path.to_owned(), reason })
}

/// True if a line is a header for ranks and their locations.
fn is_header(line: &str) -> bool {
    let mut words = line.trim_start_matches('#').split_whitespace();
    let names = [words.next(), words.next()].map(|word| word.unwrap_or_default().to_lowercase());
    let [rank, location] = names.each_ref().map(|name| name.trim_end_matches('s'));
    words.next().is_none() && rank == "rank" && matches!(location, "host" | "node")
}

/// Numbers in a file.
#[derive(Default)]
struct Numbers {
    all: Vec<u32>,
    /// Number of lines with numbers.
    lines: usize,
    /// First line that does not have two numbers, counted from 1.
    unpaired: Option<usize>,
    /// Number of such lines.
    unpaired_lines: usize,
    /// True if a header declares them as ranks and locations.
    headed: bool,
}

impl Numbers {
    /// Location of each rank, from a list or from pairs.
    fn locations(self) -> Result<Vec<u32>, PairsError> {
        match (self.headed, self.unpaired) {
            (false, Some(_)) => return Ok(self.counted().unwrap_or(self.all)),
            // A single line is a list of two locations.
            (false, None) if self.lines < 2 => return Ok(self.all),
            (true, Some(line)) => return Err(PairsError::Unpaired { line }),
            _ => {}
        }
        let mut pairs: Vec<[u32; 2]> = self.all.as_chunks().0.to_vec();
        if !are_in_order(&pairs) && !self.headed {
            return Err(PairsError::Unclear);
        }
        pairs.sort_unstable();
        match (0..).zip(&pairs).find(|(rank, pair)| pair[0] != *rank) {
            Some((rank, _)) => Err(PairsError::Rank { rank }),
            None => Ok(pairs.iter().map(|pair| pair[1]).collect()),
        }
    }

    /// Locations from pairs in order after their number.
    fn counted(&self) -> Option<Vec<u32>> {
        let (count, rest) = self.all.split_first()?;
        let (pairs, []) = rest.as_chunks() else { return None };
        let is_count = self.unpaired_lines == 1 && usize::try_from(*count) == Ok(pairs.len());
        (is_count && are_in_order(pairs)).then(|| pairs.iter().map(|pair| pair[1]).collect())
    }
}

/// True if these are pairs of all ranks, from 0 on, and their locations.
fn are_in_order(pairs: &[[u32; 2]]) -> bool {
    (0..).zip(pairs).all(|(rank, pair)| pair[0] == rank)
}

/// Why lines of two numbers do not give locations.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PairsError {
    /// After a header, a line does not have two numbers.
    #[error("line {line}: expected two numbers, a rank and where it is, as the header says")]
    Unpaired {
        /// Line number, from 1 on.
        line: usize,
    },
    /// Ambiguous: lines of two numbers, without a header and not in order.
    #[error(
        "two numbers in each line: for pairs, begin with a line '# rank host'; for the location of \
         each rank, write one number a line"
    )]
    Unclear,
    /// A rank is missing or occurs twice.
    #[error("rank {rank} is not there once, of ranks that are counted from 0 on")]
    Rank {
        /// The rank.
        rank: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locations from a file with this text.
    fn of(text: &str) -> Result<Vec<u32>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read_locations(file.path(), RankLocation::Host).map_err(|error| error.to_string())
    }

    #[test]
    fn ranks_with_their_hosts_are_read_as_pairs_or_refused() {
        assert_eq!(of("0 5\n1 7 # the second\n\n2 5\n"), Ok(vec![5, 7, 5]));
        for header in ["# rank host", "#Rank node", "rank host", "ranks hosts"] {
            assert_eq!(of(&format!("{header}\n1 7\n0 5\n")), Ok(vec![5, 7]), "{header}");
        }
        assert_eq!(of("# rank host\n0 3\n"), Ok(vec![3]));
        assert_eq!(of("3\n0 5\n1 7\n2 5\n"), Ok(vec![5, 7, 5]));
        let refused = [
            ("1 7\n0 5\n", "begin with a line '# rank host'"),
            ("0 0\n5 5\n", "begin with a line '# rank host'"),
            ("# rank host\n0 5\n2 5\n", "rank 1 is not there once"),
            ("# rank host\n0 5\n0 6\n", "rank 1 is not there once"),
            ("# rank host\n0 5\n1\n", "line 3: expected two numbers"),
        ];
        for (text, reason) in refused {
            let error = of(text).unwrap_err();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn lists_are_not_read_as_pairs() {
        for (text, hosts) in [
            ("0 1\n", &[0, 1][..]),
            ("# the rank host file of a run\n0\n1\n", &[0, 1]),
            ("0 0 1\n1 2 2\n", &[0, 0, 1, 1, 2, 2]),
            ("0 1\n2\n", &[0, 1, 2]),
            ("3\n0 5\n1 7\n", &[3, 0, 5, 1, 7]),
            ("2\n0 5\n2 7\n", &[2, 0, 5, 2, 7]),
            ("", &[]),
        ] {
            assert_eq!(of(text), Ok(hosts.to_vec()), "{text:?}");
        }
    }
}
