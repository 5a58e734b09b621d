//! Reading samples, a line at a time.

use std::io::Read;

use csv::{ReaderBuilder, StringRecord, Trim};
use loggap_core::measure::{Experiment, Quantity, Sample};
use loggap_core::units::{Picos, SignedPicos};

use super::bounded::{BoundedLines, LineTooLong};
use super::{Column, PLAIN, RAW, RAW_COLUMNS, SHORT, SamplesError, SamplesErrorKind, io_error};
use crate::decimal;

/// Limits on an input file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most samples.
    pub samples: u64,
    /// Longest line, bytes.
    pub line: usize,
}

impl Default for Limits {
    /// 10 million samples in lines of 1,024 bytes.
    fn default() -> Self {
        Self { samples: 10_000_000, line: 1_024 }
    }
}

/// A line of a file of samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Row {
    /// A timed round.
    Round(Sample),
    /// A `G_all` value that another tool computed.
    Gap {
        /// Message size in bytes.
        size: u32,
        /// Value.
        gap: SignedPicos,
    },
}

/// Reader of both forms, in constant memory.
#[derive(Debug)]
pub struct SampleReader<R> {
    lines: Lines<R>,
    form: Form,
    limits: Limits,
    taken: u64,
}

/// Columns of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Short,
    /// The first columns of the raw form; their number.
    Raw(usize),
}

impl Form {
    fn of(header: &Lines<impl Read>) -> Option<Self> {
        let is = |names: &[&'static str]| header.fields().eq(names.iter().copied());
        if is(&SHORT) {
            return Some(Self::Short);
        }
        let raw = |count: &usize| RAW.get(..*count).is_some_and(is);
        RAW_COLUMNS.into_iter().find(raw).map(Self::Raw)
    }

    const fn columns(self) -> usize {
        match self {
            Self::Short => SHORT.len(),
            Self::Raw(count) => count,
        }
    }
}

impl<R: Read> SampleReader<R> {
    /// Reads the header of `input`.
    ///
    /// # Errors
    ///
    /// [`SamplesError`] if there is no header, or an unknown one.
    pub fn new(input: R, limits: Limits) -> Result<Self, SamplesError> {
        let mut lines = Lines::new(input, limits.line);
        if !lines.advance()? {
            return Err(lines.error(SamplesErrorKind::Empty));
        }
        let Some(form) = Form::of(&lines) else {
            // Untrusted text: escaped and truncated.
            let header = lines.fields().collect::<Vec<_>>().join(",");
            let found = header.escape_debug().take(80).collect();
            return Err(lines.error(SamplesErrorKind::Header(found)));
        };
        Ok(Self { lines, form, limits, taken: 0 })
    }

    /// The next sample; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// [`SamplesError`] names line and column. Reading cannot continue after it.
    pub fn next_row(&mut self) -> Result<Option<Row>, SamplesError> {
        loop {
            if !self.lines.advance()? {
                return match self.taken {
                    0 => Err(self.lines.error(SamplesErrorKind::NoSamples)),
                    _ => Ok(None),
                };
            }
            if !self.is_probe() {
                break;
            }
        }
        if self.taken == self.limits.samples {
            return Err(self.lines.error(SamplesErrorKind::TooMany(self.limits.samples)));
        }
        self.taken += 1;
        let (found, expected) = (self.lines.record.len(), self.form.columns());
        if found != expected {
            return Err(self.lines.error(SamplesErrorKind::Fields { found, expected }));
        }
        match self.form {
            Form::Short => self.gap(),
            Form::Raw(columns) => self.round(columns),
        }
        .map(Some)
    }

    /// True if the line is a timing of a probe, which is no sample.
    fn is_probe(&self) -> bool {
        let filled = |index: usize| !self.lines.field(index).is_empty();
        self.form == Form::Raw(RAW.len())
            && self.lines.record.len() == RAW.len()
            && (PLAIN..RAW.len()).any(filled)
    }

