//! Warnings: severity, grouping, and wording.

use std::fmt;

use loggap_core::fit::Bound;
use loggap_core::measure::Warning as LinkWarning;
use loggap_core::units::Bytes;

use super::number;
use super::tail::Tail;
use crate::link::Waiting;
use crate::machine::clock::Fallback;
use crate::machine::placement::Placement;
use crate::machine::warning::{Warning as MachineWarning, busy, busy_remedy};
use crate::profile::{ProfileDocument, Severity, WarningRecord};

/// Options of `loggap` that choose processors.
pub const BY_OPTIONS: &str = "--cpu A,B";

/// Warnings about the machine and the link, the most severe first. `choice` is the way to choose
/// processors, for remedies.
#[must_use]
pub fn ranked(
    about_machine: &[MachineWarning],
    about_link: &[LinkWarning],
    choice: &str,
) -> Vec<WarningRecord> {
    let machine = about_machine.iter().map(|warning| of_machine(warning, choice));
    let mut records: Vec<_> = machine.chain(about_link.iter().map(of_link)).collect();
    records.sort_by_key(|record| record.severity);
    records
}

/// Warning for RDMA verbs: bursts of `burst` messages may stall. The receiver may have granted only
/// half of `places` less one; reads and datagrams need no grants.
#[must_use]
pub fn few_places(operation: &str, places: u16, burst: u32) -> Option<WarningRecord> {
    (!matches!(operation, "read" | "ud") && u32::from(places / 2) + 1 < burst).then(|| {
        weakens(
            format!("bursts of {burst} may stall: at most {places} messages are in flight"),
            "raise --depth; for the longest sizes measure them in a run of their own, or raise `ulimit -l` at both ends",
        )
    })
}

#[allow(clippy::too_many_lines, reason = "a table: one arm per warning")]
fn of_machine(warning: &MachineWarning, choice: &str) -> WarningRecord {
    use MachineWarning as Of;
    let problem = match warning {
        Of::NotPinned(reason) => return spoils(format!("not pinned: {reason}"), ""),
        Of::OneProcessor { cpu, waiting } => {
            let or_sleep = match waiting {
                Waiting::Poll => ", or let both sleep (--block)",
                Waiting::Block => "",
            };
            let problem = format!("both ends share processor {cpu}: every message waits for the scheduler; use two (--cpu A,B){or_sleep}");
            return spoils(problem, "");
        }
        Of::Siblings(Placement { initiator, responder }) => {
            let problem = format!("processors {initiator} and {responder} are threads of one core and slow each other down; choose two cores with --cpu A,B");
            return spoils(problem, "");
        }
        Of::Governor { cpu, governor } => {
            let problem = format!("governor '{governor}' changes the frequency");
            let remedy = "cpupower frequency-set -g performance";
            return weakens(problem, remedy).with_subject(format_args!("processor {cpu}"));
        }
        Of::Stolen { cpu, permille } => {
            let remedy = "use a dedicated machine, or repeat when it is quieter";
            #[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
            return spoils("steal time: the hypervisor took the processor", remedy)
                .with_subject(format_args!("processor {cpu}"))
                .by(*permille as f64 / 1e3);
        }
        Of::Preempted { end, times, .. } => {
            let remedy = format!("stop them, or choose other processors with {choice}");
            return spoils("other processes took the processor", &remedy)
                .with_subject(format_args!("{end} ({times} times)"));
        }
        Of::Busy { load, cpus, percent, waiting } => {
            let problem = format!("{}: {percent}% of the rounds left out", busy(*load, *cpus));
            return spoils(problem, busy_remedy(*waiting));
        }
        Of::RoundsLost { percent } => {
            let problem = format!("{percent}% of the rounds were lost and discarded");
            let remedy = "use shorter bursts (-n 4), or look for drops with ip -s link";
            return weakens(problem, remedy);
        }
        Of::DifferentPackages(Placement { initiator, responder }) => {
            format!("processors {initiator} and {responder} are in different sockets: latency includes the interconnect; choose two of one socket with --cpu A,B unless this is what you want to measure")
        }
        Of::Turbo(remedy) => {
            format!("turbo is on: the clock rate varies with load and temperature; to turn it off: {remedy}")
        }
        Of::Clock(reason) => {
            let reason = fallback(*reason);
            format!("CLOCK_MONOTONIC_RAW is read instead of the processor's counter: {reason}")
        }
        Of::ReceiveBuffer { granted, wanted: Bytes(wanted) } => {
            format!("the receive buffer is only {granted}: long bursts of datagrams will be dropped; allow more with: sysctl net.core.rmem_max={wanted}")
        }
        Of::CanaryMoved { name, percent } => {
            format!("machine speed changed during the run: {name} by {percent}%; repeat when it is quieter, or keep a --history")
        }
        Of::ProcessorsMoved { left_out, begun, least_s, largest_s } => {
            let [least, largest] = [least_s, largest_s].map(|time| number::in_units(*time, number::TIME));
            format!("the hypervisor moved processors: a cache line takes {least} or {largest} from one to the other and back; {left_out} of {begun} launches left out")
        }
        Of::LaunchRefused { launches, reason } => {
            format!("connection {launches} was the last ({reason}); --launches {launches} spends the whole time on that many")
        }
        Of::OneLaunch => "only one launch: variation between runs unknown; allow more time with --max-time, or keep a --history".to_owned(),
        Of::OneJob => "only one mpirun: variation between runs unknown; run it several times with --history DIR".to_owned(),
        Of::SizesLimited { longest } => {
            format!("the other end takes messages of up to {longest} B: longer sizes were left out; loggap serve --max-message takes longer ones, unless its MTU is the bound")
        }
        Of::NothingBeyond { reached } => {
            let next = reached.saturating_add(1);
            format!("nothing above {reached} B arrives: path MTU? compare the MTUs of both ends and between them (ip link; ping -M do -s {next})")
        }
        Of::PathMtu { path, interface } => {
            format!("the path takes packets of up to {path} B, the interface of up to {interface} B: longer messages travel in more packets than between neighbours")
        }
        Of::HistoryUnreadable { reason } => format!("history file skipped: {reason}"),
    };
    weakens(problem, "")
}

