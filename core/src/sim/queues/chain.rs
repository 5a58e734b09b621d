//! Linked lists whose links are stored by the caller: sorting, and circular lists that are known by
//! their last member.

/// Number of merge lists; list n has 2ⁿ runs.
const MERGING: usize = 32;

/// Container of members with one link each.
pub(in crate::sim) trait Chain {
    /// Sentinel: end of a list; no member has this number.
    const END: u32;

    fn next(&self, at: u32) -> u32;
    fn set_next(&mut self, at: u32, next: u32);

    /// Appends a member to the circular list that ends with `last`.
    #[inline]
    fn push(&mut self, last: &mut u32, at: u32) {
        let first = if *last == Self::END {
            at
        } else {
            let first = self.next(*last);
            self.set_next(*last, at);
            first
        };
        self.set_next(at, first);
        *last = at;
    }

    /// Inserts a member into a circular list sorted by `before`; usually at the end.
    #[inline]
    fn insert(&mut self, last: &mut u32, at: u32, before: impl Fn(&Self, u32, u32) -> bool) {
        if *last == Self::END || before(self, *last, at) {
            return self.push(last, at);
        }
        let mut place = *last;
        let mut next = self.next(place);
        while before(self, next, at) {
            place = next;
            next = self.next(place);
        }
        self.set_next(at, next);
        self.set_next(place, at);
    }

    /// Removes `at`, which follows `before`, from a circular list.
    #[inline]
    fn remove(&mut self, last: &mut u32, before: u32, at: u32) {
        if before == at {
            *last = Self::END;
            return;
        }
        self.set_next(before, self.next(at));
        if *last == at {
            *last = before;
        }
    }

    /// Iterates over a circular list: each member with its predecessor, from the first on.
    fn walk(&self, last: u32) -> Walk<'_, Self> {
        Walk { chain: self, before: last, last, done: last == Self::END }
    }
}

/// Iterator over a circular list.
pub(in crate::sim) struct Walk<'c, C: ?Sized> {
    chain: &'c C,
    before: u32,
    last: u32,
    done: bool,
}

impl<C: Chain + ?Sized> Iterator for Walk<'_, C> {
    /// Predecessor, and member.
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.done {
            return None;
        }
        let before = self.before;
        let at = self.chain.next(before);
        self.before = at;
        self.done = at == self.last;
        Some((before, at))
    }
}

/// First and last member of a list; both [`Chain::END`] if it is empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim) struct Ends {
    pub(in crate::sim) first: u32,
    pub(in crate::sim) last: u32,
}

/// Stable merge sort of the list that begins with `first`; `before` is true if its first argument
/// belongs before its second. A sorted list is only traversed.
pub(in crate::sim) fn sort<C: Chain>(
    chain: &mut C,
    first: u32,
    mut before: impl FnMut(&C, u32, u32) -> bool,
) -> Ends {
    let empty = Ends { first: C::END, last: C::END };
    let mut merging = [empty; MERGING];
    let (mut rest, mut used) = (first, 0);
    while rest != C::END {
        let mut run = cut(chain, rest, &mut rest, &mut before);
        for (place, waiting) in merging.iter_mut().enumerate() {
            let older = core::mem::replace(waiting, empty);
            if older != empty {
                run = merge(chain, [older, run], &mut before);
            }
            if older == empty || place == MERGING - 1 {
                used = used.max(place + 1);
                *waiting = run;
                break;
            }
        }
    }
    let runs = merging.into_iter().take(used).filter(|run| *run != empty);
    runs.reduce(|younger, older| merge(chain, [older, younger], &mut before)).unwrap_or(empty)
}

/// Cuts the list after its leading sorted run; `rest` becomes the remainder.
fn cut<C: Chain>(
    chain: &mut C,
    first: u32,
    rest: &mut u32,
    before: &mut impl FnMut(&C, u32, u32) -> bool,
) -> Ends {
    let mut last = first;
    loop {
        let next = chain.next(last);
        *rest = next;
        if next == C::END {
            return Ends { first, last };
        }
        if before(chain, next, last) {
            chain.set_next(last, C::END);
            return Ends { first, last };
        }
        last = next;
    }
}

/// Merges two sorted lists; of equal members those of `older` come first.
fn merge<C: Chain>(
    chain: &mut C,
    [older, younger]: [Ends; 2],
    before: &mut impl FnMut(&C, u32, u32) -> bool,
) -> Ends {
    let (mut a, mut b) = (older.first, younger.first);
    let mut merged = Ends { first: C::END, last: C::END };
    while a != C::END && b != C::END {
        let taken = if before(chain, b, a) { &mut b } else { &mut a };
        let at = *taken;
        *taken = chain.next(at);
        if merged.first == C::END {
            merged.first = at;
        } else {
            chain.set_next(merged.last, at);
        }
        merged.last = at;
    }
    let (rest, last) = if a == C::END { (b, younger.last) } else { (a, older.last) };
    chain.set_next(merged.last, rest);
    Ends { first: merged.first, last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::vec;
    use std::vec::Vec;

    struct Links(Vec<u32>);

    impl Chain for Links {
        const END: u32 = u32::MAX;

        fn next(&self, at: u32) -> u32 {
            self.0[at as usize]
        }

        fn set_next(&mut self, at: u32, next: u32) {
            self.0[at as usize] = next;
        }
    }

    #[test]
    fn sorting_is_stable_loses_nothing_and_knows_both_ends() {
        let mut random = Random::new(11);
        for many in [0, 1, 2, 3, 10, 500] {
            let keys: Vec<u64> = (0..many).map(|_| random.below(20)).collect();
            let mut links =
                Links((1..=many).map(|at| if at == many { u32::MAX } else { at }).collect());
            let first = if many == 0 { u32::MAX } else { 0 };
            let ends = sort(&mut links, first, |_, a, b| keys[a as usize] < keys[b as usize]);
            let (mut sorted, mut at) = (vec![], ends.first);
            while at != u32::MAX {
                sorted.push(at);
                at = links.next(at);
            }
            let mut expected: Vec<u32> = (0..many).collect();
            expected.sort_by_key(|at| keys[*at as usize]);
            assert_eq!(sorted, expected);
            assert_eq!(ends.last, expected.last().copied().unwrap_or(u32::MAX));
        }
    }

    #[test]
    fn a_list_in_order_is_only_walked_through() {
        let mut links = Links((1..1_000).chain([u32::MAX]).collect());
        let mut looks = 0;
        sort(&mut links, 0, |_, a, b| {
            looks += 1;
            a < b
        });
        assert_eq!(looks, 999);
    }
}
