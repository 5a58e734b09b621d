//! Does MPI move a message while the program computes?
//!
//! Rank 0 posts a receive and asks rank 1 for the message. Both wait for it at once; or one of them
//! computes first, for longer than the message takes.

use loggap::machine::clock::HostClock;
use loggap_core::measure::Clock as _;
use loggap_core::sim::{Receive, Rendezvous, Settings};
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;
use mpi::point_to_point::{Destination as _, Source as _};
use mpi::request;
use serde::{Deserialize, Serialize};

use crate::job::{CONTROLLER, Job};
use crate::waiting::is_done;

/// Messages of a size.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Progress {
    /// Size of the message.
    pub size_bytes: u32,
    /// Time from the request to the arrival, if neither rank computes.
    pub time_s: f64,
    /// Time that the receiver still waits after it has computed.
    pub wait_s: f64,
    /// Time from the request to the arrival, if the sender computes.
    pub beside_sender_s: f64,
    /// Time that a rank computes.
    pub compute_s: f64,
}

impl Progress {
    /// True if the message arrived while the receiver computed.
    #[must_use]
    pub fn moves_beside_receiver(&self) -> bool {
        self.wait_s < self.time_s / 2.0
    }

    /// True if the message left while the sender computed.
    #[must_use]
    pub fn moves_beside_sender(&self) -> bool {
        self.beside_sender_s < self.compute_s
    }

    /// Rules of a simulation of a library that makes progress as `rows` say: of receives by the
    /// longest message up to the eager limit, of sends by all above it.
    #[must_use]
    pub fn settings(rows: &[Self], eager_limit: u64) -> Settings {
        let (eager, long): (Vec<&Self>, Vec<_>) =
            rows.iter().partition(|row| u64::from(row.size_bytes) <= eager_limit);
        let overlaps = eager.last().is_some_and(|row| row.moves_beside_receiver());
        Settings {
            receive: if overlaps { Receive::Overlap } else { Receive::Hold },
            rendezvous: match long.into_iter().all(Self::moves_beside_sender) {
                true => Rendezvous::Instant,
                false => Rendezvous::Handshake,
            },
        }
    }
}

/// Options of 'loggap simulate' with these rules, and with S.
#[must_use]
pub fn options(settings: Settings, eager_limit: Option<u32>) -> String {
    let [receive, rendezvous] = names(settings);
    let limit = eager_limit.map_or(u64::MAX, u64::from);
    format!("--receive {receive} --rendezvous {rendezvous} -S {limit}")
}

/// Names of these rules of receives and rendezvous.
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
    /// Time of a series on a slow link, and fewest messages there.
    const SERIES: Picos = Picos(500_000_000_000);
    const FEWEST: u64 = 3;
    let (first, _) = round(job, size_bytes, Computing::Nobody, Picos::ZERO);
    let mut rounds = [(SERIES.0 / first.0.max(1)).clamp(FEWEST, ROUNDS)];
    job.share(&mut rounds);
    let series = |computing, compute| {
        let rounds = (0..rounds[0]).map(|_| round(job, size_bytes, computing, compute));
        let (mut times, mut waits): (Vec<_>, Vec<_>) = rounds.unzip();
        [&mut times, &mut waits].map(|all| Sorted::new(all).median().unwrap_or_default())
    };
    let [time, _] = series(Computing::Nobody, Picos::ZERO);
    let mut compute = [time.0.saturating_mul(2).saturating_add(LEAST.0)];
    job.share(&mut compute);
    let compute = Picos(compute[0]);
    let [_, wait] = series(Computing::Receiver, compute);
    let [beside_sender, _] = series(Computing::Sender, compute);
    let [time_s, wait_s, beside_sender_s, compute_s] =
        [time, wait, beside_sender, compute].map(Picos::seconds);
    Progress { size_bytes, time_s, wait_s, beside_sender_s, compute_s }
}

/// Messages of a series.
const ROUNDS: u64 = 21;

/// Longest message from rank 0 to rank 1 whose send completes before its receive is posted, in
/// bytes: MPI's eager limit, besides its header. `None` if one of 1 MiB does. All ranks call this
/// together.
#[must_use]
pub fn eager_limit(job: &Job) -> Option<u32> {
    const MOST: u32 = 1 << 20;
    let mut longest = 0;
    let mut shortest = 1;
    while is_eager(job, shortest) {
        if shortest == MOST {
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
            (since(begin), since(waits))
        }),
        1 => request::scope(|scope| {
            let peer = job.peer(CONTROLLER);
            let mut pending = Some(peer.immediate_receive_into(scope, &mut asked[..]));
            job.waiting().poll(|| is_done(&mut pending));
            let mut pending = Some(peer.immediate_send(scope, &buffer[..]));
            computes(Computing::Sender);
            job.waiting().poll(|| is_done(&mut pending));
            (Picos::ZERO, Picos::ZERO)
        }),
        _ => (Picos::ZERO, Picos::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_follow_the_longest_eager_message_and_all_longer_ones() {
        let row = |size_bytes, wait_s, beside_sender_s| Progress {
            size_bytes,
            time_s: 1.0,
            wait_s,
            beside_sender_s,
            compute_s: 2.0,
        };
        let rows = [row(8, 0.9, 1.0), row(4096, 0.1, 1.0), row(65_536, 0.9, 1.1)];
        let overlap = Settings { receive: Receive::Overlap, ..Settings::default() };
        assert_eq!(Progress::settings(&rows, 4096), overlap);
        assert_eq!(Progress::settings(&rows, 65_536), Settings::default());
        let stops = [rows[0], rows[1], row(65_536, 0.9, 2.5)];
        assert_eq!(Progress::settings(&stops, 4096).rendezvous, Rendezvous::Handshake);
        assert_eq!(Progress::settings(&stops, 65_536).rendezvous, Rendezvous::Instant);
    }
}
