//! Simulations on several processes: the results of all, at the first one.

use loggap_core::sim::{Finished, RankCounters, Unfinished};
use loggap_core::units::Picos;

use super::{Job, Method, Outcome, ProgramForm, SHARED_LINKS, Watch};
use crate::simulation::{LoadError, LookedUp, Parts, RunError, Source};

impl Job<'_> {
    /// Runs a schedule on several processes. The outcome is complete at the first one.
    pub(super) fn across(&self, source: &Source, watch: Watch<'_>) -> Result<Outcome, RunError> {
        if self.network.is_some() {
            return Err(RunError::Load(LoadError::OneProcess(SHARED_LINKS.to_owned())));
        }
        // Computed programs go by the numbers of ranks.
        let computed = if self.parts.is_some() { None } else { self.computed(source, watch)? };
        match computed {
            Some(outcome) => Ok(outcome),
            None => {
                let own = match self.own_streamed(source, watch)? {
                    Some(own) => own,
                    None => self.own_in_windows(source, watch)?,
                };
                Ok(self.together(source, own))
            }
        }
    }

    /// Runs the ranks of this process of a program that is looked up; `None` if it must be stored.
    fn own_streamed(&self, source: &Source, watch: Watch<'_>) -> Result<Option<Outcome>, RunError> {
        let why = self.looked_up(source).filter(|_| self.parts.is_none());
        let Some(why) = why else { return Ok(None) };
        match self.streamed_in_windows(LookedUp::of(source)?, why, watch)? {
            Err(why) if self.program == Some(ProgramForm::Streamed) => {
                Err(LoadError::OneProcess(why.to_owned()).into())
            }
            ran => Ok(ran.ok()),
        }
    }

    /// Times of all processes, in their order, at the first one.
    pub(super) fn of_all(&self, own: Vec<Picos>) -> Vec<Picos> {
        if self.processes.count() == 1 {
            return own;
        }
        let all = self.processes.at_first(own.into_iter().map(|time| time.0).collect());
        all.into_iter().map(Picos).collect()
    }

    /// What all numbers have, by rank.
    fn by_rank<T: Clone>(&self, all: Vec<T>) -> Vec<T> {
        match self.parts {
            Some(parts) => parts.by_rank(&all),
            None => all,
        }
    }

    /// Outcome of all processes.
    fn together(&self, source: &Source, own: Outcome) -> Outcome {
        let named = |left| self.parts.map_or(left, |parts| parts.named(left));
        let Finished { makespan, last_rank, events } = own.finished;
        let partitions = match own.method {
            Method::Windows { partitions, .. }
            | Method::Streamed { parts: [_, partitions], .. } => partitions as u64,
            _ => 0,
        };
        let ranks = self.parts.map_or(own.ranks, |_| source.ranks());
        let last_rank = self.parts.map_or(last_rank, |parts| parts.rank(last_rank));
        let memory = own.memory_bytes + self.parts.map_or(0, Parts::bytes);
        let (ops, stuck) = (own.ops, own.stuck.total);
        let under_way = own.most_under_way.unwrap_or_default();
        let counts = [events, ops, memory, own.crossing, stuck, partitions, under_way];
        let numbers = [&[makespan.0, last_rank.into()], &counts[..]].concat();
        let mut whole = Outcome { ranks, load: own.load, run: own.run, ..Outcome::default() };
        let mut partitions = 0;
        for &[makespan, rank, events, ops, memory, crossing, stuck, parts, under_way] in
            self.processes.all(&numbers).as_chunks().0
        {
            let most = whole.most_under_way.unwrap_or_default().saturating_add(under_way);
            whole.most_under_way = own.most_under_way.map(|_| most);
            whole.finished.events += events;
            whole.ops += ops;
            whole.memory_bytes += memory;
            whole.crossing += crossing;
            whole.stuck.total += stuck;
            partitions += usize::try_from(parts).unwrap_or_default();
            let before = whole.finished;
            if makespan > before.makespan.0
                || makespan == before.makespan.0 && narrow(rank) < before.last_rank
            {
                whole.finished.makespan = Picos(makespan);
                whole.finished.last_rank = narrow(rank);
            }
        }
        let left = own.stuck.listed().flat_map(|left| words_of(&named(*left))).collect();
        for words in self.processes.at_first(left).as_chunks().0 {
            whole.stuck.list(unfinished(words));
        }
        whole.finish = own.finish.map(|finish| self.by_rank(self.of_all(finish)));
        whole.counters = own.counters.map(|counters| {
            let own = counters.iter().flat_map(numbers_of).collect();
            let all = self.processes.at_first(own);
            self.by_rank(all.as_chunks().0.iter().map(counters_of).collect())
        });
        whole.method = match own.method {
            Method::Windows { threads, .. } => Method::Windows { threads, partitions },
            Method::Streamed { reason, in_order, parts: [threads, _] } => {
                Method::Streamed { reason, in_order, parts: [threads, partitions] }
            }
            other => other,
        };
        whole
    }
}

/// A number that was one of 32 bits.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// An unfinished operation as numbers, the first of which is its kind.
fn words_of(left: &Unfinished) -> [u64; 5] {
    match *left {
        Unfinished::Unreceived { rank, from, op, tag } => {
            [0, rank.into(), from.into(), op.into(), tag]
        }
        Unfinished::Waiting { rank, op, peer, tag } => {
            [1, rank.into(), peer.into(), op.into(), tag]
        }
        Unfinished::NeverReady { rank, op } => [2, rank.into(), 0, op.into(), 0],
    }
}

/// Inverse of [`words_of`].
fn unfinished(&[kind, rank, peer, op, tag]: &[u64; 5]) -> Unfinished {
    let [rank, peer, op] = [rank, peer, op].map(narrow);
    match kind {
        0 => Unfinished::Unreceived { rank, from: peer, op, tag },
        1 => Unfinished::Waiting { rank, op, peer, tag },
        _ => Unfinished::NeverReady { rank, op },
    }
}

/// Counters of 64 bits.
const fn wide(c: &mut RankCounters) -> [&mut u64; 10] {
    [
        &mut c.calcs,
        &mut c.sent,
        &mut c.bytes_sent.0,
        &mut c.received,
        &mut c.unexpected,
        &mut c.calculating.0,
        &mut c.sending.0,
        &mut c.receiving.0,
        &mut c.noise.0,
        &mut c.messages_waited.0,
    ]
}

/// Counters as numbers.
fn numbers_of(counters: &RankCounters) -> impl Iterator<Item = u64> + use<> {
    let mut c = *counters;
    let last = [c.max_posted, c.max_unexpected].map(u64::from);
    wide(&mut c).map(|number| *number).into_iter().chain(last)
}

/// Inverse of [`numbers_of`].
fn counters_of(numbers: &[u64; 12]) -> RankCounters {
    let mut c = RankCounters::default();
    wide(&mut c).into_iter().zip(numbers).for_each(|(to, number)| *to = *number);
    let [.., posted, unexpected] = numbers.map(narrow);
    (c.max_posted, c.max_unexpected) = (posted, unexpected);
    c
}
