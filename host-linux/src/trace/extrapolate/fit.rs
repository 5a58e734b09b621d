//! Sizes and computation as functions of the number of ranks.

use std::fmt;

use loggap_core::random::Random;

/// `c·Pᵃ`, or `c + d·log₂P`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// Exponent, as numerator over 6.
    Power(i8),
    /// A logarithm with a constant.
    Logarithm,
}

/// Forms in the order in which they are tried: 0, ±1/3, ±1/2, ±2/3, ±1.
const POWERS: [i8; 9] = [0, 2, -2, 3, -3, 4, -4, 6, -6];

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Power(0) => "c",
            Self::Power(2) => "c P^1/3",
            Self::Power(-2) => "c P^-1/3",
            Self::Power(3) => "c P^1/2",
            Self::Power(-3) => "c P^-1/2",
            Self::Power(4) => "c P^2/3",
            Self::Power(-4) => "c P^-2/3",
            Self::Power(6) => "c P",
            Self::Power(_) => "c P^-1",
            Self::Logarithm => "c + d log2 P",
        })
    }
}

/// Value at a number of ranks.
#[derive(Clone, Copy, Debug)]
struct Point {
    ranks: u32,
    value: f64,
}

/// Size of a message at a number of ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SizeOn {
    /// Number of ranks.
    pub ranks: u32,
    /// Size.
    pub bytes: u64,
}

/// Computation of runs on a number of ranks.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub(super) ranks: u32,
    pub(super) values: Vec<f64>,
}

impl Form {
    /// Forms with fewer parameters than there are numbers of ranks.
    fn all(count: usize) -> impl Iterator<Item = Self> {
        let powers = POWERS.into_iter().take(if count > 1 { POWERS.len() } else { 1 });
        powers.map(Self::Power).chain((count > 2).then_some(Self::Logarithm))
    }

    fn base(self, ranks: u32) -> f64 {
        match self {
            Self::Power(sixths) => f64::from(ranks).powf(f64::from(sixths) / 6.0),
            Self::Logarithm => f64::from(ranks).log2(),
        }
    }

