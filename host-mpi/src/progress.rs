//! Does MPI move a message while the program computes?
//!
//! Rank 0 posts a receive and asks rank 1 for the message. Both wait for it at once; or one of them
//! computes first, for longer than the message takes.

use loggap::machine::clock::HostClock;
use loggap_core::measure::Clock as _;
use loggap_core::sim::{Receive, Rendezvous, Settings};
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::Picos;
use mpi::point_to_point::{Destination as _, Source as _};
use mpi::request;
use serde::{Deserialize, Serialize};

use crate::job::{CONTROLLER, Job};
use crate::waiting::is_done;

/// Messages of a size: medians, with 95% intervals.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Progress {
    /// Size of the message.
    pub size_bytes: u32,
    /// Time from the request to the arrival, if neither rank computes.
    pub time_s: f64,
    /// Lower end of its interval.
    pub time_s_lo: f64,
    /// Upper end of its interval.
    pub time_s_hi: f64,
    /// Time that the receiver still waits after it has computed.
    pub wait_s: f64,
    /// Lower end of its interval.
    pub wait_s_lo: f64,
    /// Upper end of its interval.
    pub wait_s_hi: f64,
    /// Time from the request to the arrival, if the sender computes.
    pub beside_sender_s: f64,
    /// Lower end of its interval.
    pub beside_sender_s_lo: f64,
    /// Upper end of its interval.
    pub beside_sender_s_hi: f64,
    /// Time that a rank computes.
    pub compute_s: f64,
}

impl Progress {
    /// True if the message arrived while the receiver computed: it waits for less than half of the
    /// message's time. `None` if the intervals do not tell.
    #[must_use]
    pub fn moves_beside_receiver(&self) -> Option<bool> {
        let half = [self.time_s_lo, self.time_s_hi].map(|time| time / 2.0);
        is_below([self.wait_s_lo, self.wait_s_hi], half)
    }

    /// True if the message left while the sender computed: it arrived before the end of that. `None`
    /// if the interval does not tell.
    #[must_use]
    pub fn moves_beside_sender(&self) -> Option<bool> {
        is_below([self.beside_sender_s_lo, self.beside_sender_s_hi], [self.compute_s; 2])
    }
}

/// Order of two intervals; `None` if they overlap.
fn is_below([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Option<bool> {
    (high < from || low > to).then_some(high < from)
}

/// Rules of a simulation of a library that makes progress as measured, as far as that tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// Rule of receives, by the longest message up to S; or why it is not known.
    pub receive: Result<Receive, &'static str>,
    /// Rule of sends above S, by all of them; or why it is not known.
    pub rendezvous: Result<Rendezvous, &'static str>,
    /// S, as [`eager_limit`] has it, bytes.
    pub eager_limit: Option<u32>,
}

impl Rules {
    /// Rules by `rows`, in order of their sizes.
    #[must_use]
    pub fn of(rows: &[Progress], eager_limit: Option<u32>) -> Self {
        let limit = eager_limit.unwrap_or(LONGEST);
        let (eager, long): (Vec<&Progress>, Vec<_>) =
            rows.iter().partition(|row| row.size_bytes <= limit);
        let receive = match eager.last().map(|row| row.moves_beside_receiver()) {
            None => Err("no message up to S was measured"),
            Some(None) => Err("unclear whether a message moves beside a computing receiver"),
            Some(Some(true)) => Ok(Receive::Overlap),
            Some(Some(false)) => Ok(Receive::Hold),
        };
        let moves: Vec<_> = long.into_iter().map(Progress::moves_beside_sender).collect();
        let rendezvous = if moves.is_empty() {
            Err("no message above S was measured")
        } else if moves.contains(&Some(false)) {
            Ok(Rendezvous::Handshake)
        } else if moves.contains(&None) {
            Err("unclear whether a message above S moves beside a computing sender")
        } else {
            Ok(Rendezvous::Instant)
        };
        Self { receive, rendezvous, eager_limit }
    }

    /// Modes of a simulation: what is not known is as 'loggap simulate' has it by default.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let (receive, rendezvous) = (self.receive, self.rendezvous);
        Settings {
            receive: receive.unwrap_or_default(),
            rendezvous: rendezvous.unwrap_or_default(),
        }
    }

    /// S in bytes, or the size up to which it was looked for.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.eager_limit.unwrap_or(LONGEST)
    }

    /// Options of 'loggap simulate' for what is known.
    #[must_use]
    pub fn known(&self) -> Vec<String> {
        let all = self.options().into_iter();
        all.filter_map(|(option, value)| Some(format!("{option} {}", value.ok()?))).collect()
    }

    /// Options of 'loggap simulate' for what is not known, each with the reason.
    #[must_use]
    pub fn unknown(&self) -> Vec<String> {
        let all = self.options().into_iter();
        all.filter_map(|(option, value)| Some(format!("{option}: {}", value.err()?))).collect()
    }

    fn options(&self) -> [(&'static str, Result<String, &'static str>); 3] {
        let [receive, rendezvous] = names(self.settings()).map(str::to_owned);
        let limit = self.eager_limit.map(|limit| limit.to_string());
        [
            ("--receive", self.receive.and(Ok(receive))),
            ("--rendezvous", self.rendezvous.and(Ok(rendezvous))),
            ("-S", limit.ok_or("no send of up to 1 MiB waits for its receive")),
        ]
    }
}

