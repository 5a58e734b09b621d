//! Every built-in pattern, with random options.

use loggap_core::goal::pattern::{Algorithm, Options, Pattern};
use loggap_core::random::Random;
use loggap_core::units::Picos;

/// Every pattern, with every algorithm where there are several.
pub fn patterns() -> impl Iterator<Item = (Pattern, Algorithm)> {
    let algorithms = [
        Algorithm::Auto,
        Algorithm::Linear,
        Algorithm::BinomialTree,
        Algorithm::RecursiveDoubling,
        Algorithm::Ring,
    ];
    Pattern::all().iter().flat_map(move |described| {
        let count = if matches!(described.pattern, Pattern::Mpi(_)) { 5 } else { 1 };
        algorithms.into_iter().take(count).map(move |algorithm| (described.pattern, algorithm))
    })
}

/// Up to 40 ranks, or a power of two, and messages of up to 6,000 bytes.
pub fn options(random: &mut Random, algorithm: Algorithm) -> Options {
    let mut draw = |bound: u64| random.below(bound) as u32;
    let ranks = if draw(3) == 0 { 1 << draw(6) } else { 1 + draw(40) };
    let size = u64::from(if draw(3) == 0 { draw(3) } else { draw(6_000) });
    Options {
        root: if draw(2) == 0 { 0 } else { draw(u64::from(ranks)) },
        segment: (draw(2) == 0).then(|| 1 + u64::from(draw(2_000)).max(size / 9)),
        window: (draw(2) == 0).then(|| 1 + draw(4)),
        compute: (draw(2) == 0).then(|| Picos(u64::from(draw(4)) * 700_000)),
        algorithm,
        ..Options::new(ranks, size)
    }
}
