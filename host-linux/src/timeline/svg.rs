//! A time-line diagram like Fig. 6 to 8 of the paper: time runs to the
//! right, one band a rank, in it one lane for each processor and each
//! interface; messages slant from the interface of the sender to that of
//! the receiver, as wide as they are long.

use std::collections::BTreeMap;
use std::io::{self, Write};

use loggap_core::units::Picos;

use super::chrome::Tag;
use super::{Activity, Lane, Message, Span, Timeline};

/// Page width in pixels.
const WIDTH: f64 = 1_280.0;
/// Left of the time axis, for labels.
const LEFT: f64 = 96.0;
/// Right of the time axis.
const RIGHT: f64 = 24.0;
/// Above the first band, for title and legend.
const TOP: f64 = 58.0;
/// Below the last band, for the axis.
const BOTTOM: f64 = 44.0;
/// Height that the bands of many ranks share.
const CROWDED: f64 = 1_800.0;

/// Colours that the colour-blind can tell apart (Okabe and Ito).
const fn colour(activity: Activity) -> &'static str {
    match activity {
        Activity::Send => "#0072b2",
        Activity::Receive => "#e69f00",
        Activity::Calc => "#8a8a8a",
        Activity::Noise => "#d55e00",
    }
}

/// What is drawn, and how large.
#[derive(Clone, Debug)]
pub struct Options {
    /// Above the picture.
    pub title: String,
    /// Begin of the time axis.
    pub from: Picos,
    /// End of the time axis; the end of the timeline if `None`.
    pub to: Option<Picos>,
}

/// Draws `timeline` to `out`.
///
/// # Errors
///
/// Those of `out`.
pub fn write(timeline: &Timeline, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let page = Page::new(timeline, options);
    page.open(out, &options.title)?;
    page.axis(out)?;
    page.bands(out)?;
    writeln!(out, "<g clip-path=\"url(#plot)\">")?;
    for message in &timeline.messages {
        page.message(out, message)?;
    }
    for (span, message) in timeline.spans() {
        page.span(out, &span, message)?;
    }
    writeln!(out, "</g>\n</svg>")
}

/// Vertical place of a lane.
#[derive(Clone, Copy, Debug)]
struct Row {
    top: f64,
    height: f64,
}

impl Row {
    fn bottom(self) -> f64 {
        self.top + self.height
    }
}

/// The layout of one picture.
struct Page {
    from: Picos,
    to: Picos,
    /// Lanes of each rank, from the top.
    rows: BTreeMap<(u32, Lane), Row>,
    /// Each rank's band.
    bands: BTreeMap<u32, Row>,
    height: f64,
    used: Vec<Activity>,
    /// Height of a line of processor lane.
    scale: f64,
}

impl Page {
    fn new(timeline: &Timeline, options: &Options) -> Self {
        let lanes = timeline.lanes();
        let units: f64 = lanes.values().map(|set| band_units(set.len())).sum();
        // A processor lane of one unit is 14 pixels high, less in a crowd.
        let scale = (CROWDED / units.max(1.0)).clamp(1.5, 14.0);
        let (mut rows, mut bands) = (BTreeMap::new(), BTreeMap::new());
        let mut top = TOP;
        for (rank, set) in lanes {
            let band_top = top;
            for lane in set {
                let height = scale * if matches!(lane, Lane::Cpu(_)) { 1.0 } else { 0.4 };
                rows.insert((rank, lane), Row { top, height });
                top += height;
            }
            bands.insert(rank, Row { top: band_top, height: top - band_top });
            top += 1.6 * scale;
        }
        let mut used: Vec<_> = timeline.spans().map(|(span, _)| span.activity).collect();
        used.sort_unstable();
        used.dedup();
        let to = options.to.unwrap_or_else(|| timeline.end());
        let to = to.max(Picos(options.from.0.saturating_add(1)));
        Self { from: options.from, to, rows, bands, height: top + BOTTOM, used, scale }
    }

    /// Horizontal place of a time.
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    fn x(&self, time: Picos) -> f64 {
        let offset = time.signed_difference(self.from) as f64;
        let width = WIDTH - LEFT - RIGHT;
        // Far outside the page numbers would only become long.
        let share = (offset / self.to.since(self.from).0 as f64).clamp(-1.0, 2.0);
        LEFT + width * share
    }

