//! Handwritten profiles for the tests of all exporters.

use serde_json::{Map, Value, json};

use crate::profile::ProfileDocument;

/// All fixtures by name.
pub(super) fn all() -> [(&'static str, ProfileDocument); 8] {
    [
        ("tcp", tcp()),
        ("shm", shm()),
        ("veth", veth()),
        ("incomplete", incomplete()),
        ("one size", one_size()),
        ("many ranges", many_ranges()),
        ("gaps alone", gaps_alone()),
        ("few rounds", few_rounds()),
    ]
}

/// Key, value, and the relative half widths of this run's and of the next run's interval.
type Number = (&'static str, f64, f64, f64);

/// A range; `marks` maps keys to `budget_spent` or `misfit`.
fn range(sizes: [u64; 2], numbers: &[Number], marks: Value) -> Value {
    let mut object = Map::new();
    object.insert("first_bytes".to_owned(), sizes[0].into());
    object.insert("last_bytes".to_owned(), sizes[1].into());
    for (key, value, this, next) in numbers {
        let mut put = |end: &str, share: f64| {
            object.insert(format!("{key}{end}"), (value * (1.0 + share)).into());
        };
        put("", 0.0);
        put("_lo", -this);
        put("_hi", *this);
        if *next > 0.0 {
            put("_next_lo", -next);
            put("_next_hi", *next);
        }
    }
    object.insert("not_converged".to_owned(), marks);
    object.into()
}

/// A row of the table by size; times in microseconds, 0 if unknown.
fn size(bytes: u64, [half_rtt, p99, gap, send, recv]: [f64; 5]) -> Value {
    let mut object = Map::new();
    object.insert("size_bytes".to_owned(), bytes.into());
    let values = [
        ("half_rtt_s", half_rtt),
        ("gap_s", gap),
        ("send_overhead_s", send),
        ("recv_overhead_s", recv),
    ];
    for (key, value) in values.into_iter().filter(|(_, value)| *value > 0.0) {
        object.insert(key.to_owned(), (value / 1e6).into());
    }
    if p99 > 0.0 {
        let percentiles = [
            ("half_rtt_p50_s", half_rtt),
            ("half_rtt_p90_s", half_rtt * 1.1),
            ("half_rtt_p99_s", p99),
            ("half_rtt_p999_s", p99 * 2.0),
            ("half_rtt_max_s", p99 * 10.0),
        ];
        for (key, value) in percentiles {
            object.insert(key.to_owned(), (value / 1e6).into());
        }
        object.insert("round_trip_samples".to_owned(), 910.into());
        let histogram = json!([[half_rtt / 1e6, 900], [p99 / 1e6, 10]]);
        object.insert("half_rtt_histogram".to_owned(), histogram);
    }
    object.into()
}

fn host(name: &str, cpu: u32, link: Value) -> Value {
    json!({
        "hostname": name, "cpu_model": "AMD EPYC 7302 16-Core Processor", "cpus": 32, "cpu": cpu,
        "governor": "powersave", "hypervisor": null, "kernel": "Linux 6.18.0 x86_64",
        "kernel_clocksource": "tsc", "clock": "tsc", "clock_hz": 3_000_000_000_u64,
        "clock_uncertainty_ppb": 20, "clock_read_s": 8e-9, "link": link,
    })
}

fn link(transport: &str, peer: &str, interface: &str, mtu: u64, speed: Value) -> Value {
    json!({
        "transport": transport, "peer": peer, "interface": interface, "mtu_bytes": mtu,
        "driver": null, "speed_bits_per_s": speed, "congestion_control": null,
        "segment_bytes": null, "receive_buffer_bytes": null,
    })
}

fn document(parts: Value) -> ProfileDocument {
    let mut whole = json!({
        "schema_version": 1, "loggap_version": "0.1.0", "command": ["loggap", "measure"],
        "transport": "tcp", "method": "prtt", "messages_sent": 16_659, "messages_lost": 0,
        "requested": {"relative_error": 0.05, "confidence_percent": 95.0},
        "wall_s": 2.41, "launches": 5, "stopped": "finished", "converged": true,
    });
    let (Value::Object(whole), Value::Object(parts)) = (&mut whole, parts) else { unreachable!() };
    whole.extend(parts);
    ProfileDocument::parse(&serde_json::to_vec(whole).unwrap()).unwrap()
}

/// Two machines, one protocol, no warnings.
pub(super) fn tcp() -> ProfileDocument {
    let numbers = [
        ("latency_s", 1.21e-6, 0.04, 0.06),
        ("half_rtt_s", 5.1e-6, 0.01, 0.02),
        ("half_rtt_per_byte_s", 0.2e-9, 0.01, 0.02),
        ("send_overhead_s", 2.62e-6, 0.01, 0.02),
        ("send_overhead_per_byte_s", 0.0251e-9, 0.02, 0.04),
        ("recv_overhead_s", 1.27e-6, 0.03, 0.074),
        ("recv_overhead_per_byte_s", 0.0112e-9, 0.02, 0.11),
        ("gap_s", 2.71e-6, 0.01, 0.03),
        ("gap_per_byte_s", 0.166e-9, 0.001, 0.004),
    ];
    let sizes = (0..=16_i32).map(|exponent| {
        let bytes = 2_f64.powi(exponent);
        let gap = 2.71 + bytes * 0.000_166;
        size(1 << exponent, [5.1 + bytes * 0.000_2, 7.9 + bytes * 0.000_3, gap, 2.62, 1.27])
    });
    let link = link("tcp", "node7:5647", "ens1f0", 9_000, 100_000_000_000_u64.into());
    document(json!({
        "host": host("node1", 11, link.clone()), "responder": host("node7", 3, link),
        "ranges": [range([1, 65_536], &numbers, json!({}))],
        "sizes": sizes.collect::<Vec<_>>(),
    }))
}

/// Shared memory on one machine: three ranges, L hidden, changes of all kinds.
pub(super) fn shm() -> ProfileDocument {
    let numbers = |scale: f64| {
        [
            ("half_rtt_s", 0.112e-6 * scale, 0.03, 0.1),
            ("send_overhead_s", 0.061e-6 * scale, 0.03, 0.1),
            ("send_overhead_per_byte_s", 0.021e-9, 0.1, 0.3),
            ("recv_overhead_s", 0.072e-6 * scale, 0.03, 0.1),
            ("gap_s", 0.0712e-6 * scale, 0.03, 0.1),
            ("gap_per_byte_s", 0.0405e-9, 0.1, 1.5),
        ]
    };
    let sizes = [1_u64, 64, 248, 249, 1_024, 4_096, 16_384, 65_536].map(|bytes| {
        let scale = f64::from(u32::try_from(bytes).unwrap()) / 5_000.0;
        size(bytes, [0.112 + scale, 0.9 + scale, 0.07 + scale, 0.06 + scale, 0.07 + scale])
    });
    let link = link("shm", "the responder on this machine (process 22978)", "", 0, Value::Null);
    let mut link = link;
    (link["interface"], link["mtu_bytes"]) = (Value::Null, Value::Null);
    document(json!({
        "transport": "shm", "host": host("node1", 2, link.clone()),
        "responder": host("node1", 3, link), "history_runs": 5,
        "ranges": [
            range([1, 248], &numbers(1.0), json!({})),
            range([249, 4_095], &numbers(1.5), json!({})),
            range([4_096, 65_536], &numbers(3.0), json!({"gap_s": "misfit"})),
        ],
        "changes": [
            {"at_bytes": 249, "lo_bytes": 245, "hi_bytes": 257, "parameter": "half_rtt",
             "jump": 0.18, "splits": true},
            {"at_bytes": 32_768, "lo_bytes": 32_768, "hi_bytes": 32_768, "parameter": "gap",
             "jump": 0.014, "splits": false},
        ],
        "sizes": sizes,
        "warnings": ["left out here"],
        "warning_details": [
            {"severity": "weakens", "problem": "no straight line over the sizes",
             "subject": "gap", "from_bytes": 4_096, "share": 0.121,
             "remedy": "use the table by size"},
            {"severity": "notes", "problem": "L is hidden", "from_bytes": 1, "remedy": "none"},
        ],
    }))
}

/// 10 Mb/s, measured briefly: few numbers converged, many warnings.
pub(super) fn veth() -> ProfileDocument {
    let numbers = [
        ("latency_s", 25e-6, 0.5, 0.0),
        ("half_rtt_s", 34e-6, 0.1, 0.0),
        ("send_overhead_s", 0.0, 0.0, 0.0),
        ("recv_overhead_s", 4.0e-6, 0.3, 0.0),
        ("gap_s", 12e-6, 0.4, 0.0),
        ("gap_per_byte_s", 836e-9, 0.09, 0.0),
    ];
    let mut first = range(
        [1, 65_536],
        &numbers,
        json!({"latency_s": "budget_spent", "gap_s": "misfit", "gap_per_byte_s": "budget_spent"}),
    );
    first["send_overhead_s_hi"] = json!(0.9e-6);
    let sizes = [1_u64, 1_024, 65_536].map(|bytes| {
        let scale = f64::from(u32::try_from(bytes).unwrap());
        size(bytes, [34.0 + scale * 0.84, 0.0, 12.0 + scale * 0.836, 0.0, 4.0])
    });
    let warning = |severity: &str, problem: &str, subject: &str, from: u64| {
        json!({"severity": severity, "problem": problem, "subject": subject, "from_bytes": from,
               "share": 0.033, "remedy": "do what helps against this, which takes some words to say"})
    };
    document(json!({
        "host": host("node1", 0, link("tcp", "10.0.0.2:5647", "veth0", 1_500, 10_000_000_000_u64.into())),
        "launches": 1, "stopped": "time_spent", "converged": false, "wall_s": 2.5,
        "ranges": [first], "sizes": sizes,
        "warning_details": [
            warning("weakens", "smaller than the noise", "o_s", 1),
            warning("weakens", "smaller than the noise", "o_r", 249),
            warning("weakens", "smaller than the noise", "o_s", 512),
            warning("spoils", "the hypervisor ran something else", "processor 0", 1),
            warning("notes", "only noted", "gap", 1),
            warning("weakens", "a third", "gap", 1),
            warning("weakens", "a fourth", "gap", 1),
        ],
    }))
}

/// Run whose peer disappeared before anything was fitted.
pub(super) fn incomplete() -> ProfileDocument {
    let sizes = [1_u64, 64].map(|bytes| size(bytes, [5.0, 0.0, 2.0, 0.0, 0.0]));
    document(json!({
        "host": host("node1", 0, link("tcp", "node7:5647", "eth0", 1_500, Value::Null)),
        "incomplete": "node7:5647 closed the connection; see whether `loggap serve` still runs there",
        "ranges": [], "sizes": sizes, "converged": false,
    }))
}

/// `-s 64`: slopes are unknown.
pub(super) fn one_size() -> ProfileDocument {
    let numbers = [("half_rtt_s", 5.0e-6, 0.01, 0.03), ("gap_s", 2.0e-6, 0.01, 0.03)];
    let mut range = range([64, 64], &numbers, json!({}));
    for key in ["half_rtt", "gap"] {
        for end in ["", "_lo", "_hi"] {
            range[format!("{key}_per_byte_s{end}")] = Value::Null;
        }
    }
    document(json!({
        "host": host("node1", 0, link("udp", "node7:5647", "eth0", 1_500, 1_000_000_000.into())),
        "transport": "udp", "messages_lost": 1_234, "ranges": [range],
        "sizes": [size(64, [5.0, 6.0, 2.0, 0.0, 0.0])],
        "command": ["loggap", "measure", "-s", "64", "-o", "node7.json"],
    }))
}

/// Largest number of ranges that a profile holds.
pub(super) fn many_ranges() -> ProfileDocument {
    let numbers = |scale: f64| {
        [
            ("latency_s", 1.2e-6, 0.2, 0.5),
            ("half_rtt_s", 123.456e-6 * scale, 0.02, 1.5),
            ("send_overhead_s", 0.9e-6 * scale, 0.05, 0.2),
            ("recv_overhead_s", 0.7e-6 * scale, 0.05, 20.0),
            ("gap_s", 0.5e-6 * scale, 0.05, 0.2),
            ("gap_per_byte_s", 0.4e-9, 0.05, 0.2),
        ]
    };
    let ranges = (0..16_i32).map(|index| {
        let sizes = [1 << index, (2 << index) - 1];
        range(sizes, &numbers(2_f64.powi(index)), json!({"gap_s": "budget_spent"}))
    });
    let changes = (1..16).map(|index| {
        let at = 1_u64 << index;
        json!({"at_bytes": at, "lo_bytes": at - 1, "hi_bytes": at + 1, "jump": -0.3,
               "parameter": "recv_overhead", "splits": index % 2 == 0})
    });
    let sizes = (0..40_i32).map(|index| {
        let bytes = 1.3_f64.powi(index);
        size(1 + u64::from(index.unsigned_abs()) * 1_000, [bytes, bytes * 9.0, bytes, 0.001, 5e6])
    });
    document(json!({
        "host": host("a-machine-with-a-very-long-name.in-a-domain.with-a-long-name.example.org", 127,
            link("eth", "02:00:00:00:00:07", "enp129s0f1np1", 9_000, 25_000_000_000_u64.into())),
        "transport": "eth", "ranges": ranges.collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(), "sizes": sizes.collect::<Vec<_>>(),
        "canaries": [{"name": "system call", "before_s": 1e-7, "during_s": 1.2e-7,
                      "after_s": 1e-7, "moved": 0.2}],
    }))
}

/// Result of `loggap fit` for a file with gaps only.
pub(super) fn gaps_alone() -> ProfileDocument {
    let numbers = [("gap_s", 2.0e-6, 0.01, 0.0), ("gap_per_byte_s", 1e-10, 0.01, 0.0)];
    document(json!({
        "host": host("", 0, link("", "gaps.csv", "", 0, Value::Null)),
        "transport": "", "ranges": [range([1, 65_536], &numbers, json!({}))],
        "sizes": [size(1, [0.0, 0.0, 2.0, 0.0, 0.0]), size(65_536, [0.0, 0.0, 8.55, 0.0, 0.0])],
    }))
}

/// A slow link with too few rounds at each size for p99.
pub(super) fn few_rounds() -> ProfileDocument {
    let mut document = tcp();
    document.sizes.truncate(2);
    for record in &mut document.sizes {
        let rounds = record.rounds.as_mut().expect("written above");
        (rounds.percentiles[2], rounds.percentiles[3]) = (None, None);
    }
    document
}
