//! The noise of all ranks, measured at the same time, and gathered at rank 0.

use std::time::Duration;

use loggap::machine::clock::HostClock;
use loggap::machine::noise::{MeasuredNoise, Next, NoiseOptions, NoiseRecord, THRESHOLD, observe};
use loggap::terminal::CliError;
use loggap_core::noise::{self, Detour, Trace};
use loggap_core::units::Picos;
use mpi::collective::CommunicatorCollectives as _;
use serde::Serialize;

use super::super::Session;
use crate::job::CONTROLLER;
use crate::matrix::median;

/// Noise of one rank.
#[derive(Clone, Debug)]
pub(super) struct RankNoise {
    record: NoiseRecord,
    detours: Vec<Detour>,
    /// Length of the trace.
    length: Picos,
}

/// Maximum number of detours that a rank keeps: the trace ends before the next one.
const ROOM: usize = 1 << 16;

/// Measures the noise of all ranks for `duration`; all ranks call it together.
/// Returns the noise of all ranks at the leader, of none elsewhere.
pub(super) fn take(duration: Duration, session: &Session<'_>) -> Result<Vec<RankNoise>, CliError> {
    let job = session.job;
    let duration = Picos::from_duration(duration);
    let options = NoiseOptions { duration, threshold: THRESHOLD, room: ROOM };
    let clock = HostClock::calibrated();
    job.watch().during(|| job.control().barrier());
    let own = observe(&clock, &options, |_| Next::Observe);
    if !job.leads() {
        job.tell(CONTROLLER, &encode(&own)?);
        return Ok(Vec::new());
    }
    // Receives from all ranks before it parses: after an error the others would
    // wait to be received.
    let others = job.others().map(|rank| job.hear(rank));
    let reports: Vec<Vec<u8>> = [encode(&own)?].into_iter().chain(others).collect();
    let read = |(rank, report): (usize, &Vec<u8>)| {
        decode(report).map_err(|error| {
            CliError::failed(format_args!("the noise of rank {rank} cannot be read: {error}"))
        })
    };
    reports.iter().enumerate().map(read).collect()
}

/// A line of JSON with the figures, and the trace in its file format.
fn encode(noise: &MeasuredNoise) -> Result<Vec<u8>, CliError> {
    let mut text = serde_json::to_string(&noise.record()).map_err(CliError::failed)?;
    text.push('\n');
    noise::write(&mut text, &noise.detours, noise.length).map_err(CliError::failed)?;
    Ok(text.into_bytes())
}

fn decode(report: &[u8]) -> Result<RankNoise, String> {
    let end = report.iter().position(|byte| *byte == b'\n').ok_or("no figures")?;
    let (figures, trace) = report.split_at(end);
    let record = serde_json::from_slice(figures).map_err(|error| error.to_string())?;
    let mut detours = vec![Detour::default(); noise::count(trace)];
    let (_, length) = noise::read(trace, &mut detours).map_err(|error| error.to_string())?;
    let length = length.ok_or("no length of the trace")?;
    Ok(RankNoise { record, detours, length })
}

impl RankNoise {
    /// Trace of the rank's detours; `None` if it has none.
    pub(super) fn trace(&self) -> Option<Trace<'_>> {
        Trace::new(&self.detours, Some(self.length)).ok()
    }
}

/// Noise of all ranks in a report.
#[derive(Debug, Serialize)]
pub(super) struct NoiseReport {
    pub(super) duration_s: f64,
    /// Shortest interruption that counts as a detour.
    pub(super) threshold_s: f64,
    /// Median and maximum over the ranks of the share of time lost.
    pub(super) lost_share_median: f64,
    pub(super) lost_share_worst: f64,
    /// Rank that loses most.
    pub(super) worst_rank: usize,
    /// Median and maximum over the ranks of the detours per second.
    pub(super) rate_per_s_median: f64,
    pub(super) rate_per_s_worst: f64,
    /// Longest detour of all ranks.
    pub(super) longest_s: Option<f64>,
    pub(super) longest_rank: Option<usize>,
    pub(super) ranks: Vec<NoiseRecord>,
}

