//! Likely causes of a difference between measured and predicted time, from the
//! parts that were measured beside the operation.

use loggap_core::model::Estimate;
use loggap_core::units::Picos;

use super::taking::Taken;
use crate::algorithm::{MessageCost, Program, Way};

/// A prediction, and the measurements that may explain its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) predicted: &'a Estimate<Picos>,
    pub(super) program: &'a Program,
    /// Cost of the program's messages of the operation's size, from the profile.
    pub(super) cost: &'a MessageCost,
    /// The operation and its parts.
    pub(super) taken: &'a Taken,
    pub(super) system: System,
}

/// Properties of the job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct System {
    /// True if ranks share processors.
    pub(super) is_shared: bool,
    /// Largest eager message in bytes, if known.
    pub(super) eager_limit: Option<u64>,
    /// True if the run was interrupted.
    pub(super) interrupted: bool,
}

/// An assumption of the model that does not hold, and the time that it costs.
struct Candidate {
    picos: i128,
    words: String,
}

/// Least [`share`] of the difference for a candidate to be its cause.
const ENOUGH: f64 = 0.5;
/// Ratio of the 90th percentile to the median from which noise is likely.
const NOISY: f64 = 1.5;
/// Number of consecutive messages from which the gap decides.
const MANY: usize = 3;
/// Page faults per repetition from which the library is likely to work in new
/// memory: half of those that 16 KiB cause.
const FAULTS: f64 = 2.0;

