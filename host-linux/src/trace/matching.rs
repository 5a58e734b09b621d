//! Which send and which receive are one message.
//!
//! MPI delivers messages of one sender, receiver, tag and communicator in order: the n-th send is
//! received by the n-th receive that took such a message, in the order in which these were posted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use loggap_core::trace::{Direction, Envelope, Message, Outcome};

use super::{RankTrace, Trace, TraceError, What};

/// Messages that are received in the order in which they were sent.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// Sending rank.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// Tag.
    pub tag: i32,
    /// Identity of the communicator.
    pub communicator: u64,
}

/// One end of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) key: Key,
    pub(super) direction: Direction,
    /// Number of the operation at its rank, in the order of posting.
    order: u64,
    pub(super) bytes: u64,
    /// Entry of the call that posted it.
    posted: u64,
    /// Return of the call that reported its completion.
    completed: u64,
}

/// A message with both ends. Times are nanoseconds of rank 0.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Sender, receiver, tag, communicator.
    pub key: Key,
    /// Bytes.
    pub bytes: u64,
    /// Entry of the sending call.
    pub sent: i64,
    /// Entry of the call that posted the receive.
    pub posted: i64,
    /// Return of the call that reported the receive's completion.
    pub received: i64,
}

/// Sends without receives, or receives without sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unmatched {
    /// Sender, receiver, tag, communicator.
    pub key: Key,
    /// Number of sends.
    pub sends: u64,
    /// Number of receives that took a message.
    pub receives: u64,
}

/// An operation that no call reported complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// Rank.
    pub rank: u32,
    /// Number of the record that posted it, from 1, among those of the rank.
    pub record: u64,
    /// Identity of the request.
    pub request: u64,
    /// Call that posted it.
    pub call: String,
    /// Entry of that call, in nanoseconds of the rank.
    pub posted: u64,
    /// Peer, tag, bytes; `None` for collective operations.
    pub message: Option<Message>,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, record, call, posted, message, .. } = self;
        write!(f, "rank {rank}: {call}")?;
        if let Some(Message { direction, envelope, .. }) = message {
            let verb = if *direction == Direction::Send { "to" } else { "from" };
            let Envelope { peer, tag, bytes, .. } = envelope;
            write!(f, " {verb} rank {peer}, tag {tag}, {bytes} B")?;
        }
        let posted = Duration::from_nanos(*posted).as_secs_f64();
        write!(f, ", posted at {posted:.6} s by record {record}, was never completed")
    }
}

/// An operation under way.
struct Posted<'t> {
    record: u64,
    order: u64,
    enter: u64,
    call: &'t str,
    message: Option<Message>,
}

/// Calls `each` with the ends of the messages of a rank, and returns what is not complete.
pub(super) fn ends(
    rank: &RankTrace,
    mut each: impl FnMut(End),
) -> Result<Vec<Unfinished>, TraceError> {
    let own = rank.header().rank;
    let mut posted: HashMap<u64, Posted<'_>> = HashMap::new();
    let mut order = 0;
    let mut end = |order, message: Message, envelope: Envelope, posted, completed| {
        // Neither MPI_PROC_NULL nor other jobs.
        let Ok(peer) = u32::try_from(envelope.peer) else { return };
        let (from, to) = match message.direction {
            Direction::Send => (own, peer),
            Direction::Receive => (peer, own),
        };
        let comm = rank.communicator(message.envelope.communicator);
        let communicator = comm.map_or(0, |comm| comm.identity);
        let key = Key { from, to, tag: envelope.tag, communicator };
        let (direction, bytes) = (message.direction, envelope.bytes);
        each(End { key, direction, order, bytes, posted, completed });
    };
    for (number, record) in (1..).zip(rank.records()) {
        let record = record?;
        let (enter, call) = (record.enter, record.call);
        match record.what {
            What::Messages(messages) => {
                for message in messages {
                    order += 1;
                    let Some(request) = message.request else {
                        end(order, message, message.envelope, enter, record.leave);
                        continue;
                    };
                    let message = Some(message);
                    posted.insert(request, Posted { record: number, order, enter, call, message });
                }
            }
            What::Collective { operation, .. } => {
                if let Some(request) = operation.request {
                    let message = None;
                    posted.insert(request, Posted { record: number, order, enter, call, message });
                }
            }
            What::Completions(all) => {
                for one in all {
                    let Some(done) = posted.remove(&one.request) else { continue };
                    let Some(message) = done.message else { continue };
                    if let Some(envelope) = moved(&message, one.outcome) {
                        end(done.order, message, envelope, done.enter, record.leave);
                    }
                }
            }
            _ => {}
        }
    }
    let sends = posted.values().filter_map(|posted| Some((posted, posted.message?)));
    for (one, message) in sends.filter(|(_, message)| message.direction == Direction::Send) {
        end(one.order, message, message.envelope, one.enter, one.enter);
    }
    let unfinished = posted.into_iter().map(|(request, one)| {
        let Posted { record, enter: posted, message, .. } = one;
        Unfinished { rank: own, record, request, call: one.call.to_owned(), posted, message }
    });
    let mut unfinished: Vec<_> = unfinished.collect();
    unfinished.sort_by_key(|one| one.request);
    Ok(unfinished)
}

/// Envelope of the message that an operation moved; `None` if it moved none.
const fn moved(message: &Message, outcome: Outcome) -> Option<Envelope> {
    match (outcome, message.direction) {
        (Outcome::Received(envelope), _) => Some(envelope),
        // A receive that was given up may have taken a message or not.
        (Outcome::Cancelled, _) | (Outcome::Freed, Direction::Receive) => None,
        (Outcome::Done | Outcome::Freed, _) => Some(message.envelope),
    }
}

/// Counts of sends and receives of the messages of all ranks.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<Key, [u64; 2]>);

impl Tally {
    pub(super) fn add(&mut self, end: &End) {
        let counts = self.0.entry(end.key).or_default();
        let [sends, receives] = counts;
        match end.direction {
            Direction::Send => *sends += 1,
            Direction::Receive => *receives += 1,
        }
    }

    pub(super) fn unmatched(&self) -> Vec<Unmatched> {
        let differ = self.0.iter().filter(|(_, [sends, receives])| sends != receives);
        differ.map(|(&key, &[sends, receives])| Unmatched { key, sends, receives }).collect()
    }
}

/// Messages with both ends, by sender, receiver, tag and communicator, and in the order in which they
/// were sent. Takes memory for all of them.
///
/// # Errors
///
/// [`TraceError`].
pub fn pairs(trace: &Trace) -> Result<Vec<Pair>, TraceError> {
    let mut all: BTreeMap<Key, [Vec<End>; 2]> = BTreeMap::new();
    for rank in trace.ranks() {
        ends(rank, |end| {
            let [sends, receives] = all.entry(end.key).or_default();
            match end.direction {
                Direction::Send => sends.push(end),
                Direction::Receive => receives.push(end),
            }
        })?;
    }
    let mut pairs = Vec::new();
    for (key, [mut sends, mut receives]) in all {
        sends.sort_by_key(|end| end.order);
        receives.sort_by_key(|end| end.order);
        pairs.extend(sends.iter().zip(&receives).map(|(send, receive)| Pair {
            key,
            bytes: send.bytes,
            sent: trace.time(key.from, send.posted),
            posted: trace.time(key.to, receive.posted),
            received: trace.time(key.to, receive.completed),
        }));
    }
    Ok(pairs)
}
