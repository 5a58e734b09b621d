//! Reference implementation of message arrivals over shared links, by the definition of max-min
//! fairness and slow: at every change all rates are computed anew, each time fixing the link with
//! the least share among those that have flows without a rate.
//!
//! Compared with [`Flows`](super::Flows) by the tests of this crate and by the fuzzer of
//! `loggap-tests`, which compiles this file, too. It uses nothing of them except [`Fabric`].

use std::vec;
use std::vec::Vec;

use super::Fabric;

/// Message between hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Time at which it leaves, ps.
    pub(super) now: u64,
    pub(super) source: u32,
    pub(super) target: u32,
    /// Volume, in ps of a host's link.
    pub(super) volume: u64,
    /// Time from the end of its flow to its arrival, ps.
    pub(super) delay: u64,
}

/// Interval in which a message arrives, ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) earliest: f64,
    pub(super) latest: f64,
}

impl Arrival {
    /// True if the interval contains a time.
    pub(super) fn holds(&self, time: u64) -> bool {
        (self.earliest..=self.latest).contains(&(time as f64))
    }
}

/// Arrivals of the messages, which are in the order of time.
pub(super) fn arrivals<F: Fabric>(fabric: &F, seed: u64, messages: &[Message]) -> Vec<Arrival> {
    let routes = Routes::new(fabric, seed, messages);
    let ended = ends(&routes, messages);
    // Each change of rate adds a rounding error of up to half a picosecond.
    let off = |time: f64| time * 1e-11 + messages.len() as f64 * 4.0;
    let mut through = ended.clone();
    let mut arrivals = Vec::<Arrival>::new();
    for (at, message) in messages.iter().enumerate() {
        let is_before = |other: &usize| {
            messages[*other].source == message.source && messages[*other].target == message.target
        };
        // Messages of a pair wait for each other, except on the same host.
        let may_wait = message.source != message.target;
        let before: Vec<usize> = (0..at).filter(is_before).filter(|_| may_wait).collect();
        through[at] = before.iter().map(|&other| through[other]).fold(ended[at], f64::max);
        let (own, time) = (ended[at], through[at]);
        let alone = time + message.delay as f64;
        let mut arrival = Arrival { earliest: alone, latest: alone };
        for other in before {
            // A message that had to wait does not overtake the one that it waited for, which
            // completes at the same time. If both may have ended together, either order is
            // possible.
            let together = 2.0 * off(time);
            if through[other] >= time && own < time - together {
                arrival.earliest = arrival.earliest.max(arrivals[other].earliest);
            }
            if through[other] >= time - together {
                arrival.latest = arrival.latest.max(arrivals[other].latest);
            }
        }
        arrivals.push(arrival);
    }
    for (arrival, through) in arrivals.iter_mut().zip(through) {
        arrival.earliest -= off(through);
        arrival.latest += off(through);
    }
    arrivals
}

/// Routes of messages, over links numbered in the order of their first use.
struct Routes {
    capacities: Vec<f64>,
    of_messages: Vec<Vec<usize>>,
}

impl Routes {
    fn new<F: Fabric>(fabric: &F, seed: u64, messages: &[Message]) -> Self {
        let mut links = Vec::new();
        let mut of_messages = Vec::new();
        for &Message { source, target, .. } in messages {
            let mut route = Vec::new();
            fabric.route(source, target, seed, |link| {
                let known = links.iter().position(|&other| other == link);
                route.push(known.unwrap_or(links.len()));
                if known.is_none() {
                    links.push(link);
                }
            });
            of_messages.push(route);
        }
        Self { capacities: links.iter().map(|&link| fabric.capacity(link)).collect(), of_messages }
    }

    /// Rates of the `active` flows.
    fn rates(&self, active: &[usize]) -> Vec<f64> {
        let mut rates: Vec<Option<f64>> = vec![None; active.len()];
        loop {
            let mut left = self.capacities.clone();
            let mut open = vec![0u32; left.len()];
            for (rate, &flow) in rates.iter().zip(active) {
                for &link in &self.of_messages[flow] {
                    left[link] -= rate.unwrap_or_default();
                    open[link] += u32::from(rate.is_none());
                }
            }
            let shares = (0..left.len()).filter(|&link| open[link] > 0);
            let least = shares.map(|link| (left[link] / f64::from(open[link]), link));
            let Some((share, tightest)) = least.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            for (rate, &flow) in rates.iter_mut().zip(active) {
                let limited = || self.of_messages[flow].contains(&tightest);
                if rate.is_none() && (share >= 1.0 || limited()) {
                    *rate = Some(share.min(1.0));
                }
            }
        }
        rates.into_iter().map(Option::unwrap).collect()
    }
}

/// Time at which the last byte of each message has left its links.
fn ends(routes: &Routes, messages: &[Message]) -> Vec<f64> {
    // Messages that share no link.
    let is_alone = |at: usize| messages[at].volume == 0 || routes.of_messages[at].is_empty();
    let mut ended: Vec<f64> =
        messages.iter().map(|message| message.now as f64 + message.volume as f64).collect();
    let mut left: Vec<f64> = messages.iter().map(|message| message.volume as f64).collect();
    let (mut now, mut begun, mut active) = (0.0, 0, Vec::<usize>::new());
    loop {
        while begun < messages.len() && messages[begun].now as f64 <= now {
            active.extend(Some(begun).filter(|&at| !is_alone(at)));
            begun += 1;
        }
        let rates = routes.rates(&active);
        let end = |(&flow, rate): (&usize, &f64)| now + left[flow] / rate;
        let ends: Vec<f64> = active.iter().zip(&rates).map(end).collect();
        let next = messages.get(begun).map_or(f64::INFINITY, |message| message.now as f64);
        let until = ends.iter().copied().fold(next, f64::min);
        if until == f64::INFINITY {
            return ended;
        }
        let mut end = ends.iter().zip(&rates);
        active.retain(|&flow| {
            let (&end, rate) = end.next().unwrap();
            left[flow] -= rate * (until - now);
            // A remainder due to rounding counts as ended.
            let has_ended = end <= until * (1.0 + 1e-14) + 1e-3;
            if has_ended {
                ended[flow] = until;
            }
            !has_ended
        });
        now = until;
    }
}
