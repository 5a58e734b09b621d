//! `loggap study`: studies made of many simulations or measurements.

mod algorithms;
mod contention;
mod messages;
mod noise;
mod overlap;
mod pipelining;

use crate::flags::parse::Sizes;
use crate::terminal::{CliError, Console, Exit};

/// Memory limit of one simulation of a study, bytes.
const MOST_BYTES: u64 = 8 << 30;
/// Numbers of ranks, each from 1 to 4G - 1.
fn numbers_of_ranks(ranks: &Sizes) -> Result<Vec<u32>, CliError> {
    let narrow = |ranks: u64| u32::try_from(ranks).ok().filter(|&ranks| ranks > 0);
    let ranks: Option<Vec<u32>> = ranks.list().into_iter().map(narrow).collect();
    ranks.ok_or_else(|| CliError::usage("--ranks takes numbers from 1 to 4G - 1"))
}

/// Answer a question by a series of simulations or measurements.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, clap::Subcommand)]
enum Study {
    Pipelining(pipelining::Args),
    Overlap(Box<overlap::Args>),
    Messages(Box<messages::Args>),
    Noise(Box<noise::Args>),
    Algorithms(Box<algorithms::Args>),
    Contention(contention::Args),
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    match &args.study {
        Study::Pipelining(args) => pipelining::run(args, console),
        Study::Overlap(args) => overlap::run(args, console),
        Study::Messages(args) => messages::run(args, console),
        Study::Noise(args) => noise::run(args, console),
        Study::Algorithms(args) => algorithms::run(args, console),
        Study::Contention(args) => contention::run(args, console),
    }
}
