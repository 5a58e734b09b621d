//! The PRTT method: the core's planner says what to measure next.

use loggap_core::measure::{
    Conclusion, Experiment, Initiator, Kept, Link, Outcome, PlanMemory, PlanOptions,
    PlanRequirements, Planner, RowPlan, Slot,
};
use loggap_core::wire::ROUNDS_PER_BATCH;

use super::memory::{AssessVecs, StoreVecs};
use super::{MeasureError, Measured, Observer, Settings, now, partial, rows};
use crate::clock::HostClock;
use crate::link::LinkError;

/// Sizes that may be added around changes: a bisection of seven changes.
const ADDED_SIZES: usize = 160;
/// Values of a quantity at a size, per second allowed, at least and at most.
const REPETITIONS: (u64, u64, u64) = (512, 2_048, 16_384);

pub(super) fn measure<L: Link<Error = LinkError>>(
    session: &mut Initiator<'_, HostClock, L>,
    settings: &Settings,
    sizes: &[u32],
    observer: &mut Observer<'_>,
) -> Result<Measured, MeasureError> {
    let options = PlanOptions { adapt_sizes: settings.sizes.may_add(), ..settings.plan };
    let mut vectors = PlanVecs::new(&options, sizes.len())?;
    let mut planner: Planner<'_> = Planner::new(options, sizes, vectors.lend())?;
    let mut samples = Vec::new();
    loop {
        let batch: heapless::Vec<Experiment, ROUNDS_PER_BATCH> =
            planner.poll_batch(now(session.clock()));
        if batch.is_empty() {
            break;
        }
        session.run(&batch, |outcome| match outcome {
            Outcome::Sample(sample) => {
                if planner.handle_sample(&sample) == Kept::Stored {
                    samples.push(sample);
                }
            }
            Outcome::Lost(experiment) => planner.handle_lost(&experiment),
        })?;
        if (observer.on_progress)(&planner.progress(now(session.clock()))).is_break() {
            planner.stop();
        }
    }
    // An empty batch means that there is a conclusion.
    let conclusion = planner.conclusion().unwrap_or(Conclusion::Stopped);
    let assessment = partial(planner.assess(), conclusion)?;
    let rows = rows(planner.store(), &options.assess);
    Ok(Measured { assessment, rows, samples, conclusion })
}

struct PlanVecs {
    store: StoreVecs,
    plans: Vec<RowPlan>,
    order: Vec<Slot>,
    assess: AssessVecs,
}

impl PlanVecs {
    fn new(options: &PlanOptions, sizes: usize) -> Result<Self, MeasureError> {
        let rows = sizes.saturating_add(if options.adapt_sizes { ADDED_SIZES } else { 0 });
        let required =
            PlanRequirements::new(rows, repetitions(options), options.assess.max_changes)
                .ok_or(MeasureError::TooManySizes(sizes))?;
        Ok(Self {
            store: StoreVecs::new(required.store),
            plans: vec![RowPlan::default(); required.plans],
            order: vec![Slot::default(); required.order],
            assess: AssessVecs::new(required.assess),
        })
    }

    fn lend(&mut self) -> PlanMemory<'_> {
        let (rows, values) = self.store.parts();
        PlanMemory {
            rows,
            values,
            plans: &mut self.plans,
            order: &mut self.order,
            assess: self.assess.lend(),
        }
    }
}

/// Values of a quantity at a size that there is room for.
pub(super) fn repetitions(options: &PlanOptions) -> usize {
    let (each_second, least, most) = REPETITIONS;
    let seconds = options.max_time.0 / 1_000_000_000_000;
    let wanted = seconds.saturating_mul(each_second).clamp(least, most);
    usize::try_from(wanted).unwrap_or(usize::MAX)
}
