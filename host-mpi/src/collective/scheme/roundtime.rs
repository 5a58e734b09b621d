//! Round time (Hunold and Carpen-Amarie): each repetition has its own start, a
//! lead after its announcement. The lead follows the latency of announcements:
//! its 99th percentile, or a lower one if ranks lose their processors now and
//! then and a lead for these cases would cost more than it saves. It grows if
//! ranks are not ready in time, and shrinks if they are.

use loggap_core::stats::Sorted;
use loggap_core::units::Picos;

use super::Recent;

/// Readiness of all ranks at the start. A rank that was ready and started late
/// has lost its processor: a longer lead would not help.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ready {
    Yes,
    No,
}

/// A percentile of the latency of announcements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Chosen {
    percentile: u32,
    time: Picos,
}

impl Chosen {
    /// The 99th percentile, unless ranks lose their processors so often that a
    /// lower one gives more repetitions in the same time, although more are
    /// late.
    fn among(sorted: &Sorted<'_, Picos>) -> Option<Self> {
        const PERCENTILES: [u32; 5] = [99, 95, 90, 75, 50];
        let usual = sorted.median()?;
        let cost = |chosen: &Self| {
            let once = u128::from(chosen.time.0) + u128::from(usual.0);
            once * 100 / u128::from(chosen.percentile)
        };
        let chosen =
            |percentile| Some(Self { percentile, time: sorted.quantile(percentile, 100)? });
        PERCENTILES.into_iter().filter_map(chosen).min_by_key(cost)
    }
}

/// Lead of the announcement before a start.
#[derive(Debug)]
pub(in crate::collective) struct Lead {
    /// Latencies of the last announcements.
    latencies: Recent<128>,
    chosen: Option<Chosen>,
    /// Factor on the percentile, in percent.
    percent: u64,
    cap: Picos,
    group: Group,
    ready_in_a_row: u32,
}

/// Numbers of repetitions, and of those for which a rank was not ready.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    count: u32,
    unready: u32,
}

impl Lead {
    /// Lead before any latency is known.
    const FIRST: Picos = Picos(500_000_000);
    /// Minimum lead: a quiet gap after the announcement.
    const LEAST: Picos = Picos(5_000_000);
    /// Number of latencies before a percentile is taken.
    const ENOUGH: usize = 10;
    /// Initial factor: twice the percentile, so that no message is under way any more.
    const FIRST_PERCENT: u64 = 200;
    const LEAST_PERCENT: u64 = 100;
    /// Number of repetitions in a group. The lead grows if the percentage of a
    /// group for which a rank is not ready exceeds 100 minus the percentile by
    /// more than `TOLERATED`.
    const GROUP: u32 = 20;
    const TOLERATED: u32 = 5;
    /// Number of ready repetitions in a row after which the lead shrinks.
    const ROW: u32 = 50;
    /// Number of leads of maximum length that fit into a series.
    const LEADS: u64 = 100;

    pub(super) const fn within(max_time: Picos) -> Self {
        Self {
            latencies: Recent::new(),
            chosen: None,
            percent: Self::FIRST_PERCENT,
            cap: Picos(max_time.0 / Self::LEADS),
            group: Group { count: 0, unready: 0 },
            ready_in_a_row: 0,
        }
    }

    pub(super) fn next(&self) -> Picos {
        self.wanted().min(self.cap)
    }

    fn wanted(&self) -> Picos {
        let Some(chosen) = self.chosen else { return Self::FIRST };
        Picos(chosen.time.0.saturating_mul(self.percent) / 100).max(Self::LEAST)
    }

