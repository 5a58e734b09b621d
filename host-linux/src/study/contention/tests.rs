//! Ends on virtual processors in one virtual time, under the rules of `LogP`: an interface takes a
//! message each g, in either direction.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use loggap_core::measure::{Clock, Link, LinkProperties};
use loggap_core::units::{Bytes, Picos};

use super::{Activity, End, Plan, Report, Role, Shape, WINDOW, common_gap};

const LATENCY: u64 = 5_000_000;
const SEND: u64 = 700_000;
const RECEIVE: u64 = 900_000;
const GAP: u64 = 2_500_000;
const POLL: u64 = 200_000;
const READING: u64 = 10_000;

/// A processor and its interface: times at which they are free, ps.
#[derive(Default)]
struct Node {
    now: Cell<u64>,
    out: Cell<u64>,
    incoming: Cell<u64>,
}

/// Messages under way from one node to another: time of arrival and first byte.
type Mail = RefCell<VecDeque<(u64, u8)>>;

struct Network {
    nodes: Vec<Node>,
    mail: Vec<Mail>,
}

#[derive(Clone, Copy)]
struct At<'n> {
    network: &'n Network,
    own: usize,
    peer: usize,
}

impl At<'_> {
    fn node(&self) -> &Node {
        &self.network.nodes[self.own]
    }

    fn mail(&self, from: usize, to: usize) -> &Mail {
        &self.network.mail[from * self.network.nodes.len() + to]
    }

    fn spend(&self, picos: u64) -> u64 {
        self.node().now.update(|now| now + picos);
        self.node().now.get()
    }
}

impl Clock for At<'_> {
    fn now(&self) -> u64 {
        self.spend(READING)
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks)
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0
    }

    fn read_cost(&self) -> Picos {
        Picos(READING)
    }
}

