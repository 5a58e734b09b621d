//! What is said of levels, files of ranks, graphs and units that do not mean what
//! they seem to.

use std::fs;

use loggap_tests::command::{Run, loggap, refused, simulated};
use loggap_tests::folder::Folder;

const ALL_TO_ALL: [&str; 6] = ["--pattern", "all-to-all", "--ranks", "16", "-s", "1K"];
const NEAR: &str = "L=100,o=100,g=100,G=1";

/// What a simulation of the pattern that succeeds says on standard error.
fn told(more: &[&str]) -> String {
    loggap().arg("simulate").args(ALL_TO_ALL).args(more).succeeds().stderr
}

fn wrong(more: &[&str]) -> String {
    let (code, told) = refused(&[&ALL_TO_ALL, more].concat());
    assert_eq!(code, 2, "{told}");
    told
}

#[test]
fn a_level_without_effect_is_told() {
    let folder = Folder::new();
    let level = |block: u32| format!("{block}:{NEAR}");
    let pairs: Vec<String> = (0..16).map(|rank| (rank / 2).to_string()).collect();
    let pairs = folder.written("pairs", pairs.join(" "));
    let apart: Vec<String> = (0..16).map(|rank| rank.to_string()).collect();
    let apart = folder.written("apart", apart.join("\n"));
    let one = told(&["--level", &level(1)]);
    assert!(one.contains("--level 1 has no effect") && one.contains("--nodes"), "{one}");
    assert_eq!(told(&["--level", &level(1), "--nodes", &pairs]), "");
    let nobody = told(&["--level", &level(1), "--nodes", &apart]);
    assert!(nobody.contains("--level 1 has no effect") && !nobody.contains("--nodes"), "{nobody}");
    assert_eq!(told(&["--level", &level(4)]), "");
    for block in [16, 1_024] {
        let all = told(&["--level", &level(block)]);
        assert!(all.contains("all 16 ranks are within") && all.contains("no effect"), "{all}");
    }
    let second = told(&["--level", &level(16), "--level", &level(32)]);
    assert!(second.contains("--level 32 has no effect"), "{second}");
    assert!(!second.contains("--level 16 has no effect"), "{second}");
}

#[test]
fn what_is_wrong_with_levels_and_files_of_ranks_is_said_in_their_words() {
    let folder = Folder::new();
    let bad = folder.written("bad.txt", "hi there");
    let level = format!("8:{NEAR}");
    let typo = wrong(&["--level", "8:ompi-xx"]);
    assert!(typo.contains("'ompi-xx' is no file") && typo.contains("ompi-ib-sdr"), "{typo}");
    let twice = wrong(&["--level", &level, "--level", &level]);
    assert!(twice.contains("given twice"), "{twice}");
    let swept = wrong(&["--level", &level, "--sweep", "L=1us:2us:3"]);
    assert!(swept.contains("2 levels of nearness") && swept.contains("0.5x:2x"), "{swept}");
    let node = wrong(&["--level", &level, "--nodes", &bad]);
    assert!(node.contains("'hi' is no node; expected the node of each rank"), "{node}");
    let host = wrong(&["--topology", "star", "--placement", &bad]);
    assert!(host.contains("'hi' is no host; expected the host of each rank"), "{host}");
}

#[test]
fn files_of_more_ranks_than_there_are_are_told() {
    let folder = Folder::new();
    let many: Vec<String> = (0..20).map(|rank| (rank / 2).to_string()).collect();
    let many = folder.written("many", many.join(" "));
    let nodes = told(&["--level", &format!("1:{NEAR}"), "--nodes", &many]);
    assert!(nodes.contains("nodes of 20 ranks, and there are 16"), "{nodes}");
    let hosts = told(&["--topology", "star", "--placement", &many]);
    assert!(hosts.contains("hosts of 20 ranks, and there are 16"), "{hosts}");
}

#[test]
fn times_have_units_wherever_they_are_given() {
    let makespan = |more: &[&str]| simulated(&[&ALL_TO_ALL, more].concat())["makespan_ps"].clone();
    let with = makespan(&["-L", "1us", "-o", "0.2us", "-g", "300", "-G", "80ps/B", "-O", "1ps/B"]);
    let without = makespan(&["-L", "1000", "-o", "200", "-g", "300", "-G", "0.08", "-O", "0.001"]);
    assert_eq!(with, without);
    let listed = |list: &str| makespan(&["--level", &format!("8:{list}")]);
    assert_eq!(listed("L=1us,o=0.2us,g=300ns,G=80ps/B"), listed("L=1000,o=200,g=300,G=0.08"));
}

