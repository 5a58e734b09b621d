use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use quickcheck::quickcheck;

use super::*;
use crate::goal::testing::{Mutation, Program, Rank, edge, mutate};
use crate::goal::{ANY, ANY_TAG, Edge, Extent, Misuse, NoRoom, Op, OpKind, Output, SliceOutput};
use crate::units::Picos;

/// Lends memory that suffices for the surveyed text to `work`.
fn with_memory<T>(survey: &Survey, work: impl FnOnce(TextMemory<'_>) -> T) -> T {
    let mut blocks = vec![Block::default(); survey.blocks_to_lend()];
    let mut entries = vec![[0; 2]; survey.labels_most()];
    let mut buckets = vec![0; survey.labels_most()];
    let labels = LabelMemory { entries: &mut entries, buckets: &mut buckets, seed: 3 };
    work(TextMemory { blocks: &mut blocks, labels })
}

/// No memory for labels.
fn no_labels() -> LabelMemory<'static> {
    LabelMemory { entries: &mut [], buckets: &mut [], seed: 0 }
}

/// Parses `text` with the memory that its survey requires.
fn parse(text: &[u8]) -> Result<Program, ReadError<Misuse>> {
    let mut program = Program::default();
    let survey = Survey::of(text).map_err(ReadError::Text)?;
    with_memory(&survey, |memory| read(text, &survey, memory, &mut program))?;
    assert!(program.is_finished());
    let ops = program.ranks.iter().map(|rank| rank.ops.len());
    let edges = program.ranks.iter().map(|rank| rank.edges.len());
    let counted = (ops.clone().sum(), edges.clone().sum(), ops.max(), edges.max());
    let Extent { ops, edges, ops_most, edges_most, .. } = survey.extent();
    let surveyed = (ops, edges, Some(ops_most), Some(edges_most));
    assert_eq!(counted, surveyed, "{}", text.escape_ascii());
    Ok(program)
}

fn print(program: &Program) -> Vec<u8> {
    let mut memory = vec![0; 1 << 16];
    let mut writer = TextWriter::new(SliceOutput::new(&mut memory));
    program.feed(&mut writer).unwrap();
    writer.finish().unwrap().written().to_vec()
}

/// Content of the first rank.
fn parse_first(text: &str) -> Rank {
    match parse(text.as_bytes()) {
        Ok(mut program) => program.ranks.swap_remove(0),
        Err(error) => panic!("{error} in {text}"),
    }
}

