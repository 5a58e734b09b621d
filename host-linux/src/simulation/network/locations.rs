//! The host or node of each rank, from a file.

use std::path::Path;
use std::{fmt, fs, io};

use super::NetworkError;

/// The longest file of hosts that is read: 1 GiB.
const LONGEST: u64 = 1 << 30;

/// The text of a file of bounded length.
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

/// Where a file says that each rank is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RankLocation {
    /// Its host of a topology.
    Host,
    /// Its node.
    Node,
}

impl fmt::Display for RankLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Node => "node",
        })
    }
}

/// Reads the host, or node, of each rank: numbers with white space between; what
/// follows `#` in a line is skipped.
///
/// # Errors
///
/// [`NetworkError`] names the file and the line.
pub fn read_locations(path: &Path, what: RankLocation) -> Result<Vec<u32>, NetworkError> {
    let text = read(path)?;
    let mut locations = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let content = line.split('#').next().unwrap_or_default();
        for word in content.split_whitespace() {
            let location = word.parse().map_err(|_| NetworkError::Word {
                path: path.to_owned(),
                line: number,
                word: word.to_owned(),
                what,
            })?;
            locations.push(location);
        }
    }
    Ok(locations)
}
