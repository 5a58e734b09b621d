//! Command line of `loggap-mpi`. Every rank runs it; rank 0 prints.

mod check;
mod coll;
mod contention;
mod measure;
mod pairs;
mod progress;
mod selftest;
mod simulate;
mod sync;
mod trace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use loggap::flags::help::ShortHelp;
use loggap::flags::parse;
use loggap::machine::buffer::{self, Alignment};
use loggap::output::{FileError, PendingFile};
use loggap::terminal::{CliError, Console, EXIT_CODES, Exit, Interrupt, carry_out, explain};
use loggap_core::sync::{Assumptions, MOST_DRIFT_PPM};
use nix::unistd::getppid;

use crate::collective::judge::Tolerance;
use crate::job::{CONTROLLER, Job, JobError, Sharing, launched_as};

/// Measure MPI: its links, its clocks and its collective operations.
#[derive(Debug, Parser)]
#[command(name = "loggap-mpi", version, propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    /// End the job when a rank has waited this long for another one.
    #[arg(long, global = true, value_name = "SECONDS", default_value = "60s",
          value_parser = parse::duration)]
    give_up: Duration,
    #[command(subcommand)]
    command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
enum Command {
    Measure(Box<measure::Args>),
    Contention(contention::Args),
    Progress(progress::Args),
    Coll(Box<coll::Args>),
    Check(Box<check::Args>),
    Sync(sync::Args),
    /// Simulate a schedule on several processes, each with a part of the ranks.
    ///
    /// Options and results are those of 'loggap simulate'; --threads and
    /// --max-memory are those of each process.
    Simulate(Box<loggap::cli::simulate::Args>),
    Selftest(selftest::Args),
    Trace(trace::Args),
}

/// Assumptions about clocks.
#[derive(Clone, Copy, Debug, clap::Args)]
struct DriftArgs {
    /// Fastest drift of two clocks against each other, in millionths, up to
    /// which error bounds hold. Two crystals of 100 ppm each may drift by 200.
    #[arg(long, value_name = "PPM", default_value = "200",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DRIFT_PPM)))]
    max_drift: u32,
}

impl DriftArgs {
    fn assumptions(self) -> Assumptions {
        Assumptions { drift_ppm: self.max_drift, ..Assumptions::default() }
    }
}

/// Tolerance of late starts.
#[derive(Clone, Copy, Debug, clap::Args)]
struct ToleranceArgs {
    /// Discard a repetition in which a rank starts later than planned by more
    /// than this share of the time; the uncertainty of clocks and their
    /// readings is always tolerated. 2% unless given; where ranks share
    /// processors all repetitions count.
    #[arg(long, value_name = "PERCENT", value_parser = parse::percent)]
    max_skew: Option<u32>,
}

impl ToleranceArgs {
    /// Tolerance in effect. Unless it is given, ranks that share processors may
    /// start late: they wait for each other's processor, and no repetition
    /// would count.
    fn tolerance(self, sharing: &Sharing) -> Tolerance {
        const USUAL_PPM: u32 = 20_000;
        let usual = match sharing.is_shared() {
            true => Tolerance::ALL,
            false => Tolerance { share_ppm: USUAL_PPM },
        };
        self.max_skew.map_or(usual, |share_ppm| Tolerance { share_ppm })
    }
}

/// Placement of message buffers.
#[derive(Clone, Copy, Debug, clap::Args)]
struct BufferArgs {
    /// Alignment of message buffers in bytes, a power of two up to 2M. Below
    /// 4096, send buffers begin this many bytes after the start of a page and
    /// receive buffers twice as many, which is the worst that an allocator may
    /// do.
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = alignment)]
    align: u32,
    /// Put message buffers into pages of 2 MiB: fewer TLB misses, which shows
    /// from 1 MiB on.
    #[arg(long)]
    huge_pages: bool,
}

fn alignment(text: &str) -> Result<u32, String> {
    let bytes = parse::size(text).map_err(|error| error.to_string())?;
    let power = u32::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two());
    power
        .filter(|bytes| *bytes <= buffer::LARGEST)
        .ok_or_else(|| format!("expected a power of two from 1 to 2M, such as 64, not {bytes}"))
}

impl BufferArgs {
    const fn alignment(self) -> Alignment {
        Alignment { bytes: self.align, huge_pages: self.huge_pages }
    }

