//! Topologies: hosts, switches and link capacities.
//!
//! A topology is a few numbers. Routes are computed from them on demand ([`super::routes`]);
//! nothing is stored for a pair of hosts. Links are unidirectional. The first ones are those of the
//! hosts: host
//! `h` sends over link `h` and receives over link `hosts + h`.

use core::num::NonZeroU32;

use crate::worded::errors;

/// Largest number of dimensions of a torus.
pub const DIMENSIONS: usize = 5;

/// Largest number of links, and of hosts.
const MOST: u64 = 1 << 31;

/// Kind of a topology.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// All hosts at one switch.
    Star,
    /// Two levels: leaf switches of `each` hosts under a non-blocking core. The uplinks of a leaf
    /// are one link.
    Tree { each: NonZeroU32, leaves: u32 },
    /// Three levels of switches with 2·`half` ports (Al-Fares, Loukissas and Vahdat, SIGCOMM '08),
    /// with
    /// `up` uplinks for each edge switch.
    FatTree { half: NonZeroU32, up: NonZeroU32 },
    /// Grid that is closed in every dimension, with a router for each host.
    Torus { sizes: [NonZeroU32; DIMENSIONS] },
    /// Groups of routers, fully connected within a group, with one link between each pair of groups
    /// (Kim, Dally, Scott and Abts, ISCA '08).
    Dragonfly { groups: NonZeroU32, routers: NonZeroU32, each: NonZeroU32 },
    /// Nodes of `rails` hosts. The hosts with the same number within a block of `nodes` nodes share
    /// a leaf switch. The leaves are under a non-blocking core. The hosts of a node reach each
    /// other over separate links.
    Rail { rails: NonZeroU32, nodes: NonZeroU32, leaves: u32 },
}

/// Topology: hosts, switches and links, as a small value.
///
/// Capacities are in units of a host's link: 1 is 1/G, the rate of one interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Topology {
    pub(super) shape: Shape,
    pub(super) hosts: u32,
    /// Number of link indices. In a torus of few dimensions and in a dragonfly some have no link:
    /// [`Topology::links_there_are`].
    pub(super) links: u32,
    /// Number of links from and to hosts, which come first.
    pub(super) host_links: u32,
    pub(super) host_capacity: f64,
    /// Capacity of all other links.
    pub(super) inner_capacity: f64,
}

errors! {
    /// Reason why a topology is invalid.
    pub enum TopologyError {
        /// A count is 0.
        Zero => "every count is at least 1";
        /// A taper or capacity is not a finite number above 0.
        Capacity => "a taper or a capacity is a finite number above 0";
        /// The switches of a fat tree have an odd number of ports.
        OddPorts {
            /// Ports of a switch.
            ports: u32,
        } => "a fat tree has switches with an even number of ports, not {ports}";
        /// A torus has no dimension, or more than [`DIMENSIONS`].
        Dimensions {
            /// Number of dimensions.
            dimensions: usize,
        } => "a torus has 1 to {DIMENSIONS} dimensions, not {dimensions}; expected torus:8x8x8";
        /// More than 2³¹ hosts or links.
        TooLarge => "it has more than 2^31 hosts or links";
        /// More ranks than hosts.
        TooFewHosts {
            /// Number of hosts.
            hosts: u32,
            /// Number of ranks.
            ranks: u32,
        } => "it has {hosts} hosts for {ranks} ranks; take a larger one, or fewer ranks";
        /// The text names no topology, or lacks numbers.
        Unknown => "expected star, tree:HOSTS:TAPER, fat-tree:PORTS[:TAPER], torus:AxBxC, \
                    dragonfly:GROUPS:ROUTERS:HOSTS or rail:HOSTS:NODES[:TAPER]";
    }
}

/// Product of counts, at most 2³¹.
fn product(factors: &[u32]) -> Result<u32, TopologyError> {
    let mut all = 1u64;
    for &factor in factors {
        if factor == 0 {
            return Err(TopologyError::Zero);
        }
        all = all.saturating_mul(u64::from(factor));
    }
    count(all)
}

fn some(count: u32) -> Result<NonZeroU32, TopologyError> {
    NonZeroU32::new(count).ok_or(TopologyError::Zero)
}

fn count(all: u64) -> Result<u32, TopologyError> {
    u32::try_from(all).ok().filter(|_| all <= MOST).ok_or(TopologyError::TooLarge)
}

fn positive(number: f64) -> Result<f64, TopologyError> {
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err(TopologyError::Capacity) }
}

/// Parses a number such as 4 or 2.5, with up to 15 significant digits.
#[allow(clippy::cast_precision_loss, reason = "15 digits fit a double exactly")]
fn decimal(word: &[u8]) -> Option<f64> {
    let (mut number, mut scale, mut digits, mut fraction) = (0u64, 1u64, 0, false);
    for &byte in word {
        if byte == b'.' && !fraction && digits > 0 {
            fraction = true;
            continue;
        }
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        digits += 1;
        if digits > 15 {
            // Further digits of a fraction are ignored.
            if fraction { continue } else { return None }
        }
        number = number * 10 + u64::from(digit);
        scale *= if fraction { 10 } else { 1 };
    }
    (digits > 0).then_some(number as f64 / scale as f64)
}

