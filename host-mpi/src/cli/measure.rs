//! `loggap-mpi measure`: MPI as a link.

use loggap::drive::{Ends, MeasureError, Observer, ProtocolLimit, Run};
use loggap::flags::measuring::{self, MeasureArgs};
use loggap::link::{LinkError, LinkFingerprint, Waiting};
use loggap::machine::buffer::{self, Alignment, Buffer, BufferRole};
use loggap::machine::clock::HostClock;
use loggap::machine::placement::Placement;
use loggap::machine::warning::Warning;
use loggap::serve::description::describe;
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::measure::{Link, LinkProperties, ServeOptions, SessionError, serve_with};
use loggap_core::wire::{Bounds, FRAME_LEN};

use super::pairs::{self, PairsArgs};
use super::{BufferArgs, Session};
use crate::job::CONTROLLER;
use crate::library::{self, Limit};
use crate::link::{Calls, MpiLink, ReceiveCall, Rotations, SendCall};

/// Name of the transport in profiles.
const TRANSPORT: &str = "mpi";

/// Measure MPI between two ranks as a link: latency L, overheads o, gap g, gap
/// per byte G, and the sizes at which the protocol changes, with the library's
/// setting that moves each.
///
/// Of two ranks, rank 0 measures and rank 1 responds; options, output and files
/// are those of `loggap measure`. A launch is a fresh session of the same two
/// processes. With more ranks the pairs that --pairs names are measured, and
/// nodes, ranks and pairs that are slower than the rest are named.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 2 loggap-mpi measure
  mpirun -n 2 --map-by node loggap-mpi measure -s 1:1M --max-time 20 -o fabric.json
  mpirun -n 64 loggap-mpi measure --pairs random:8 --heat-map fabric.svg -o fabric.json
  mpirun -n 2 --mca btl tcp,self loggap-mpi measure --send ssend --recv irecv")]
pub(super) struct Args {
    /// Call that sends: send (MPI_Send), ssend (MPI_Ssend), isend (MPI_Isend,
    /// with MPI_Wait outside the send overhead).
    #[arg(long, value_name = "CALL", default_value = "send", hide_possible_values = true)]
    send: SendCall,
    /// Call that receives: recv (MPI_Recv), irecv (MPI_Irecv beforehand, and
    /// MPI_Test until the message has arrived).
    #[arg(long, value_name = "CALL", default_value = "recv", hide_possible_values = true)]
    recv: ReceiveCall,
    /// Send from and receive into memory that the caches do not hold: messages
    /// rotate through twice the largest cache at each end. With --send send or
    /// ssend, and --recv recv.
    #[arg(long)]
    rotate: bool,
    #[command(flatten)]
    buffers: BufferArgs,
    #[command(flatten)]
    pub(super) pairs: PairsArgs,
    #[command(flatten)]
    pub(super) measure: MeasureArgs,
}

impl Args {
    pub(super) fn calls(&self) -> Calls {
        let (send, receive, alignment) = (self.send, self.recv, self.buffers.alignment());
        let longest = u64::from(self.measure.longest_message()) + FRAME_LEN as u64;
        let rotated_bytes = self.rotate.then(|| 2 * buffer::largest_cache().max(longest));
        Calls { send, receive, alignment, rotated_bytes }
    }
}

/// Rank that responds if there are two; the controller measures.
const RESPONDER: i32 = 1;

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let job = session.job;
    if job.size() < 2 {
        return Err(CliError::usage("a link has two ends: mpirun -n 2 loggap-mpi measure"));
    }
    if args.pairs.one_link && job.size() > 2 {
        return session.on_one_link(|session| run(args, session, console));
    }
    args.buffers.check(session)?;
    if args.rotate && (args.send == SendCall::Isend || args.recv == ReceiveCall::Irecv) {
        let error = CliError::usage("--rotate is for --send send or ssend, and --recv recv");
        return session.told_by_first(Err(error));
    }
    let calls = args.calls();
    // Rank 0 tells the others when the run is over; they continue until then.
    session.interrupt.listen();
    if args.pairs.are_many(job.size()) {
        if let Some(option) = args.measure.for_one_link() {
            let error = CliError::usage(format_args!("{option} is about one pair: mpirun -n 2"));
            return session.told_by_first(Err(error));
        }
        return pairs::run(args, session, console);
    }
    if let Some(option) = args.pairs.useless_for_one() {
        return session.told_by_first(Err(CliError::usage(format_args!(
            "{option} is about many pairs: give --pairs, or more ranks"
        ))));
    }
    match job.rank() {
        CONTROLLER => {
            let ends = |_| Ok(MpiEnds { session, calls, peer: RESPONDER });
            let outcome =
                measuring::run(&args.measure, TRANSPORT, ends, session.interrupt, console);
            job.tell(RESPONDER, DONE);
            outcome
        }
        _ => respond(calls, args.measure.longest_message(), session, CONTROLLER),
    }
}

/// Commands to a responder.
const SERVE: &[u8] = b"serve";
pub(super) const DONE: &[u8] = b"done";

