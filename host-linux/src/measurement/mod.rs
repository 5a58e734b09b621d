//! A measurement from the open link to the parameters: drives the core's
//! planner, session and assessment, and lends them memory.

mod error;
mod memory;
mod method;
mod planned;
mod repeated;

pub use error::MeasureError;
pub use memory::{AssessVecs, StoreVecs};
pub use method::Method;

use std::ops::ControlFlow;

use loggap_core::measure::{
    AssessError, AssessOptions, Assessment, Buffers, Clock, Conclusion, Initiator, Link,
    PlanOptions, Progress, Sample, SampleStore, SessionOptions, SizeRow, Traffic, coarse_sizes,
};
use loggap_core::units::Picos;
use loggap_core::wire::FRAME_LEN;

use crate::clock::HostClock;
use crate::link::{AnyLink, LinkError};
use crate::responder::present_bytes;

/// Sizes of a coarse sweep: powers of two and one size between each two, over
/// sixteen octaves.
const COARSE_SIZES: usize = 36;

/// Which sizes to measure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SizePlan {
    /// A coarse sweep over this span, with sizes added around changes. With
    /// `shrink` it ends where the link's messages do.
    Span {
        /// Smallest size in bytes.
        first: u32,
        /// Largest size in bytes.
        last: u32,
        /// Whether `last` may be lowered to what the link takes.
        shrink: bool,
    },
    /// Exactly these, in bytes.
    Listed(Vec<u32>),
}

impl SizePlan {
    /// The largest size in bytes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        match self {
            Self::Span { last, .. } => *last,
            Self::Listed(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// The sizes to begin with, of messages up to `longest` bytes.
    fn sizes(&self, longest: u32) -> Vec<u32> {
        match self {
            Self::Listed(sizes) => sizes.clone(),
            Self::Span { first, last, shrink } => {
                let last = if *shrink { (*last).min(longest) } else { *last };
                let mut sizes = vec![0; COARSE_SIZES];
                let count = coarse_sizes(*first, last, &mut sizes);
                sizes.truncate(count);
                sizes
            }
        }
    }

    const fn may_add(&self) -> bool {
        matches!(self, Self::Span { .. })
    }
}

/// What to measure, and how exactly.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How.
    pub method: Method,
    /// At which sizes.
    pub sizes: SizePlan,
    /// Exactness, budget and seed; whether sizes may be added follows from
    /// `sizes`.
    pub plan: PlanOptions,
}

/// Somebody to be told how it goes, who may break off.
pub struct Observer<'a> {
    /// The position in the responder's queue.
    pub on_queue: &'a mut dyn FnMut(u32) -> ControlFlow<()>,
    /// How far the measurement is, about as often as batches end.
    pub on_progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
}

impl std::fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// What came of a measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The parameters, and what there is to say about them.
    pub assessment: Assessment,
    /// The per-size table.
    pub rows: Vec<SizeRow>,
    /// Every sample that counts, in the order of measuring.
    pub samples: Vec<Sample>,
    /// What went over the link.
    pub traffic: Traffic,
    /// Why it ended.
    pub conclusion: Conclusion,
}

/// Measures over `link` and says goodbye.
///
/// # Errors
///
/// [`MeasureError`]: nothing can be said about the link.
pub fn run(
    clock: &HostClock,
    link: AnyLink,
    settings: &Settings,
    observer: &mut Observer<'_>,
) -> Result<Measurement, MeasureError> {
    match link {
        AnyLink::Tcp(link) => run_on(clock, link, settings, observer),
        AnyLink::Udp(link) => run_on(clock, link, settings, observer),
        AnyLink::Unix(link) => run_on(clock, link, settings, observer),
        AnyLink::Shm(link) => run_on(clock, link, settings, observer),
    }
}

fn run_on<L: Link<Error = LinkError>>(
    clock: &HostClock,
    link: L,
    settings: &Settings,
    observer: &mut Observer<'_>,
) -> Result<Measurement, MeasureError> {
    let length = usize::try_from(settings.sizes.largest()).unwrap_or(usize::MAX).max(FRAME_LEN);
    let (mut outgoing, mut incoming) = (present_bytes(length), present_bytes(length));
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions::default();
    let on_queue = |position| (observer.on_queue)(position);
    let mut session = Initiator::connect(*clock, link, buffers, options, on_queue)?;
    let sizes = sizes_within(&settings.sizes, session.bounds().message)?;
    let measured = match settings.method {
        Method::Prtt => planned::measure(&mut session, settings, &sizes, observer),
        Method::Signature | Method::Plogp => {
            repeated::measure(&mut session, settings, &sizes, observer)
        }
    }?;
    let traffic = *session.traffic();
    session.close()?;
    let Measured { assessment, rows, samples, conclusion } = measured;
    Ok(Measurement { assessment, rows, samples, traffic, conclusion })
}

/// A [`Measurement`] as long as the session is open.
struct Measured {
    assessment: Assessment,
    rows: Vec<SizeRow>,
    samples: Vec<Sample>,
    conclusion: Conclusion,
}

fn sizes_within(plan: &SizePlan, longest: u32) -> Result<Vec<u32>, MeasureError> {
    let sizes = plan.sizes(longest);
    match sizes.iter().copied().max() {
        None => Err(MeasureError::NoSizes),
        Some(size) if size > longest => Err(MeasureError::TooLong { size, longest }),
        Some(_) => Ok(sizes),
    }
}

/// After [`Conclusion::Stopped`] there may be too little to assess: then
/// nothing is known, which is no error.
fn partial(
    assessed: Result<Assessment, AssessError>,
    conclusion: Conclusion,
) -> Result<Assessment, AssessError> {
    match assessed {
        Err(AssessError::NoSamples) if conclusion == Conclusion::Stopped => {
            Ok(Assessment::default())
        }
        other => other,
    }
}

/// The clock's reading as a time.
fn now(clock: &HostClock) -> Picos {
    clock.duration(clock.now())
}

/// The per-size table of `store`.
pub(crate) fn rows(store: &SampleStore<'_>, options: &AssessOptions) -> Vec<SizeRow> {
    (0..store.len())
        .filter_map(|row| store.row(row, options.confidence, options.relative_error_ppm))
        .filter(|row| row.samples != [0; 4])
        .collect()
}