/// Parses a count.
fn whole(word: &[u8]) -> Result<u32, TopologyError> {
    let mut number = None;
    for &byte in word {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10);
        let digit = u32::from(digit.ok_or(TopologyError::Unknown)?);
        let sum = number.unwrap_or(0u32).checked_mul(10).and_then(|tens| tens.checked_add(digit));
        number = Some(sum.ok_or(TopologyError::TooLarge)?);
    }
    number.ok_or(TopologyError::Unknown)
}

/// Parses a taper; 1 if absent.
fn taper(word: &[u8]) -> Result<f64, TopologyError> {
    if word.is_empty() { Ok(1.0) } else { decimal(word).ok_or(TopologyError::Unknown) }
}

impl Topology {
    /// Topology with `per_host` links for each host, and `inner` links between switches.
    fn new(shape: Shape, hosts: u32, per_host: u64, inner: u64) -> Result<Self, TopologyError> {
        let host_links = per_host.saturating_mul(u64::from(hosts));
        Ok(Self {
            shape,
            hosts,
            links: count(host_links.saturating_add(inner))?,
            host_links: count(host_links)?,
            host_capacity: 1.0,
            inner_capacity: 1.0,
        })
    }

    /// Star: all `hosts` at one non-blocking switch.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Zero`], [`TopologyError::TooLarge`].
    pub fn star(hosts: u32) -> Result<Self, TopologyError> {
        Self::new(Shape::Star, product(&[hosts])?, 2, 0)
    }

    /// Tree: as many leaf switches of `each` hosts as `ranks` need. The uplinks of a leaf together
    /// have the capacity of `each`/`taper` host links, in each direction.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Zero`], [`TopologyError::TooLarge`],
    /// [`TopologyError::Capacity`].
    pub fn tree(ranks: u32, each: u32, taper: f64) -> Result<Self, TopologyError> {
        let leaves = (some(ranks)?.get() - 1) / some(each)? + 1;
        let hosts = product(&[leaves, each])?;
        let shape = Shape::Tree { each: some(each)?, leaves };
        let tree = Self::new(shape, hosts, 2, 2 * u64::from(leaves))?;
        tree.with_inner(f64::from(each) / positive(taper)?)
    }