impl NoiseReport {
    /// `None` without ranks.
    pub(super) fn of(all: &[RankNoise], duration: Duration) -> Option<Self> {
        let ranks: Vec<NoiseRecord> = all.iter().map(|noise| noise.record).collect();
        // Of equal values, the first.
        let greatest = |of: fn(&NoiseRecord) -> f64| {
            let values = ranks.iter().map(of).enumerate();
            values.reduce(|best, next| if next.1 > best.1 { next } else { best })
        };
        let (worst_rank, lost_share_worst) = greatest(|record| record.lost_share)?;
        let longest = greatest(|record| record.longest_s.unwrap_or(0.0)).filter(|(_, s)| *s > 0.0);
        Some(Self {
            duration_s: duration.as_secs_f64(),
            threshold_s: THRESHOLD.seconds(),
            lost_share_median: median(ranks.iter().map(|record| record.lost_share))?,
            lost_share_worst,
            worst_rank,
            rate_per_s_median: median(ranks.iter().map(|record| record.rate_per_s))?,
            rate_per_s_worst: greatest(|record| record.rate_per_s)?.1,
            longest_s: longest.map(|(_, longest)| longest),
            longest_rank: longest.map(|(rank, _)| rank),
            ranks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::noise::NoiseSummary;

    const MICRO: u64 = 1_000_000;

    /// A second with `detours` of 10 µs.
    fn noise(detours: u64) -> RankNoise {
        let of =
            |index: u64| Detour { start: Picos(index * 100 * MICRO), duration: Picos(10 * MICRO) };
        let some = (detours > 0).then_some(Picos(10 * MICRO));
        let measured = MeasuredNoise {
            detours: (0..detours).map(of).collect(),
            length: Picos(1_000_000 * MICRO),
            summary: NoiseSummary {
                observed: Picos(1_000_000 * MICRO),
                smallest_gap: Picos(17_000),
                detours,
                dropped: 0,
                lost: Picos(detours * 10 * MICRO),
                longest: some.unwrap_or_default(),
                median: some,
                p99: some,
            },
            threshold: THRESHOLD,
        };
        decode(&encode(&measured).unwrap()).unwrap()
    }

    #[test]
    fn a_rank_tells_its_figures_and_its_trace() {
        let told = noise(3);
        assert_eq!(told.record.detours, 3);
        assert_eq!(told.trace().unwrap().total(), Picos(30 * MICRO));
        assert_eq!(told.trace().unwrap().length(), Picos(1_000_000 * MICRO));
        assert!(noise(0).trace().is_none() && noise(0).record.longest_s.is_none());
        for report in [&b""[..], b"{}", b"{}\n", b"x\n# Trace length [ns]: 1\n"] {
            assert!(decode(report).is_err());
        }
    }

    #[test]
    fn the_report_has_the_median_rank_and_the_worst() {
        let report = NoiseReport::of(&[noise(0), noise(700), noise(100)], Duration::from_secs(1));
        let report = report.unwrap();
        assert_eq!((report.worst_rank, report.longest_rank), (1, Some(1)));
        assert!((report.lost_share_median - 0.001).abs() < 1e-9);
        assert!((report.lost_share_worst - 0.007).abs() < 1e-9);
        assert!((report.rate_per_s_median - 100.0).abs() < 1e-6);
        assert!((report.rate_per_s_worst - 700.0).abs() < 1e-6);
        let quiet = NoiseReport::of(&[noise(0)], Duration::from_secs(1)).unwrap();
        assert_eq!((quiet.longest_s, quiet.longest_rank), (None, None));
        assert!(NoiseReport::of(&[], Duration::from_secs(1)).is_none());
    }
}
