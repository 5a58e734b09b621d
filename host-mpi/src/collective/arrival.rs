//! Arrival times of ranks at an operation, relative to the common start.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

use loggap::flags::parse::{self, NumberError};
use loggap_core::units::Picos;

/// An arrival pattern, and the text that it was parsed from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Arrival {
    text: String,
    pattern: Pattern,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Pattern {
    /// All ranks at the common start.
    Balanced,
    /// Rank 0 at the start, the last rank this much later, the others evenly in between.
    Sorted(Duration),
    /// One rank this much later than all others; the last one, if none is named.
    OneLate(Duration, Option<u32>),
    /// Times from a file, one for each rank, in their order.
    File(PathBuf),
}

/// Error in an arrival pattern.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalError {
    /// A time is invalid.
    #[error("'{text}': {reason}")]
    Time {
        /// Text of the time.
        text: String,
        /// Reason.
        reason: NumberError,
    },
    /// No pattern has this name.
    #[error(
        "'{0}' is no pattern of arrival; there are balanced, sorted[:TIME], one-late:TIME[@RANK], \
         and files (./{0} where it is one)"
    )]
    Unknown(String),
    /// A line of the file is not a time.
    #[error("'{path}' line {line}: '{text}' is no time with a unit, such as 0, 20us or 1.5ms")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Text of the line, or its beginning.
        text: String,
    },
    /// The file is longer than any list of ranks.
    #[error("'{0}' is longer than 1 MiB; write one time a line, such as 0 or 20us")]
    TooLong(PathBuf),
    /// The text after the at sign is not a rank.
    #[error("'{0}' is no rank; expected one-late:TIME@RANK, such as one-late:5ms@0")]
    Rank(String),
    /// The rank does not exist.
    #[error("there is no rank {rank} among {ranks}")]
    NoSuchRank {
        /// Rank that was named.
        rank: u32,
        /// Number of ranks of the job.
        ranks: u32,
    },
    /// The file cannot be read.
    #[error("cannot read arrivals from '{path}': {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The number of times in the file differs from the number of ranks.
    #[error("'{path}' has {times} times for {ranks} ranks; write one a line, such as 0 or 20us")]
    Count {
        /// Path of the file.
        path: PathBuf,
        /// Number of times in the file.
        times: usize,
        /// Number of ranks of the job.
        ranks: u32,
    },
    /// A rank would arrive after the time limit.
    #[error(
        "rank {rank} is to arrive {delay} after the start, and --max-time is {most}: give more, or \
         let it come earlier"
    )]
    TooLate {
        /// Rank that is late.
        rank: usize,
        /// Requested delay.
        delay: Picos,
        /// Time limit.
        most: Picos,
    },
}

/// Parses `balanced`, `sorted[:TIME]`, `one-late:TIME[@RANK]` or a path.
///
/// # Errors
///
/// [`ArrivalError`].
pub fn arrival(text: &str) -> Result<Arrival, ArrivalError> {
    Ok(Arrival { text: text.to_owned(), pattern: pattern(text)? })
}

fn pattern(text: &str) -> Result<Pattern, ArrivalError> {
    const SORTED: Duration = Duration::from_micros(100);
    match text.split_once(':') {
        None if text == "balanced" => Ok(Pattern::Balanced),
        None if text == "sorted" => Ok(Pattern::Sorted(SORTED)),
        Some(("sorted", time)) => Ok(Pattern::Sorted(duration(time)?)),
        Some(("one-late", late)) => {
            let (time, rank) = late.split_once('@').map_or((late, None), |(t, r)| (t, Some(r)));
            let number = |rank: &str| rank.parse().map_err(|_| ArrivalError::Rank(rank.to_owned()));
            Ok(Pattern::OneLate(duration(time)?, rank.map(number).transpose()?))
        }
        // A path with a colon has to have a slash, too.
        Some(_) if !text.contains('/') => Err(ArrivalError::Unknown(text.to_owned())),
        _ => Ok(Pattern::File(text.into())),
    }
}

fn duration(text: &str) -> Result<Duration, ArrivalError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    parse::duration(text).map_err(|reason| ArrivalError::Time { text: text.to_owned(), reason })
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Arrival {
    /// True if all ranks arrive at the common start.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.pattern == Pattern::Balanced
    }

    /// Latest possible arrival, if none is later than `most`.
    #[must_use]
    pub fn longest(&self, most: Duration) -> Duration {
        match self.pattern {
            Pattern::Balanced => Duration::ZERO,
            Pattern::Sorted(time) | Pattern::OneLate(time, _) => time.min(most),
            Pattern::File(_) => most,
        }
    }

    /// Delay of each rank after the start, at most `most`.
    ///
    /// # Errors
    ///
    /// [`ArrivalError`].
    pub fn delays(&self, ranks: u32, most: Picos) -> Result<Vec<Picos>, ArrivalError> {
        let delays = self.pattern.delays(ranks)?;
        let late = delays.iter().enumerate().find(|(_, delay)| **delay > most);
        match late {
            Some((rank, &delay)) => Err(ArrivalError::TooLate { rank, delay, most }),
            None => Ok(delays),
        }
    }
}

