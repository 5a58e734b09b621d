//! From the first window to the last.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use loggap_core::sim::windows::{Mail, Outbox, Partition, STEPS, Schedule};
use loggap_core::sim::{Finished, Noise, SimError, Unfinished};
use loggap_core::units::Picos;

use super::memory::Mails;
use super::workers::{AtEnd, Workers};

/// Why a run in windows did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// The simulation stopped.
    #[error(transparent)]
    Stopped(SimError),
    /// There is no memory for the messages of a window.
    #[error("no memory for messages: {0}")]
    Memory(io::Error),
    /// The order of simultaneous events, or the search among what waits,
    /// takes too many steps; the engine that runs event by event is quicker.
    #[error("very many receives or messages wait at once, or happen at once")]
    Steps,
}

/// What a run in windows may take.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Threads, at least one.
    pub threads: usize,
    /// Bytes of memory for messages under way; those that find no room wait
    /// in the schedule, which takes longer.
    pub mail_bytes: u64,
    /// A window of which fewer events are expected is left to one thread.
    pub small: u64,
}

impl Resources {
    /// What is small enough for one thread, as a rule.
    pub const SMALL: u64 = 1_000;
}

/// What a run in windows leaves.
#[derive(Debug)]
pub struct Completed<'s, N> {
    partitions: Vec<Partition<'s, N>>,
    mail_bytes: u64,
    threads: usize,
}

impl<N: Noise> Completed<'_, N> {
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

    /// Bytes that messages under way have taken.
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

/// Steps that are always free; a run that takes more, and more than [`STEPS`]
/// for each event, is given up.
const FREE_STEPS: u64 = 1 << 20;
/// Events between two calls of the one who watches.
const WATCHED: u64 = 1 << 18;

/// What the threads of a run share.
struct Run<'r, 's, N> {
    partitions: &'r [Mutex<Partition<'s, N>>],
    /// Of each partition, the window in which it goes on by itself.
    due: &'r [AtomicU64],
    mails: &'r Mails,
    both: [Mail<'r>; 2],
    /// The window, and which mail is read in it.
    window: AtomicU64,
    turn: AtomicU32,
    /// In this window: messages sent, events and steps.
    sent: AtomicU64,
    events: AtomicU64,
    steps: AtomicU64,
    /// Steps that a window may take, besides those for its events.
    free: AtomicU64,
    failed: AtomicBool,
    /// Whether a partition took more.
    gave_up: AtomicBool,
    small: u64,
}

