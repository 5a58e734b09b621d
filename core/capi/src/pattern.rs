//! Built-in communication patterns.

use core::ffi::c_char;
use core::str::FromStr;

use loggap_core::goal::pattern::{Algorithm, Background, Collective, Options, Pattern};
use loggap_core::units::Picos;

use crate::boundary::{Place, plain, slice};
use crate::status::{Detail, Outcome, Status, finish};

/// A communication pattern, with the options that it uses besides ranks and
/// size. The patterns of Schedgen 2 begin with `Mpi`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum PatternKind {
    /// Broadcast along a binomial tree: root.
    BinomialBroadcast = 0,
    /// Reduction along a binomial tree: root.
    BinomialReduce = 1,
    /// Broadcast along a binary tree: root.
    BinaryBroadcast = 2,
    /// Dissemination: a barrier, or an allgather of fixed size.
    Dissemination = 3,
    /// Dissemination to several ranks per round: ways.
    NWayDissemination = 4,
    /// Two disseminations, one after the other.
    ChainedDissemination = 5,
    /// Broadcast in segments along a ring: root, segment.
    PipelinedRing = 6,
    /// As the pipelined ring, but each rank handles one segment at a time: root, segment.
    PipelinedRingBlocking = 7,
    /// One message around the ring in each direction.
    DoubleRing = 8,
    /// Linear gather: root.
    Gather = 9,
    /// Linear scatter: root.
    Scatter = 10,
    /// Barrier through rank 0.
    LinearBarrier = 11,
    /// Equal messages between all pairs.
    AllToAll = 12,
    /// Large messages to the root, small ones elsewhere: root, skew, outcast.
    AllToAllSkewed = 13,
    /// Allreduce by recursive halving and doubling: compute.
    RecursiveDoubling = 14,
    /// Allreduce along a ring.
    RingAllreduce = 15,
    /// One iteration of training ResNet-152, which fixes the message sizes.
    Resnet = 16,
    /// One message in each random pair: seed.
    RandomPairs = 17,
    /// One message each way in each random pair: seed.
    RandomPairsBothWays = 18,
    /// Broadcast as in Schedgen 2: root, algorithm, window.
    MpiBroadcast = 19,
    /// Reduction as in Schedgen 2: root, algorithm.
    MpiReduce = 20,
    /// Allreduce as in Schedgen 2: algorithm, compute.
    MpiAllreduce = 21,
    /// Reduce-scatter as in Schedgen 2: algorithm, compute.
    MpiReduceScatter = 22,
    /// Allgather as in Schedgen 2: algorithm, compute.
    MpiAllgather = 23,
    /// All-to-all as in Schedgen 2: window.
    MpiAllToAll = 24,
    /// All ranks send to the root: root.
    MpiIncast = 25,
    /// The root sends to all ranks: root, window.
    MpiOutcast = 26,
    /// One message from each rank to the next in a random order: seed.
    Permutation = 27,
    /// One message from each rank to the one nearly half around the ring.
    Tornado = 28,
    /// Messages between 4 neighbours on the most balanced grid: compute.
    Halo2d = 29,
    /// Messages between 6 neighbours on the most balanced grid: compute.
    Halo3d = 30,
    /// Messages between 26 neighbours on the most balanced grid: compute.
    Halo26 = 31,
    /// From one corner of the most balanced grid to the opposite one: compute.
    Sweep = 32,
}

