//! Text of liballprof, the tracer of LogGOPSim: a file a rank, a line a call,
//! `MPI_Name:begin:arguments:end` with times in microseconds and the arguments as in C.
//!
//! A datatype is `id,size,extent`, a communicator `id,rank,size`, a list of counts `address:c0,c1,…`.
//! Requests are known by their address; those of `MPI_Waitall` lie 8 bytes apart (Open MPI's C) or 4
//! (MPICH's, and Fortran), whichever finds more. Results of tests, of `MPI_Waitany` and of receives
//! from any source are not in the text, nor are the members of communicators of part of the ranks.

mod calls;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use loggap_core::trace::{
    ANY_PEER, ANY_TAG, Collective, Completed, Direction, Envelope, Message, NO_PEER, Outcome,
};

use super::convert::Strictness;
use super::rank::Communicator;
use super::record::Counts;
use super::{Record, Tests, TraceError, What, mapped};
use calls::{Action, Call, Role};

/// Bytes between the requests of a list: of Open MPI's C, of MPICH's and of Fortran.
const STRIDES: [u64; 2] = [8, 4];
/// Number of a communicator whose members are not known.
const PART: u32 = 1;

/// Text of a rank.
pub struct RankText {
    path: PathBuf,
    bytes: Box<dyn Deref<Target = [u8]> + Send + Sync>,
    rank: u32,
    ranks: u32,
    communicators: HashMap<u32, Communicator>,
}

impl fmt::Debug for RankText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankText").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RankText {
    /// Opens the text of `rank` of `ranks`.
    ///
    /// # Errors
    ///
    /// [`TraceError::Read`].
    pub fn open(path: PathBuf, rank: u32, ranks: u32) -> Result<Self, TraceError> {
        let map = mapped(&path)?;
        Ok(Self::of(path, map, rank, ranks))
    }

    /// Text of `rank` of `ranks` with the content `bytes`.
    #[must_use]
    pub fn of(
        path: PathBuf,
        bytes: impl Deref<Target = [u8]> + Send + Sync + 'static,
        rank: u32,
        ranks: u32,
    ) -> Self {
        let communicators = HashMap::from([(0, Communicator::world(ranks))]);
        Self { path, bytes: Box::new(bytes), rank, ranks, communicators }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the first line that is no comment is that of a call.
    #[must_use]
    pub fn is_text(&self) -> bool {
        let mut lines = self.bytes.split(|byte| *byte == b'\n');
        let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
        first.is_none_or(|line| {
            line.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case(b"MPI_"))
        })
    }

    pub(super) const fn communicators(&self) -> &HashMap<u32, Communicator> {
        &self.communicators
    }

    /// Records of the calls, in their order. Of a lenient reading, a line that cannot be read is a
    /// record of the call `(unreadable)`; of a strict one, it is the last.
    #[must_use]
    pub fn records(&self, strictness: Strictness) -> Records<'_> {
        Records {
            text: self,
            rest: &self.bytes,
            line: 0,
            strictness,
            requests: HashMap::new(),
            last_id: 0,
            time: 0,
            pending: VecDeque::new(),
        }
    }
}

/// An operation behind the address of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    /// Identity; 0 if it is not under way.
    id: u64,
    /// Message of a persistent operation.
    persistent: Option<Message>,
}

/// Iterator of [`RankText::records`].
#[derive(Debug)]
pub struct Records<'t> {
    text: &'t RankText,
    rest: &'t [u8],
    /// Lines read.
    line: usize,
    strictness: Strictness,
    requests: HashMap<u64, Request>,
    last_id: u64,
    /// End of the last call.
    time: u64,
    pending: VecDeque<Record<'t>>,
}

