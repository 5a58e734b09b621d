//! Sorting that cannot panic.
//!
//! The standard library's sorts panic on an inconsistent order, and that code stays linked into a
//! firmware. This one returns some permutation instead; the order of a [`Measure`](super::Measure)
//! is always consistent.

/// Sorts `items` in ascending order, in place, in O(n log n) steps.
pub(crate) fn heap_sort<T: Copy + Ord>(items: &mut [T]) {
    for root in (0..items.len() / 2).rev() {
        sink(items, root);
    }
    let mut rest = items;
    while let Some(last) = rest.len().checked_sub(1) {
        rest.swap(0, last);
        rest = rest.get_mut(..last).unwrap_or_default();
        sink(rest, 0);
    }
}

/// Moves the element at `root` down until no child is larger.
fn sink<T: Copy + Ord>(heap: &mut [T], mut root: usize) {
    loop {
        let left = 2 * root + 1;
        let (Some(&parent), Some(&first)) = (heap.get(root), heap.get(left)) else { return };
        let (child, largest) = match heap.get(left + 1) {
            Some(&second) if second > first => (left + 1, second),
            _ => (left, first),
        };
        if largest <= parent {
            return;
        }
        // `swap` would keep its bounds check for some element types.
        for (at, item) in [(root, largest), (child, parent)] {
            if let Some(slot) = heap.get_mut(at) {
                *slot = item;
            }
        }
        root = child;
    }
}

#[cfg(test)]
mod tests {
    use super::heap_sort;
    use quickcheck::quickcheck;

    quickcheck! {
        fn every_sample_comes_out_as_the_standard_library_sorts_it(sample: std::vec::Vec<u8>) -> bool {
            let mut ours = sample.clone();
            let mut theirs = sample;
            heap_sort(&mut ours);
            theirs.sort_unstable();
            ours == theirs
        }
    }
}
