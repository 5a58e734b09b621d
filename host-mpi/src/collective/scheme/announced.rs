//! Start as soon as a rank receives the announcement: without a barrier and
//! without a lead.

/// Flaw of the scheme.
pub(super) const FLAW: &str = "ranks hear of a start at different times, while its announcement is \
                               still under way, and each is timed from its own start";

#[cfg(test)]
mod tests {
    use super::super::{Batch, Scheme, SchemeName, Start};
    use loggap_core::units::Picos;

    #[test]
    fn each_repetition_is_announced_by_itself() {
        let scheme = Scheme::new(SchemeName::Announced, Picos(1));
        assert_eq!(scheme.next(), Batch { start: Start::Announced, count: 1 });
        assert!(!SchemeName::Announced.is_synchronised());
    }
}
