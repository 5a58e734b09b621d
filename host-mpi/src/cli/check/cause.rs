//! Likely causes of a difference between measured and predicted time, from the
//! parts that were measured beside the operation.

use loggap_core::model::Estimate;
use loggap_core::units::Picos;

use crate::algorithm::{MessageCost, Program, Way};

/// Measurements of one operation and size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) measured: &'a Estimate<Picos>,
    pub(super) predicted: &'a Estimate<Picos>,
    pub(super) program: &'a Program,
    /// Cost of the program's messages of the operation's size, from the profile.
    pub(super) cost: &'a MessageCost,
    /// From the common start: a message from rank 0, one to it, and an exchange.
    pub(super) message: Picos,
    pub(super) back: Picos,
    pub(super) exchange: Picos,
    /// Duration of posting a receive.
    pub(super) post: Picos,
    /// Duration of the operation on one rank alone.
    pub(super) local: Picos,
    /// Page faults of rank 0 in a repetition of the operation.
    pub(super) page_faults: f64,
    pub(super) skew: Picos,
    /// Ratio of the 90th percentile to the median.
    pub(super) spread: f64,
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

/// Likely cause of the difference; `None` if the intervals overlap.
pub(super) fn cause(evidence: &Evidence<'_>) -> Option<String> {
    let (measured, predicted) = (evidence.measured, evidence.predicted);
    if measured.low <= predicted.high && predicted.low <= measured.high {
        return None;
    }
    if evidence.system.is_shared {
        return Some("ranks share processors and wait for each other to be run".to_owned());
    }
    let excess = i128::from(measured.value.0) - i128::from(predicted.value.0);
    let fit = |candidate: &Candidate| share(candidate.picos, excess);
    // Of several candidates that fit equally, the first.
    let best =
        candidates(evidence).into_iter().rev().max_by(|one, other| fit(one).total_cmp(&fit(other)));
    if let Some(best) = best.filter(|best| fit(best) >= ENOUGH) {
        return Some(best.words);
    }
    Some(if excess > 0 { slower(evidence) } else { quicker(evidence) })
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

fn candidates(evidence: &Evidence<'_>) -> Vec<Candidate> {
    let Evidence { program, cost, message, back, exchange, post, local, skew, .. } = *evidence;
    let exchanges = program.exchanges();
    let steps = exchanges.max(program.ranks.next_power_of_two().ilog2() as usize);
    let difference = |one: Picos, other: Picos| i128::from(one.0) - i128::from(other.0);
    let one_way = cost.one_way.value;
    let slower = message.max(back);
    let this_way = match program.way() {
        Way::Away => message,
        Way::Back => back,
        // An exchange waits for the slower direction.
        Way::Both => slower,
    };
    let posted = |time: Picos| Picos(time.0.saturating_add(post.0));
    let mut all = vec![
        Candidate { picos: difference(this_way, one_way) * steps as i128, words: state(evidence) },
        Candidate { picos: i128::from(skew.0), words: format!("starts are {} apart", nanos(skew)) },
        Candidate {
            picos: i128::from(local.0),
            words: format!(
                "what the call does on one rank alone takes {}, and no message hides it",
                nanos(local)
            ),
        },
    ];
    if exchanges > 0 {
        all.push(Candidate {
            picos: difference(exchange, posted(slower)) * exchanges as i128,
            words: format!(
                "MPI_Sendrecv takes {}, posting a receive and a message {}",
                nanos(exchange),
                nanos(posted(slower))
            ),
        });
        all.push(Candidate {
            picos: difference(exchange, posted(one_way)) * exchanges as i128,
            words: format!(
                "MPI_Sendrecv after a common start takes {}, posting a receive and {} {}",
                nanos(exchange),
                share_of(program),
                nanos(posted(one_way))
            ),
        });
        all.push(Candidate {
            picos: i128::from(cost.hidden().0) * exchanges as i128,
            words: format!(
                "overheads hide {} of each other in a round trip (L is not positive) and not in \
                 an exchange",
                nanos(cost.hidden())
            ),
        });
    }
    all
}

fn nanos(time: Picos) -> String {
    format!("{:.0} ns", time.seconds() * 1e9)
}

/// Origin of the profile's one-way time: between two ranks it is that of the
/// direction, see [`Program::way`].
const fn share_of(program: &Program) -> &'static str {
    if program.ranks == 2 { "its share of a round trip" } else { "half a round trip" }
}

/// Words for a message after a common start that does not take half a round trip.
fn state(evidence: &Evidence<'_>) -> String {
    /// Least relative difference of two directions that differ.
    const CLEAR: f64 = 0.1;
    let Evidence { program, cost, message, back, .. } = *evidence;
    let (share, one_way) = (share_of(program), nanos(cost.one_way.value));
    let (quick, slow) = (message.min(back).seconds(), message.max(back).seconds());
    if slow > quick * (1.0 + CLEAR) {
        return format!(
            "the two ways differ: a message from rank 0 takes {}, one to it {}, {share} {one_way}",
            nanos(message),
            nanos(back)
        );
    }
    format!(
        "a message after a common start takes {}, {share} {one_way}: caches and predictors are in \
         another state",
        nanos(message)
    )
}