impl<'s, N: Noise> Run<'_, 's, N> {
    fn lock(&self, partition: u32) -> Option<MutexGuard<'_, Partition<'s, N>>> {
        let partition = self.partitions.get(partition as usize)?;
        Some(partition.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The mail that is read, and that which is written.
    fn mail(&self) -> [&Mail<'_>; 2] {
        let [even, odd] = &self.both;
        if self.turn.load(Ordering::Relaxed) == 0 { [odd, even] } else { [even, odd] }
    }

    /// Works at the present window as one of the threads.
    fn work(&self, sender: usize, take: impl FnOnce(&mut dyn FnMut(u32))) {
        let window = self.window.load(Ordering::Relaxed);
        let [inbox, sending] = self.mail();
        let mut outbox = Outbox::new(*sending, sender, self.mails.chunks(sender));
        let (mut events, mut steps) = (0, 0);
        take(&mut |index| {
            let Some(mut partition) = self.lock(index) else { return };
            let before = (partition.events(), partition.steps());
            partition.allow(self.free.load(Ordering::Relaxed));
            partition.run(window, inbox, &mut outbox);
            if partition.gave_up() {
                self.gave_up.store(true, Ordering::Relaxed);
            }
            if partition.failed() {
                self.failed.store(true, Ordering::Relaxed);
            }
            if let Some(due) = self.due.get(index as usize) {
                due.store(partition.next().unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            events += partition.events() - before.0;
            steps += partition.steps() - before.1;
        });
        self.mails.note_used(outbox.chunks());
        self.sent.fetch_add(outbox.sent(), Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Runs window after window; `workers` has the other threads, if any.
    fn lead(&self, workers: &Workers, watch: &mut dyn FnMut(u64)) -> Result<(), WindowError> {
        let (mut events, mut steps) = (0, 0);
        let (mut expected, mut watched) = (u64::MAX, 0);
        loop {
            let window = self.window.load(Ordering::Relaxed);
            let [inbox, _] = self.mail();
            let active = workers.assign((0u32..).zip(self.due).filter_map(|(index, due)| {
                let has_turn = due.load(Ordering::Relaxed) <= window || inbox.any(index);
                has_turn.then_some(index)
            }));
            if active > 1 && expected >= self.small {
                self.work(0, |run| workers.run_together(run));
            } else {
                self.work(0, |run| workers.work(run));
            }
            let sent = self.sent.swap(0, Ordering::Relaxed);
            let executed = self.events.swap(0, Ordering::Relaxed);
            steps += self.steps.swap(0, Ordering::Relaxed);
            events += executed;
            if self.failed.load(Ordering::Relaxed) {
                let all: Vec<_> = (0u32..)
                    .zip(self.partitions)
                    .filter_map(|(index, _)| self.lock(index))
                    .collect();
                if let Some(error) = Partition::error(all.iter().map(|partition| &**partition)) {
                    return Err(WindowError::Stopped(error));
                }
            }
            let most = STEPS * events + FREE_STEPS;
            if steps > most || self.gave_up.load(Ordering::Relaxed) {
                return Err(WindowError::Steps);
            }
            self.free.store(most - steps, Ordering::Relaxed);
            if events >= watched {
                watch(events);
                watched = events + WATCHED;
            }
            self.turn.fetch_xor(1, Ordering::Relaxed);
            expected = sent.max(executed);
            let mut next = window + 1;
            if sent == 0 {
                next = self
                    .due
                    .iter()
                    .map(|due| due.load(Ordering::Relaxed))
                    .min()
                    .unwrap_or(u64::MAX);
                if next == u64::MAX {
                    return Ok(());
                }
                if next > window + 1 {
                    expected = u64::MAX;
                }
            }
            self.window.store(next, Ordering::Relaxed);
        }
    }
}

/// Runs a schedule, and calls `watch` with the number of events now and then.
///
/// # Errors
///
/// [`WindowError`].
pub fn run<'s, N: Noise + Clone + Send>(
    schedule: Schedule<'s>,
    noise: N,
    resources: &Resources,
    watch: &mut dyn FnMut(u64),
) -> Result<Completed<'s, N>, WindowError> {
    let sends = schedule.sends();
    let partitions: Vec<_> = schedule.partitions(noise).map(Mutex::new).collect();
    let threads = resources.threads.clamp(1, partitions.len().max(1));
    let mails = Mails::new(threads, (sends, resources.mail_bytes), partitions.len());
    let mails = mails.map_err(WindowError::Memory)?;
    let due: Vec<_> = partitions
        .iter()
        .map(|partition| {
            let partition = partition.lock().unwrap_or_else(PoisonError::into_inner);
            AtomicU64::new(partition.next().unwrap_or(u64::MAX))
        })
        .collect();
    let workers = Workers::new(partitions.len());
    let shared = Run {
        partitions: &partitions,
        due: &due,
        both: mails.both(),
        mails: &mails,
        window: AtomicU64::new(0),
        turn: AtomicU32::new(0),
        sent: AtomicU64::new(0),
        events: AtomicU64::new(0),
        steps: AtomicU64::new(0),
        free: AtomicU64::new(FREE_STEPS),
        failed: AtomicBool::new(false),
        gave_up: AtomicBool::new(false),
        small: resources.small,
    };
    let threads = thread::scope(|scope| {
        let (workers, shared) = (&workers, &shared);
        // Also where the leader panics: the others would wait for ever.
        let _over = AtEnd(|| workers.end());
        let mut started = 1;
        for sender in 1..threads {
            let follow = move || workers.follow(|| shared.work(sender, |run| workers.work(run)));
            // Fewer threads do the same work.
            if thread::Builder::new().spawn_scoped(scope, follow).is_err() {
                break;
            }
            started += 1;
        }
        shared.lead(workers, watch).map(|()| started)
    })?;
    let mail_bytes = mails.bytes();
    let partitions = partitions.into_iter();
    let partitions =
        partitions.map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    Ok(Completed { partitions, mail_bytes, threads })
}
