#![allow(clippy::cast_possible_truncation, reason = "the programs are small")]

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use quickcheck::quickcheck;

use super::*;
use crate::goal::testing::{Mutation, Program, Rank, edge, mutate, with_rank_memory};
use crate::goal::{
    ANY, ANY_TAG, Edge, Extent, Misuse, Op, OpKind, Output, RankMemory, RankNode, Sink, SliceOutput,
};
use crate::units::Picos;

const ROOM: usize = 1 << 14;

fn write_reference(program: &Program) -> Result<Vec<u8>, BinaryWriteError<crate::goal::NoRoom>> {
    let mut memory = vec![0xee; ROOM];
    with_rank_memory(|rank| {
        let mut writer = ReferenceWriter::new(SliceOutput::new(&mut memory), rank);
        program.feed(&mut writer)?;
        Ok(writer.finish()?.written().to_vec())
    })
}

fn read_reference(bytes: &[u8]) -> Result<Program, BinaryReadError<Misuse>> {
    let view = Reference::open(bytes)?;
    let mut scratch = vec![77; view.extent().ops_most];
    let mut program = Program::default();
    view.read(&mut scratch, &mut program)?;
    assert!(program.is_finished());
    let ranks = program.ranks.iter().map(|rank| Extent::of_rank(rank.ops.len(), rank.edges.len()));
    assert_eq!(view.extent(), ranks.fold(Extent::default(), Extent::with));
    Ok(program)
}

fn write_native(program: &Program) -> Result<Vec<u8>, BinaryWriteError<crate::goal::NoRoom>> {
    let mut memory = vec![0xee; ROOM];
    let mut pending = [[0xee; 8]; 64];
    let mut writer = NativeWriter::new(SliceOutput::new(&mut memory), &mut pending);
    program.feed(&mut writer)?;
    Ok(writer.finish()?.written().to_vec())
}

fn read_native(bytes: &[u8]) -> Result<Program, BinaryReadError<Misuse>> {
    let view = Native::open(bytes)?;
    let mut program = Program::default();
    view.read(&mut program)?;
    assert!(program.is_finished());
    Ok(program)
}

/// Encodes the reference's format by its description, without the code under test.
fn plain_reference(program: &Program) -> Vec<u8> {
    let mut blocks: Vec<Vec<u8>> = vec![];
    for rank in &program.ranks {
        let waits = |op: usize| rank.edges.iter().filter(|e| e.op as usize == op).count() as u32;
        let roots: Vec<u32> =
            (0..rank.ops.len()).filter(|&op| waits(op) == 0).map(|op| op as u32).collect();
        let mut words = vec![rank.ops.len() as u32, roots.len() as u32];
        words.extend(roots);
        let mut block: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut appendix: Vec<u32> = vec![];
        for (index, op) in rank.ops.iter().enumerate() {
            let (kind, peer, size, tag) = match op.kind {
                OpKind::Send { peer, size, tag } => (1, peer, size, tag),
                OpKind::Receive { peer, size, tag } => (2, peer, size, tag),
                OpKind::Calc { duration } => (3, 0, duration.0 / 1000, 0),
            };
            block.extend(waits(index).to_le_bytes());
            block.push(kind);
            block.extend(peer.to_le_bytes());
            block.extend(size.to_le_bytes());
            block.extend((tag as u32).to_le_bytes());
            block.extend([op.cpu as u8, op.nic as u8]);
            for start in [false, true] {
                let on_this = |e: &&Edge| e.on as usize == index && e.start == start;
                let successors: Vec<u32> =
                    rank.edges.iter().filter(on_this).map(|e| e.op).collect();
                block.extend((successors.len() as u32).to_le_bytes());
                block.extend((appendix.len() as u32).to_le_bytes());
                appendix.extend(successors);
            }
        }
        block.extend(appendix.iter().flat_map(|s| s.to_le_bytes()));
        blocks.push(block);
    }
    let ops = || program.ranks.iter().flat_map(|rank| &rank.ops);
    let mut file = 4223_u64.to_le_bytes().to_vec();
    file.extend((blocks.len() as u32).to_le_bytes());
    file.push(ops().map(|op| op.cpu as u8).max().unwrap_or(0));
    file.push(ops().map(|op| op.nic as u8).max().unwrap_or(0));
    let mut start = 6 + 16 * blocks.len() as u64;
    for block in &blocks {
        file.extend(start.to_le_bytes());
        start += block.len() as u64;
        file.extend(start.to_le_bytes());
    }
    file.extend(blocks.concat());
    file
}

