//! Sizes of the first, coarse sweep.

/// Most parts of an octave.
const FINEST: u32 = 8;

/// Writes the sizes of a coarse sweep from `first` to `last`, both included: powers of two and,
/// between them, up to seven odd sizes an octave, as many as fit into `sizes`. Returns their
/// number; they are ascending.
///
/// Protocols change at powers of two, and programs send them; odd sizes between them show effects
/// that alignment hides. A `first` of 0 counts as 1. With room for less than two sizes only `first`
/// is written; nothing if `last < first`.
pub fn coarse_sizes(first: u32, last: u32, sizes: &mut [u32]) -> usize {
    let first = first.max(1);
    let (mut stride, mut parts) = (1, FINEST);
    while stride <= u32::BITS {
        if let Some(count) = write_steps(first, last, stride, parts, sizes) {
            return count;
        }
        // Reduce the parts of an octave first, then the octaves.
        (stride, parts) = if parts > 1 { (stride, parts - 1) } else { (stride + 1, 1) };
    }
    // There is no room for both ends.
    sizes.first_mut().map_or(0, |place| {
        *place = first;
        1
    })
}

/// Writes `first`, `last` and the steps between them, ascending: `parts` an octave, in every
/// `stride`-th octave. Returns their number, or `None` if they do not fit.
fn write_steps(first: u32, last: u32, stride: u32, parts: u32, sizes: &mut [u32]) -> Option<usize> {
    let mut places = sizes.iter_mut();
    if first <= last {
        *places.next()? = first;
    }
    let mut exponent = 0;
    while exponent < u32::BITS {
        for part in 0..parts {
            let inside = |&size: &u32| first < size && size < last;
            if let Some(size) = step(1 << exponent, part, parts).filter(inside) {
                *places.next()? = size;
            }
        }
        exponent += stride;
    }
    if first < last {
        *places.next()? = last;
    }
    let left = places.len();
    Some(sizes.len() - left)
}

/// Step number `part` of `parts` in the octave from `power` on; `None` if the octave is too small.
fn step(power: u32, part: u32, parts: u32) -> Option<u32> {
    if part == 0 {
        return Some(power);
    }
    let spacing = power.checked_div(parts)?;
    // Odd, not at a regular fraction of the octave, and at least 4 bytes from its neighbours.
    (spacing >= 8).then(|| (power + spacing * part - spacing / 16) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::vec;

    quickcheck! {
        fn sizes_ascend_from_first_to_last(first: u32, last: u32, room: u8) -> bool {
            let mut sizes = vec![0; usize::from(room)];
            let count = coarse_sizes(first, last, &mut sizes);
            let sizes = &sizes[..count];
            let first = first.max(1);
            let ends = match sizes {
                [] => room == 0 || last < first,
                [only] => *only == first && (room == 1 || first == last),
                [begin, .., end] => (*begin, *end) == (first, last),
            };
            ends && sizes.is_sorted_by(|a, b| a < b)
        }
    }

    #[test]
    fn the_default_sweep_has_two_sizes_an_octave() {
        let mut sizes = [0; 32];
        let count = coarse_sizes(1, 65_536, &mut sizes);
        assert_eq!(
            sizes[..count],
            [
                1, 2, 4, 8, 16, 25, 32, 47, 64, 95, 128, 189, 256, 377, 512, 753, 1_024, 1_505,
                2_048, 3_009, 4_096, 6_017, 8_192, 12_033, 16_384, 24_065, 32_768, 48_129, 65_536
            ]
        );
    }

    #[test]
    fn little_room_leaves_the_powers_of_two() {
        let mut sizes = [0; 17];
        assert_eq!(coarse_sizes(1, 65_536, &mut sizes), 17);
        assert_eq!(sizes[..4], [1, 2, 4, 8]);
        assert_eq!(coarse_sizes(5, 9, &mut sizes), 3);
        assert_eq!(sizes[..3], [5, 8, 9]);
        assert_eq!(coarse_sizes(1, 65_536, &mut sizes[..7]), 7);
        assert_eq!(sizes[..7], [1, 8, 64, 512, 4_096, 32_768, 65_536]);
    }
}
