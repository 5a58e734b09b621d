//! Sizes of the messages of a schedule, and the taper at which links between switches would determine its
//! makespan: noted while the schedule is read for its run.

use std::cell::RefCell;

use loggap_core::goal::{Op, OpKind, Sink};
use loggap_core::sim::Level;
use loggap_core::sim::implicit::{Program, Release, Transfer};
use loggap_core::units::{Bytes, Picos};
use serde::Serialize;

use super::ParameterSets;
use crate::schedule::EachOp;

/// Number of ranks of the smallest leaf considered. A leaf of two leaves needs no less a taper than
/// the busier of them: at most twice its traffic crosses twice as many uplinks.
const SMALLEST: u32 = 8;

/// Taper of a leaf switch whose uplinks would be busy for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Taper {
    /// Contiguous ranks of a leaf.
    #[serde(rename = "leaf_ranks")]
    pub leaf: u32,
    /// Ratio of its hosts' links to its uplinks.
    pub taper: f64,
}

/// Messages with the parameters of one range of sizes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// Number of messages.
    pub messages: u64,
    /// Smallest size.
    pub least: Bytes,
    /// Largest size.
    pub most: Bytes,
}

/// Messages of a schedule that runs with these parameters.
#[derive(Debug)]
pub struct Hints<'p> {
    sets: &'p ParameterSets,
    ranks: u32,
    traffic: RefCell<Traffic>,
}

/// Largest message, and traffic across the edge of leaves of contiguous ranks, in ps of a host's
/// link.
#[derive(Debug, Default)]
struct Traffic {
    ops: u64,
    /// Number of operations beyond which nothing is noted.
    most_ops: u64,
    largest: Option<Bytes>,
    last: Last,
    /// By parameter set of ranks that share no level.
    sent: Vec<Sent>,
    /// Out of and into each leaf of the smallest size.
    edges: Vec<[u64; 2]>,
    /// First rank of the upper half.
    half: u32,
    /// Between the halves of all ranks, upwards and downwards.
    halves: [u64; 2],
}

/// The last message.
#[derive(Debug, Default)]
struct Last {
    size: u64,
    volume: u64,
    /// Index of its parameter set among those of ranks that share no level.
    set: usize,
}

impl Last {
    /// Its volume is (size − 1)·G, 0 past 2⁶⁴ ps.
    fn new(sets: &ParameterSets, size: u64) -> Self {
        let own = sets.without_level();
        let set = own.iter().rposition(|set| set.first.0 <= size).unwrap_or(0);
        let gap = own.get(set).map(|set| set.parameters.gap_per_byte);
        let volume = gap.and_then(|gap| gap.times(Bytes(size).after_first()).ok());
        Self { size, volume: volume.map_or(0, |volume| volume.0), set }
    }
}

impl<'p> Hints<'p> {
    /// Largest number of operations of a file or a pattern of which anything is noted.
    pub const MOST_OPS: u64 = 1 << 20;

    /// Nothing noted so far of a schedule of `ranks` ranks.
    #[must_use]
    pub fn new(sets: &'p ParameterSets, ranks: u32) -> Self {
        Self { sets, ranks, traffic: RefCell::default() }
    }

