//! Broadcasts in program order: a rank handles a message when it reaches the corresponding receive,
//! not when the message arrives.
//!
//! This is how the simulator of the paper works (section 4.1: local times follow Lamport's clock
//! condition) and what a blocking receive does. Under `LogGOPSim`'s rules, which `loggap simulate`
//! follows, an arriving message gets the processor before a send that was released later. A chain
//! of ranks to which messages are sent faster than it can forward them then receives all of them
//! before it sends one.
//!
//! In program order no operation depends on a later repetition, so one pass over repetitions and
//! ranks gives every time.

#![allow(
    clippy::indexing_slicing,
    reason = "virtual ranks below ranks.len() are swapped among themselves"
)]

use loggap_core::goal::pattern::Options;
use loggap_core::model::LogGops;
use loggap_core::units::{Bytes, Overflow, Picos};

use super::pipelining::Algorithm;

/// Costs of a message.
#[derive(Clone, Copy)]
struct Costs {
    /// o + (s − 1)·O.
    send: Picos,
    /// o + (s − 1)·max{O, G}.
    receive: Picos,
    /// g + (s − 1)·G.
    gap: Picos,
    /// o + L.
    flight: Picos,
}

impl Costs {
    fn of(set: &LogGops, size: u64) -> Result<Self, Overflow> {
        let rest = Bytes(size).after_first();
        let held = set.overhead_per_byte.times(rest)?.max(set.gap_per_byte.times(rest)?);
        Ok(Self {
            send: set.overhead_at(Bytes(size))?,
            receive: set.overhead.plus(held)?,
            gap: set.gap_at(Bytes(size))?,
            flight: set.overhead.plus(set.latency)?,
        })
    }
}

/// Times at which the resources of a rank become free.
#[derive(Clone, Copy, Default)]
struct Rank {
    processor: Picos,
    out: Picos,
    into: Picos,
}

impl Rank {
    /// Sends a message; returns the time of its arrival.
    fn send(&mut self, costs: &Costs) -> Result<Picos, Overflow> {
        let start = self.processor.max(self.out);
        self.processor = start.plus(costs.send)?;
        self.out = start.plus(costs.gap)?;
        start.plus(costs.flight)
    }

    fn receive(&mut self, arrival: Picos, costs: &Costs) -> Result<(), Overflow> {
        let start = self.processor.max(arrival).max(self.into);
        self.processor = start.plus(costs.receive)?;
        self.into = start.plus(costs.gap)?;
        Ok(())
    }
}

/// Time at which the last rank completes the last broadcast of those that `options` repeats.
///
/// # Errors
///
/// [`Overflow`] past 2⁶⁴ ps.
pub fn makespan(algorithm: Algorithm, options: &Options, set: &LogGops) -> Result<Picos, Overflow> {
    let mut ranks = vec![Rank::default(); options.ranks as usize];
    let mut arrivals = vec![Picos::ZERO; options.ranks as usize];
    let costs = || Costs::of(set, options.size);
    for repetition in 0..options.repeat {
        let root = if options.rotate_root { repetition % options.ranks.max(1) } else { 0 };
        match algorithm {
            Algorithm::Tree => tree(&mut ranks, &mut arrivals, root as usize, &costs()?)?,
            Algorithm::Pipeline => pipeline(&mut ranks, root as usize, options, set)?,
            Algorithm::Linear => linear(&mut ranks, root as usize, &costs()?)?,
        }
    }
    Ok(ranks.iter().map(|rank| rank.processor).max().unwrap_or_default())
}

/// Mapping between virtual and real ranks: virtual rank 0 is the root, and the root's own number
/// stands for rank 0.
const fn swapped(rank: usize, root: usize) -> usize {
    if rank == 0 {
        root
    } else if rank == root {
        0
    } else {
        rank
    }
}

