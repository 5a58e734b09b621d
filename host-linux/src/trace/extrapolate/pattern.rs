//! Messages that belong together in rings and trees that a program sends itself, as functions of
//! the number of ranks.

use std::fmt;

use loggap_core::trace::Direction;

use crate::collective::{Binomial, Message, Place, Round, doubled};

/// Messages of all ranks that belong together.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Pattern {
    /// Each rank sends to the one `step` ahead on a ring.
    Ring { step: i32, order: Order },
    /// Each rank sends to the one `step` ahead, as far as there is one.
    Chain { step: i32 },
    /// Exchanges with `rank xor 2ᵏ`.
    Doubling { order: Order, from: From },
    /// Messages to `rank + 2ᵏ` on a ring.
    Dissemination { order: Order, from: From },
    /// Messages along a tree with rank 0 at its root.
    Tree { shape: Shape, way: Way, children: From },
}

/// Order of a rank's send and receive.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Order {
    /// At the same time.
    Together,
    SendFirst,
    ReceiveFirst,
    /// Rank 0, or the lower of two, sends first.
    InTurn,
}

/// Begin of the distances, or of the children.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum From {
    Near,
    Far,
}

/// Form of a tree.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Shape {
    /// The parent's number lacks the highest bit.
    High,
    /// The parent's number lacks the lowest bit.
    Low,
    /// Rank r has the children 2r + 1 and 2r + 2.
    Binary,
    /// All are children of the root.
    Star,
}

/// Direction of the messages in a tree.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Way {
    Up,
    Down,
}

impl Pattern {
    /// Patterns in which rank 0 of `ranks` may begin with a message in this direction.
    pub(super) fn of(direction: Direction, peer: u32, ranks: u32) -> Vec<Self> {
        let [peer, ranks] = [peer, ranks].map(u32::cast_signed);
        let ahead = if direction == Direction::Send { peer } else { -peer };
        let around = if ahead > 0 { ahead - ranks } else { ahead + ranks };
        // The shorter way around, or both.
        let steps = [ahead, around].into_iter();
        let steps = steps.filter(|step| 2 * step.abs() <= ranks);
        let mut all = Vec::new();
        for order in [Order::Together, Order::SendFirst, Order::ReceiveFirst, Order::InTurn] {
            all.extend(steps.clone().map(|step| Self::Ring { step, order }));
            for from in [From::Near, From::Far] {
                all.push(Self::Doubling { order, from });
                all.push(Self::Dissemination { order, from });
            }
        }
        all.push(Self::Chain { step: ahead });
        for shape in [Shape::High, Shape::Low, Shape::Binary, Shape::Star] {
            for children in [From::Near, From::Far] {
                all.extend([Way::Up, Way::Down].map(|way| Self::Tree { shape, way, children }));
            }
        }
        all
    }

    /// Rounds of `rank`, with `size` bytes a message.
    pub(super) fn rounds(self, rank: u32, ranks: u32, size: u64) -> Vec<Round> {
        let message = |peer: u32| Message { peer, size };
        let both = |order, is_first, [to, from]: [u32; 2]| {
            let (send, receive) = (Round::send(to, size), Round::receive(from, size));
            match order {
                Order::Together => vec![Round::exchange(message(to), message(from))],
                Order::SendFirst => vec![send, receive],
                Order::InTurn if is_first => vec![send, receive],
                Order::ReceiveFirst | Order::InTurn => vec![receive, send],
            }
        };
        let ring = |step: i32| {
            let ahead = |step: i64| {
                let at = (i64::from(rank) + step).rem_euclid(i64::from(ranks.max(1)));
                u32::try_from(at).unwrap_or(0)
            };
            [ahead(step.into()), ahead(-i64::from(step))]
        };
        let distances = |from| {
            let mut all: Vec<u32> = doubled(ranks).collect();
            if from == From::Far {
                all.reverse();
            }
            all
        };
        match self {
            Self::Ring { step, order } => both(order, rank == 0, ring(step)),
            Self::Chain { step } => {
                let at = |step: i32| rank.checked_add_signed(step).filter(|peer| *peer < ranks);
                let from = at(-step).map(|peer| Round::receive(peer, size));
                from.into_iter().chain(at(step).map(|peer| Round::send(peer, size))).collect()
            }
            Self::Doubling { order, from } => {
                let peers = distances(from).into_iter().map(|distance| (rank ^ distance, distance));
                let peers = peers.filter(|(peer, _)| *peer < ranks);
                let exchange = |(peer, distance)| both(order, rank & distance == 0, [peer, peer]);
                peers.flat_map(exchange).collect()
            }
            Self::Dissemination { order, from } => {
                let step = |distance: u32| both(order, rank == 0, ring(distance.cast_signed()));
                distances(from).into_iter().flat_map(step).collect()
            }
            Self::Tree { shape, way, children } => {
                let Place { parent, children } = shape.place(rank, ranks, children);
                let (parent, children) = (parent.into_iter(), children.into_iter());
                match way {
                    Way::Up => {
                        let children = children.map(|peer| Round::receive(peer, size));
                        children.chain(parent.map(|peer| Round::send(peer, size))).collect()
                    }
                    Way::Down => {
                        let children = children.map(|peer| Round::send(peer, size));
                        parent.map(|peer| Round::receive(peer, size)).chain(children).collect()
                    }
                }
            }
        }
    }
}

impl Shape {
    fn place(self, rank: u32, ranks: u32, from: From) -> Place {
        let exists = |child: &u32| *child < ranks;
        let mut place = match self {
            Self::High => Binomial::Near.place(rank, ranks),
            Self::Low => Binomial::Far.place(rank, ranks),
            Self::Binary => Place {
                parent: rank.checked_sub(1).map(|above| above / 2),
                children: [1, 2].map(|side| rank.saturating_mul(2).saturating_add(side)).to_vec(),
            },
            Self::Star => Place {
                parent: (rank > 0).then_some(0),
                children: if rank == 0 { (1..ranks).collect() } else { Vec::new() },
            },
        };
        place.children.retain(exists);
        place.children.sort_unstable();
        if from == From::Far {
            place.children.reverse();
        }
        place
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring { step, .. } => write!(f, "a ring to r{step:+}"),
            Self::Chain { step } => write!(f, "a chain to r{step:+}"),
            Self::Doubling { .. } => f.write_str("exchanges with r xor 2^k"),
            Self::Dissemination { .. } => f.write_str("a dissemination to r + 2^k"),
            Self::Tree { shape, way, .. } => {
                let way = if *way == Way::Up { "up" } else { "down" };
                let shape = match shape {
                    Shape::High => "binomial tree (highest bit)",
                    Shape::Low => "binomial tree (lowest bit)",
                    Shape::Binary => "binary tree",
                    Shape::Star => "star",
                };
                write!(f, "messages {way} a {shape}")
            }
        }
    }
}
