//! One rank's records as operations and dependencies.

use std::collections::HashMap;

use loggap_core::goal::{ANY, ANY_TAG, DependsOn, Op, OpKind, Sink};
use loggap_core::trace::{self, Completed, Direction, Envelope, Message, Mode};
use loggap_core::units::{PerByte, Picos};

use super::collective::{Notes, NullMessage};
use super::lookahead::{Fate, Lookahead};
use super::{
    Class, Completions, Conversion, ConvertError, Incomplete, Records, Report, Strictness,
};
use crate::collective::{Dependency, write_op};
use crate::trace::rank::Communicator;
use crate::trace::{Overhead, Record, TraceError, Unfinished, What};

/// A thread: what its next operation waits for, and how long it computed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    after: Vec<Dependency>,
    /// Return of the last call.
    time: u64,
    /// Calculation that is not written yet, in nanoseconds of the trace.
    compute: f64,
    is_begun: bool,
}

/// A communicator of this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'t> {
    pub(super) communicator: &'t Communicator,
    /// Its number in tags.
    pub(super) number: u32,
    pub(super) own: u32,
    pub(super) size: u32,
    /// Collective operations so far.
    pub(super) calls: u32,
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
struct Posted {
    /// What its completion waits for; `None` if for nothing.
    op: Option<u32>,
}

/// A message that a probe found and no receive has taken yet.
#[derive(Clone, Copy, Debug)]
struct Probed {
    envelope: Envelope,
    op: u32,
    thread: usize,
    /// True if the probe took it out of reach of other receives.
    is_matched: bool,
}

/// Conversion of the open rank of a sink.
pub(super) struct RankConverter<'c, 't, S> {
    pub(super) conversion: &'t Conversion,
    rank: u32,
    pub(super) sink: &'c mut S,
    pub(super) report: &'c mut Report,
    /// Notes for an extrapolation, if it is for one.
    pub(super) notes: Option<&'c mut Notes<'t>>,
    /// Operations so far.
    pub(super) ops: u32,
    ahead: Lookahead<'t>,
    /// Records so far.
    records: u64,
    chains: Vec<Chain>,
    groups: HashMap<u32, Group<'t>>,
    posted: HashMap<u64, Posted>,
    probed: Vec<Probed>,
    /// Results of the current record's messages.
    results: Vec<Dependency>,
    /// Nanoseconds of the schedule for one of the trace.
    scale: f64,
    /// Time to combine a byte in reductions.
    pub(super) combine: PerByte,
    overhead: Overhead,
    /// Return of `MPI_Init`, or the first record.
    start: Option<u64>,
    end: u64,
    /// Nanoseconds that the first thread computed.
    computed: u64,
    is_finished: bool,
}

pub(super) type Converted<T, S> = Result<T, ConvertError<<S as Sink>::Error>>;

/// Bit of a tag that marks messages of collective operations.
const COLLECTIVE_TAG: u64 = 1 << 31;

/// True if a converted trace has messages of collective operations under this tag.
#[must_use]
pub const fn is_collective(tag: u64) -> bool {
    tag & COLLECTIVE_TAG != 0
}

/// Collective operations of a communicator whose messages differ in their tags. Messages of one tag
/// are received in their order, so that only those of operations under way have to differ.
const COLLECTIVES: u32 = 1 << 12;

impl<'c, 't, S: Sink> RankConverter<'c, 't, S> {
    pub(super) fn new(
        conversion: &'t Conversion,
        rank: u32,
        ahead: Records<'t>,
        sink: &'c mut S,
        report: &'c mut Report,
    ) -> Self {
        let options = &conversion.options;
        let measured = conversion.input.overhead();
        Self {
            conversion,
            rank,
            sink,
            report,
            notes: None,
            ops: 0,
            ahead: Lookahead::new(ahead),
            records: 0,
            chains: Vec::new(),
            groups: HashMap::new(),
            posted: HashMap::new(),
            probed: Vec::new(),
            results: Vec::new(),
            scale: 1.0 / options.speed(rank),
            combine: options.combine_on(rank),
            overhead: Overhead {
                between: options.overhead.unwrap_or(measured.between),
                ..measured
            },
            start: None,
            end: 0,
            computed: 0,
            is_finished: false,
        }
    }

