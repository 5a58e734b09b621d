//! Streams of records, a thread each, and the file that their blocks go to.

use std::fs::File;
use std::io::{self, Write as _};

use loggap_core::trace::{BlockHeader, DEFINITIONS, Encoder, FileHeader, MAX_PART, Part};
use lz4_flex::block::{compress_into, get_maximum_output_size};

use crate::call::Call;
use crate::{CALLS, clock};

/// Bytes of a block at which it is written.
const FULL: usize = 64 << 10;
/// Age of a block, in nanoseconds, at which it is written by the next call: a killed program loses
/// no more.
const OLD: u64 = 1_000_000_000;
/// Kinds of calls in a loop of tests.
const KINDS: usize = 9;

/// File of a rank, to its last whole block.
#[derive(Debug)]
pub(crate) struct TraceFile {
    /// `None` after a failure, and of a stream that only measures what recording costs.
    file: Option<File>,
    length: u64,
    failure: Option<io::Error>,
    /// Room for a compressed block.
    compressed: Vec<u8>,
}

impl TraceFile {
    /// A file that keeps nothing.
    pub(crate) const fn nowhere() -> Self {
        Self { file: None, length: 0, failure: None, compressed: Vec::new() }
    }

    pub(crate) fn create(path: &str, header: &FileHeader) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(&header.emit())?;
        Ok(Self { file: Some(file), length: FileHeader::LEN as u64, ..Self::nowhere() })
    }

    /// True if the file ended early or was never there.
    pub(crate) const fn is_lost(&self) -> bool {
        self.file.is_none()
    }

    /// Error that ended the file early, once.
    pub(crate) const fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Writes a block, compressed where that makes it smaller.
    fn write(&mut self, thread: u32, base: u64, parts: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let is_short = parts.len() <= BlockHeader::MAX_COMPRESSED;
        let compressed = is_short.then(|| compress(parts, &mut self.compressed)).flatten();
        let (header, stored) = match (compressed, u32::try_from(parts.len())) {
            (Some(stored), Ok(length)) => {
                (BlockHeader::compressed(thread, base, length, stored), stored)
            }
            _ => (BlockHeader::of(thread, base, parts), parts),
        };
        match file.write_all(&header.emit()).and_then(|()| file.write_all(stored)) {
            Ok(()) => self.length += (BlockHeader::LEN + stored.len()) as u64,
            Err(error) => {
                // Without the part of a block, if the file system allows.
                let _as_it_is = file.set_len(self.length);
                (self.file, self.failure) = (None, Some(error));
            }
        }
    }

    /// Writes the definition of a communicator.
    pub(crate) fn define(&mut self, parts: &[Part<'_>]) {
        let mut block = vec![0; parts.len() * MAX_PART];
        let (mut encoder, mut at) = (Encoder::new(0), 0);
        for part in parts {
            at += block.get_mut(at..).and_then(|rest| encoder.put(part, rest)).unwrap_or(0);
        }
        block.truncate(at);
        self.write(DEFINITIONS, 0, &block);
    }
}

/// Block of LZ4 of `parts`, if it is smaller.
fn compress<'a>(parts: &[u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let most = get_maximum_output_size(parts.len());
    if room.len() < most {
        room.resize(most, 0);
    }
    let length = compress_into(parts, room).ok()?;
    room.get(..length).filter(|stored| stored.len() < parts.len())
}

/// Longest gap between tests that is a loop's own, nanoseconds.
const LONGEST_OWN: u64 = 2_000;

/// A loop of unsuccessful tests that is not recorded yet.
#[derive(Clone, Copy, Debug, Default)]
struct Tests {
    /// Number of the call and count, by order of first appearance.
    counts: [(u32, u64); KINDS],
    kinds: usize,
    enter: u64,
    leave: u64,
    inside: u64,
    computing: u64,
    shortest_gap: u64,
}