impl Evidence<'_> {
    /// Likely cause of the difference; `None` if the intervals overlap.
    pub(super) fn cause(&self) -> Option<String> {
        let (measured, predicted) = (&self.taken.operation, self.predicted);
        if measured.low <= predicted.high && predicted.low <= measured.high {
            return None;
        }
        if self.system.is_shared {
            return Some("ranks share processors and wait for each other to be run".to_owned());
        }
        let excess = i128::from(measured.value.0) - i128::from(predicted.value.0);
        let fit = |candidate: &Candidate| share(candidate.picos, excess);
        // Of several candidates that fit equally, the first.
        let candidates = self.candidates().into_iter().rev();
        let best = candidates.max_by(|one, other| fit(one).total_cmp(&fit(other)));
        if let Some(best) = best.filter(|best| fit(best) >= ENOUGH) {
            return Some(best.words);
        }
        Some(if excess > 0 { self.slower() } else { self.quicker() })
    }

    fn candidates(&self) -> Vec<Candidate> {
        let Self { program, cost, taken, .. } = *self;
        let exchanges = program.exchanges();
        let steps = exchanges.max(program.ranks.next_power_of_two().ilog2() as usize);
        let difference = |one: Picos, other: Picos| i128::from(one.0) - i128::from(other.0);
        let candidate = |picos, words| Candidate { picos, words };
        let one_way = cost.one_way.value;
        let slower = taken.message.value.max(taken.back.value);
        let this_way = match program.way() {
            Way::Away => taken.message.value,
            Way::Back => taken.back.value,
            // An exchange waits for the slower direction.
            Way::Both => slower,
        };
        let (local, exchange) = (taken.local.value, taken.exchange.value);
        let posted = |time: Picos| Picos(time.0.saturating_add(taken.post.value.0));
        let mut all = vec![
            candidate(difference(this_way, one_way) * steps as i128, self.state()),
            candidate(taken.skew.0.into(), format!("starts are {} apart", nanos(taken.skew))),
            candidate(
                local.0.into(),
                format!(
                    "what the call does on one rank alone takes {}, and no message hides it",
                    nanos(local)
                ),
            ),
        ];
        if exchanges > 0 {
            let all_exchanges = exchanges as i128;
            all.extend([
                candidate(
                    difference(exchange, posted(slower)) * all_exchanges,
                    format!(
                        "MPI_Sendrecv takes {}, posting a receive and a message {}",
                        nanos(exchange),
                        nanos(posted(slower))
                    ),
                ),
                candidate(
                    difference(exchange, posted(one_way)) * all_exchanges,
                    format!(
                        "MPI_Sendrecv after a common start takes {}, posting a receive and {} {}",
                        nanos(exchange),
                        share_of(program),
                        nanos(posted(one_way))
                    ),
                ),
                candidate(
                    i128::from(cost.hidden().0) * all_exchanges,
                    format!(
                        "overheads hide {} of each other in a round trip (L is not positive) and \
                         not in an exchange",
                        nanos(cost.hidden())
                    ),
                ),
            ]);
        }
        all
    }

    /// Words for a message after a common start that does not take half a round trip.
    fn state(&self) -> String {
        /// Least relative difference of two directions that differ.
        const CLEAR: f64 = 0.1;
        let (message, back) = (self.taken.message.value, self.taken.back.value);
        let (share, one_way) = (share_of(self.program), nanos(self.cost.one_way.value));
        let (quick, slow) = (message.min(back).seconds(), message.max(back).seconds());
        if slow > quick * (1.0 + CLEAR) {
            return format!(
                "the two ways differ: a message from rank 0 takes {}, one to it {}, {share} \
                 {one_way}",
                nanos(message),
                nanos(back)
            );
        }
        format!(
            "a message after a common start takes {}, {share} {one_way}: caches and predictors are \
             in another state",
            nanos(message)
        )
    }

    /// Words for an operation slower than predicted that no measured part explains.
    fn slower(&self) -> String {
        let Taken { spread, page_faults, .. } = *self.taken;
        let busiest = self.program.busiest();
        let limit = self.system.eager_limit.filter(|limit| self.cost.size > *limit);
        if page_faults >= FAULTS {
            format!(
                "{page_faults:.0} page faults in each call: the library works in memory that it \
                 allocates anew"
            )
        } else if let Some(limit) = limit {
            format!("above the eager limit of {limit} B the sender waits for its receiver")
        } else if spread > NOISY {
            format!("noise: one repetition in ten takes {spread:.1} times the median or more")
        } else if busiest >= MANY {
            format!(
                "a rank with {busiest} messages in a row: the gap of a burst is not that between \
                 ranks"
            )
        } else {
            "none of the parts that were measured explains it: the call's own work".to_owned()
        }
    }

    /// Words for an operation quicker than predicted that no measured part explains.
    fn quicker(&self) -> String {
        let busiest = self.program.busiest();
        let measured = self.taken.message.value.min(self.taken.back.value);
        let one_way = self.cost.one_way.value;
        if measured < one_way {
            format!(
                "messages after a common start take {}, {} {}",
                nanos(measured),
                share_of(self.program),
                nanos(one_way)
            )
        } else if busiest >= MANY {
            format!(
                "a rank with {busiest} messages in a row overlaps them more than a burst between \
                 two ranks does"
            )
        } else {
            "quicker than the messages that it is made of: the library overlaps them, or cuts them \
             into pieces"
                .to_owned()
        }
    }
}

/// Ratio of the smaller to the larger of `part` and `whole`: 1 if they are
/// equal, 0 if their signs differ.
fn share(part: i128, whole: i128) -> f64 {
    if part == 0 || whole == 0 || part.signum() != whole.signum() {
        return 0.0;
    }
    let ratio = part as f64 / whole as f64;
    ratio.min(1.0 / ratio)
}

fn nanos(time: Picos) -> String {
    format!("{:.0} ns", time.seconds() * 1e9)
}

