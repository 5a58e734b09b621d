//! Packet filter programs (BPF) for raw sockets: a frame passes if all of its fields have the given
//! values.

use loggap_core::wire::ethernet::{Address, HEADER};
use loggap_core::wire::{FRAME_LEN, HELLO_KIND, KIND_OFFSET, MAGIC};
use nix::libc;
use socket2::SockFilter;

/// Offsets of the source address, mark, length and message; see [`loggap_core::wire::ethernet`].
const SOURCE: u32 = 6;
const MARK: u32 = 14;
const LENGTH: u32 = 16;
const MESSAGE: u32 = 18;
const _: () = assert!(MESSAGE as usize == HEADER, "messages begin elsewhere");
/// Length of a control frame, and the offset of its kind.
const FRAME: u16 = 448;
const KIND: u32 = MESSAGE + 5;
const _: () = assert!(FRAME as usize == FRAME_LEN && KIND_OFFSET == 5, "another frame");

/// Offset and value of a big-endian field of a frame.
enum Field {
    Byte(u32, u8),
    Half(u32, [u8; 2]),
    Word(u32, [u8; 4]),
}

/// Filter that passes hellos of any station.
pub(crate) fn hellos() -> Vec<SockFilter> {
    all_of(&[
        Field::Half(MARK, *b"LG"),
        Field::Half(LENGTH, FRAME.to_be_bytes()),
        Field::Word(MESSAGE, MAGIC),
        Field::Byte(KIND, HELLO_KIND),
    ])
}

/// Filter that passes messages of one station.
pub(crate) fn messages_of(station: Address) -> Vec<SockFilter> {
    let [a, b, c, d, e, f] = station;
    all_of(&[
        Field::Word(SOURCE, [a, b, c, d]),
        Field::Half(SOURCE + 4, [e, f]),
        Field::Half(MARK, *b"LG"),
    ])
}

fn all_of(fields: &[Field]) -> Vec<SockFilter> {
    let instruction = |code: u32, jumps: (u8, u8), k| {
        SockFilter::new(u16::try_from(code).unwrap_or_default(), jumps.0, jumps.1, k)
    };
    let mut program = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let (width, offset, value) = match *field {
            Field::Byte(offset, value) => (libc::BPF_B, offset, value.into()),
            Field::Half(offset, value) => (libc::BPF_H, offset, u16::from_be_bytes(value).into()),
            Field::Word(offset, value) => (libc::BPF_W, offset, u32::from_be_bytes(value)),
        };
        // Jump past the remaining pairs of instructions and the instruction that accepts.
        let to_reject = u8::try_from(2 * (fields.len() - index - 1) + 1).unwrap_or(u8::MAX);
        program.push(instruction(libc::BPF_LD | width | libc::BPF_ABS, (0, 0), offset));
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        program.push(instruction(equal, (0, to_reject), value));
    }
    let result = libc::BPF_RET | libc::BPF_K;
    program.push(instruction(result, (0, 0), u32::MAX));
    program.push(instruction(result, (0, 0), 0));
    program
}
