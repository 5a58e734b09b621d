//! Options that choose noise.

use std::path::PathBuf;

use loggap_core::noise::Phases;
use loggap_core::units::Picos;

use crate::cli::named_files::NamedFiles;
use crate::cli::{CliError, parse};
use crate::simulation::NoiseSource;

/// Time that the operating system takes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Noise")]
pub(super) struct NoiseArgs {
    /// Run through the detours of FILE, a trace as netgauge or 'loggap
    /// noise' writes it, on every rank.
    #[arg(long, value_name = "FILE", group = "noise_source")]
    noise: Option<PathBuf>,

    /// Take DURATION out of every PERIOD, in ns or with units, as 10ms:25us.
    #[arg(long, value_name = "PERIOD:DURATION", value_parser = periodic, group = "noise_source")]
    noise_periodic: Option<(Picos, Picos)>,

    /// Detours at random, with exponentially distributed times between them
    /// and durations; the means in ns or with units.
    #[arg(long, value_name = "INTERVAL:DURATION", value_parser = pair, group = "noise_source")]
    noise_exponential: Option<(Picos, Picos)>,

    /// All ranks have their detours at the same time [default: each at its own,
    /// by --seed].
    #[arg(long, requires = "noise_source")]
    noise_cosched: bool,
}

/// Two times in nanoseconds with a colon between.
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

impl NoiseArgs {
    /// Lists the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        files.read("--noise", self.noise.as_deref());
    }

    pub(super) fn source(&self, seed: u64) -> Result<Option<NoiseSource>, CliError> {
        let source = match (&self.noise, self.noise_periodic, self.noise_exponential) {
            (Some(path), ..) => NoiseSource::read(path),
            (_, Some((period, duration)), _) => NoiseSource::periodic(period, duration),
            (.., Some((interval, duration))) => NoiseSource::exponential(interval, duration, seed),
            _ => return Ok(None),
        };
        source.map(Some).map_err(CliError::usage)
    }

    pub(super) const fn phases(&self, seed: u64) -> Phases {
        if self.noise_cosched { Phases::Together { seed } } else { Phases::Drawn { seed } }
    }
}
