//! Connections that are measured concurrently.

use std::collections::TryReserveError;
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use loggap_core::measure::{Buffers, Clock, Initiator, SessionError, SessionOptions};
use loggap_core::wire::{FRAME_LEN, Refusal};

use super::failed;
use super::rounds::{Rounds, Test};
use crate::drive::{EndOptions, Endpoints, Ends};
use crate::link::{HostLink, LinkError, LinkFingerprint, LinkVisitor, Waiting};
use crate::machine::clock::HostClock;
use crate::machine::disturbance::Disturbance;
use crate::machine::near::{node_of, run_on_node};
use crate::machine::placement::Cpu;
use crate::machine::warning::Warning;
use crate::output::number;
use crate::terminal::{CliError, Console, Interrupt};

/// Buffers of one connection.
pub(super) struct Memory {
    /// Send buffer.
    outgoing: Vec<u8>,
    /// Receive buffer.
    incoming: Vec<u8>,
}

/// Allocates buffers of `largest` bytes for `count` connections.
pub(super) fn memory(count: u32, largest: u32) -> Result<Vec<Memory>, CliError> {
    let length = usize::try_from(largest).unwrap_or(0).max(FRAME_LEN);
    let one = |_| Ok(Memory { outgoing: present(length)?, incoming: present(length)? });
    (0..count).map(one).collect::<Result<_, TryReserveError>>().map_err(|_| {
        let [size, need] = [u64::from(largest), 2 * u64::from(count) * length as u64];
        CliError::refused(format_args!(
            "no memory for messages of {}: sending and receiving them takes {} at this end; smaller sizes with -s",
            number::bytes(size),
            number::bytes(need)
        ))
    })
}

/// Allocates memory whose pages are all resident.
fn present(length: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length)?;
    bytes.resize(length, 1);
    Ok(bytes)
}

/// Most polling ends per processor. With more, each end waits for the others to be scheduled, and
/// opening the connections takes minutes.
const MOST_SHARING: usize = 4;

/// Warns or fails if `count` polling connections need more processors than there are.
pub(super) fn check_processors(
    options: &EndOptions,
    count: u32,
    console: &mut Console,
) -> Result<(), CliError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let here = if options.remote.is_none() { 2 * count } else { count };
    let processors = thread::available_parallelism().map_or(usize::MAX, usize::from);
    if count == 1 || options.settings.waiting == Waiting::Block || here <= processors {
        return Ok(());
    }
    if here > processors.saturating_mul(MOST_SHARING) {
        return Err(CliError::usage(format_args!(
            "{here} ends that poll on {processors} processors would wait for each other: --block lets ends sleep, or fewer with -q"
        )));
    }
    console.warn(format_args!(
        "{here} ends that poll share {processors} processors, so that the rate is what these allow: --block lets ends sleep, or fewer with -q"
    ));
    Ok(())
}

/// An open connection.
type Session<'b> = Box<dyn Rounds + Send + 'b>;

/// Open connections with a link and a session each; measured concurrently, with a thread each.
pub(crate) struct Connections<'b> {
    sessions: Vec<Session<'b>>,
    /// Ends of the connections, one each.
    ends: Vec<Endpoints>,
    /// Properties of the first link.
    pub(super) link: LinkFingerprint,
}

/// Ends of the connections that a test opens one after another.
pub(super) struct Opening {
    /// Options of the ends, with the address at which the responder answered.
    pub(super) options: EndOptions,
    /// Processors that this thread may use unless pinned.
    pub(super) allowed: Vec<Cpu>,
    /// True once connections were open: the wait for the responder is then not announced again.
    pub(super) again: bool,
    /// True if the first connection waits for the responder's other clients.
    pub(super) queues: bool,
    /// Warnings already given, which are not repeated.
    pub(super) told: Vec<Warning>,
}

impl Opening {
    /// Prints warnings that were not given before.
    pub(super) fn tell(
        &mut self,
        warnings: impl IntoIterator<Item = Warning>,
        console: &mut Console,
    ) {
        for warning in warnings {
            if !self.told.contains(&warning) {
                console.warn(&warning);
                self.told.push(warning);
            }
        }
    }
}

impl<'b> Connections<'b> {
    /// Opens one connection per element of `memory`, for messages of up to `largest` bytes.
    pub(super) fn open(
        opening: &mut Opening,
        largest: u32,
        memory: &'b mut [Memory],
        interrupt: &'b Interrupt,
        console: &mut Console,
    ) -> Result<Self, CliError> {
        let clock = HostClock::calibrated();
        let link = LinkFingerprint::default();
        let mut connections = Self { sessions: Vec::new(), ends: Vec::new(), link };
        let is_first = !std::mem::replace(&mut opening.again, true);
        let queues = opening.queues;
        let several = memory.len() > 1;
        let opened = clock.now();
        for Memory { outgoing, incoming } in memory {
            let ends = Endpoints::new(opening.options.clone(), largest, opening.allowed.clone());
            let mut ends = if several { ends.anywhere() } else { ends };
            let link = ends.open(&clock)?;
            opening.options.remote.clone_from(&ends.options.remote);
            opening.tell(ends.take_warnings(), console);
            if connections.ends.is_empty() {
                connections.link = ends.fingerprint(&link);
                ends.waiting().name().clone_into(&mut connections.link.waiting);
            }
            let buffers = Buffers { outgoing, incoming };
            let wait = |position: u32| {
                // The clients ahead of a further connection are our own, so waiting would not help.
                if connections.sessions.is_empty() && queues {
                    if is_first {
                        let others = number::counted(position.into(), "other client");
                        console.note(format_args!("waiting for {others}"));
                    }
                    interrupt.flow()
                } else {
                    ControlFlow::Break(())
                }
            };
            let parts = Parts { clock, buffers, opened, interrupt, wait };
            let failed = if connections.sessions.is_empty() { failed } else { not_served };
            let session = link.visit(parts).map_err(failed)?;
            connections.sessions.push(session);
            connections.ends.push(ends);
        }
        Ok(connections)
    }