/// Words for an operation slower than predicted that no measured part explains.
fn slower(evidence: &Evidence<'_>) -> String {
    let Evidence { program, cost, spread, system, .. } = *evidence;
    if evidence.page_faults >= FAULTS {
        return format!(
            "{:.0} page faults in each call: the library works in memory that it allocates anew",
            evidence.page_faults
        );
    }
    let limit = system.eager_limit.filter(|limit| cost.size > *limit);
    if let Some(limit) = limit {
        return format!("above the eager limit of {limit} B the sender waits for its receiver");
    }
    if spread > NOISY {
        return format!("noise: one repetition in ten takes {spread:.1} times the median or more");
    }
    if program.busiest() >= MANY {
        return format!(
            "a rank with {} messages in a row: the gap of a burst is not that between ranks",
            program.busiest()
        );
    }
    "none of the parts that were measured explains it: the call's own work".to_owned()
}

/// Words for an operation quicker than predicted that no measured part explains.
fn quicker(evidence: &Evidence<'_>) -> String {
    let Evidence { program, cost, message, back, .. } = *evidence;
    let (one_way, measured) = (cost.one_way.value, message.min(back));
    if measured < one_way {
        return format!(
            "messages after a common start take {}, {} {}",
            nanos(measured),
            share_of(program),
            nanos(one_way)
        );
    }
    if program.busiest() >= MANY {
        return format!(
            "a rank with {} messages in a row overlaps them more than a burst between two ranks does",
            program.busiest()
        );
    }
    "quicker than the messages that it is made of: the library overlaps them, or cuts them into pieces"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Shape, Tuned};

    fn about(value: u64, half: u64) -> Estimate<Picos> {
        let (low, high) = (Picos(value - half), Picos(value + half));
        Estimate { value: Picos(value), low, high, ..Estimate::default() }
    }

    const PROGRAM: Program = Program {
        shape: Shape::Tuned(Tuned::AllreduceDoubling),
        ranks: 2,
        size: 8,
        local: Picos::ZERO,
        combine: Picos::ZERO,
        post: Picos::ZERO,
    };

    const NS: u64 = 1_000;

    fn found(measured: u64, change: impl Fn(&mut Evidence<'_>)) -> Option<String> {
        let (measured, predicted) = (about(measured * NS, 5 * NS), about(400 * NS, 10 * NS));
        let one_way = about(400 * NS, 10 * NS);
        let cost =
            MessageCost { size: 8, one_way, overheads: about(300 * NS, 10), gap: about(10, 1) };
        let mut evidence = Evidence {
            measured: &measured,
            predicted: &predicted,
            program: &PROGRAM,
            cost: &cost,
            message: Picos(400 * NS),
            back: Picos(400 * NS),
            exchange: Picos(400 * NS),
            post: Picos::ZERO,
            local: Picos(NS),
            page_faults: 0.1,
            skew: Picos(NS),
            spread: 1.1,
            system: System { is_shared: false, eager_limit: Some(4_096), interrupted: false },
        };
        change(&mut evidence);
        cause(&evidence)
    }

    #[test]
    fn what_agrees_needs_no_cause() {
        assert_eq!(found(413, |_| {}), None);
    }

    #[test]
    fn the_part_that_is_as_long_as_the_difference_is_named() {
        let exchange = found(500, |e| e.exchange = Picos(490 * NS)).unwrap();
        assert!(
            exchange
                .starts_with("MPI_Sendrecv takes 490 ns, posting a receive and a message 400 ns"),
            "{exchange}"
        );
        let state = found(500, |e| {
            (e.message, e.back) = (Picos(510 * NS), Picos(500 * NS));
            e.exchange = Picos(510 * NS);
        });
        let state = state.unwrap();
        assert!(state.contains("after a common start takes 510 ns, its share of a round trip 400"));
        let ways = found(500, |e| e.back = Picos(510 * NS)).unwrap();
        assert!(ways.starts_with("the two ways differ: a message from rank 0 takes 400 ns"));
        let local = found(500, |e| e.local = Picos(90 * NS)).unwrap();
        assert!(local.starts_with("what the call does on one rank alone takes 90 ns"), "{local}");
        let skew = found(450, |e| e.skew = Picos(40 * NS)).unwrap();
        assert_eq!(skew, "starts are 40 ns apart");
    }

    #[test]
    fn what_was_not_measured_is_named_where_nothing_else_explains() {
        let shared = found(900, |e| e.system.is_shared = true).unwrap();
        assert!(shared.contains("share processors"));
        let long = found(900, |e| e.system.eager_limit = Some(4)).unwrap();
        assert!(long.contains("eager limit of 4 B"), "{long}");
        assert!(found(900, |e| e.spread = 2.0).unwrap().starts_with("noise"));
        assert!(found(900, |_| {}).unwrap().contains("own work"));
        // A part of the opposite sign explains nothing.
        let other = found(300, |e| e.exchange = Picos(490 * NS)).unwrap();
        assert!(other.starts_with("quicker than"), "{other}");
    }

    #[test]
    fn what_makes_slower_explains_nothing_that_is_quicker() {
        for (measured, slower) in [(900, true), (100, false)] {
            let faults = found(measured, |e| e.page_faults = 17.2).unwrap();
            assert_eq!(faults.starts_with("17 page faults"), slower, "{faults}");
            let long = found(measured, |e| e.system.eager_limit = Some(4)).unwrap();
            assert_eq!(long.contains("waits for its receiver"), slower, "{long}");
            let noisy = found(measured, |e| e.spread = 2.0).unwrap();
            assert_eq!(noisy.contains("noise"), slower, "{noisy}");
            assert_eq!(noisy.contains("quicker"), !slower, "{noisy}");
        }
        let short = found(100, |e| (e.message, e.back) = (Picos(300 * NS), Picos(310 * NS)));
        let short = short.unwrap();
        assert!(short.starts_with("messages after a common start take 300 ns"), "{short}");
    }
}
