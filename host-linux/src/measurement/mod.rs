//! A measurement from the open link to the parameters: drives the core's
//! planner, session and assessment, and lends them memory.

mod analysis;
mod error;
mod method;
mod repeated;

pub use analysis::{Analysis, AnalysisError};
pub use error::MeasureError;
pub use method::Method;

use loggap_core::measure::{
    AssessError, Conclusion, Link, PlanOptions, Sample, SessionOptions, Traffic, coarse_sizes,
};

use crate::clock::HostClock;
use crate::drive::{self, Listener, drive};
use crate::link::{AnyLink, LinkError};

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

/// What came of a measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Parameters and per-size table.
    pub analysis: Analysis,
    /// Every sample that counts, in the order of measuring.
    pub samples: Vec<Sample>,
    /// What went over the link.
    pub traffic: Traffic,
    /// Why it ended.
    pub conclusion: Conclusion,
}

/// Measures over `link` and says goodbye. `listener` is told how it goes and
/// may break off; what was measured until then is assessed.
///
/// # Errors
///
/// [`MeasureError`]: nothing can be said about the link.
pub fn run(
    clock: &HostClock,
    link: AnyLink,
    settings: &Settings,
    listener: &mut impl Listener,
) -> Result<Measurement, MeasureError> {
    match link {
        AnyLink::Tcp(link) => run_on(clock, link, settings, listener),
        AnyLink::Udp(link) => run_on(clock, link, settings, listener),
        AnyLink::Unix(link) => run_on(clock, link, settings, listener),
        AnyLink::Shm(link) => run_on(clock, link, settings, listener),
        AnyLink::Eth(link) => run_on(clock, link, settings, listener),
    }
}

fn run_on<L: Link<Error = LinkError>>(
    clock: &HostClock,
    link: L,
    settings: &Settings,
    listener: &mut impl Listener,
) -> Result<Measurement, MeasureError> {
    let longest = u32::try_from(link.properties().max_message.0).unwrap_or(u32::MAX);
    let sizes = sizes_within(&settings.sizes, longest)?;
    let measured = match settings.method {
        Method::Prtt => {
            let adapt_sizes = settings.sizes.may_add();
            let options = PlanOptions { adapt_sizes, ..settings.plan };
            drive(clock, link, &sizes, (options, SessionOptions::default()), listener)?
        }
        Method::Signature | Method::Plogp => {
            repeated::measure(clock, link, settings, &sizes, listener)?
        }
    };
    let drive::Measured { samples, traffic, conclusion, .. } = measured;
    let analysis = match Analysis::of_samples(&samples, &settings.plan.assess) {
        Ok(analysis) => analysis,
        // After breaking off early there may be too little to assess: then
        // nothing is known, which is no error.
        Err(AnalysisError::Assess(AssessError::NoSamples)) if conclusion == Conclusion::Stopped => {
            Analysis::default()
        }
        Err(error) => return Err(MeasureError::Analysis(error)),
    };
    Ok(Measurement { analysis, samples, traffic, conclusion })
}

fn sizes_within(plan: &SizePlan, longest: u32) -> Result<Vec<u32>, MeasureError> {
    let sizes = plan.sizes(longest);
    match sizes.iter().copied().max() {
        None => Err(MeasureError::NoSizes),
        Some(size) if size > longest => Err(MeasureError::TooLong { size, longest }),
        Some(_) => Ok(sizes),
    }
}