    /// Refuses huge pages if rank 0 gets none. All ranks call this together.
    fn check(self, session: &Session<'_>) -> Result<(), CliError> {
        let is_checked = self.huge_pages && session.job.leads();
        let has_pages = !is_checked || buffer::are_huge_pages_given();
        let checked = has_pages.then_some(()).ok_or_else(|| {
            CliError::refused(
                "this kernel gives no huge pages: /sys/kernel/mm/transparent_hugepage/enabled has \
                 to be madvise or always",
            )
        });
        session.agreed(checked)
    }
}

/// Job and interrupt of a command.
struct Session<'a> {
    job: &'a Job,
    interrupt: &'a Interrupt,
}

impl Session<'_> {
    /// Result of a preparation. If it failed at rank 0 the other ranks end, too,
    /// silently. All ranks call this together.
    fn agreed<T, E>(&self, prepared: Result<T, E>) -> Result<T, CliError>
    where
        CliError: From<E>,
    {
        let mut fails = [u64::from(prepared.is_err())];
        self.job.share(&mut fails);
        let prepared = prepared?;
        // Not a failure: `mpirun` would end the job before rank 0 has reported its own.
        if fails == [0] { Ok(prepared) } else { Err(CliError::ReaderGone) }
    }

    /// Outcome of a command whose errors all ranks find: rank 0 reports them
    /// and sets the exit code. If another rank failed first, `mpirun` would end
    /// the job before that.
    fn told_by_first(&self, outcome: Result<Exit, CliError>) -> Result<Exit, CliError> {
        match outcome {
            Err(CliError::Message { .. }) if !self.job.leads() => Ok(Exit::Done),
            outcome => outcome,
        }
    }

    /// Runs `work` on the link of rank 0 to the first rank on another machine, or else to rank 1, as
    /// a job of these two; the others sleep. All ranks call this together.
    fn on_one_link(
        &self,
        work: impl FnOnce(&Session<'_>) -> Result<Exit, CliError>,
    ) -> Result<Exit, CliError> {
        let Some(job) = self.job.one_link() else {
            let _done = self.job.hear_after(Duration::from_hours(24), CONTROLLER);
            return Ok(Exit::Done);
        };
        let outcome = work(&Session { job: &job, interrupt: self.interrupt });
        if self.job.leads() {
            self.job.others().for_each(|rank| self.job.tell(rank, measure::DONE));
        } else {
            let _done = self.job.hear_after(Duration::ZERO, CONTROLLER);
        }
        outcome
    }
}

/// Creates an output file, if one is requested.
fn create(path: Option<&PathBuf>) -> Result<Option<PendingFile>, FileError> {
    path.map(PendingFile::create).transpose()
}

const HELP: ShortHelp = ShortHelp {
    long: &["measure", "coll", "check", "simulate"],
    options: "\
        pairs times size sizes method rel_err max_time launches output samples baseline assertions \
        json table csv verbose plot op root scheme arrival overlap strict processes algorithms \
        demonstrate noise assert app latency overhead gap gap_per_byte eager_limit profile preset pattern \
        ranks finish",
};

/// Runs the command line `arguments`, the first of which is the program's
/// own name.
#[must_use]
pub fn main<I, T>(arguments: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let parsed = HELP.of(Cli::command()).try_get_matches_from(arguments);
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => carry_out(console(), |console| run(&cli, console)),
        // All ranks find the same error: one prints it.
        Err(error) if is_first() => explain(&error),
        Err(error) if !error.use_stderr() => Exit::Done.into(),
        Err(error) => {
            // `mpirun` ends the job when a rank fails, which must not happen
            // before the first rank has printed the error. It prints none if it
            // has other, valid arguments.
            thread::sleep(FIRST_SPEAKS);
            // MPICH lets the others continue when the first one has failed:
            // each would repeat the error.
            let is_alone = std::env::var_os("OMPI_COMM_WORLD_RANK").is_some();
            if is_alone { explain(&error) } else { Exit::Usage.into() }
        }
    }
}

/// Time for the first rank to print an error, and for `mpirun` to end the others.
const FIRST_SPEAKS: Duration = Duration::from_secs(3);

/// Standard streams. Open MPI gives rank 0 a terminal for standard output
/// whatever `mpirun` writes to, so the output of `mpirun` decides whether a
/// person watches.
fn console() -> Console {
    let console = Console::standard();
    let is_given = std::env::var_os("OMPI_COMM_WORLD_RANK").is_some();
    let target = std::fs::read_link(format!("/proc/{}/fd/1", getppid()));
    let shows = |target: &Path| target.starts_with("/dev/pts") || target.starts_with("/dev/tty");
    if is_given && !target.is_ok_and(|target| shows(&target)) {
        console.unwatched()
    } else {
        console
    }
}

