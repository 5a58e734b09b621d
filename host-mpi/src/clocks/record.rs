//! Recorded offsets of the ranks' clocks, a line a rank and interval:
//!
//! ```text
//! rank,at_s,offset_s,round_trips_s
//! 1,12.000345678,-0.000000012345,0.0000012 0.0000011 0.0000013
//! ```
//!
//! `at_s` is a reading of rank 0's clock, `offset_s` the rank's clock minus rank 0's by the
//! quickest of the pings, whose round trips follow. Lines that begin with `#` are comments.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

use loggap::decimal::{self, DecimalError};
use loggap_core::random::Random;
use loggap_core::sync::{MinRoundTrip, Offset, Pinger};
use loggap_core::units::{Picos, SignedPicos};

/// First line of a recording that is no comment.
pub const HEADER: &str = "rank,at_s,offset_s,round_trips_s";

/// Pings of a rank in an interval.
const PINGS: u32 = 20;
/// Longest line, bytes.
const LONGEST_LINE: u64 = 64 << 10;
/// Most offsets of a rank in memory: of more, every second is dropped, and of those that follow.
const MOST_OFFSETS: usize = 1 << 16;
/// Most round trips of a rank in memory: a uniform sample.
const MOST_ROUND_TRIPS: usize = 1 << 16;

/// Offset of a rank's clock, and the round trips by which it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The rank.
    pub rank: u32,
    /// Its clock minus rank 0's, at a reading of rank 0's clock.
    pub offset: Offset,
    /// Round trips of all pings.
    pub round_trips: Vec<Picos>,
}

impl Row {
    /// Pings `rank` from rank 0; `None` if no ping is valid.
    pub(crate) fn measured<P: Pinger>(rank: u32, pinger: &mut P) -> Result<Option<Self>, P::Error> {
        let mut quickest = MinRoundTrip::new(PINGS, PINGS);
        let mut round_trips = Vec::new();
        for _ in 0..PINGS {
            let ping = pinger.ping()?;
            if quickest.handle(&ping).is_ok() {
                round_trips.push(ping.received.since(ping.sent));
            }
        }
        // Rank 0's clock minus the rank's, turned round.
        let turned = |offset: Offset| Offset { value: SignedPicos(-offset.value.0), ..offset };
        Ok(quickest.offset().map(|offset| Self { rank, offset: turned(offset), round_trips }))
    }

    /// The line of the file.
    #[must_use]
    pub fn line(&self) -> String {
        let round_trips: Vec<String> =
            self.round_trips.iter().map(|time| decimal::seconds(*time)).collect();
        format!(
            "{},{},{},{}\n",
            self.rank,
            decimal::seconds(self.offset.at),
            decimal::signed_seconds(self.offset.value),
            round_trips.join(" ")
        )
    }

    fn parsed(line: &str) -> Result<Self, ErrorKind> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[rank, at, value, round_trips] = &fields[..] else {
            return Err(ErrorKind::Fields(fields.len()));
        };
        let rank = rank.parse().map_err(|_| ErrorKind::Rank)?;
        let number = |column| move |error| ErrorKind::Number { column, error };
        let at = decimal::picos(at).map_err(number("at_s"))?;
        let value = decimal::signed_picos(value).map_err(number("offset_s"))?;
        let round_trips = round_trips.split_ascii_whitespace().map(decimal::picos);
        let round_trips: Vec<Picos> =
            round_trips.collect::<Result<_, _>>().map_err(number("round_trips_s"))?;
        let round_trip = *round_trips.iter().min().ok_or(ErrorKind::NoPings)?;
        let offset = Offset {
            at,
            value,
            half_width: Picos(round_trip.0.div_ceil(2)),
            round_trip,
            pings: u32::try_from(round_trips.len()).unwrap_or(u32::MAX),
            contradictions: 0,
        };
        Ok(Self { rank, offset, round_trips })
    }
}