    /// `sink`, and a note of each operation that passes; nothing if there are more than `most_ops`.
    pub(super) fn noting<'s, S: Sink>(
        hints: Option<&'s Self>,
        most_ops: u64,
        sink: &'s mut S,
    ) -> impl Sink<Error = S::Error> + use<'s, 'p, S> {
        let mut noted = hints.map(|hints| {
            let mut traffic = hints.traffic.borrow_mut();
            *traffic = Traffic { most_ops, ..Traffic::new(hints.ranks) };
            (hints.sets, traffic)
        });
        EachOp::new(sink, move |rank, op: Op| {
            if let Some((sets, traffic)) = &mut noted {
                traffic.note(sets, rank, op.kind);
            }
            Ok(op)
        })
    }

    /// Notes the messages of a computed program: those of each rank as if all that it receives were
    /// there.
    pub(super) fn note_program<P: Program>(&self, program: &P) {
        let mut traffic = self.traffic.borrow_mut();
        *traffic = Traffic::new(self.ranks);
        let mut open = Vec::new();
        for rank in 0..program.extent().ranks {
            let (mut state, mut receive) = (P::State::default(), 0);
            open.push(program.start(rank, &mut state));
            while let Some(Release { sends, receives, calcs }) = open.pop() {
                for send in sends {
                    let Transfer { to, size, .. } = program.transfer(rank, send);
                    traffic.send(self.sets, rank, to, size);
                    open.push(program.sent(rank, &mut state, send));
                }
                for _ in 0..receives {
                    open.push(program.received(rank, &mut state, receive));
                    receive += 1;
                }
                open.extend(calcs.map(|calc| program.calculated(rank, &mut state, calc)));
            }
        }
    }

    /// Notes only sizes of messages, of a program that is not read: `tell` calls its argument with a
    /// size and the number of messages of that size.
    pub(super) fn note_sizes<T>(
        hints: Option<&Self>,
        tell: impl FnOnce(&mut dyn FnMut(u64, u64)) -> T,
    ) -> T {
        let Some(Self { sets, ranks, traffic }) = hints else { return tell(&mut |_, _| {}) };
        let mut traffic = traffic.borrow_mut();
        *traffic = Traffic::new(*ranks);
        tell(&mut |size, messages| {
            traffic.size(sets, size);
            // Which of them stay within a level is not known.
            if sets.levels.is_empty() {
                traffic.count(messages);
            }
        })
    }

    /// Messages between ranks that share no level, by range of sizes, if there are any; none where
    /// [`Hints::largest`] is not known.
    #[must_use]
    pub fn sent(&self) -> Vec<Sent> {
        let traffic = self.traffic.borrow();
        let all = traffic.sent.iter().filter(|sent| sent.messages > 0 && traffic.largest.is_some());
        all.copied().collect()
    }

    /// Size of the largest message; `None` without messages, and for files and
    /// patterns of more than [`Hints::MOST_OPS`] operations.
    #[must_use]
    pub fn largest(&self) -> Option<Bytes> {
        self.traffic.borrow().largest
    }

    /// Smallest taper at which the traffic between leaves of contiguous ranks would by itself take
    /// longer than `makespan`. `None` if there is no such traffic, if parameters differ by
    /// nearness, and for schedules of more than [`Hints::MOST_OPS`] operations.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a ratio of few digits")]
    pub fn taper(&self, makespan: Picos) -> Option<Taper> {
        let Traffic { largest, edges, half, halves, .. } = &*self.traffic.borrow();
        if largest.is_none() || !self.sets.levels.is_empty() {
            return None;
        }
        let mut least: Option<Taper> = None;
        let mut consider = |leaf: u32, sums: &[u64]| {
            let most = sums.iter().max().copied().unwrap_or_default();
            let taper = makespan.0 as f64 * f64::from(leaf) / most as f64;
            if most > 0 && least.is_none_or(|least| taper < least.taper) {
                least = Some(Taper { leaf, taper });
            }
        };
        if *half > SMALLEST {
            consider(SMALLEST, edges.as_flattened());
        }
        if *half >= SMALLEST {
            consider(*half, halves);
        }
        least
    }
}

impl Traffic {
    fn new(ranks: u32) -> Self {
        let edges = vec![[0; 2]; ranks.div_ceil(SMALLEST) as usize];
        Self { edges, half: ranks.div_ceil(2), ..Self::default() }
    }

    #[inline]
    fn note(&mut self, sets: &ParameterSets, rank: u32, kind: OpKind) {
        self.ops += 1;
        if self.ops > self.most_ops {
            self.largest = None;
        } else if let OpKind::Send { peer, size, .. } = kind {
            self.send(sets, rank, peer, size);
        }
    }

    #[inline]
    fn send(&mut self, sets: &ParameterSets, rank: u32, peer: u32, size: u64) {
        self.size(sets, size);
        let is_near = |far: &Level| rank / far.places == peer / far.places;
        if !sets.levels.last().is_some_and(is_near) {
            self.count(1);
        }
        self.add(rank, peer, self.last.volume);
    }

    #[inline]
    fn size(&mut self, sets: &ParameterSets, size: u64) {
        self.largest = self.largest.max(Some(Bytes(size)));
        if size != self.last.size {
            self.last = Last::new(sets, size);
        }
    }

    /// Counts messages as long as the last one.
    #[inline]
    fn count(&mut self, messages: u64) {
        let (set, size) = (self.last.set, Bytes(self.last.size));
        if self.sent.len() <= set {
            self.sent.resize(set + 1, Sent::default());
        }
        let Some(sent) = self.sent.get_mut(set) else { return };
        let least = if sent.messages == 0 { size } else { sent.least.min(size) };
        let messages = sent.messages.saturating_add(messages);
        *sent = Sent { messages, least, most: sent.most.max(size) };
    }

    /// Adds a message between two ranks.
    #[inline]
    fn add(&mut self, from: u32, to: u32, volume: u64) {
        let add = |sum: Option<&mut u64>| {
            if let Some(sum) = sum {
                *sum = sum.saturating_add(volume);
            }
        };
        match (from < self.half, to < self.half) {
            (true, false) => add(self.halves.first_mut()),
            (false, true) => add(self.halves.last_mut()),
            _ => {}
        }
        let [from, to] = [from, to].map(|rank| rank / SMALLEST);
        if from != to {
            add(self.edges.get_mut(from as usize).map(|[out, _]| out));
            add(self.edges.get_mut(to as usize).map(|[_, into]| into));
        }
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::goal::pattern::{Options, Pattern};
    use loggap_core::model::{LogGops, Protocol};
    use loggap_core::sim::Survey;
    use loggap_core::sim::implicit::PatternProgram;
    use loggap_core::units::PerByte;
    use loggap_core::with_program;

    use super::*;
    use crate::simulation::Source;

    fn sets() -> ParameterSets {
        let parameters = LogGops {
            latency: Picos(5),
            overhead: Picos(5),
            gap: Picos(5),
            gap_per_byte: PerByte::from_picos(10).unwrap(),
            overhead_per_byte: PerByte::ZERO,
            eager_limit: Bytes(u64::MAX),
        };
        ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new())
    }