/// Error in a line: byte offset, and the text that was expected.
type Wrong = (usize, &'static str);

impl<'t> Iterator for Records<'t> {
    type Item = Result<Record<'t>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.pending.pop_front() {
                return Some(Ok(record));
            }
            if self.rest.is_empty() {
                return None;
            }
            let end = self.rest.iter().position(|byte| *byte == b'\n').unwrap_or(self.rest.len());
            let (line, rest) = self.rest.split_at(end);
            self.rest = rest.get(1..).unwrap_or_default();
            self.line += 1;
            let wrong = match std::str::from_utf8(line).map(str::trim_end) {
                Ok("") => continue,
                Ok(line) if line.starts_with('#') => continue,
                Ok(line) => match self.record(line) {
                    Ok(record) => {
                        self.pending.push_back(record);
                        continue;
                    }
                    Err(wrong) => wrong,
                },
                Err(error) => (error.valid_up_to(), "text"),
            };
            if self.strictness == Strictness::Lenient {
                let call = "(unreadable)";
                let (enter, leave) = (self.time, self.time);
                return Some(Ok(Record { call, thread: 0, enter, leave, what: What::Call }));
            }
            self.rest = &[];
            let (column, expected) = (wrong.0 + 1, wrong.1);
            let path = self.text.path.clone();
            return Some(Err(TraceError::Text { path, line: self.line, column, expected }));
        }
    }
}

impl<'t> Records<'t> {
    fn record(&mut self, line: &'t str) -> Result<Record<'t>, Wrong> {
        let mut fields = Fields { line, at: 0 };
        let name = fields.next("name of a call")?.1;
        let plain = name.strip_prefix("MPI_").or_else(|| name.strip_prefix("mpi_"));
        let plain = plain.ok_or((0, "MPI_"))?;
        let (at, begin) = fields.next("time")?;
        // The begin of MPI_Init and the end of MPI_Finalize.
        let begin = if begin == "-" { None } else { Some(micros(begin).ok_or((at, "time"))?) };
        let (arguments, (at, end)) = fields.last().ok_or((line.len(), "time of the end"))?;
        let end = if end == "-" { None } else { Some(micros(end).ok_or((at, "time"))?) };
        let known = calls::find(plain);
        let what = match known {
            Some(call) => {
                let values = Values::of(call, arguments)?;
                self.what(call, &values)?
            }
            None => What::Call,
        };
        let enter = begin.or(end).unwrap_or(self.time);
        let leave = end.unwrap_or(enter).max(enter);
        self.time = leave;
        Ok(Record { call: known.map_or(plain, |call| call.name), thread: 0, enter, leave, what })
    }

    fn what(&mut self, call: &Call, values: &Values) -> Result<What<'t>, Wrong> {
        Ok(match call.action {
            Action::Message(mode) => {
                let request = call.has_request.then(|| self.start(values.request, None));
                let messages = [Direction::Send, Direction::Receive].into_iter();
                let messages = messages.filter(|direction| call.has(Role::Peer(*direction)));
                What::Messages(
                    messages.map(|way| self.message(call, values, way, mode, request)).collect(),
                )
            }
            Action::Persistent(mode) => {
                let way = if call.has(Role::Peer(Direction::Send)) {
                    Direction::Send
                } else {
                    Direction::Receive
                };
                let message = self.message(call, values, way, mode, None);
                let request = Request { id: 0, persistent: Some(message) };
                self.requests.insert(values.request, request);
                What::Call
            }
            Action::Start => {
                let mut messages = Vec::new();
                for address in self.addresses(values) {
                    let known = self.requests.get(&address).and_then(|known| known.persistent);
                    let Some(message) = known else { continue };
                    let request = Some(self.start(address, known));
                    messages.push(Message { request, ..message });
                }
                What::Messages(messages)
            }
            Action::Wait => {
                let addresses = self.addresses(values).into_iter();
                What::Completions(addresses.filter_map(|address| self.complete(address)).collect())
            }
            Action::Test => What::Tests(Tests { counts: vec![(call.name, 1)], ..Tests::default() }),
            Action::Collective => {
                let request = call.has_request.then(|| self.start(values.request, None));
                self.collective(call, values, request)
            }
        })
    }

