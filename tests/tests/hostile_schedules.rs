//! Schedules that want to break the program: torn, huge, absurd, or no
//! schedules at all. Every command must end in time, within little memory,
//! and say what is wrong.

use std::fs;

use loggap_core::random::Random;
use loggap_tests::command::{Ended, PATIENCE, Run, binary, loggap, loggap_after};
use loggap_tests::folder::Folder;

/// Every command that reads a schedule, with its arguments before the file.
const READERS: [&[&str]; 5] = [
    &["goal", "check"],
    &["goal", "stats"],
    &["goal", "decompile"],
    &["goal", "compile", "-o", "/dev/null", "--form", "lgs"],
    &["simulate"],
];

/// `arguments` in an address space of `mib` MiB.
fn confined(mib: u64, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = loggap_after(&format!("ulimit -v {}", mib << 10));
    command.args(arguments);
    command
}

/// All readers refuse `content` with an error that contains `message`, and
/// none takes more than 256 MiB for it.
fn refused(folder: &Folder, name: &str, content: &[u8], message: &str) {
    let path = folder.written(name, content);
    for reader in READERS {
        let arguments = [reader, &[&*path]].concat();
        let text = confined(256, &arguments).ends(2).stderr;
        assert!(text.starts_with("error: ") && text.contains(message), "{arguments:?}: {text}");
        assert!(text.len() < 2_000, "{arguments:?}: {} bytes of error", text.len());
    }
}

#[test]
fn absurd_texts_are_refused_in_time_and_little_memory() {
    let folder = Folder::new();
    let long = |piece: &str, count: usize| piece.repeat(count).into_bytes();
    let mut deep = b"num_ranks 1\nrank 0 {\n".to_vec();
    deep.extend(long("{", 1 << 20));
    let mut comment = b"num_ranks 1\nrank 0 {\n/*".to_vec();
    comment.extend(long("*", 1 << 20));
    let mut label = b"num_ranks 1\nrank 0 {\n".to_vec();
    label.extend(long("a", 1 << 20));
    label.extend(b" requires b\n}\n");
    let cases: [(&str, &[u8], &str); 13] = [
        ("many.goal", b"num_ranks 4294967295\nrank 0 {\n}\n", "rank 1"),
        ("last.goal", b"num_ranks 2\nrank 4294967294 {\n}\n", "4294967294"),
        ("more.goal", b"num_ranks 99999999999999999999\n", "num_ranks"),
        ("none.goal", b"num_ranks 0\n", "num_ranks"),
        ("twice.goal", b"num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", "rank 0"),
        ("calc.goal", b"num_ranks 1\nrank 0 {\ncalc 18446744073709551615\n}\n", "line 3"),
        ("cpu.goal", b"num_ranks 1\nrank 0 {\ncalc 1 cpu 65536\n}\n", "line 3"),
        ("open.goal", b"num_ranks 1\nrank 0 {\nsend 1b to 0\n", "rank 0"),
        ("zeros.goal", &vec![0; 1 << 20], "byte 0"),
        ("braces.goal", &deep, "line 3"),
        ("comment.goal", &comment, "line 3"),
        ("label.goal", &label, "line 3"),
        ("lines.goal", &long("\n", 1 << 20), "num_ranks"),
    ];
    for (name, content, message) in cases {
        refused(&folder, name, content, message);
    }
}

/// The broadcast over four ranks in a binary form.
fn small(folder: &Folder, name: &str) -> Vec<u8> {
    let pattern = ["--pattern", "dissemination", "--ranks", "4", "-s", "9"];
    fs::read(folder.generated(name, &pattern)).unwrap()
}

#[test]
fn binaries_with_counts_and_offsets_beyond_the_file_are_refused() {
    let folder = Folder::new();
    let whole = small(&folder, "a.bin");
    // Number of ranks; bounds of the first block; operations and roots of
    // the first block; its first root; dependency count and successor count of
    // its first operation.
    let block = 14 + 4 * 16;
    let node = block
        + 8
        + 4 * u32::from_le_bytes(whole[block + 4..block + 8].try_into().unwrap()) as usize;
    for at in [8, 14, 22, block, block + 4, block + 8, node, node + 23] {
        let mut wrong = whole.clone();
        wrong[at..at + 4].fill(0xff);
        refused(&folder, "wrong.bin", &wrong, "wrong.bin");
    }
}

