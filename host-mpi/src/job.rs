//! The ranks of this job, where they run, and how they are led.

use std::fmt;
use std::thread;
use std::time::Duration;

use loggap::machine::placement::{self, Cpu};
use mpi::collective::CommunicatorCollectives as _;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::topology::{Communicator, Process, SimpleCommunicator};
use nix::sys::utsname::uname;
use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

/// A rank's place, as all ranks know it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Place {
    /// Name of its machine.
    pub host: String,
    /// Its process there.
    pub process: u32,
    /// The processor it is bound to, where that is one only.
    pub cpu: Option<Cpu>,
    /// Processors of its machine.
    pub cpus: usize,
    /// How many of them it may use.
    #[serde(default)]
    pub processors: usize,
}

impl Place {
    /// Of this process.
    #[must_use]
    pub fn here() -> Self {
        let host = uname().map(|name| name.nodename().to_string_lossy().into_owned());
        let cpus = placement::allowed();
        let cpu = if let [only] = cpus[..] { Some(only) } else { None };
        let online = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
        Self {
            host: host.unwrap_or_default(),
            process: std::process::id(),
            cpu,
            cpus: online.and_then(|count| usize::try_from(count).ok()).unwrap_or(1),
            processors: cpus.len(),
        }
    }
}

/// A job of MPI, as one of its ranks sees it.
///
/// Data and control have communicators of their own, so that a measured
/// message is never taken for a command.
pub struct Job {
    data: SimpleCommunicator,
    control: SimpleCommunicator,
    places: Vec<Place>,
    // Finalizes MPI when dropped: after the communicators.
    _universe: Universe,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("places", &self.places).finish_non_exhaustive()
    }
}

/// Bytes of a place on its way to all ranks.
const PLACE: usize = 512;

impl Job {
    /// Initialises MPI; `None` where that has been done already. All ranks
    /// call this together.
    #[must_use]
    pub fn begin() -> Option<Self> {
        let universe = mpi::initialize()?;
        let world = universe.world();
        let (data, control) = (world.duplicate(), world.duplicate());
        let places = gather_places(&control);
        Some(Self { data, control, places, _universe: universe })
    }

    /// Number of this rank.
    #[must_use]
    pub fn rank(&self) -> i32 {
        self.data.rank()
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> i32 {
        self.data.size()
    }

    /// Where every rank runs.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where `rank` runs.
    #[must_use]
    pub fn place(&self, rank: i32) -> Option<&Place> {
        self.places.get(usize::try_from(rank).ok()?)
    }

    /// Whether two ranks run on the same machine.
    #[must_use]
    pub fn share_a_host(&self, one: i32, other: i32) -> bool {
        let host = |rank| self.place(rank).map(|place| &place.host);
        host(one).is_some() && host(one) == host(other)
    }

    /// Machines with more ranks than processors, where ranks wait for each
    /// other's processor.
    #[must_use]
    pub fn crowded_hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&Place> = self.places.iter().collect();
        hosts.sort_by_key(|place| &place.host);
        let of_host = hosts.chunk_by(|one, next| one.host == next.host);
        let crowded =
            of_host.filter(|ranks| ranks.first().is_some_and(|one| ranks.len() > one.cpus));
        crowded.filter_map(|ranks| Some(ranks.first()?.host.as_str())).collect()
    }

    /// Another rank, to exchange data with.
    #[must_use]
    pub fn peer(&self, rank: i32) -> Process<'_> {
        self.data.process_at_rank(rank)
    }

    /// The ranks, for what is measured.
    #[must_use]
    pub const fn data(&self) -> &SimpleCommunicator {
        &self.data
    }

    /// The ranks, for what is said about measuring.
    #[must_use]
    pub const fn control(&self) -> &SimpleCommunicator {
        &self.control
    }

    /// Sends `message` to `rank` as a command or report.
    pub fn tell(&self, rank: i32, message: &[u8]) {
        self.control.process_at_rank(rank).send(message);
    }

    /// Waits for a command or report of `rank`, mostly asleep, so that the
    /// processor is free for ranks that measure.
    #[must_use]
    pub fn hear(&self, rank: i32) -> Vec<u8> {
        const PAUSE: Duration = Duration::from_micros(200);
        let peer = self.control.process_at_rank(rank);
        loop {
            if let Some((message, status)) = peer.immediate_matched_probe() {
                let length =
                    status.count(<u8 as mpi::datatype::Equivalence>::equivalent_datatype());
                let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
                message.matched_receive_into(&mut bytes[..]);
                return bytes;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// The places of all ranks, at every rank.
fn gather_places(ranks: &SimpleCommunicator) -> Vec<Place> {
    let mut own = serde_json::to_vec(&Place::here()).unwrap_or_default();
    own.resize(PLACE, b' ');
    let count = usize::try_from(ranks.size()).unwrap_or(0);
    let mut all = vec![0; PLACE * count];
    ranks.all_gather_into(&own[..], &mut all[..]);
    all.chunks(PLACE).map(|one| serde_json::from_slice(one).unwrap_or_default()).collect()
}
