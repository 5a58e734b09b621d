//! Connections that are measured at the same time.

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::thread;

use loggap_core::measure::{Buffers, Initiator, Link, SessionError, SessionOptions};
use loggap_core::wire::{FRAME_LEN, Refusal};

use super::rounds::{Rounds, Test};
use super::{EndArgs, failed};
use crate::cli::measure::endpoints::Endpoints;
use crate::cli::measuring::Ends;
use crate::cli::{CliError, Console, Interrupt};
use crate::link::{AnyLink, LinkError, Waiting};
use crate::machine::clock::HostClock;
use crate::machine::environment::LinkFingerprint;
use crate::machine::near::{node_of, run_on_node};
use crate::machine::warning::Warning;
use crate::serve::respond::present_bytes;

/// Memory of one connection: what is sent, and what is received.
type Memory = (Vec<u8>, Vec<u8>);

/// Memory for `count` connections and messages of up to `largest` bytes.
pub(super) fn memory(count: u32, largest: u32) -> Vec<Memory> {
    let length = usize::try_from(largest).unwrap_or(0).max(FRAME_LEN);
    (0..count).map(|_| (present_bytes(length), present_bytes(length))).collect()
}

/// One open connection.
type Session<'b> = Box<dyn Rounds + Send + 'b>;

/// Connections, each of which has one link, one session, and while several are
/// measured one thread.
pub(super) struct Connections<'b> {
    sessions: Vec<Session<'b>>,
    /// Their other ends; as many.
    ends: Vec<Endpoints<'b>>,
    /// The NUMA node of the device that they share.
    node: Option<u32>,
}

/// Connections and what their links are.
pub(super) struct Opened<'b> {
    pub(super) connections: Connections<'b>,
    pub(super) fingerprint: LinkFingerprint,
}

impl<'b> Connections<'b> {
    /// Opens a connection for each of `memory`. Where others were open before, with the
    /// warnings `told`, these are not told again, nor is their end waited for in words.
    pub(super) fn open(
        (args, largest): (&'b EndArgs, u32),
        memory: &'b mut [Memory],
        interrupt: &'b Interrupt,
        (console, told): (&mut Console, &mut Option<Vec<Warning>>),
    ) -> Result<Opened<'b>, CliError> {
        let clock = HostClock::calibrated();
        let is_first = told.is_none();
        let told = told.get_or_insert_default();
        let mut connections = Self { sessions: Vec::new(), ends: Vec::new(), node: None };
        let mut fingerprint = None;
        let several = memory.len() > 1;
        for (outgoing, incoming) in memory {
            let ends = Endpoints::new(args, largest)?;
            let mut ends = if several { ends.anywhere() } else { ends };
            let link = ends.open(&clock)?;
            for warning in ends.take_warnings() {
                if !told.contains(&warning) {
                    console.warn(&warning);
                    told.push(warning);
                }
            }
            fingerprint.get_or_insert_with(|| LinkFingerprint {
                waiting: ends.waiting().name().to_owned(),
                ..ends.fingerprint(&link)
            });
            let buffers = Buffers { outgoing, incoming };
            let session = if connections.sessions.is_empty() {
                let wait = |position| {
                    if is_first {
                        console.note(format_args!("waiting for {position} other clients"));
                    }
                    !interrupt.is_requested()
                };
                open_any((clock, link, buffers), interrupt, wait).map_err(failed)?
            } else {
                // Who is served now are our own.
                open_any((clock, link, buffers), interrupt, |_| false).map_err(not_served)?
            };
            connections.sessions.push(session);
            connections.ends.push(ends);
        }
        let here = if args.is_local() { 2 } else { 1 } * connections.sessions.len();
        let processors = thread::available_parallelism().map_or(usize::MAX, usize::from);
        let polls = connections.ends.iter().all(|ends| ends.waiting() == Waiting::Poll);
        if several && polls && here > processors {
            console.warn(format_args!(
                "{here} ends that poll share {processors} processors, so that the rate is what these allow: --block lets ends sleep, or fewer with -q"
            ));
        }
        let fingerprint =
            fingerprint.ok_or_else(|| CliError::usage("at least one connection is needed"))?;
        connections.node = node_of(&fingerprint);
        Ok(Opened { connections, fingerprint })
    }

    /// The only connection, or the first.
    pub(super) fn first(&mut self) -> Option<&mut (dyn Rounds + Send + 'b)> {
        self.sessions.first_mut().map(|session| &mut **session)
    }

    /// Does `work` on all connections at the same time, of several each on a thread near
    /// the device unless a processor was asked for: what came of each.
    pub(super) fn together<T: Send>(
        &mut self,
        work: impl Fn(&mut dyn Rounds) -> Result<T, SessionError<LinkError>> + Sync,
    ) -> Result<Vec<T>, SessionError<LinkError>> {
        if let [session] = &mut *self.sessions {
            return Ok(vec![work(&mut **session)?]);
        }
        let (start, node) = (Barrier::new(self.sessions.len()), self.node);
        let outcomes: Vec<_> = thread::scope(|scope| {
            let workers: Vec<_> = self
                .sessions
                .iter_mut()
                .map(|session| {
                    let (work, start) = (&work, &start);
                    scope.spawn(move || {
                        run_on_node(node, || {
                            start.wait();
                            work(&mut **session)
                        })
                    })
                })
                .collect();
            let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        outcomes.into_iter().collect()
    }

    /// Says goodbye on all connections and waits for the other ends that were
    /// started for them.
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
    /// After an error: those that still work are told.
    fn drop(&mut self) {
        for session in self.sessions.drain(..) {
            let _broken_as_well = session.close();
        }
    }
}

/// A further connection was not served beside the first.
fn not_served(error: SessionError<LinkError>) -> CliError {
    match error {
        SessionError::Refused(Refusal::Busy { .. }) => CliError::failed(
            "the responder serves fewer clients at a time than -q asks for, or somebody else is there; start it with as many: `loggap serve --clients N`",
        ),
        other => failed(other),
    }
}

/// What a session is made of.
type Parts<'b, L> = (HostClock, L, Buffers<'b>);

/// A session over the link, once it is this client's turn; `wait` is told how
/// many are before it, and says whether to wait.
fn open_any<'b>(
    (clock, link, buffers): Parts<'b, AnyLink>,
    interrupt: &'b Interrupt,
    wait: impl FnMut(u32) -> bool,
) -> Result<Session<'b>, SessionError<LinkError>> {
    match link {
        AnyLink::Tcp(link) => open_on((clock, link, buffers), interrupt, wait),
        AnyLink::Udp(link) => open_on((clock, link, buffers), interrupt, wait),
        AnyLink::Unix(link) => open_on((clock, link, buffers), interrupt, wait),
        AnyLink::Shm(link) => open_on((clock, link, buffers), interrupt, wait),
        AnyLink::Eth(link) => open_on((clock, link, buffers), interrupt, wait),
        AnyLink::Verbs(link) => open_on((clock, *link, buffers), interrupt, wait),
    }
}

fn open_on<'b, L: Link<Error = LinkError> + Send + 'b>(
    (clock, link, buffers): Parts<'b, L>,
    interrupt: &'b Interrupt,
    mut wait: impl FnMut(u32) -> bool,
) -> Result<Session<'b>, SessionError<LinkError>> {
    let on_queue = |position| match wait(position) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let session = Initiator::connect(clock, link, buffers, SessionOptions::default(), on_queue)?;
    Ok(Box::new(Test { session, interrupt }))
}
