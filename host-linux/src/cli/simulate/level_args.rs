//! Options that give near ranks parameters of their own.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use loggap_core::model::{LogGops, Preset, Protocol};
use loggap_core::units::{Bytes, PerByte, Picos};

use crate::cli::parameter_args::ParameterArgs;
use crate::cli::{CliError, parse};
use crate::simulation::{ParameterSets, Source, read_hosts};

/// Parameters of ranks that are near each other.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub(super) struct LevelArgs {
    /// What messages cost between ranks of one block of RANKS, such as those of a
    /// node; again for larger blocks, such as a rack. WHAT is a profile that
    /// 'loggap measure -o' made, a preset, or L=NS,o=NS,g=NS,G=NS/B[,O=NS/B][,S=BYTES].
    /// Other pairs take -L … -S, --profile or --preset.
    #[arg(long, value_name = "RANKS:WHAT", conflicts_with_all = ["topology", "monte_carlo"])]
    level: Vec<NearRanks>,

    /// The node of each rank, from 0 on; --level then counts nodes: 1 is within
    /// one.
    #[arg(long, value_name = "FILE", requires = "level")]
    nodes: Option<PathBuf>,
}

/// One level.
#[derive(Clone, Debug, Eq, PartialEq)]
struct NearRanks {
    places: NonZeroU32,
    what: What,
}

/// Where its parameters are from.
#[derive(Clone, Debug, Eq, PartialEq)]
enum What {
    Listed(Listed),
    Preset(Preset),
    Profile(PathBuf),
}

/// Parameters in one word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Listed {
    /// Without S.
    set: LogGops,
    eager_limit: Option<Bytes>,
}

/// Why a level is none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
enum LevelError {
    #[error("expected RANKS:WHAT, such as 8:node.json")]
    Form,
    #[error("'{0}' is no number of ranks from 1 on")]
    Ranks(String),
    #[error(
        "'{0}' is none of L=NS, o=NS, g=NS, G=NS/B, O=NS/B and S=BYTES; expected L, o, g and G at least, each once"
    )]
    Parameter(String),
    #[error("{0} is missing; expected L, o, g and G at least")]
    Missing(&'static str),
    #[error("'{0}': {1}")]
    Value(String, String),
}

impl FromStr for NearRanks {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        let (ranks, what) = text.split_once(':').ok_or(LevelError::Form)?;
        let places = ranks.parse().map_err(|_| LevelError::Ranks(ranks.to_owned()))?;
        let what = match what {
            "" => return Err(LevelError::Form),
            listed if listed.contains('=') => What::Listed(listed.parse()?),
            named => match named.parse() {
                Ok(preset) => What::Preset(preset),
                Err(_) => What::Profile(named.into()),
            },
        };
        Ok(Self { places, what })
    }
}

impl FromStr for Listed {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        let (mut times, mut per_bytes, mut limit) = ([None; 3], [None; 2], None);
        for word in text.split(',') {
            let unknown = || LevelError::Parameter(word.to_owned());
            let (name, value) = word.split_once('=').ok_or_else(unknown)?;
            let nanos = || parse::nanos(value).map_err(|error| wrong(word, error));
            let per_byte = || parse::nanos_per_byte(value).map_err(|error| wrong(word, error));
            let [latency, overhead, gap] = &mut times;
            let [gap_per_byte, overhead_per_byte] = &mut per_bytes;
            let again = match name {
                "L" => latency.replace(nanos()?).is_some(),
                "o" => overhead.replace(nanos()?).is_some(),
                "g" => gap.replace(nanos()?).is_some(),
                "G" => gap_per_byte.replace(per_byte()?).is_some(),
                "O" => overhead_per_byte.replace(per_byte()?).is_some(),
                "S" => {
                    let bytes = parse::size(value).map_err(|error| wrong(word, error))?;
                    limit.replace(Bytes(bytes)).is_some()
                }
                _ => return Err(unknown()),
            };
            if again {
                return Err(unknown());
            }
        }
        let [latency, overhead, gap] = times;
        let [gap_per_byte, overhead_per_byte] = per_bytes;
        let time = |name, value: Option<Picos>| value.ok_or(LevelError::Missing(name));
        let set = LogGops {
            latency: time("L", latency)?,
            overhead: time("o", overhead)?,
            gap: time("g", gap)?,
            gap_per_byte: gap_per_byte.ok_or(LevelError::Missing("G"))?,
            overhead_per_byte: overhead_per_byte.unwrap_or(PerByte::ZERO),
            eager_limit: Bytes(0),
        };
        Ok(Self { set, eager_limit: limit })
    }
}

fn wrong(word: &str, error: impl std::fmt::Display) -> LevelError {
    LevelError::Value(word.to_owned(), error.to_string())
}

impl LevelArgs {
    /// Whether there are levels.
    pub(super) const fn are_given(&self) -> bool {
        !self.level.is_empty()
    }

    /// `far` with the levels, the nearest first whatever their order.
    pub(super) fn add_to(
        &self,
        far: ParameterSets,
        parameters: &ParameterArgs,
    ) -> Result<ParameterSets, CliError> {
        let mut levels: Vec<&NearRanks> = self.level.iter().collect();
        levels.sort_by_key(|level| level.places);
        let mut sets = far;
        for level in levels {
            let near = match &level.what {
                What::Profile(path) => parameters.sets_of_profile(path)?.0,
                What::Preset(preset) => preset_sets(preset, parameters),
                What::Listed(Listed { set, eager_limit }) => {
                    let eager_limit = eager_limit.unwrap_or(parameters.profile_eager_limit());
                    let parameters = LogGops { eager_limit, ..*set };
                    ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new())
                }
            };
            sets = sets.with_level(level.places, near);
        }
        if let Some(path) = &self.nodes {
            sets.places = read_hosts(path).map_err(CliError::usage)?;
        }
        Ok(sets)
    }

    /// Whether the nodes of all ranks of `source` are known.
    pub(super) fn check(&self, sets: &ParameterSets, source: &Source) -> Result<(), CliError> {
        let (known, ranks) = (sets.places.len(), source.ranks());
        match &self.nodes {
            Some(path) if known < ranks as usize => Err(CliError::usage(format_args!(
                "{}: nodes for {known} of {ranks} ranks",
                path.display()
            ))),
            _ => Ok(()),
        }
    }
}

fn preset_sets(preset: &Preset, parameters: &ParameterArgs) -> ParameterSets {
    let mut protocols = preset.protocols.to_vec();
    parameters.limit(&mut protocols);
    ParameterSets::new(protocols, Vec::new())
}
