//! `loggap study contention`: requests and replies between several processes at the same time.

use std::{iter, thread};

use crate::flags::contention::ContentionArgs;
use crate::link::Transport;
use crate::study::contention::{Local, Report, processors};
use crate::terminal::{CliError, Console, Exit, end_on_request};

/// How does a link serve several processes at the same time?
///
/// Starts processes on this machine that exchange requests and replies, and compares the gap of a
/// requester with that of a single pair (section 3.5 and Table 4 of "LogP Performance
/// Assessment of Fast Network Interfaces"): K-to-1, K requesters of one replier, whose gap is K times as long where the replier
/// is the bottleneck; 1-to-K, one requester of K repliers, 1 or less; and K pairs, 1. Only the span in
/// which all are active counts.
///
/// Exits with 4 if each row has fewer processors (cores) than processes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap study contention
  loggap study contention --transport shm --processes 2,4,8 -J
  loggap study contention --handler-time 20us --max-time 30")]
pub(super) struct Args {
    /// Transport: tcp, unix or shm.
    #[arg(long, value_name = "TRANSPORT", default_value = "tcp", value_parser = transport)]
    transport: Transport,
    #[command(flatten)]
    study: ContentionArgs,
}

fn transport(name: &str) -> Result<Transport, String> {
    let known = [Transport::Tcp, Transport::Unix, Transport::Shm];
    let found = known.into_iter().find(|transport| transport.name() == name);
    found.ok_or_else(|| "expected tcp, unix or shm".to_owned())
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let cpus = processors();
    // A control group may leave fewer than it names.
    let most = cpus.len().min(thread::available_parallelism().map_or(usize::MAX, usize::from));
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let powers: Vec<u32> = iter::successors(Some(2_u32), |k| k.checked_mul(2))
        .take_while(|&k| k == 2 || (k < most && k <= 64))
        .collect();
    let plan = args.study.plan(u32::MAX, |_| powers.clone())?;
    let interrupt = end_on_request()?;
    interrupt.listen();
    let local = Local { plan: &plan, transport: args.transport, cpus };
    let rows = plan.rows(
        |processes| processes > most,
        |shape, k| match interrupt.is_requested() {
            true => Ok(None),
            false => local.run(shape, k).map(Some),
        },
    )?;
    let incomplete = interrupt.is_requested().then(|| "interrupted".to_owned());
    let report = Report::new(&plan, rows, args.transport.name().to_owned(), incomplete);
    args.study.print(&report, console)
}
