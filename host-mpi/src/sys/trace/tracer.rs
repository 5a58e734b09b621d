//! From a call that returned to its record.

use loggap_core::trace::{
    ANY_PEER, Collective, Completed, DEFINITIONS, Direction, Envelope, FOREIGN_PEER, Message, Mode,
    Outcome, Part,
};

use crate::arguments::Arguments;
use crate::call::{Action, Call};
use crate::communicators::{Communicator, Communicators};
use crate::library::{Library, Status, UNDEFINED};
use crate::requests::{Matched, Request, Requests};
use crate::stream::{self, Stream, TraceFile};

/// State of this rank's trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// Reading of the clock that times are counted from.
    pub(crate) base: u64,
    /// Reading when recording began.
    pub(crate) began: u64,
    pub(crate) file: TraceFile,
    /// Streams of threads; those in `free` wait for a thread.
    pub(crate) streams: Vec<Stream>,
    free: Vec<usize>,
    /// Number of threads so far.
    threads: u32,
    communicators: Communicators,
    requests: Requests,
    matched: Matched,
    library: &'static Library,
    /// False between `MPI_Pcontrol(0)` and the next one.
    is_on: bool,
}

/// A call that returned, with what it had been given before.
#[derive(Debug)]
pub(crate) struct Returned<'a> {
    pub(crate) arguments: Arguments<'a>,
    /// Handles of requests, or of a message, as they were before.
    pub(crate) handles: &'a [usize],
    pub(crate) enter: u64,
    pub(crate) leave: u64,
}

impl Tracer {
    pub(crate) fn new(library: &'static Library, base: u64, mut file: TraceFile) -> Self {
        let (communicators, parts) = Communicators::new(library);
        file.define(&parts);
        Self {
            base,
            began: crate::clock(),
            file,
            streams: Vec::new(),
            free: Vec::new(),
            threads: 0,
            communicators,
            requests: Requests::default(),
            matched: Matched::default(),
            library,
            is_on: true,
        }
    }

    /// Gives a new thread a stream, and returns the stream's place.
    pub(crate) fn begin_thread(&mut self) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.streams.push(Stream::new());
            self.streams.len() - 1
        });
        if let Some(stream) = self.streams.get_mut(place) {
            stream.thread = self.threads;
            stream.is_on = self.is_on;
        }
        // The last number is that of all further threads.
        self.threads = (self.threads + 1).min(DEFINITIONS - 1);
        place
    }

    /// Writes the records of a thread that ends; its stream is free for another one.
    pub(crate) fn end_thread(&mut self, place: usize) {
        if let Some(stream) = self.streams.get_mut(place) {
            stream.flush(self.base, &mut self.file);
            self.free.push(place);
        }
    }

    /// Records a call that was successful, of the thread whose stream is at the place `thread`.
    pub(crate) fn record(&mut self, thread: usize, returned: &Returned<'_>) {
        let Returned { arguments, enter, leave, .. } = returned;
        let call = arguments.call;
        let enter = enter.saturating_sub(self.base);
        let leave = leave.saturating_sub(self.base);
        let mut at = Recorder { thread, call, enter, leave, tracer: self };
        match call.action {
            Action::Message | Action::Buffered | Action::Synchronous | Action::Ready => {
                at.message(arguments);
            }
            Action::Matched => at.matched(returned),
            Action::Probe => at.probe(arguments),
            Action::Start => at.start(returned),
            Action::Free => at.free(returned),
            Action::Complete => at.complete(returned),
            Action::Peek if arguments.result(call.at.flag) == 0 => at.test(),
            Action::Collective | Action::Gather | Action::Scatter | Action::Neighbor => {
                at.collective(arguments);
            }
            Action::Create | Action::Duplicate => at.create(arguments),
            Action::FreeComm => at.free_comm(returned),
            Action::Init | Action::Finalize | Action::Abort | Action::Name | Action::Peek => {
                at.begin(0);
            }
        }
        let base = self.base;
        if let Some(stream) = self.streams.get_mut(thread) {
            stream.end(leave, base, &mut self.file);
        }
    }

    /// `MPI_Pcontrol`: nothing is recorded while it is off.
    pub(crate) fn switch(&mut self, now: u64, is_on: &Call) {
        self.is_on = is_on.id == stream::ON.id;
        let now = now.saturating_sub(self.base);
        for (place, stream) in self.streams.iter_mut().enumerate() {
            if !self.free.contains(&place) {
                stream.switch(now, is_on);
            }
        }
    }

    /// Writes all records.
    pub(crate) fn flush(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.write(&mut self.file));
    }
}