    fn open(&self, out: &mut dyn Write, title: &str) -> io::Result<()> {
        let Self { height, .. } = self;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">"
        )?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
        writeln!(
            out,
            "<clipPath id=\"plot\"><rect x=\"{LEFT}\" y=\"0\" width=\"{}\" height=\"{height:.0}\"/>\
             </clipPath>",
            WIDTH - LEFT - RIGHT
        )?;
        writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"20\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            escaped(title)
        )?;
        self.legend(out)
    }

    fn legend(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut x = LEFT;
        for activity in &self.used {
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"31\" width=\"14\" height=\"11\" fill=\"{}\"/>\
                 <text x=\"{}\" y=\"41\">{}</text>",
                colour(*activity),
                x + 19.0,
                activity.name()
            )?;
            x += 84.0;
        }
        let (from, to) = (x, x + 26.0);
        writeln!(
            out,
            "<line x1=\"{from}\" y1=\"33\" x2=\"{to}\" y2=\"41\" stroke=\"#333\"/>\
             <text x=\"{}\" y=\"41\">message, first byte; shaded until its last</text>",
            to + 6.0
        )?;
        let x = to + 270.0;
        writeln!(
            out,
            "<line x1=\"{x}\" y1=\"37\" x2=\"{}\" y2=\"37\" stroke=\"#cc79a7\" \
             stroke-width=\"2\" stroke-dasharray=\"2 2\"/>\
             <text x=\"{}\" y=\"41\">waits for its receiver</text>",
            x + 26.0,
            x + 32.0
        )
    }

    fn axis(&self, out: &mut dyn Write) -> io::Result<()> {
        let scale = Scale::of(self.to);
        let step = tick_step(self.to.since(self.from));
        let base = self.height - BOTTOM + 4.0;
        let first = self.from.0.div_ceil(step) * step;
        let mut tick = first;
        while tick <= self.to.0 {
            let x = self.x(Picos(tick));
            writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{base:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                TOP - 6.0,
                base + 14.0,
                scale.number(tick, step)
            )?;
            let Some(next) = tick.checked_add(step) else { break };
            tick = next;
        }
        writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time [{}]</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            base + 32.0,
            scale.unit
        )
    }

    fn bands(&self, out: &mut dyn Write) -> io::Result<()> {
        let right = WIDTH - RIGHT;
        let mut last = f64::NEG_INFINITY;
        for (rank, band) in &self.bands {
            writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#f3f3f3\"/>",
                band.top,
                right - LEFT,
                band.height
            )?;
            // Labels of a crowd would overlap: every so many.
            let middle = band.top + band.height / 2.0;
            if middle - last >= 13.0 {
                last = middle;
                writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">rank {rank}</text>",
                    LEFT - 38.0,
                    middle + 4.0
                )?;
            }
        }
        if self.scale < 10.0 {
            return Ok(());
        }
        for ((_, lane), row) in &self.rows {
            let (name, size) = match lane {
                Lane::Cpu(index) => (format!("CPU {index}"), 9.0),
                // The two directions share a label.
                Lane::NicOut(index) => (format!("NIC {index}"), 9.0),
                Lane::NicIn(_) => continue,
            };
            let y = if matches!(lane, Lane::Cpu(_)) {
                row.top + row.height * 0.8
            } else {
                row.bottom() + 4.0
            };
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"#666\" \
                 text-anchor=\"end\">{name}</text>",
                LEFT - 4.0
            )?;
        }
        Ok(())
    }

    fn span(&self, out: &mut dyn Write, span: &Span, message: Option<&Message>) -> io::Result<()> {
        let Some(row) = self.rows.get(&(span.rank, span.lane)) else { return Ok(()) };
        let (from, to) = (self.x(span.start), self.x(span.end));
        let cpu = matches!(span.lane, Lane::Cpu(_));
        let inset = if cpu { row.height * 0.08 } else { row.height * 0.15 };
        write!(
            out,
            "<rect x=\"{from:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"{}>",
            row.top + inset,
            (to - from).max(0.4),
            row.height - 2.0 * inset,
            colour(span.activity),
            match cpu {
                // A seam between neighbours of one colour.
                true if to - from > 3.0 => " stroke=\"white\" stroke-width=\"0.5\"",
                true => "",
                false => " fill-opacity=\"0.45\"",
            }
        )?;
        let time = |time: Picos| Scale::of(self.to).exact(time);
        write!(out, "<title>{}", span.activity.name())?;
        if let Some(message) = message {
            match span.activity {
                Activity::Send => write!(out, " {} B to {}", message.size, message.to.rank)?,
                _ => write!(out, " {} B from {}", message.size, message.from.rank)?,
            }
            write!(out, ", tag {}", Tag(message.tag))?;
        }
        writeln!(out, ": {} to {}</title></rect>", time(span.start), time(span.end))
    }

    /// Where a message leaves or reaches a rank: at the edge of its band.
    fn ends(&self, message: &Message) -> Option<(f64, f64)> {
        let (from_rank, to_rank) = (message.from.rank, message.to.rank);
        let (from, to) = (self.bands.get(&from_rank), self.bands.get(&to_rank));
        match (from, to) {
            (Some(from), Some(to)) if from.top < to.top => Some((from.bottom(), to.top)),
            (Some(from), Some(to)) if from.top > to.top => Some((from.top, to.bottom())),
            (Some(same), Some(_)) => Some((same.bottom(), same.bottom())),
            // The other end is not in the picture.
            (Some(from), None) if to_rank > from_rank => {
                Some((from.bottom(), from.bottom() + self.scale))
            }
            (Some(from), None) => Some((from.top, from.top - self.scale)),
            (None, Some(to)) if from_rank < to_rank => Some((to.top - self.scale, to.top)),
            (None, Some(to)) => Some((to.bottom() + self.scale, to.bottom())),
            (None, None) => None,
        }
    }

    fn message(&self, out: &mut dyn Write, message: &Message) -> io::Result<()> {
        let Some((start, end)) = self.ends(message) else { return Ok(()) };
        let later = |time: Picos| self.x(time.plus(message.costs.gap_bytes).unwrap_or(Picos::MAX));
        let (x1, x2) = (self.x(message.left()), self.x(message.arrived));
        if message.costs.gap_bytes > Picos::ZERO {
            writeln!(
                out,
                "<polygon points=\"{x1:.2},{start:.1} {x2:.2},{end:.1} {:.2},{end:.1} \
                 {:.2},{start:.1}\" fill=\"#56b4e9\" fill-opacity=\"0.18\"/>",
                later(message.arrived),
                later(message.left())
            )?;
        }
        let time = |time: Picos| Scale::of(self.to).exact(time);
        writeln!(
            out,
            "<line x1=\"{x1:.2}\" y1=\"{start:.1}\" x2=\"{x2:.2}\" y2=\"{end:.1}\" stroke=\"#333\" \
             stroke-width=\"0.8\"><title>{} B from {} to {}, tag {}: {} to {}</title></line>",
            message.size,
            message.from.rank,
            message.to.rank,
            Tag(message.tag),
            time(message.left()),
            time(message.arrived)
        )?;
        if message.handled > message.arrived {
            let y = if end < start { end + 1.5 } else { end - 1.5 };
            writeln!(
                out,
                "<line x1=\"{x2:.2}\" y1=\"{y:.1}\" x2=\"{:.2}\" y2=\"{y:.1}\" stroke=\"#cc79a7\" \
                 stroke-width=\"2\" stroke-dasharray=\"2 2\"/>",
                self.x(message.handled)
            )?;
        }
        Ok(())
    }
}

