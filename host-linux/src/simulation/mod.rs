//! Simulations on this machine: sources of schedules, memory, networks, noise, threads.

mod buffering;
mod hints;
mod implicit;
mod memory;
mod network;
mod noise;
mod ordered;
mod parameter_sets;
mod parts;
mod points;
mod processes;
mod run;
mod simulate;
mod source;
mod streamed;
pub mod windows;

pub use buffering::{BlockedSend, Buffering};
pub use hints::{Hints, Sent, Taper};
pub use implicit::{Computed, bytes_needed, run_pattern};
pub use memory::OwnedMemory;
pub use network::{
    BusyLink, DotError, GraphError, GraphTopology, NetworkError, NetworkPlan, NetworkUse,
    PairsError, PlacedNetwork, Placement, RankLocation, TopologyPlan, Wiring, read_locations,
};
pub use noise::{NoiseError, NoiseSource, NoiseSummary, PhasedNoise};
pub use parameter_sets::{LevelSet, ParameterSets, SetsError, UnusableRange};
pub use parts::{Parts, PartsError};
pub use points::{Completed, Ended, Plan, Point, run_each_point, run_points};
pub use processes::{Alone, Processes};
pub(crate) use processes::{Elsewhere, agreed};
pub use run::{RunError, makespan};
pub use simulate::{
    Job, Method, Outcome, ProgramForm, Progress, SHARED_LINKS, Stuck, Wanted, Watch,
};
pub use source::{Limit, LoadError, Needs, Source};
pub use streamed::{LookedUp, StreamedSchedule, stream};