    fn gap(&self) -> Result<Row, SamplesError> {
        let size = self.whole(0, &SHORT, 1, MOST_BYTES)?;
        let gap = decimal::signed_picos(self.lines.field(1));
        let gap = gap.map_err(|error| self.error(1, &SHORT, SamplesErrorKind::Number(error)))?;
        Ok(Row::Gap { size, gap })
    }

    fn round(&self, columns: usize) -> Result<Row, SamplesError> {
        const DELAY: usize = 2;
        const PRTT: usize = 3;
        const RECEIVE: usize = 4;
        const LAUNCH: usize = 5;
        const TIME: usize = 6;
        let size = self.whole(0, &RAW, 1, MOST_BYTES)?;
        let messages = self.whole(1, &RAW, 1, u32::MAX)?;
        let delay = self.time(DELAY)?;
        let (quantity, elapsed) = match (self.lines.field(PRTT), self.lines.field(RECEIVE)) {
            ("", "") => return Err(self.error(PRTT, &RAW, SamplesErrorKind::OneOfTwo)),
            ("", _) => (Quantity::Receive, self.time(RECEIVE)?),
            (_, "") => (quantity(messages, delay), self.time(PRTT)?),
            _ => return Err(self.error(RECEIVE, &RAW, SamplesErrorKind::OneOfTwo)),
        };
        if quantity == Quantity::RoundTrip && delay != Picos::ZERO {
            return Err(self.error(DELAY, &RAW, SamplesErrorKind::DelayOfOne));
        }
        if columns > LAUNCH {
            self.whole(LAUNCH, &RAW, 0, u32::MAX)?;
            self.time(TIME)?;
        }
        let experiment = Experiment { quantity, messages, delay, size };
        Ok(Row::Round(Sample { experiment, delay, elapsed }))
    }

    fn time(&self, index: usize) -> Result<Picos, SamplesError> {
        decimal::picos(self.lines.field(index))
            .map_err(|error| self.error(index, &RAW, SamplesErrorKind::Number(error)))
    }

