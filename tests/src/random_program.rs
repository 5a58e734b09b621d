//! Random schedules and parameters, full of equal times.

use crate::program::{Edge, Program, RankProgram};
use loggap_core::goal::{ANY, ANY_TAG, Op, OpKind};
use loggap_core::model::{LogGops, ReceiveOverhead};
use loggap_core::random::Random;
use loggap_core::units::{Bytes, PerByte, Picos};

/// Limits of a random schedule.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Ranks at most.
    pub ranks: u64,
    /// Messages at most.
    pub messages: u64,
    /// Calculations of each rank at most.
    pub calcs: u64,
    /// Processors of a rank.
    pub cpus: u64,
    /// Interfaces of a rank.
    pub nics: u64,
    /// Out of 100 receives and tags, how many are wildcards.
    pub wildcards: u64,
    /// Out of 100 pairs of operations, how many depend on each other.
    pub edges: u64,
    /// Out of 100 messages, how many lack an end or differ in size.
    pub faults: u64,
}

impl Shape {
    /// One processor and interface, matching ends, no wildcards.
    pub const PLAIN: Self = Self {
        ranks: 6,
        messages: 20,
        calcs: 3,
        cpus: 1,
        nics: 1,
        wildcards: 0,
        edges: 12,
        faults: 0,
    };

    /// Everything there is.
    pub const WILD: Self =
        Self { cpus: 3, nics: 2, wildcards: 25, edges: 10, faults: 3, ..Self::PLAIN };
}

/// A random schedule. Its dependencies have no cycles, but its messages may
/// deadlock.
#[must_use]
pub fn program(random: &mut Random, shape: &Shape) -> Program {
    let ranks = 1 + random.below(shape.ranks);
    let mut program = Program::default();
    program.ranks.resize(ranks as usize, RankProgram::default());
    for rank in 0..ranks {
        for _ in 0..random.below(shape.calcs + 1) {
            let duration = Picos(random.below(6) * 1_000);
            insert(random, shape, &mut program.ranks[rank as usize], OpKind::Calc { duration });
        }
    }
    for _ in 0..random.below(shape.messages + 1) {
        message(random, shape, &mut program);
    }
    for rank in &mut program.ranks {
        for op in 1..rank.ops.len() as u32 {
            for on in 0..op {
                if random.below(100) < shape.edges {
                    rank.edges.push(Edge { op, on, start: random.below(3) == 0 });
                }
            }
        }
        // The order of statements decides the order of releases.
        for last in (1..rank.edges.len()).rev() {
            rank.edges.swap(last, random.below(last as u64 + 1) as usize);
        }
    }
    program
}

/// A random schedule of two or three ranks on which hundreds of receives and
/// messages wait at a time: each operation may wait for one of a rank's
/// calculations, which follow each other.
#[must_use]
pub fn crowded(random: &mut Random) -> Program {
    let shape = Shape {
        wildcards: [0, 0, 3, 30, 100][random.below(5) as usize],
        faults: random.below(2) * 5,
        ..if random.below(3) == 0 { Shape::WILD } else { Shape::PLAIN }
    };
    let tags = [1, 3, 50, 1_000][random.below(4) as usize];
    let mut program = Program::default();
    program.ranks.resize(2 + random.below(2) as usize, RankProgram::default());
    for _ in 0..200 + random.below(800) {
        message_with(random, &shape, &mut program, tags);
    }
    for rank in &mut program.ranks {
        let ops = rank.ops.len() as u32;
        let calcs = 1 + random.below(6) as u32;
        for calc in ops..ops + calcs {
            let duration = Picos(random.below(1_000) * 1_000);
            rank.ops.push(Op { kind: OpKind::Calc { duration }, cpu: 0, nic: 0 });
            if calc > ops {
                rank.edges.push(Edge { op: calc, on: calc - 1, start: false });
            }
        }
        // Of eight sends, and of eight receives, how many wait.
        let waits = [random.below(9), random.below(9)];
        for op in 0..ops {
            let receives = matches!(rank.ops[op as usize].kind, OpKind::Receive { .. });
            if random.below(8) < waits[usize::from(receives)] {
                let on = ops + random.below(calcs.into()) as u32;
                rank.edges.push(Edge { op, on, start: random.below(8) == 0 });
            }
        }
    }
    program
}

/// A send and its receive, at random places of two ranks.
fn message(random: &mut Random, shape: &Shape, program: &mut Program) {
    message_with(random, shape, program, 3);
}

