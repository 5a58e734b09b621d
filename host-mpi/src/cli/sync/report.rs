//! What `sync` found, as documents and columns have it.

use loggap::output::number;
use serde::Serialize;

/// The clock of one rank.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RankRecord {
    pub(super) rank: usize,
    pub(super) host: String,
    pub(super) domain: u32,
    pub(super) parent: Option<i32>,
    /// Whether it takes its parent's clock for its own.
    pub(super) shares_clock: bool,
    pub(super) offset_s: f64,
    pub(super) drift_ppm: f64,
    /// None by a published scheme, and where nothing is known.
    pub(super) bound_s: Option<f64>,
    pub(super) pings: u32,
    /// The quickest of the last pings with the parent.
    pub(super) round_trip_s: Option<f64>,
    /// Times that an offset contradicted those before.
    pub(super) contradictions: u32,
    pub(super) median_offset_s: Option<f64>,
    pub(super) median_outside: bool,
}

/// One check.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CheckRecord {
    pub(super) after_s: f64,
    pub(super) residuals: u32,
    pub(super) residual_p50_s: f64,
    pub(super) residual_p99_s: f64,
    pub(super) residual_max_s: f64,
    pub(super) bound_s: Option<f64>,
    /// What corrected clocks differ by in truth: `zero` where all ranks read one
    /// clock. None where residuals are by fresh pings.
    pub(super) truth: Option<&'static str>,
    /// Residuals within what is claimed, where the truth is known.
    pub(super) covered_share: Option<f64>,
    /// Residuals within what is claimed and what the fresh pings leave open,
    /// elsewhere. An asymmetry of the two ways that all pings have does not show.
    pub(super) consistent_share: Option<f64>,
    pub(super) triangles: usize,
    pub(super) triangles_closed: usize,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Document {
    pub(super) schema_version: u32,
    pub(super) loggap_version: &'static str,
    pub(super) library: String,
    pub(super) clock: &'static str,
    pub(super) scheme: &'static str,
    /// What the last pass, or the published scheme, took.
    pub(super) pass_s: f64,
    pub(super) ranks: Vec<RankRecord>,
    pub(super) checks: Vec<CheckRecord>,
    /// Of the last check.
    pub(super) residual_p99_s: Option<f64>,
    pub(super) residual_max_s: Option<f64>,
    /// The largest of all ranks.
    pub(super) bound_s: Option<f64>,
    pub(super) truth: Option<&'static str>,
    pub(super) covered_share: Option<f64>,
    pub(super) consistent_share: Option<f64>,
    /// Why passes or checks are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) incomplete: Option<&'static str>,
    pub(super) warnings: Vec<String>,
}

/// The document as columns, with a line for each check.
pub(super) fn text(document: &Document) -> String {
    let time = |seconds: f64| number::in_units(seconds, number::TIME);
    let mut text = format!(
        "# {}, {} ranks, {}, {}; a pass takes {}\n",
        document.library,
        document.ranks.len(),
        document.clock,
        document.scheme,
        time(document.pass_s)
    );
    text += "#rank parent offset[us] drift[ppm] bound[us] pings host\n";
    for rank in &document.ranks {
        let parent = rank.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        let how = if rank.shares_clock { ", shares its parent's clock" } else { "" };
        text += &format!(
            "{:>5} {parent:>6} {:>10.3} {:>10.3} {:>9} {:>5} {}{how}\n",
            rank.rank,
            rank.offset_s * 1e6,
            rank.drift_ppm,
            rank.bound_s.map_or_else(|| "-".to_owned(), |bound| format!("{:.3}", bound * 1e6)),
            rank.pings,
            rank.host,
        );
        if rank.median_outside {
            text += "# the median of single pings lies outside of the bounds: the ways differ\n";
        }
    }
    for check in &document.checks {
        let claims = check.bound_s.map(|bound| {
            let percent = |share: Option<f64>| share.map(|share| share * 100.0);
            let held = match (percent(check.covered_share), percent(check.consistent_share)) {
                (Some(covered), _) => format!("covers {covered:.1}%"),
                (_, Some(consistent)) => format!("consistent with {consistent:.1}%"),
                _ => String::new(),
            };
            format!(", bound {} {held}", time(bound))
        });
        let claims = claims.unwrap_or_default();
        text += &format!(
            "# after {}: {} residuals {}, p50 {}, p99 {}, max {}{}{}\n",
            time(check.after_s.max(1e-9)),
            check.residuals,
            if check.truth.is_some() { "against the truth" } else { "by fresh pings" },
            time(check.residual_p50_s),
            time(check.residual_p99_s),
            time(check.residual_max_s),
            claims,
            if check.triangles == 0 {
                String::new()
            } else {
                format!("; {} of {} triangles closed", check.triangles_closed, check.triangles)
            },
        );
    }
    text + &remarks(document)
}

/// What checks mean, and what is missing.
fn remarks(document: &Document) -> String {
    let mut text = String::new();
    let shares = |rank: &RankRecord| rank.rank == 0 || rank.shares_clock;
    if document.checks.is_empty() {
        // Nothing is said of what was not asked for.
    } else if document.ranks.iter().all(shares) {
        text += "# ranks share one clock: nothing to check; --domains rank tries the method\n";
    } else if document.checks.iter().any(|check| check.truth.is_some()) {
        text += "# the truth: all ranks read one clock, so that corrected clocks agree exactly\n";
    } else {
        text += "# fresh pings go the same ways: a constant asymmetry of the two does not show\n";
    }
    if let Some(why) = document.incomplete {
        text += &format!("# INCOMPLETE: {why}\n");
    }
    text
}
