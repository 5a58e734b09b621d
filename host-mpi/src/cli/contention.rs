//! `loggap-mpi contention`: requests and replies between several ranks at the same time.

use loggap::flags::contention::ContentionArgs;
use loggap::machine::clock::HostClock;
use loggap::study::contention::{Activity, End, Plan, Report, Role, Shape, common_gap};
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::measure::Clock;
use loggap_core::units::Picos;

use super::Session;
use crate::job::{CONTROLLER, Job};
use crate::link::{Calls, MpiLink};

/// How do the ranks of a job share one: requests and replies of K ranks at the
/// same time, beside those of a single pair (section 3.5 and Table 4 of
/// "Assessing Fast Network Interfaces").
///
/// K-to-1: ranks 1 to K request, rank 0 replies; 1-to-K: the other way round;
/// pairs: of n ranks, rank r requests and rank r + n/2 replies, K at the same
/// time. As many as there are, unless --processes says otherwise. Columns as of
/// `loggap study contention`.
///
/// Exits with 4 if ranks share processors.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 8 --bind-to core loggap-mpi contention
  mpirun -n 16 --map-by node loggap-mpi contention --processes 2,4,8 -J")]
pub(super) struct Args {
    #[command(flatten)]
    study: ContentionArgs,
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let (job, interrupt) = (session.job, session.interrupt);
    let ranks = u32::try_from(job.size()).unwrap_or(0);
    let most = |shape| match shape {
        Shape::Pairs => ranks / 2,
        Shape::ManyToOne | Shape::OneToMany => ranks.saturating_sub(1),
    };
    let plan = args.study.plan(ranks, |shape| vec![most(shape).min(64)]);
    let plan = match plan {
        Ok(plan) if !plan.runs.is_empty() => plan,
        plan => {
            let too_few = || CliError::usage("contention takes 3 ranks or more: mpirun -n 3");
            return session.told_by_first(Err(plan.err().unwrap_or_else(too_few)));
        }
    };
    interrupt.listen();
    let is_shared = job.sharing().is_shared();
    let rows = plan.rows(
        |_| is_shared,
        |shape, k| {
            let mut stops = [u64::from(interrupt.is_requested())];
            job.share(&mut stops);
            if stops == [0] { one_run(&plan, shape, k, job).map(Some) } else { Ok(None) }
        },
    )?;
    if !job.leads() {
        return Ok(Exit::Done);
    }
    job.sharing().warnings().iter().for_each(|warning| console.warn(warning));
    let incomplete = interrupt.is_requested().then(|| "interrupted".to_owned());
    args.study.print(&Report::new(&plan, rows, "mpi".to_owned(), incomplete), console)
}

/// Part of this rank in a run, and the ranks that it exchanges messages with.
fn part(plan: &Plan, shape: Shape, k: i32, job: &Job) -> Option<(Role, Vec<i32>)> {
    let (rank, half) = (job.rank(), job.size() / 2);
    let (requester, replier) = (plan.requester(), plan.replier());
    let around = |one: Role, others: Role| match rank {
        CONTROLLER => Some((one, (1..=k).collect())),
        _ => (rank <= k).then(|| (others, vec![CONTROLLER])),
    };
    match shape {
        Shape::ManyToOne => around(replier, requester),
        Shape::OneToMany => around(requester, replier),
        Shape::Pairs if rank < k => Some((requester, vec![rank + half])),
        Shape::Pairs => (half..half + k).contains(&rank).then(|| (replier, vec![rank - half])),
    }
}

/// Gap of a run, at every rank.
fn one_run(plan: &Plan, shape: Shape, k: u32, job: &Job) -> Result<Option<Picos>, CliError> {
    let part = part(plan, shape, i32::try_from(k).unwrap_or(0), job);
    let clock = HostClock::monotonic_raw();
    job.waiting().meet(job.control());
    // Clocks of machines differ, so each rank counts from the barrier.
    let origin = clock.now();
    let mut own: Vec<Activity> = Vec::new();
    if let Some((role, peers)) = part {
        let link = |&peer: &i32| MpiLink::new(job.peer(peer), Calls::default(), job.watch());
        let links = peers.iter().map(link).collect();
        own = End::new(clock, links, role, plan.size, origin).run().map_err(CliError::failed)?;
        let counts = match shape {
            Shape::Pairs => matches!(role, Role::Requester { .. }),
            Shape::ManyToOne | Shape::OneToMany => job.leads(),
        };
        if !counts {
            own.clear();
        }
    }
    let all: Vec<Activity> = job.gathered(&own).into_iter().flatten().flatten().collect();
    Ok(common_gap(&all, shape.requesters(k)))
}