impl fmt::Display for MachineWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&of_machine(self, BY_OPTIONS)))
    }
}

fn fallback(reason: Fallback) -> &'static str {
    match reason {
        Fallback::Asked => "as requested",
        Fallback::NotInvariant => {
            "the TSC is not invariant and not the kernel's clock source; in a virtual machine, pass the CPU feature `invtsc` through"
        }
        Fallback::NotOffered => {
            "the kernel does not offer it as a clock source; see `dmesg | grep -i tsc` for why, or boot with tsc=reliable"
        }
        Fallback::Unsteady => {
            "its rate changed during calibration; repeat without suspending or migrating the machine"
        }
    }
}

fn of_link(warning: &LinkWarning) -> WarningRecord {
    match *warning {
        LinkWarning::DelayFallback(size, count) => {
            let sizes = sizes(count);
            let problem = format!("gap > RTT at {sizes}: measured with two-message bursts there");
            notes(problem, "").in_range_from(size.0)
        }
        LinkWarning::DelayTooShort(size, count) => {
            let sizes = sizes(count);
            let problem =
                format!("o_s unknown at {sizes}: the sender was not idle between messages");
            weakens(problem, "repeat on a quieter machine").in_range_from(size.0)
        }
        LinkWarning::Bound(parameter, first, bound) => {
            let remedy = "--max-time, or a quieter machine";
            let (what, remedy) = match bound {
                // A curve may be flat.
                Bound::Slope => ("slope", ""),
                Bound::Both => ("value and slope", remedy),
                Bound::Gap | Bound::Free => ("value", remedy),
            };
            notes(format!("{what} of the fit hit the lower bound, 0"), remedy)
                .with_subject(parameter.curve())
                .in_range_from(first.0)
        }
        LinkWarning::BeyondRoundTrip(parameter, size, count) => {
            let problem = format!("hit its upper bound, the round trip, at {}", sizes(count));
            weakens(problem, "repeat on a quieter machine")
                .with_subject(parameter.curve())
                .in_range_from(size.0)
        }
        LinkWarning::Stall(size, time) => {
            let time = number::in_units(time.seconds(), number::TIME);
            let problem = format!("bursts stall for {time}: the timer of delayed acknowledgements");
            weakens(problem, "check that both ends set TCP_NODELAY").in_range_from(size.0)
        }
        LinkWarning::SizesLeftOut(size, count) => {
            let problem = format!("too few samples at {}", sizes(count));
            weakens(problem, "measure longer with --max-time, --max-messages").in_range_from(size.0)
        }
        LinkWarning::Overlap(first) => {
            let problem = "L is hidden: sending and receiving overlap the transfer";
            notes(problem, "use half the round trip").in_range_from(first.0)
        }
        LinkWarning::Misfit(parameter, first, ppm) => {
            weakens("no straight line over the sizes", "use the table by size")
                .with_subject(parameter.curve())
                .in_range_from(first.0)
                .by(f64::from(ppm) / 1e6)
        }
        // Remedies also shown by `loggap fit`, which has none of these options.
        LinkWarning::FewSizes(first, count) => {
            let many = "too few sizes to check that they lie on a line";
            let problem = if count == 1 { "only one size: G unknown" } else { many };
            notes(problem, "more sizes with -s").in_range_from(first.0)
        }
        LinkWarning::ChangeNotExact(low, high) => {
            let (low, high) = (number::size(low.0), number::size(high.0));
            let problem = format!("the protocol changes somewhere between {low} and {high}");
            notes(problem, "--max-time narrows it")
        }
    }
}

