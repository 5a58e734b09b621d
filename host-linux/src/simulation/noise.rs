//! Noise, from files or generated.

use std::io;
use std::path::{Path, PathBuf};

use loggap_core::noise::{self, Detour, InvalidTrace, Phases, Trace};
use loggap_core::sim::TraceNoise;
use loggap_core::units::Picos;

use super::RunError;

/// Limit on the length of a noise trace: 1 GiB.
const LONGEST: u64 = 1 << 30;
/// Number of detours of generated noise before it repeats.
const DETOURS: usize = 100_000;

/// Detours, and the period with which they repeat.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NoiseSource {
    detours: Vec<Detour>,
    length: Option<Picos>,
    /// Prefix sums of the detours' durations.
    sums: Vec<Picos>,
}

/// Summary of the noise of one rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoiseSummary {
    /// Detours in a period.
    pub detours: usize,
    /// Period.
    pub length: Picos,
    /// Total duration of the detours in a period.
    pub total: Picos,
    /// The longest detour.
    pub longest: Picos,
}

/// Why noise is invalid.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// The file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The file is longer than the limit, in bytes.
    #[error("{path}: longer than {1} bytes, the most that are read", path = .0.display())]
    TooLong(PathBuf, u64),
    /// The file is no valid noise trace.
    #[error("{path}: {1}", path = .0.display())]
    Text(PathBuf, noise::NoiseError),
    /// The detours in the file are invalid.
    #[error("{path}: {1}", path = .0.display())]
    InvalidFile(PathBuf, InvalidTrace),
    /// The requested detours are invalid.
    #[error("noise: {0}")]
    Invalid(InvalidTrace),
}

impl NoiseSource {
    /// Reads a noise trace in the format of netgauge or of loggap.
    ///
    /// # Errors
    ///
    /// [`NoiseError`] with the file and the error, with line and column.
    pub fn read(path: &Path) -> Result<Self, NoiseError> {
        let failed = |error| NoiseError::Io(path.to_owned(), error);
        let mut text = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        io::Read::read_to_end(&mut io::Read::take(file, LONGEST + 1), &mut text).map_err(failed)?;
        if text.len() as u64 > LONGEST {
            return Err(NoiseError::TooLong(path.to_owned(), LONGEST));
        }
        let mut detours = vec![Detour::default(); noise::count(&text)];
        let (_, length) = noise::read(&text, &mut detours)
            .map_err(|error| NoiseError::Text(path.to_owned(), error))?;
        Self::checked(detours, length)
            .map_err(|error| NoiseError::InvalidFile(path.to_owned(), error))
    }

    /// Noise with a detour of `duration` every `period`.
    ///
    /// # Errors
    ///
    /// [`NoiseError::Invalid`] if the detour is longer than the period.
    pub fn periodic(period: Picos, duration: Picos) -> Result<Self, NoiseError> {
        let detours = vec![noise::periodic(period, duration)];
        Self::checked(detours, Some(period)).map_err(NoiseError::Invalid)
    }

    /// Noise with exponentially distributed intervals and durations, with these means.
    ///
    /// # Errors
    ///
    /// [`NoiseError::Invalid`] if both means are 0.
    pub fn exponential(interval: Picos, duration: Picos, seed: u64) -> Result<Self, NoiseError> {
        let mut detours = vec![Detour::default(); DETOURS];
        noise::exponential(&mut detours, interval, duration, seed);
        Self::checked(detours, None).map_err(NoiseError::Invalid)
    }

    fn checked(detours: Vec<Detour>, length: Option<Picos>) -> Result<Self, InvalidTrace> {
        Trace::new(&detours, length)?;
        let mut sums = vec![Picos::ZERO; detours.len()];
        noise::sum_up(&detours, &mut sums);
        Ok(Self { detours, length, sums })
    }

    /// Summary of one rank's noise.
    #[must_use]
    pub fn summary(&self) -> NoiseSummary {
        let durations = self.detours.iter().map(|detour| detour.duration);
        let length = self.trace().map_or(Picos::ZERO, |trace| trace.length());
        NoiseSummary {
            detours: self.detours.len(),
            length,
            total: self.sums.last().copied().unwrap_or_default(),
            longest: durations.max().unwrap_or_default(),
        }
    }

    /// The noise as a trace.
    ///
    /// # Errors
    ///
    /// None, because the source was checked when it was created.
    pub fn trace(&self) -> Result<Trace<'_>, InvalidTrace> {
        Ok(Trace::new(&self.detours, self.length)?.with_sums(&self.sums))
    }
}

/// Evaluates an expression with the noise of a run, statically dispatched: `with_noise!(phased,
/// noise => run(noise))`. Returns from the enclosing function if the noise is invalid.
macro_rules! with_noise {
    ($noise:expr, $one:ident => $does:expr) => {
        match $noise {
            None => {
                let $one = loggap_core::sim::NoNoise;
                $does
            }
            Some(noise) => {
                let $one = $crate::simulation::noise::trace_noise(noise)?;
                $does
            }
        }
    };
}

pub(super) use with_noise;

/// Noise, and the phase at which each rank starts.
#[derive(Clone, Copy, Debug)]
pub struct PhasedNoise<'a> {
    /// Noise.
    pub source: &'a NoiseSource,
    /// Phases of the ranks.
    pub phases: Phases,
    /// See [`TraceNoise::names`].
    pub names: &'a [u32],
}

/// The noise in the form that simulations take.
pub(super) fn trace_noise(noise: PhasedNoise<'_>) -> Result<TraceNoise<'_>, RunError> {
    let PhasedNoise { source, phases, names } = noise;
    Ok(TraceNoise { trace: source.trace()?, phases, names })
}
