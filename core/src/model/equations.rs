//! Equations of the assessment, solved for the measured parameter.

use crate::units::{Bytes, Overflow, Picos, SignedPicos};

/// Arguments of a parametrised round trip, `PRTT(n, d, s)`: n messages of s bytes, a busy wait of d
/// between two sends, one reply of s bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Prtt {
    /// Messages in a row, `n`; at least 1.
    pub messages: u32,
    /// Wait between two sends, `d`.
    pub delay: Picos,
    /// Bytes in each message and in the reply, `s`.
    pub size: Bytes,
}

impl Prtt {
    /// Eq. 3: `PRTT(1,0,s) + (n − 1)·max{o_s + d, G_all}` from its parts.
    /// Eq. 2 is the same with `d = 0` where the gap exceeds the overhead.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn time(self, round_trip: Picos, overhead: Picos, gap: Picos) -> Result<Picos, Overflow> {
        let paced = overhead.plus(self.delay)?;
        let rest = u64::from(self.messages).saturating_sub(1);
        round_trip.plus(paced.max(gap).times(rest)?)
    }
}

/// Time added by each message after the first: `(PRTT(n,d,s) − PRTT(1,0,s)) / (n − 1)`, the left
/// side of Eq. 4 and 5, rounded towards zero; `None` for fewer than two messages.
///
/// For `d = 0` it is `max{o_s, g + (s−1)G}`, which the model calls the gap.
#[must_use]
pub fn per_message(prtt_many: Picos, prtt_one: Picos, messages: u32) -> Option<SignedPicos> {
    let rest = i64::from(messages.checked_sub(1)?);
    let difference = prtt_many.signed_difference(prtt_one);
    difference.checked_div(rest).map(SignedPicos)
}

/// Eq. 4: `o_s = (PRTT(n,d,s) − PRTT(1,0,s))/(n − 1) − d`, valid where `d`
/// exceeds the gap; `None` below two messages.
#[must_use]
pub fn send_overhead(prtt: Prtt, paced: Picos, prtt_one: Picos) -> Option<SignedPicos> {
    let each = per_message(paced, prtt_one, prtt.messages)?;
    let delay = prtt.delay.signed_difference(Picos::ZERO);
    Some(SignedPicos(each.0.saturating_sub(delay)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Prtt = Prtt { messages: 10, delay: Picos(5_000), size: Bytes(1) };

    #[test]
    fn pacing_beyond_the_gap_shows_the_overhead() -> Result<(), Overflow> {
        let prtt = ROUND.time(Picos(7_000), Picos(300), Picos(900))?;
        assert_eq!(prtt, Picos(7_000 + 9 * 5_300));
        assert_eq!(send_overhead(ROUND, prtt, Picos(7_000)), Some(SignedPicos(300)));
        Ok(())
    }

    #[test]
    fn without_pacing_the_larger_of_gap_and_overhead_shows() -> Result<(), Overflow> {
        let burst = Prtt { delay: Picos::ZERO, ..ROUND };
        let by_gap = burst.time(Picos(7_000), Picos(300), Picos(900))?;
        assert_eq!(per_message(by_gap, Picos(7_000), 10), Some(SignedPicos(900)));
        let by_overhead = burst.time(Picos(7_000), Picos(1_300), Picos(900))?;
        assert_eq!(per_message(by_overhead, Picos(7_000), 10), Some(SignedPicos(1_300)));
        Ok(())
    }

    #[test]
    fn one_message_has_no_gap() {
        assert_eq!(per_message(Picos(9), Picos(1), 1), None);
        assert_eq!(per_message(Picos(9), Picos(1), 0), None);
        assert_eq!(ROUND.time(Picos::MAX, Picos(1), Picos(1)), Err(Overflow));
    }
}
