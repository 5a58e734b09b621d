//! Program of a traced rank, with its peers as displacements in the grid.

use std::collections::BTreeMap;

use loggap_core::goal::{ANY, ANY_TAG, DependsOn, Edge, Op, OpKind, Sink};
use loggap_core::sim::BuildError;

/// Operations and dependencies of a traced rank, as its conversion wrote them.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) ops: Vec<Op>,
    pub(super) edges: Vec<Edge>,
}

impl Sink for Captured {
    type Error = BuildError;

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let index = u32::try_from(self.ops.len()).ok().filter(|index| *index < Link::MOST);
        self.ops.push(op);
        index.ok_or(BuildError::TooManyOps)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), BuildError> {
        self.edges.push(edge);
        Ok(())
    }
}

/// The other element of a dependency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link(u32);

impl Link {
    /// Limit on the elements of a rank.
    const MOST: u32 = 1 << 30;

    /// An element, and the event of it.
    fn new(element: u32, event: DependsOn, calls: &[PlacedCall]) -> Self {
        let is_call = u32::from(kind_of(calls, element).is_some());
        Self(element << 2 | is_call << 1 | u32::from(event == DependsOn::Start))
    }

    pub(super) const fn element(self) -> u32 {
        self.0 >> 2
    }

    pub(super) const fn event(self) -> DependsOn {
        if self.0 & 1 != 0 { DependsOn::Start } else { DependsOn::End }
    }

    /// True if the element is a collective operation.
    pub(super) const fn is_call(self) -> bool {
        self.0 & 2 != 0
    }
}

/// Lists of links, one for each element.
#[derive(Debug)]
struct Links {
    firsts: Vec<u32>,
    all: Vec<Link>,
}

impl Links {
    /// Groups `links` by their first halves, each list in order.
    fn new(elements: usize, links: impl Iterator<Item = (u32, Link)> + Clone) -> Self {
        let mut firsts = vec![0; elements + 1];
        let count = |(element, _): (u32, Link)| {
            if let Some(count) = firsts.get_mut(element as usize + 1) {
                *count += 1;
            }
        };
        links.clone().for_each(count);
        let mut sum = 0;
        for first in &mut firsts {
            sum += *first;
            *first = sum;
        }
        let mut next = firsts.clone();
        let mut all = vec![Link(0); firsts.last().map_or(0, |last| *last as usize)];
        for (element, link) in links {
            let Some(next) = next.get_mut(element as usize) else { continue };
            if let Some(place) = all.get_mut(*next as usize) {
                *place = link;
            }
            *next += 1;
        }
        Self { firsts, all }
    }

    #[inline]
    fn of(&self, element: u32) -> &[Link] {
        let at = element as usize;
        let bounds = self.firsts.get(at).zip(self.firsts.get(at + 1));
        let found = bounds.and_then(|(first, end)| self.all.get(*first as usize..*end as usize));
        found.unwrap_or_default()
    }
}

/// A collective operation among the elements of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedCall {
    pub(super) element: u32,
    /// Number of its kind.
    pub(super) kind: u32,
    pub(super) tag: u64,
}

/// Program of a traced rank. Its elements are operations, whose peers are numbers of steps, and
/// collective operations, for each of which an empty calculation stands.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) ops: Vec<Op>,
    /// In ascending order of their elements.
    pub(super) calls: Vec<PlacedCall>,
    /// Elements that wait for nothing.
    pub(super) roots: Vec<Link>,
    waits: Links,
    dependents: Links,
}

impl Sequence {
    pub(super) fn new(ops: Vec<Op>, edges: &[Edge], calls: Vec<PlacedCall>) -> Self {
        let event = |edge: &Edge| if edge.start { DependsOn::Start } else { DependsOn::End };
        let link = |element, edge| Link::new(element, event(edge), &calls);
        let waits = edges.iter().map(|edge| (edge.op, link(edge.on, edge)));
        let dependents = edges.iter().map(|edge| (edge.on, link(edge.op, edge)));
        let (waits, dependents) = (Links::new(ops.len(), waits), Links::new(ops.len(), dependents));
        let elements = 0..u32::try_from(ops.len()).unwrap_or(u32::MAX);
        let roots = elements.filter(|element| waits.of(*element).is_empty());
        let roots = roots.map(|element| Link::new(element, DependsOn::End, &calls)).collect();
        Self { ops, calls, roots, waits, dependents }
    }

    /// Sends, receives and calculations, besides those of collective operations; `None` with
    /// wildcards or several processors.
    pub(super) fn counts(&self) -> Option<[u32; 3]> {
        let mut counts = [0; 3];
        for (element, op) in (0..).zip(&self.ops) {
            let is_wild = matches!(
                op.kind,
                OpKind::Receive { peer: ANY, .. }
                    | OpKind::Receive { tag: ANY_TAG, .. }
                    | OpKind::Send { tag: ANY_TAG, .. }
            );
            if is_wild || op.cpu > 0 {
                return None;
            }
            if self.kind_of(element).is_none() {
                count(op.kind, &mut counts);
            }
        }
        Some(counts)
    }

    /// How often each kind of collective operation occurs.
    pub(super) fn kinds(&self) -> BTreeMap<u32, u32> {
        let mut kinds = BTreeMap::new();
        self.calls.iter().for_each(|call| *kinds.entry(call.kind).or_default() += 1);
        kinds
    }

    /// Number of messages that it sends, besides those of collective operations.
    pub(super) fn sends(&self) -> u64 {
        self.ops.iter().filter(|op| matches!(op.kind, OpKind::Send { .. })).count() as u64
    }

    /// Elements that `element` waits for.
    #[inline]
    pub(super) fn waits(&self, element: u32) -> &[Link] {
        self.waits.of(element)
    }

    /// Elements that wait for `element`.
    #[inline]
    pub(super) fn dependents(&self, element: u32) -> &[Link] {
        self.dependents.of(element)
    }

    /// Number of elements.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.ops.len()).unwrap_or(u32::MAX)
    }

    /// Kind of the collective operation that an element is.
    pub(super) fn kind_of(&self, element: u32) -> Option<u32> {
        kind_of(&self.calls, element)
    }

    /// Memory, bytes.
    pub(super) fn bytes(&self) -> u64 {
        let links = self.waits.all.len() + self.dependents.all.len() + 2 * self.ops.len();
        let words = size_of::<u32>() * (links + self.roots.len());
        let calls = size_of::<PlacedCall>() * self.calls.len();
        (size_of::<Op>() * self.ops.len() + words + calls) as u64
    }

    /// First element of a segment: the elements up to a collective operation, or up to the end.
    #[inline]
    pub(super) fn segment(&self, number: u32) -> u32 {
        let before = (number as usize).checked_sub(1).and_then(|at| self.calls.get(at));
        before.map_or(0, |call| call.element + 1)
    }
}

/// Counts an operation among sends, receives and calculations.
pub(crate) const fn count(kind: OpKind, [sends, receives, calcs]: &mut [u32; 3]) {
    *match kind {
        OpKind::Send { .. } => sends,
        OpKind::Receive { .. } => receives,
        OpKind::Calc { .. } => calcs,
    } += 1;
}

fn kind_of(calls: &[PlacedCall], element: u32) -> Option<u32> {
    let found = calls.binary_search_by_key(&element, |call| call.element).ok()?;
    calls.get(found).map(|call| call.kind)
}
