//! What the core's timed kernel adds to a send loop without it.
//!
//! Both loops send the same bursts over the same link and receive the same
//! reply, in turn, and both are timed from their own first reading of the
//! clock to their last. The reply is there before the burst begins, so that
//! nothing but the loops' own work is between the readings; the other end is
//! emptied outside of them. Printed is the ratio of the medians with its
//! interval; the goal is below 1.02.
//!
//! `cargo bench -p loggap --bench kernel_overhead`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints its table and fails where it stands"
)]

use std::hint::black_box;
use std::os::unix::net::UnixStream;

use loggap::link::{LinkSettings, ShmLink, UnixLink};
use loggap::machine::clock::HostClock;
use loggap_core::measure::{Clock, Expected, Link, Poller, Timer};
use loggap_core::stats::{Confidence, MedianInterval, Sorted};

const BURST: u32 = 10;
const PAIRS: usize = 20_001;

fn main() {
    println!("# median of {PAIRS} bursts of {BURST} messages each, in turn");
    println!("#link size[B] bare[ns] kernel[ns] ratio low high");
    for size in [1, 64, 1_024] {
        let (ours, theirs) = shared_memory();
        report("shm", size, ours, theirs);
        let (ours, theirs) = UnixLink::pair(LinkSettings::default()).unwrap();
        report("unix", size, ours, theirs);
    }
}

fn shared_memory() -> (ShmLink, ShmLink) {
    let (one, other) = UnixStream::pair().unwrap();
    let settings = LinkSettings::default();
    let ours = ShmLink::create(one, "there".into(), settings).unwrap();
    (ours, ShmLink::join(other, "here".into(), settings).unwrap())
}

fn report<L: Link>(name: &str, size: usize, mut ours: L, mut theirs: L)
where
    L::Error: std::fmt::Debug,
{
    let clock = HostClock::calibrated();
    let message = vec![1; size];
    let mut buffer = vec![0; size];
    let mut poller = Poller::default();
    let (mut bare, mut kernel) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
    for _ in 0..PAIRS {
        theirs.send(&message).unwrap();
        bare.push(bare_loop(&clock, &mut ours, &message, &mut buffer));
        empty(&mut theirs, &mut buffer);
        theirs.send(&message).unwrap();
        let expected = Expected { length: size, tag: 1, datagrams: false };
        let limit = clock.ticks(loggap_core::units::Picos(1_000_000_000_000));
        let (clock, link, poller) = (&clock, &mut ours, &mut poller);
        let mut timer = Timer { clock, poller, limit, expected, strays: 0 };
        let ticks = timer.back_to_back(link, &message, BURST, &mut buffer).unwrap();
        kernel.push(ticks.unwrap().elapsed);
        empty(&mut theirs, &mut buffer);
    }
    let (bare, kernel) = (interval(&mut bare), interval(&mut kernel));
    let nanos = |ticks: u64| clock.duration(ticks).seconds() * 1e9;
    let ratio = |kernel: u64, bare: u64| nanos(kernel) / nanos(bare);
    println!(
        "{name:>5} {size:>7} {:>8.1} {:>10.1} {:.3} {:.3} {:.3}",
        nanos(bare.median),
        nanos(kernel.median),
        ratio(kernel.median, bare.median),
        ratio(kernel.low, bare.high),
        ratio(kernel.high, bare.low),
    );
}

/// What one would write without the core.
#[inline(never)]
fn bare_loop<L: Link>(clock: &HostClock, link: &mut L, message: &[u8], buffer: &mut [u8]) -> u64
where
    L::Error: std::fmt::Debug,
{
    let started = clock.now();
    for _ in 0..BURST {
        link.send(message).unwrap();
    }
    while link.poll_receive(buffer).unwrap().is_none() {}
    let elapsed = clock.now() - started;
    black_box(elapsed)
}

fn empty<L: Link>(link: &mut L, buffer: &mut [u8])
where
    L::Error: std::fmt::Debug,
{
    for _ in 0..BURST {
        while link.poll_receive(buffer).unwrap().is_none() {}
    }
}

fn interval(ticks: &mut [u64]) -> MedianInterval<u64> {
    Sorted::new(ticks).median_interval(Confidence::P95).unwrap()
}