    /// Converts the next record.
    pub(super) fn convert(&mut self, record: &Record<'t>) -> Converted<(), S> {
        self.records += 1;
        let is_start = self.start.is_none();
        let start = *self.start.get_or_insert(record.enter);
        self.end = self.end.max(record.leave);
        let thread = record.thread as usize;
        if self.chains.get(thread).is_none_or(|chain| !chain.is_begun) {
            self.begin(record, start);
        }
        let Some(chain) = self.chains.get_mut(thread) else { return Ok(()) };
        let gap = precise(record.enter.saturating_sub(chain.time));
        chain.time = chain.time.max(record.leave);
        match record.call {
            "Init" | "Init_thread" => {
                // What was before MPI_Init returned is not part of the program's time.
                if is_start {
                    self.start = Some(record.leave);
                }
                self.report.add(Class::Converted, record.call, 1, 0);
                return Ok(());
            }
            "(on)" => return Ok(()),
            "(unreadable)" => {
                self.report.add(Class::Refused("cannot be read"), record.call, 1, 0);
                return Ok(());
            }
            call if call.starts_with('(') => {
                chain.compute += gap;
                self.completions(record)?;
                return Ok(());
            }
            _ => chain.compute += (gap - self.overhead.between).max(0.0),
        }
        let class = self.class(record)?;
        let time = if record.call == "Finalize" { 0 } else { record.time() };
        self.report.add(class, record.call, record.calls(), time);
        Ok(())
    }

    /// Writes what a record did, and returns what became of it.
    fn class(&mut self, record: &Record<'_>) -> Converted<Class, S> {
        Ok(match &record.what {
            What::Call if record.call == "Finalize" => {
                self.is_finished = true;
                self.end = self.end.min(record.enter);
                Class::Converted
            }
            What::Call | What::Communicator { freed: true, .. } => self.local(record),
            What::Messages(all) => self.messages(record, all)?,
            What::Completions(_) => self.completions(record)?,
            What::Collective { operation, sent, received } => {
                self.collective(record, operation, [sent, received])?
            }
            What::Probe(envelope) => self.probe(record, *envelope)?,
            What::Tests(tests) => {
                if let Some(chain) = self.chains.get_mut(record.thread as usize) {
                    chain.compute += precise(tests.computing);
                }
                match (record.call, self.conversion.input.completions()) {
                    ("Waitany" | "Waitsome" | "Probe", Completions::OfWaits) => {
                        Class::Approximated("the trace does not say what it waited for")
                    }
                    _ => Class::Converted,
                }
            }
            What::Communicator { number, .. } => self.create(record, *number)?,
        })
    }

    /// Ends the rank.
    pub(super) fn end(mut self) -> Converted<(), S> {
        let (rank, is_strict) =
            (self.rank, self.conversion.options.strictness == Strictness::Strict);
        if is_strict && !self.is_finished {
            return Err(Incomplete::Cut { rank, record: self.records }.into());
        }
        if is_strict && let Some(left) = self.left()? {
            return Err(Incomplete::Unfinished(left).into());
        }
        if !self.is_finished {
            self.report.add(
                Class::Refused("a rank's records end before MPI_Finalize"),
                "(cut)",
                1,
                0,
            );
        }
        for thread in 0..self.chains.len() {
            self.flush(thread)?;
        }
        self.report.add_rank(self.start.unwrap_or(self.end), self.end, self.computed);
        Ok(())
    }

    /// The first operation that was never completed.
    fn left(&self) -> Result<Option<Unfinished>, TraceError> {
        let known = if self.posted.is_empty() {
            Vec::new()
        } else {
            self.conversion.input.unfinished(self.rank)?
        };
        Ok(known.into_iter().min_by_key(|one| one.record))
    }

    /// The rest of the records cannot be read.
    pub(super) fn unreadable(&mut self) {
        let reason = "the rest of the rank's records cannot be read";
        self.report.add(Class::Refused(reason), "(cut)", 1, 0);
        self.is_finished = true;
    }

    /// Begins the thread of a record, behind the last call of the first thread before.
    fn begin(&mut self, record: &Record<'_>, start: u64) {
        let thread = record.thread as usize;
        if self.chains.len() <= thread {
            self.chains.resize(thread + 1, Chain::default());
        }
        let first = self.chains.first().filter(|first| first.time <= record.enter);
        let first = first.filter(|first| first.is_begun).cloned();
        let new = first.unwrap_or(Chain { time: start, is_begun: true, ..Chain::default() });
        if let Some(chain) = self.chains.get_mut(thread).filter(|chain| !chain.is_begun) {
            *chain = new;
        }
    }