    /// Least squares of the relative errors: constant and factor.
    fn fit(self, points: &[Point]) -> [f64; 2] {
        let (mut s, mut sx, mut sxx, mut sy, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &Point { ranks, value } in points {
            let (x, weight) = (self.base(ranks), 1.0 / value.max(f64::MIN_POSITIVE).powi(2));
            s += weight;
            sx += weight * x;
            sxx += weight * x * x;
            sy += weight * value;
            sxy += weight * x * value;
        }
        match self {
            Self::Power(_) => [0.0, sxy / sxx],
            Self::Logarithm => {
                let slope = (s * sxy - sx * sy) / (s * sxx - sx * sx);
                [(sy - slope * sx) / s, slope]
            }
        }
    }

    fn value(self, [constant, factor]: [f64; 2], ranks: u32) -> f64 {
        constant + factor * self.base(ranks)
    }

    /// The form with the least error at `points`, which is above 0 at `target` ranks, and its error:
    /// with 3 points that at one left out.
    fn best(points: &[Point], target: u32) -> (Self, f64) {
        let error = |form: &Self| match points.len() {
            3.. => form.left_out(points),
            _ => {
                let fitted = form.fit(points);
                let error =
                    |point: &Point| (form.value(fitted, point.ranks) / point.value - 1.0).powi(2);
                points.iter().map(error).sum()
            }
        };
        let is_possible = |form: &Self| form.value(form.fit(points), target) > 0.0;
        let with_errors =
            Self::all(points.len()).filter(is_possible).map(|form| (form, error(&form)));
        let known = with_errors.filter(|(_, error)| error.is_finite());
        let best = known.min_by(|one, other| one.1.total_cmp(&other.1));
        best.unwrap_or((Self::Power(0), f64::INFINITY))
    }

    /// Largest relative error at a point of the form fitted to the others.
    fn left_out(self, points: &[Point]) -> f64 {
        let error = |at: usize| {
            let others = points.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<Point> = others.map(|(_, point)| *point).collect();
            let Point { ranks, value } =
                points.get(at).copied().unwrap_or(Point { ranks: 1, value: 1.0 });
            (self.value(self.fit(&others), ranks) / value - 1.0).abs()
        };
        (0..points.len()).map(error).fold(0.0, f64::max)
    }
}

/// Relative error of a form that gives a size without being rounded.
const EXACT: f64 = 1e-9;

/// Size at `target` ranks of what has these sizes at others, in ascending order; `None` if no form
/// gives all of them, or several do, of which none is exact and which differ at `target`.
pub(super) fn size(sizes: &[SizeOn], target: u32) -> Option<u64> {
    let &SizeOn { ranks: last, bytes: known } = sizes.last()?;
    if sizes.iter().all(|size| size.bytes == known) {
        return Some(known);
    }
    let unit =
        [8, 4, 2, 1].into_iter().find(|unit| sizes.iter().all(|size| size.bytes % unit == 0))?;
    let point = |size: &SizeOn| Point { ranks: size.ranks, value: precise(size.bytes) };
    let points: Vec<Point> = sizes.iter().map(point).collect();
    let value = |form: Form, ranks: u32| match form {
        Form::Power(_) => precise(known) * form.base(ranks) / form.base(last),
        Form::Logarithm => form.value(form.fit(&points), ranks),
    };
    let at =
        |form: Form, ranks: u32| whole(value(form, ranks) / precise(unit)).saturating_mul(unit);
    let holds = |form: &Form| sizes.iter().all(|size| at(*form, size.ranks) == size.bytes);
    let is_exact = |form: &Form| {
        let is_near =
            |point: &Point| (value(*form, point.ranks) - point.value).abs() <= EXACT * point.value;
        points.iter().all(is_near)
    };
    let forms = Form::all(sizes.len()).filter(|form| value(*form, target) > 0.0);
    let mut holding: Vec<Form> = forms.filter(holds).collect();
    // Small sizes, once they are rounded, are of many forms.
    if let Some(exact) = holding.iter().copied().find(is_exact) {
        holding = vec![exact];
    }
    let mut found = holding.into_iter().map(|form| at(form, target));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// How computation grows with the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Form of the growth.
    pub form: Form,
    /// Computation of the larger program over that of the largest trace.
    pub factor: f64,
    /// 95% interval of the factor, from 3 runs at each of 3 numbers of ranks on.
    pub interval: Option<[f64; 2]>,
    /// Largest relative error at a number of ranks that was left out, with 3 of them.
    pub left_out: Option<f64>,
}

/// Numbers of draws of an interval.
const DRAWS: usize = 1_000;

/// Growth from the largest trace to `target` ranks. `runs` are by ascending number of ranks.
pub(super) fn growth(runs: &[Runs], target: u32) -> Growth {
    let point = |runs: &Runs| Point { ranks: runs.ranks, value: median(runs.values.clone()) };
    let points: Vec<Point> = runs.iter().map(point).collect();
    let count = points.len();
    let (form, error) = Form::best(&points, target);
    // What computes nothing in a trace does not grow.
    let factor = |form: Form, points: &[Point]| {
        let last = points.last().map_or(0.0, |point| point.value);
        let factor = form.value(form.fit(points), target) / last;
        if factor.is_finite() { factor } else { 1.0 }
    };
    let suffices = count >= 3 && runs.iter().all(|runs| runs.values.len() >= 3);
    let interval = suffices.then(|| {
        let mut random = Random::new(1);
        let mut draw = || {
            let one = |Runs { ranks, values }: &Runs| {
                let any = |_| {
                    let at = random.below(values.len() as u64);
                    usize::try_from(at).ok().and_then(|at| values.get(at)).copied().unwrap_or(0.0)
                };
                Point { ranks: *ranks, value: median((0..values.len()).map(any).collect()) }
            };
            let drawn: Vec<Point> = runs.iter().map(one).collect();
            factor(Form::best(&drawn, target).0, &drawn)
        };
        let mut drawn: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
        drawn.sort_by(f64::total_cmp);
        [DRAWS / 40, DRAWS - 1 - DRAWS / 40].map(|at| drawn.get(at).copied().unwrap_or(0.0))
    });
    Growth {
        form,
        factor: factor(form, &points),
        interval,
        left_out: (count >= 3).then_some(error),
    }
}

/// Middle value, the mean of two in the middle.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |at: usize| values.get(at).copied().unwrap_or(0.0);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        at(half)
    } else {
        f64::midpoint(at(half.saturating_sub(1)), at(half))
    }
}

