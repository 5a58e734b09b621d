//! Moves within memory without the panics of the standard library's, which
//! not every optimisation level can rule out.

/// Copies `from` to the front of `to`, as far as both reach.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    for (place, &byte) in to.iter_mut().zip(from) {
        *place = byte;
    }
}

/// Moves all elements of `tail` up by one, the last one out, and puts `first`
/// before them.
pub(crate) fn insert_first<T>(tail: &mut [T], first: T) {
    let mut next = first;
    for place in tail {
        core::mem::swap(place, &mut next);
    }
}