    fn whole(
        &self,
        index: usize,
        names: &[&'static str],
        least: u32,
        most: u32,
    ) -> Result<u32, SamplesError> {
        let parsed: Option<u32> = self.lines.field(index).parse().ok();
        parsed
            .filter(|value| (least..=most).contains(value))
            .ok_or_else(|| self.error(index, names, SamplesErrorKind::Whole { least, most }))
    }

    fn error(&self, index: usize, names: &[&'static str], kind: SamplesErrorKind) -> SamplesError {
        let column = names.get(index).map(|&name| Column { number: index.saturating_add(1), name });
        SamplesError { column, ..self.lines.error(kind) }
    }
}

/// Largest message size that a file may contain, bytes: the largest that a link takes.
pub(super) const MOST_BYTES: u32 = 1 << 30;

/// Quantity that a round without `receive_s` measures.
fn quantity(messages: u32, delay: Picos) -> Quantity {
    match (messages, delay) {
        (0 | 1, _) => Quantity::RoundTrip,
        (_, Picos::ZERO) => Quantity::Gap,
        _ => Quantity::Paced,
    }
}

/// Lines of a file except empty ones and comments. A quoted field cannot span lines.
#[derive(Debug)]
struct Lines<R> {
    reader: csv::Reader<BoundedLines<R>>,
    record: StringRecord,
}

impl<R: Read> Lines<R> {
    fn new(input: R, longest: usize) -> Self {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .quoting(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .from_reader(BoundedLines::new(input, longest));
        Self { reader, record: StringRecord::new() }
    }

    /// Advances to the next line with content; false at the end of the file.
    fn advance(&mut self) -> Result<bool, SamplesError> {
        loop {
            match self.reader.read_record(&mut self.record) {
                Ok(false) => return Ok(false),
                Ok(true) if self.record.iter().eq([""]) => {}
                Ok(true) => return Ok(true),
                Err(error) => return Err(self.error(unreadable(error))),
            }
        }
    }

    /// The fields of the current line, without quotation marks around them.
    fn fields(&self) -> impl Iterator<Item = &str> {
        self.record.iter().map(unquoted)
    }

    fn field(&self, index: usize) -> &str {
        self.record.get(index).map_or("", unquoted)
    }

    /// An error at the current line, or after the last one.
    fn error(&self, kind: SamplesErrorKind) -> SamplesError {
        // The reader is already at the start of the next line.
        let next = self.reader.position().line();
        let ended = self.reader.is_done() || matches!(kind, SamplesErrorKind::LineTooLong(_));
        let line = if ended { next } else { next.saturating_sub(1).max(1) };
        SamplesError { line, column: None, kind }
    }
}

fn unquoted(field: &str) -> &str {
    field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field)
}

fn unreadable(error: csv::Error) -> SamplesErrorKind {
    let error = io_error(error);
    match error.get_ref().and_then(|inner| inner.downcast_ref::<LineTooLong>()) {
        Some(LineTooLong(limit)) => SamplesErrorKind::LineTooLong(*limit),
        None => SamplesErrorKind::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{TimedSample, write};
    use quickcheck::{Arbitrary, Gen, quickcheck};
    use std::io;

    fn rows(text: &str) -> Result<Vec<Row>, SamplesError> {
        let mut reader = SampleReader::new(text.as_bytes(), Limits::default())?;
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row()? {
            rows.push(row);
        }
        Ok(rows)
    }

    fn refusal(text: &str) -> String {
        rows(text).unwrap_err().to_string()
    }

    #[derive(Clone, Debug)]
    struct AnySample(Sample);

    impl Arbitrary for AnySample {
        fn arbitrary(g: &mut Gen) -> Self {
            let kinds = [Quantity::RoundTrip, Quantity::Gap, Quantity::Paced, Quantity::Receive];
            let quantity = *g.choose(&kinds).unwrap();
            let positive = |g: &mut Gen| u64::arbitrary(g).max(1);
            let (messages, delay) = match quantity {
                Quantity::RoundTrip => (1, 0),
                Quantity::Gap => (2 + u32::from(u8::arbitrary(g)), 0),
                Quantity::Paced => (2 + u32::from(u8::arbitrary(g)), positive(g)),
                Quantity::Receive => (1, positive(g)),
            };
            let delay = Picos(delay);
            let size = 1 + u32::arbitrary(g) % MOST_BYTES;
            let experiment = Experiment { quantity, messages, delay, size };
            Self(Sample { experiment, delay, elapsed: Picos(u64::arbitrary(g)) })
        }
    }

    quickcheck! {
        fn what_was_written_is_read_back(samples: Vec<AnySample>) -> bool {
            let expected: Vec<Row> = samples.iter().map(|sample| Row::Round(sample.0)).collect();
            let timed = |(sample, launch): (AnySample, u32)| TimedSample {
                sample: sample.0,
                launch,
                time: Picos(u64::from(launch) * 7),
            };
            let samples: Vec<TimedSample> = samples.into_iter().zip(0..).map(timed).collect();
            let mut text = Vec::new();
            write(&mut text, &samples, &[]).unwrap();
            let read = rows(std::str::from_utf8(&text).unwrap());
            if expected.is_empty() { read.is_err() } else { read.unwrap() == expected }
        }

        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, header: bool) -> bool {
            let start: &[u8] = if header { b"size_bytes,value_s\n" } else { b"" };
            let text = [start, &bytes].concat();
            if let Ok(mut reader) = SampleReader::new(text.as_slice(), Limits::default()) {
                while matches!(reader.next_row(), Ok(Some(_))) {}
            }
            true
        }
    }

    #[test]
    fn the_short_form_is_read() {
        let text = "\"size_bytes\",\"value_s\"\n1,1.5e-6\n# a comment\n 64 , -0.000000000001\r\n";
        let expected = [
            Row::Gap { size: 1, gap: SignedPicos(1_500_000) },
            Row::Gap { size: 64, gap: SignedPicos(-1) },
        ];
        assert_eq!(rows(text).unwrap(), expected);
    }

    #[test]
    fn the_raw_form_of_the_contract_is_read_without_the_receive_column() {
        let text = "\u{feff}size_bytes,n,delay_s,prtt_s\n8,1,0,2e-5\n8,10,0,4e-5\n8,10,3e-5,3e-4\n";
        let kinds: Vec<Quantity> = rows(text)
            .unwrap()
            .iter()
            .map(|row| match row {
                Row::Round(sample) => sample.experiment.quantity,
                Row::Gap { .. } => panic!("{row:?}"),
            })
            .collect();
        assert_eq!(kinds, [Quantity::RoundTrip, Quantity::Gap, Quantity::Paced]);
    }

    #[test]
    fn files_of_every_version_are_read() {
        let values = ["8", "1", "3e-5", "", "1e-6", "4", "0.25"];
        for columns in [5, 7] {
            let text = [RAW[..columns].join(","), values[..columns].join(",")].join("\n");
            let read = rows(&text).unwrap();
            let [Row::Round(sample)] = read[..] else { panic!("{read:?}") };
            assert_eq!(sample.experiment.quantity, Quantity::Receive);
            assert_eq!(sample.elapsed, Picos(1_000_000));
        }
        assert!(refusal(&RAW[..6].join(",")).contains("unknown header"));
    }

    #[test]
    fn the_columns_of_a_written_round_are_these() {
        let experiment = Experiment {
            quantity: Quantity::Paced,
            messages: 10,
            delay: Picos(5_000_000),
            size: 64,
        };
        let sample = Sample { experiment, delay: Picos(5_000_001), elapsed: Picos(60_000_000) };
        let mut text = Vec::new();
        write(&mut text, &[TimedSample { sample, launch: 2, time: Picos(1_500_000_000_000) }], &[])
            .unwrap();
        let expected = "size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s\n\
                        64,10,0.000005000001,0.00006,,2,1.5\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        for (text, expected) in [
            ("", "line 1: the file is empty"),
            ("a,b\n", "line 1: unknown header 'a,b'"),
            ("size_bytes,value_s\n", "no sample"),
            ("# size\n\n\"a b\"\n", "line 3: unknown header"),
            ("size_bytes,value_s\n1,2,3\n", "line 2: 3 fields where the header has 2"),
            ("size_bytes,value_s\n1\n", "line 2: 1 fields"),
            ("size_bytes,value_s\n1,1\n\n# c\n0,1\n", "line 5, column 1 (size_bytes): expected"),
            ("size_bytes,value_s\n1,NaN\n", "line 2, column 2 (value_s): not a number"),
            ("size_bytes,value_s\n1,1e99\n", "column 2 (value_s): the number is too large"),
            ("size_bytes,n,delay_s,prtt_s\n1,0,0,1\n", "column 2 (n): expected a whole number"),
            ("size_bytes,n,delay_s,prtt_s\n1,1,0,-1\n", "column 4 (prtt_s): a number below zero"),
            ("size_bytes,n,delay_s,prtt_s\n1,1,1,1\n", "column 3 (delay_s): a delay between"),
            ("size_bytes,n,delay_s,prtt_s,receive_s\n1,1,0,,\n", "column 4 (prtt_s): expected a"),
            ("size_bytes,n,delay_s,prtt_s,receive_s\n1,1,0,1,1\n", "column 5 (receive_s)"),
            (
                "size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s\n1,1,0,1,,x,1",
                "line 2, column 6",
            ),
            ("size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s\n1,1,0,1,,1,-1", "(time_s): a"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(expected), "{text:?}: {refusal}");
        }
    }

    #[test]
    fn a_line_without_end_and_a_flood_of_lines_are_cut_off() {
        let endless = io::repeat(b'1');
        let error = SampleReader::new(endless, Limits::default()).unwrap_err().to_string();
        assert!(error.contains("line 1: a line of more than 1024 bytes"), "{error}");
        let flood = "size_bytes,value_s\n1,1\n2,1\n3,1\n";
        let limits = Limits { samples: 2, ..Limits::default() };
        let mut reader = SampleReader::new(flood.as_bytes(), limits).unwrap();
        assert!(reader.next_row().is_ok() && reader.next_row().is_ok());
        let error = reader.next_row().unwrap_err().to_string();
        assert!(error.contains("line 4: more than 2 samples"), "{error}");
    }
}