    /// A call that moves nothing, or nothing that a schedule can hold: its time is computed.
    fn local(&mut self, record: &Record<'_>) -> Class {
        let inside = (precise(record.time()) - self.overhead.inside).max(0.0);
        if let Some(chain) = self.chains.get_mut(record.thread as usize) {
            chain.compute += inside;
        }
        refusal(record.call).map_or(Class::Converted, Class::Refused)
    }

    pub(super) fn failed(&self) -> impl Fn(S::Error) -> ConvertError<S::Error> + use<S> {
        let rank = self.rank;
        move |error| ConvertError::Sink { rank, error }
    }

    /// Writes the calculation that a thread did, and returns what its next operation waits for.
    fn flush(&mut self, thread: usize) -> Converted<(), S> {
        let Some(chain) = self.chains.get_mut(thread) else { return Ok(()) };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let nanos = (chain.compute * self.scale).round() as u64;
        chain.compute = 0.0;
        if nanos == 0 {
            return Ok(());
        }
        self.report.computed = self.report.computed.saturating_add(nanos);
        self.computed += if thread == 0 { nanos } else { 0 };
        let duration = Picos(nanos.saturating_mul(1_000));
        let op = self.put(thread, OpKind::Calc { duration })?;
        self.then(thread, &[(op, DependsOn::End)]);
        Ok(())
    }

    /// Writes an operation that waits for what its thread did before.
    fn put(&mut self, thread: usize, kind: OpKind) -> Converted<u32, S> {
        let before = self.chains.get(thread).map_or(&[][..], |chain| &chain.after);
        let op = Op { kind, cpu: processor(thread), nic: 0 };
        let op = write_op(op, before, self.sink).map_err(self.failed())?;
        self.ops = op.wrapping_add(1);
        Ok(op)
    }

    /// Lets the next operation of a thread wait for `after`, and for nothing else.
    pub(super) fn then(&mut self, thread: usize, after: &[Dependency]) {
        if let Some(chain) = self.chains.get_mut(thread) {
            chain.after.clear();
            chain.after.extend_from_slice(after);
        }
    }

    /// Lets the next operation of a thread also wait for the end of `op`.
    fn wait(&mut self, thread: usize, op: u32) {
        if let Some(chain) = self.chains.get_mut(thread) {
            chain.after.retain(|known| *known != (op, DependsOn::Start));
            chain.after.push((op, DependsOn::End));
        }
    }

    /// Dependencies of a thread's next operation, once its calculation is written.
    pub(super) fn before(&mut self, thread: usize) -> Converted<Vec<Dependency>, S> {
        self.flush(thread)?;
        let chain = self.chains.get(thread);
        Ok(chain.map(|chain| chain.after.clone()).unwrap_or_default())
    }

    /// Adds an operation under way, whose completion waits for `op`.
    pub(super) fn post(&mut self, request: u64, op: Option<u32>) {
        self.posted.insert(request, Posted { op });
    }