/// The record of one call.
struct Recorder<'a> {
    thread: usize,
    call: &'a Call,
    enter: u64,
    leave: u64,
    tracer: &'a mut Tracer,
}

impl Recorder<'_> {
    fn begin(&mut self, parts: usize) {
        if let Some(stream) = self.tracer.streams.get_mut(self.thread) {
            stream.begin(self.call, self.enter, self.leave, parts);
        }
    }

    #[inline(always)]
    fn put(&mut self, part: Part<'_>) {
        if let Some(stream) = self.tracer.streams.get_mut(self.thread) {
            stream.put(&part);
        }
    }

    fn test(&mut self) {
        if let Some(stream) = self.tracer.streams.get_mut(self.thread) {
            stream.test(self.call, self.enter, self.leave);
        }
    }

    /// Calls `work` with a communicator, which is defined if it was not known.
    fn with_comm<T>(&mut self, handle: usize, work: impl FnOnce(&Communicator) -> T) -> Option<T> {
        let communicators = &mut self.tracer.communicators;
        if let Some(comm) = communicators.get(handle) {
            return Some(work(comm));
        }
        if handle == 0 || handle == self.tracer.library.no_comm {
            return None;
        }
        let parts = communicators.define(handle, 0, "(found)");
        self.tracer.file.define(&parts);
        communicators.get(handle).map(work)
    }

    /// Identity of an operation that begins; 0 while nothing is recorded.
    const fn new_id(&mut self) -> u64 {
        if self.tracer.is_on { self.tracer.requests.next_id() } else { 0 }
    }

    /// Envelope with the source and tag of a message that was received.
    fn received(&mut self, comm: usize, status: Status) -> Envelope {
        let library = self.tracer.library;
        let known =
            self.with_comm(comm, |comm| (comm.world_rank(library, status.source), comm.number));
        let (peer, communicator) = known.unwrap_or((FOREIGN_PEER, 0));
        Envelope { peer, tag: status.tag, bytes: status.bytes, communicator }
    }

    fn message(&mut self, arguments: &Arguments<'_>) {
        let (call, at) = (self.call, self.call.at);
        let comm = arguments.comm(at.comm);
        let library = self.tracer.library;
        let mode = match call.action {
            Action::Buffered => Mode::Buffered,
            Action::Synchronous => Mode::Synchronous,
            Action::Ready => Mode::Ready,
            _ => Mode::Standard,
        };
        let known = self.with_comm(comm, |comm| {
            let peer = |at| match arguments.has(at) {
                true => comm.world_rank(library, arguments.int(at)),
                false => FOREIGN_PEER,
            };
            ([at.dest, at.source].map(peer), comm.number)
        });
        let ([dest, source], communicator) = known.unwrap_or(([FOREIGN_PEER; 2], 0));
        let is_posted = arguments.has(at.request);
        let id = if is_posted && !call.is_persistent() { self.new_id() } else { 0 };
        let request = (id != 0).then_some(id);
        self.begin(2);
        let send = arguments.has(at.dest).then(|| Message {
            direction: Direction::Send,
            mode,
            envelope: Envelope {
                peer: dest,
                tag: arguments.int(at.stag),
                bytes: arguments.bytes(arguments.count(at.scount), at.stype, None),
                communicator,
            },
            request,
        });
        let receive = arguments.has(at.source).then(|| {
            let status = arguments.has(at.status).then(|| arguments.status(at.status, 0));
            let envelope = match status {
                Some(status) => self.received(comm, status),
                None => Envelope {
                    peer: source,
                    tag: arguments.int(at.rtag),
                    bytes: arguments.bytes(arguments.count(at.rcount), at.rtype, None),
                    communicator,
                },
            };
            Message { direction: Direction::Receive, mode: Mode::Standard, envelope, request }
        });
        if let Some(message) = send {
            self.posted(arguments, message, id);
        }
        if let Some(message) = receive {
            self.posted(arguments, message, id);
        }
    }

    /// Puts a message, and keeps what a request has to complete.
    #[inline]
    fn posted(&mut self, arguments: &Arguments<'_>, message: Message, id: u64) {
        let is_persistent = self.call.is_persistent();
        if !is_persistent {
            self.put(Part::Message(message));
        }
        let at = self.call.at.request;
        if arguments.has(at) {
            let request = Request { id, message: Some(message), is_persistent };
            self.tracer.requests.insert(arguments.request(at, 0), request);
        }
    }

    /// A receive of a message that a probe matched.
    fn matched(&mut self, returned: &Returned<'_>) {
        let (arguments, at) = (&returned.arguments, self.call.at);
        let handle = returned.handles.first().copied().unwrap_or(0);
        let mut envelope = self.tracer.matched.remove(&handle).unwrap_or_default();
        let id = if arguments.has(at.request) { self.new_id() } else { 0 };
        if arguments.has(at.status) {
            envelope.bytes = arguments.status(at.status, 0).bytes;
        } else {
            envelope.bytes = arguments.bytes(arguments.count(at.rcount), at.rtype, None);
        }
        let (direction, mode) = (Direction::Receive, Mode::Standard);
        let message = Message { direction, mode, envelope, request: (id != 0).then_some(id) };
        self.begin(1);
        self.posted(arguments, message, id);
    }

    fn probe(&mut self, arguments: &Arguments<'_>) {
        let at = self.call.at;
        if arguments.has(at.flag) && arguments.result(at.flag) == 0 {
            return self.test();
        }
        let envelope = self.received(arguments.comm(at.comm), arguments.status(at.status, 0));
        if arguments.has(at.message) {
            self.tracer.matched.insert(arguments.message(at.message), envelope);
        }
        self.begin(1);
        self.put(Part::Probed(envelope));
    }

    fn start(&mut self, returned: &Returned<'_>) {
        self.begin(returned.handles.len());
        for handle in returned.handles {
            let id = self.new_id();
            let Some(request) = self.tracer.requests.get_mut(*handle) else { continue };
            request.id = id;
            if let Some(message) = request.message {
                self.put(Part::Message(Message { request: Some(id), ..message }));
            }
        }
    }

    fn free(&mut self, returned: &Returned<'_>) {
        self.begin(1);
        let handle = returned.handles.first().copied().unwrap_or(0);
        let request = self.tracer.requests.remove(handle);
        if let Some(Request { id: request @ 1.., .. }) = request {
            self.put(Part::Completed(Completed { request, outcome: Outcome::Freed }));
        }
    }

    /// Operations that a wait or a test found complete.
    fn complete(&mut self, returned: &Returned<'_>) {
        let (arguments, at) = (&returned.arguments, self.call.at);
        let is_set = !arguments.has(at.flag) || arguments.result(at.flag) != 0;
        let all = returned.handles.len();
        if arguments.has(at.indices) {
            let count = arguments.result(at.outcount);
            let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
                return self.test();
            };
            self.begin(count);
            for (status, index) in arguments.indices(at.indices, count).enumerate() {
                self.completed(returned, index, at.statuses, status);
            }
        } else if !is_set {
            self.test();
        } else if arguments.has(at.index) {
            if arguments.result(at.index) == UNDEFINED {
                // No operation was active.
                return self.test();
            }
            self.begin(1);
            let index = arguments.indices(at.index, 1).next().flatten();
            self.completed(returned, index, at.status, 0);
        } else {
            let list = if arguments.has(at.statuses) { at.statuses } else { at.status };
            self.begin(all);
            (0..all).for_each(|index| self.completed(returned, Some(index), list, index));
        }
    }

    fn completed(
        &mut self,
        returned: &Returned<'_>,
        index: Option<usize>,
        statuses: u8,
        place: usize,
    ) {
        let handle = index.and_then(|index| returned.handles.get(index)).copied();
        let Some(request) = handle.and_then(|handle| self.tracer.requests.complete(handle)) else {
            return;
        };
        if request.id == 0 {
            return;
        }
        let status = returned.arguments.status(statuses, place);
        let receive = request.message.filter(|message| message.direction == Direction::Receive);
        let outcome = match receive {
            _ if status.cancelled && request.message.is_some() => Outcome::Cancelled,
            Some(posted) => Outcome::Received(self.resolved(posted, status)),
            None => Outcome::Done,
        };
        self.put(Part::Completed(Completed { request: request.id, outcome }));
    }

    /// Envelope of the message that a posted receive took.
    fn resolved(&self, posted: Message, status: Status) -> Envelope {
        let Envelope { peer, communicator, .. } = posted.envelope;
        let peer = if peer == ANY_PEER {
            self.tracer.communicators.peer(communicator, status.source)
        } else {
            peer
        };
        Envelope { peer, tag: status.tag, bytes: status.bytes, communicator }
    }

    fn collective(&mut self, arguments: &Arguments<'_>) {
        let (call, at) = (self.call, self.call.at);
        let library = self.tracer.library;
        let given_root = arguments.has(at.root).then(|| arguments.int(at.root));
        let known = self.with_comm(arguments.comm(at.comm), |comm| {
            let root = given_root.map(|root| comm.root(library, root));
            let is_root = given_root.is_none_or(|root| comm.is_root(library, root));
            let [from, to] = match call.action {
                Action::Neighbor => comm.neighbours,
                _ => [comm.peers(); 2],
            };
            // As many as this group has, of a reduction that is scattered in it.
            let from = if arguments.has(at.scounts) || !call.name.contains("educe_scatter") {
                from
            } else {
                comm.size
            };
            (comm.number, root, is_root, from, to)
        });
        let Some((communicator, root, is_root, from, to)) = known else { return self.begin(0) };
        let in_place = [at.sbuf, at.rbuf].map(|at| arguments.is_in_place(at));
        let [sends_in_place, receives_in_place] = in_place;
        let receives = arguments.has(at.rtype) || arguments.has(at.rtypes);
        let sent_matters =
            !(sends_in_place && receives) && (is_root || call.action != Action::Scatter);
        let received_matters = !receives_in_place && (is_root || call.action != Action::Gather);
        let one = |count, datatype, matters: bool| match matters && arguments.has(count) {
            true => arguments.bytes(arguments.count(count), datatype, None),
            false => 0,
        };
        let request = arguments.has(at.request).then(|| self.new_id());
        if let Some(id) = request {
            let request = Request { id, message: None, is_persistent: false };
            self.tracer.requests.insert(arguments.request(at.request, 0), request);
        }
        self.begin(1 + to + from);
        self.put(Part::Collective(Collective {
            communicator,
            root,
            sent: one(at.scount, at.stype, sent_matters),
            received: one(at.rcount, at.rtype, received_matters),
            in_place: sends_in_place || receives_in_place,
            request: request.filter(|id| *id != 0),
        }));
        if sent_matters && arguments.has(at.scounts) {
            self.each(Direction::Send, arguments, to);
        }
        if received_matters && arguments.has(at.rcounts) {
            self.each(Direction::Receive, arguments, from);
        }
    }

    /// List of bytes by peer, equal neighbours together.
    fn each(&mut self, direction: Direction, arguments: &Arguments<'_>, peers: usize) {
        let at = self.call.at;
        let (counts, datatype, types) = match direction {
            Direction::Send => (at.scounts, at.stype, at.stypes),
            Direction::Receive => (at.rcounts, at.rtype, at.rtypes),
        };
        let bytes = |index: usize, count: u64| match arguments.has(types) {
            true => arguments.bytes(count, types, Some(index)),
            false => arguments.bytes(count, datatype, None),
        };
        let (mut run, mut length) = (0, 0);
        for (index, count) in arguments.counts(counts, peers).enumerate() {
            let bytes = bytes(index, count);
            if length > 0 && bytes != run {
                self.put(Part::Each { direction, peers: length, bytes: run });
                length = 0;
            }
            (run, length) = (bytes, length + 1);
        }
        if length > 0 {
            self.put(Part::Each { direction, peers: length, bytes: run });
        }
    }

    fn create(&mut self, arguments: &Arguments<'_>) {
        let at = self.call.at;
        let new = arguments.new_comm(at.newcomm);
        if new == 0 || new == self.tracer.library.no_comm {
            return self.begin(0);
        }
        let communicators = &mut self.tracer.communicators;
        let old = if arguments.has(at.comm) { arguments.comm(at.comm) } else { 0 };
        let parts = match self.call.action {
            Action::Duplicate => communicators.duplicate(new, old),
            _ => communicators.define(new, communicators.identity(old), self.call.name),
        };
        self.tracer.file.define(&parts);
        let number = self.with_comm(new, |comm| comm.number);
        self.begin(1);
        if let Some(number) = number {
            self.put(Part::Communicator { number, freed: false });
        }
    }

    fn free_comm(&mut self, returned: &Returned<'_>) {
        self.begin(1);
        let handle = returned.handles.first().copied().unwrap_or(0);
        if let Some(comm) = self.tracer.communicators.remove(handle) {
            self.put(Part::Communicator { number: comm.number, freed: true });
        }
    }
}