/// Origin of the profile's one-way time: between two ranks it is that of the
/// direction, see [`Program::way`].
const fn share_of(program: &Program) -> &'static str {
    if program.ranks == 2 { "its share of a round trip" } else { "half a round trip" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Shape, Tuned};

    fn about(value: u64, half: u64) -> Estimate<Picos> {
        let (low, high) = (Picos(value - half), Picos(value + half));
        Estimate { value: Picos(value), low, high, ..Estimate::default() }
    }

    const PROGRAM: Program = Program::new(Shape::Tuned(Tuned::AllreduceDoubling), 2, 8);

    const NS: u64 = 1_000;

    fn found(measured: u64, change: impl Fn(&mut Taken, &mut System)) -> Option<String> {
        let (operation, predicted) = (about(measured * NS, 5 * NS), about(400 * NS, 10 * NS));
        let one_way = about(400 * NS, 10 * NS);
        let cost =
            MessageCost { size: 8, one_way, overheads: about(300 * NS, 10), gap: about(10, 1) };
        let mut taken = Taken {
            operation,
            message: about(400 * NS, 0),
            back: about(400 * NS, 0),
            exchange: about(400 * NS, 0),
            local: about(NS, 0),
            page_faults: 0.1,
            skew: Picos(NS),
            spread: 1.1,
            ..Taken::default()
        };
        let mut system = System { is_shared: false, eager_limit: Some(4_096), interrupted: false };
        change(&mut taken, &mut system);
        let (program, cost, taken) = (&PROGRAM, &cost, &taken);
        Evidence { predicted: &predicted, program, cost, taken, system }.cause()
    }

    #[test]
    fn what_agrees_needs_no_cause() {
        assert_eq!(found(413, |_, _| {}), None);
    }

    #[test]
    fn the_part_that_is_as_long_as_the_difference_is_named() {
        let exchange = found(500, |e, _| e.exchange.value = Picos(490 * NS)).unwrap();
        assert!(
            exchange
                .starts_with("MPI_Sendrecv takes 490 ns, posting a receive and a message 400 ns"),
            "{exchange}"
        );
        let state = found(500, |e, _| {
            (e.message.value, e.back.value) = (Picos(510 * NS), Picos(500 * NS));
            e.exchange.value = Picos(510 * NS);
        });
        let state = state.unwrap();
        assert!(state.contains("after a common start takes 510 ns, its share of a round trip 400"));
        let ways = found(500, |e, _| e.back.value = Picos(510 * NS)).unwrap();
        assert!(ways.starts_with("the two ways differ: a message from rank 0 takes 400 ns"));
        let local = found(500, |e, _| e.local.value = Picos(90 * NS)).unwrap();
        assert!(local.starts_with("what the call does on one rank alone takes 90 ns"), "{local}");
        let skew = found(450, |e, _| e.skew = Picos(40 * NS)).unwrap();
        assert_eq!(skew, "starts are 40 ns apart");
    }

    #[test]
    fn what_was_not_measured_is_named_where_nothing_else_explains() {
        let shared = found(900, |_, s| s.is_shared = true).unwrap();
        assert!(shared.contains("share processors"));
        let long = found(900, |_, s| s.eager_limit = Some(4)).unwrap();
        assert!(long.contains("eager limit of 4 B"), "{long}");
        assert!(found(900, |e, _| e.spread = 2.0).unwrap().starts_with("noise"));
        assert!(found(900, |_, _| {}).unwrap().contains("own work"));
        // A part of the opposite sign explains nothing.
        let other = found(300, |e, _| e.exchange.value = Picos(490 * NS)).unwrap();
        assert!(other.starts_with("quicker than"), "{other}");
    }

    #[test]
    fn what_makes_slower_explains_nothing_that_is_quicker() {
        for (measured, slower) in [(900, true), (100, false)] {
            let faults = found(measured, |e, _| e.page_faults = 17.2).unwrap();
            assert_eq!(faults.starts_with("17 page faults"), slower, "{faults}");
            let long = found(measured, |_, s| s.eager_limit = Some(4)).unwrap();
            assert_eq!(long.contains("waits for its receiver"), slower, "{long}");
            let noisy = found(measured, |e, _| e.spread = 2.0).unwrap();
            assert_eq!(noisy.contains("noise"), slower, "{noisy}");
            assert_eq!(noisy.contains("quicker"), !slower, "{noisy}");
        }
        let short =
            found(100, |e, _| (e.message.value, e.back.value) = (Picos(300 * NS), Picos(310 * NS)));
        let short = short.unwrap();
        assert!(short.starts_with("messages after a common start take 300 ns"), "{short}");
    }
}