    /// A communicator with this rank among its members.
    pub(super) fn group(&mut self, number: u32) -> Option<&mut Group<'t>> {
        if !self.groups.contains_key(&number) {
            let communicator = self.conversion.input.communicators(self.rank)?.get(&number)?;
            let group = Group {
                communicator,
                number: *self.conversion.numbers.get(&communicator.identity)?,
                own: communicator.rank_of(self.rank.cast_signed()).unwrap_or(0),
                size: u32::try_from(communicator.size()).ok()?,
                calls: 0,
            };
            self.groups.insert(number, group);
        }
        self.groups.get_mut(&number)
    }

    /// Tag of the messages of the next collective operation of a group.
    pub(super) fn collective_tag(group: &mut Group<'_>) -> u64 {
        let call = u64::from(group.calls % COLLECTIVES);
        group.calls = group.calls.wrapping_add(1);
        u64::from(group.number) << 32 | COLLECTIVE_TAG | call << 8
    }

    /// Peer and tag in the schedule; `None` for `MPI_PROC_NULL`.
    fn address(&mut self, envelope: Envelope) -> Result<Option<(u32, u64)>, &'static str> {
        let peer = match envelope.peer {
            trace::NO_PEER => return Ok(None),
            trace::ANY_PEER => ANY,
            peer => u32::try_from(peer).map_err(|_| "the peer is not in MPI_COMM_WORLD")?,
        };
        if peer != ANY && peer >= self.conversion.ranks() {
            return Err("the peer is not in the trace");
        }
        let Some(group) = self.group(envelope.communicator) else {
            return Err("the members of the communicator are not known");
        };
        let tag = match envelope.tag {
            trace::ANY_TAG => ANY_TAG,
            tag => u64::from(group.number) << 32 | u64::from(tag.cast_unsigned()),
        };
        Ok(Some((peer, tag)))
    }

    fn messages(&mut self, record: &Record<'_>, all: &[Message]) -> Converted<Class, S> {
        let thread = record.thread as usize;
        self.flush(thread)?;
        let mut worst = Class::Converted;
        self.results.clear();
        for message in all {
            let (class, op) = self.message(record, *message)?;
            worst = worst.max(class);
            match (op, message.request) {
                (None, Some(request)) => self.post(request, None),
                (None, None) => {}
                (Some(op), Some(request)) => {
                    let is_copied = message.mode == Mode::Buffered;
                    self.post(request, (!is_copied).then_some(op));
                    self.then(thread, &[(op, DependsOn::Start)]);
                }
                (Some(op), None) if message.mode == Mode::Buffered => {
                    self.results.push((op, DependsOn::Start));
                }
                (Some(op), None) => self.results.push((op, DependsOn::End)),
            }
        }
        if !self.results.is_empty() {
            let results = std::mem::take(&mut self.results);
            self.then(thread, &results);
            self.results = results;
        }
        Ok(worst)
    }

    /// Writes a send or a receive, and returns the operation that its completion waits for; none if
    /// there is no message, or none that was not waited for before.
    fn message(
        &mut self,
        record: &Record<'_>,
        message: Message,
    ) -> Converted<(Class, Option<u32>), S> {
        let thread = record.thread as usize;
        let mut class = match message.mode {
            Mode::Synchronous => {
                Class::Approximated("does not wait for its receive below the limit for eager sends")
            }
            _ => Class::Converted,
        };
        let mut envelope = message.envelope;
        let fate = message.request.map(|id| self.ahead.fate(self.records, id));
        let mut fate = fate.unwrap_or(Fate::AsPosted);
        if envelope.peer == trace::NO_PEER {
            let Some(instead) = self.instead(message.direction, envelope) else {
                return Ok((Class::Converted, None));
            };
            (envelope, fate) = (instead, Fate::AsPosted);
        }
        match (fate, message.direction) {
            (Fate::AsPosted, _) => {}
            (Fate::Received(found), _) => envelope = found,
            (Fate::Cancelled, _) => return Ok((Class::Refused("cancelled"), None)),
            (Fate::Freed | Fate::Unfinished, _)
                if self.conversion.input.completions() == Completions::OfWaits =>
            {
                class = Class::Approximated("the trace does not say when it was complete");
            }
            (Fate::Freed, Direction::Receive) if envelope.peer == trace::ANY_PEER => {
                return Ok((Class::Refused("freed before it was complete"), None));
            }
            (Fate::Freed, _) => class = Class::Approximated("freed before it was complete"),
            (Fate::Unfinished, Direction::Receive) => {
                return Ok((Class::Refused("never completed"), None));
            }
            (Fate::Unfinished, _) => class = Class::Approximated("never completed"),
        }
        let (peer, tag) = match self.address(envelope) {
            Ok(Some(address)) => address,
            Ok(None) => return Ok((Class::Converted, None)),
            Err(reason) => return Ok((Class::Refused(reason), None)),
        };
        let size = envelope.bytes;
        let op = match message.direction {
            Direction::Send => self.put(thread, OpKind::Send { peer, size, tag })?,
            Direction::Receive => {
                if peer == ANY || tag == ANY_TAG {
                    class = Class::Approximated("the trace does not say what it received");
                }
                if let Some(probed) = self.take_probed(record.call, &envelope) {
                    if probed.thread != thread {
                        self.wait(thread, probed.op);
                    }
                    return Ok((class, None));
                }
                self.put(thread, OpKind::Receive { peer, size, tag })?
            }
        };
        Ok((class, Some(op)))
    }

    /// Notes a message to or from `MPI_PROC_NULL`, and returns the one that is written in its place.
    pub(super) fn instead(&mut self, direction: Direction, null: Envelope) -> Option<Envelope> {
        let notes = self.notes.as_deref_mut()?;
        notes.nulls.push(NullMessage { op: self.ops, direction });
        let instead = notes.instead.next().flatten()?;
        Some(Envelope { communicator: null.communicator, ..instead })
    }

    fn completions(&mut self, record: &Record<'_>) -> Converted<Class, S> {
        let What::Completions(all) = &record.what else { return Ok(Class::Converted) };
        let thread = record.thread as usize;
        // What was computed before did not wait.
        self.flush(thread)?;
        for &Completed { request, outcome } in all {
            let Some(Posted { op }) = self.posted.remove(&request) else { continue };
            if let (Some(op), false) = (op, outcome == trace::Outcome::Freed) {
                self.wait(thread, op);
            }
        }
        Ok(Class::Converted)
    }

    /// A probe waits for its message, which is received there; the receive behind takes no time.
    fn probe(&mut self, record: &Record<'_>, envelope: Envelope) -> Converted<Class, S> {
        let is_matched = matches!(record.call, "Mprobe" | "Improbe");
        let same = |probed: &&Probed| !probed.is_matched && is_same(&probed.envelope, &envelope);
        if !is_matched && self.probed.iter().any(|probed| same(&probed)) {
            return Ok(Class::Converted);
        }
        let (peer, tag) = match self.address(envelope) {
            Ok(Some(address)) => address,
            Ok(None) => {
                // Noted besides its receive, where the probe of a message is the only operation.
                let _ = self.instead(Direction::Receive, envelope);
                return Ok(Class::Converted);
            }
            Err(reason) => return Ok(Class::Refused(reason)),
        };
        let thread = record.thread as usize;
        self.flush(thread)?;
        let op = self.put(thread, OpKind::Receive { peer, size: envelope.bytes, tag })?;
        self.then(thread, &[(op, DependsOn::End)]);
        self.probed.push(Probed { envelope, op, thread, is_matched });
        Ok(Class::Converted)
    }

    /// Receive by `call` of a message that a probe found. What a matched probe found is out of reach
    /// of other receives than its own.
    fn take_probed(&mut self, call: &str, envelope: &Envelope) -> Option<Probed> {
        let is_matched = matches!(call, "Mrecv" | "Imrecv");
        let is_its = |probed: &Probed| {
            probed.is_matched == is_matched && is_same(&probed.envelope, envelope)
        };
        let at = self.probed.iter().position(is_its)?;
        Some(self.probed.remove(at))
    }
}

