//! Parsers of message sizes: `8`, `1,64,4K`, `1:64K`, `1:64K:x2`, `1:64K:+1024`, `@file`.

use std::fs::File;
use std::io::{self, Read};

use crate::link::LONGEST_MESSAGE;

/// Most sizes in a list.
const MOST_SIZES: usize = 65_536;
/// Longest list file, bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// Sizes in strictly ascending order, at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sizes {
    /// `first:last` without a step: the command chooses the sizes between.
    Span {
        /// Smallest size in bytes.
        first: u64,
        /// Largest size in bytes.
        last: u64,
    },
    /// Exactly these sizes, bytes.
    Listed(Vec<u64>),
}

impl Sizes {
    /// Smallest size, bytes.
    #[must_use]
    pub fn first(&self) -> u64 {
        match self {
            Self::Span { first, .. } => *first,
            Self::Listed(list) => list.first().copied().unwrap_or_default(),
        }
    }

    /// Largest size, bytes.
    #[must_use]
    pub fn last(&self) -> u64 {
        match self {
            Self::Span { last, .. } => *last,
            Self::Listed(list) => list.last().copied().unwrap_or_default(),
        }
    }

    /// All sizes, bytes; a span is expanded in factors of two, its end included.
    #[must_use]
    pub fn list(&self) -> Vec<u64> {
        match self {
            Self::Span { first, last } => {
                let next = |size: &u64| Some(if *size == 0 { 1 } else { size.checked_mul(2)? });
                let doubled = std::iter::successors(Some(*first), next);
                doubled.take_while(|size| size < last).chain([*last]).collect()
            }
            Self::Listed(list) => list.clone(),
        }
    }
}

/// Why a text is not a list of sizes.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    /// Not a size.
    #[error(
        "'{0}' is no size; expected bytes such as 8, 64, 4K, 1.5M or 1GiB, where K, M and G are \
         powers of 1024"
    )]
    NotASize(String),
    /// Not a step.
    #[error("'{0}' is no step; expected a factor from x2 on or an addend such as +1024")]
    NotAStep(String),
    /// A range whose end is below its begin.
    #[error("the range {first}:{last} ends before it begins; swap the two")]
    Backwards {
        /// First size, bytes.
        first: u64,
        /// Last size, bytes.
        last: u64,
    },
    /// A size not larger than its predecessor.
    #[error("size {size} follows {before}; list sizes in ascending order, each once")]
    OutOfOrder {
        /// Predecessor, bytes.
        before: u64,
        /// Offending size, bytes.
        size: u64,
    },
    /// More than 65,536 sizes.
    #[error("more than {MOST_SIZES} sizes; use a larger step")]
    TooMany,
    /// An empty list.
    #[error("no size at all; give at least one")]
    Empty,
    /// A size outside the range of messages.
    #[error("a message cannot have {0} bytes here; use sizes from 1 to {most}", most = LONGEST_MESSAGE.0)]
    NotAMessage(u64),
    /// The list's file could not be read.
    #[error("cannot read sizes from '{path}': {source}")]
    File {
        /// Path of the file.
        path: String,
        /// System error.
        source: io::Error,
    },
}

/// Parses a size in bytes: a whole number, or a decimal with `K`, `M`, `G` (also `KiB`, `MiB`,
/// `GiB`, powers of 1024) that yields whole bytes.
///
/// # Errors
///
/// [`SizeError::NotASize`].
pub fn size(text: &str) -> Result<u64, SizeError> {
    /// Decimals considered: enough for every multiple of 1/1024.
    const DIGITS: usize = 10;
    const ONE: u128 = 10_000_000_000;
    let refused = || SizeError::NotASize(text.to_owned());
    let without = text.strip_suffix("iB").unwrap_or(text);
    let (number, shift) = match without.as_bytes().last() {
        Some(b'K' | b'k') => (without.get(..without.len() - 1), 10),
        Some(b'M' | b'm') => (without.get(..without.len() - 1), 20),
        Some(b'G' | b'g') => (without.get(..without.len() - 1), 30),
        _ => (Some(text), 0),
    };
    let number = number.ok_or_else(refused)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = || whole.bytes().chain(fraction.bytes());
    if fraction.is_empty() || fraction.len() > DIGITS || !digits().all(|b| b.is_ascii_digit()) {
        return Err(refused());
    }
    let whole: u64 = whole.parse().map_err(|_| refused())?;
    let fraction: u64 = format!("{fraction:0<DIGITS$}").parse().map_err(|_| refused())?;
    let parts = (u128::from(whole) * ONE + u128::from(fraction)) << shift;
    u64::try_from(parts / ONE).ok().filter(|_| parts.is_multiple_of(ONE)).ok_or_else(refused)
}

