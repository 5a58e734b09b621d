//! Ranks of this job: start-up, the check that all run the same, and control messages.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;
use std::{fmt, io, thread};

use mpi::collective::CommunicatorCollectives as _;
use mpi::environment::{Threading, Universe};
use mpi::point_to_point::{Destination, Source};
use mpi::topology::{Color, Communicator, Process, SimpleCommunicator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::library;
pub use crate::place::{Host, Place, Sharing};
use crate::waiting::Waiting;
use crate::watch::Watch;

/// Rank that makes decisions and prints, and whose clock is the global one.
pub const CONTROLLER: i32 = 0;

/// An MPI job, as seen by one of its ranks.
///
/// Data and control messages have separate communicators, so that a measured
/// message is never taken for a command.
pub struct Job {
    data: SimpleCommunicator,
    control: SimpleCommunicator,
    places: Vec<Place>,
    watch: Watch,
    // Finalizes MPI when dropped: after the communicators. A part of a job has none.
    _universe: Option<Universe>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("places", &self.places).finish_non_exhaustive()
    }
}

/// Error in starting a job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// MPI has been initialised before.
    #[error("MPI cannot be initialised twice")]
    Twice,
    /// The thread of the watchdog cannot be started.
    #[error("no thread can be started: {0}")]
    Thread(#[from] io::Error),
    /// `mpirun` has started several ranks, but MPI knows only one.
    #[error(
        "{ranks} ranks were started, and {library} knows of one: use the mpirun of this library"
    )]
    OtherLauncher {
        /// Number of ranks that were started.
        ranks: u32,
        /// MPI library that this program was built with.
        library: String,
    },
    /// Ranks run different programs, or have different arguments; all ranks
    /// find the same.
    #[error("{0}; start the same program with the same arguments at every rank")]
    Differ(String),
}

/// Introduction of a rank to the others when the job begins.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Introduction {
    version: String,
    /// First characters of the arguments, for error messages.
    arguments: String,
    /// Hash of all arguments.
    hash: u64,
    place: Place,
}

impl Introduction {
    fn of(arguments: &[String], place: Place) -> Self {
        /// Number of characters of the arguments that are shown.
        const SHOWN: usize = 100;
        let mut hasher = DefaultHasher::new();
        arguments.hash(&mut hasher);
        let shown = arguments.join(" ").chars().take(SHOWN).collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { version, arguments: shown, hash: hasher.finish(), place }
    }

    fn runs_the_same(&self, other: &Self) -> bool {
        self.version == other.version && self.hash == other.hash
    }
}

impl Job {
    /// Initialises MPI, and starts a watchdog that ends the job if a wait for
    /// another rank takes longer than `give_up`. All ranks call this together.
    ///
    /// # Errors
    ///
    /// [`JobError`].
    pub fn begin(give_up: Duration) -> Result<Self, JobError> {
        // MPI waits for all ranks to begin, and one may have ended before.
        let watch = Watch::start(launched_as().unwrap_or(0), give_up)?;
        // Only the main thread calls MPI; the watchdog and simulations have others.
        let begin = || mpi::initialize_with_threading(Threading::Funneled);
        let (universe, _provided) = watch.during(begin).ok_or(JobError::Twice)?;
        let world = universe.world();
        if world.size() == 1
            && let Some(ranks) = launched().filter(|ranks| *ranks > 1)
        {
            return Err(JobError::OtherLauncher { ranks, library: library::version() });
        }
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let own = Introduction::of(&arguments, Place::here());
        let begun = watch.during(|| {
            let (data, control) = (world.duplicate(), world.duplicate());
            compared(&gathered(&control, &own)).map(|places| (data, control, places))
        });
        match begun {
            Ok((data, control, places)) => {
                Ok(Self { data, control, places, watch, _universe: Some(universe) })
            }
            Err(error) => {
                watch.during(|| drop(universe));
                Err(error)
            }
        }
    }

    /// The first `ranks` of this job as a job of their own, which has to be dropped before this
    /// one; `None` at the others. All ranks call this together.
    #[must_use]
    pub fn first(&self, ranks: u32) -> Option<Self> {
        let last = i32::try_from(ranks).unwrap_or(i32::MAX).min(self.size());
        self.of(&(CONTROLLER..last).collect::<Vec<_>>())
    }

