//! What a session costs beside the rounds that it times.
//!
//! Two threads on two cores run a session over shared memory and over a Unix
//! socket: batches of sixteen mixed rounds, as a planner asks for them.
//! Printed is how much of the wall time lay inside of rounds, how many
//! messages a round took with all control frames counted, and whether the
//! first round of a batch, which follows control frames, measures the same as
//! the others: the ratio of the medians with its interval, and beside it the
//! same ratio between two later positions, which tells what chance does.
//!
//! `cargo bench -p loggap --bench session`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints its table and fails where it stands"
)]

use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::thread;

use loggap::link::{LinkError, LinkSettings, ShmLink, UnixLink};
use loggap::machine::clock::HostClock;
use loggap::machine::placement;
use loggap_core::measure::{
    Buffers, Clock, Experiment, Initiator, Link, Outcome, Quantity, SessionOptions, serve,
};
use loggap_core::stats::{Confidence, MedianInterval, Sorted};
use loggap_core::units::Picos;
use loggap_core::wire::{Bounds, ROUNDS_PER_BATCH};

const BATCHES: usize = 4_000;

fn main() {
    println!(
        "# {BATCHES} batches of {ROUNDS_PER_BATCH} rounds: 1, 10 back to back, 10 paced, receive"
    );
    println!(
        "#link size[B] in_rounds[%] messages/round rtt[ns] g[ns] first/others low high \
         middle/others low high"
    );
    let cpus = placement::allowed();
    cpus.first().copied().map(placement::pin).transpose().unwrap();
    let there = cpus.last().copied();
    for size in [1, 64, 1_024, 16_384] {
        report("shm", size, shared_memory(), there);
        report("unix", size, UnixLink::pair(LinkSettings::default()).unwrap(), there);
    }
}

fn shared_memory() -> (ShmLink, ShmLink) {
    let (one, other) = UnixStream::pair().unwrap();
    let settings = LinkSettings::default();
    let ours = ShmLink::create(one, "there".into(), settings).unwrap();
    (ours, ShmLink::join(other, "here".into(), settings).unwrap())
}

fn report<L>(name: &str, size: u32, (ours, mut theirs): (L, L), there: Option<usize>)
where
    L: Link<Error = LinkError> + Send + 'static,
{
    let clock = HostClock::calibrated();
    let responder = thread::spawn(move || {
        there.map(placement::pin).transpose().unwrap();
        serve(&clock, &mut theirs, &mut vec![1; 1 << 16], Bounds::default()).unwrap()
    });
    let (mut outgoing, mut incoming) = (vec![1; 1 << 16], vec![1; 1 << 16]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions::default();
    let on_queue = |_| ControlFlow::Continue(());
    let mut session = Initiator::connect(&clock, ours, buffers, options, on_queue).unwrap();
    let mut by_position: [Vec<Picos>; ROUNDS_PER_BATCH] = Default::default();
    let (mut trips, mut bursts) = (vec![], vec![]);
    let before = *session.traffic();
    let began = clock.now();
    for batch in 0..BATCHES {
        let experiments = mixed(size, batch, &trips);
        let mut position = 0;
        session
            .run(&experiments, |outcome| {
                let Outcome::Sample(sample) = outcome else { return };
                match sample.experiment.quantity {
                    Quantity::RoundTrip => {
                        by_position.get_mut(position).unwrap().push(sample.elapsed);
                        trips.push(sample.elapsed);
                    }
                    Quantity::Gap => bursts.push(sample.elapsed),
                    _ => {}
                }
                position += 1;
            })
            .unwrap();
    }
    let wall = clock.duration(clock.now() - began);
    let after = *session.traffic();
    session.close().unwrap();
    responder.join().unwrap();

    let share = (after.in_rounds.seconds() - before.in_rounds.seconds()) / wall.seconds();
    let rounds = after.rounds - before.rounds;
    let messages = (after.messages() - before.messages()) as f64 / rounds as f64;
    let (trip, burst) = (interval(&mut trips).median, interval(&mut bursts).median);
    let gap = (burst.seconds() - trip.seconds()) / 9.0;
    let [mut first, _, mut second, .., mut middle, _, _] = by_position;
    println!(
        "{name:>5} {size:>7} {:>6.1} {messages:>6.2} {:>8.0} {:>8.1} {} {}",
        share * 100.0,
        trip.seconds() * 1e9,
        gap * 1e9,
        ratio(interval(&mut first), interval(&mut second)),
        ratio(interval(&mut middle), interval(&mut second)),
    );
}

/// Sixteen rounds; which quantity stands where rotates from batch to batch.
fn mixed(size: u32, batch: usize, trips: &[Picos]) -> Vec<Experiment> {
    let delay = trips.last().map_or(Picos(10_000_000), |trip| Picos(trip.0 * 2));
    (0..ROUNDS_PER_BATCH)
        .map(|position| {
            let (quantity, messages, delay) = match (position + batch) % 4 {
                0 => (Quantity::RoundTrip, 1, Picos::ZERO),
                1 => (Quantity::Gap, 10, Picos::ZERO),
                2 => (Quantity::Paced, 10, delay),
                _ => (Quantity::Receive, 1, delay),
            };
            Experiment { quantity, messages, delay, size }
        })
        .collect()
}

fn interval(times: &mut [Picos]) -> MedianInterval<Picos> {
    Sorted::new(times).median_interval(Confidence::P95).unwrap()
}

fn ratio(one: MedianInterval<Picos>, other: MedianInterval<Picos>) -> String {
    let over = |one: Picos, other: Picos| one.seconds() / other.seconds();
    format!(
        "{:.3} {:.3} {:.3}",
        over(one.median, other.median),
        over(one.low, other.high),
        over(one.high, other.low)
    )
}