/// Parses a list of sizes in the forms of this module's head, which commas may combine. `@file`
/// reads the list from a file, with `#` comments, and commas or white space between items.
///
/// # Errors
///
/// [`SizeError`] names the offending item.
pub fn sizes(text: &str) -> Result<Sizes, SizeError> {
    if let Some(path) = text.strip_prefix('@') {
        return list(file_items(&read(path)?));
    }
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [first, last] if !text.contains(',') => {
            let (first, last) = ordered(first, last)?;
            Ok(Sizes::Span { first, last })
        }
        _ => list(text.split(',')),
    }
}

/// As [`sizes`], for messages sent over a link: from 1 byte to [`LONGEST_MESSAGE`].
///
/// # Errors
///
/// [`SizeError`] names the offending item.
pub fn message_sizes(text: &str) -> Result<Sizes, SizeError> {
    let sizes = sizes(text)?;
    let possible = 1..=LONGEST_MESSAGE.0;
    match [sizes.first(), sizes.last()].into_iter().find(|size| !possible.contains(size)) {
        Some(size) => Err(SizeError::NotAMessage(size)),
        None => Ok(sizes),
    }
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> Result<Sizes, SizeError> {
    let mut list = Vec::new();
    for item in items {
        append(&mut list, item.trim())?;
    }
    if list.is_empty() { Err(SizeError::Empty) } else { Ok(Sizes::Listed(list)) }
}

fn append(list: &mut Vec<u64>, item: &str) -> Result<(), SizeError> {
    let mut parts = item.splitn(3, ':');
    let first = parts.next().unwrap_or_default();
    let (first, last) = match parts.next() {
        None => (size(first)?, size(first)?),
        Some(last) => ordered(first, last)?,
    };
    let step = parts.next().map_or(Ok(Step::Times(2)), step)?;
    let mut next = Some(first);
    while let Some(size) = next.filter(|size| *size <= last) {
        match list.last() {
            Some(&before) if before >= size => return Err(SizeError::OutOfOrder { before, size }),
            _ if list.len() == MOST_SIZES => return Err(SizeError::TooMany),
            _ => list.push(size),
        }
        next = step.after(size);
    }
    Ok(())
}

fn ordered(first: &str, last: &str) -> Result<(u64, u64), SizeError> {
    let (first, last) = (size(first)?, size(last)?);
    if first > last { Err(SizeError::Backwards { first, last }) } else { Ok((first, last)) }
}

#[derive(Clone, Copy)]
enum Step {
    Times(u64),
    Plus(u64),
}

impl Step {
    fn after(self, size: u64) -> Option<u64> {
        match self {
            Self::Times(_) if size == 0 => Some(1),
            Self::Times(factor) => size.checked_mul(factor),
            Self::Plus(addend) => size.checked_add(addend),
        }
    }
}

fn step(text: &str) -> Result<Step, SizeError> {
    let parsed = match text.as_bytes().first() {
        Some(b'x') => size(text.get(1..).unwrap_or_default()).map(Step::Times),
        Some(b'+') => size(text.get(1..).unwrap_or_default()).map(Step::Plus),
        _ => Err(SizeError::Empty),
    };
    match parsed {
        Ok(Step::Times(0 | 1) | Step::Plus(0)) | Err(_) => {
            Err(SizeError::NotAStep(text.to_owned()))
        }
        Ok(step) => Ok(step),
    }
}

fn read(path: &str) -> Result<String, SizeError> {
    let failed = |source| SizeError::File { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let read = file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > LONGEST_FILE { Err(SizeError::TooMany) } else { Ok(text) }
}

fn file_items(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let separator = |c: char| c == ',' || c.is_whitespace();
    lines.flat_map(move |line| line.split(separator)).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::io::Write;

    fn listed(text: &str) -> Vec<u64> {
        sizes(text).unwrap().list()
    }

    #[test]
    fn every_form_of_the_contract_is_read() {
        assert_eq!(listed("8"), [8]);
        assert_eq!(listed("1,64,4K"), [1, 64, 4_096]);
        assert_eq!(sizes("1:64K").unwrap(), Sizes::Span { first: 1, last: 65_536 });
        assert_eq!(listed("1:10"), [1, 2, 4, 8, 10]);
        assert_eq!(listed("0:4"), [0, 1, 2, 4]);
        assert_eq!(listed("1:10:x2"), [1, 2, 4, 8]);
        assert_eq!(listed("1:100:x10"), [1, 10, 100]);
        assert_eq!(listed("1:4K:+1024"), [1, 1_025, 2_049, 3_073]);
        assert_eq!(listed("1:4:x2,100,1M:2M:+1M"), [1, 2, 4, 100, 1 << 20, 1 << 21]);
        assert_eq!(listed("7:7"), [7]);
        assert_eq!(listed("0.5K,1.5KiB,2MiB,1.25G"), [512, 1_536, 2 << 20, 5 << 28]);
    }

    #[test]
    fn a_file_holds_a_list_with_comments() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "# sizes\n1 2,\n 4K # a page\n\n8K:16K:x2\n").unwrap();
        let path = file.path().display();
        assert_eq!(listed(&format!("@{path}")), [1, 2, 4_096, 8_192, 16_384]);
        let missing = sizes("@/nonexistent").unwrap_err().to_string();
        assert!(missing.contains("/nonexistent"), "{missing}");
    }

    #[test]
    fn what_is_out_of_order_or_absurd_is_named() {
        for (text, part) in [
            ("", "''"),
            ("64,1", "1 follows 64"),
            ("1,1", "1 follows 1"),
            ("64:1", "swap"),
            ("1:64:x1", "'x1'"),
            ("1:64:+0", "'+0'"),
            ("1:64:2", "'2'"),
            ("1:64:", "''"),
            ("1:2:x2:3", "'x2:3'"),
            ("-1", "'-1'"),
            ("0.3K", "'0.3K'"),
            ("1.5", "'1.5'"),
            ("1.K", "'1.K'"),
            (".5K", "'.5K'"),
            ("8iB", "'8iB'"),
            ("1.00000000000K", "'1.0"),
            ("K", "'K'"),
            ("4KB", "'4KB'"),
            ("18446744073709551616", "no size"),
            ("99999999999999999G", "no size"),
            ("1:1G:+1", "larger step"),
            ("@/dev/null", "at least one"),
        ] {
            let error = sizes(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn messages_have_at_least_a_byte_and_at_most_the_longest() {
        for text in ["0", "0:8", "0,8", "1:2G", "1,18446744073709551615"] {
            let error = message_sizes(text).unwrap_err().to_string();
            assert!(error.contains("from 1 to 1073741824"), "{text}: {error}");
        }
        assert!(message_sizes("1:1G").is_ok());
    }

    quickcheck! {
        fn a_list_is_ascending_and_bounded_or_refused(items: Vec<(u8, u8, u8)>) -> bool {
            let item = |&(first, last, step): &(u8, u8, u8)| format!("{first}:{last}:x{step}");
            let text = items.iter().map(item).collect::<Vec<_>>().join(",");
            match sizes(&text) {
                Ok(sizes) => sizes.list().is_sorted_by(|a, b| a < b) && !sizes.list().is_empty(),
                Err(_) => true,
            }
        }

        fn a_list_is_read_back(list: Vec<u32>) -> bool {
            let mut list: Vec<u64> = list.into_iter().map(u64::from).collect();
            list.sort_unstable();
            list.dedup();
            let text = list.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            match sizes(&text) {
                Ok(sizes) => sizes.list() == list,
                Err(_) => list.is_empty(),
            }
        }
    }
}