/// Binomial tree; in the order of virtual ranks, parents come before their children.
fn tree(
    ranks: &mut [Rank],
    arrivals: &mut [Picos],
    root: usize,
    costs: &Costs,
) -> Result<(), Overflow> {
    for own in 0..ranks.len() {
        let rank = &mut ranks[swapped(own, root)];
        let mut distance = 1;
        if own > 0 {
            rank.receive(arrivals[own], costs)?;
            distance = (own + 1).next_power_of_two();
        }
        while own + distance < arrivals.len() {
            arrivals[own + distance] = rank.send(costs)?;
            distance *= 2;
        }
    }
    Ok(())
}

/// The root sends to each other rank in turn.
fn linear(ranks: &mut [Rank], root: usize, costs: &Costs) -> Result<(), Overflow> {
    for own in 1..ranks.len() {
        let arrival = ranks[root].send(costs)?;
        ranks[swapped(own, root)].receive(arrival, costs)?;
    }
    Ok(())
}

/// Pipeline: each rank receives and forwards the segments in order. They depend on those of the
/// previous rank only, so the ranks are processed one after the other.
fn pipeline(
    ranks: &mut [Rank],
    root: usize,
    options: &Options,
    set: &LogGops,
) -> Result<(), Overflow> {
    let segment = options.segment.unwrap_or(options.size).max(1);
    let segments = options.size.div_ceil(segment).max(1);
    let last = options.size - segments.saturating_sub(1) * segment;
    let (whole, rest) = (Costs::of(set, segment)?, Costs::of(set, last)?);
    let mut arrivals = vec![Picos::ZERO; usize::try_from(segments).map_err(|_| Overflow)?];
    for own in 0..ranks.len() {
        let rank = &mut ranks[swapped(own, root)];
        let above = own + 1 < options.ranks as usize;
        let count = arrivals.len();
        for (index, arrival) in arrivals.iter_mut().enumerate() {
            let costs = if index + 1 == count { &rest } else { &whole };
            if own > 0 {
                rank.receive(*arrival, costs)?;
            }
            if above {
                *arrival = rank.send(costs)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::Preset;

    #[test]
    fn one_broadcast_takes_the_closed_form() {
        let preset: Preset = "mpich2-tcp".parse().unwrap();
        let set = preset.at(Bytes(1)).unwrap();
        for power in 1..8 {
            let ranks = 1 << power;
            let time = |algorithm| makespan(algorithm, &Options::new(ranks, 1), set);
            let one = Picos(52_660_000);
            assert_eq!(time(Algorithm::Tree), one.times(power));
            // o, P − 1 messages g apart, L and o.
            let sends = Picos(3_460_000).times(u64::from(ranks) - 2).unwrap();
            assert_eq!(time(Algorithm::Linear), one.plus(sends));
            assert_eq!(time(Algorithm::Pipeline), one.times(u64::from(ranks) - 1));
        }
    }

    #[test]
    fn a_moving_root_fails_when_there_are_more_ranks_than_repetitions() {
        let preset: Preset = "mpich2-tcp".parse().unwrap();
        let at = |ranks| {
            let options = Options { repeat: 1_000, rotate_root: true, ..Options::new(ranks, 1) };
            let set = preset.at(Bytes(1)).unwrap();
            makespan(Algorithm::Pipeline, &options, set).unwrap().seconds()
        };
        assert!(at(512) > 1.9 * at(256));
        assert!(at(2_048) < 1.01 * at(1_024), "quasi-constant");
    }

    #[test]
    fn segments_of_one_message_flow() {
        let set = Preset::all()[0].protocols[0].parameters;
        let options = Options { segment: Some(2), ..Options::new(3, 5) };
        // o 1500, L 2500, g 1000, G 6, in ns; segments of 2, 2 and 1 B.
        // Rank 0 sends at 0, 1500, 3000. Rank 1 receives at 4000 for 1506,
        // sends, receives at 7006, sends at 8512, receives at 10012, sends at
        // 11512. Rank 2 receives the last at 11512 + 4000 for 1500.
        assert_eq!(makespan(Algorithm::Pipeline, &options, &set), Ok(Picos(17_012_000)));
    }
}
