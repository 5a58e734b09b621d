//! Clock domains: ranks that read the same clock.

use std::collections::HashMap;
use std::fs;

use mpi::collective::CommunicatorCollectives as _;

use crate::job::Job;

/// Ranks that share a clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Domains {
    /// Those that one kernel runs.
    #[default]
    Machine,
    /// Each rank alone, as if it had a clock of its own.
    Rank,
}

/// Origin of a rank's time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Begin {
    /// Clock domain of the rank; domains are numbered in the order of their first ranks.
    pub(super) domain: u32,
    /// Reading from which all ranks of the domain count.
    pub(super) reading: u64,
}

/// Clock of a rank.
#[derive(Clone, Copy)]
struct Clock {
    /// Boot of the kernel whose clock it is.
    boot: u128,
    reading: u64,
}

/// Origins of all ranks, with this rank's clock at `reading` now; and true if
/// one kernel runs all ranks, so that they read one clock. All ranks call this
/// together.
pub(super) fn begins(job: &Job, domains: Domains, reading: u64) -> (Vec<Begin>, bool) {
    /// Two halves of a boot's identifier, and a reading.
    const NUMBERS: usize = 3;
    let boot = boot().unwrap_or_else(|| own(job.rank().unsigned_abs()));
    #[allow(clippy::cast_possible_truncation, reason = "the two halves")]
    let mine = [(boot >> 64) as u64, boot as u64, reading];
    let count = usize::try_from(job.size()).unwrap_or(0);
    let mut all = vec![0_u64; NUMBERS * count];
    job.watch().during(|| job.control().all_gather_into(&mine[..], &mut all[..]));
    let clock = |&[high, low, reading]: &[u64; NUMBERS]| Clock {
        boot: u128::from(high) << 64 | u128::from(low),
        reading,
    };
    let mut clocks: Vec<Clock> = all.as_chunks().0.iter().map(clock).collect();
    let is_one_kernel = clocks.iter().all(|other| other.boot == boot);
    if domains == Domains::Rank {
        clocks.iter_mut().zip(0..).for_each(|(clock, rank)| clock.boot = own(rank));
    }
    let begins = numbered(&clocks);
    (begins, is_one_kernel)
}

/// Numbers the boots. The origin of a domain is its least reading.
fn numbered(ranks: &[Clock]) -> Vec<Begin> {
    let mut known: HashMap<u128, usize> = HashMap::new();
    let mut least: Vec<u64> = Vec::new();
    let mut of_ranks = Vec::new();
    for &Clock { boot, reading } in ranks {
        let domain = *known.entry(boot).or_insert_with(|| {
            least.push(reading);
            least.len() - 1
        });
        if let Some(begin) = least.get_mut(domain) {
            *begin = reading.min(*begin);
        }
        of_ranks.push(domain);
    }
    let begin = |domain: usize| Begin {
        domain: u32::try_from(domain).unwrap_or(u32::MAX),
        reading: least.get(domain).copied().unwrap_or(0),
    };
    of_ranks.into_iter().map(begin).collect()
}

/// Identifier of the kernel's boot. Containers of one machine share it, and the clock.
fn boot() -> Option<u128> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

/// Identifier that no other rank and no boot has.
fn own(rank: u32) -> u128 {
    u128::from(rank) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_boot_count_from_one_reading() {
        let clock = |boot, reading| Clock { boot, reading };
        let begins = numbered(&[clock(7, 50), clock(9, 10), clock(7, 40), clock(9, 12)]);
        let begin = |domain, reading| Begin { domain, reading };
        assert_eq!(begins, [begin(0, 40), begin(1, 10), begin(0, 40), begin(1, 10)]);
    }

    #[test]
    fn this_machine_has_a_boot() {
        assert!(boot().is_some_and(|boot| boot > u128::from(u64::MAX)));
        assert_eq!(boot(), boot());
    }
}