impl Link for At<'_> {
    type Error = Infallible;

    fn properties(&self) -> LinkProperties {
        LinkProperties::reliable(Bytes(1))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Infallible> {
        let left = self.spend(SEND).max(self.node().out.get());
        self.node().out.set(left + GAP);
        let peer = &self.network.nodes[self.peer].incoming;
        let arrives = (left + LATENCY).max(peer.get());
        peer.set(arrives + GAP);
        self.mail(self.own, self.peer).borrow_mut().push_back((arrives, message[0]));
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Infallible> {
        let now = self.node().now.get();
        let mut mail = self.mail(self.peer, self.own).borrow_mut();
        let Some((_, first)) = mail.pop_front_if(|(arrives, _)| *arrives <= now) else {
            self.spend(POLL);
            return Ok(None);
        };
        buffer[0] = first;
        self.spend(RECEIVE);
        Ok(Some(buffer.len()))
    }

    fn discard(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Gap of a requester; the end whose time is least goes on.
fn gap(shape: Shape, k: usize, handler: u64) -> f64 {
    let nodes: Vec<Node> = (0..2 * k).map(|_| Node::default()).collect();
    let mail = vec![Mail::default(); nodes.len() * nodes.len()];
    let network = Network { nodes, mail };
    let requester = Role::Requester { window: WINDOW, duration_ps: 12_000_000_000 };
    let replier = Role::Replier { handler_ps: handler };
    let end = |role, own: usize, peers: &[usize]| {
        let at = |&peer: &usize| At { network: &network, own, peer };
        End::new(at(&own), peers.iter().map(at).collect(), role, 1, 0)
    };
    let others: Vec<usize> = (1..=k).collect();
    let mut ends = Vec::new();
    for other in 0..k {
        match shape {
            Shape::ManyToOne => ends.push((other + 1, end(requester, other + 1, &[0]))),
            Shape::OneToMany => ends.push((other + 1, end(replier, other + 1, &[0]))),
            Shape::Pairs => {
                ends.push((other, end(requester, other, &[k + other])));
                ends.push((k + other, end(replier, k + other, &[other])));
            }
        }
    }
    match shape {
        Shape::ManyToOne => ends.push((0, end(replier, 0, &others))),
        Shape::OneToMany => ends.push((0, end(requester, 0, &others))),
        Shape::Pairs => {}
    }
    let mut links: Vec<Activity> = Vec::new();
    let now = |own: usize| network.nodes[own].now.get();
    while let Some(at) = (0..ends.len()).min_by_key(|&at| now(ends[at].0)) {
        if !ends[at].1.visit().unwrap() {
            let (own, end) = ends.swap_remove(at);
            // As in a run: those of the one, or of all requesters.
            if own == 0 || (shape == Shape::Pairs && own < k) {
                links.extend(end.activities());
            }
        }
    }
    assert_eq!(links.len(), k);
    let requesters = shape.requesters(u32::try_from(k).unwrap());
    common_gap(&links, requesters).unwrap().0 as f64
}

fn ratio(shape: Shape, k: usize, handler: u64) -> f64 {
    gap(shape, k, handler) / gap(shape, 1, handler)
}

fn is_near(found: f64, truth: f64, share: f64) -> bool {
    (found - truth).abs() <= share * truth
}

#[test]
fn the_gap_of_a_single_pair_is_that_of_the_link() {
    for shape in Shape::ALL {
        let found = gap(shape, 1, 0);
        assert!(is_near(found, GAP as f64, 0.01), "{shape:?}: {found}");
    }
}

#[test]
fn the_gap_of_each_of_k_requesters_is_k_times_as_long() {
    for k in [2, 3, 7, 15] {
        let found = ratio(Shape::ManyToOne, k, 0);
        assert!(is_near(found, k as f64, 0.02), "{k}: {found}");
    }
}

#[test]
fn several_repliers_shorten_the_gap_where_the_turnaround_is_the_bottleneck() {
    // Single: o_r + handler + o_s; several: g, 0.7 of that.
    let handler = GAP * 10 / 7 - SEND - RECEIVE;
    for k in [2, 4, 8] {
        let found = ratio(Shape::OneToMany, k, handler);
        assert!(is_near(found, 0.7, 0.02), "{k}: {found}");
        let found = ratio(Shape::OneToMany, k, 0);
        assert!(is_near(found, 1.0, 0.02), "{k}: {found}");
    }
}

#[test]
fn pairs_at_the_same_time_are_as_fast_as_one() {
    for k in [2, 8] {
        let found = ratio(Shape::Pairs, k, 0);
        assert!(is_near(found, 1.0, 0.005), "{k}: {found}");
    }
}

/// Table and verdict of two processes where there are `processors`; a single pair's gap is 2 us in
/// the first turn and rises, that of K is 1.5 times as long.
fn table(processors: u32, turns: u64) -> (String, bool) {
    let runs = Shape::ALL.map(|shape| (shape, 2)).to_vec();
    let plan = Plan { size: 16, handler: Picos::ZERO, runs, max_time: Duration::from_secs(1) };
    let mut done = 0;
    let rows = plan.rows(
        |processes| processes > processors,
        |_, k| {
            let turn = done / 6;
            done += 1;
            let gap = Picos((2 + turn) * 1_000_000 * u64::from(k + 1) / 2);
            Ok::<_, Infallible>((turn < turns).then_some(Some(gap)))
        },
    );
    let report = Report::new(&plan, rows.unwrap(), "shm".to_owned(), None);
    let mut text = Vec::new();
    report.write(&mut text).unwrap();
    (String::from_utf8(text).unwrap(), report.is_usable())
}

#[test]
fn a_ratio_is_of_gaps_of_a_turn_and_rows_that_share_processors_are_marked() {
    let (text, is_usable) = table(3, 9);
    assert!(is_usable, "{text}");
    // Turns have 2 to 10 us: the second of nine and the last but one bound the median.
    let row = "6.000 (3.000 to 9.000)      9.000 (4.500 to 13.500)     1.50 (1.50 to 1.50)";
    assert_eq!(text.matches(row).count(), 3, "{text}");
    assert_eq!((text.matches("0.75  own").count(), text.matches("0.75  SHARED").count()), (2, 1));
    assert!(!table(2, 9).1 && table(4, 6).1);
    let (text, is_usable) = table(4, 5);
    assert!(!is_usable && text.matches(" -  own").count() == 3, "{text}");
}
