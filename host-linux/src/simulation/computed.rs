//! Runs of computed patterns at many points.

use loggap_core::sim::implicit::{Program, Requirements};
use loggap_core::with_program;

use super::implicit::{Means, PatternMemory, settled};
use super::noise::with_noise;
use super::points::{Batch, Completed, Ended, of_one_point};
use super::{RunError, Source};
use crate::side_by_side::side_by_side;
use crate::sys::pages::Integers;

impl Batch<'_> {
    /// Results of points of a pattern that can be computed. Empty, or `None` for a point, if the
    /// schedule must be stored.
    pub(super) fn computed(
        &self,
        source: &Source,
        points: &[usize],
    ) -> Result<Vec<Option<Ended>>, RunError> {
        let program = source.program(self.plan.settings.receive);
        let Some(program) = program else { return Ok(Vec::new()) };
        with_program!(&program, program => self.computed_by(program, points))
    }

    fn computed_by<P: Program<State: Integers> + Sync>(
        &self,
        program: &P,
        points: &[usize],
    ) -> Result<Vec<Option<Ended>>, RunError> {
        let (needs, kept) = (Requirements::of(program), self.kept(program.ranks()));
        let threads = self.threads(needs.bytes(), kept, points.len())?;
        let most_bytes = self.plan.most_bytes.saturating_sub(kept) / threads as u64;
        let memory = || PatternMemory::new(needs, 1, needs.nodes).map_err(RunError::Pattern);
        side_by_side(threads, points, memory, |memory, at| {
            if self.plan.is_stopped() {
                return Ok(None);
            }
            let ended = of_one_point(self.compute(program, memory, at, most_bytes))?.transpose();
            if ended.is_some() {
                (self.note)();
            }
            Ok(ended)
        })
    }

    fn compute<P: Program<State: Integers>>(
        &self,
        program: &P,
        memory: &mut PatternMemory<P::State>,
        at: usize,
        most_bytes: u64,
    ) -> Result<Option<Completed>, RunError> {
        let point = (self.point)(at);
        let mut finish = Vec::new();
        let listed = at < self.plan.finish;
        let each = |_, time| {
            if listed {
                finish.push(time);
            }
        };
        let parameters = point.sets.parameters()?;
        let means = Means { most_bytes, ..Means::ONE_THREAD };
        let result = with_noise!(self.noise(&point), noise => {
            memory.run(program, parameters, noise, &means, each)
        });
        let computed = settled(result.map_err(RunError::Pattern))?;
        Ok(computed.map(|computed| Completed { makespan: computed.outcome.makespan, finish }))
    }
}
