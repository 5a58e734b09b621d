//! Repetitions back to back, as in the MPP benchmark, with a fixed root or with
//! a moving one, which is meant to break the pipeline and does not.

use loggap_core::units::Picos;

use super::{Batch, Start};

/// Adapts the number of repetitions until a batch is long compared with its own
/// start and end.
#[derive(Debug)]
pub(in crate::collective) struct Repeated {
    rotate: bool,
    count: u32,
}

impl Repeated {
    const FIRST: u32 = 16;
    const MOST: u32 = 1 << 10;
    /// Duration from which a batch is long enough.
    const ENOUGH: Picos = Picos(2_000_000_000);

    /// Repetitions with a fixed root.
    pub(super) const fn fixed() -> Self {
        Self { rotate: false, count: Self::FIRST }
    }

    /// Repetitions with another root each.
    pub(super) const fn moving() -> Self {
        Self { rotate: true, count: Self::FIRST }
    }

    pub(super) const fn next(&self) -> Batch {
        Batch { start: Start::BackToBack { rotate: self.rotate }, count: self.count }
    }

    pub(super) fn handle(&mut self, took: Picos) {
        if took < Self::ENOUGH {
            self.count = (self.count * 2).min(Self::MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_batches_grow_up_to_a_limit() {
        let mut repeated = Repeated::moving();
        repeated.handle(Picos(1_000_000));
        assert_eq!(repeated.next().count, 2 * Repeated::FIRST);
        repeated.handle(Repeated::ENOUGH);
        assert_eq!(repeated.next().count, 2 * Repeated::FIRST);
        (0..20).for_each(|_| repeated.handle(Picos(1)));
        assert_eq!(repeated.next().count, Repeated::MOST);
    }
}