/// True if the messages are received in order.
fn is_same(one: &Envelope, other: &Envelope) -> bool {
    let key = |envelope: &Envelope| (envelope.peer, envelope.tag, envelope.communicator);
    key(one) == key(other)
}

/// Processor of a thread.
pub(super) fn processor(thread: usize) -> u16 {
    u16::try_from(thread.saturating_mul(2)).unwrap_or(u16::MAX - 1)
}

#[allow(clippy::cast_precision_loss, reason = "below 104 days the nanosecond is kept")]
const fn precise(nanos: u64) -> f64 {
    nanos as f64
}

/// Why a schedule cannot hold what a call does; `None` if it moves nothing.
fn refusal(call: &str) -> Option<&'static str> {
    /// Calls of MPI that access memory of other ranks.
    const ONE_SIDED: [&str; 11] = [
        "Put",
        "Get",
        "Accumulate",
        "Get_accumulate",
        "Fetch_and_op",
        "Compare_and_swap",
        "Rput",
        "Rget",
        "Raccumulate",
        "Rget_accumulate",
        "Win",
    ];
    const OTHER_JOBS: [&str; 4] =
        ["Comm_spawn", "Comm_spawn_multiple", "Comm_accept", "Comm_connect"];
    const POINT_TO_POINT: [&str; 6] =
        ["Send_init", "Bsend_init", "Ssend_init", "Rsend_init", "Recv_init", "Request_free"];
    if ONE_SIDED.contains(&call) || call.starts_with("Win_") {
        return Some("one-sided: its time is kept, its messages are not");
    }
    if call.starts_with("File_") {
        return Some("input and output: its time is kept");
    }
    if OTHER_JOBS.contains(&call) {
        return Some("other jobs: its time is kept");
    }
    if matches!(call, "Psend_init" | "Precv_init" | "Parrived") || call.starts_with("Pready") {
        return Some("partitioned: its time is kept, its messages are not");
    }
    if call.starts_with("Isendrecv") {
        return Some("its messages are not in the trace");
    }
    let is_persistent = call.ends_with("_init") && !POINT_TO_POINT.contains(&call);
    is_persistent.then_some("persistent collective: its messages are not in the trace")
}
