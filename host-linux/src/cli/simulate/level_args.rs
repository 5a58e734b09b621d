//! Options for parameters of ranks that are near each other.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use loggap_core::model::{LogGops, Preset, Protocol, ReceiveOverhead, UnknownPreset};
use loggap_core::units::{Bytes, PerByte, Picos};

use crate::cli::parameter_args::{Origin, ParameterArgs, SettingsArgs};
use crate::cli::parameters_used::ParameterSource;
use crate::cli::profile_warnings;
use crate::flags::parse;
use crate::simulation::{ParameterSets, RankLocation, Source, read_locations};
use crate::terminal::{CliError, Console, NamedFiles};

/// Parameters of ranks that are near each other.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub(super) struct LevelArgs {
    /// Parameters between ranks of one block of RANKS, such as a node.
    ///
    /// Repeat for larger blocks, such as a rack. WHAT is a profile from 'loggap
    /// measure -o', a preset, or L=NS,o=NS,g=NS,G=NS/B[,O=NS/B][,S=BYTES], also
    /// with units; S defaults to -S. Other pairs take -L ... -S, --profile or
    /// --preset.
    #[arg(long, value_name = "RANKS:WHAT", conflicts_with_all = ["topology", "monte_carlo"])]
    level: Vec<NearRanks>,

    /// File with the node of each rank, from 0 on, or a rank and its node per
    /// line; --level then counts nodes: 1 is within one.
    #[arg(long, value_name = "FILE", requires = "level")]
    nodes: Option<PathBuf>,
}

/// One level: block size and parameters.
#[derive(Clone, Debug, Eq, PartialEq)]
struct NearRanks {
    places: NonZeroU32,
    what: What,
}

/// Source of a level's parameters.
#[derive(Clone, Debug, Eq, PartialEq)]
enum What {
    Listed(Listed),
    Preset(Preset),
    Profile(PathBuf),
}

/// Parameters listed in one argument.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Listed {
    /// Parameters; their eager limit is not used.
    set: LogGops,
    eager_limit: Option<Bytes>,
}

/// Why an argument is not a level.
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
            let nanos = || parse::time(value).map_err(|error| wrong(word, error));
            let per_byte = || parse::time_per_byte(value).map_err(|error| wrong(word, error));
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
    /// True if there are levels.
    pub(super) const fn are_given(&self) -> bool {
        !self.level.is_empty()
    }

    /// Sources of the levels' parameters, the nearest first.
    pub(super) fn sources(&self) -> Vec<ParameterSource> {
        let mut levels: Vec<&NearRanks> = self.level.iter().collect();
        levels.sort_by_key(|level| level.places);
        let source = |level: &NearRanks| {
            ParameterSource::from(match &level.what {
                What::Profile(path) => Origin::Profile(path),
                What::Preset(preset) => Origin::Preset(preset.name),
                What::Listed(_) => Origin::Options,
            })
        };
        levels.into_iter().map(source).collect()
    }

    /// Adds the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        for level in &self.level {
            if let What::Profile(path) = &level.what {
                files.read("--level", Some(path));
            }
        }
        files.read("--nodes", self.nodes.as_deref());
    }

    /// Adds the levels to `far`, sorted by nearness. Warns of parameters of their profiles that did
    /// not converge.
    pub(super) fn add_to(
        &self,
        far: ParameterSets,
        parameters: &ParameterArgs,
        settings: SettingsArgs,
        console: &mut Console,
    ) -> Result<ParameterSets, CliError> {
        let mut levels: Vec<&NearRanks> = self.level.iter().collect();
        levels.sort_by_key(|level| level.places);
        let twice = levels.iter().zip(levels.iter().skip(1));
        if let Some((level, _)) = twice.into_iter().find(|(one, next)| one.places == next.places) {
            return Err(CliError::usage(format_args!(
                "--level {}: is given twice; leave one out",
                level.places
            )));
        }
        let mut sets = far;
        for level in levels {
            let near = match &level.what {
                What::Profile(path) if !path.exists() => {
                    return Err(CliError::usage(format_args!(
                        "--level {}: '{}' is no file, and {UnknownPreset}",
                        level.places,
                        path.display()
                    )));
                }
                What::Profile(path) => {
                    let (sets, document) = parameters.sets_of_profile(path, settings)?;
                    profile_warnings::not_converged(path, &document, console);
                    sets
                }
                What::Preset(preset) => preset_sets(preset, parameters),
                What::Listed(Listed { set, eager_limit }) => {
                    let eager_limit = eager_limit.unwrap_or(parameters.eager_limit(None));
                    let parameters = LogGops { eager_limit, ..*set };
                    ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new())
                }
            };
            sets = sets.with_level(level.places, near);
        }
        if let Some(path) = &self.nodes {
            sets.places = read_locations(path, RankLocation::Node).map_err(CliError::usage)?;
        }
        Ok(sets)
    }

    /// Refuses ranks of `source` with an unknown node, and warns of options without effect.
    pub(super) fn check(
        &self,
        sets: &ParameterSets,
        source: &Source,
        console: &mut Console,
    ) -> Result<(), CliError> {
        let (known, ranks) = (sets.places.len(), source.ranks() as usize);
        if let Some(path) = &self.nodes {
            let path = path.display();
            if known < ranks {
                let told = format!("{path}: nodes for {known} of {ranks} ranks");
                return Err(CliError::usage(told));
            }
            if known > ranks {
                console.warn(format_args!(
                    "{path}: nodes of {known} ranks, and there are {ranks}; those of the first are \
                     taken"
                ));
            }
        }
        let mut nearer = ranks;
        for level in &sets.levels {
            let (block, blocks) = (level.places, blocks(sets, level.places, ranks));
            if blocks == nearer && ranks > 1 {
                let hint = if self.nodes.is_some() { "" } else { "; --nodes FILE counts nodes" };
                console.warn(format_args!(
                    "--level {block} has no effect: no two ranks are within {block} and not nearer\
                     {hint}"
                ));
            }
            nearer = blocks;
        }
        if let Some(last) = sets.levels.last()
            && nearer <= 1
        {
            console.warn(format_args!(
                "all {ranks} ranks are within --level {}: the parameters of other pairs (-L … -S, \
                 --profile or --preset) have no effect",
                last.places
            ));
        }
        Ok(())
    }
}

/// Number of blocks of `block` places that contain a rank.
fn blocks(sets: &ParameterSets, block: NonZeroU32, ranks: usize) -> usize {
    if sets.places.is_empty() {
        return ranks.div_ceil(usize::try_from(block.get()).unwrap_or(usize::MAX));
    }
    let blocks = sets.places.iter().take(ranks).map(|place| *place / block);
    blocks.collect::<BTreeSet<_>>().len()
}

fn preset_sets(preset: &Preset, parameters: &ParameterArgs) -> ParameterSets {
    let mut protocols = preset.protocols.to_vec();
    parameters.limit(&mut protocols);
    let mut receive = Vec::new();
    if let Some([send, overhead]) = preset.ends {
        for protocol in &mut protocols {
            let ReceiveOverhead { overhead_per_byte, .. } = protocol.parameters.receive_overhead();
            receive.push(ReceiveOverhead { overhead, overhead_per_byte });
            protocol.parameters.overhead = send;
        }
    }
    ParameterSets::new(protocols, receive)
}
