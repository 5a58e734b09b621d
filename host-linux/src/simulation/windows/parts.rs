//! Runs partitions of the ranks from the first window to the last.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use loggap_core::sim::mail::{Block, Mail, Outbox, Words};
use loggap_core::sim::windows::STEPS;
use loggap_core::units::Picos;

use super::memory::Mails;
use super::workers::{AtEnd, Workers};
use crate::simulation::simulate::WATCHED;
use crate::simulation::{Processes, Progress};
use crate::sys::pages::Integers;

/// Steps that are always allowed: a run that takes more, plus [`STEPS`] for each event, is aborted.
/// Several processes cannot run in order of events instead.
const fn free_steps(processes: u32) -> u64 {
    if processes > 1 { 1 << 32 } else { 1 << 20 }
}

/// A partition of the ranks, which runs one window after the other.
pub(super) trait InWindows<'r>: Send {
    /// Message between partitions.
    type Message: Integers + Words + Sync + 'r;

    /// Next window in which it has events without new messages; a lower bound.
    fn next(&self) -> Option<u64>;

    /// Runs a window. Aborts after `free_steps` steps, plus [`STEPS`] for each event in it.
    fn run(
        &mut self,
        window: u64,
        free_steps: u64,
        inbox: &Mail<'r, Self::Message>,
        outbox: &mut Outbox<'r, Self::Message>,
    ) -> Ran;
}

/// Result of a window.
pub(super) struct Ran {
    /// Operations released and messages created.
    pub(super) events: u64,
    /// Steps taken by sorting and searching.
    pub(super) steps: u64,
    /// True if the run must be aborted: the partition failed, or took too many steps.
    pub(super) aborts: bool,
}

/// State of a run after a window.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    events: u64,
    window: u64,
}

impl Reached {
    /// Progress of a run of about `of` events in windows of `width`.
    pub(crate) fn progress(self, of: u64, width: Picos) -> Progress {
        let Self { events, window } = self;
        let time = width.times(window.saturating_add(1)).ok();
        Progress { done: events, of, time }
    }
}

/// Thresholds of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowLimits {
    /// Windows with fewer expected events are run by a single thread.
    pub(super) small: u64,
    /// The run is aborted after this many windows with fewer events than an eighth of the
    /// partitions: finding the active partitions then takes longer than the events.
    pub(super) sparse: u64,
}

/// State shared by the threads of a run.
struct Run<'p, 'r, P: InWindows<'r>> {
    parts: &'p [Mutex<P>],
    /// For each partition, the next window in which it has events without new messages.
    due: Vec<AtomicU64>,
    mails: &'r Mails<P::Message>,
    both: [Mail<'r, P::Message>; 2],
    /// Current window, and which half of the mail is read in it.
    window: AtomicU64,
    turn: AtomicU32,
    /// Counters of the current window: messages sent, events and steps.
    sent: AtomicU64,
    events: AtomicU64,
    steps: AtomicU64,
    /// Steps that the window may take, in addition to those for its events.
    free: AtomicU64,
    aborted: AtomicBool,
    windows: WindowLimits,
}

