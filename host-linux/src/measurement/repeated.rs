//! The methods that repeat one procedure per size: sweeps over all sizes in
//! random order until every number is exact enough or the budget is spent.

use loggap_core::measure::{
    Assessment, Buffers, Clock, Conclusion, Initiator, Link, MethodOptions, MethodSamples,
    PlanOptions, Progress, RowHeader, Sample, SampleStore, SessionError, SessionOptions,
    StoreRequirements,
};
use loggap_core::random::Random;
use loggap_core::units::Picos;
use loggap_core::wire::FRAME_LEN;

use super::{MeasureError, Method, Settings};
use crate::clock::HostClock;
use crate::drive::{AssessBuffers, Listener, Measured, repetitions};
use crate::link::LinkError;
use crate::responder::present_bytes;

/// Sweeps before the first assessment: enough for an interval at 95% that
/// stands outliers.
const FIRST_SWEEPS: u64 = 8;

pub(super) fn measure<L: Link<Error = LinkError>>(
    clock: &HostClock,
    link: L,
    settings: &Settings,
    sizes: &[u32],
    listener: &mut impl Listener,
) -> Result<Measured, MeasureError> {
    let options = &settings.plan;
    let required = StoreRequirements::new(sizes.len(), repetitions(options))
        .ok_or(MeasureError::TooManySizes(sizes.len()))?;
    let mut headers = vec![RowHeader::default(); required.rows];
    let mut values = vec![0; required.values];
    let length = usize::try_from(settings.sizes.largest()).unwrap_or(usize::MAX).max(FRAME_LEN);
    let (mut outgoing, mut incoming) = (present_bytes(length), present_bytes(length));
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let on_queue = |position| listener.on_queue(position);
    let session = Initiator::connect(clock, link, buffers, SessionOptions::default(), on_queue)?;
    let mut run = Run {
        store: SampleStore::new(&mut headers, &mut values),
        memory: AssessBuffers::new(sizes.len(), options.assess.max_changes),
        samples: Vec::new(),
        options,
        method: settings.method,
        started: now(clock),
        session,
        lost: 0,
        warm: false,
    };
    let conclusion = run.sweeps(sizes, listener)?;
    let mut memory = run.memory.lend();
    let assessment = Assessment::new(&run.store, &options.assess, &mut memory);
    let traffic = *run.session.traffic();
    let wall = now(clock).since(run.started);
    // Everything is measured: a goodbye that does not arrive changes nothing.
    let _unheard = run.session.close();
    Ok(Measured { samples: run.samples, assessment, traffic, conclusion, wall })
}

struct Run<'a, L> {
    session: Initiator<'a, &'a HostClock, L>,
    store: SampleStore<'a>,
    memory: AssessBuffers,
    samples: Vec<Sample>,
    options: &'a PlanOptions,
    method: Method,
    started: Picos,
    lost: u64,
    /// Whether samples count.
    warm: bool,
}

impl<L: Link<Error = LinkError>> Run<'_, L> {
    fn sweeps(
        &mut self,
        sizes: &[u32],
        listener: &mut impl Listener,
    ) -> Result<Conclusion, SessionError<LinkError>> {
        let mut order = sizes.to_vec();
        let mut random = Random::new(self.options.seed);
        for sweep in 0_u64.. {
            shuffle(&mut order, &mut random);
            if let Some(conclusion) = self.sweep(&order, listener)? {
                return Ok(conclusion);
            }
            // The first sweep has warmed the link up and did not count.
            self.warm = true;
            if sweep >= FIRST_SWEEPS && self.has_converged() {
                break;
            }
        }
        Ok(Conclusion::Converged)
    }

    /// Goes once through `sizes`; why the measurement is over, if it is.
    fn sweep(
        &mut self,
        sizes: &[u32],
        listener: &mut impl Listener,
    ) -> Result<Option<Conclusion>, SessionError<LinkError>> {
        for &size in sizes {
            match repeat(&mut self.session, self.method, size, self.options.messages)? {
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
            let progress = self.progress();
            if listener.on_progress(&progress).is_break() {
                return Ok(Some(Conclusion::Stopped));
            }
            if progress.messages >= self.options.max_messages {
                return Ok(Some(Conclusion::MessagesSpent));
            }
            if progress.spent_ppm >= 1_000_000 {
                return Ok(Some(Conclusion::TimeSpent));
            }
        }
        Ok(None)
    }

    fn progress(&self) -> Progress {
        let share = |part: u64, whole: u64| u128::from(part) * 1_000_000 / u128::from(whole.max(1));
        let messages = self.session.traffic().messages();
        let elapsed = now(self.session.clock()).since(self.started);
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

    /// Whether every number is exact enough; not when there is none.
    fn has_converged(&mut self) -> bool {
        let mut memory = self.memory.lend();
        let assessed: Result<Assessment, _> =
            Assessment::new(&self.store, &self.options.assess, &mut memory);
        assessed.is_ok_and(|assessment| assessment.profile.converged())
    }
}

fn repeat<L: Link<Error = LinkError>>(
    session: &mut Initiator<'_, &HostClock, L>,
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

fn now(clock: &HostClock) -> Picos {
    clock.duration(clock.now())
}
