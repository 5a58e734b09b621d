//! Report for a terminal: the two ends, parameters with their accuracy, meaning, changes of
//! protocol, and the next step.

mod parameters;
mod sizes;

use std::io::{self, Write};

use anstream::adapter::strip_bytes;
use anstyle::Style;
use loggap_core::model::{Coefficient, Curve};

use super::quantity::Quantity;
use super::text::{self, ALERT, BOLD, DIM, ERROR, Line};
use super::warnings::{self, Notes};
use super::{agreement, calls, changes, heading, methods};
use crate::profile::{ProfileDocument, RangeRecord, Stopped, Verdict};

/// Largest width of lines, columns.
const WIDEST: usize = 100;
/// Smallest width of lines, columns, also on narrower terminals.
const NARROWEST: usize = 76;
/// Most warnings shown without `verbose`.
const WARNINGS: usize = 3;

/// Most lines about changes shown without `verbose`.
const CHANGES: usize = 5;

/// Options of the screen report.
#[derive(Clone, Copy, Debug)]
pub struct ScreenOptions {
    /// Width of the terminal; lines have at most 100 columns.
    pub width: usize,
    /// True if the terminal shows colours.
    pub colour: bool,
    /// True to print all sizes, ranges and warnings.
    pub verbose: bool,
}