fn error_of(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

fn send(size: u64, peer: u32, tag: u64, cpu: u16, nic: u16) -> Op {
    Op { kind: OpKind::Send { peer, size, tag }, cpu, nic }
}

fn receive(size: u64, peer: u32, tag: u64, cpu: u16, nic: u16) -> Op {
    Op { kind: OpKind::Receive { peer, size, tag }, cpu, nic }
}

fn calc(nanos: u64, cpu: u16) -> Op {
    Op { kind: OpKind::Calc { duration: Picos(nanos * 1_000) }, cpu, nic: 0 }
}

#[test]
fn every_form_of_statement_is_read() {
    let rank = parse_first(
        "num_ranks 1\nrank 0 {\nl1: calc 100\nl2: calc 7 cpu 3\nsend 8b to 0\n\
         l4: send 8b to 5 tag 9 cpu 2 nic 1\nl5: recv 16b from -1 tag -1\n\
         recv 0b from 0 nic 4\nl2 requires l1\nl5 irequires l4\nl5 requires l5\n}\n",
    );
    assert_eq!(
        rank.ops,
        [
            calc(100, 0),
            calc(7, 3),
            send(8, 0, 0, 0, 0),
            send(8, 5, 9, 2, 1),
            receive(16, ANY, ANY_TAG, 0, 0),
            receive(0, 0, 0, 0, 4),
        ]
    );
    assert_eq!(rank.edges, [edge(1, 0), Edge { start: true, ..edge(4, 3) }, edge(4, 4)]);
}

#[test]
fn blanks_are_free_except_between_two_words() {
    let wide = "num_ranks\t1 rank 0{\n\n \t l1 :\tsend  5 b to 0 tag 1 cpu 1 nic 2 \nl2:calc 3\n\
                l2\trequires  l1\t\r\n}";
    let tight = "num_ranks1rank0{l1:send5bto0tag1cpu1nic2\nl2:calc3\nl2 requiresl1\n}";
    assert_eq!(parse_first(wide), parse_first(tight));
}

#[test]
fn comments_stand_between_and_behind_statements() {
    let rank = parse_first(
        "// a: {\n/* b } */ num_ranks 1 // one\n/* c */rank 0 { // open }\na: calc 1 // :\n\
         /* d: calc 1 } */ b: calc 2 /* e */ // f\n/*\n*/b requires a/**/\n// }\n} // end",
    );
    assert_eq!((rank.ops, rank.edges), (vec![calc(1, 0), calc(2, 0)], vec![edge(1, 0)]));
}

#[test]
fn the_number_of_ranks_may_stand_last() {
    assert_eq!(parse_first("rank 0 {\n}\nnum_ranks 1"), Rank::default());
}

#[test]
fn words_of_the_tail_are_good_labels() {
    let rank = parse_first(
        "num_ranks 1\nrank 0 {\ntag: calc 1\nrequires: calc 2\nirequires: calc 3\n\
         requires requires tag\nirequires irequires requires\n}",
    );
    assert_eq!(rank.edges, [edge(1, 0), Edge { start: true, ..edge(2, 1) }]);
}

/// Text, line, column and message of each error.
const REFUSED: &[(&str, usize, usize, &str)] = &[
    ("", 1, 1, "no num_ranks"),
    ("rank 0 {\n}\n", 3, 1, "no num_ranks"),
    ("num_ranks 0", 1, 1, "at least 1"),
    ("num_ranks 4294967296", 1, 11, "number of ranks too large: at most 4294967295"),
    ("num_ranks 1\nnum_ranks 1\nrank 0 {\n}", 2, 1, "second time"),
    ("num_rank 1", 1, 1, "expected \"num_ranks N\" or \"rank N {\", found \"num_rank\""),
    ("num_ranks x", 1, 11, "expected a whole number, found \"x\""),
    ("num_ranks 1\nrank 0\n{\n}", 2, 7, "expected \"{\" on the same line, found \"\\n\""),
    ("num_ranks 1\nrank 1 {\n}", 2, 1, "rank 1 is out of range: num_ranks is 1"),
    ("num_ranks 1\nrank 4294967295 {\n}", 2, 6, "rank too large"),
    ("num_ranks 3\nrank 0 {\n}\nrank 1 {\n}\n", 6, 1, "rank 2 of 3 has no block"),
    ("num_ranks 3\nrank 0 {\n}\nrank 2 {\n}", 5, 2, "rank 1 of 3 has no block"),
    ("num_ranks 3\nrank 2 {\n}\nrank 1 {\n}", 5, 2, "rank 0 of 3 has no block"),
    (
        "num_ranks 2\nrank 1 {\n}\nrank 0 {\n}\nrank 1 {\n}",
        6,
        1,
        "rank 1 has a second block (first in line 2)",
    ),
    ("num_ranks 1\nrank 0 {\na: calc 1\n", 4, 1, "ends inside rank 0"),
    ("num_ranks 1\nrank 0 {\n/* }\n", 3, 1, "comment without"),
    ("num_ranks 1\nrank 0 {\n} }", 3, 3, "expected \"num_ranks N\" or \"rank N {\", found \"}\""),
    ("num_ranks 1\nrank 0 {\na: calc 5 }", 3, 11, "expected \"cpu\" or the end"),
    ("num_ranks 2\nrank 0 {\na: calc 1\nrank 1 {\n}", 4, 1, "expected a label, \"send\""),
    ("num_ranks 1\nrank 0 {\na: calc 1\r}", 3, 10, "expected \"cpu\" or the end"),
];

/// As [`REFUSED`], of the statements of the only rank, which begin in line 3.
const REFUSED_STATEMENTS: &[(&str, usize, usize, &str)] = &[
    ("a: calc 1\n  b: wait 2", 4, 6, "expected \"send\", \"recv\""),
    ("a: calc", 3, 8, "expected a whole number, found \"\\n\""),
    ("a: calc -5", 3, 9, "expected a whole number, found \"-\""),
    ("a: calc 1.5", 3, 10, "expected \"cpu\" or the end of the line, found \".\""),
    ("a: calc 5 nic 1", 3, 11, "expected \"cpu\" or the end"),
    ("a: calc 18446744073709552", 3, 9, "at most 18446744073709551"),
    ("a: send 5 to 0", 3, 11, "expected \"b\" after the size"),
    ("a: send 5b from 0", 3, 12, "expected \"to\""),
    ("a: recv 5b to 0", 3, 12, "expected \"from\""),
    ("a: send 5b to -1", 3, 15, "expected a whole number, found \"-\""),
    ("a: recv 5b from -2", 3, 17, "expected a whole number or -1"),
    ("a: recv 5b from -11", 3, 17, "expected a whole number or -1"),
    ("a: send 18446744073709551616b to 0", 3, 9, "message size in bytes too large"),
    ("a: send 5b to 4294967295", 3, 15, "peer too large: at most 4294967294"),
    (
        "a: send 5b to 0 tag 18446744073709551615",
        3,
        21,
        "tag too large: at most 18446744073709551614",
    ),
    ("a: send 5b to 0 cpu 65536", 3, 21, "cpu too large: at most 65535"),
    ("a: send 5b to 0 nic 65536", 3, 21, "nic too large: at most 65535"),
    ("a: send 5b to 0 cpu 1 tag 3", 3, 23, "expected \"nic\" or the end"),
    ("a: send 5b to 0 nic 1 cpu 3", 3, 23, "expected the end of the line"),
    ("a: calc 1\na: calc 2", 4, 1, "label a is defined a second time (first in line 3)"),
    (
        "l1: calc 1\nl2: calc 2\nl1: calc 2",
        5,
        1,
        "label l1 is defined a second time (first in line 3)",
    ),
    ("a: calc 1\na requires b", 4, 12, "label b is not defined above"),
    ("a: calc 1\nb requires a\nb: calc 2", 4, 1, "label b is not defined above"),
    ("a: calc 1\na requires a a", 4, 14, "expected the end of the line"),
    ("a: calc 1\na needs a", 4, 3, "expected \":\", \"requires\" or \"irequires\""),
    ("a: calc 1\na requires 1", 4, 12, "expected a label"),
    ("send: calc 1", 3, 1, "send cannot be a label"),
    ("# note", 3, 1, "expected a label, \"send\""),
    ("l\u{e9}: calc 1", 3, 2, "expected \":\", \"requires\""),
    ("a: calc 1 / 2", 3, 11, "expected \"cpu\" or the end"),
];

#[test]
fn what_is_refused_says_where_and_what_was_expected() {
    let whole = REFUSED
        .iter()
        .map(|&(text, line, column, message)| (text.to_string(), line, column, message));
    let statements = REFUSED_STATEMENTS.iter().map(|&(text, line, column, message)| {
        (format!("num_ranks 1\nrank 0 {{\n{text}\n}}"), line, column, message)
    });
    for (text, line, column, message) in whole.chain(statements) {
        let found = error_of(&text);
        let place = format!("line {line}, column {column} (byte ");
        assert!(found.starts_with(&place) && found.contains(message), "{text:?}: {found}");
    }
}

#[test]
fn long_names_are_cut_in_messages() {
    let name = "x".repeat(5_000);
    let found = error_of(&format!("num_ranks 1\nrank 0 {{\n{name} requires {name}\n}}"));
    assert!(found.len() < 150 && found.contains("xxx... is not defined"), "{found}");
}

#[test]
fn too_little_memory_is_named_with_what_is_enough() {
    let text = b"num_ranks 2\nrank 1 {\nx: calc 1\ny: calc 1\n}\nrank 0 {\n}";
    let survey = Survey::of(text).unwrap();
    let mut blocks = vec![Block::default(); survey.blocks_to_lend()];
    let mut program = Program::default();
    let memory = TextMemory { blocks: &mut blocks, labels: no_labels() };
    let result = read(text, &survey, memory, &mut program);
    let Err(ReadError::Text(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.kind, error.line), (TextErrorKind::LabelMemory { needed: 2 }, 3));
    let memory = TextMemory { blocks: &mut [], labels: no_labels() };
    let result = read(text, &survey, memory, &mut program);
    let Err(ReadError::Text(error)) = result else { panic!("{result:?}") };
    assert_eq!(error.kind, TextErrorKind::BlockMemory { needed: 2 });
}

#[test]
fn a_text_other_than_the_surveyed_one_is_refused() {
    let survey = Survey::of(b"num_ranks 1\nrank 0 {\n}\n\n").unwrap();
    for other in [
        "num_ranks 1\nrank 0 {\n}\n",
        "num_ranks 2\nrank 1 {\n}\n\n",
        "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    ] {
        let memory = TextMemory { blocks: &mut [], labels: no_labels() };
        let mut program = Program::default();
        let result = read(other.as_bytes(), &survey, memory, &mut program);
        let Err(ReadError::Text(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.kind, TextErrorKind::OtherText);
    }
}

#[test]
fn a_sink_that_refuses_stops_the_reading_with_the_line() {
    let text = b"num_ranks 1\nrank 0 {\n\nl1: calc 1\n}";
    let survey = Survey::of(text).unwrap();
    let memory = TextMemory { blocks: &mut [], labels: no_labels() };
    // Room for two lines.
    let mut room = [0; 24];
    let mut full = TextWriter::new(SliceOutput::new(&mut room));
    let error = TextWriteError::Output(NoRoom);
    let result = read(text, &survey, memory, &mut full);
    assert_eq!(result, Err(ReadError::Sink { at: 22, line: 4, error }));
}

#[test]
fn text_is_written_as_schedgen_writes_it() {
    let rank = Rank {
        ops: vec![calc(5, 1), send(8, 1, 0, 0, 0), receive(9, ANY, ANY_TAG, 2, 3)],
        edges: vec![edge(1, 0), Edge { start: true, ..edge(2, 1) }],
    };
    let text = print(&Program::new(vec![rank, Rank::default()]));
    let expected = "num_ranks 2\n\nrank 0 {\nl1: calc 5 cpu 1\nl2: send 8b to 1 tag 0\n\
                    l3: recv 9b from -1 tag -1 cpu 2 nic 3\nl2 requires l1\nl3 irequires l2\n}\n\n\
                    rank 1 {\n}\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn what_text_cannot_say_is_refused_by_the_writer() {
    let write = |op: Op| {
        let mut memory = [0; 256];
        let mut writer = TextWriter::new(SliceOutput::new(&mut memory));
        Program::new(vec![Rank { ops: vec![op], edges: vec![] }]).feed(&mut writer)
    };
    let fraction = Op { kind: OpKind::Calc { duration: Picos(1_500) }, cpu: 0, nic: 0 };
    assert_eq!(write(fraction), Err(TextWriteError::FractionOfNano { rank: 0, op: 0 }));
    assert_eq!(write(Op { nic: 1, ..calc(1, 0) }), Err(TextWriteError::CalcNic { rank: 0, op: 0 }));
    assert_eq!(write(send(1, ANY, 0, 0, 0)), Err(TextWriteError::SendToAny { rank: 0, op: 0 }));
    let longest = send(u64::MAX, ANY - 1, ANY_TAG - 1, u16::MAX, u16::MAX);
    assert_eq!(write(longest), Ok(()));
    let mut output = SliceOutput::new(&mut []);
    assert_eq!(output.append(b"x"), Err(NoRoom));
}

/// Words of which random text is made, each before a bar, so that it gets past the first token.
const PIECES: &str = "num_ranks |2|1|rank |0| {|{\n|}\n|l1|l2|a|:| requires | irequires |send |recv |calc |\
    b to |b from |-1| tag | cpu | nic |\n|\r\n|// x\n|/* }|*/";

quickcheck! {
    fn printing_and_reading_again_changes_nothing(program: Program) -> () {
        for program in [program.clone(), program.widened()] {
            assert_eq!(parse(&print(&program)).as_ref(), Ok(&program));
        }
    }

    fn arbitrary_words_are_read_or_refused(words: Vec<u8>) -> () {
        let pieces: Vec<&str> = PIECES.split('|').collect();
        let text: String = words.iter().map(|w| pieces[usize::from(*w) % pieces.len()]).collect();
        drop(parse(text.as_bytes()));
    }

    fn mutated_text_is_read_or_refused(program: Program, changes: Vec<Mutation>) -> () {
        let mut text = print(&program);
        mutate(&mut text, &changes[..changes.len().min(5)]);
        if let Ok(program) = parse(&text) {
            assert_eq!(parse(&print(&program)).as_ref(), Ok(&program));
        }
    }

    fn a_shuffle_of_the_blocks_changes_nothing(program: Program, seed: u64) -> bool {
        let text = String::from_utf8(print(&program)).unwrap();
        let mut parts: Vec<&str> = text.split("\n\n").collect();
        parts.sort_by_key(|part| part.len() as u64 ^ seed.rotate_left(part.bytes().map(u32::from).sum()));
        parse(parts.join("\n").as_bytes()).as_ref() == Ok(&program)
    }
}

#[test]
fn colliding_labels_do_not_make_reading_slow() {
    // 40,000 labels in an order that defeats the numbered fast path: well
    // under a second with a hash that spreads them, hours without.
    let mut text = String::from("num_ranks 1\nrank 0 {\n");
    for k in (0..40_000_u64).rev() {
        text.push_str(&format!("x{}: calc 1\n", k << 20));
    }
    text.push_str("}\n");
    let program = parse(text.as_bytes()).unwrap();
    assert_eq!(program.ranks[0].ops.len(), 40_000);
}

const PLACES: &[u8] = b"num_ranks 2\nrank 1 {\nx: calc 1\n  y: calc 2\nx irequires x\n}\n\
                        rank 0 {\nsend 1b to 0\nl2: calc 1\n}\n";

#[test]
fn operations_are_found_in_the_text() {
    let mut wanted =
        [(0, 0), (0, 1), (0, 9), (1, 1), (1, 1)].map(|(rank, op)| OpPlace::new(rank, op));
    let survey = Survey::of(PLACES).unwrap();
    with_memory(&survey, |memory| locate(PLACES, &survey, memory, &mut wanted)).unwrap();
    let found = wanted.map(|place| {
        (place.at.map(|at| line_and_column(PLACES, at)), place.label.map(|label| label.to_string()))
    });
    let second = (Some((4, 3)), Some("y".to_string()));
    let first = (Some((9, 1)), Some("l2".to_string()));
    assert_eq!(found, [(Some((8, 1)), None), first, (None, None), second.clone(), second]);
}

#[test]
fn labels_that_nothing_names_are_found() {
    let mut found = vec![];
    let mut uses = [LabelUse::default(); 2];
    let survey = Survey::of(PLACES).unwrap();
    with_memory(&survey, |memory| {
        unused_labels(PLACES, &survey, memory, &mut uses, |unused| found.push(unused))
    })
    .unwrap();
    let names: Vec<_> =
        found.iter().map(|u| (u.rank, u.op, u.label.unwrap().to_string())).collect();
    assert_eq!(names, [(0, 1, "l2".to_string()), (1, 1, "y".to_string())]);
}

#[test]
fn a_text_cut_between_blocks_has_the_survey_of_the_whole_and_is_read_in_parts() {
    let text = b"num_ranks 3\nrank 0 {\na: calc 1\n}\n/*\nrank 7 {\n*/\nrank 1 {\n}\nrank 2 {\n\
        b: calc 2\nc: send 1b to 0\nc requires b\n}\n// }\n";
    let whole = Survey::of(text).unwrap();
    let mut cuts = Vec::new();
    for cut in 0..text.len() {
        let parts = [0..cut, cut..text.len()].map(|part| Survey::of_part(text, part));
        let [Some(first), Some(second)] = parts else { continue };
        let mut parts = [first, second];
        let Some(joined) = Survey::join(&mut parts) else { continue };
        assert_eq!(joined, whole, "{cut}");
        assert_eq!(parts.map(|part| part.own_ranks().len()).iter().sum::<usize>(), 3);
        assert_eq!(parts.map(|part| part.extent().ops).iter().sum::<usize>(), 3);
        cuts.push(cut);
    }
    let starts = ["rank 1", "rank 2"].map(|rank| {
        let found = text.windows(rank.len()).position(|word| word == rank.as_bytes());
        found.unwrap()
    });
    assert!(starts.iter().all(|start| cuts.contains(start)), "{cuts:?}");
}

#[test]
fn parts_in_another_order_or_with_a_rank_missing_or_twice_are_not_joined() {
    for ranks in [["1", "0"], ["0", "0"], ["0", "2"], ["1", "2"]] {
        let text = format!("num_ranks 2\nrank {} {{\n}}\nrank {} {{\n}}\n", ranks[0], ranks[1]);
        let cut = text.rfind("rank").unwrap();
        let parts = [0..cut, cut..text.len()].map(|part| Survey::of_part(text.as_bytes(), part));
        let joined = parts.into_iter().collect::<Option<Vec<_>>>();
        assert_eq!(joined.and_then(|mut parts| Survey::join(&mut parts)), None, "{ranks:?}");
    }
}
