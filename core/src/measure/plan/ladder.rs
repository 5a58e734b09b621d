//! The coarse sweep: which sizes to measure first.

/// Parts of an octave are tried down to this many.
const FINEST: u32 = 8;

/// Sizes from `first` to `last`, both included, to measure first: powers of
/// two and, between them, up to seven odd sizes an octave, as many as fit
/// into `sizes`. Returns how many were written, in ascending order.
///
/// Powers of two are where protocols change and what programs send; odd sizes
/// between them show what alignment hides. A `first` of 0 counts as 1; below
/// two places only `first` is written, and nothing where `last < first`.
pub fn coarse_sizes(first: u32, last: u32, sizes: &mut [u32]) -> usize {
    let ends = (first.max(1), last);
    let (mut stride, mut parts) = (1, FINEST);
    while stride <= u32::BITS {
        if let Some(count) = write_steps(ends, stride, parts, sizes) {
            return count;
        }
        // Fewer parts of each octave, then fewer octaves.
        (stride, parts) = if parts > 1 { (stride, parts - 1) } else { (stride + 1, 1) };
    }
    // Both ends do not fit.
    sizes.first_mut().map_or(0, |place| {
        *place = ends.0;
        1
    })
}

/// Writes `first`, `last` and the steps between them, ascending: `parts` an
/// octave, of every `stride`-th octave. How many, or `None` without room.
fn write_steps(
    (first, last): (u32, u32),
    stride: u32,
    parts: u32,
    sizes: &mut [u32],
) -> Option<usize> {
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

/// The `part`-th of `parts` steps in the octave from `power` on; `None` where
/// small numbers leave no room for it.
fn step(power: u32, part: u32, parts: u32) -> Option<u32> {
    if part == 0 {
        return Some(power);
    }
    let spacing = power.checked_div(parts)?;
    // Not a multiple of anything, and at least 4 bytes from its neighbours.
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
