//! Runs of stored schedules in windows.

use loggap_core::sim::windows::{Mail, Message, Outbox, Partition, Schedule, UNKNOWN};
use loggap_core::sim::{Finished, Noise, Observer, Unfinished};
use loggap_core::units::Picos;

use super::memory::{MailRoom, Mails, chains};
use super::parts::{Border, InWindows, Ran, Reached, WindowLimits, run_parts};
use crate::simulation::{LoadError, Processes, RunError, agreed};

/// Why a run in windows was given up: it may complete in order, or with more room.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WindowError {
    /// Sorting simultaneous events or searching waiting ones takes too many steps; a run in order
    /// of events is faster.
    #[error("very many receives or messages wait at once, or happen at once")]
    Steps,
    /// The order of two simultaneous events follows from a history in other processes.
    #[error(
        "the order of simultaneous events depends on what happened long before in other processes"
    )]
    Unknown,
    /// Messages of other processes found no room.
    #[error("there is no room for the messages between processes")]
    Room,
}

/// Resources of a run in windows.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'p> {
    /// Number of threads, at least one.
    pub threads: usize,
    /// Memory for messages in flight, bytes. Messages for which it is too small wait in the
    /// schedule, which takes longer.
    pub mail_bytes: u64,
    /// Windows with fewer expected events are run by a single thread.
    pub small: u64,
    /// Processes that share the ranks.
    pub processes: &'p dyn Processes,
}

impl Resources<'_> {
    /// Default for `small`.
    pub const SMALL: u64 = 1_000;
}

/// Result of a run in windows.
#[derive(Debug)]
pub struct WindowRun<'s, N, O> {
    partitions: Vec<Partition<'s, N, O>>,
    mail_bytes: u64,
    /// Number of threads.
    pub threads: usize,
    /// Number of messages received from other processes.
    pub crossing: u64,
}

impl<N: Noise, O: Observer> WindowRun<'_, N, O> {
    /// Makespan and counts.
    #[must_use]
    pub fn finished(&self) -> Finished {
        let mut whole = Finished::default();
        for part in self.partitions.iter().map(Partition::finished) {
            whole.join(&part);
        }
        whole
    }

    /// Finishing time of each rank.
    pub fn finish(&self) -> impl Iterator<Item = Picos> {
        self.partitions.iter().flat_map(|partition| partition.finish().map(|(_, time)| time))
    }

    /// Calls `tell` with every operation or message that did not complete.
    pub fn unfinished(&self, mut tell: impl FnMut(Unfinished)) {
        for partition in &self.partitions {
            partition.unfinished(&mut tell);
        }
    }

    /// Observers of the partitions.
    pub fn into_observers(self) -> impl Iterator<Item = O> {
        self.partitions.into_iter().map(Partition::into_observer)
    }

    /// Memory that messages have taken: those in flight, and all of other processes. Bytes.
    #[must_use]
    pub fn mail_bytes(&self) -> u64 {
        self.mail_bytes + self.partitions.iter().map(Partition::foreign_bytes).sum::<u64>()
    }

    /// Number of partitions.
    #[must_use]
    pub const fn partitions(&self) -> usize {
        self.partitions.len()
    }
}

impl<'r, N: Noise + Send, O: Observer + Send> InWindows<'r> for Partition<'_, N, O> {
    type Message = Message;

    fn next(&self) -> Option<u64> {
        self.next()
    }

    fn run(
        &mut self,
        window: u64,
        free_steps: u64,
        inbox: &Mail<'r>,
        outbox: &mut Outbox<'r>,
    ) -> Ran {
        let (events, steps) = (self.events(), self.steps());
        self.allow(free_steps);
        self.run(window, inbox, outbox);
        Ran {
            events: self.events() - events,
            steps: self.steps() - steps,
            aborts: self.failed() || self.gave_up() || self.lost(),
        }
    }
}

/// Result of a run, or why it was given up.
pub type Ended<T> = Result<Result<T, WindowError>, RunError>;

/// End of a run that all processes complete or abort. All give it up for the reason of which a
/// repetition with more room may be the remedy, if one has it; of other errors, the first process
/// that knows why the run was aborted has its own.
fn told<T>(processes: &dyn Processes, ended: Ended<T>) -> Ended<T> {
    let knows = match &ended {
        Ok(Ok(_)) => 0,
        Ok(Err(WindowError::Steps)) => 1,
        Ok(Err(WindowError::Unknown)) => 2,
        Ok(Err(WindowError::Room)) => 3,
        Err(_) => 4,
    };
    match processes.all(&[knows]).into_iter().max().unwrap_or(knows) {
        1 => Ok(Err(WindowError::Steps)),
        2 => Ok(Err(WindowError::Unknown)),
        3 => Ok(Err(WindowError::Room)),
        most => agreed(processes, if knows < most { Err(RunError::Elsewhere) } else { ended }),
    }
}

/// Runs a schedule with noise. `observe` creates the observer of a partition from its first rank;
/// `watch` is called regularly with what is reached.
///
/// # Errors
///
/// [`RunError`]; [`WindowError`] if the run was given up.
pub fn run<'s, N: Noise + Clone + Send, O: Observer + Send>(
    schedule: Schedule<'s>,
    noise: N,
    observe: impl FnMut(u32) -> O,
    resources: &Resources<'_>,
    watch: &mut dyn FnMut(Reached),
) -> Ended<WindowRun<'s, N, O>> {
    let (shift, block, processes) = (schedule.shift(), schedule.block(), resources.processes);
    let room = schedule.messages();
    let partitions: Vec<_> = schedule.observed(noise, observe).collect();
    let threads = resources.threads.clamp(1, partitions.len().max(1));
    let room = MailRoom { messages: room, bytes: resources.mail_bytes };
    let chains = chains(partitions.len(), block, processes);
    let mails = Mails::new(threads, chains, room).map_err(LoadError::Pages);
    let mails = agreed(processes, mails.map_err(RunError::Load))?;
    let windows = WindowLimits { small: resources.small, sparse: u64::MAX };
    let mut border = Border::new(processes, block, shift);
    let (partitions, ran) = run_parts(partitions, &mails, windows, &mut border, watch);
    let mail_bytes = mails.bytes();
    let steps: u64 = partitions.iter().map(Partition::steps).sum();
    let ended = match (ran, Partition::error(&partitions)) {
        (_, Some(error)) => Err(error.into()),
        (None, None) if steps >= UNKNOWN => Ok(Err(WindowError::Unknown)),
        (None, None) if border.full || partitions.iter().any(Partition::lost) => {
            Ok(Err(WindowError::Room))
        }
        (None, None) => Ok(Err(WindowError::Steps)),
        (Some(threads), None) => Ok(Ok(threads)),
    };
    let crossing = border.received;
    let ended = told(processes, ended)?;
    Ok(ended.map(|threads| WindowRun { partitions, mail_bytes, threads, crossing }))
}