/// Serves sessions of `initiator`, with messages of up to `longest` bytes,
/// until it sends another command than `SERVE`.
pub(super) fn respond(
    calls: Calls,
    longest: u32,
    session: &Session<'_>,
    initiator: i32,
) -> Result<Exit, CliError> {
    let clock = HostClock::calibrated();
    let bounds = Bounds { message: LONGEST, ..Bounds::default() };
    let cpu = session.job.place(session.job.rank()).and_then(|place| place.cpu);
    let description = describe(&clock, fingerprint(session, calls, initiator), cpu);
    let options = ServeOptions { bounds, nonce: 0, description: description.as_bytes() };
    let mut buffers = None;
    while session.job.hear(initiator) == SERVE {
        let (buffer, replies) = match &mut buffers {
            Some(buffers) => buffers,
            none => none.insert(memory(longest, calls.alignment)?),
        };
        let peer = session.job.peer(initiator);
        let rotations = Rotations::new(calls).map_err(CliError::failed)?;
        let link = MpiLink::replying(peer, calls, session.job.watch(), replies);
        let mut link = link.rotating(rotations);
        serve_with(&clock, &mut link, buffer, options).map_err(|error| {
            CliError::failed(format_args!("rank {}: {error}", session.job.rank()))
        })?;
    }
    Ok(Exit::Done)
}

/// Receive buffer and reply buffer.
fn memory(longest: u32, alignment: Alignment) -> Result<(Buffer<u8>, Buffer<u8>), CliError> {
    let length = longest.min(LONGEST) as usize + FRAME_LEN;
    let buffer = |role| Buffer::new(length, alignment, role, 1);
    let both = buffer(BufferRole::Receive).zip(buffer(BufferRole::Send));
    both.ok_or_else(|| CliError::failed(MeasureError::Memory { size: longest }))
}

/// Longest message that a responder accepts, bytes.
const LONGEST: u32 = 64 << 20;

/// Conditions of the link to `peer` that its numbers depend on.
fn fingerprint(session: &Session<'_>, calls: Calls, peer: i32) -> LinkFingerprint {
    let job = session.job;
    let route = library::route(job, peer);
    let host = job.place(peer).map_or("?", |place| &place.host);
    LinkFingerprint {
        transport: TRANSPORT.to_owned(),
        peer: format!("rank {peer} on {host}"),
        mpi: Some(library::fingerprint(calls, route)),
        ..LinkFingerprint::default()
    }
}

/// Endpoint pair of this rank and `peer`.
pub(super) struct MpiEnds<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) calls: Calls,
    pub(super) peer: i32,
}

impl<'a> Ends for MpiEnds<'a> {
    type Link = MpiLink<'a>;

    fn open(&mut self, _clock: &HostClock) -> Result<MpiLink<'a>, CliError> {
        self.session.job.tell(self.peer, SERVE);
        let job = self.session.job;
        let rotations = Rotations::new(self.calls).map_err(CliError::failed)?;
        Ok(MpiLink::new(job.peer(self.peer), self.calls, job.watch()).rotating(rotations))
    }

    fn close(&mut self) -> Option<CliError> {
        None
    }

    fn responder(&self) -> Option<u32> {
        let job = self.session.job;
        let place = job.place(self.peer).filter(|_| job.share_a_host(job.rank(), self.peer))?;
        Some(place.process)
    }

    fn alignment(&self) -> Alignment {
        self.calls.alignment
    }

    /// Processors of both ranks, if `mpirun` has bound each to one.
    fn placement(&self) -> Option<Placement> {
        let job = self.session.job;
        let cpu = |rank| job.place(rank)?.cpu;
        let initiator = cpu(job.rank())?;
        let shared = job.share_a_host(job.rank(), self.peer);
        let responder = if shared { cpu(self.peer)? } else { initiator };
        Some(Placement { initiator, responder })
    }

    fn launch(
        &mut self,
        run: &mut Run<'_, HostClock>,
        link: MpiLink<'a>,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<LinkError>> {
        run.launch(link, observer)
    }

    fn properties(&self, link: &MpiLink<'a>) -> LinkProperties {
        link.properties()
    }

    fn fingerprint(&self, _link: &MpiLink<'a>) -> LinkFingerprint {
        fingerprint(self.session, self.calls, self.peer)
    }

    fn waiting(&self) -> Waiting {
        Waiting::Poll
    }

    fn limits(&self) -> Vec<ProtocolLimit> {
        library::limits(library::route(self.session.job, self.peer)).iter().map(limit).collect()
    }

    fn take_warnings(&mut self) -> Vec<Warning> {
        Vec::new()
    }
}

/// Limit of the library, with the range of sizes in which it may change the
/// protocol: headers count towards it.
fn limit(limit: &Limit) -> ProtocolLimit {
    /// Longest headers of the libraries, bytes.
    const HEADERS: u64 = 256;
    ProtocolLimit {
        setting: format!(
            "{}: {} = {} B{}",
            limit.about,
            limit.name,
            limit.bytes,
            if limit.is_default { " (default)" } else { "" }
        ),
        first_bytes: limit.bytes.saturating_sub(HEADERS)..=limit.bytes + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_explains_changes_up_to_its_headers_below_it() {
        let bytes = 8_192;
        let eager =
            Limit { name: "btl_tcp_eager_limit", bytes, about: "eager limit", is_default: false };
        let explained = limit(&eager);
        assert_eq!(explained.setting, "eager limit: btl_tcp_eager_limit = 8192 B");
        for (at, is_explained) in
            [(bytes - 257, false), (bytes - 256, true), (bytes + 1, true), (bytes + 2, false)]
        {
            assert_eq!(explained.first_bytes.contains(&at), is_explained, "{at}");
        }
        let default = limit(&Limit { is_default: true, ..eager });
        assert!(default.setting.ends_with("= 8192 B (default)"), "{}", default.setting);
    }
}