    /// Takes the latency of an announcement, and whether it was early enough.
    pub(super) fn handle(&mut self, announced: Picos, ready: Ready) {
        let in_time = ready == Ready::Yes;
        let mut latencies = self.latencies.keep(announced);
        if latencies.len() >= Self::ENOUGH {
            self.chosen = Chosen::among(&Sorted::new(&mut latencies));
        }
        self.group.count += 1;
        self.group.unready += u32::from(!in_time);
        self.ready_in_a_row = if in_time { self.ready_in_a_row + 1 } else { 0 };
        let expected = 100 - self.chosen.map_or(99, |chosen| chosen.percentile);
        if self.group.unready * 100 > Self::GROUP * (expected + Self::TOLERATED) {
            if self.wanted() < self.cap {
                self.percent = self.percent.saturating_mul(3) / 2;
            }
            self.group = Group::default();
        } else if self.group.count >= Self::GROUP {
            self.group = Group::default();
        }
        if self.ready_in_a_row >= Self::ROW {
            self.percent = (self.percent * 9 / 10).max(Self::LEAST_PERCENT);
            self.ready_in_a_row = 0;
        }
    }

    pub(super) fn diagnosis(&self) -> String {
        let lead = self.next();
        let chosen = self.chosen.map_or_else(
            || "an unknown time".to_owned(),
            |Chosen { percentile, time }| format!("{time} (p{percentile})"),
        );
        if self.wanted() > self.cap {
            return format!(
                "announcing a start takes up to {chosen}, and the lead is held at {lead}, a \
                 hundredth of the time: give more with --max-time"
            );
        }
        format!(
            "starts are announced {lead} ahead, which takes {chosen}, and ranks still start \
             late: they lose their processors; use fewer ranks than processors, or bind them"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Picos = Picos(1_000_000_000_000);
    const US: u64 = 1_000_000;

    fn after(count: u32, in_time: impl Fn(u32) -> bool) -> Lead {
        let mut lead = Lead::within(SECOND);
        let ready = |n| if in_time(n) { Ready::Yes } else { Ready::No };
        (0..count).for_each(|n| lead.handle(Picos(20 * US), ready(n)));
        lead
    }

    #[test]
    fn the_lead_follows_what_announcing_takes() {
        assert_eq!(after(9, |_| true).next(), Lead::FIRST);
        assert_eq!(after(10, |_| true).next(), Picos(40 * US));
    }

    #[test]
    fn it_grows_by_half_when_more_than_5_percent_are_not_ready() {
        assert_eq!(after(20, |n| n != 3).next(), Picos(40 * US));
        assert_eq!(after(20, |n| n != 3 && n != 9).next(), Picos(60 * US));
    }

    #[test]
    fn it_shrinks_by_a_tenth_after_50_in_time_and_not_below_the_percentile() {
        assert_eq!(after(50, |_| true).next(), Picos(36 * US));
        assert_eq!(after(1_000, |_| true).next(), Picos(20 * US));
    }

    #[test]
    fn rare_and_long_pauses_are_not_waited_for() {
        let mut lead = Lead::within(SECOND);
        for n in 0..200 {
            let pause = n % 20 == 0;
            let ready = if pause { Ready::No } else { Ready::Yes };
            lead.handle(Picos(if pause { 8_000 } else { 20 } * US), ready);
        }
        assert!(lead.next() <= Picos(60 * US), "{}", lead.next());
    }

    #[test]
    fn it_stays_within_its_share_of_the_time() {
        let lead = after(1_000, |_| false);
        assert_eq!(lead.next(), Picos(SECOND.0 / Lead::LEADS));
        assert!(lead.diagnosis().contains("--max-time"), "{}", lead.diagnosis());
        // It recovers soon once the reason is gone.
        let mut lead = lead;
        (0..5_000).for_each(|_| lead.handle(Picos(20 * US), Ready::Yes));
        assert!(lead.next() < Picos(100 * US), "{}", lead.next());
    }

    #[test]
    fn late_starts_within_the_share_are_the_ranks_own_fault() {
        let lead = after(30, |n| n % 2 == 0);
        assert!(lead.diagnosis().contains("lose their processors"), "{}", lead.diagnosis());
    }
}
