//! Four-ary heap in lent memory.

/// Children of a node.
pub(in crate::sim) const WIDTH: usize = 4;

/// Order of the elements of a heap.
pub(in crate::sim) trait Precedes: Copy {
    /// True if `self` comes out before `other`.
    fn before(&self, other: &Self) -> bool;
}

/// Places `item` at `at` or moves it towards the root; `moved` is called with each new position.
#[inline]
pub(in crate::sim) fn rise<T: Precedes>(
    heap: &mut [T],
    mut at: usize,
    item: T,
    mut moved: impl FnMut(&T, usize),
) {
    while let Some(above) = at.checked_sub(1).map(|below| below / WIDTH) {
        let Some(&parent) = heap.get(above) else { break };
        if !item.before(&parent) {
            break;
        }
        put(heap, at, parent, &mut moved);
        at = above;
    }
    put(heap, at, item, &mut moved);
}

/// Places `item` at `at` or moves it towards the leaves; the heap is all of `heap`.
#[inline]
pub(in crate::sim) fn sink<T: Precedes>(
    heap: &mut [T],
    mut at: usize,
    item: T,
    mut moved: impl FnMut(&T, usize),
) {
    loop {
        let first = at * WIDTH + 1;
        let end = (first + WIDTH).min(heap.len());
        let Some(children) = heap.get(first..end) else { break };
        let (mut least, mut place) = (item, at);
        for (offset, child) in children.iter().enumerate() {
            if child.before(&least) {
                least = *child;
                place = first + offset;
            }
        }
        if place == at {
            break;
        }
        put(heap, at, least, &mut moved);
        at = place;
    }
    put(heap, at, item, &mut moved);
}

/// Removes the least element; the heap then ends before the last position of `heap`.
#[inline]
pub(in crate::sim) fn remove_first<T: Precedes>(heap: &mut [T], moved: impl FnMut(&T, usize)) {
    if let Some((&mut last, rest)) = heap.split_last_mut()
        && !rest.is_empty()
    {
        sink(rest, 0, last, moved);
    }
}

#[inline]
fn put<T: Precedes>(heap: &mut [T], at: usize, item: T, moved: &mut impl FnMut(&T, usize)) {
    debug_assert!(at < heap.len(), "places are within the heap");
    if let Some(place) = heap.get_mut(at) {
        *place = item;
        moved(&item, at);
    }
}
