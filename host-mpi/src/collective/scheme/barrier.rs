//! Barrier before each repetition, after which each rank times itself: the
//! scheme of most benchmarks.

/// Flaw of the scheme.
pub(super) const FLAW: &str = "ranks leave the barrier at different times, and each is timed from \
                               its own start";

#[cfg(test)]
mod tests {
    use super::super::{Batch, Scheme, SchemeName, Start};
    use loggap_core::units::Picos;

    #[test]
    fn each_repetition_has_a_barrier_of_its_own() {
        let scheme = Scheme::new(SchemeName::Barrier, Picos(1));
        assert_eq!(scheme.next(), Batch { start: Start::Barrier, count: 1 });
    }
}
