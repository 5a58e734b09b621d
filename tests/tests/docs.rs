//! Commands in documents: what only computes is run, of all others the options are known.

use std::env;
use std::path::Path;

use loggap_tests::command::{Run as _, binary, loggap};
use loggap_tests::docs::{calls, code};
use loggap_tests::folder::Folder;

#[test]
fn every_command_has_options_that_exist() {
    let calls = calls("loggap");
    assert!(calls.len() > 40, "{}", calls.len());
    for (document, options) in calls {
        let ended = loggap().args(&options).arg("--help").ended();
        assert_eq!(ended.code, Some(0), "{document}: loggap {options:?}: {}", ended.stderr);
    }
}

/// Numbers that an unoptimised program takes long for, and smaller ones.
const SMALLER: [(&str, &str); 12] = [
    ("1048576", "1024"),
    ("16M", "16K"),
    ("--ranks 64 -s 16K", "--ranks 16 -s 16K"),
    ("--ranks 512", "--ranks 64"),
    ("8x8x8", "4x4x4"),
    ("64:4096", "64:128"),
    ("8:1M", "8:1K"),
    ("2:4096", "2:64"),
    ("--monte-carlo 1000", "--monte-carlo 20"),
    ("study pipelining", "study pipelining --ranks 64 -n 10"),
    ("noise.txt --plot", "noise.txt --ranks 2:64 --plot"),
    ("2:64K", "2:256"),
];

/// Commands that only compute; `printf` writes a schedule.
const COMPUTING: [&str; 10] = [
    "loggap simulate ",
    "loggap goal ",
    "loggap predict ",
    "loggap study pipelining",
    "loggap study overlap",
    "loggap study noise",
    "loggap best ",
    "loggap fit ",
    "loggap show ",
    "printf ",
];

#[test]
fn what_only_computes_runs() {
    let folder = Folder::new();
    for profile in ["link", "cluster", "ib", "rack", "node7", "tcp", "shm"] {
        let _path = folder.profile(&format!("{profile}.json"), 5.0);
    }
    let gaps: String = (0..12)
        .flat_map(|power| (0..9).map(move |i| (1 << power, i)))
        .map(|(size, i)| {
            format!("{size},{:e}\n", 1e-6 + f64::from(size) * 1e-10 + f64::from(i) * 1e-9)
        })
        .collect();
    let _path = folder.written("run.csv", format!("size_bytes,value_s\n{gaps}"));
    let nodes: String = (0..16).map(|rank| format!("{}\n", rank / 4)).collect();
    let _path = folder.written("nodes.txt", nodes);
    for name in ["prog.goal", "ring.bin", "year.lgs"] {
        let _path =
            folder.generated(name, &["--pattern", "ring-allreduce", "--ranks", "16", "-s", "1K"]);
    }
    loggap().args(["noise", "--duration", "50ms", "-o", &folder.path("noise.txt")]).succeeds();
    let path = format!("{}:{}", binary().parent().unwrap().display(), env::var("PATH").unwrap());
    let mut ran = 0;
    for document in [
        "README.md",
        "docs/goal.md",
        "docs/simulating.md",
        "docs/networks.md",
        "docs/best.md",
        "docs/noise.md",
        "docs/measuring.md",
    ] {
        for line in code(document) {
            if COMPUTING.iter().any(|begin| line.starts_with(begin)) {
                run(&line, folder.root(), &path, document);
                ran += 1;
            }
        }
    }
    assert!(ran > 30, "{ran}");
}

/// Runs a line of a shell in `folder`, with smaller numbers.
fn run(line: &str, folder: &Path, path: &str, document: &str) {
    let line =
        SMALLER.iter().fold(line.to_owned(), |line, (large, small)| line.replace(large, small));
    let mut shell = assert_cmd::Command::new("sh");
    let ended = shell.args(["-c", &line]).current_dir(folder).env("PATH", path).ended();
    assert_eq!(ended.code, Some(0), "{document}: {line}: {}", ended.stderr);
}