impl<'p, 'r, P: InWindows<'r>> Run<'p, 'r, P> {
    fn new(
        parts: &'p [Mutex<P>],
        mails: &'r Mails<P::Message>,
        windows: WindowLimits,
        processes: u32,
    ) -> Self {
        let due = |part: &Mutex<P>| AtomicU64::new(lock(part).next().unwrap_or(u64::MAX));
        Self {
            parts,
            due: parts.iter().map(due).collect(),
            both: mails.both(),
            mails,
            window: AtomicU64::new(0),
            turn: AtomicU32::new(0),
            sent: AtomicU64::new(0),
            events: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            free: AtomicU64::new(free_steps(processes)),
            aborted: AtomicBool::new(false),
            windows,
        }
    }

    /// Mail to read, and mail to write.
    fn mail(&self) -> [&Mail<'r, P::Message>; 2] {
        let [even, odd] = &self.both;
        if self.turn.load(Ordering::Relaxed) == 0 { [odd, even] } else { [even, odd] }
    }

    /// Runs partitions of the current window on one of the threads.
    fn work(&self, sender: usize, take: impl FnOnce(&mut dyn FnMut(u32))) {
        let window = self.window.load(Ordering::Relaxed);
        let [inbox, sending] = self.mail();
        let mut outbox = self.mails.outbox(*sending, sender);
        let (mut events, mut steps) = (0, 0);
        take(&mut |index| {
            let Some(mut part) = self.parts.get(index as usize).map(lock) else { return };
            let ran = part.run(window, self.free.load(Ordering::Relaxed), inbox, &mut outbox);
            self.aborted.fetch_or(ran.aborts, Ordering::Relaxed);
            if let Some(due) = self.due.get(index as usize) {
                due.store(part.next().unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            events += ran.events;
            steps += ran.steps;
        });
        self.sent.fetch_add(outbox.sent(), Ordering::Relaxed);
        self.mails.keep(sender, outbox);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Runs one window after the other, as the leader; `workers` coordinates the other threads, if
    /// any. False if the run was aborted, by any process.
    fn lead(
        &self,
        workers: &Workers,
        border: &mut Border<'_>,
        watch: &mut dyn FnMut(Reached),
    ) -> bool {
        let (mut events, mut steps, mut sparse) = (0, 0, 0);
        let (mut expected, mut watched) = (u64::MAX, 0);
        loop {
            let window = self.window.load(Ordering::Relaxed);
            let [inbox, _] = self.mail();
            let active = workers.assign((0u32..).zip(&self.due).filter_map(|(index, due)| {
                let has_turn = due.load(Ordering::Relaxed) <= window || inbox.any(index);
                has_turn.then_some(index)
            }));
            if active > 1 && expected >= self.windows.small {
                self.mails.balance();
                self.work(0, |run| workers.run_together(run));
            } else {
                self.work(0, |run| workers.work(run));
            }
            let sent = self.sent.swap(0, Ordering::Relaxed);
            let executed = self.events.swap(0, Ordering::Relaxed);
            steps += self.steps.swap(0, Ordering::Relaxed);
            events += executed;
            sparse += u64::from(executed * 8 < self.parts.len() as u64);
            let most = STEPS * events + free_steps(border.processes.count());
            let too_many = steps > most || sparse > self.windows.sparse;
            let aborts = too_many || self.aborted.load(Ordering::Relaxed);
            let mut next = if aborts { ABORTED } else { window + 1 };
            if sent == 0 && !aborts {
                let due = self.due.iter().map(|due| due.load(Ordering::Relaxed));
                next = due.min().unwrap_or(u64::MAX);
            }
            let (next, received) = border.cross(self.mails, self.mail()[1], next);
            if next == ABORTED {
                return false;
            }
            self.free.store(most - steps, Ordering::Relaxed);
            if events >= watched {
                watch(Reached { events, window });
                watched = events + WATCHED;
            }
            self.turn.fetch_xor(1, Ordering::Relaxed);
            expected = sent.max(executed).max(received);
            if next == u64::MAX {
                return true;
            }
            if next > window + 1 {
                expected = u64::MAX;
            }
            self.window.store(next, Ordering::Relaxed);
        }
    }
}

/// Next window if the run is aborted.
const ABORTED: u64 = 0;

/// Told in place of the next window: the process has more to send in this one.
const MORE: u64 = u64::MAX - 1;

/// Words for a process after which the rest of a window's messages waits for another exchange.
const PIECE: usize = 1 << 16;

/// Exchange of messages with other processes at the end of each window.
pub(super) struct Border<'x> {
    pub(super) processes: &'x dyn Processes,
    /// Partitions of this process.
    block: Block,
    /// Binary logarithm of the ranks of a partition.
    shift: u32,
    /// Words for each process, and from all others.
    outgoing: Vec<Vec<u32>>,
    incoming: Vec<u32>,
    /// True if messages from others found no room: the next window is aborted, as by then all
    /// processes can agree on it.
    pub(super) full: bool,
    /// No other process has an event before this window: until then this one runs alone, while it
    /// sends them nothing.
    others: u64,
    /// Messages received from other processes.
    pub(super) received: u64,
}

impl<'x> Border<'x> {
    /// Border of this process, which has the partitions `block`.
    pub(super) fn new(processes: &'x dyn Processes, block: Block, shift: u32) -> Self {
        let outgoing = (0..processes.count()).map(|_| Vec::new()).collect();
        let (incoming, full, others, received) = (Vec::new(), false, 0, 0);
        Self { processes, block, shift, outgoing, incoming, full, others, received }
    }

    /// Ends a window in which messages went to `mail`: exchanges those for other processes, and
    /// agrees on the next window. Returns it with the number of messages received.
    fn cross<M: Integers + Words>(
        &mut self,
        mails: &Mails<M>,
        mail: &Mail<'_, M>,
        next: u64,
    ) -> (u64, u64) {
        if self.processes.count() == 1 {
            return (next, 0);
        }
        let (mut outbox, before) = (mails.outbox(*mail, 0), self.received);
        let (mut next, mut sends) = (next, false);
        loop {
            let more = self.collect(&mut outbox, mail);
            sends |= self.outgoing.iter().any(|words| !words.is_empty());
            if self.full {
                next = ABORTED;
            }
            if next != ABORTED && next < self.others && !sends {
                break;
            }
            let told = if more && next != ABORTED { MORE } else { next };
            self.incoming.clear();
            let all = self.processes.exchange(&self.outgoing, &mut self.incoming, told);
            self.deliver(&mut outbox);
            if all.contains(&ABORTED) {
                next = ABORTED;
                break;
            }
            if !all.contains(&MORE) {
                let is_other = |&(process, _): &(u32, u64)| process != self.processes.index();
                let others = (0..).zip(all).filter(is_other).map(|(_, next)| next).min();
                let others = others.unwrap_or(u64::MAX);
                next = next.min(others);
                // What was sent gives others events that they do not know yet.
                self.others = if sends { next } else { others };
                break;
            }
        }
        mails.keep(0, outbox);
        (next, self.received - before)
    }

    /// Sets `outgoing` to a piece of the messages in `mail`. True if there may be more.
    fn collect<'m, M: Words>(&mut self, outbox: &mut Outbox<'m, M>, mail: &Mail<'m, M>) -> bool {
        let mut more = false;
        for (process, words) in (0u32..).zip(&mut self.outgoing) {
            words.clear();
            // A message is not parted from its continuations, which are read before it.
            let ends = |words: &[u32]| {
                words.rchunks(M::WORDS).next().is_none_or(|last| M::target(last).is_some())
            };
            while words.len() < PIECE || !ends(words) {
                let chain = self.block.each + process;
                if !outbox.take(mail, chain, |message| message.read(|word| words.push(word))) {
                    break;
                }
            }
            more |= words.len() >= PIECE;
        }
        more
    }

    /// Puts messages of others into the mail.
    fn deliver<M: Words>(&mut self, outbox: &mut Outbox<'_, M>) {
        let mut chain = 0;
        // Chains are collected from last to first.
        for words in self.incoming.rchunks(M::WORDS) {
            if let Some(target) = M::target(words) {
                chain = self.block.chain(target >> self.shift);
                self.received += 1;
            }
            match outbox.send(chain) {
                Some(place) => place.write(words),
                None => self.full = true,
            }
        }
    }
}