/// Names of rules of receives and rendezvous.
#[must_use]
pub const fn names(settings: Settings) -> [&'static str; 2] {
    let receive = match settings.receive {
        Receive::Hold => "hold",
        Receive::Overlap => "overlap",
    };
    let rendezvous = match settings.rendezvous {
        Rendezvous::Instant => "instant",
        Rendezvous::Handshake => "handshake",
    };
    [receive, rendezvous]
}

/// Who computes before it waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Computing {
    Nobody,
    Receiver,
    Sender,
}

/// Measures messages of `sizes` from rank 1 to rank 0, which has the results. All ranks call this
/// together.
#[must_use]
pub fn measure(job: &Job, sizes: &[u32]) -> Vec<Progress> {
    sizes.iter().map(|size| of_size(job, *size)).collect()
}

fn of_size(job: &Job, size_bytes: u32) -> Progress {
    /// Least time to compute: processors and their caches settle.
    const LEAST: Picos = Picos(20_000_000);
    /// Time of a series on a slow link, and fewest messages there: those with a 95% interval.
    const SERIES: Picos = Picos(500_000_000_000);
    const FEWEST: u64 = 6;
    let alone = |_| round(job, size_bytes, Computing::Nobody, Picos::ZERO).0;
    let mut times: Vec<_> = (0..FEWEST).map(alone).collect();
    let time = Sorted::new(&mut times).median().unwrap_or_default();
    let rounds = (SERIES.0 / time.0.max(1)).clamp(FEWEST, ROUNDS);
    let mut shared = [rounds, time.0.saturating_mul(2).saturating_add(LEAST.0)];
    job.share(&mut shared);
    let [rounds, compute] = shared;
    let compute = Picos(compute);
    // In turn, so that a machine that changes meanwhile changes all alike.
    let mut series = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let kinds = [Computing::Nobody, Computing::Receiver, Computing::Sender];
        for (computing, times) in kinds.into_iter().zip(&mut series) {
            let (time, wait) = round(job, size_bytes, computing, compute);
            times.push(if computing == Computing::Receiver { wait } else { time });
        }
    }
    let [
        [time_s, time_s_lo, time_s_hi],
        [wait_s, wait_s_lo, wait_s_hi],
        [beside_sender_s, beside_sender_s_lo, beside_sender_s_hi],
    ] = series.map(|mut times| {
        let interval = Sorted::new(&mut times).median_interval(Confidence::P95);
        let ends = interval.map(|found| [found.median, found.low, found.high]);
        ends.unwrap_or_default().map(Picos::seconds)
    });
    Progress {
        size_bytes,
        time_s,
        time_s_lo,
        time_s_hi,
        wait_s,
        wait_s_lo,
        wait_s_hi,
        beside_sender_s,
        beside_sender_s_lo,
        beside_sender_s_hi,
        compute_s: compute.seconds(),
    }
}