/// The same, with one of so many tags.
fn message_with(random: &mut Random, shape: &Shape, program: &mut Program, tags: u64) {
    let ranks = program.ranks.len() as u64;
    let (from, to) = (random.below(ranks), random.below(ranks));
    let size = random.below(7);
    let tag = random.below(tags);
    let wild = |random: &mut Random| random.below(100) < shape.wildcards;
    let fault = if random.below(100) < shape.faults { random.below(3) } else { 3 };
    if fault != 0 {
        let tag = if random.below(10) == 0 && wild(random) { ANY_TAG } else { tag };
        let kind = OpKind::Send { peer: to as u32, size, tag };
        insert(random, shape, &mut program.ranks[from as usize], kind);
    }
    if fault != 1 {
        let peer = if wild(random) { ANY } else { from as u32 };
        let tag = if wild(random) { ANY_TAG } else { tag };
        let size = if fault == 2 { random.below(7) } else { size };
        let kind = OpKind::Receive { peer, size, tag };
        insert(random, shape, &mut program.ranks[to as usize], kind);
    }
}

fn insert(random: &mut Random, shape: &Shape, rank: &mut RankProgram, kind: OpKind) {
    let at = random.below(rank.ops.len() as u64 + 1) as usize;
    let cpu = random.below(shape.cpus) as u16;
    let nic = if matches!(kind, OpKind::Calc { .. }) { 0 } else { random.below(shape.nics) as u16 };
    rank.ops.insert(at, Op { kind, cpu, nic });
}

/// L, o and g in ps, G and O in ps a byte, and no eager limit.
#[must_use]
pub fn of_picos([latency, overhead, gap, gap_per_byte, overhead_per_byte]: [u64; 5]) -> LogGops {
    LogGops {
        latency: Picos(latency),
        overhead: Picos(overhead),
        gap: Picos(gap),
        gap_per_byte: PerByte(gap_per_byte << 16),
        overhead_per_byte: PerByte(overhead_per_byte << 16),
        eager_limit: Bytes(u64::MAX),
    }
}

/// Random parameters of few nanoseconds each, many of them 0.
#[must_use]
pub fn parameters(random: &mut Random) -> LogGops {
    let mut nanos = |bound: u64| random.below(bound) * 1_000;
    LogGops {
        latency: Picos(nanos(4)),
        overhead: Picos(nanos(3)),
        gap: Picos(nanos(4)),
        gap_per_byte: PerByte(nanos(3) << 15),
        overhead_per_byte: PerByte(nanos(3) << 15),
        eager_limit: Bytes(nanos(8) / 1_000),
    }
}

/// Parameters, and works of the calculations of `program`, so far apart that
/// two chains of events take the same time only where both are the same sum; a byte costs
/// `per_byte` ps at most, and 0.01 us.
pub fn spread(random: &mut Random, program: &mut Program, per_byte: u64) -> LogGops {
    let mut time = || Picos(1_000_000 + random.below(1 << 30));
    let [latency, overhead, gap] = [time(), time(), time()];
    for op in program.ranks.iter_mut().flat_map(|rank| &mut rank.ops) {
        if let OpKind::Calc { duration } = &mut op.kind {
            *duration = time();
        }
    }
    let mut time = || PerByte((10_000 + random.below(per_byte)) << 16);
    let [gap_per_byte, overhead_per_byte] = [time(), time()];
    let eager_limit = Bytes(random.below(16));
    LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit }
}

/// The set with one parameter longer by 1 ps: L, o, g, G, O.
#[must_use]
pub fn longer(set: LogGops) -> [LogGops; 5] {
    let more = |time: Picos| Picos(time.0 + 1);
    let more_per_byte = |time: PerByte| PerByte(time.0 + (1 << 16));
    [
        LogGops { latency: more(set.latency), ..set },
        LogGops { overhead: more(set.overhead), ..set },
        LogGops { gap: more(set.gap), ..set },
        LogGops { gap_per_byte: more_per_byte(set.gap_per_byte), ..set },
        LogGops { overhead_per_byte: more_per_byte(set.overhead_per_byte), ..set },
    ]
}

/// Overheads of the receiver for one parameter set, which in half of all cases
/// are those of the sender: none then.
#[must_use]
pub fn receive_overheads(random: &mut Random) -> Vec<ReceiveOverhead> {
    if random.below(2) == 0 {
        return Vec::new();
    }
    vec![receive_overhead(random)]
}

/// The overhead of a receiver.
pub fn receive_overhead(random: &mut Random) -> ReceiveOverhead {
    ReceiveOverhead {
        overhead: Picos(random.below(4) * 1_000),
        overhead_per_byte: PerByte((random.below(4) * 1_000) << 15),
    }
}