/// Locks a partition, even if a thread panicked while holding it.
pub(super) fn lock<P>(part: &Mutex<P>) -> MutexGuard<'_, P> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `parts` to the end on one thread for each sender of `mails`, or on fewer if the kernel
/// cannot create as many; returns them and the number of threads, or `None` if the run was aborted.
/// Calls `watch` regularly with what is reached.
pub(super) fn run_parts<'r, P: InWindows<'r>>(
    parts: impl IntoIterator<Item = P>,
    mails: &'r Mails<P::Message>,
    windows: WindowLimits,
    border: &mut Border<'_>,
    watch: &mut dyn FnMut(Reached),
) -> (Vec<P>, Option<usize>) {
    let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
    let workers = Workers::new(parts.len());
    let shared = Run::new(&parts, mails, windows, border.processes.count());
    let ran = thread::scope(|scope| {
        let (workers, shared) = (&workers, &shared);
        // Also when the leader panics; otherwise the other threads would wait for ever.
        let _over = AtEnd(|| workers.end());
        let mut started = 1;
        for sender in 1..mails.senders() {
            let follow = move || workers.follow(|| shared.work(sender, |run| workers.work(run)));
            // Fewer threads can do the same work.
            if thread::Builder::new().spawn_scoped(scope, follow).is_err() {
                break;
            }
            started += 1;
        }
        shared.lead(workers, border, watch).then_some(started)
    });
    let unlocked = |part: Mutex<P>| part.into_inner().unwrap_or_else(PoisonError::into_inner);
    (parts.into_iter().map(unlocked).collect(), ran)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Alone;
    use crate::simulation::windows::memory::MailRoom;
    use loggap_core::sim::windows::Message;

    #[test]
    fn no_piece_parts_a_message_from_its_continuations() {
        const MESSAGES: usize = 1 << 14;
        let block = Block { first: 1, each: 1 };
        let room = MailRoom { messages: 1 << 17, bytes: u64::MAX };
        let mails = Mails::<Message>::new(1, 3, room).unwrap();
        let [mail, _] = mails.both();
        let mut outbox = mails.outbox(mail, 0);
        // Chunks have 32 places, and a message takes three. Its fifth word is the target.
        let rest =
            [[0, 0, 0, 0, 7, 0, 0], [0, 0, 0, 0, u32::MAX, 0, 0], [0, 0, 0, 0, u32::MAX, 0, 0]];
        for words in rest.iter().cycle().take(3 * MESSAGES) {
            outbox.send(block.chain(0)).unwrap().write(words);
        }
        let mut border = Border::new(&Alone, block, 0);
        let mut pieces = Vec::new();
        while border.collect(&mut outbox, &mail) {
            pieces.push(border.outgoing[0].clone());
        }
        pieces.push(border.outgoing[0].clone());
        assert!(pieces.len() > 3, "{}", pieces.len());
        for piece in &pieces {
            let (messages, left) = piece.as_chunks::<21>();
            assert!(left.is_empty() && messages.iter().all(|words| words[18] == 7));
        }
        assert_eq!(pieces.concat().len(), MESSAGES * 21);
    }
}