/// A number of sizes, in words.
fn sizes(count: usize) -> String {
    number::counted(count as u64, "size")
}

fn weakens(problem: impl Into<String>, remedy: &str) -> WarningRecord {
    WarningRecord::new(Severity::Weakens, problem, remedy)
}

fn spoils(problem: impl Into<String>, remedy: &str) -> WarningRecord {
    WarningRecord::new(Severity::Spoils, problem, remedy)
}

fn notes(problem: impl Into<String>, remedy: &str) -> WarningRecord {
    WarningRecord::new(Severity::Notes, problem, remedy)
}

/// Ratio of the tail (p99, or p90 if p99 is unknown) to p50 that makes a long tail. It must be
/// exceeded at a quarter of the sizes.
const LONG_TAIL: f64 = 3.0;

/// Warning about a long tail of the round trips.
fn tail(document: &ProfileDocument) -> Option<WarningRecord> {
    let far = Tail::of(document);
    let ratios: Vec<(u64, f64)> = document
        .sizes
        .iter()
        .filter_map(|size| {
            let [p50, ..] = size.rounds.as_ref()?.percentiles;
            Some((size.row.size.0, far.at(size)? / p50?))
        })
        .collect();
    let long: Vec<_> = ratios.iter().filter(|(_, ratio)| *ratio > LONG_TAIL).collect();
    let first = long.first().filter(|_| long.len() * 4 >= ratios.len())?.0;
    let largest = long.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
    let problem = format!(
        "{} of the round trip is up to {largest:.0} times p50 at {} of {} sizes",
        far.name(),
        long.len(),
        ratios.len()
    );
    let remedy = "look for interrupts and neighbours on the processors; --plot shows the tail";
    Some(weakens(problem, remedy).in_range_from(first))
}

