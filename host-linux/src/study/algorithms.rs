//! Other algorithms for the collective operations of a traced program.

use loggap_core::units::Picos;

use crate::best::{Candidate, SEGMENTS};
use crate::collective::{Algorithm, Operation};
use crate::trace::convert::Report;

/// Value of `--algorithms` that chooses `candidate`.
#[must_use]
pub fn option(candidate: &Candidate) -> String {
    let Algorithm { operation, name, .. } = candidate.algorithm;
    match candidate.segment {
        0 => format!("{operation}={name}"),
        segment => format!("{operation}={name}:{segment}"),
    }
}

/// Operations with a choice of algorithms among the calls of a converted trace.
pub fn occurring(report: &Report) -> impl Iterator<Item = Operation> {
    let lines = report.converted().into_iter().chain(report.approximated());
    let calls: Vec<_> = lines.map(|line| line.call.to_lowercase()).collect();
    let is_called = move |operation: &Operation| {
        let name = operation.name();
        calls.iter().any(|call| call == name || call.strip_prefix('i') == Some(name))
    };
    Operation::ALL.into_iter().filter(is_called)
}

/// Algorithms of `operations` on `ranks`, each with all sizes of segments that it may have.
#[must_use]
pub fn candidates(operations: &[Operation], ranks: u32) -> Vec<Candidate> {
    let algorithms = Operation::ALL
        .into_iter()
        .filter(|operation| operations.contains(operation))
        .flat_map(Operation::algorithms);
    let possible = algorithms.filter(|algorithm| algorithm.condition.holds(ranks));
    let each = |algorithm: &'static Algorithm| {
        let segments = if algorithm.segments { &SEGMENTS[..] } else { &[] };
        let segments = [0].into_iter().chain(segments.iter().copied());
        segments.map(move |segment| Candidate { algorithm, segment })
    };
    possible.flat_map(each).collect()
}

/// True if `makespan` is at least 1% below `present`: less is nothing to change an algorithm for.
#[must_use]
pub const fn is_faster(makespan: Picos, present: Picos) -> bool {
    makespan.0 < present.0 - present.0 / 100
}

/// Of candidates with their makespans the fastest of each `group`, the first of equal ones.
pub fn fastest<K: PartialEq>(
    runs: impl Iterator<Item = (Candidate, Picos)>,
    group: impl Fn(&Candidate) -> K,
) -> Vec<(Candidate, Picos)> {
    let mut best: Vec<(Candidate, Picos)> = Vec::new();
    for (candidate, makespan) in runs {
        match best.iter_mut().find(|(one, _)| group(one) == group(&candidate)) {
            Some(one) if makespan < one.1 => *one = (candidate, makespan),
            Some(_) => {}
            None => best.push((candidate, makespan)),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_that_the_number_of_ranks_allows_with_their_segments() {
        let options = |ranks| {
            let all = candidates(&[Operation::Allgather], ranks);
            all.iter().map(option).collect::<Vec<_>>()
        };
        let all = [
            "allgather=bruck",
            "allgather=recursive_doubling",
            "allgather=ring",
            "allgather=neighbor",
        ];
        assert_eq!(options(8), all);
        assert_eq!(options(7), [all[0], all[2]]);
        let bcast = candidates(&[Operation::Bcast, Operation::Bcast], 4);
        let pipelines = bcast.iter().filter(|one| one.algorithm.name == "pipeline");
        assert_eq!(
            pipelines.map(option).collect::<Vec<_>>(),
            [
                "bcast=pipeline",
                "bcast=pipeline:1024",
                "bcast=pipeline:8192",
                "bcast=pipeline:65536"
            ]
        );
    }

    #[test]
    fn the_fastest_of_each_group_is_the_first_of_equal_ones() {
        let all = candidates(&[Operation::Bcast], 4);
        let times = [5, 4, 4, 6].map(Picos);
        let runs = all.iter().copied().zip(times);
        let best = fastest(runs, |candidate| candidate.algorithm.operation.number());
        assert_eq!(best, [(all[1], Picos(4))]);
    }
}
