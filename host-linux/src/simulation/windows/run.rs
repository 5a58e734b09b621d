//! From the first window to the last.

use std::fmt;
use std::io;

use loggap_core::sim::windows::{MailFull, Outbox, Partition, Schedule};
use loggap_core::sim::{Finished, Noise, SimError, Unfinished};
use loggap_core::units::Picos;

use super::memory::Mails;

/// Why a run in windows did not come to its end.
#[derive(Debug)]
pub enum WindowError {
    /// The simulation stopped.
    Stopped(SimError),
    /// There is not enough memory for the messages of a window.
    Memory(io::Error),
    /// More messages than sends.
    Mail(MailFull),
    /// The order of simultaneous events takes too many steps; the engine
    /// that runs event by event is quicker.
    Ties,
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(error) => error.fmt(f),
            Self::Memory(error) => write!(f, "no memory for messages: {error}"),
            Self::Mail(_) => f.write_str("no room for another message"),
            Self::Ties => f.write_str("simultaneous events have long histories"),
        }
    }
}

impl std::error::Error for WindowError {}

impl From<MailFull> for WindowError {
    fn from(full: MailFull) -> Self {
        Self::Mail(full)
    }
}

/// What a run in windows leaves.
#[derive(Debug)]
pub struct Ended<'s, N> {
    partitions: Vec<Partition<'s, N>>,
}

impl<N: Noise> Ended<'_, N> {
    /// How it ended.
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

    /// When each rank was done.
    pub fn finish(&self) -> impl Iterator<Item = Picos> {
        self.partitions.iter().flat_map(|partition| partition.finish().map(|(_, time)| time))
    }

    /// Calls `tell` with everything that never came to its end.
    pub fn unfinished(&self, mut tell: impl FnMut(Unfinished)) {
        for partition in &self.partitions {
            partition.unfinished(&mut tell);
        }
    }
}

/// Steps for each event from which on a run in windows is given up, and how
/// many are always free.
const STEPS: [u64; 2] = [16, 1 << 20];

/// Runs a schedule.
///
/// # Errors
///
/// [`WindowError`].
pub fn run<N: Noise + Clone>(
    schedule: Schedule<'_>,
    noise: N,
) -> Result<Ended<'_, N>, WindowError> {
    let sends = schedule.sends();
    let mut partitions: Vec<_> = schedule.partitions(noise).collect();
    let mails = Mails::new(1, sends, partitions.len()).map_err(WindowError::Memory)?;
    let both = mails.both();
    let mut due: Vec<u64> =
        partitions.iter().map(|partition| partition.next().unwrap_or(u64::MAX)).collect();
    let mut window = 0;
    let mut turn = 0;
    loop {
        let [inbox, sending] = if turn == 0 { [&both[1], &both[0]] } else { [&both[0], &both[1]] };
        let mut outbox = Outbox::new(*sending, 0, mails.chunks(0));
        let mut failed = false;
        for ((partition, due), index) in partitions.iter_mut().zip(&mut due).zip(0u32..) {
            if *due <= window || inbox.any(index) {
                partition.run(window, inbox, &mut outbox)?;
                *due = partition.next().unwrap_or(u64::MAX);
                failed |= partition.failed();
            }
        }
        if failed && let Some(error) = Partition::error(&partitions) {
            return Err(WindowError::Stopped(error));
        }
        let steps: u64 = partitions.iter().map(Partition::steps).sum();
        let events: u64 = partitions.iter().map(Partition::events).sum();
        if steps > STEPS[0] * events + STEPS[1] {
            return Err(WindowError::Ties);
        }
        turn = 1 - turn;
        if outbox.sent() > 0 {
            window += 1;
            continue;
        }
        match due.iter().min() {
            Some(&next) if next < u64::MAX => window = next,
            _ => return Ok(Ended { partitions }),
        }
    }
}
