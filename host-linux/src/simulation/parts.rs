//! Ranks of each process, as a file says.
//!
//! Ranks take new numbers, by which those of a process follow each other in their order. So a run
//! does not look up where a rank is; at equal times their own numbers decide.

use std::path::Path;

use loggap_core::sim::Unfinished;
use loggap_core::sim::mail::Block;

use super::windows::partition_shift;
use super::{NetworkError, Processes, RankLocation, read_locations};

/// Ranks of each process.
#[derive(Debug)]
pub struct Parts {
    /// Number of each rank.
    numbers: Vec<u32>,
    /// Rank of each number; [`u32::MAX`] for those beyond the ranks of a process.
    ranks: Vec<u32>,
    /// log₂ of the number of ranks in a partition, and the partitions of this process.
    pub(super) divided: (u32, Block),
}

/// Why a file does not divide the ranks.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] NetworkError),
    /// There are as many numbers as ranks, and they are those of processes.
    #[error("{0}")]
    Numbers(String),
}

impl Parts {
    /// Reads the process of each of `ranks`, one a line as METIS writes them, for runs with
    /// `threads` threads in each process.
    ///
    /// # Errors
    ///
    /// [`PartsError`].
    pub fn read(
        path: &Path,
        ranks: u32,
        threads: usize,
        processes: &dyn Processes,
    ) -> Result<Self, PartsError> {
        let of = read_locations(path, RankLocation::Process)?;
        let (name, count) = (path.display(), processes.count());
        let wrong = |text: String| PartsError::Numbers(format!("{name}: {text}"));
        if of.len() != ranks as usize {
            return Err(wrong(format!(
                "has the processes of {} ranks, and there are {ranks}",
                of.len()
            )));
        }
        if let Some((rank, process)) = of.iter().enumerate().find(|(_, at)| **at >= count) {
            return Err(wrong(format!(
                "rank {rank} is in process {process}, and the last of {count} is {}",
                count - 1
            )));
        }
        Self::new(&of, threads, processes)
            .ok_or_else(|| wrong("one process has too many ranks".to_owned()))
    }

    /// Ranks of each process from the process of each rank, which exists; `None` if numbers do not
    /// suffice.
    #[must_use]
    pub fn new(of: &[u32], threads: usize, processes: &dyn Processes) -> Option<Self> {
        let count = processes.count();
        let mut sizes = vec![0u32; count as usize];
        of.iter().filter_map(|process| usize::try_from(*process).ok()).for_each(|process| {
            if let Some(size) = sizes.get_mut(process) {
                *size += 1;
            }
        });
        let most = sizes.into_iter().max()?.max(1);
        let together = u32::try_from(of.len()).ok()?;
        let shift = partition_shift(together, threads.saturating_mul(count as usize));
        let shift = shift.min(most.ilog2());
        let each = most.div_ceil(1 << shift);
        let room = each << shift;
        let all = count.checked_mul(room).filter(|all| *all < u32::MAX)?;
        let mut next: Vec<u32> = (0..count).map(|process| process * room).collect();
        let mut ranks = vec![u32::MAX; all as usize];
        let numbers = (0u32..).zip(of).map(|(rank, process)| {
            let next = next.get_mut(*process as usize)?;
            *ranks.get_mut(*next as usize)? = rank;
            *next += 1;
            Some(*next - 1)
        });
        let numbers = numbers.collect::<Option<Vec<_>>>()?;
        let first = processes.index() * each;
        Some(Self { numbers, ranks, divided: (shift, Block { first, each }) })
    }

    /// Number of a rank.
    pub(super) fn number(&self, rank: u32) -> Option<u32> {
        self.numbers.get(rank as usize).copied()
    }

    /// Rank of a number; the number if it has none, as the wildcard.
    pub(super) fn rank(&self, number: u32) -> u32 {
        self.ranks.get(number as usize).copied().unwrap_or(number)
    }

    /// Rank of each number.
    #[must_use]
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// What all numbers have, by rank.
    pub(super) fn by_rank<T: Clone>(&self, of_numbers: &[T]) -> Vec<T> {
        self.numbers.iter().filter_map(|at| of_numbers.get(*at as usize).cloned()).collect()
    }

    /// Memory, bytes.
    pub(super) const fn bytes(&self) -> u64 {
        4 * (self.numbers.len() + self.ranks.len()) as u64
    }

    /// An unfinished operation with ranks in place of numbers.
    pub(super) fn named(&self, left: Unfinished) -> Unfinished {
        let name = |number| self.rank(number);
        match left {
            Unfinished::Unreceived { rank, from, op, tag } => {
                Unfinished::Unreceived { rank: name(rank), from: name(from), op, tag }
            }
            Unfinished::Waiting { rank, op, peer, tag } => {
                Unfinished::Waiting { rank: name(rank), op, peer: name(peer), tag }
            }
            Unfinished::NeverReady { rank, op } => Unfinished::NeverReady { rank: name(rank), op },
        }
    }
}
