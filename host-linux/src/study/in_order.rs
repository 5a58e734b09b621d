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

use loggap_core::model::LogGops;
use loggap_core::units::{Bytes, Overflow, Picos};

use super::pipelining::Algorithm;

/// A series of broadcasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Series {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Number of ranks.
    pub ranks: u32,
    /// Bytes of the broadcast.
    pub size: u64,
    /// Bytes of a segment of the pipeline, at least 1.
    pub segment: u64,
    /// Repetitions, one after the other on each rank.
    pub repetitions: u32,
    /// True if the root moves by one rank each repetition.
    pub rotate_root: bool,
}

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

/// Time at which the last rank completes the last broadcast.
///
/// # Errors
///
/// [`Overflow`] past 2⁶⁴ ps.
pub fn makespan(series: &Series, set: &LogGops) -> Result<Picos, Overflow> {
    let mut ranks = vec![Rank::default(); series.ranks as usize];
    let mut arrivals = vec![Picos::ZERO; series.ranks as usize];
    for repetition in 0..series.repetitions {
        let root = if series.rotate_root { repetition % series.ranks.max(1) } else { 0 };
        match series.algorithm {
            Algorithm::Tree => {
                let costs = Costs::of(set, series.size)?;
                tree(&mut ranks, &mut arrivals, root as usize, &costs)?;
            }
            Algorithm::Pipeline => pipeline(&mut ranks, root as usize, series, set)?,
            Algorithm::Linear => {
                linear(&mut ranks, root as usize, &Costs::of(set, series.size)?)?;
            }
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
#[allow(
    clippy::indexing_slicing,
    reason = "virtual ranks below ranks.len() are swapped among themselves"
)]
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
#[allow(
    clippy::indexing_slicing,
    reason = "virtual ranks below ranks.len() are swapped among themselves"
)]
fn linear(ranks: &mut [Rank], root: usize, costs: &Costs) -> Result<(), Overflow> {
    for own in 1..ranks.len() {
        let arrival = ranks[root].send(costs)?;
        ranks[swapped(own, root)].receive(arrival, costs)?;
    }
    Ok(())
}

/// Pipeline: each rank receives and forwards the segments in order. They depend on those of the
/// previous rank only, so the ranks are processed one after the other.
#[allow(
    clippy::indexing_slicing,
    reason = "virtual ranks below ranks.len() are swapped among themselves"
)]
fn pipeline(
    ranks: &mut [Rank],
    root: usize,
    series: &Series,
    set: &LogGops,
) -> Result<(), Overflow> {
    let segment = series.segment.max(1);
    let segments = series.size.div_ceil(segment).max(1);
    let last = series.size - segments.saturating_sub(1) * segment;
    let (whole, rest) = (Costs::of(set, segment)?, Costs::of(set, last)?);
    let mut arrivals = vec![Picos::ZERO; usize::try_from(segments).map_err(|_| Overflow)?];
    for own in 0..ranks.len() {
        let rank = &mut ranks[swapped(own, root)];
        let above = own + 1 < series.ranks as usize;
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

    #[derive(PartialEq)]
    enum Root {
        Stays,
        Moves,
    }

    fn mean_micros(name: &str, algorithm: Algorithm, ranks: u32, root: Root) -> f64 {
        let rotate_root = root == Root::Moves;
        let preset: Preset = name.parse().unwrap();
        let set = preset.at(Bytes(1)).unwrap();
        let series =
            Series { algorithm, ranks, size: 1, segment: 1, repetitions: 1_000, rotate_root };
        makespan(&series, set).unwrap().seconds() * 1e3
    }

    #[test]
    fn one_broadcast_takes_the_closed_form() {
        let preset: Preset = "mpich2-tcp".parse().unwrap();
        let set = preset.at(Bytes(1)).unwrap();
        for power in 1..8 {
            let ranks = 1 << power;
            let series = Series {
                algorithm: Algorithm::Tree,
                ranks,
                size: 1,
                segment: 1,
                repetitions: 1,
                rotate_root: false,
            };
            let one = Picos(52_660_000);
            assert_eq!(makespan(&series, set), one.times(power));
            // o, P − 1 messages g apart, L and o.
            let linear = Series { algorithm: Algorithm::Linear, ..series };
            let sends = Picos(3_460_000).times(u64::from(ranks) - 2).unwrap();
            assert_eq!(makespan(&linear, set), one.plus(sends));
            let chain = Series { algorithm: Algorithm::Pipeline, ..series };
            assert_eq!(makespan(&chain, set), one.times(u64::from(ranks) - 1));
        }
    }

    #[test]
    fn the_loop_prefers_the_pipeline_up_to_512_ranks_as_the_paper_found() {
        let (tree, pipeline) = (Algorithm::Tree, Algorithm::Pipeline);
        let wrong = |name: &str, ranks: u32| {
            mean_micros(name, pipeline, ranks, Root::Stays)
                < mean_micros(name, tree, ranks, Root::Stays)
        };
        for power in 3..=8 {
            assert!(wrong("mpich2-tcp", 1 << power), "2^{power}");
        }
        assert!(!wrong("mpich2-tcp", 512));
        assert!(
            wrong("mpich2-tcp", 460) && !wrong("mpich2-tcp", 470),
            "the paper has powers of two"
        );
        assert!(wrong("ompi-ib-sdr", 512));
    }

    #[test]
    fn a_moving_root_fails_when_there_are_more_ranks_than_repetitions() {
        let at = |ranks| mean_micros("mpich2-tcp", Algorithm::Pipeline, ranks, Root::Moves);
        assert!(at(512) > 1.9 * at(256));
        assert!(at(2_048) < 1.01 * at(1_024), "quasi-constant");
    }

    #[test]
    fn segments_of_one_message_flow() {
        let set = Preset::all()[0].protocols[0].parameters;
        let series = Series {
            algorithm: Algorithm::Pipeline,
            ranks: 3,
            size: 5,
            segment: 2,
            repetitions: 1,
            rotate_root: false,
        };
        // o 1500, L 2500, g 1000, G 6, in ns; segments of 2, 2 and 1 B.
        // Rank 0 sends at 0, 1500, 3000. Rank 1 receives at 4000 for 1506,
        // sends, receives at 7006, sends at 8512, receives at 10012, sends at
        // 11512. Rank 2 receives the last at 11512 + 4000 for 1500.
        assert_eq!(makespan(&series, &set), Ok(Picos(17_012_000)));
    }
}