/// The core's pattern for each kind.
const PATTERNS: [(PatternKind, Pattern); 33] = [
    (PatternKind::BinomialBroadcast, Pattern::BinomialBroadcast),
    (PatternKind::BinomialReduce, Pattern::BinomialReduce),
    (PatternKind::BinaryBroadcast, Pattern::BinaryBroadcast),
    (PatternKind::Dissemination, Pattern::Dissemination),
    (PatternKind::NWayDissemination, Pattern::NWayDissemination),
    (PatternKind::ChainedDissemination, Pattern::ChainedDissemination),
    (PatternKind::PipelinedRing, Pattern::PipelinedRing),
    (PatternKind::PipelinedRingBlocking, Pattern::PipelinedRingBlocking),
    (PatternKind::DoubleRing, Pattern::DoubleRing),
    (PatternKind::Gather, Pattern::Gather),
    (PatternKind::Scatter, Pattern::Scatter),
    (PatternKind::LinearBarrier, Pattern::LinearBarrier),
    (PatternKind::AllToAll, Pattern::AllToAll),
    (PatternKind::AllToAllSkewed, Pattern::AllToAllSkewed),
    (PatternKind::RecursiveDoubling, Pattern::RecursiveDoubling),
    (PatternKind::RingAllreduce, Pattern::RingAllreduce),
    (PatternKind::Resnet, Pattern::ResNet),
    (PatternKind::RandomPairs, Pattern::RandomPairs),
    (PatternKind::RandomPairsBothWays, Pattern::RandomPairsBothWays),
    (PatternKind::MpiBroadcast, Pattern::Mpi(Collective::Broadcast)),
    (PatternKind::MpiReduce, Pattern::Mpi(Collective::Reduce)),
    (PatternKind::MpiAllreduce, Pattern::Mpi(Collective::Allreduce)),
    (PatternKind::MpiReduceScatter, Pattern::Mpi(Collective::ReduceScatter)),
    (PatternKind::MpiAllgather, Pattern::Mpi(Collective::Allgather)),
    (PatternKind::MpiAllToAll, Pattern::Mpi(Collective::AllToAll)),
    (PatternKind::MpiIncast, Pattern::Mpi(Collective::Incast)),
    (PatternKind::MpiOutcast, Pattern::Mpi(Collective::Outcast)),
    (PatternKind::Permutation, Pattern::Permutation),
    (PatternKind::Tornado, Pattern::Tornado),
    (PatternKind::Halo2d, Pattern::Halo2d),
    (PatternKind::Halo3d, Pattern::Halo3d),
    (PatternKind::Halo26, Pattern::Halo26),
    (PatternKind::Sweep, Pattern::Sweep),
];

/// Algorithm of a collective of Schedgen 2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum AlgorithmKind {
    /// Chosen by size and number of ranks.
    Auto = 0,
    /// Directly between the root and each other rank.
    Linear = 1,
    /// Along a binomial tree.
    BinomialTree = 2,
    /// Recursive doubling or halving.
    RecursiveDoubling = 3,
    /// Along a ring.
    Ring = 4,
}

const ALGORITHMS: [(AlgorithmKind, Algorithm); 5] = [
    (AlgorithmKind::Auto, Algorithm::Auto),
    (AlgorithmKind::Linear, Algorithm::Linear),
    (AlgorithmKind::BinomialTree, Algorithm::BinomialTree),
    (AlgorithmKind::RecursiveDoubling, Algorithm::RecursiveDoubling),
    (AlgorithmKind::Ring, Algorithm::Ring),
];

/// Options of a pattern; those that it does not use are ignored. Start from
/// `loggap_pattern_options_default`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PatternOptions {
    /// Ranks per group.
    pub ranks: u32,
    /// Root rank.
    pub root: u32,
    /// Message size of the collective, in bytes.
    pub size: u64,
    /// Segment size in bytes; 0 for the whole message.
    pub segment: u64,
    /// Maximum number of sends in flight; 0 for no limit.
    pub window: u32,
    /// Targets of a rank per round.
    pub ways: u32,
    /// Calculation between the rounds, in ps; 0 for none.
    pub compute_ps: u64,
    /// Divisor of the size of the small messages.
    pub skew: u32,
    /// 1 if the rank above the root sends large messages only.
    pub outcast: u32,
    /// A `loggap_algorithm_kind`.
    pub algorithm: u32,
    /// Disjoint groups of ranks, each of which runs the pattern.
    pub groups: u32,
    /// Repetitions, one after the other on each rank.
    pub repeat: u32,
    /// 1 if each repetition moves the root to the next rank.
    pub rotate_root: u32,
    /// Seed of random patterns.
    pub seed: u64,
    /// Calculation that runs beside the pattern on every rank, in ps; 0 for none.
    pub background_ps: u64,
    /// Length of the pieces into which that calculation is cut, in ps; 0 for one piece.
    pub background_poll_ps: u64,
    /// Processor that runs that calculation, 0 to 255.
    pub background_cpu: u32,
}

