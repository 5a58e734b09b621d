//! Durations and errors of the published schemes on virtual clocks.

use std::convert::Infallible;

use loggap_core::sync::{ClockModel, Scheme, SeriesError, stop_after};
use loggap_core::units::{Picos, SignedPicos};
use serde::Serialize;

use super::clock::ClockTruth;
use super::cluster::{Cluster, residuals};
use super::errors::Errors;
use super::path::Path;
use super::seconds;

/// Pings without a smaller round trip that end a series.
const PATIENCE: u32 = 20;

/// Most pings of a series.
const MOST_PINGS: u32 = 100_000;

/// Duration and accuracy of a scheme.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct SchemeRow {
    /// Name of the scheme.
    pub scheme: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// True time until all ranks were synchronised.
    #[serde(rename = "took_s", serialize_with = "seconds")]
    pub took: Picos,
    /// Corrected clock minus root's clock at the end, of all ranks but the root.
    #[serde(flatten)]
    pub errors: Errors,
}

/// Both schemes, for 4 to 16,384 ranks.
///
/// # Errors
///
/// [`SeriesError`].
pub fn schemes(seed: u64) -> Result<Vec<SchemeRow>, SeriesError<Infallible>> {
    let row = |scheme| {
        [4, 16, 64, 256, 1_024, 4_096, 16_384]
            .map(|ranks| of(scheme, ranks, Path::jittery(), ClockTruth::USUAL, seed))
    };
    [Scheme::Linear, Scheme::Binomial].into_iter().flat_map(row).collect()
}

/// Synchronises `ranks` virtual clocks over `path`.
fn of(
    scheme: Scheme,
    ranks: u32,
    path: Path,
    truth: ClockTruth,
    seed: u64,
) -> Result<SchemeRow, SeriesError<Infallible>> {
    let mut cluster = Cluster::new(truth, seed, (0..ranks as usize).collect());
    let mut corrections = vec![SignedPicos(0); ranks as usize];
    for step in scheme.steps(ranks) {
        let (client, server) = (step.client as usize, step.server as usize);
        let offset = cluster
            .meet(client, server, path, |pinger| stop_after(pinger, PATIENCE, MOST_PINGS))?;
        Scheme::merge(&step, offset.value, &mut corrections);
    }
    let took = cluster.end();
    let model = |added: SignedPicos| {
        Some(ClockModel { offset: SignedPicos(-added.0), ..ClockModel::reference() })
    };
    let residuals = residuals(&cluster.local_at(took), corrections.into_iter().map(model));
    let magnitudes = residuals.iter().map(|residual| Picos(residual.value.0.unsigned_abs()));
    let errors = Errors::of(&mut magnitudes.collect::<Vec<_>>());
    let scheme = match scheme {
        Scheme::Linear => "linear",
        Scheme::Binomial => "binomial",
    };
    Ok(SchemeRow { scheme, ranks, took, errors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    const STILL: ClockTruth = ClockTruth { drift_ppm: 0.0, ..ClockTruth::USUAL };

    #[test]
    fn schemes_find_exact_offsets_where_nothing_disturbs() {
        let truth = ClockTruth { granularity: Picos::ZERO, ..STILL };
        let path = Path { jitter: Picos::ZERO, ..Path::jittery() };
        for ranks in [1, 2, 3, 7, 8, 100, 255] {
            for scheme in [Scheme::Linear, Scheme::Binomial] {
                let row = of(scheme, ranks, path, truth, ranks.into()).unwrap();
                // The peer reads its clock 20 ns after the ping arrived, but answers 20 ns later:
                // its reading is 10 ns from the middle. Own readings take 20 ns, too.
                let edges = u64::from(ranks.ilog2()) + 1;
                assert!(row.errors.max.0 <= edges * 10_001, "{row:?}");
            }
        }
    }

    #[test]
    fn time_and_error_of_a_tree_grow_with_the_logarithm_and_those_in_a_line_linearly() {
        let mean = |scheme, ranks, truth| {
            let rows = (0..20).map(|seed| of(scheme, ranks, Path::jittery(), truth, seed).unwrap());
            rows.fold([0.0, 0.0], |[took, error], row| {
                [took + row.took.seconds(), error + row.errors.mean.seconds()]
            })
        };
        let grows = |scheme, duration: Range<f64>, error: Range<f64>| {
            let (few, many) = (mean(scheme, 32, STILL), mean(scheme, 1_024, STILL));
            assert!(duration.contains(&(many[0] / few[0])), "{few:?} {many:?}");
            assert!(error.contains(&(many[1] / few[1])), "{few:?} {many:?}");
        };
        // Ten rounds to five; errors add like independent ones, sqrt(2), up to all one way, 2.
        grows(Scheme::Binomial, 1.5..3.0, 1.2..2.2);
        grows(Scheme::Linear, 25.0..40.0, 0.8..1.25);
        // With drift the first ranks of a line are stale when the last one is done.
        let line = mean(Scheme::Linear, 1_024, ClockTruth::USUAL);
        let tree = mean(Scheme::Binomial, 1_024, ClockTruth::USUAL);
        assert!(line[1] > 5.0 * tree[1] && line[0] > 50.0 * tree[0], "{line:?} {tree:?}");
    }
}
