//! Noise from files, and made up.

use std::io;
use std::path::{Path, PathBuf};

use loggap_core::noise::{self, Detour, InvalidTrace, Phases, Trace};
use loggap_core::sim::TraceNoise;
use loggap_core::units::Picos;

use super::RunError;

/// The longest noise trace that is read: 1 GiB.
const LONGEST: u64 = 1 << 30;
/// Detours of made-up noise until it repeats.
const DETOURS: usize = 100_000;

/// Detours, and the period with which they repeat.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NoiseSource {
    detours: Vec<Detour>,
    length: Option<Picos>,
    /// Of each detour the duration of all up to it.
    sums: Vec<Picos>,
}

/// Noise of one rank: detours that repeat with a period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoiseSummary {
    /// Detours of one period.
    pub detours: usize,
    /// The period.
    pub length: Picos,
    /// Duration of all detours of one period.
    pub total: Picos,
    /// The longest detour.
    pub longest: Picos,
}

/// Why noise cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// The file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The file is longer than this many bytes.
    #[error("{path}: longer than {1} bytes, the most that are read", path = .0.display())]
    TooLong(PathBuf, u64),
    /// The file is no noise trace.
    #[error("{path}: {1}", path = .0.display())]
    Text(PathBuf, noise::NoiseError),
    /// The detours in the file are no trace.
    #[error("{path}: {1}", path = .0.display())]
    InvalidFile(PathBuf, InvalidTrace),
    /// The detours that were asked for are no trace.
    #[error("noise: {0}")]
    Invalid(InvalidTrace),
}

impl NoiseSource {
    /// Reads a trace of netgauge or our own.
    ///
    /// # Errors
    ///
    /// [`NoiseError`] names the file and what is wrong, with line and column.
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

    /// A detour of `duration` once every `period`.
    ///
    /// # Errors
    ///
    /// [`NoiseError::Invalid`] when a detour is longer than the period.
    pub fn periodic(period: Picos, duration: Picos) -> Result<Self, NoiseError> {
        let detours = vec![noise::periodic(period, duration)];
        Self::checked(detours, Some(period)).map_err(NoiseError::Invalid)
    }

    /// Quiet times and detours of random length with these means.
    ///
    /// # Errors
    ///
    /// [`NoiseError::Invalid`] when both means are 0.
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

    /// Detours, period, total and longest duration of one rank's noise.
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

    /// The trace.
    ///
    /// # Errors
    ///
    /// None for a source that was made without: it was checked.
    pub fn trace(&self) -> Result<Trace<'_>, InvalidTrace> {
        Ok(Trace::new(&self.detours, self.length)?.with_sums(&self.sums))
    }
}

/// Does something with the noise of a run, which returns where there is none to
/// be had: `with_noise!(phased, noise => run(noise))`.
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

/// Noise, and where in it ranks begin.
#[derive(Clone, Copy, Debug)]
pub struct PhasedNoise<'a> {
    /// The noise.
    pub source: &'a NoiseSource,
    /// Where ranks begin.
    pub phases: Phases,
}

/// As a simulation takes it.
pub(super) fn trace_noise(noise: PhasedNoise<'_>) -> Result<TraceNoise<'_>, RunError> {
    let PhasedNoise { source, phases } = noise;
    Ok(TraceNoise { trace: source.trace().map_err(RunError::Noise)?, phases })
}
