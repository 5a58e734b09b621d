//! Runs of stored schedules in windows.

use std::io;
use std::sync::{Mutex, PoisonError};

use loggap_core::sim::mail::Block;
use loggap_core::sim::windows::{Mail, Message, Outbox, Partition, Schedule};
use loggap_core::sim::{Finished, Noise, Observer, SimError, Unfinished};
use loggap_core::units::Picos;

use super::memory::{MailRoom, Mails};
use super::parts::{Border, InWindows, Ran, WindowLimits, run_parts};
use crate::simulation::Alone;

/// Why a run in windows was aborted.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// The simulation stopped with an error.
    #[error(transparent)]
    Stopped(SimError),
    /// The messages of a window do not fit into memory.
    #[error("no memory for messages: {0}")]
    Memory(io::Error),
    /// Sorting simultaneous events or searching waiting ones takes too many steps; a run in order
    /// of events is faster.
    #[error("very many receives or messages wait at once, or happen at once")]
    Steps,
}

/// Resources of a run in windows.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Number of threads, at least one.
    pub threads: usize,
    /// Memory for messages in flight, bytes. Messages for which it is too small wait in the
    /// schedule, which takes longer.
    pub mail_bytes: u64,
    /// Windows with fewer expected events are run by a single thread.
    pub small: u64,
}

impl Resources {
    /// Default for `small`.
    pub const SMALL: u64 = 1_000;
}

/// Result of a run in windows.
#[derive(Debug)]
pub struct WindowRun<'s, N, O> {
    partitions: Vec<Partition<'s, N, O>>,
    mail_bytes: u64,
    threads: usize,
}

impl<N: Noise, O: Observer> WindowRun<'_, N, O> {
    /// Makespan and counts.
    #[must_use]
    pub fn finished(&self) -> Finished {
        let mut whole = Finished::default();
        for part in self.partitions.iter().map(Partition::finished) {
            whole.events += part.events;
            if part.makespan > whole.makespan {
                whole.makespan = part.makespan;
                whole.last_rank = part.last_rank;
            }
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

    /// Memory that messages in flight have taken, bytes.
    #[must_use]
    pub const fn mail_bytes(&self) -> u64 {
        self.mail_bytes
    }

    /// Number of threads.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads
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
            aborts: self.failed() || self.gave_up(),
        }
    }
}

/// Runs a schedule with noise. `observe` creates the observer of a partition from its first rank;
/// `watch` is called regularly with the number of events.
///
/// # Errors
///
/// [`WindowError`].
pub fn run<'s, N: Noise + Clone + Send, O: Observer + Send>(
    schedule: Schedule<'s>,
    noise: N,
    observe: impl FnMut(u32) -> O,
    resources: &Resources,
    watch: &mut dyn FnMut(u64),
) -> Result<WindowRun<'s, N, O>, WindowError> {
    let sends = schedule.sends();
    let partitions: Vec<_> = schedule.observed(noise, observe).map(Mutex::new).collect();
    let threads = resources.threads.clamp(1, partitions.len().max(1));
    let room = MailRoom { messages: sends, bytes: resources.mail_bytes };
    let mails = Mails::new(threads, partitions.len(), room).map_err(WindowError::Memory)?;
    let windows = WindowLimits { small: resources.small, sparse: u64::MAX };
    let mut border = Border::new(&Alone, Block::ALL, 0);
    let ran = run_parts(&partitions, &mails, windows, &mut border, watch);
    let mail_bytes = mails.bytes();
    let partitions: Vec<_> = (partitions.into_iter())
        .map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    let threads = match (ran, Partition::error(&partitions)) {
        (_, Some(error)) => return Err(WindowError::Stopped(error)),
        (None, None) => return Err(WindowError::Steps),
        (Some(threads), None) => threads,
    };
    Ok(WindowRun { partitions, mail_bytes, threads })
}