/// `a: calc 5`, `b: send 9b to 1 tag 7 cpu 1 nic 2`, `b requires a`.
fn sample() -> Program {
    let calc = Op { kind: OpKind::Calc { duration: Picos(5_000) }, cpu: 0, nic: 0 };
    let send = Op { kind: OpKind::Send { peer: 1, size: 9, tag: 7 }, cpu: 1, nic: 2 };
    let receive = Op { kind: OpKind::Receive { peer: ANY, size: 9, tag: ANY_TAG }, cpu: 0, nic: 0 };
    let first = Rank { ops: vec![calc, send], edges: vec![edge(1, 0)] };
    Program::new(vec![first, Rank { ops: vec![receive], edges: vec![] }])
}

#[test]
fn our_format_is_written_byte_for_byte() {
    let head: &[u8] = &[
        0x89, 0x4c, 0x47, 0x53, 0x0d, 0x0a, 0x1a, 0x0a, 1, 0, 0, 0, 64, 0, 0,
        0, // magic, version
        176, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, // length, operations
        1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // dependencies, ranks
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
        96, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, // rank 0
        152, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // rank 1
    ];
    let first: &[u8] = &[
        0x88, 0x13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, // calc
        9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 0, // send
        1, 0, 0, 0, 0, 0, 0, 0, // 1 requires 0
    ];
    let second: &[u8] =
        &[9, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(write_native(&sample()), Ok([head, first, second].concat()));
}

/// Change to the sample's bytes, and the message of the reader.
const REFERENCE_DAMAGE: &[(usize, u8, &str)] = &[
    (0, 0x26, "not a binary schedule"),
    (8, 0, "a schedule of no ranks"),
    (8, 1, "start of the rank's block is 38 where 22 is implied"),
    (9, 1, "needs at least"),
    (12, 0, "cpu or nic 1, but the header says at most 0"),
    (13, 1, "cpu or nic 2, but the header says at most 1"),
    (14, 37, "byte 14, rank 0: start of the rank's block is 37 where 38 is implied"),
    (22, 131, "do not add up"),
    (24, 1, "needs at least 65676 bytes"),
    (46, 3, "byte 46, rank 0: 3 operations do not add up to a block of 94 bytes"),
    (50, 2, "operation type 0 is unknown"),
    (54, 1, "operation without dependencies is 1 where 0 is implied"),
    (58, 1, "byte 58, rank 0: number of dependencies of the operation is 1 where 0"),
    (62, 4, "operation type 4 is unknown"),
    (74, 0xff, "a calc of 18374686479671623685 ns"),
    (81, 2, "number of successors is 2 where 1 is implied"),
    (81, 0, "number of successors is 0 where 1 is implied"),
    (85, 1, "successors 1 and 1 more, of 1"),
    (85, 0xff, "successors 255 and 1 more, of 1"),
    (89, 1, "number of successors is 2 where 1 is implied"),
    (136, 2, "operation 2 of 2"),
    (136, 0, "number of dependencies of the operation is 0 where 1 is implied"),
];

/// Every change of `damage` to the sample in `whole`, and every shorter file, is refused by name.
fn assert_refused(
    whole: &[u8],
    damage: &[(usize, u8, &str)],
    read: fn(&[u8]) -> Result<Program, BinaryReadError<Misuse>>,
) {
    assert_eq!(read(whole).as_ref(), Ok(&sample()));
    for &(at, value, message) in damage {
        let mut bytes = whole.to_vec();
        bytes[at] = value;
        let error = read(&bytes).expect_err(message).to_string();
        assert!(error.contains(message), "byte {at} = {value}: {error}");
    }
    for length in 0..whole.len() {
        let error = read(&whole[..length]).unwrap_err().to_string();
        assert!(error.contains("cut off"), "{length}: {error}");
    }
}

#[test]
fn every_damage_is_named_with_its_place() {
    let whole = write_reference(&sample()).unwrap();
    assert_refused(&whole, REFERENCE_DAMAGE, read_reference);
    assert_refused(&write_native(&sample()).unwrap(), NATIVE_DAMAGE, read_native);
    let longer = [&whole[..], &[0]].concat();
    let error = read_reference(&longer).unwrap_err().to_string();
    assert!(error.contains("file length is 192 where 191 is implied"), "{error}");
}

#[test]
fn lists_that_overlap_are_refused_before_they_cost_time() {
    // 20,000 operations that each claim all 20,000 successors of the block:
    // 4·10⁸ steps if each were followed.
    let count = 20_000_u32;
    let node = |op: u32| {
        let mut node = vec![0; 39];
        node[4] = 3;
        node[23..27].copy_from_slice(&count.to_le_bytes());
        node[..4].copy_from_slice(&u32::from(op == 0).to_le_bytes());
        node
    };
    let mut block = [count.to_le_bytes(), 0_u32.to_le_bytes()].concat();
    block.extend((0..count).flat_map(node));
    block.extend((0..count).flat_map(|_| [0; 4]));
    let mut file = [&4223_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &[0, 0]].concat();
    file.extend(22_u64.to_le_bytes());
    file.extend((22 + block.len() as u64).to_le_bytes());
    file.extend(block);
    let error = read_reference(&file).unwrap_err().to_string();
    assert!(error.contains("number of successors is 400000000 where 20000 is implied"), "{error}");
}

const NATIVE_DAMAGE: &[(usize, u8, &str)] = &[
    (0, 0x88, "not a binary schedule"),
    (8, 2, "format version is 2 where 1 is implied"),
    (8, 3, "format version 3 is unknown"),
    (12, 65, "header length is 65 where 64 is implied"),
    (16, 175, "file length is 175 where 176 is implied"),
    (24, 4, "number of operations is 4 where 3 is implied"),
    (32, 0, "number of dependencies is 0 where 1 is implied"),
    (40, 0, "a schedule of no ranks"),
    (43, 1, "needs at least 268435552 bytes"),
    (44, 1, "reserved field is 1 where 0"),
    (64, 97, "start of the rank's block is 97 where 96 is implied"),
    (72, 3, "byte 80, rank 1: start of the rank's block is 152 where 176 is implied"),
    (88, 2, "file length is 176 where 200 is implied"),
    (112, 0, "byte 96, rank 0: operation type 0 is unknown"),
    (104, 1, "reserved field is 1 where 0"),
    (115, 1, "reserved field is 1 where 0"),
    (144, 2, "byte 144, rank 0: operation 2 of 2"),
    (148, 2, "operation 2 of 2"),
];

#[test]
fn what_the_reference_cannot_hold_is_refused_and_ours_holds_it() {
    let of = |op: Op| Program::new(vec![Rank { ops: vec![op], edges: vec![] }]);
    let calc = Op { kind: OpKind::Calc { duration: Picos(1_000) }, cpu: 0, nic: 0 };
    let refused = |why| Err(BinaryWriteError::Op { rank: 0, op: 0, why });
    let fraction = of(Op { kind: OpKind::Calc { duration: Picos(999) }, ..calc });
    assert_eq!(write_reference(&fraction), refused(Unsayable::FractionOfNano));
    let high = of(Op { cpu: 255, nic: 255, ..calc });
    assert_eq!(write_reference(&high), refused(Unsayable::Unit255));
    let wide = of(Op { cpu: 300, nic: u16::MAX, ..calc });
    assert_eq!(write_reference(&wide), refused(Unsayable::Unit255));
    for program in [fraction, high, wide] {
        assert_eq!(read_native(&write_native(&program).unwrap()).as_ref(), Ok(&program));
    }
    let any = of(Op { kind: OpKind::Send { peer: ANY, size: 0, tag: 0 }, ..calc });
    assert_eq!(write_reference(&any), refused(Unsayable::SendToAny));
    assert_eq!(write_native(&any), refused(Unsayable::SendToAny));
}

#[test]
fn tags_of_64_bits_are_cut_off_in_the_reference_and_kept_in_ours() {
    let sent = |tag| Op { kind: OpKind::Send { peer: 0, size: 0, tag }, cpu: 0, nic: 0 };
    let tags = [7, (1 << 32) + 7, u32::MAX.into(), ANY_TAG - 1, ANY_TAG];
    let ranks = tags.map(|tag| Rank { ops: vec![sent(tag)], edges: vec![] });
    let program = Program::new(ranks.to_vec());
    let bytes = write_native(&program).unwrap();
    assert_eq!(read_native(&bytes).as_ref(), Ok(&program));
    // Ranks 1 to 3 are wide, and have 8 additional bytes for each operation.
    assert_eq!((bytes[8], bytes.len()), (2, 64 + 5 * (16 + 24) + 3 * 8));
    let read = read_reference(&write_reference(&program).unwrap()).unwrap();
    let low = [7, 7, ANY_TAG, u64::from(u32::MAX) - 1, ANY_TAG];
    assert_eq!(read.ranks.iter().map(|rank| rank.ops[0]).collect::<Vec<_>>(), low.map(sent));
    let marked = |bytes: &[u8], at: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= value;
        read_native(&bytes).unwrap_err().to_string()
    };
    assert!(marked(&bytes, 8, 3).contains("format version"), "version 1");
    // Without its upper half the tag of rank 1 needs no flag.
    assert!(marked(&bytes, 64 + 5 * 16 + 2 * 24, 1).contains("mark of a rank"), "rank 1");
}