plain!(PatternOptions);

/// Fills in the defaults for `ranks` ranks and messages of `size` bytes.
///
/// Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_pattern_options_default(
    options: *mut PatternOptions,
    ranks: u32,
    size: u64,
) -> i32 {
    // SAFETY: by the contract of this function.
    let place = unsafe { Place::new(options) };
    let outcome = place.map(|mut place| {
        place.put(PatternOptions {
            ranks,
            root: 0,
            size,
            segment: 0,
            window: 0,
            ways: 1,
            compute_ps: 0,
            skew: 1,
            outcast: 0,
            algorithm: AlgorithmKind::Auto as u32,
            groups: 1,
            repeat: 1,
            rotate_root: 0,
            seed: 0,
            background_ps: 0,
            background_poll_ps: 0,
            background_cpu: 0,
        });
    });
    // SAFETY: a null detail is allowed.
    unsafe { finish(outcome, core::ptr::null_mut()) }
}

impl PatternOptions {
    /// The core's pattern with this number, and its options.
    pub(crate) fn to_core(self, pattern: u32) -> Outcome<(Pattern, Options)> {
        let wrong = |name, value: u32| Detail::of(Status::Option).named(name).found(value.into());
        let known = PATTERNS.into_iter().find(|(kind, _)| *kind as u32 == pattern);
        let (_, known) = known.ok_or(wrong("pattern", pattern))?;
        let algorithm = ALGORITHMS.into_iter().find(|(kind, _)| *kind as u32 == self.algorithm);
        let (_, algorithm) = algorithm.ok_or(wrong("algorithm", self.algorithm))?;
        for (name, value) in [("outcast", self.outcast), ("rotate_root", self.rotate_root)] {
            if value > 1 {
                return Err(wrong(name, value));
            }
        }
        let cpu = u8::try_from(self.background_cpu);
        let cpu = cpu.map_err(|_| wrong("background_cpu", self.background_cpu))?;
        let some = |picos: u64| (picos > 0).then_some(Picos(picos));
        let poll = some(self.background_poll_ps);
        let options = Options {
            root: self.root,
            ways: self.ways,
            segment: (self.segment > 0).then_some(self.segment),
            window: (self.window > 0).then_some(self.window),
            compute: some(self.compute_ps),
            skew: self.skew,
            outcast: self.outcast == 1,
            background: some(self.background_ps).map(|duration| Background { duration, poll, cpu }),
            algorithm,
            groups: self.groups,
            repeat: self.repeat,
            rotate_root: self.rotate_root == 1,
            seed: self.seed,
            ..Options::new(self.ranks, self.size)
        };
        Ok((known, options))
    }
}

/// Writes to `pattern` the `loggap_pattern_kind` with this name: Schedgen's,
/// such as `binomialtreebcast`, or loggap's, such as `binomial-broadcast`.
/// `length` is the name's, without a terminating zero byte.
///
/// Errors: `LOGGAP_STATUS_UNKNOWN_NAME`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_pattern_named(
    name: *const c_char,
    length: usize,
    pattern: *mut u32,
    detail: *mut Detail,
) -> i32 {
    let find = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(pattern) }?;
        // SAFETY: by the contract of this function; `c_char` has the layout of `u8`.
        let name = unsafe { slice(name.cast::<u8>(), length) }?;
        let unknown = Detail::of(Status::UnknownName);
        let name = core::str::from_utf8(name).map_err(|_| unknown)?;
        let found = Pattern::from_str(name).map_err(|_| unknown)?;
        let kind = PATTERNS.into_iter().find(|(_, pattern)| *pattern == found);
        place.put(kind.ok_or(unknown)?.0 as u32);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(find(), detail) }
}