impl Pattern {
    fn delays(&self, ranks: u32) -> Result<Vec<Picos>, ArrivalError> {
        match self {
            Self::Balanced => Ok((0..ranks).map(|_| Picos::ZERO).collect()),
            Self::Sorted(spread) => {
                let (spread, last) = (Picos::from_duration(*spread).0, u64::from(ranks.max(2) - 1));
                let share = |rank: u32| u128::from(spread) * u128::from(rank) / u128::from(last);
                let delay = |rank| Picos(u64::try_from(share(rank)).unwrap_or(u64::MAX));
                Ok((0..ranks).map(delay).collect())
            }
            Self::OneLate(time, late) => {
                let late = late.unwrap_or(ranks.saturating_sub(1));
                if late >= ranks {
                    return Err(ArrivalError::NoSuchRank { rank: late, ranks });
                }
                let time = Picos::from_duration(*time);
                Ok((0..ranks).map(|rank| if rank == late { time } else { Picos::ZERO }).collect())
            }
            Self::File(path) => of_file(path, ranks),
        }
    }
}

/// Times in `path`, one for each rank.
fn of_file(path: &Path, ranks: u32) -> Result<Vec<Picos>, ArrivalError> {
    const MOST: u64 = 1 << 20;
    const QUOTED: usize = 40;
    let failed = |source| ArrivalError::File { path: path.to_owned(), source };
    let mut text = String::new();
    let mut file = fs::File::open(path).map_err(failed)?.take(MOST + 1);
    let length = file.read_to_string(&mut text).map_err(failed)?;
    if length as u64 > MOST {
        return Err(ArrivalError::TooLong(path.to_owned()));
    }
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let time = |(line, text): (usize, &str)| {
        let has_unit = text == "0" || text.ends_with('s');
        duration(text).ok().filter(|_| has_unit).map(Picos::from_duration).ok_or_else(|| {
            ArrivalError::Line {
                path: path.to_owned(),
                line,
                text: text.chars().take(QUOTED).collect(),
            }
        })
    };
    let delays = lines.map(time).collect::<Result<Vec<_>, _>>()?;
    if u32::try_from(delays.len()) != Ok(ranks) {
        return Err(ArrivalError::Count { path: path.to_owned(), times: delays.len(), ranks });
    }
    Ok(delays)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;
    const SECOND: Picos = Picos(1_000 * MS);

    #[test]
    fn patterns_are_read() {
        let read = |text| arrival(text).unwrap().delays(3, SECOND).unwrap();
        assert_eq!(read("balanced"), [Picos(0); 3]);
        assert_eq!(read("sorted:4ms"), [Picos(0), Picos(2 * MS), Picos(4 * MS)]);
        assert_eq!(read("one-late:5ms"), [Picos(0), Picos(0), Picos(5 * MS)]);
        assert_eq!(read("one-late:5ms@0"), [Picos(5 * MS), Picos(0), Picos(0)]);
    }

    #[test]
    fn a_pattern_is_called_what_it_was_called() {
        for text in ["sorted:0.1ms", "one-late:5ms@0", "./late ones.txt"] {
            assert_eq!(arrival(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_latest_arrival_is_known_before_there_are_ranks() {
        let longest = |text| arrival(text).unwrap().longest(Duration::from_secs(9));
        assert_eq!(longest("balanced"), Duration::ZERO);
        assert_eq!(longest("one-late:5s@0"), Duration::from_secs(5));
        assert_eq!(longest("some/file"), Duration::from_secs(9));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let refused = |text| match arrival(text) {
            Ok(pattern) => pattern.delays(3, SECOND).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(refused("one-late:5ms@3").contains("no rank 3 among 3"));
        assert!(refused("one-late:5ms@x").contains("'x' is no rank"));
        assert!(refused("one-late:soon").contains("'soon'"));
        assert!(refused("sortde:100us").contains("there are balanced, sorted"));
        assert!(refused("one-late:1001ms@1").contains("rank 1 is to arrive 1.001"));
        assert!(refused("/no/such/file").contains("cannot read arrivals"));
    }

    #[test]
    fn a_file_has_a_time_for_each_rank() {
        let path = std::env::temp_dir().join(format!("loggap-arrival-{}", std::process::id()));
        fs::write(&path, "# measured\n0\n20us\n\n1ms\n").unwrap();
        let pattern = arrival(path.to_str().unwrap()).unwrap();
        assert_eq!(pattern.delays(3, SECOND).unwrap(), [Picos(0), Picos(20_000_000), Picos(MS)]);
        let refused = || pattern.delays(2, SECOND).unwrap_err().to_string();
        assert!(refused().contains("3 times for 2 ranks"));
        // A bare number would be seconds.
        fs::write(&path, "# measured\n0\n10\n").unwrap();
        assert!(refused().contains("line 3: '10' is no time with a unit"), "{}", refused());
        fs::write(&path, "x".repeat(1 << 19)).unwrap();
        assert!(refused().len() < 300, "{}", refused().len());
        fs::write(&path, "0\n".repeat(1 << 20)).unwrap();
        assert!(refused().contains("longer than 1 MiB"), "{}", refused());
        fs::remove_file(path).unwrap();
    }
}