#[test]
fn attributes_of_graphs_that_mean_nothing_are_told_once() {
    let folder = Folder::new();
    let hosts: String = (0..16).map(|host| format!("H{host} -- S [color=red]\n")).collect();
    let net = |more: &str| {
        let text = format!("graph {{ rankdir=LR; node [shape=box]\n{hosts}{more} }}");
        folder.written("net.dot", text)
    };
    let plot = folder.path("n.svg");
    let plot = &*plot;
    let quiet = net("S -- T [capacity=4, label=\"x\", penwidth=2]");
    assert_eq!(told(&["--topology", &quiet]), "");
    let typo = net("S -- T [capactiy=4]\nT -- U [capactiy=4, bandwidth=2]");
    let text = told(&["--topology", &typo, "--network-plot", plot]);
    assert_eq!(text.matches("capactiy").count(), 1, "{text}");
    assert!(text.contains("net.dot: 'bandwidth', 'capactiy' are ignored"), "{text}");
}

#[test]
fn topologies_that_are_none_say_what_there_is() {
    let folder = Folder::new();
    let mesh = wrong(&["--topology", "mesh"]);
    assert!(mesh.contains("FILE.dot or FILE.gv") && mesh.contains("tree:HOSTS[:TAPER]"), "{mesh}");
    let spokes: String = (0..16).map(|host| format!("H{host} -- HUB\n")).collect();
    let hub = folder.written("hub.dot", format!("graph {{ {spokes} }}"));
    let text = wrong(&["--topology", &hub]);
    assert!(text.contains("no way") && text.contains("begin with H"), "{text}");
    assert!(text.contains("hosts do not forward"), "{text}");
    let star: String = (0..16).map(|host| format!("H{host} -- S\n")).collect();
    let star = folder.written("star.gv", format!("graph {{ {star} }}"));
    assert_eq!(told(&["--topology", &star]), "");
    let wide = wrong(&["--topology", &star, "--link-capacity", "2"]);
    assert!(wide.contains("star.gv' has none"), "{wide}");
}

#[test]
fn the_document_of_levels_has_all_parameters_and_where_they_are_from() {
    let near = ["--level", "4:L=100,o=200,g=300,G=1,S=9", "--level", "8:odin", "-L", "5us"];
    let report = simulated(&[&ALL_TO_ALL, &near[..]].concat());
    let network = &report["network"];
    let levels = network["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2, "{network}");
    assert_eq!((&levels[0]["block"], &levels[0]["source"]), (&4.into(), &"options".into()));
    let set = &levels[0]["sets"][0];
    for (key, value) in [
        ("latency_s", 100e-9),
        ("send_overhead_s", 200e-9),
        ("recv_overhead_s", 200e-9),
        ("gap_s", 300e-9),
        ("gap_per_byte_s", 1e-9),
    ] {
        assert!((set[key].as_f64().unwrap() - value).abs() < 1e-15, "{key}: {set}");
    }
    assert_eq!(set["eager_limit_bytes"], 9);
    assert_eq!((&levels[1]["source"], &levels[1]["name"]), (&"preset".into(), &"odin".into()));
    assert_eq!(network["far"]["source"], "options");
    assert!((network["far"]["sets"][0]["latency_s"].as_f64().unwrap() - 5e-6).abs() < 1e-15);
}

#[test]
fn a_picture_of_links_says_of_what_it_is_and_shares_are_no_more_than_all() {
    let folder = Folder::new();
    let plot = folder.path("n.svg");
    let network = ["--topology", "tree:8:4", "--network-plot", &plot];
    let report = simulated(&[&ALL_TO_ALL, &network[..]].concat());
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("on tree:8:4") && svg.contains("makespan"), "{svg}");
    let ties = report["network"]["as_busy_links"].as_u64().unwrap();
    assert!(ties > 0 && svg.contains(&format!("{ties} more are as busy as the last")), "{ties}");
    for link in report["network"]["busiest_links"].as_array().unwrap() {
        let steps = link["utilization_over_time"].as_array().unwrap();
        assert!(steps.iter().all(|step| step.as_f64().unwrap() <= 1.0), "{link}");
    }
}