    /// Most messages in flight, over RDMA verbs.
    pub(super) fn depth(&self) -> Option<u16> {
        self.link.verbs.as_ref().map(|verbs| verbs.depth)
    }

    /// The first connection.
    pub(super) fn first(&mut self) -> Option<&mut (dyn Rounds + Send + 'b)> {
        self.sessions.first_mut().map(|session| &mut **session)
    }

    /// Longest message of all links, bytes.
    pub(super) fn longest(&mut self) -> u32 {
        self.sessions.iter_mut().map(|session| session.longest()).min().unwrap_or(u32::MAX)
    }

    /// Longest message of all links and their responders, bytes.
    pub(super) fn allowed(&mut self) -> u32 {
        self.sessions.iter_mut().map(|session| session.allowed()).min().unwrap_or(u32::MAX)
    }

    /// Starts watching the threads and the processors of the ends.
    pub(super) fn watch(&self) -> Disturbance {
        let placed = self.ends.iter().filter_map(Ends::placement);
        let cpus: Vec<Cpu> = placed.flat_map(|both| [both.initiator, both.responder]).collect();
        let clock = HostClock::monotonic_raw();
        if self.sessions.len() == 1 {
            Disturbance::watch(clock, &cpus)
        } else {
            Disturbance::watch_all_threads(self.sessions.len() as u64, clock, &cpus)
        }
    }

    /// Process numbers of the responders that run on this machine.
    pub(super) fn responders(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().filter_map(Ends::responder)
    }

    /// Runs `work` on all connections concurrently and repeatedly, until `each`, which gets the
    /// results, breaks. Several connections have a thread each, near the device unless a processor
    /// was requested.
    pub(super) fn in_step<T: Send>(
        &mut self,
        work: impl Fn(&mut dyn Rounds) -> T + Sync,
        mut each: impl FnMut(Vec<T>) -> ControlFlow<()>,
    ) {
        if let [session] = &mut *self.sessions {
            while each(vec![work(&mut **session)]).is_continue() {}
            return;
        }
        let (count, node) = (self.sessions.len(), node_of(&self.link));
        let (start, is_over) = (Barrier::new(count + 1), AtomicBool::new(false));
        let (done, outcomes) = mpsc::channel();
        thread::scope(|scope| {
            for session in &mut self.sessions {
                let (work, start, is_over, done) = (&work, &start, &is_over, done.clone());
                scope.spawn(move || {
                    run_on_node(node, || {
                        loop {
                            start.wait();
                            if is_over.load(Ordering::Relaxed) {
                                break;
                            }
                            let _is_awaited = done.send(work(&mut **session));
                        }
                    });
                });
            }
            while !is_over.load(Ordering::Relaxed) {
                start.wait();
                let over = each(outcomes.iter().take(count).collect()).is_break();
                is_over.store(over, Ordering::Relaxed);
            }
            start.wait();
        });
    }

    /// Closes all connections and waits for the responders that were started for them.
    pub(super) fn close(mut self) -> Result<(), CliError> {
        for session in self.sessions.drain(..) {
            session.close().map_err(failed)?;
        }
        for mut ends in self.ends.drain(..) {
            if let Some(error) = ends.close() {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Connections<'_> {
    /// Closes the remaining sessions after an error.
    fn drop(&mut self) {
        for session in self.sessions.drain(..) {
            let _broken_as_well = session.close();
        }
    }
}

/// Error for a further connection that was not served along with the first.
fn not_served(error: SessionError<LinkError>) -> CliError {
    match error {
        SessionError::Refused(Refusal::Busy { .. }) => CliError::failed(
            "the responder serves fewer clients at a time than -q asks for, or somebody else is there; start it with as many: `loggap serve --clients N`",
        ),
        other => failed(other),
    }
}

/// Parts of a session besides its link.
struct Parts<'b, W> {
    clock: HostClock,
    buffers: Buffers<'b>,
    /// Clock ticks when the connections were opened.
    opened: u64,
    interrupt: &'b Interrupt,
    /// Called with the number of other clients ahead while these are served.
    wait: W,
}

/// Opens a session over the link.
impl<'b, W: FnMut(u32) -> ControlFlow<()>> LinkVisitor for Parts<'b, W> {
    type Output = Result<Session<'b>, SessionError<LinkError>>;

    fn visit<L: HostLink>(self, link: L) -> Self::Output {
        let Self { clock, buffers, opened, interrupt, wait } = self;
        let session = Initiator::connect(clock, link, buffers, SessionOptions::default(), wait)?;
        Ok(Box::new(Test { session, interrupt, opened, pace: None }))
    }
}