    /// Identity of an operation that begins at an address. If another one was under way there, a
    /// call whose result is not in the text completed it.
    fn start(&mut self, address: u64, persistent: Option<Message>) -> u64 {
        self.last_id += 1;
        let new = Request { id: self.last_id, persistent };
        if let Some(Request { id: request @ 1.., .. }) = self.requests.insert(address, new) {
            let what = What::Completions(vec![Completed { request, outcome: Outcome::Freed }]);
            let (enter, leave) = (self.time, self.time);
            self.pending.push_back(Record { call: "(reused)", thread: 0, enter, leave, what });
        }
        self.last_id
    }

    fn complete(&mut self, address: u64) -> Option<Completed> {
        let known = self.requests.get_mut(&address)?;
        let request = known.id;
        known.id = 0;
        if known.persistent.is_none() {
            self.requests.remove(&address);
        }
        (request != 0).then_some(Completed { request, outcome: Outcome::Done })
    }

    /// Addresses of the requests of a call: those of a list that are known.
    fn addresses(&self, values: &Values) -> Vec<u64> {
        let Some(count) = values.requests else { return vec![values.request] };
        // A count that no list in memory can have is not walked through.
        let count = count.min(self.requests.len() as u64 * 8 + 64);
        let known = |stride: u64| {
            let all = (0..count).map(move |at| values.request.wrapping_add(at * stride));
            all.filter(|address| self.requests.contains_key(address)).collect::<Vec<_>>()
        };
        let [wide, narrow] = STRIDES.map(known);
        if narrow.len() > wide.len() { narrow } else { wide }
    }

    fn communicator(&self, values: &Values) -> u32 {
        let [_, rank, size] = values.comm;
        if (rank, size) == (self.text.rank.into(), self.text.ranks.into()) { 0 } else { PART }
    }

    fn message(
        &self,
        call: &Call,
        values: &Values,
        direction: Direction,
        mode: loggap_core::trace::Mode,
        request: Option<u64>,
    ) -> Message {
        let side = values.side(direction);
        // MPI_Sendrecv_replace has one count and type.
        let counted = if call.has(Role::Count(direction)) { side } else { &values.sent };
        let bytes = counted.bytes(counted.count);
        // MPICH's handle of MPI_COMM_WORLD and others; it numbers the wildcards otherwise.
        let is_mpich = matches!(values.comm[0] >> 26, 0x11 | 0x21);
        let (null, any) = if is_mpich { (-1, -2) } else { (-2, -1) };
        let peer = match (side.peer, direction) {
            (peer, _) if peer == null => NO_PEER,
            (peer, Direction::Receive) if peer == any => ANY_PEER,
            (peer, _) => i32::try_from(peer).unwrap_or(i32::MAX),
        };
        let tag = if side.tag < 0 { ANY_TAG } else { i32::try_from(side.tag).unwrap_or(i32::MAX) };
        let envelope = Envelope { peer, tag, bytes, communicator: self.communicator(values) };
        Message { direction, mode, envelope, request }
    }

    fn collective(&self, call: &Call, values: &Values, request: Option<u64>) -> What<'t> {
        let sides = [&values.sent, &values.received];
        let [sent, received] = sides.map(|side| side.bytes(side.count));
        let [list_sent, list_received] = sides
            .map(|side| Counts(side.counts.iter().map(|count| (1, side.bytes(*count))).collect()));
        let in_place = sides.map(|side| side.in_place);
        let root = call.has(Role::Root).then(|| i32::try_from(values.root).unwrap_or(i32::MAX));
        let operation = Collective {
            communicator: self.communicator(values),
            root,
            sent: if in_place[0] && received > 0 { 0 } else { sent },
            received: if in_place[1] { 0 } else { received },
            in_place: in_place != [false; 2],
            request,
        };
        What::Collective { operation, sent: list_sent, received: list_received }
    }
}

/// Arguments of what a call sends, or receives.
#[derive(Debug, Default)]
struct Side {
    count: i64,
    counts: Vec<i64>,
    type_size: i64,
    peer: i64,
    tag: i64,
    in_place: bool,
}

