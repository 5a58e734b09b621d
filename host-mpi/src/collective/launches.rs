//! Merges several launches of one job into one result. The launch is a factor
//! of its own, so medians are taken over the medians of launches.

use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::{Picos, SignedPicos};

use super::interval;
use super::report::{Document, ResultRecord};

/// Merges the documents of launches, all of the same operations and sizes;
/// `None` without documents.
#[must_use]
pub fn merge(launches: &[Document]) -> Option<Document> {
    let (first, last) = (launches.first()?, launches.last()?);
    if let [only] = launches {
        return Some(only.clone());
    }
    // A launch that failed lacks some of them.
    let most = launches.iter().max_by_key(|launch| launch.results.len())?;
    let is_same = |one: &ResultRecord, other: &ResultRecord| {
        (&one.op, one.size_bytes) == (&other.op, other.size_bytes)
    };
    let results = most.results.iter().map(|result| {
        let same = |launch: &'_ Document| {
            launch.results.iter().find(|other| is_same(other, result)).cloned()
        };
        let same: Vec<ResultRecord> = launches.iter().filter_map(same).collect();
        merge_one(result, &same.iter().collect::<Vec<_>>())
    });
    let mut warnings: Vec<String> = Vec::new();
    for (number, launch) in (1..).zip(launches) {
        for warning in &launch.warnings {
            // A warning of all launches is printed once.
            let is_of_all = launches.iter().all(|launch| launch.warnings.contains(warning));
            let said = format!("launch {number}: {warning}");
            let said = if is_of_all { warning.clone() } else { said };
            if !warnings.contains(&said) {
                warnings.push(said);
            }
        }
    }
    Some(Document {
        results: results.collect(),
        warnings,
        launches: u32::try_from(launches.len()).unwrap_or(u32::MAX),
        incomplete: last.incomplete.clone(),
        ..first.clone()
    })
}

fn merge_one(result: &ResultRecord, launches: &[&ResultRecord]) -> ResultRecord {
    let medians: Vec<f64> = launches.iter().filter_map(|launch| launch.median_s).collect();
    let mut sample: Vec<Picos> = medians.iter().filter_map(|median| picos(*median)).collect();
    let interval = Sorted::new(&mut sample).median_interval(Confidence::P95);
    let median_s = interval.map(|interval| interval.median.seconds());
    let reached = interval.filter(|interval| interval.reached);
    let spread = median_s.filter(|median| *median > 0.0).and_then(|median| {
        let least = medians.iter().copied().reduce(f64::min)?;
        let most = medians.iter().copied().reduce(f64::max)?;
        Some((most - least) / median)
    });
    let median = |of: fn(&ResultRecord) -> Option<f64>| {
        let values = launches.iter().filter_map(|launch| of(launch).and_then(picos));
        interval::median(values).map(Picos::seconds)
    };
    let most = |of: fn(&ResultRecord) -> Option<f64>| {
        launches.iter().filter_map(|launch| of(launch)).reduce(f64::max)
    };
    let sum = |of: fn(&ResultRecord) -> u64| launches.iter().map(|launch| of(launch)).sum();
    let same = |stop: &str| launches.iter().all(|launch| launch.stopped == stop);
    ResultRecord {
        median_s,
        median_s_lo: reached.map(|interval| interval.low.seconds()),
        median_s_hi: reached.map(|interval| interval.high.seconds()),
        avg_s: median(|launch| launch.avg_s),
        min_s: median(|launch| launch.min_s),
        max_s: median(|launch| launch.max_s),
        reps: sum(|launch| launch.reps),
        reps_effective: sum(|launch| launch.reps_effective),
        discarded: sum(|launch| launch.discarded),
        discarded_late: sum(|launch| launch.discarded_late),
        discarded_too_long: sum(|launch| launch.discarded_too_long),
        discarded_no_clock: sum(|launch| launch.discarded_no_clock),
        lost_segments: sum(|launch| launch.lost_segments),
        synchronisations: sum(|launch| launch.synchronisations),
        skew_s: median(|launch| launch.skew_s),
        skew_max_s: most(|launch| launch.skew_max_s),
        clock_error_s: most(|launch| launch.clock_error_s),
        stopped: if same(&result.stopped) { result.stopped.clone() } else { "mixed".to_owned() },
        diagnosis: launches.iter().find_map(|launch| launch.diagnosis.clone()),
        launch_medians_s: medians,
        spread,
        ..result.clone()
    }
}

fn picos(seconds: f64) -> Option<Picos> {
    SignedPicos::from_f64(seconds * 1e12).picos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(median_s: Option<f64>, reps: u64) -> Document {
        let result = ResultRecord {
            op: "bcast".into(),
            size_bytes: 8,
            median_s,
            reps,
            stopped: "time".into(),
            ..ResultRecord::default()
        };
        Document { results: vec![result], ..Document::default() }
    }

    #[test]
    fn the_median_is_that_of_the_medians_of_launches() {
        let launches: Vec<_> =
            [3e-6, 1e-6, 2e-6, 9e-6, 4e-6, 5e-6].map(|median| launch(Some(median), 10)).into();
        let merged = merge(&launches).unwrap();
        let result = &merged.results[0];
        assert_eq!((merged.launches, result.reps), (6, 60));
        assert!((result.median_s.unwrap() - 3.5e-6).abs() < 1e-12);
        assert!((result.median_s_lo.unwrap() - 1e-6).abs() < 1e-12);
        assert!((result.median_s_hi.unwrap() - 9e-6).abs() < 1e-12);
        assert!((result.spread.unwrap() - 8.0 / 3.5).abs() < 1e-9);
        assert_eq!(result.launch_medians_s.len(), 6);
    }

    #[test]
    fn too_few_launches_have_no_interval() {
        let merged = merge(&[launch(Some(1e-6), 1), launch(Some(2e-6), 1)]).unwrap();
        assert_eq!(merged.results[0].median_s_lo, None);
        assert!(merged.results[0].median_s.is_some());
    }

    #[test]
    fn one_launch_stays_what_it_is() {
        let mut one = launch(Some(2e-6), 5);
        (one.results[0].median_s_lo, one.results[0].median_s_hi) = (Some(1e-6), Some(3e-6));
        assert_eq!(merge(std::slice::from_ref(&one)), Some(one));
    }

    #[test]
    fn what_only_a_later_launch_finished_is_there() {
        let mut late = launch(Some(2e-6), 5);
        late.results.push(ResultRecord { op: "reduce".into(), ..late.results[0].clone() });
        let merged = merge(&[launch(Some(1e-6), 5), late]).unwrap();
        assert_eq!(merged.results.len(), 2);
        assert_eq!(merged.results[1].launch_medians_s, [2e-6]);
    }

    #[test]
    fn launches_without_a_number_are_left_out_and_not_counted_as_nothing() {
        let merged = merge(&[launch(None, 0), launch(Some(2e-6), 5)]).unwrap();
        assert_eq!(merged.results[0].launch_medians_s, [2e-6]);
        let merged = merge(&[launch(None, 0), launch(None, 0)]).unwrap();
        assert_eq!((merged.results[0].median_s, merged.results[0].spread), (None, None));
        assert!(merge(&[]).is_none());
    }
}
