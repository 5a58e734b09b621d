//! Options of noise.

use std::path::PathBuf;

use loggap_core::noise::Phases;
use loggap_core::units::Picos;
use serde::Serialize;

use crate::cli::digits::Digits;
use crate::flags::parse;
use crate::output::number;
use crate::simulation::{NoiseSource, NoiseSummary};
use crate::terminal::{CliError, NamedFiles};

/// Noise of the operating system.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Noise")]
pub(in crate::cli) struct NoiseArgs {
    /// Noise trace replayed on every rank, of 'loggap noise' or netgauge.
    #[arg(long, value_name = "FILE", group = "noise_source")]
    noise: Option<PathBuf>,

    /// A detour of DURATION in every PERIOD, as 10ms:25us.
    #[arg(long, value_name = "PERIOD:DURATION", value_parser = periodic, group = "noise_source")]
    noise_periodic: Option<(Picos, Picos)>,

    /// Random detours; means of exponential distributions, as 10ms:25us.
    #[arg(long, value_name = "INTERVAL:DURATION", value_parser = pair, group = "noise_source")]
    noise_exponential: Option<(Picos, Picos)>,

    /// Same detours on all ranks at the same time [default: random phases, by
    /// --seed].
    #[arg(long, requires = "noise_source")]
    noise_cosched: bool,
}

/// Parses two times in nanoseconds, separated by a colon.
pub(super) fn pair(text: &str) -> Result<(Picos, Picos), String> {
    let (first, second) =
        text.split_once(':').ok_or("expected two times in ns, such as 1000000:2500")?;
    let nanos = |text| parse::time(text).map_err(|error| error.to_string());
    Ok((nanos(first)?, nanos(second)?))
}

fn periodic(text: &str) -> Result<(Picos, Picos), String> {
    let (period, duration) = pair(text)?;
    if duration < period {
        Ok((period, duration))
    } else {
        Err("DURATION has to be shorter than PERIOD".into())
    }
}

/// Noise applied to every rank.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct NoiseDocument {
    /// Number of detours in a period.
    detours: usize,
    period_s: f64,
    /// Fraction of the time that detours take.
    pub(in crate::cli) time_share: f64,
    longest_s: f64,
    /// True if all ranks have their detours at the same time.
    cosched: bool,
    #[serde(skip)]
    period: Picos,
    #[serde(skip)]
    longest: Picos,
}

#[allow(clippy::cast_precision_loss, reason = "a share of few digits")]
fn share(part: Picos, whole: Picos) -> f64 {
    part.0 as f64 / whole.0.max(1) as f64
}

impl NoiseDocument {
    /// Line for the report.
    pub(in crate::cli) fn text(&self, digits: Digits) -> String {
        let detours = number::count(self.detours as u64);
        let plural = if self.detours == 1 { "" } else { "s" };
        format!(
            "{detours} detour{plural} in {}, {}% of the time, the longest {}; {}",
            digits.time(self.period.0),
            number::significant(self.time_share * 100.0),
            digits.time(self.longest.0),
            if self.cosched { "at the same time on all ranks" } else { "at random phases" },
        )
    }
}

impl NoiseArgs {
    /// Adds the files of these options.
    pub(in crate::cli) fn name_files(&self, files: &mut NamedFiles) {
        files.read("--noise", self.noise.as_deref());
    }

    pub(in crate::cli) fn source(&self, seed: u64) -> Result<Option<NoiseSource>, CliError> {
        let source = match (&self.noise, self.noise_periodic, self.noise_exponential) {
            (Some(path), ..) => NoiseSource::read(path),
            (_, Some((period, duration)), _) => NoiseSource::periodic(period, duration),
            (.., Some((interval, duration))) => NoiseSource::exponential(interval, duration, seed),
            _ => return Ok(None),
        };
        source.map(Some).map_err(CliError::usage)
    }

    /// Description of the noise for the report.
    pub(in crate::cli) fn document(&self, source: &NoiseSource) -> NoiseDocument {
        let NoiseSummary { detours, length, total, longest } = source.summary();
        NoiseDocument {
            detours,
            period_s: length.seconds(),
            time_share: share(total, length),
            longest_s: longest.seconds(),
            cosched: self.noise_cosched,
            period: length,
            longest,
        }
    }

    pub(in crate::cli) const fn phases(&self, seed: u64) -> Phases {
        if self.noise_cosched { Phases::Together { seed } } else { Phases::Drawn { seed } }
    }
}