#[test]
fn flipped_bytes_never_end_in_a_panic_or_a_hang() {
    let folder = Folder::new();
    let text = folder.generated("a.goal", &["--pattern", "gather", "--ranks", "5"]);
    let text = fs::read(text).unwrap();
    let forms = [text, small(&folder, "a.bin"), small(&folder, "a.lgs")];
    let mut random = Random::new(5);
    for round in 0..60 {
        let mut content = forms[round % 3].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(content.len() as u64) as usize;
            content[at] = random.below(256) as u8;
        }
        let path = folder.written("flipped", &content);
        let arguments = [READERS[round % READERS.len()], &[&*path]].concat();
        let Ended { code, stderr: text, .. } = confined(1 << 10, &arguments).ended();
        // A flipped size may need more memory or time than there is.
        assert!(matches!(code, Some(0..=2)), "round {round}, {arguments:?}: {code:?} {text}");
        assert!(!text.contains("panicked"), "round {round}: {text}");
    }
}

#[test]
fn folders_devices_and_missing_files_are_no_schedules() {
    let folder = Folder::new();
    let here = folder.root().to_str().unwrap();
    for reader in READERS {
        for (path, message) in
            [(here, "irectory"), ("/dev/zero", "device"), ("/nonexistent/x.goal", "No such file")]
        {
            let text = confined(256, &[reader, &[path]].concat()).ends(2).stderr;
            assert!(text.contains(message), "{reader:?} {path}: {text}");
        }
    }
}

#[test]
fn every_reader_takes_standard_input() {
    let folder = Folder::new();
    for name in ["a.bin", "a.lgs"] {
        let content = small(&folder, name);
        for reader in READERS {
            let mut command = confined(256, &[reader, &["-"]].concat());
            command.write_stdin(content.clone()).succeeds();
        }
    }
    let text = confined(256, &["goal", "stats", "-"]).write_stdin("num_ranks").ends(2).stderr;
    assert!(text.contains("standard input: line 1"), "{text}");
}

#[test]
fn a_full_disk_is_an_error_and_a_reader_who_leaves_is_none() {
    let folder = Folder::new();
    let goal = folder.generated("a.goal", &["--pattern", "linear_alltoall", "--ranks", "200"]);
    let goal = &*goal;
    let commands = [
        vec!["goal", "generate", "--pattern", "linear_alltoall", "--ranks", "200"],
        vec!["goal", "decompile", goal],
        vec!["goal", "check", goal],
        vec!["goal", "stats", goal],
        vec!["simulate", goal, "--finish"],
        vec!["predict", "--ranks", "2:64"],
    ];
    for command in &commands {
        let text = loggap_after("exec > /dev/full").args(command).ends(1).stderr;
        assert!(text.contains("No space left"), "{command:?}: {text}");
    }
    for form in ["text", "bin", "lgs"] {
        let text = loggap()
            .args(["goal", "compile", goal, "-o", "/dev/full", "--form", form])
            .ends(1)
            .stderr;
        assert!(text.contains("'/dev/full': No space left"), "{form}: {text}");
    }
    let mut command = assert_cmd::Command::new("bash");
    let script = "\"$0\" \"$@\" | head -c 100 > /dev/null; exit ${PIPESTATUS[0]}";
    command.args(["-c", script]).arg(binary()).args(&commands[0]).timeout(PATIENCE);
    assert_eq!(command.succeeds().stderr, "");
}

#[test]
fn checking_and_simulating_take_memory_in_proportion_to_the_schedule() {
    let folder = Folder::new();
    let path = folder.generated("a.lgs", &["--pattern", "dissemination", "--ranks", "16384"]);
    // 458,752 operations; 2 MiB of labels and 100 MiB of program beside.
    for reader in READERS {
        confined(200, &[reader, &[&*path]].concat()).succeeds();
    }
}