/// Records of a thread that are not written yet.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Number of the thread in the file.
    pub(crate) thread: u32,
    /// Room for the parts of the block under way.
    block: Vec<u8>,
    used: usize,
    base: u64,
    encoder: Encoder,
    /// Number of a call's name in this block plus 1, by the call's number in the table; 0 if it was
    /// not defined yet.
    names: Vec<u32>,
    defined: u32,
    tests: Tests,
    /// Number of records.
    pub(crate) records: u64,
    /// Unsuccessful tests, and time that writing took, in nanoseconds.
    pub(crate) tested: u64,
    pub(crate) flushed: u64,
    /// False between `MPI_Pcontrol(0)` and the next one.
    pub(crate) is_on: bool,
}

/// Records of the tracer itself.
pub(crate) const FLUSH: Call = crate::pseudo(0, "(flush)");
pub(crate) const OFF: Call = crate::pseudo(1, "(off)");
pub(crate) const ON: Call = crate::pseudo(2, "(on)");
const PSEUDO: u32 = 3;

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            thread: 0,
            block: vec![0; FULL + 16 * MAX_PART],
            used: 0,
            base: 0,
            encoder: Encoder::default(),
            names: vec![0; (CALLS + PSEUDO) as usize],
            defined: 0,
            tests: Tests::default(),
            records: 0,
            tested: 0,
            flushed: 0,
            is_on: true,
        }
    }

    /// Begins a record, behind which at most `parts` parts are put.
    pub(crate) fn begin(&mut self, call: &Call, enter: u64, leave: u64, parts: usize) {
        if !self.is_on {
            return;
        }
        self.end_tests();
        self.start(call, enter, leave, parts);
    }

    fn start(&mut self, call: &Call, enter: u64, leave: u64, parts: usize) {
        // A name and the call itself come before.
        let needed = self.used + (parts + 2) * MAX_PART;
        if self.block.len() < needed {
            self.block.resize(needed, 0);
        }
        if self.used == 0 {
            (self.base, self.encoder) = (enter, Encoder::new(enter));
        }
        let name = self.name(call.id, call.name);
        self.put(&Part::Call { name, enter, leave });
        self.records += 1;
    }

    /// Adds to the record that was begun.
    #[inline(always)]
    pub(crate) fn put(&mut self, part: &Part<'_>) {
        if !self.is_on {
            return;
        }
        let room = self.block.get_mut(self.used..).unwrap_or_default();
        let length = self.encoder.put(part, room);
        debug_assert!(length.is_some(), "a record has more parts than were announced");
        self.used += length.unwrap_or(0);
    }

    /// Number of a name in this block.
    fn name(&mut self, id: u32, name: &str) -> u32 {
        let known = self.names.get(id as usize).copied().unwrap_or(0);
        if known != 0 {
            return known - 1;
        }
        self.put(&Part::Name(name));
        self.defined += 1;
        if let Some(place) = self.names.get_mut(id as usize) {
            *place = self.defined;
        }
        self.defined - 1
    }

    /// Adds an unsuccessful test to the loop under way.
    pub(crate) fn test(&mut self, call: &Call, enter: u64, leave: u64) {
        if !self.is_on {
            return;
        }
        self.tested += 1;
        let tests = &mut self.tests;
        if tests.kinds == 0 {
            *tests = Tests { enter, leave: enter, shortest_gap: u64::MAX, ..Tests::default() };
        } else {
            let gap = enter.saturating_sub(tests.leave);
            tests.shortest_gap = tests.shortest_gap.min(gap);
            // The shortest gap is the loop's own, with the cost of recording a test; a long one is of
            // a program that computes between all tests.
            let own = tests.shortest_gap.min(LONGEST_OWN);
            if gap > 2 * own {
                tests.computing += gap - own;
            }
        }
        tests.inside += leave.saturating_sub(enter);
        tests.leave = leave;
        let known = tests.counts.iter_mut().take(tests.kinds);
        match known.into_iter().find(|(id, _)| *id == call.id) {
            Some((_, count)) => *count += 1,
            None => {
                if let Some(place) = tests.counts.get_mut(tests.kinds) {
                    *place = (call.id, 1);
                    tests.kinds += 1;
                }
            }
        }
    }

    /// Records the loop of tests under way.
    fn end_tests(&mut self) {
        if self.tests.kinds == 0 {
            return;
        }
        let tests = self.tests;
        self.tests.kinds = 0;
        let name = |id: u32| crate::NAMES.get(id as usize).copied().unwrap_or_default();
        let counts = tests.counts.get(..tests.kinds).unwrap_or_default();
        let Some((first, _)) = counts.first() else { return };
        let call = Call { id: *first, name: name(*first), ..FLUSH };
        self.start(&call, tests.enter, tests.leave, 1 + 2 * counts.len());
        self.put(&Part::Loop { inside: tests.inside, computing: tests.computing });
        for (id, count) in counts {
            let name = self.name(*id, name(*id));
            self.put(&Part::Tests { name, count: *count });
        }
    }

    /// Ends a record that was left at `now`: writes the block if it is full or old.
    pub(crate) fn end(&mut self, now: u64, base: u64, file: &mut TraceFile) {
        if self.used < FULL && now.saturating_sub(self.base) < OLD || self.used == 0 {
            return;
        }
        // A loop of tests ends here, too: its records would be older than those of the next block.
        let [enter, leave] = self.flush(base, file);
        self.begin(&FLUSH, enter, leave, 0);
    }

    /// Writes all records, and returns when that began and ended.
    pub(crate) fn flush(&mut self, base: u64, file: &mut TraceFile) -> [u64; 2] {
        let enter = clock() - base;
        self.write(file);
        let leave = clock() - base;
        self.flushed += leave.saturating_sub(enter);
        [enter, leave]
    }

    /// Writes all records.
    pub(crate) fn write(&mut self, file: &mut TraceFile) {
        self.end_tests();
        if self.used > 0 {
            let parts = self.block.get(..self.used).unwrap_or_default();
            file.write(self.thread, self.base, parts);
            self.used = 0;
            self.names.fill(0);
            self.defined = 0;
        }
    }

    /// `MPI_Pcontrol`: `is_on` from now.
    pub(crate) fn switch(&mut self, now: u64, is_on: &Call) {
        self.begin(&OFF, now, now, 0);
        self.is_on = is_on.id == ON.id;
        self.begin(&ON, now, now, 0);
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::trace::Decoder;

    use super::*;
    use crate::table::{Iprobe, Test};

    /// Record of a loop: number of calls, time inside them and computing between.
    fn folded(tests: &[(&Call, u64, u64)]) -> (Vec<(String, u64)>, [u64; 2]) {
        let mut stream = Stream::new();
        tests.iter().for_each(|(call, enter, leave)| stream.test(call, *enter, *leave));
        stream.end_tests();
        assert_eq!(stream.records, 1);
        let parts = stream.block.get(..stream.used).unwrap();
        let (mut names, mut counts, mut times) = (Vec::new(), Vec::new(), [0; 2]);
        for part in Decoder::new(parts, stream.base) {
            match part.unwrap() {
                Part::Name(name) => names.push(name.to_owned()),
                Part::Call { enter, leave, .. } => {
                    assert_eq!((enter, leave), (tests[0].1, tests.last().unwrap().2));
                }
                Part::Loop { inside, computing } => times = [inside, computing],
                Part::Tests { name, count } => counts.push((names[name as usize].clone(), count)),
                other => panic!("{other:?}"),
            }
        }
        (counts, times)
    }

    #[test]
    fn a_loop_of_tests_is_a_record_and_long_gaps_in_it_are_computing() {
        // Gaps of 50 ns, and one of 1,000.
        let tests =
            [(&Test, 0, 30), (&Iprobe, 80, 110), (&Test, 1_110, 1_140), (&Test, 1_190, 1_220)];
        let (counts, times) = folded(&tests);
        assert_eq!(counts, [("Test".to_owned(), 3), ("Iprobe".to_owned(), 1)]);
        assert_eq!(times, [4 * 30, 1_000 - 50]);
        // Up to twice the shortest gap is the loop's own.
        assert_eq!(folded(&[(&Test, 0, 10), (&Test, 60, 70), (&Test, 170, 180)]).1, [30, 0]);
        // A program that computes 10 us between all tests.
        let long = [(&Test, 0, 10), (&Test, 10_010, 10_020), (&Test, 20_020, 20_030)];
        assert_eq!(folded(&long).1, [30, 2 * (10_000 - LONGEST_OWN)]);
    }
}