    /// Rank 0 and the first rank on another machine, or else rank 1, likewise.
    #[must_use]
    pub fn one_link(&self) -> Option<Self> {
        let elsewhere = self.others().find(|rank| !self.share_a_host(CONTROLLER, *rank));
        self.of(&[CONTROLLER, elsewhere.unwrap_or(1)])
    }

    fn of(&self, members: &[i32]) -> Option<Self> {
        let takes_part = members.contains(&self.rank());
        let color = if takes_part { Color::with_value(0) } else { Color::undefined() };
        let split = |all: &SimpleCommunicator| self.watch.during(|| all.split_by_color(color));
        let (data, control) = (split(&self.data), split(&self.control));
        let places = members.iter().filter_map(|rank| self.place(*rank)).cloned().collect();
        let watch = self.watch.clone();
        Some(Self { data: data?, control: control?, places, watch, _universe: None })
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

    /// True on the controller.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.rank() == CONTROLLER
    }

    /// All ranks except the controller.
    pub fn others(&self) -> impl Iterator<Item = i32> + use<> {
        CONTROLLER + 1..self.size()
    }

    /// Places of all ranks.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Place of `rank`.
    #[must_use]
    pub fn place(&self, rank: i32) -> Option<&Place> {
        self.places.get(usize::try_from(rank).ok()?)
    }

    /// True if two ranks run on the same machine.
    #[must_use]
    pub fn share_a_host(&self, one: i32, other: i32) -> bool {
        let host = |rank| self.place(rank).map(|place| &place.host);
        host(one).is_some() && host(one) == host(other)
    }

    /// Sharing of processors among the ranks.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        Sharing::of(&self.places)
    }

    /// Another rank, as the peer of data messages.
    #[must_use]
    pub fn peer(&self, rank: i32) -> Process<'_> {
        self.data.process_at_rank(rank)
    }

    /// Communicator of data messages, which are measured.
    #[must_use]
    pub const fn data(&self) -> &SimpleCommunicator {
        &self.data
    }

    /// Communicator of control messages.
    #[must_use]
    pub const fn control(&self) -> &SimpleCommunicator {
        &self.control
    }

    /// Watchdog that ends the job if a rank waits for too long.
    #[must_use]
    pub const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Waits for control messages, which yield if ranks share processors.
    #[must_use]
    pub fn waiting(&self) -> Waiting<'_> {
        match self.sharing().is_shared() {
            true => Waiting::yielding(&self.watch),
            false => Waiting::polling(&self.watch),
        }
    }

    /// Broadcasts the controller's `numbers`.
    pub fn share(&self, numbers: &mut [u64]) {
        self.waiting().share(&self.control, CONTROLLER, numbers);
    }

    /// Reports of all ranks, in order, at each rank; `None` for one that cannot
    /// be parsed.
    #[must_use]
    pub fn gathered<T: Serialize + DeserializeOwned>(&self, own: &T) -> Vec<Option<T>> {
        self.watch.during(|| gathered(&self.control, own))
    }

    /// Sends a command or report to `rank`.
    pub fn tell(&self, rank: i32, message: &[u8]) {
        self.watch.during(|| self.control.process_at_rank(rank).send(message));
    }

    /// Receives a command or report from `rank`. Waits mostly asleep, so that
    /// the processor is free for ranks that measure.
    #[must_use]
    pub fn hear(&self, rank: i32) -> Vec<u8> {
        self.hear_after(Duration::ZERO, rank)
    }

    /// As [`Job::hear`], but the rank may first spend the time `work` on other things.
    #[must_use]
    pub fn hear_after(&self, work: Duration, rank: i32) -> Vec<u8> {
        const PAUSE: Duration = Duration::from_micros(200);
        let peer = self.control.process_at_rank(rank);
        self.watch.during_work(work, || {
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
        })
    }
}

/// Number of ranks that `mpirun` or `srun` has started, by their environment variables.
pub(crate) fn launched() -> Option<u32> {
    const VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
    VARIABLES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Variables in which MPI launchers pass the rank.
const RANK_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];