/// Messages of a series.
const ROUNDS: u64 = 501;

/// Size up to which the eager limit is looked for, bytes.
pub const LONGEST: u32 = 1 << 20;

/// Longest message from rank 0 to rank 1 whose send completes before its receive is posted, in
/// bytes: MPI's eager limit, besides its header. `None` if one of [`LONGEST`] does. All ranks
/// call this together.
#[must_use]
pub fn eager_limit(job: &Job) -> Option<u32> {
    let mut longest = 0;
    let mut shortest = 1;
    while is_eager(job, shortest) {
        if shortest == LONGEST {
            return None;
        }
        longest = shortest;
        shortest *= 2;
    }
    while shortest - longest > 1 {
        let middle = longest + (shortest - longest) / 2;
        if is_eager(job, middle) { longest = middle } else { shortest = middle }
    }
    Some(longest)
}

/// True if a send completes before its receive is posted. A send that waits for its receive never
/// does; one that does not may be held up by the system, and is tried again.
fn is_eager(job: &Job, size: u32) -> bool {
    const TRIES: u32 = 3;
    const LEAST: Picos = Picos(10_000_000_000);
    let (time, _) = round(job, size, Computing::Nobody, Picos::ZERO);
    let mut held = [time.0.saturating_mul(4).max(LEAST.0)];
    job.share(&mut held);
    (0..TRIES).any(|_| {
        let mut eager = [u64::from(completes_within(job, size, Picos(held[0])))];
        job.share(&mut eager);
        eager[0] == 1
    })
}

/// True at rank 0 if a send completes within half of the time `held` after which its receive is
/// posted.
fn completes_within(job: &Job, size: u32, held: Picos) -> bool {
    let clock = HostClock::monotonic_raw();
    let since = |begin: u64| clock.duration(clock.now().saturating_sub(begin));
    let (mut buffer, mut asked) = (vec![1u8; size as usize], [0u8]);
    match job.rank() {
        CONTROLLER => request::scope(|scope| {
            let peer = job.peer(1);
            peer.send(&asked);
            let begin = clock.now();
            let mut pending = Some(peer.immediate_send(scope, &buffer[..]));
            job.waiting().poll(|| is_done(&mut pending));
            let time = since(begin);
            peer.receive_into(&mut asked[..]);
            time < Picos(held.0 / 2)
        }),
        1 => {
            let peer = job.peer(CONTROLLER);
            peer.receive_into(&mut asked[..]);
            let begin = clock.now();
            // A probe lets MPI take in what has come, and posts nothing.
            while since(begin) < held {
                let _found = peer.immediate_probe();
            }
            peer.receive_into(&mut buffer[..]);
            peer.send(&asked);
            false
        }
        _ => false,
    }
}