/// Height of a band with the space below it, in processor lanes: at least
/// one processor, two lanes of an interface for two others.
#[allow(clippy::cast_precision_loss, reason = "pixels")]
fn band_units(lanes: usize) -> f64 {
    1.6 + lanes as f64 * 0.7
}

/// The unit of an axis.
struct Scale {
    unit: &'static str,
    picos: u64,
}

impl Scale {
    /// For times up to `end`.
    const fn of(end: Picos) -> Self {
        let (unit, picos) = match end.0 {
            0..10_000 => ("ps", 1),
            10_000..10_000_000 => ("ns", 1_000),
            10_000_000..10_000_000_000 => ("µs", 1_000_000),
            10_000_000_000..10_000_000_000_000 => ("ms", 1_000_000_000),
            _ => ("s", 1_000_000_000_000),
        };
        Self { unit, picos }
    }

    /// The number at a tick, with the decimals that `step` needs.
    fn number(&self, tick: u64, step: u64) -> String {
        let mut decimals = 0;
        let mut unit = self.picos;
        while unit > 1 && !step.is_multiple_of(unit) {
            unit /= 10;
            decimals += 1;
        }
        let whole = tick / self.picos;
        if decimals == 0 {
            return whole.to_string();
        }
        format!("{whole}.{:0decimals$}", tick % self.picos / unit.max(1))
    }

    /// A time with its unit, and all its decimals but zeros at the end.
    fn exact(&self, time: Picos) -> String {
        let decimals = self.picos.ilog10() as usize;
        let mut text = (time.0 / self.picos).to_string();
        if decimals > 0 {
            let fraction = format!("{:0decimals$}", time.0 % self.picos);
            let fraction = fraction.trim_end_matches('0');
            if !fraction.is_empty() {
                text.push('.');
                text.push_str(fraction);
            }
        }
        format!("{text} {}", self.unit)
    }
}

/// A step of 1, 2 or 5 times a power of ten, for six to fifteen ticks.
fn tick_step(length: Picos) -> u64 {
    let mut step = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let candidate = step.saturating_mul(factor);
            if length.0 / candidate <= 12 {
                return candidate;
            }
        }
        step = step.saturating_mul(10);
    }
}

/// Text with XML's own characters replaced.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for length in [1, 7, 999, 12_345, 9_999_999, 1 << 40, u64::MAX] {
            let step = tick_step(Picos(length));
            assert!(length / step <= 12, "{length}");
            assert!(step == 1 || length / step >= 4, "{length} {step}");
        }
    }

    #[test]
    fn numbers_on_the_axis_have_the_decimals_of_the_step() {
        let micros = Scale::of(Picos(20_000_000));
        assert_eq!(micros.unit, "µs");
        assert_eq!(micros.number(2_500_000, 500_000), "2.5");
        assert_eq!(micros.number(2_000_000, 1_000_000), "2");
        assert_eq!(micros.number(2_050_000, 50_000), "2.05");
        assert_eq!(micros.exact(Picos(2_050_001)), "2.050001 µs");
        assert_eq!(micros.exact(Picos(2_000_000)), "2 µs");
    }

    #[test]
    fn titles_cannot_break_the_picture() {
        let mut out = Vec::new();
        let options = Options { title: "a<b>&".into(), from: Picos::ZERO, to: None };
        write(&Timeline::default(), &options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("a&lt;b&gt;&amp;"));
        assert!(text.ends_with("</svg>\n"));
    }
}
