//! Both ends of a measurement before peers and links that do anything.

use super::Numbers;
use loggap_core::fit::{Cell, Node, Point, Segment};
use loggap_core::measure::{
    Action, AssessMemory, LinkProperties, Mirror, PlanMemory, PlanOptions, PlanRequirements,
    Planner, RowHeader, RowPlan, Sample, Slot,
};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire::{
    Bounds, FRAME_LEN, Hello, Message, ReplyPolicy, Round, Rounds, Versions, tag_of,
};

/// Longest message that the responder under test allows.
const LONGEST: u32 = 600;

/// The responder under any stream of frames, data, silence and time.
pub fn mirror(data: &[u8]) {
    let mut input = Numbers(data);
    let reliable = input.byte() & 1 == 0;
    let bounds = Bounds { message: LONGEST, messages: 40, ..Bounds::default() };
    let properties = LinkProperties { max_message: Bytes(u64::from(LONGEST)), reliable };
    let mut mirror = Mirror::new(bounds, properties);
    let mut outgoing = vec![0; LONGEST as usize];
    let mut now = Picos::ZERO;
    while !input.is_empty() {
        now = Picos(now.0.saturating_add(input.long()));
        let before = mirror.served().replied;
        let message = message(&mut input, mirror.expected());
        let action = match input.below(8) {
            0 => mirror.handle_time(now, &mut outgoing),
            1 if mirror.handle_silence() => return,
            2 if mirror.is_timed() => {
                mirror.handle_timed(now);
                mirror.handle(now, &message, &mut outgoing)
            }
            3 => match mirror.burst() {
                Some(burst) => mirror.handle_burst(burst.messages, &mut outgoing),
                None => Action::Nothing,
            },
            _ => mirror.handle(now, &message, &mut outgoing),
        };
        let length = match action {
            Action::Nothing => 0,
            Action::Send(length) | Action::SendMore(length) | Action::End(length, _) => length,
        };
        assert!(length <= LONGEST as usize && mirror.expected() <= LONGEST as usize);
        assert!(mirror.reply_length() <= LONGEST as usize);
        assert!(mirror.served().replied <= before + 1, "one reply for one message");
        assert!(mirror.poll_more(&mut outgoing).is_none_or(|length| length == FRAME_LEN));
        if matches!(action, Action::End(..)) {
            return;
        }
    }
}

/// A message that gets far, or raw bytes.
fn message(input: &mut Numbers<'_>, expected: usize) -> Vec<u8> {
    let message = match input.below(6) {
        0 => Message::Hello(Hello {
            versions: Versions::OURS,
            capabilities: input.word(),
            bounds: Bounds { message: input.word(), ..Bounds::default() },
        }),
        1 => Message::Batch { sequence: input.word(), rounds: rounds(input) },
        2 => Message::Sync { token: input.word() },
        3 => {
            let mut data = vec![input.byte(); expected];
            data[0] = tag_of(u32::from(input.byte()));
            return data;
        }
        4 => Message::Bye,
        _ => {
            let length = usize::from(input.short()) % 200;
            return (0..length).map(|_| input.byte()).collect();
        }
    };
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    frame.to_vec()
}

fn rounds(input: &mut Numbers<'_>) -> Rounds {
    let mut rounds = Rounds::new();
    for _ in 0..input.below(9) {
        let flags = input.byte();
        let _ = rounds.push(Round {
            messages: u32::from(input.below(50)),
            size: u32::from(input.short()) % (LONGEST + 2),
            reply_size: u32::from(input.short()) % (LONGEST + 2),
            policy: if flags & 1 == 0 { ReplyPolicy::AfterLast } else { ReplyPolicy::AfterEach },
            timed: flags & 2 != 0,
            repeats: u16::from(input.below(5)),
            pause: Picos(if flags & 4 == 0 { 0 } else { input.long() }),
        });
    }
    rounds
}

/// Sizes that a plan of the test holds.
const SIZES: usize = 12;
/// Values of each of their quantities.
const REPETITIONS: usize = 10;
/// Messages that a plan of the test may send.
const MESSAGES: u64 = 3_000;

/// What a plan is lent.
struct Memory {
    rows: Vec<RowHeader>,
    values: Vec<u64>,
    plans: Vec<RowPlan>,
    order: Vec<Slot>,
    points: Vec<Point>,
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    segments: Vec<Segment>,
}

impl Memory {
    fn new() -> Self {
        let changes = PlanOptions::default().assess.max_changes;
        let needed = PlanRequirements::new(SIZES, REPETITIONS, changes).expect("few");
        Self {
            rows: vec![RowHeader::default(); needed.store.rows],
            values: vec![0; needed.store.values],
            plans: vec![RowPlan::default(); needed.plans],
            order: vec![Slot::default(); needed.order],
            points: vec![Point::default(); needed.assess.points],
            nodes: vec![Node::default(); needed.assess.nodes],
            cells: vec![Cell::default(); needed.assess.cells],
            segments: vec![Segment::default(); needed.assess.segments],
        }
    }

    fn lend(&mut self) -> PlanMemory<'_> {
        PlanMemory {
            rows: &mut self.rows,
            values: &mut self.values,
            plans: &mut self.plans,
            order: &mut self.order,
            assess: AssessMemory {
                points: &mut self.points,
                nodes: &mut self.nodes,
                cells: &mut self.cells,
                segments: &mut self.segments,
            },
        }
    }
}

/// The planner and the assessment on a link that takes any time for
/// anything: nothing, for ever, always the same, less and less.
pub fn planner(data: &[u8]) {
    let mut input = Numbers(data);
    let options = PlanOptions {
        messages: 2 + u32::from(input.byte()),
        max_messages: MESSAGES,
        adapt_sizes: input.byte() & 1 == 0,
        seed: input.long(),
        ..PlanOptions::default()
    };
    let sizes: Vec<u32> = (0..input.below(8)).map(|_| input.word()).collect();
    let mut memory = Memory::new();
    let Ok(mut planner) = Planner::<16>::new(options, &sizes, memory.lend()) else { return };
    let (mut now, mut elapsed) = (Picos::ZERO, Picos(1_000_000));
    for _ in 0..MESSAGES {
        let batch = planner.poll_batch::<8>(now);
        if batch.is_empty() {
            break;
        }
        for experiment in batch {
            elapsed = match input.below(8) {
                0 => Picos(input.long()),
                1 => Picos::ZERO,
                2 => Picos::MAX,
                3 => Picos(elapsed.0 - elapsed.0 / 4),
                4 => Picos(u64::from(input.word()) + u64::from(experiment.size) * 100),
                5 => {
                    planner.handle_lost(&experiment);
                    continue;
                }
                _ => elapsed,
            };
            let delay = Picos(experiment.delay.0.saturating_add(u64::from(input.byte())));
            planner.handle_sample(&Sample { experiment, delay, elapsed });
        }
        now = Picos(now.0.saturating_add(u64::from(input.word())));
    }
    assert!(planner.conclusion().is_some(), "every plan ends");
    let _ = planner.assess();
}