    #[test]
    fn messages_of_a_computed_pattern_are_those_of_its_schedule() {
        let (sets, mut computed) = (sets(), 0);
        for pattern in Pattern::all().iter().map(|description| description.pattern) {
            for ranks in [9, 24, 64] {
                let options = Options::new(ranks, 100);
                let program = PatternProgram::new(pattern, &options);
                let Ok(Some(program)) = program else { continue };
                let [own, read] = [(); 2].map(|()| Hints::new(&sets, ranks));
                with_program!(&program, program => own.note_program(program));
                let source = Source::Pattern(pattern, options);
                source.feed(&mut Survey::default(), Some(&read)).unwrap();
                let [own, read] = [own, read].map(|hints| {
                    let Traffic { largest, sent, edges, halves, .. } = hints.traffic.into_inner();
                    (largest, sent, edges, halves)
                });
                assert_eq!(own, read, "{pattern:?} on {ranks}");
                computed += 1;
            }
        }
        assert!(computed > 40, "{computed}");
    }

    #[test]
    fn messages_are_counted_by_range_of_sizes_and_those_within_a_level_left_out() {
        let one = sets();
        let range = |first| Protocol { first: Bytes(first), ..one.protocols[0] };
        let far = ParameterSets::new([1, 100, 1_000].map(range).to_vec(), Vec::new());
        let with_level = far.clone().with_level(2.try_into().unwrap(), one);
        let sent = |[messages, least, most]: [u64; 3]| Sent {
            messages,
            least: Bytes(least),
            most: Bytes(most),
        };
        let sends = [(0, 1, 0), (0, 2, 99), (0, 1, 5), (0, 2, 2_000), (1, 2, 1_000)];
        for (sets, below) in [(&far, [3, 0, 99]), (&with_level, [1, 99, 99])] {
            let hints = Hints::new(sets, 4);
            sends.iter().for_each(|&(rank, peer, size)| {
                hints.traffic.borrow_mut().send(sets, rank, peer, size);
            });
            assert_eq!(hints.sent(), [sent(below), sent([2, 1_000, 2_000])]);
        }
        let hints = Hints::new(&far, 4);
        Hints::note_sizes(Some(&hints), |note| sends.iter().for_each(|send| note(send.2, 7)));
        assert_eq!(hints.sent(), [sent([21, 0, 99]), sent([14, 1_000, 2_000])]);
        assert_eq!(hints.largest(), Some(Bytes(2_000)));
    }

    #[test]
    fn the_taper_that_decides_is_that_of_the_busiest_leaf() {
        let sets = sets();
        let taper = |ranks: u32, sends: &[(u32, u32, u64)]| {
            let hints = Hints::new(&sets, ranks);
            let mut survey = Survey::default();
            let mut noting = Hints::noting(Some(&hints), Hints::MOST_OPS, &mut survey);
            for &(rank, peer, size) in sends {
                noting.begin_rank(rank).unwrap();
                let kind = OpKind::Send { peer, size, tag: 0 };
                noting.op(Op { kind, cpu: 0, nic: 0 }).unwrap();
                noting.end_rank().unwrap();
            }
            drop(noting);
            assert_eq!(hints.largest().map(|size| size.0), sends.iter().map(|send| send.2).max());
            hints.taper(Picos(1_000)).map(|taper| (taper.leaf, taper.taper))
        };
        assert_eq!(taper(64, &[(0, 1, 1_000), (63, 56, 1_000)]), None, "within leaves");
        assert_eq!(taper(64, &[(0, 8, 11)]), Some((8, 80.0)));
        assert_eq!(taper(64, &[(0, 48, 51), (1, 56, 51)]), Some((8, 8.0)), "out of one leaf");
        assert_eq!(taper(64, &[(0, 48, 51), (20, 56, 101), (40, 63, 101)]), Some((8, 4.0)));
        assert_eq!(taper(64, &[(0, 17, 11), (8, 18, 11)]), Some((8, 40.0)));
        assert_eq!(taper(64, &[(0, 17, 11), (9, 33, 21), (15, 2, 99)]), Some((8, 800.0 / 118.0)));
        // Nothing crosses the edge of leaves of 8, but of halves of 10.
        assert_eq!(taper(20, &[(9, 10, 101)]), Some((10, 10.0)));
        assert_eq!(taper(8, &[(0, 7, 101)]), None, "too few to be parted");
        assert_eq!(taper(64, &[]), None);
    }
}
