//! The responder's state machine before an initiator that does anything.

use super::Numbers;
use loggap_core::measure::{LinkProperties, Mirror};
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
        let message = message(&mut input, mirror.awaited().length);
        match input.below(8) {
            0 => mirror.handle_time(now),
            1 if mirror.handle_silence() => return,
            2 if mirror.awaited().timed => {
                mirror.handle_timed(now);
                mirror.handle(now, &message);
            }
            3 => {
                if let Some(burst) = mirror.burst() {
                    mirror.handle_burst(burst.messages);
                }
            }
            _ => mirror.handle(now, &message),
        }
        let first = mirror.poll_transmit(&mut outgoing).unwrap_or_default();
        assert!(first <= LONGEST as usize && mirror.awaited().length <= LONGEST as usize);
        assert!(mirror.reply_length() <= LONGEST as usize);
        assert!(mirror.served().replied <= before + 1, "one reply for one message");
        assert!(mirror.poll_transmit(&mut outgoing).is_none_or(|length| length == FRAME_LEN));
        assert_eq!(mirror.poll_transmit(&mut outgoing), None);
        if mirror.ending().is_some() {
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