#[test]
fn memory_for_a_rank_that_is_too_small_is_named() {
    let mut memory = [0; 512];
    let rank = RankMemory { nodes: &mut [RankNode::EMPTY; 1], edges: &mut [], successors: &mut [] };
    let mut writer = ReferenceWriter::new(SliceOutput::new(&mut memory), rank);
    assert_eq!(sample().feed(&mut writer), Err(BinaryWriteError::RankMemory { rank: 0 }));
    let mut writer = NativeWriter::new(SliceOutput::new(&mut memory), &mut []);
    assert_eq!(sample().feed(&mut writer), Err(BinaryWriteError::RankMemory { rank: 0 }));
    let mut writer = NativeWriter::new(SliceOutput::new(&mut []), &mut []);
    assert_eq!(writer.ranks(1), Err(BinaryWriteError::Output(crate::goal::NoRoom)));
    let view = write_reference(&sample()).unwrap();
    let result = Reference::open(&view).unwrap().read(&mut [0; 1], &mut Program::default());
    assert!(result.unwrap_err().to_string().contains("lend 2 elements"));
    assert_eq!(SliceOutput::new(&mut []).reserve(1), Err(crate::goal::NoRoom));
}

quickcheck! {
    fn the_reference_format_is_as_described(program: Program) -> bool {
        write_reference(&program) == Ok(plain_reference(&program))
    }

    fn the_reference_format_keeps_all_but_the_order_across_operations(program: Program) -> bool {
        let bytes = write_reference(&program).unwrap();
        let read = read_reference(&bytes).unwrap();
        read == program.grouped() && write_reference(&read) == Ok(bytes)
    }

    fn our_format_keeps_everything(program: Program) -> () {
        for program in [program.clone(), program.widened()] {
            assert_eq!(read_native(&write_native(&program).unwrap()).as_ref(), Ok(&program));
        }
    }

    fn arbitrary_bytes_are_read_or_refused(bytes: Vec<u8>) -> () {
        for magic in [&[][..], &4223_u64.to_le_bytes(), &native::MAGIC] {
            let bytes = [magic, &bytes].concat();
            let _ = (read_reference(&bytes), read_native(&bytes));
        }
    }

    fn mutated_files_are_read_or_refused(program: Program, changes: Vec<Mutation>) -> () {
        let changes = &changes[..changes.len().min(3)];
        let mut bytes = write_reference(&program).unwrap();
        mutate(&mut bytes, changes);
        if let Ok(read) = read_reference(&bytes) {
            assert_eq!(read_reference(&write_reference(&read).unwrap()), Ok(read.grouped()));
        }
        for program in [program.clone(), program.widened()] {
            let mut bytes = write_native(&program).unwrap();
            mutate(&mut bytes, changes);
            if let Ok(read) = read_native(&bytes) {
                assert!(write_native(&read) == Ok(bytes), "{changes:?}");
            }
        }
    }
}