/// Writes the report of `document` for a terminal.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(
    out: &mut dyn Write,
    document: &ProfileDocument,
    options: &ScreenOptions,
) -> io::Result<()> {
    let page = Page { width: options.width.clamp(NARROWEST, WIDEST), verbose: options.verbose };
    let is_usable = document.verdict == Verdict::Usable;
    let fitted = is_usable.then(|| [parameters::lines(document, page), remarks(document, page)]);
    let [parameters, remarks] = fitted.unwrap_or_default();
    let most = if page.verbose { usize::MAX } else { 1 };
    let of_methods: Vec<Line> =
        agreement::lines(document).into_iter().flat_map(|text| page.kept(text)).collect();
    let of_method = methods::lines(document, most).into_iter();
    let of_method = of_method.flat_map(|text| page.kept(text)).collect();
    let parts = [
        head(document, page),
        parameters,
        of_methods,
        of_method,
        remarks,
        sizes::lines(document, page),
        advice(document, page),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let parts: Vec<Vec<Line>> = parts.collect();
    let lines = parts.join(&Line::default());
    let mut styled = Vec::new();
    text::write(&mut styled, &lines)?;
    out.write_all(&if options.colour { styled } else { strip_bytes(&styled).into_vec() })
}

/// Width of lines, and amount of detail.
#[derive(Clone, Copy, Debug)]
struct Page {
    width: usize,
    verbose: bool,
}

impl Page {
    /// Wraps `text` to the page's width.
    fn wrapped(self, text: &str, style: Style) -> impl Iterator<Item = Line> + use<> {
        text::wrap(text, self.width, 2).into_iter().map(move |line| Line::styled(line, style))
    }

    /// Wraps `text` unless it fits, and may be a row of columns.
    fn kept(self, text: String) -> Vec<Line> {
        if text.chars().count() <= self.width {
            return vec![Line::plain(text)];
        }
        self.wrapped(&text, Style::new()).collect()
    }
}

fn head(document: &ProfileDocument, page: Page) -> Vec<Line> {
    let mut lines = Vec::new();
    let failure = match (&document.incomplete, document.stopped) {
        (Some(why), _) => Some(why.as_str()),
        (None, Stopped::Interrupted) => Some("interrupted"),
        (None, _) => None,
    };
    if let Some(why) = failure {
        let text = format!("INCOMPLETE: {why}. What was measured until then:");
        lines.extend(page.wrapped(&text, ERROR));
    }
    if let Some(reason) = heading::unusable(document) {
        lines.extend(page.wrapped(&reason, ERROR));
    }
    lines.extend(page.wrapped(&heading::title(document), BOLD));
    for text in heading::ends(document) {
        lines.extend(page.wrapped(&text, Style::new()));
    }
    lines.extend(page.wrapped(&heading::effort(document), Style::new()));
    lines
}

fn remarks(document: &ProfileDocument, page: Page) -> Vec<Line> {
    if document.ranges.is_empty() {
        return vec![Line::plain("No parameters: too little was measured.")];
    }
    let mut sentences = changes::sentences(document);
    let hidden = sentences.len().saturating_sub(CHANGES);
    if hidden > 1 && !page.verbose {
        sentences.truncate(CHANGES);
        sentences.push(format!("{hidden} more lines of changes: -v or --table"));
    }
    sentences.extend(calls::sentences(document));
    sentences.iter().flat_map(|text| page.wrapped(text, Style::new())).collect()
}

/// Warnings, canaries, and the next step.
fn advice(document: &ProfileDocument, page: Page) -> Vec<Line> {
    let notes = if page.verbose { Notes::Shown } else { Notes::Hidden };
    let sentences = warnings::sentences(document, notes);
    let shown = if page.verbose { sentences.len() } else { WARNINGS.min(sentences.len()) };
    let mut lines = Vec::new();
    for sentence in sentences.iter().take(shown) {
        lines.extend(page.wrapped(&format!("! {sentence}"), ALERT));
    }
    if page.verbose {
        for canary in &document.canaries {
            let share = super::number::signed_percent(canary.moved);
            let text = format!("machine: {} changed by {share} during the run", canary.name);
            lines.extend(page.wrapped(&text, DIM));
        }
    }
    lines.extend(page.wrapped(&next(document, sentences.len() - shown), Style::new()));
    lines
}

/// Sentence with the next step.
fn next(document: &ProfileDocument, hidden: usize) -> String {
    let mut text = "next: ".to_owned();
    let written = |names: [&str; 2]| {
        let mut words = document.command.iter();
        words.find(|word| names.contains(&word.as_str())).and_then(|_| words.next())
    };
    text += &match (written(["-o", "--output"]), longer_run(document)) {
        _ if document.incomplete.is_some() => "repeat the run".to_owned(),
        _ if document.verdict == Verdict::Unusable => "repeat it as the first line says".to_owned(),
        (_, Some(advice)) => advice,
        (_, None) if document.is_fit() || !is_good_to_simulate(document) => {
            "--plot FILE.svg to see it".to_owned()
        }
        (Some(file), None) => format!("loggap simulate --profile {file} FILE.goal"),
        (None, None) => "-o FILE.json to keep it for loggap simulate, --plot FILE.svg".to_owned(),
    };
    match hidden {
        0 => text,
        1 => text + "; -v for another warning",
        more => text + &format!("; -v for {more} more warnings"),
    }
}

/// True if the parameters that a simulation needs are known to about 50%.
fn is_good_to_simulate(document: &ProfileDocument) -> bool {
    const ABOUT: f64 = 0.5;
    let is_known = |quantity: Quantity| {
        let half = quantity.this_half_width();
        quantity.value > 0.0 && half.is_some_and(|half| half <= ABOUT * quantity.value)
    };
    let mut ranges = document.ranges.iter();
    ranges.all(|record| {
        let mut needed = [Curve::HalfRtt, Curve::Gap].into_iter().map(Coefficient::AtOne);
        needed.all(|one| record.at_first(one).is_some_and(is_known))
    })
}

/// Suggests a longer run, as options or in words, that should make the values marked `?` accurate
/// enough. `None` if no value is marked, more time would not help, or all need too long a run.
fn longer_run(document: &ProfileDocument) -> Option<String> {
    let efforts = efforts_needed(document);
    if efforts.is_empty() || !needs_more_time(document) {
        return None;
    }
    if document.is_fit() {
        return Some(
            "measure again with --max-time TIME to converge the values marked ?".to_owned(),
        );
    }
    let is_possible = |times: &f64| document.wall_s * times <= LONGEST_S;
    let times = efforts.iter().copied().filter(is_possible).reduce(f64::max)?;
    let seconds = whole(document.wall_s * times, LONGEST_S)?;
    let mut options = format!("--max-time {seconds}");
    if document.stopped == Stopped::MessagesSpent {
        #[allow(clippy::cast_precision_loss, reason = "rounded up, and an estimate")]
        let messages = whole(document.messages_sent as f64 * times, MOST_MESSAGES)?;
        options += &format!(" --max-messages {messages}");
    }
    let which = if efforts.iter().all(is_possible) { "all" } else { "most" };
    Some(format!("{options} to converge {which} values marked ?"))
}

/// Longest run that is suggested, seconds.
const LONGEST_S: f64 = 300.0;
/// More messages than a run of that time sends.
const MOST_MESSAGES: f64 = 1e12;

/// `number` rounded up; `None` beyond `most`.
fn whole(number: f64, most: f64) -> Option<u64> {
    let number = number.ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `most`")]
    (number >= 0.0 && number <= most).then_some(number as u64)
}

/// Factor by which the run's effort must grow for each value marked `?`, as intervals narrow with
/// the square root of the effort. Values indistinguishable from 0, for which no effort suffices,
/// and values with an unbounded interval are left out.
fn efforts_needed(document: &ProfileDocument) -> Vec<f64> {
    /// Allowance for the error of this estimate.
    const MARGIN: f64 = 1.2;
    let goal = document.requested.relative_error;
    let shares =
        doubtful(document).filter_map(|found| Some(found.this_half_width()? / found.value));
    let efforts = shares.map(|share| (share / goal).powi(2));
    efforts.filter(|times| *times > 1.0).map(|times| times * MARGIN).collect()
}

/// True if more samples would narrow values marked `?`. Not after a run that ended because no
/// further samples would have helped.
fn needs_more_time(document: &ProfileDocument) -> bool {
    let had_enough = document.stopped == Stopped::Finished && !document.is_fit();
    !had_enough && doubtful(document).next().is_some()
}

/// Values that more samples would narrow.
fn doubtful(document: &ProfileDocument) -> impl Iterator<Item = Quantity> {
    let of_range =
        |record| Coefficient::ALL.into_iter().filter_map(move |of| RangeRecord::at_one(record, of));
    document.ranges.iter().flat_map(of_range).filter(Quantity::needs_more_samples)
}

#[cfg(test)]
mod tests {
    use loggap_core::model::Mark;

    use super::super::{fixtures, number};
    use super::*;

    const USUAL: ScreenOptions = ScreenOptions { width: 120, colour: false, verbose: false };

    fn screen(document: &ProfileDocument, options: ScreenOptions) -> String {
        let mut out = Vec::new();
        write(&mut out, document, &options).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_screens_of_tcp_and_of_shared_memory_read_as_written_down() {
        assert_eq!(screen(&fixtures::tcp(), USUAL), include_str!("expected/tcp.txt"));
        assert_eq!(screen(&fixtures::shm(), USUAL), include_str!("expected/shm.txt"));
    }

    #[test]
    fn no_line_exceeds_the_terminal_or_100_columns() {
        for width in [20, 80, 100, 200] {
            for verbose in [false, true] {
                for (name, document) in fixtures::all() {
                    let text = screen(&document, ScreenOptions { width, verbose, ..USUAL });
                    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                    assert!(widest <= width.clamp(NARROWEST, 100), "{name} at {width}:\n{text}");
                }
            }
        }
    }

    #[test]
    fn up_to_three_ranges_fit_on_a_screen() {
        for document in [fixtures::tcp(), fixtures::shm(), fixtures::veth()] {
            let text = screen(&document, USUAL);
            assert!(text.lines().count() <= 40, "{text}");
        }
    }

    #[test]
    fn colours_change_no_character() {
        for (name, document) in fixtures::all() {
            let coloured = screen(&document, ScreenOptions { colour: true, ..USUAL });
            assert!(coloured.contains('\u{1b}'), "{name}");
            let stripped = anstream::adapter::strip_str(&coloured).to_string();
            assert_eq!(stripped, screen(&document, USUAL), "{name}");
        }
    }

    #[test]
    fn an_incomplete_run_says_so_first() {
        let text = screen(&fixtures::incomplete(), USUAL);
        assert!(text.starts_with("INCOMPLETE: node7:5647 closed the connection; see"), "{text}");
        let interrupted = ProfileDocument { stopped: Stopped::Interrupted, ..fixtures::tcp() };
        assert!(screen(&interrupted, USUAL).starts_with("INCOMPLETE: interrupted."));
    }

    #[test]
    fn a_run_that_says_nothing_says_so_first_and_offers_no_use_of_it() {
        let reason = "processors are busy (load 6 on 2); try --block, or wait";
        let (verdict, reason) = (Verdict::Unusable, Some(reason.to_owned()));
        let (rounds, rounds_left_out) = (400, 300);
        let usual = fixtures::tcp();
        let unusable =
            ProfileDocument { verdict, reason, rounds, rounds_left_out, ..usual.clone() };
        let text = screen(&unusable, USUAL);
        let first = "unusable: processors are busy (load 6 on 2); try --block, or wait\nnode1 to";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains(", 75% of the rounds left out"), "{text}");
        assert!(!text.contains("half round trip") && !text.contains("change of"), "{text}");
        assert!(text.contains("size  RTT/2 p50"), "{text}");
        assert!(text.ends_with("\nnext: repeat it as the first line says\n"), "{text}");
        let mut wide = usual;
        let gap = &mut wide.ranges[0].range.gap.at_one;
        gap.high.0 = 3 * gap.value.0;
        assert!(screen(&wide, USUAL).ends_with("next: --plot FILE.svg to see it\n"));
    }

    #[test]
    fn what_is_doubtful_is_marked_explained_and_given_a_time() {
        let text = screen(&fixtures::veth(), USUAL);
        for part in [
            "latency L               25.0 us      ? ±50%",
            "gap g                   12.0 us      ~ ±40%",
            "send overhead o_s       below 900 ns",
            "\n? not within 5% yet: needs more time\n",
            "\n~ no straight line over these sizes: use the table by size\n",
            "\n±: how well this run knows its value (95%); other runs differ more\n",
            // 2.5 s · 10² for a tenth of the interval · 1.2, at most 300 s.
            "\nnext: --max-time 300 to converge all values marked ?; -v for another warning\n",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let clean = screen(&fixtures::tcp(), USUAL);
        assert!(!clean.contains('?') && !clean.contains('~'), "{clean}");
    }

    #[test]
    fn a_value_not_told_from_0_asks_for_no_time_and_hides_no_other() {
        let mut zero = fixtures::veth();
        let latency = zero.ranges[0].range.latency.as_mut().unwrap();
        latency.value.0 = 0;
        // Only the gap per byte needs time: 2.5 s · (9% / 5%)² · 1.2.
        let text = screen(&zero, USUAL);
        assert!(text.contains("\nnext: --max-time 10 to converge all values marked ?"), "{text}");
        let latency = zero.ranges[0].range.latency.as_mut().unwrap();
        latency.value.0 = 1_000;
        let text = screen(&zero, USUAL);
        assert!(text.contains("\nnext: --max-time 10 to converge most values marked ?"), "{text}");
        zero.ranges[0].range.latency.as_mut().unwrap().value.0 = 0;
        zero.stopped = Stopped::MessagesSpent;
        let text = screen(&zero, USUAL);
        let advice = "\nnext: --max-time 10 --max-messages 64771 to converge all values marked ?";
        assert!(text.contains(advice), "{text}");
        zero.stopped = Stopped::Finished;
        let text = screen(&zero, USUAL);
        assert!(text.contains("stopped: more time would not narrow it\n"), "{text}");
        assert!(text.contains("\n? not within 5%\n") && text.contains("\nnext: -o FILE"), "{text}");
    }

    #[test]
    fn a_fit_asks_for_a_run_and_gives_no_options_of_one() {
        let mut fit = fixtures::gaps_alone();
        assert!(screen(&fit, USUAL).ends_with("next: --plot FILE.svg to see it\n"));
        let gap = &mut fit.ranges[0].range.gap.at_one;
        (gap.mark, gap.high.0) = (Mark::BudgetSpent, gap.value.0 * 2);
        let text = screen(&fit, USUAL);
        let advice = "\nnext: measure again with --max-time TIME to converge the";
        assert!(text.contains(advice), "{text}");
        assert!(text.contains("\n? not within 5% yet: needs more time\n"), "{text}");
    }

    #[test]
    fn few_rounds_show_p90_and_the_longest_instead_of_p99() {
        let text = screen(&fixtures::few_rounds(), USUAL);
        assert!(text.contains("size  RTT/2 p50 us  p90 us  max us    n  gap us"), "{text}");
        let mut some = fixtures::tcp();
        some.sizes[0].rounds.as_mut().unwrap().percentiles[2] = None;
        let text = screen(&some, USUAL);
        assert!(text.contains("\n   1          5.10       -  910    2.71"), "{text}");
    }

    #[test]
    fn a_history_that_is_too_short_to_tell_of_the_next_run_says_so() {
        let mut document = ProfileDocument { launches: 1, ..fixtures::tcp() };
        document.command.extend(["--history".to_owned(), "runs".to_owned()]);
        document.ranges.iter_mut().for_each(|record| record.next.clear());
        for (history_runs, more) in [(0, "2 more runs"), (1, "1 more run")] {
            let document = ProfileDocument { history_runs, ..document.clone() };
            let text = screen(&document, USUAL).replace("\n  ", " ");
            assert!(text.contains(&format!("after {more} --history tells by how much")), "{text}");
        }
        let begun = ProfileDocument { launches: 5, ranges: fixtures::tcp().ranges, ..document };
        let text = screen(&begun, ScreenOptions { width: 100, ..USUAL }).replace("\n  ", " ");
        assert!(!text.contains("--history DIR"), "{text}");
    }

    #[test]
    fn sizes_that_were_not_measured_have_no_row() {
        let mut document = fixtures::tcp();
        let row = &mut document.sizes[1].row;
        let name = number::bytes(row.size.0);
        (row.half_rtt, row.gap, row.send_overhead, row.recv_overhead) = (None, None, None, None);
        let text = screen(&document, ScreenOptions { verbose: true, ..USUAL });
        let rows = |size: &str| {
            text.lines().filter(|line| line.split_whitespace().next() == Some(size)).count()
        };
        assert_eq!([rows("4"), rows(&name)], [1, 0], "{text}");
    }

    #[test]
    fn one_of_a_kind_is_no_plural() {
        let document = ProfileDocument { history_runs: 1, ..fixtures::tcp() };
        let text = screen(&document, USUAL);
        assert!(text.contains("history of 1 run,") && !text.contains("1 runs"), "{text}");
    }

    #[test]
    fn three_warnings_are_shown_the_worst_first_and_all_on_request() {
        let warnings = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.starts_with("! "));
            lines.map(|line| line.chars().take(24).collect()).collect()
        };
        let shown = warnings(&screen(&fixtures::veth(), USUAL));
        assert_eq!(shown.len(), 3);
        assert!(shown[0].starts_with("! processor 0: the hyper"), "{shown:?}");
        assert!(shown[1].starts_with("! o_s, o_r: smaller than"), "{shown:?}");
        let all = screen(&fixtures::veth(), ScreenOptions { verbose: true, ..USUAL });
        assert_eq!(warnings(&all).len(), 5, "{all}");
    }

    #[test]
    fn many_ranges_end_in_a_pointer() {
        let text = screen(&fixtures::many_ranges(), USUAL);
        assert!(text.contains("\n10 more ranges from 64 B: -v or --table\n"), "{text}");
        let all = screen(&fixtures::many_ranges(), ScreenOptions { verbose: true, ..USUAL });
        assert!(all.contains("32 KiB to 65,535 B") && !all.contains("more ranges"), "{all}");
    }
}