/// Recorded clock of a rank, in bounded memory.
#[derive(Clone, Debug)]
pub struct RankRecording {
    /// Offsets in order of time; of a long recording every second, fourth and so on.
    pub offsets: Vec<Offset>,
    /// Round trips; of a long recording a uniform sample.
    pub round_trips: Vec<Picos>,
    /// Smallest round trip of all.
    pub least: Picos,
    last: Picos,
    rows: usize,
    /// Number of rows of which one is kept.
    stride: usize,
    pings: u64,
    random: Random,
}

impl RankRecording {
    fn new(rank: u32) -> Self {
        Self {
            offsets: Vec::new(),
            round_trips: Vec::new(),
            least: Picos::MAX,
            last: Picos::ZERO,
            rows: 0,
            stride: 1,
            pings: 0,
            random: Random::stream(1, rank.into()),
        }
    }

    fn push(&mut self, row: &Row) {
        self.last = row.offset.at;
        if self.rows.is_multiple_of(self.stride) {
            self.offsets.push(row.offset);
        }
        self.rows = self.rows.saturating_add(1);
        if self.offsets.len() > MOST_OFFSETS {
            let mut index = 0_usize;
            self.offsets.retain(|_| {
                index += 1;
                !index.is_multiple_of(2)
            });
            self.stride = self.stride.saturating_mul(2);
        }
        for &time in &row.round_trips {
            self.pings += 1;
            self.least = self.least.min(time);
            if self.round_trips.len() < MOST_ROUND_TRIPS {
                self.round_trips.push(time);
                continue;
            }
            let place = usize::try_from(self.random.below(self.pings)).unwrap_or(usize::MAX);
            if let Some(kept) = self.round_trips.get_mut(place) {
                *kept = time;
            }
        }
    }
}

/// Recorded clocks of the ranks but rank 0.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// By rank.
    pub ranks: BTreeMap<u32, RankRecording>,
}

/// Error of a recording, at a line that counts from 1.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct RecordingError {
    /// Number of the line.
    pub line: u64,
    /// Cause.
    #[source]
    pub kind: ErrorKind,
}

/// Causes of a [`RecordingError`].
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// The file cannot be read, or is not text.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// A line is too long.
    #[error("a line of more than {LONGEST_LINE} bytes")]
    LineTooLong,
    /// There is no header.
    #[error("expected '{HEADER}', as sync --record writes it")]
    Header,
    /// Wrong number of fields.
    #[error("{0} fields in place of 4: {HEADER}")]
    Fields(usize),
    /// A rank is no number.
    #[error("rank: expected a whole number")]
    Rank,
    /// A time is no number.
    #[error("{column}: {error}")]
    Number {
        /// Name of the column.
        column: &'static str,
        /// Cause.
        error: DecimalError,
    },
    /// No round trip.
    #[error("round_trips_s: expected at least one time")]
    NoPings,
    /// A rank's offsets are not in order of time.
    #[error("at_s: not later than the line before of rank {0}")]
    Order(u32),
    /// No line after the header.
    #[error("no offset")]
    Empty,
}

impl Recording {
    /// Adds the next row.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Order`]: it is not later than the rank's row before, and ignored.
    pub fn push(&mut self, row: &Row) -> Result<(), ErrorKind> {
        let rank = self.ranks.entry(row.rank).or_insert_with(|| RankRecording::new(row.rank));
        if rank.rows > 0 && row.offset.at <= rank.last {
            return Err(ErrorKind::Order(row.rank));
        }
        rank.push(row);
        Ok(())
    }