    /// Fat tree of three levels of switches with `ports` ports: `ports`³/4 hosts. The uplinks of an
    /// edge switch together have the capacity of 1/`taper` of its hosts' links. Their number is the
    /// largest for which each is at least as wide as a host's link, but at least 1.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Zero`], [`TopologyError::TooLarge`],
    /// [`TopologyError::OddPorts`], [`TopologyError::Capacity`].
    pub fn fat_tree(ports: u32, taper: f64) -> Result<Self, TopologyError> {
        if !ports.is_multiple_of(2) {
            return Err(TopologyError::OddPorts { ports });
        }
        let half = ports / 2;
        let hosts = product(&[ports, half, half])?;
        let together = f64::from(half) / positive(taper)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and what is more than a u32 becomes the largest one"
        )]
        let up = some((together as u32).clamp(1, half.max(1)))?;
        let shape = Shape::FatTree { half: some(half)?, up };
        let level = u64::from(ports) * u64::from(half) * u64::from(up.get());
        Self::new(shape, hosts, 2, 4 * level)?.with_inner(together / f64::from(up.get()))
    }

    /// Torus: a grid of `sizes` routers, closed in every dimension, with one host each; one size
    /// gives a ring.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Zero`], [`TopologyError::TooLarge`],
    /// [`TopologyError::Dimensions`].
    pub fn torus(sizes: &[u32]) -> Result<Self, TopologyError> {
        let dimensions = sizes.len();
        if !(1..=DIMENSIONS).contains(&dimensions) {
            return Err(TopologyError::Dimensions { dimensions });
        }
        let hosts = product(sizes)?;
        let mut all = [NonZeroU32::MIN; DIMENSIONS];
        for (slot, size) in all.iter_mut().zip(sizes) {
            *slot = some(*size)?;
        }
        let inner = u64::from(hosts) * (2 * DIMENSIONS as u64);
        Self::new(Shape::Torus { sizes: all }, hosts, 2, inner)
    }

    /// Dragonfly: `groups` groups of `routers` routers with `each` hosts each.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Zero`], [`TopologyError::TooLarge`].
    pub fn dragonfly(groups: u32, routers: u32, each: u32) -> Result<Self, TopologyError> {
        let hosts = product(&[groups, routers, each])?;
        let local = u64::from(product(&[groups, routers, routers])?);
        let global = u64::from(product(&[groups, groups])?);
        let shape =
            Shape::Dragonfly { groups: some(groups)?, routers: some(routers)?, each: some(each)? };
        Self::new(shape, hosts, 2, local + global)
    }

    /// Rail topology: nodes of `rails` hosts, in blocks of `nodes` nodes, as many as `ranks` need.
    /// A leaf switch connects the hosts of one rail in a block; its uplinks together have the
    /// capacity of
    /// `nodes`/`taper` host links.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Zero`], [`TopologyError::TooLarge`],
    /// [`TopologyError::Capacity`].
    pub fn rail(ranks: u32, rails: u32, nodes: u32, taper: f64) -> Result<Self, TopologyError> {
        let block = product(&[rails, nodes])?;
        let blocks = (some(ranks)?.get() - 1) / some(block)? + 1;
        let leaves = product(&[blocks, rails])?;
        let hosts = product(&[leaves, nodes])?;
        let shape = Shape::Rail { rails: some(rails)?, nodes: some(nodes)?, leaves };
        let rail = Self::new(shape, hosts, 4, 2 * u64::from(leaves))?;
        rail.with_inner(f64::from(nodes) / positive(taper)?)
    }

    fn with_inner(self, inner_capacity: f64) -> Result<Self, TopologyError> {
        Ok(Self { inner_capacity: positive(inner_capacity)?, ..self })
    }

    /// Topology with the links between switches `factor` times as wide.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Capacity`].
    pub fn with_link_capacity(self, factor: f64) -> Result<Self, TopologyError> {
        let inner = self.inner_capacity * positive(factor)?;
        self.with_inner(inner)
    }

    /// Topology with hosts of `capacity` times the rate of one interface, for hosts with several
    /// interfaces.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Capacity`].
    pub fn with_host_capacity(self, capacity: f64) -> Result<Self, TopologyError> {
        Ok(Self { host_capacity: positive(capacity)?, ..self })
    }

    /// Parses the name of a topology, for `ranks` ranks; see `docs/networks.md`.
    ///
    /// # Errors
    ///
    /// [`TopologyError`].
    pub fn parse(text: &str, ranks: u32) -> Result<Self, TopologyError> {
        let mut words = text.as_bytes().split(|&byte| byte == b':');
        let kind = words.next().unwrap_or_default();
        let mut numbers = [&[][..]; 3];
        let mut given = 0;
        for word in words {
            *numbers.get_mut(given).ok_or(TopologyError::Unknown)? = word;
            given += 1;
        }
        let [first, second, third] = numbers;
        let topology = match (kind, given) {
            (b"star", 0) => Self::star(ranks),
            (b"tree", 1 | 2) => Self::tree(ranks, whole(first)?, taper(second)?),
            (b"fat-tree", 1 | 2) => Self::fat_tree(whole(first)?, taper(second)?),
            (b"torus", 1) => {
                let mut sizes = [1; DIMENSIONS];
                let mut dimensions = 0;
                for word in first.split(|&byte| byte == b'x') {
                    let size = whole(word)?;
                    if let Some(slot) = sizes.get_mut(dimensions) {
                        *slot = size;
                    }
                    dimensions += 1;
                }
                let error = TopologyError::Dimensions { dimensions };
                Self::torus(sizes.get(..dimensions).ok_or(error)?)
            }
            (b"dragonfly", 3) => Self::dragonfly(whole(first)?, whole(second)?, whole(third)?),
            (b"rail", 2 | 3) => Self::rail(ranks, whole(first)?, whole(second)?, taper(third)?),
            _ => Err(TopologyError::Unknown),
        }?;
        let hosts = topology.hosts;
        if hosts < ranks { Err(TopologyError::TooFewHosts { hosts, ranks }) } else { Ok(topology) }
    }

    /// Number of links, of both directions.
    #[must_use]
    pub fn links_there_are(&self) -> u32 {
        let inner = match self.shape {
            Shape::Torus { sizes } => {
                let ways = sizes.iter().filter(|size| size.get() > 1).map(|_| 2).sum::<u32>();
                self.hosts * ways
            }
            Shape::Dragonfly { groups, routers, .. } => {
                let [groups, routers] = [groups.get(), routers.get()];
                groups * routers * (routers - 1) + groups * (groups - 1)
            }
            _ => return self.links,
        };
        2 * self.hosts + inner
    }

    /// Capacity of the links between switches, in units of a host's link.
    #[must_use]
    pub const fn link_capacity(&self) -> f64 {
        self.inner_capacity
    }

    /// Number of hosts that share a first switch; block placement fills them in order.
    #[must_use]
    pub const fn hosts_together(&self) -> u32 {
        match self.shape {
            Shape::Star => self.hosts,
            Shape::Tree { each, .. } | Shape::Dragonfly { each, .. } => each.get(),
            Shape::FatTree { half, .. } => half.get(),
            Shape::Torus { .. } => 1,
            Shape::Rail { rails, .. } => rails.get(),
        }
    }
}