/// Warnings as sentences, one per kind, the most severe first, with or without those of severity
/// [`Severity::Notes`].
pub(super) fn sentences(document: &ProfileDocument, notes: Notes) -> Vec<String> {
    let mut records: Vec<WarningRecord> = document.warning_details.clone();
    records.extend(tail(document));
    records.sort_by_key(|record| record.severity);
    let wanted = |record: &&WarningRecord| match notes {
        Notes::Shown => true,
        Notes::Hidden => record.severity != Severity::Notes,
    };
    let mut groups: Vec<Vec<&WarningRecord>> = Vec::new();
    for record in records.iter().filter(wanted) {
        let same = |group: &&mut Vec<&WarningRecord>| {
            group.first().is_some_and(|first| {
                (&first.problem, &first.remedy) == (&record.problem, &record.remedy)
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups.iter().filter_map(|group| sentence(group)).collect()
}

/// Visibility of warnings of severity [`Severity::Notes`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Notes {
    Shown,
    Hidden,
}

/// One warning as a sentence.
#[must_use]
pub fn text(record: &WarningRecord) -> String {
    sentence(&[record]).unwrap_or_default()
}

/// Joins warnings of one kind, such as `o_s, o_r: no straight line over the sizes, by up to 12%, in
/// 3 ranges from 249 B: use the table by size`.
fn sentence(group: &[&WarningRecord]) -> Option<String> {
    let first = group.first()?;
    let mut subjects: Vec<&str> = Vec::new();
    let mut ranges: Vec<u64> = group.iter().filter_map(|record| record.from_bytes).collect();
    for subject in group.iter().filter_map(|record| record.subject.as_deref()) {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    let mut text = String::new();
    if !subjects.is_empty() {
        text = format!("{}: ", subjects.join(", "));
    }
    text += &first.problem;
    if let Some(share) = group.iter().filter_map(|record| record.share).reduce(f64::max) {
        text += &format!(", by up to {}%", number::significant(share * 100.0));
    }
    match ranges[..] {
        [] => {}
        [size] => text += &format!(", from {}", number::size(size)),
        [size, ..] => text += &format!(", in {} ranges from {}", ranges.len(), number::size(size)),
    }
    if !first.remedy.is_empty() {
        text += &format!("; {}", first.remedy);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use crate::machine::warning::End;
    use loggap_core::model::Parameter;
    use loggap_core::units::Picos;

    fn of(records: Vec<WarningRecord>) -> ProfileDocument {
        ProfileDocument { warning_details: records, ..ProfileDocument::default() }
    }

    #[test]
    fn bursts_that_are_longer_than_the_window_are_told_of() {
        let found = few_places("send", 4, 10).unwrap();
        assert!(found.problem.contains("bursts of 10") && found.problem.contains("4 messages"));
        assert!(few_places("send", 16, 10).is_some(), "7 of 16 may not be told of");
        for (operation, places) in [("send", 32), ("write", 18), ("read", 4), ("ud", 4)] {
            assert_eq!(few_places(operation, places, 10), None, "{operation} {places}");
        }
    }

    #[test]
    fn what_spoils_the_numbers_comes_first_and_one_kind_is_one_sentence() {
        let machine = [
            MachineWarning::Governor { cpu: 1, governor: "powersave".to_owned() },
            MachineWarning::Preempted { end: End::Initiator, times: 95, millis: 2_000 },
            MachineWarning::Governor { cpu: 3, governor: "powersave".to_owned() },
        ];
        let misfit = |parameter, first, ppm| LinkWarning::Misfit(parameter, Bytes(first), ppm);
        let link = [
            misfit(Parameter::SendOverhead, 4_096, 70_000),
            misfit(Parameter::RecvOverhead, 249, 121_000),
            misfit(Parameter::SendOverhead, 1, 60_000),
        ];
        assert_eq!(
            sentences(&of(ranked(&machine, &link, BY_OPTIONS)), Notes::Hidden),
            [
                "initiator (95 times): other processes took the processor; stop them, or choose \
                 other processors with --cpu A,B",
                "processor 1, processor 3: governor 'powersave' changes the frequency; cpupower \
                 frequency-set -g performance",
                "o_s, o_r: no straight line over the sizes, by up to 12.1%, in 3 ranges from 1 B; \
                 use the table by size",
            ]
        );
    }

    #[test]
    fn notes_are_told_on_request() {
        let records = ranked(&[], &[LinkWarning::Overlap(Bytes(1))], BY_OPTIONS);
        assert!(sentences(&of(records.clone()), Notes::Hidden).is_empty());
        let told = "L is hidden: sending and receiving overlap the transfer, from 1 B; use half \
                    the round trip";
        assert_eq!(sentences(&of(records.clone()), Notes::Shown), [told]);
        assert_eq!(text(&records[0]), told);
    }

    #[test]
    fn a_long_tail_at_a_quarter_of_the_sizes_is_told() {
        let mut document = fixtures::tcp();
        assert_eq!(tail(&document), None);
        let last = document.sizes.len() - 5;
        for record in &mut document.sizes[last..] {
            let percentiles = &mut record.rounds.as_mut().unwrap().percentiles;
            percentiles[2] = percentiles[0].map(|p50| p50 * 6.0);
        }
        let told = text(&tail(&document).unwrap());
        assert!(
            told.starts_with(
                "p99 of the round trip is up to 6 times p50 at 5 of 17 sizes, from 4 KiB"
            ),
            "{told}"
        );
    }

    #[test]
    fn a_tail_of_few_rounds_is_told_by_p90() {
        let mut document = fixtures::few_rounds();
        assert_eq!(tail(&document), None);
        for record in &mut document.sizes {
            let percentiles = &mut record.rounds.as_mut().unwrap().percentiles;
            percentiles[1] = percentiles[0].map(|p50| p50 * 4.0);
        }
        let told = text(&tail(&document).unwrap());
        assert!(told.starts_with("p90 of the round trip is up to 4 times p50 at 2 of 2"), "{told}");
    }

    #[test]
    fn every_warning_about_the_link_says_where_it_holds() {
        let first = Bytes(777);
        for warning in [
            LinkWarning::DelayFallback(first, 3),
            LinkWarning::DelayTooShort(first, 3),
            LinkWarning::Bound(Parameter::Gap, first, Bound::Slope),
            LinkWarning::Overlap(first),
            LinkWarning::Stall(first, Picos(40_000_000_000)),
            LinkWarning::SizesLeftOut(first, 3),
            LinkWarning::Misfit(Parameter::Gap, first, 300_000),
            LinkWarning::FewSizes(first, 1),
            LinkWarning::FewSizes(first, 2),
            LinkWarning::ChangeNotExact(first, Bytes(800)),
        ] {
            let text = text(&of_link(&warning));
            assert!(text.contains("777"), "{warning:?}: {text}");
        }
    }
}