impl Side {
    /// Bytes of `count` elements.
    fn bytes(&self, count: i64) -> u64 {
        u64::try_from(count.saturating_mul(self.type_size)).unwrap_or(0)
    }
}

/// Arguments of a call.
#[derive(Debug, Default)]
struct Values {
    sent: Side,
    received: Side,
    root: i64,
    /// Handle, own rank, number of ranks.
    comm: [u64; 3],
    request: u64,
    /// Number of requests of a list.
    requests: Option<u64>,
}

impl Values {
    fn of(call: &Call, arguments: Fields<'_>) -> Result<Self, Wrong> {
        let mut values = Self::default();
        let mut fields = arguments;
        let request = call.has_request.then_some(&Role::Request);
        for role in call.roles.iter().chain(request) {
            let (at, text) = fields.next("argument")?;
            let number = |text: &str| text.parse::<i64>().map_err(|_| (at, "number"));
            let address = |text: &str| text.parse::<u64>().map_err(|_| (at, "address"));
            match *role {
                Role::Skip => {}
                Role::Buffer(way) => values.side_mut(way).in_place = is_in_place(text),
                Role::Count(way) => values.side_mut(way).count = number(text)?,
                Role::Type(way) => {
                    let size =
                        text.split(',').nth(1).ok_or((at, "id,size,extent of a datatype"))?;
                    values.side_mut(way).type_size = number(size)?;
                }
                Role::Counts(way) => {
                    let (at, list) = fields.next("list of counts")?;
                    let all = list.split(',').map(str::parse::<i64>).collect::<Result<_, _>>();
                    values.side_mut(way).counts = all.map_err(|_| (at, "list of counts"))?;
                }
                Role::List => drop(fields.next("list")?),
                Role::Peer(way) => values.side_mut(way).peer = number(text)?,
                Role::Tag(way) => values.side_mut(way).tag = number(text)?,
                Role::Root => values.root = number(text)?,
                Role::Comm => {
                    let mut parts = text.split(',').map(str::parse::<i64>);
                    for place in &mut values.comm {
                        let part = parts.next().and_then(Result::ok);
                        *place =
                            part.ok_or((at, "id,rank,size of a communicator"))?.cast_unsigned();
                    }
                }
                Role::Request => values.request = address(text)?,
                Role::Requests => values.requests = Some(address(text)?),
            }
        }
        Ok(values)
    }

    const fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Send => &self.sent,
            Direction::Receive => &self.received,
        }
    }

    const fn side_mut(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Send => &mut self.sent,
            Direction::Receive => &mut self.received,
        }
    }
}

/// True for the addresses that stand for `MPI_IN_PLACE` in Open MPI and MPICH.
fn is_in_place(address: &str) -> bool {
    matches!(address, "1" | "-1" | "18446744073709551615")
}

/// Fields of a line between colons.
#[derive(Clone, Copy, Debug)]
struct Fields<'a> {
    line: &'a str,
    /// Byte offset of the next field; beyond the end behind the last one.
    at: usize,
}

impl<'a> Fields<'a> {
    /// The next field with its offset.
    fn next(&mut self, expected: &'static str) -> Result<(usize, &'a str), Wrong> {
        let at = self.at;
        let rest = self.line.get(at..).ok_or((self.line.len(), expected))?;
        let field = rest.split(':').next().unwrap_or(rest);
        self.at = at + field.len() + 1;
        Ok((at, field))
    }

    /// The fields before the last one, and the last one with its offset.
    fn last(self) -> Option<(Self, (usize, &'a str))> {
        let rest = self.line.get(self.at..)?;
        let at = self.at + rest.rfind(':').map_or(0, |colon| colon + 1);
        let before = self.line.get(..at.saturating_sub(1))?;
        Some((Self { line: before, at: self.at }, (at, self.line.get(at..)?)))
    }
}

/// Nanoseconds of a decimal number of microseconds.
fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let nanos = whole.parse::<u64>().ok()?.checked_mul(1_000)?;
    let fraction: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    nanos.checked_add(fraction)
}

#[cfg(test)]
mod tests;