/// Rank of this process, before MPI is initialised; `None` without `mpirun`.
pub(crate) fn launched_as() -> Option<i32> {
    RANK_VARIABLES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Reports of all ranks, in order; `None` for a rank whose message
/// cannot be parsed.
fn gathered<T: Serialize + DeserializeOwned>(
    ranks: &SimpleCommunicator,
    own: &T,
) -> Vec<Option<T>> {
    let mut own = serde_json::to_vec(own).unwrap_or_default();
    let mut longest = 0_u64;
    let length = own.len() as u64;
    ranks.all_reduce_into(&length, &mut longest, mpi::collective::SystemOperation::max());
    let longest = usize::try_from(longest).unwrap_or(0).max(1);
    own.resize(longest, b' ');
    let mut all = vec![0; longest * usize::try_from(ranks.size()).unwrap_or(0)];
    ranks.all_gather_into(&own[..], &mut all[..]);
    all.chunks(longest).map(|one| serde_json::from_slice(one).ok()).collect()
}

/// Places of the ranks, if all of them run the same.
fn compared(ranks: &[Option<Introduction>]) -> Result<Vec<Place>, JobError> {
    let Some(Some(first)) = ranks.first() else {
        return Err(JobError::Differ("rank 0 says of itself what rank 0 cannot read".to_owned()));
    };
    let same = |one: &&Introduction| one.runs_the_same(first);
    let is_other = |one: &Option<Introduction>| one.as_ref().filter(same).is_none();
    let others: Vec<usize> =
        (0..ranks.len()).filter(|rank| ranks.get(*rank).is_some_and(is_other)).collect();
    let Some(other) = others.first().and_then(|rank| ranks.get(*rank)) else {
        return Ok(ranks.iter().flatten().map(|rank| rank.place.clone()).collect());
    };
    let name = |one: &Introduction| format!("loggap-mpi {} '{}'", one.version, one.arguments);
    let other = other.as_ref().map_or_else(|| "another program".to_owned(), name);
    Err(JobError::Differ(format!("rank 0 runs {}, {} {other}", name(first), listed(&others))))
}

/// Ranks as the subject of a sentence.
fn listed(ranks: &[usize]) -> String {
    const SHOWN: usize = 8;
    let names: Vec<String> = ranks.iter().take(SHOWN).map(ToString::to_string).collect();
    match ranks {
        [one] => format!("rank {one} runs"),
        _ if ranks.len() > SHOWN => {
            format!("ranks {} and {} others run", names.join(", "), ranks.len() - SHOWN)
        }
        _ => format!("ranks {} run", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(arguments: &str) -> Introduction {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        Introduction::of(&arguments, Place { host: "a".repeat(600), ..Place::default() })
    }

    #[test]
    fn ranks_that_run_something_else_are_named() {
        let same = introduction("measure -s 1");
        let places = compared(&vec![Some(same.clone()); 3]).unwrap();
        assert_eq!((places.len(), places[2].host.len()), (3, 600));
        let sync = introduction("sync");
        let all = [Some(same.clone()), Some(sync.clone()), Some(same.clone()), Some(sync)];
        let told = compared(&all).unwrap_err().to_string();
        assert!(told.starts_with("rank 0 runs loggap-mpi "), "{told}");
        assert!(told.contains("'measure -s 1', ranks 1, 3 run loggap-mpi "), "{told}");
        assert!(told.contains("'sync'; start the same"), "{told}");
        let newer = Introduction { version: "99.0".to_owned(), ..same.clone() };
        let told = compared(&[Some(same.clone()), Some(newer)]).unwrap_err().to_string();
        assert!(told.contains("rank 1 runs loggap-mpi 99.0 'measure -s 1'"), "{told}");
        let told = compared(&[Some(same.clone()), None]).unwrap_err().to_string();
        assert!(told.contains("rank 1 runs another program"), "{told}");
        let many = [vec![Some(same)], vec![None; 12]].concat();
        let told = compared(&many).unwrap_err().to_string();
        assert!(told.contains("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 4 others run"), "{told}");
    }
}