    /// Reads a recording. A last line without its end, as a killed job leaves it, is ignored.
    ///
    /// # Errors
    ///
    /// [`RecordingError`].
    pub fn read(mut input: impl BufRead) -> Result<Self, RecordingError> {
        let mut recording = Self::default();
        let (mut text, mut line, mut has_header) = (String::new(), 0, false);
        loop {
            line += 1;
            let at_line = |kind| RecordingError { line, kind };
            text.clear();
            let read = input.by_ref().take(LONGEST_LINE).read_line(&mut text);
            read.map_err(|error| at_line(ErrorKind::Io(error)))?;
            let Some(content) = text.strip_suffix('\n').map(str::trim) else {
                return match () {
                    () if text.len() as u64 >= LONGEST_LINE => Err(at_line(ErrorKind::LineTooLong)),
                    () if !has_header => Err(at_line(ErrorKind::Header)),
                    () if recording.ranks.is_empty() => Err(at_line(ErrorKind::Empty)),
                    () => Ok(recording),
                };
            };
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if !has_header {
                has_header = content == HEADER;
                has_header.then_some(()).ok_or_else(|| at_line(ErrorKind::Header))?;
                continue;
            }
            Row::parsed(content).and_then(|row| recording.push(&row)).map_err(at_line)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: u32, second: u64, value: i64, round_trips: &[u64]) -> Row {
        let round_trips: Vec<Picos> = round_trips.iter().copied().map(Picos).collect();
        let round_trip = *round_trips.iter().min().unwrap();
        let offset = Offset {
            at: Picos(second * 1_000_000_000_000 + 7),
            value: SignedPicos(value),
            half_width: Picos(round_trip.0.div_ceil(2)),
            round_trip,
            pings: u32::try_from(round_trips.len()).unwrap(),
            contradictions: 0,
        };
        Row { rank, offset, round_trips }
    }

    #[test]
    fn rows_are_read_as_written_and_half_a_line_is_ignored() {
        let rows = [row(1, 0, -5, &[31, 17]), row(2, 0, 5, &[9]), row(1, 1, 6, &[18])];
        let lines: String = rows.iter().map(Row::line).collect();
        let text = format!("# by hand\n{HEADER}\n{lines}2,1.0,0.00");
        let read = Recording::read(text.as_bytes()).unwrap();
        let [one, two] = [1, 2].map(|rank| &read.ranks[&rank]);
        assert_eq!(
            (&one.offsets[..], two.offsets[0]),
            (&[rows[0].offset, rows[2].offset][..], rows[1].offset)
        );
        assert_eq!((one.round_trips.len(), one.least, two.least), (3, Picos(17), Picos(9)));
    }

    #[test]
    fn errors_name_the_line() {
        let good = "1,1,0,1e-6\n";
        for (lines, told) in [
            ("", "line 2: no offset"),
            ("1,1,0\n", "line 2: 3 fields in place of 4"),
            ("-1,1,0,1\n", "line 2: rank: "),
            ("1,x,0,1\n", "line 2: at_s: "),
            ("1,1,1e30,1\n", "line 2: offset_s: "),
            ("1,1,0,1 -1\n", "line 2: round_trips_s: "),
            ("1,1,0,\n", "line 2: round_trips_s: expected"),
            (
                &[good, "2,1,0,1\n", good].concat(),
                "line 4: at_s: not later than the line before of rank 1",
            ),
            (&"1 ".repeat(40_000), "line 2: a line of more than 65536 bytes"),
        ] {
            let read = Recording::read(format!("{HEADER}\n{lines}").as_bytes());
            let error = read.unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
        for text in [&b"rank,at_s\n"[..], b"", b"# nothing\n"] {
            let error = Recording::read(text).unwrap_err().to_string();
            assert!(error.contains("expected 'rank,at_s,offset_s,round_trips_s'"), "{error}");
        }
        assert!(Recording::read(&b"\xff\n"[..]).is_err());
    }

    #[test]
    fn a_long_recording_takes_bounded_memory_and_keeps_its_span_and_least_round_trip() {
        let mut recording = Recording::default();
        let rows = 3 * MOST_OFFSETS as u64;
        for second in 0..rows {
            let quick = if second == 5 { 3 } else { 10 };
            recording.push(&row(1, second, 0, &[quick, 11])).unwrap();
        }
        let rank = &recording.ranks[&1];
        assert!(rank.offsets.len() <= MOST_OFFSETS && rank.offsets.len() > MOST_OFFSETS / 2);
        assert!(rank.offsets.last().unwrap().at.0 / 1_000_000_000_000 >= rows - 4);
        assert_eq!((rank.round_trips.len(), rank.least), (MOST_ROUND_TRIPS, Picos(3)));
        let elevens = rank.round_trips.iter().filter(|time| time.0 == 11).count();
        assert!(elevens.abs_diff(MOST_ROUND_TRIPS / 2) < 2_000, "{elevens}");
    }
}
