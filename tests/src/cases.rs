//! The results of the reference simulator in `data/loggopsim_cases.json`.

use crate::program::Program;
use loggap_core::goal::pattern::{Algorithm, Background, Options, Pattern};
use loggap_core::model::LogGops;
use loggap_core::units::{Bytes, PerByte, Picos};
use serde::Deserialize;
use serde_json::Value;

/// One result of the reference simulator.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Number of the case.
    pub id: u32,
    /// Who made the schedule: `schedgen`, `schedgen2` or `hand`.
    pub generator: String,
    /// Arguments of the generator.
    pub args: Option<Value>,
    /// Name of a schedule written by hand.
    pub name: Option<String>,
    /// The schedule, where no arguments determine it.
    pub goal: Option<String>,
    #[serde(rename = "L")]
    latency: u64,
    #[serde(rename = "o")]
    overhead: u64,
    #[serde(rename = "g")]
    gap: u64,
    #[serde(rename = "G")]
    gap_per_byte: u64,
    #[serde(rename = "O")]
    overhead_per_byte: u64,
    #[serde(rename = "S")]
    eager_limit: u64,
    /// Finishing time of each rank, in ns, up to 16 ranks.
    pub hosts: Option<Vec<u64>>,
    /// The latest of them.
    pub max: u64,
    /// Operations and messages.
    pub events: u64,
    /// The same with a stable sort of the released operations.
    pub hosts_with_stable_sort: Option<Vec<u64>>,
    /// The same with a stable sort of the released operations.
    pub max_with_stable_sort: Option<u64>,
    /// What the case depends on.
    pub tags: Vec<String>,
}

impl Case {
    /// All cases.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let text = include_str!("../data/loggopsim_cases.json");
        serde_json::from_str(text).expect("the file of cases is sound")
    }

    /// Whether the case has `tag`.
    #[must_use]
    pub fn tagged(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// The parameters, in the units of the core.
    #[must_use]
    pub fn parameters(&self) -> LogGops {
        let time = |nanos| Picos::from_nanos(nanos).expect("small");
        let per_byte = |nanos: u64| PerByte::from_picos(nanos * 1_000).expect("small");
        LogGops {
            latency: time(self.latency),
            overhead: time(self.overhead),
            gap: time(self.gap),
            gap_per_byte: per_byte(self.gap_per_byte),
            overhead_per_byte: per_byte(self.overhead_per_byte),
            eager_limit: Bytes(self.eager_limit),
        }
    }

    /// The pattern and options of a generated schedule; `None` for those
    /// written by hand and those that the reference drew from the clock.
    #[must_use]
    pub fn pattern(&self) -> Option<(Pattern, Options)> {
        match self.generator.as_str() {
            "schedgen" => schedgen(self.args.as_ref()?),
            "schedgen2" => schedgen2(self.args.as_ref()?.as_str()?),
            _ => None,
        }
    }

    /// The schedule.
    #[must_use]
    pub fn program(&self) -> Program {
        match (self.pattern(), &self.goal) {
            (Some((pattern, options)), _) => Program::of_pattern(pattern, &options),
            (None, Some(goal)) => Program::of_text(goal),
            (None, None) => panic!("case {} has no schedule", self.id),
        }
    }
}

fn schedgen(args: &Value) -> Option<(Pattern, Options)> {
    let number = |key: &str| args.get(key).and_then(Value::as_u64);
    let small = |key: &str, or: u32| number(key).map_or(or, |n| n as u32);
    let nanos = |key: &str| number(key).map(|n| Picos(n * 1_000));
    let pattern: Pattern = args["pattern"].as_str()?.parse().expect("a known pattern");
    if matches!(pattern, Pattern::RandomPairs | Pattern::RandomPairsBothWays) {
        return None;
    }
    let background = nanos("nb").map(|duration| Background {
        duration,
        poll: nanos("nb-poll"),
        cpu: small("cpu", 0) as u8,
    });
    let options = Options {
        root: small("root", 0),
        ways: small("nway", 1),
        segment: number("segmentsize"),
        compute: nanos("rpl-dep-cmp"),
        skew: small("a2av-skew-ratio", 1),
        outcast: number("outcast") == Some(1),
        background,
        ..Options::new(small("commsize", 0), number("datasize")?)
    };
    Some((pattern, options))
}

fn schedgen2(command: &str) -> Option<(Pattern, Options)> {
    let mut words = command.split_whitespace();
    let pattern = words.next()?.parse().expect("a known collective");
    let mut options = Options::new(0, 8);
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        let number = || value.parse().expect("a number");
        match key {
            "--ptrn" => options.algorithm = value.parse::<Algorithm>().expect("a known algorithm"),
            "--comm_size" => options.ranks = number(),
            "--datasize" => options.size = u64::from(number()),
            "--window_size" => options.window = Some(number()),
            "--num_comm_groups" => options.groups = number(),
            "--compute_time_dependency" => {
                options.compute = Some(Picos(u64::from(number()) * 1_000));
            }
            other => panic!("unknown option {other}"),
        }
    }
    Some((pattern, options))
}
