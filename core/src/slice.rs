//! Copies and moves within slices that cannot panic. The compiler cannot prove that at every
//! optimisation level for the standard library's versions.

/// Copies `from` to the front of `to`; stops at the shorter length.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    for (place, &byte) in to.iter_mut().zip(from) {
        *place = byte;
    }
}

/// Shifts all elements of `tail` up by one, dropping the last, and puts `first` in front.
pub(crate) fn insert_first<T>(tail: &mut [T], first: T) {
    let mut next = first;
    for place in tail {
        core::mem::swap(place, &mut next);
    }
}