#[allow(clippy::cast_precision_loss, reason = "sizes below 2^53 are kept")]
const fn precise(size: u64) -> f64 {
    size as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_a_form_that_gives_all_of_them() {
        let size = |sizes: &[(u32, u64)], target| {
            let one = |&(ranks, bytes): &(u32, u64)| SizeOn { ranks, bytes };
            size(&sizes.iter().map(one).collect::<Vec<_>>(), target)
        };
        // Weak and strong scaling, a face of a cube, and a tree.
        assert_eq!(size(&[(4, 800), (8, 800)], 64), Some(800));
        assert_eq!(size(&[(2, 8_000), (4, 4_000), (8, 2_000)], 64), Some(248), "in whole doubles");
        assert_eq!(size(&[(8, 8_192), (27, 5_464 / 8 * 8), (64, 4_096)], 512), Some(2_048));
        assert_eq!(size(&[(4, 4_096), (16, 2_048), (64, 1_024)], 1_024), Some(256));
        assert_eq!(size(&[(2, 10), (4, 18), (8, 26)], 64), Some(50));
        assert_eq!(size(&[(2, 10), (4, 17), (8, 26)], 64), None);
        // No size is below nothing.
        assert_eq!(size(&[(2, 26), (4, 18), (8, 10)], 64), None);
        // Rounded to doubles, these are of several forms: the exact one counts, else none.
        assert_eq!(size(&[(4, 8), (8, 16)], 64), Some(128));
        assert_eq!(size(&[(4, 8), (16, 16)], 1_024), Some(128));
        assert_eq!(size(&[(4, 16), (8, 24)], 512), None);
    }

    #[test]
    fn growth_has_an_interval_from_three_runs_at_three_sizes_on() {
        let runs = |values: [f64; 3], count: u32| -> Vec<Runs> {
            let noisy =
                |value: f64| (0..count).map(move |run| value * (1.0 + 0.001 * f64::from(run)));
            [2, 4, 8]
                .into_iter()
                .zip(values)
                .map(|(ranks, value)| Runs { ranks, values: noisy(value).collect() })
                .collect()
        };
        let strong = growth(&runs([8.0, 4.0, 2.0], 3), 64);
        assert_eq!(strong.form, Form::Power(-6));
        assert!((strong.factor - 0.125).abs() < 1e-9, "{strong:?}");
        let [low, high] = strong.interval.unwrap();
        assert!(low < strong.factor && strong.factor < high && high - low < 0.001);
        // Of runs that differ by 20%, four times in five within its interval.
        let covers = |seed: u64| {
            let mut random = Random::new(seed);
            let mut noise =
                move || f64::from(u32::try_from(random.below(401)).unwrap()) / 1e3 - 0.2;
            let of = |(ranks, value): (u32, f64)| Runs {
                ranks,
                values: (0..5).map(|_| value * (1.0 + noise())).collect(),
            };
            let runs: Vec<Runs> = [(4, 16.0), (8, 8.0), (16, 4.0)].map(of).into();
            let last = median(runs[2].values.clone());
            let [low, high] = growth(&runs, 64).interval.unwrap();
            (low..=high).contains(&(1.0 / last))
        };
        let covered = (0..100).filter(|seed| covers(*seed)).count();
        assert!(covered >= 80, "{covered}");
        let tree = growth(&runs([11.0, 12.0, 13.0], 1), 64);
        assert_eq!((tree.form, tree.interval), (Form::Logarithm, None));
        assert!((tree.factor - 16.0 / 13.0).abs() < 1e-9 && tree.left_out.unwrap() < 1e-9);
        let falling = growth(&runs([10.0, 7.0, 4.0], 1), 64);
        assert!(falling.factor > 0.0 && falling.form != Form::Logarithm, "{falling:?}");
        assert!((growth(&runs([0.0; 3], 1), 64).factor - 1.0).abs() < 1e-9);
        let two = growth(&runs([5.0, 5.0, 5.0], 1)[..2], 64);
        assert_eq!((two.form, two.left_out), (Form::Power(0), None));
    }
}
