//! The methods that repeat one procedure per size: sweeps over all sizes in
//! random order until every number is exact enough or the budget is spent.

use loggap_core::measure::{
    AssessError, AssessRequirements, Assessment, Conclusion, Initiator, Link, MethodOptions,
    MethodSamples, PlanOptions, Progress, Sample, SampleStore, SessionError, StoreRequirements,
};
use loggap_core::random::Random;
use loggap_core::units::Picos;

use super::memory::{AssessVecs, StoreVecs};
use super::planned::repetitions;
use super::{MeasureError, Measured, Method, Observer, Settings, now, partial, rows};
use crate::clock::HostClock;
use crate::link::LinkError;

/// Sweeps before the first assessment: enough for an interval at 95% that
/// stands outliers.
const FIRST_SWEEPS: u64 = 8;

pub(super) fn measure<L: Link<Error = LinkError>>(
    session: &mut Initiator<'_, HostClock, L>,
    settings: &Settings,
    sizes: &[u32],
    observer: &mut Observer<'_>,
) -> Result<Measured, MeasureError> {
    let options = &settings.plan;
    let required = StoreRequirements::new(sizes.len(), repetitions(options))
        .ok_or(MeasureError::TooManySizes(sizes.len()))?;
    let mut vectors = StoreVecs::new(required);
    let needed = AssessRequirements::new(sizes.len(), options.assess.max_changes);
    let mut run = Run {
        store: vectors.store(),
        memory: AssessVecs::new(needed),
        samples: Vec::new(),
        options,
        started: now(session.clock()),
        messages_before: session.traffic().messages(),
        lost: 0,
        warm: false,
    };
    let mut order = sizes.to_vec();
    let mut random = Random::new(options.seed);
    let mut sweeps = 0;
    let conclusion = loop {
        shuffle(&mut order, &mut random);
        let ended = run.sweep((session, settings.method), &order, observer)?;
        if let Some(conclusion) = ended {
            break conclusion;
        }
        // The first sweep has warmed the link up and does not count.
        run.warm = true;
        sweeps += 1;
        if sweeps > FIRST_SWEEPS && run.has_converged()? {
            break Conclusion::Converged;
        }
    };
    let assessment = partial(run.assess(), conclusion)?;
    let rows = rows(&run.store, &options.assess);
    Ok(Measured { assessment, rows, samples: run.samples, conclusion })
}

struct Run<'a> {
    store: SampleStore<'a>,
    memory: AssessVecs,
    samples: Vec<Sample>,
    options: &'a PlanOptions,
    started: Picos,
    messages_before: u64,
    lost: u64,
    /// Whether samples count.
    warm: bool,
}

impl Run<'_> {
    /// Goes once through `sizes`; why the measurement is over, if it is.
    fn sweep<L: Link<Error = LinkError>>(
        &mut self,
        (session, method): (&mut Initiator<'_, HostClock, L>, Method),
        sizes: &[u32],
        observer: &mut Observer<'_>,
    ) -> Result<Option<Conclusion>, MeasureError> {
        for &size in sizes {
            match repeat(session, method, size, self.options.messages)? {
                None => self.lost += 1,
                Some(samples) if self.warm => {
                    for sample in samples.as_slice() {
                        if self.store.insert(sample).is_err() {
                            return Ok(Some(Conclusion::MemorySpent));
                        }
                        self.samples.push(*sample);
                    }
                }
                Some(_) => {}
            }
            let progress = self.progress(session);
            if (observer.on_progress)(&progress).is_break() {
                return Ok(Some(Conclusion::Stopped));
            }
            if progress.spent_ppm >= 1_000_000 {
                return Ok(Some(if progress.messages >= self.options.max_messages {
                    Conclusion::MessagesSpent
                } else {
                    Conclusion::TimeSpent
                }));
            }
        }
        Ok(None)
    }

    fn progress<L: Link<Error = LinkError>>(
        &self,
        session: &Initiator<'_, HostClock, L>,
    ) -> Progress {
        let share = |part: u64, whole: u64| u128::from(part) * 1_000_000 / u128::from(whole.max(1));
        let messages = session.traffic().messages().saturating_sub(self.messages_before);
        let elapsed = now(session.clock()).since(self.started);
        let spent = share(elapsed.0, self.options.max_time.0)
            .max(share(messages, self.options.max_messages))
            .min(1_000_000);
        Progress {
            spent_ppm: u32::try_from(spent).unwrap_or(1_000_000),
            widest_ppm: None,
            messages,
            lost: self.lost,
        }
    }

    fn assess(&mut self) -> Result<Assessment, AssessError> {
        let mut memory = self.memory.lend();
        Assessment::new(&self.store, &self.options.assess, &mut memory)
    }

    fn has_converged(&mut self) -> Result<bool, AssessError> {
        Ok(self.assess()?.profile.converged())
    }
}

fn repeat<L: Link<Error = LinkError>>(
    session: &mut Initiator<'_, HostClock, L>,
    method: Method,
    size: u32,
    messages: u32,
) -> Result<Option<MethodSamples>, SessionError<LinkError>> {
    let options = MethodOptions { messages, ..MethodOptions::default() };
    match method {
        Method::Plogp => session.plogp(size, &options),
        Method::Prtt | Method::Signature => session.signature(size, &options),
    }
}

/// Fisher and Yates.
fn shuffle(sizes: &mut [u32], random: &mut Random) {
    for last in (1..sizes.len()).rev() {
        let other = random.below(last as u64 + 1);
        sizes.swap(last, usize::try_from(other).unwrap_or(last));
    }
}
