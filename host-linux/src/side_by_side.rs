//! Parallel map with a state for each thread.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of threads that were asked for, else of processors.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    let all = || std::thread::available_parallelism().ok();
    asked.or_else(all).map_or(1, NonZeroUsize::get)
}

/// Calls `work` once for each of `points` on `threads` threads, each with a state created by
/// `start`; returns the results in the order of points.
///
/// # Errors
///
/// The first error in the order of points: points are started in order, and none after an error.
pub(crate) fn side_by_side<S, T: Send, E: Send>(
    threads: usize,
    points: &[usize],
    start: impl Fn() -> Result<S, E> + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results = Mutex::new(Vec::with_capacity(points.len()));
    let put = |at: usize, result: Result<T, E>| {
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
    };
    let turn = || {
        let mut state = match start() {
            Ok(state) => state,
            Err(error) => return put(0, Err(error)),
        };
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(at) else { return };
            put(at, work(&mut state, *point));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be created, the others do its work.
            let _not_started = std::thread::Builder::new().spawn_scoped(scope, turn);
        }
        turn();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_points_for_every_number_of_threads() {
        let points: Vec<usize> = (0..100).rev().collect();
        for threads in [1, 2, 7, 200] {
            let squares =
                side_by_side(threads, &points, || Ok::<_, ()>(0), |_, at| Ok(at * at)).unwrap();
            assert!(squares.iter().zip(&points).all(|(square, at)| *square == at * at));
            assert_eq!(squares.len(), points.len());
        }
    }

    #[test]
    fn the_first_error_is_the_one_that_is_told() {
        let points: Vec<usize> = (0..100).collect();
        for threads in [1, 2, 7] {
            let work = |_: &mut (), at: usize| if at % 10 == 3 { Err(at) } else { Ok(at) };
            assert_eq!(side_by_side(threads, &points, || Ok(()), work), Err(3));
        }
        let refused = side_by_side(3, &points, || Err::<(), _>(7), |(), at| Ok(at));
        assert_eq!(refused, Err(7));
    }
}