/// One message: at rank 0 the time from the request to the arrival, and the part in which it waited.
fn round(job: &Job, size: u32, computing: Computing, compute: Picos) -> (Picos, Picos) {
    let clock = HostClock::monotonic_raw();
    let since = |begin: u64| clock.duration(clock.now().saturating_sub(begin));
    let computes = |who| {
        let begin = clock.now();
        while computing == who && since(begin) < compute {}
    };
    let (mut buffer, mut asked) = (vec![1u8; size as usize], [0u8]);
    match job.rank() {
        CONTROLLER => request::scope(|scope| {
            let peer = job.peer(1);
            let mut pending = Some(peer.immediate_receive_into(scope, &mut buffer[..]));
            let begin = clock.now();
            peer.send(&[0u8]);
            computes(Computing::Receiver);
            let waits = clock.now();
            job.waiting().poll(|| is_done(&mut pending));
            let times = (since(begin), since(waits));
            // A sender that still computes would answer the next request late.
            let mut pending = Some(peer.immediate_receive_into(scope, &mut asked[..]));
            job.waiting().poll(|| is_done(&mut pending));
            times
        }),
        1 => request::scope(|scope| {
            let peer = job.peer(CONTROLLER);
            let mut pending = Some(peer.immediate_receive_into(scope, &mut asked[..]));
            job.waiting().poll(|| is_done(&mut pending));
            let mut pending = Some(peer.immediate_send(scope, &buffer[..]));
            computes(Computing::Sender);
            job.waiting().poll(|| is_done(&mut pending));
            peer.send(&[0u8]);
            (Picos::ZERO, Picos::ZERO)
        }),
        _ => (Picos::ZERO, Picos::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that take 1 s; a receiver waits, or a message from a computing sender takes, as long as
    /// these intervals say. A rank computes for 2 s.
    fn row(size_bytes: u32, wait: [f64; 2], beside_sender: [f64; 2]) -> Progress {
        Progress {
            size_bytes,
            time_s_lo: 0.9,
            time_s_hi: 1.1,
            wait_s_lo: wait[0],
            wait_s_hi: wait[1],
            beside_sender_s_lo: beside_sender[0],
            beside_sender_s_hi: beside_sender[1],
            compute_s: 2.0,
            ..Progress::default()
        }
    }

    const MOVES: [f64; 2] = [0.1, 0.4];
    const WAITS: [f64; 2] = [0.6, 0.9];
    const LEAVES: [f64; 2] = [1.0, 1.9];
    const STAYS: [f64; 2] = [2.1, 2.6];

    #[test]
    fn rules_follow_the_longest_eager_message_and_all_longer_ones() {
        let rows = [row(8, WAITS, STAYS), row(4096, MOVES, STAYS), row(65_536, WAITS, LEAVES)];
        let rules = Rules::of(&rows, Some(4096));
        assert_eq!(
            (rules.receive, rules.rendezvous),
            (Ok(Receive::Overlap), Ok(Rendezvous::Instant))
        );
        let options = "--receive overlap --rendezvous instant -S 4096";
        assert_eq!((rules.known().join(" "), rules.unknown().len()), (options.to_owned(), 0));
        let stops = [rows[0], rows[1], row(65_536, WAITS, STAYS), row(131_072, WAITS, [1.9, 2.1])];
        assert_eq!(Rules::of(&stops, Some(4096)).rendezvous, Ok(Rendezvous::Handshake));
        assert_eq!(Rules::of(&stops, Some(65_536)).receive, Ok(Receive::Hold));
    }

    #[test]
    fn what_no_row_tells_is_no_rule() {
        // The threshold of a receiver is between 0.45 and 0.55 s.
        for wait in [[0.4, 0.5], [0.5, 0.6], [0.46, 0.54], [0.1, 0.9]] {
            assert_eq!(row(8, wait, LEAVES).moves_beside_receiver(), None, "{wait:?}");
        }
        let unclear =
            [row(8, [0.4, 0.6], LEAVES), row(64, WAITS, [1.9, 2.1]), row(128, WAITS, LEAVES)];
        let rules = Rules::of(&unclear, Some(8));
        assert_eq!(rules.settings(), Settings::default());
        assert_eq!((rules.known(), rules.unknown().len()), (vec!["-S 8".to_owned()], 2));
        let unknown = rules.unknown();
        assert!(unknown.iter().all(|why| why.contains(": unclear whether")), "{unknown:?}");
        let rules = Rules::of(&[], None);
        assert_eq!((rules.known().len(), rules.limit()), (0, LONGEST));
        let told = [
            "--receive: no message up to S was measured",
            "--rendezvous: no message above S was measured",
            "-S: no send of up to 1 MiB waits for its receive",
        ];
        assert_eq!(rules.unknown(), told);
    }
}
