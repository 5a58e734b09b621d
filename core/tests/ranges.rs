//! The fewest ranges that lines describe, against a search of all there are.

#[cfg(test)]
mod ranges {
    use loggap_core::fit::{Change, Config, Node, Point, Requirements, find_ranges};
    use loggap_core::random::Random;

    const TOLERANCE: f64 = 0.06;

    /// A point as a line has to pass it: bytes beyond the first, and the least
    /// and largest value.
    type Passage = (f64, f64, f64);

    fn passage(point: &Point) -> Passage {
        let allowed = (TOLERANCE * point.value().abs()).max(1.0);
        ((point.size() - 1) as f64, point.value() - allowed, point.value() + allowed)
    }

    /// Whether a line that does not fall passes all points, none of which is
    /// negative: tried are all lines through two ends, and level ones.
    fn is_described(points: &[Passage]) -> bool {
        if points.iter().any(|&(_, _, high)| high < 0.0) {
            return false;
        }
        let ends: Vec<(f64, f64)> =
            points.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect();
        let passes = |slope: f64, (x0, y0): (f64, f64)| {
            points.iter().all(|&(x, low, high)| {
                let y = y0 + slope * (x - x0);
                let rounding = 1e-9 * (1.0 + high.abs());
                low - rounding <= y && y <= high + rounding
            })
        };
        ends.is_empty()
            || ends.iter().any(|&end| {
                let slopes = ends.iter().filter(|other| (other.0 - end.0).abs() > 0.5);
                let slopes = slopes.map(|other| (other.1 - end.1) / (other.0 - end.0));
                slopes.chain([0.0]).any(|slope| slope >= 0.0 && passes(slope, end))
            })
    }

    struct Sweep {
        sizes: Vec<u64>,
        curves: [Vec<Point>; 2],
        min_sizes: usize,
    }

    impl Sweep {
        /// Ten sizes, slopes that change now and then, and times that may be
        /// negative; the second curve lacks some sizes.
        fn any(random: &mut Random) -> Self {
            let mut sizes = vec![1 + random.below(3)];
            while sizes.len() < 10 {
                let last = sizes[sizes.len() - 1];
                sizes.push(last + 1 + random.below(1 + 2 * last));
            }
            let mut curve = |lacks: f64| {
                let (mut value, mut slope) = (1_000.0 * random.unit() - 100.0, 0.0);
                let mut points = vec![];
                for pair in sizes.windows(2) {
                    if !random.chance(lacks) {
                        let shown = if random.chance(0.03) { -value } else { value };
                        points.push(Point::new(pair[0], shown, 0.0).unwrap());
                    }
                    if random.chance(0.3) {
                        slope = 100.0 * (random.unit() - 0.2).max(0.0);
                    }
                    value += slope * (pair[1] - pair[0]) as f64;
                }
                points.push(Point::new(sizes[9], value, 0.0).unwrap());
                points
            };
            let curves = [curve(0.0), curve(0.2)];
            let min_sizes = usize::try_from(1 + random.below(4)).unwrap();
            Self { sizes, curves, min_sizes }
        }

        /// Whether sizes from `first` up to `end` are enough for a range.
        fn is_wide(&self, first: usize, end: usize) -> bool {
            let behind = self.sizes.get(end).unwrap_or(&self.sizes[self.sizes.len() - 1]);
            let wide = end - first >= self.min_sizes && *behind >= 2 * self.sizes[first];
            wide || (first == 0 && end == self.sizes.len())
        }

        /// What a range from `first` up to `end` costs: one, or two where a
        /// curve is not described. `None` where it is too short, or is not
        /// described and so long that it could be two.
        fn cost(&self, first: usize, end: usize) -> Option<usize> {
            let within = |point: &&Point| {
                let from = point.size() >= self.sizes[first];
                from && self.sizes.get(end).is_none_or(|&end| point.size() < end)
            };
            let described = self.curves.iter().all(|curve| {
                let points: Vec<_> = curve.iter().filter(within).map(passage).collect();
                is_described(&points)
            });
            let shortest = (first + 1..=end).find(|&end| self.is_wide(first, end))? - first;
            let short = end - first < 2 * shortest;
            (self.is_wide(first, end) && (described || short)).then_some(2 - usize::from(described))
        }

        /// What ranges cost that begin at these indices.
        fn sum(&self, starts: &[usize]) -> Option<usize> {
            let ends = starts.iter().skip(1).copied().chain([self.sizes.len()]);
            starts.iter().zip(ends).map(|(&first, end)| self.cost(first, end)).sum()
        }

        /// The least cost of all ways to part the sizes from `first` on.
        fn least(&self, first: usize) -> Option<usize> {
            let end = self.sizes.len();
            let parted = (first + 1..end).filter_map(|next| {
                let one = self.cost(first, next)?;
                Some(one + self.least(next)?)
            });
            parted.chain(self.cost(first, end)).min()
        }

        fn find(&self, most: usize) -> (Vec<Change>, Vec<usize>) {
            let mut nodes = vec![Node::default(); Requirements::new(self.sizes.len()).nodes];
            let (mut changes, mut starts) =
                (heapless::Vec::<_, 16>::new(), heapless::Vec::<_, 16>::new());
            let config = Config {
                tolerance: TOLERANCE,
                min_sizes: self.min_sizes,
                max_changes: most,
                ..Config::default()
            };
            let curves = [&self.curves[0][..], &self.curves[1][..]];
            find_ranges(&curves, &config, &mut nodes, &mut changes, &mut starts).unwrap();
            let index = |size: &u64| self.sizes.iter().position(|other| other == size).unwrap();
            (changes.to_vec(), starts.iter().map(index).collect())
        }
    }

    #[test]
    fn no_way_to_part_the_sizes_takes_fewer_lines_than_the_one_found() {
        let (mut judged, mut several) = (0, 0);
        for seed in 0..300 {
            let sweep = Sweep::any(&mut Random::new(seed));
            let (changes, starts) = sweep.find(15);
            // Jumps part the sizes whatever it costs.
            if changes.iter().any(|change| change.splits) {
                continue;
            }
            judged += 1;
            several += u32::from(starts.len() > 2);
            let (sizes, min_sizes) = (&sweep.sizes, sweep.min_sizes);
            assert_eq!(
                sweep.sum(&starts),
                sweep.least(0),
                "seed {seed}: {sizes:?} from {starts:?}, {min_sizes} each"
            );
        }
        assert!(judged > 100 && several > 30, "{judged} judged, {several} of three ranges or more");
    }

    #[test]
    fn the_bend_that_matters_least_is_given_up_first() {
        let sizes: Vec<u64> = (0..=16).map(|exponent| 1 << exponent).collect();
        // 10 ps/B, 14 from 64 B on, and 80 from 4,096 B on.
        let value = |&size: &u64| {
            let beyond = |from: u64| size.saturating_sub(from) as f64;
            100.0 + 10.0 * beyond(1) + 4.0 * beyond(64) + 66.0 * beyond(4_096)
        };
        let points: Vec<Point> =
            sizes.iter().map(|size| Point::new(*size, value(size), 0.0).unwrap()).collect();
        let sweep = Sweep { sizes, curves: [points, vec![]], min_sizes: 4 };
        let (_, all) = sweep.find(15);
        assert!(all.len() > 2, "{all:?}");
        let (_, two) = sweep.find(1);
        assert_eq!(two.len(), 2);
        assert!((11..=13).contains(&two[1]), "{two:?}");
    }
}
