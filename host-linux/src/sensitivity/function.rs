//! Times of a simulation as functions of the parameters: each is the maximum of several sums. Equal
//! functions are stored once, so that symmetric parts of a schedule cost nothing.

use std::collections::HashMap;

/// Index of a function.
pub(super) type FunctionId = u32;
type WeightId = u32;

/// Fractional bits of a value; the unit is that of [`PerByte`](loggap_core::units::PerByte).
pub(super) const FRACTION_BITS: u32 = 16;

/// Time between two events: its present `length`, of which `fixed` does not depend on the
/// parameters, and its derivatives with respect to up to two of them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Weight {
    /// Picoseconds.
    pub(super) length: u64,
    /// Picoseconds.
    pub(super) fixed: u64,
    /// Parameters and their coefficients: a count, or bytes for a parameter per byte.
    pub(super) counts: [(u16, u64); 2],
}

impl Weight {
    /// True if this is at least `other` for all values of the parameters.
    fn covers(&self, other: &Self) -> bool {
        let least = |&(parameter, count): &(u16, u64)| {
            let own = self.counts.iter().filter(|own| own.0 == parameter);
            own.map(|own| own.1).sum::<u64>() >= count
        };
        self.fixed >= other.fixed && other.counts.iter().all(least)
    }
}

/// A sum: the value of another function plus a weight.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Term {
    base: FunctionId,
    weight: WeightId,
}

/// All functions. The base of a sum has a smaller index than the function. Index 0 is the start of
/// the simulation.
#[derive(Debug)]
pub(super) struct Functions {
    terms: Vec<Term>,
    /// Index of the first term of each function, and of the end of the last.
    firsts: Vec<u32>,
    weights: Vec<Weight>,
    weight_ids: HashMap<Weight, WeightId>,
    ids: HashMap<Box<[Term]>, FunctionId>,
    /// Present value of each function, in picoseconds.
    now: Vec<u64>,
}

/// Largest number of terms among which covered ones are searched for and removed.
const FEW: usize = 8;

impl Functions {
    /// The start of the simulation.
    pub(super) const START: FunctionId = 0;

    pub(super) fn new() -> Self {
        let none = Weight::default();
        Self {
            terms: Vec::new(),
            firsts: vec![0, 0],
            weights: vec![none],
            weight_ids: HashMap::from([(none, 0)]),
            ids: HashMap::new(),
            now: vec![0],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.now.len()
    }

    /// Present value of a function, in picoseconds.
    pub(super) fn now(&self, id: FunctionId) -> u64 {
        self.now.get(id as usize).copied().unwrap_or_default()
    }

    pub(super) fn term(&mut self, base: FunctionId, weight: Weight) -> Term {
        let next = u32::try_from(self.weights.len()).unwrap_or(u32::MAX);
        let id = *self.weight_ids.entry(weight).or_insert(next);
        if id == next {
            self.weights.push(weight);
        }
        Term { base, weight: id }
    }

    fn weight(&self, id: WeightId) -> Weight {
        self.weights.get(id as usize).copied().unwrap_or_default()
    }

    pub(super) fn terms(&self, id: FunctionId) -> &[Term] {
        let at = id as usize;
        match (self.firsts.get(at), self.firsts.get(at + 1)) {
            (Some(&first), Some(&end)) => {
                self.terms.get(first as usize..end as usize).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// The maximum of some sums.
    pub(super) fn greatest(&mut self, mut terms: Vec<Term>) -> FunctionId {
        terms.sort_unstable();
        terms.dedup();
        if terms.len() > 1 {
            // Redundant: no event is before the start.
            terms.retain(|term| *term != Term { base: Self::START, weight: 0 });
        }
        if terms.len() <= FEW {
            self.drop_covered(&mut terms);
        }
        match *terms.as_slice() {
            [] => return Self::START,
            [Term { base, weight: 0 }] => return base,
            _ => {}
        }
        let next = u32::try_from(self.now.len()).unwrap_or(u32::MAX);
        let terms = terms.into_boxed_slice();
        if let Some(&known) = self.ids.get(&terms) {
            return known;
        }
        let sums = terms
            .iter()
            .map(|term| self.now(term.base).saturating_add(self.weight(term.weight).length));
        let now = sums.max().unwrap_or_default();
        self.now.push(now);
        self.terms.extend_from_slice(&terms);
        self.firsts.push(u32::try_from(self.terms.len()).unwrap_or(u32::MAX));
        self.ids.insert(terms, next);
        next
    }

    fn drop_covered(&self, terms: &mut Vec<Term>) {
        let mut at = 0;
        while let Some(term) = terms.get(at).copied() {
            let weight = self.weight(term.weight);
            let covered = terms.iter().any(|other| {
                *other != term
                    && other.base == term.base
                    && self.weight(other.weight).covers(&weight)
            });
            if covered {
                terms.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// The maximum of some functions.
    pub(super) fn latest(&mut self, ids: &[FunctionId]) -> FunctionId {
        let terms = ids.iter().map(|&base| Term { base, weight: 0 }).collect();
        self.greatest(terms)
    }

    /// True if `term` is a term of `later`, or that function itself.
    pub(super) fn has(&self, later: FunctionId, term: Term) -> bool {
        term == Term { base: later, weight: 0 } || self.terms(later).contains(&term)
    }

    /// Values of all functions with the parameters of `moved` changed by `change` (in 2⁻¹⁶ ps, or
    /// 2⁻¹⁶ ps per byte) in its direction, and their derivatives there.
    pub(super) fn at(&self, moved: &Moved, change: i128, side: Side) -> Vec<Value> {
        let counts: Vec<i128> = self.weights.iter().map(|weight| moved.count(weight)).collect();
        let mut values: Vec<Value> = Vec::with_capacity(self.len());
        for id in 0..self.len() {
            let mut best: Option<Value> = None;
            for term in self.terms(u32::try_from(id).unwrap_or(u32::MAX)) {
                let base = Value::of(term.base, &values);
                let count = counts.get(term.weight as usize).copied().unwrap_or_default();
                let length = i128::from(self.weight(term.weight).length) << FRACTION_BITS;
                let sum = Value {
                    time: base.time + length + count * change,
                    growth: base.growth + count,
                };
                if best.is_none_or(|best| side.key(sum) > side.key(best)) {
                    best = Some(sum);
                }
            }
            values.push(best.unwrap_or_default());
        }
        values
    }
}

/// Which one-sided derivative to return at a breakpoint of a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// Derivative beyond the change: the largest of the tied terms.
    Beyond,
    /// Derivative before the change: the smallest of the tied terms.
    Before,
}

impl Side {
    const fn key(self, value: Value) -> (i128, i128) {
        match self {
            Self::Beyond => (value.time, value.growth),
            Self::Before => (value.time, -value.growth),
        }
    }
}

/// Value and derivative of a function at some change.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Value {
    /// Time in 2⁻¹⁶ ps.
    pub(super) time: i128,
    pub(super) growth: i128,
}

impl Value {
    /// That of a function among `all`.
    pub(super) fn of(id: FunctionId, all: &[Self]) -> Self {
        all.get(id as usize).copied().unwrap_or_default()
    }
}

/// Parameters that are changed together, and the direction: 1 or −1.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    pub(super) parameters: Vec<u16>,
    pub(super) direction: i128,
}

impl Moved {
    fn count(&self, weight: &Weight) -> i128 {
        let moved = weight.counts.iter().filter(|count| self.parameters.contains(&count.0));
        moved.map(|count| i128::from(count.1)).sum::<i128>() * self.direction
    }
}
