//! Ranks with virtual clocks, and their exchanges.

use loggap_core::random::Random;
use loggap_core::sync::{ClockModel, Residual};
use loggap_core::units::Picos;

use super::clock::{ClockTruth, VirtualClock};
use super::path::Path;
use super::pinger::VirtualPinger;

/// Simulated ranks. Exchanges of different ranks overlap in true time.
pub(super) struct Cluster {
    clocks: Vec<VirtualClock>,
    /// Index of the clock that each rank reads.
    reads: Vec<usize>,
    /// True time at which each rank's last exchange ended.
    free: Vec<Picos>,
    /// Total number of pings.
    pub(super) pings: u64,
    /// Number of passes so far, on which random delays depend.
    pass: u64,
    seed: u64,
}

impl Cluster {
    /// Ranks of which each reads the clock of the rank that `reads` names.
    pub(super) fn new(truth: ClockTruth, seed: u64, reads: Vec<usize>) -> Self {
        let clock = |stream| VirtualClock::new(truth, seed, stream);
        let clocks = (0..reads.len() as u64).map(clock).collect();
        let free = vec![Picos::ZERO; reads.len()];
        Self { clocks, reads, free, pings: 0, pass: 0, seed }
    }

    /// Begins the next pass at the true time `begin`.
    pub(super) fn begin_pass(&mut self, begin: Picos) {
        self.free.fill(begin);
        self.pass += 1;
    }

    /// True time at which all exchanges have ended.
    pub(super) fn end(&self) -> Picos {
        self.free.iter().copied().max().unwrap_or_default()
    }

    /// Calls `exchange` with a pinger from rank `own` to rank `peer`, as soon as both are free. The
    /// higher rank, which has no other exchange with a lower one in this pass, numbers the random
    /// delays; they also choose the longer direction of `path`.
    pub(super) fn meet<T>(
        &mut self,
        own: usize,
        peer: usize,
        path: Path,
        exchange: impl FnOnce(&mut VirtualPinger<'_>) -> T,
    ) -> T {
        let pair = [own, peer];
        let now = pair.iter().filter_map(|&rank| self.free.get(rank)).max().copied();
        let clocks = pair.map(|rank| self.reads.get(rank).copied().unwrap_or(rank));
        let higher = own.max(peer) as u64;
        let path = path.turned(&mut Random::stream(!self.seed, higher));
        let random = Random::stream(self.seed ^ self.pass << 32, higher + (1 << 32));
        let pinger = VirtualPinger::new(&mut self.clocks, path, now.unwrap_or_default(), random);
        let mut pinger = pinger.between(clocks);
        let result = exchange(&mut pinger);
        self.pings += pinger.pings;
        let end = pinger.now;
        for rank in pair {
            if let Some(free) = self.free.get_mut(rank) {
                *free = end;
            }
        }
        result
    }

    /// Exact local time of each rank at the true time `now`.
    pub(super) fn local_at(&mut self, now: Picos) -> Vec<Picos> {
        let exact: Vec<Picos> = self.clocks.iter_mut().map(|clock| clock.exact_at(now)).collect();
        self.reads.iter().filter_map(|&clock| exact.get(clock).copied()).collect()
    }
}

/// Residuals of all ranks but the root at one true time, at which their clocks show `local`, if
/// they are corrected by `models`, one for each rank; a rank without one is left out.
pub(super) fn residuals(
    local: &[Picos],
    models: impl Iterator<Item = Option<ClockModel>>,
) -> Vec<Residual> {
    let truth = local.first().copied().unwrap_or_default();
    let residual = |(&local, model): (&Picos, Option<ClockModel>)| {
        model.map(|model| Residual::of_truth(&model, local, truth))
    };
    local.iter().zip(models).skip(1).filter_map(residual).collect()
}
