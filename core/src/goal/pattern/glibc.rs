//! Pseudo-random numbers of the GNU C library's `rand`, from which `linear_alltoallv` draws message
//! sizes.

/// Lag of the additive feedback, and length of the state.
const LONG: usize = 31;
/// Lag of the nearer term.
const SHORT: usize = 3;
/// Number of outputs discarded after seeding.
const DISCARDED: usize = 310;

/// `rand` of the GNU C library with `TYPE_3` state: rᵢ = rᵢ₋₃ + rᵢ₋₃₁ modulo 2³², without the low
/// bit.
#[derive(Clone, Debug)]
pub(super) struct Rand {
    state: [u32; LONG],
    /// Position of rᵢ₋₃₁.
    oldest: usize,
    /// Position of rᵢ₋₃.
    recent: usize,
}

impl Rand {
    /// Generator after `srand(seed)`; a program that does not call `srand` has seed 1. The state is
    /// filled by the minimal-standard generator 16,807·r modulo 2³¹ − 1.
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [0; LONG];
        let mut value = if seed == 0 { 1 } else { seed };
        for slot in &mut state {
            *slot = value;
            value = minimal_standard(value);
        }
        let mut rand = Self { state, oldest: SHORT, recent: 0 };
        for _ in 0..DISCARDED {
            rand.draw();
        }
        rand
    }

    /// Draws the next number, 0 to 2³¹ − 1.
    pub(super) fn draw(&mut self) -> u32 {
        let recent = self.state.get(self.recent).copied().unwrap_or_default();
        let Some(oldest) = self.state.get_mut(self.oldest) else { return 0 };
        *oldest = oldest.wrapping_add(recent);
        let value = *oldest >> 1;
        self.oldest = if self.oldest + 1 == LONG { 0 } else { self.oldest + 1 };
        self.recent = if self.recent + 1 == LONG { 0 } else { self.recent + 1 };
        value
    }
}

/// 16,807·`value` modulo 2³¹ − 1 for a signed `value`, never negative (unlike a C remainder).
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the seed is a C int; the remainder is below 2^31"
)]
const fn minimal_standard(value: u32) -> u32 {
    (16_807 * (value as i32 as i64)).rem_euclid(0x7fff_ffff) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_seed_gives_the_well_known_first_numbers() {
        let mut rand = Rand::new(1);
        let first: [u32; 5] = core::array::from_fn(|_| rand.draw());
        assert_eq!(
            first,
            [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]
        );
        let thousandth = (5..1_000).map(|_| rand.draw()).last();
        assert_eq!(thousandth, Some(THOUSANDTH));
    }

    /// The thousandth number that a C program without `srand` prints.
    const THOUSANDTH: u32 = 1_143_565_421;

    #[test]
    fn another_seed_gives_other_numbers() {
        let mut rand = Rand::new(42);
        assert_eq!(rand.draw(), 71_876_166);
        assert_eq!(rand.draw(), 708_592_740);
    }
}
