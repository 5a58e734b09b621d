//! Result of `sync`, as a document and as columns.

use loggap::output::number;
use serde::{Deserialize, Serialize};

/// Clock of one rank.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct RankRecord {
    pub(super) rank: usize,
    pub(super) host: String,
    pub(super) domain: u32,
    pub(super) parent: Option<i32>,
    /// True if the rank uses its parent's clock as its own.
    pub(super) shares_clock: bool,
    pub(super) offset_s: f64,
    pub(super) drift_ppm: f64,
    /// `None` with a published scheme, and for a clock that is not synchronised.
    pub(super) bound_s: Option<f64>,
    pub(super) pings: u32,
    /// Quickest round trip of the last pings with the parent.
    pub(super) round_trip_s: Option<f64>,
    /// Number of offsets that contradicted earlier ones.
    pub(super) contradictions: u32,
    pub(super) median_offset_s: Option<f64>,
    pub(super) median_outside: bool,
}

/// Result of one check.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CheckRecord {
    pub(super) after_s: f64,
    pub(super) residuals: u32,
    pub(super) residual_p50_s: f64,
    pub(super) residual_p99_s: f64,
    pub(super) residual_max_s: f64,
    pub(super) bound_s: Option<f64>,
    /// True difference of the corrected clocks: `zero` if all ranks read one
    /// clock, `None` if the residuals are from fresh pings.
    pub(super) truth: Option<&'static str>,
    /// Share of residuals within the claimed bounds, if the truth is known.
    pub(super) covered_share: Option<f64>,
    /// Share of residuals within the claimed bounds and the uncertainty of the
    /// fresh pings, if the truth is unknown. A constant asymmetry of the two
    /// directions does not show.
    pub(super) consistent_share: Option<f64>,
    pub(super) triangles: usize,
    pub(super) triangles_closed: usize,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Document {
    pub(super) loggap_version: &'static str,
    pub(super) library: String,
    pub(super) clock: &'static str,
    pub(super) scheme: &'static str,
    /// Duration of the last pass, or of the published scheme.
    pub(super) pass_s: f64,
    pub(super) ranks: Vec<RankRecord>,
    pub(super) checks: Vec<CheckRecord>,
    /// From the last check.
    pub(super) residual_p99_s: Option<f64>,
    pub(super) residual_max_s: Option<f64>,
    /// Largest bound of all ranks.
    pub(super) bound_s: Option<f64>,
    pub(super) truth: Option<&'static str>,
    pub(super) covered_share: Option<f64>,
    pub(super) consistent_share: Option<f64>,
    /// Reason why passes or checks are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) incomplete: Option<&'static str>,
    pub(super) warnings: Vec<String>,
}

/// Columns of the document, and a line for each check.
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
            number::micros(rank.bound_s),
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

/// Remarks on what the checks prove, and on what is missing.
fn remarks(document: &Document) -> String {
    let mut text = String::new();
    let shares = |rank: &RankRecord| rank.rank == 0 || rank.shares_clock;
    if document.checks.is_empty() {
        // No check was requested.
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