/// True on rank 0, or if started without `mpirun`. Works before MPI is initialised.
fn is_first() -> bool {
    launched_as().is_none_or(|rank| rank == 0)
}

fn run(cli: &Cli, console: &mut Console) -> Result<Exit, CliError> {
    // Before there are other threads.
    if let Command::Check(args) = &cli.command {
        check::prepare(args);
    }
    // Before anything changes what the program inherits.
    if let Command::Trace(args) = &cli.command {
        return match trace::run(args, console) {
            Err(CliError::Message { .. }) if !is_first() => {
                thread::sleep(FIRST_SPEAKS);
                Ok(Exit::Usage)
            }
            outcome => outcome,
        };
    }
    // Before MPI starts threads, which inherit the signal mask.
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    if let Command::Coll(args) = &cli.command
        && coll::is_driver(args)
    {
        return match coll::drive(args, &interrupt, console) {
            Err(CliError::Message { .. }) if !is_first() => Ok(Exit::Done),
            outcome => outcome,
        };
    }
    if let Command::Check(args) = &cli.command
        && check::is_driver(args)
    {
        return check::drive(args, &interrupt, console);
    }
    if let Command::Sync(args) = &cli.command
        && args.reads()
    {
        return if is_first() { sync::read(args, console) } else { Ok(Exit::Done) };
    }
    if let Command::Selftest(args) = &cli.command {
        return if is_first() { selftest::run(args, console) } else { Ok(Exit::Done) };
    }
    let planned = match &cli.command {
        Command::Coll(args) => coll::planned_wait(args),
        _ => Duration::ZERO,
    };
    let job = match Job::begin(cli.give_up.saturating_add(planned)) {
        Ok(job) => job,
        // All ranks find the same error, and one prints it; if another rank
        // failed first, `mpirun` would end the job before that.
        Err(JobError::Differ(_) | JobError::OtherLauncher { .. }) if !is_first() => {
            return Ok(Exit::Done);
        }
        Err(error @ (JobError::Differ(_) | JobError::OtherLauncher { .. })) => {
            return Err(CliError::usage(error));
        }
        Err(error) => return Err(CliError::failed(error)),
    };
    let watch = job.watch().clone();
    let session = Session { job: &job, interrupt: &interrupt };
    let outcome = run_in(&session, &cli.command, console);
    // Flushed before MPI is finalised, which may never return.
    let flushed = console.flush();
    watch.during(|| drop(job));
    outcome.and_then(|exit| Ok(flushed.map(|()| exit)?))
}

/// Runs a command in a job.
fn run_in(
    session: &Session<'_>,
    command: &Command,
    console: &mut Console,
) -> Result<Exit, CliError> {
    match command {
        Command::Measure(args) => measure::run(args, session, console),
        Command::Contention(args) => contention::run(args, session, console),
        Command::Progress(args) => progress::run(args, session, console),
        Command::Sync(args) => sync::run(args, session, console),
        Command::Simulate(args) => simulate::run(args, session, console),
        Command::Coll(args) => session.told_by_first(coll::run(args, session, console)),
        Command::Check(args) => session.told_by_first(check::run(args, session, console)),
        // Need no job: done above.
        Command::Selftest(_) | Command::Trace(_) => Ok(Exit::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_short_help_of_every_verb_is_one_screen_of_options_that_exist() {
        let command = HELP.of(Cli::command());
        for verb in command.get_subcommands() {
            let text = verb.clone().render_help().to_string();
            let lines = text.lines().count();
            assert!(lines <= 45, "{}: {lines} lines\n{text}", verb.get_name());
        }
        let options: Vec<_> =
            command.get_subcommands().flat_map(clap::Command::get_arguments).collect();
        for name in HELP.options.split_whitespace() {
            assert!(options.iter().any(|option| option.get_id() == name), "{name}");
        }
    }

    #[test]
    fn the_help_of_check_begins_with_both_things_that_it_compares() {
        let mut command = HELP.of(Cli::command());
        let check = command.find_subcommand_mut("check").unwrap();
        for help in [check.render_help(), check.render_long_help()] {
            let begin: String = help.to_string().lines().take(2).collect();
            assert!(begin.contains("--app") && begin.contains("collective"), "{help}");
        }
    }

    #[test]
    fn every_option_is_explained() {
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments().filter(|a| a.get_id() != "help") {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument);
            }
        }
    }
}
