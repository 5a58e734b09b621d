//! Bytes from one place to another.

/// Copies `from` to the front of `to`, as far as both reach. The standard
/// library's copy panics where the lengths differ, which not every
/// optimisation level can rule out.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    for (place, &byte) in to.iter_mut().zip(from) {
        *place = byte;
    }
}
