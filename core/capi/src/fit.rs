//! Fit of a sweep: protocol changes, ranges and a line per range.

use loggap_core::fit::{
    Bound, Change, Config, Detector, FitError, Line, LookAhead, Node, Point, PointError,
    Requirements, find_ranges, mark_outliers,
};
use loggap_core::stats::Confidence;

use crate::arena::{Arena, Sizer};
use crate::boundary::{Place, Places, input, plain, slice};
use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status, finish};

/// A value measured at one message size.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FitPoint {
    /// Message size in bytes.
    pub size: u64,
    /// Value in ps: finite and within 2^62.
    pub value_ps: f64,
    /// Standard error of the value in ps, 0 if unknown.
    pub sigma_ps: f64,
}

/// Options of a fit. Start from `loggap_fit_options_default`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FitOptions {
    /// Level of the intervals in percent, above 0 and below 100.
    pub confidence_percent: f64,
    /// Largest residual of a point within a range, relative to its value. A
    /// jump smaller than this does not split a range.
    pub tolerance: f64,
    /// Resolution of the values in ps: possible error of a value without noise.
    pub resolution_ps: f64,
    /// Maximum number of boundaries between segments, at most 15; 0 looks for no changes.
    pub max_changes: u32,
}

/// A fitted parameter with its confidence interval.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FitEstimate {
    /// Estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A range and its fitted line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FitSegment {
    /// Index of the first point.
    pub first: u64,
    /// Index of the last point, included.
    pub last: u64,
    /// Size of the first point: the largest size at which the range may begin.
    pub first_size: u64,
    /// Size of the last point.
    pub last_size: u64,
    /// Smallest size at which the range may begin.
    pub begins_low: u64,
    /// Number of points that the line was fitted to.
    pub points: u64,
    /// Number of points of the range that were left out as outliers.
    pub outliers: u64,
    /// g: value of the line at one byte, in ps; never negative.
    pub gap_ps: FitEstimate,
    /// G: ps per byte; never negative.
    pub gap_per_byte_ps: FitEstimate,
    /// Largest residual of a point, relative to its value.
    pub largest_deviation: f64,
    /// Jump of the value where a protocol change begins the range, in
    /// millionths; 0 if the curve only bends or no change begins it.
    pub jump_ppm: i32,
    /// Parameters clamped to 0 because they would be negative: 1 for g, 2 for
    /// G, 3 for both, 0 for none.
    pub bound: u32,
}

plain!(FitPoint, FitOptions);

impl FitOptions {
    fn config(&self, detector: Detector) -> Outcome<Config> {
        let option = |name| Detail::of(Status::Option).named(name);
        let confidence = Confidence::from_percent(self.confidence_percent);
        let confidence = confidence.ok_or(option("confidence_percent"))?;
        let Self { tolerance, resolution_ps: resolution, .. } = *self;
        for (name, value) in [("tolerance", tolerance), ("resolution_ps", resolution)] {
            if !(0.0..=1e18).contains(&value) {
                return Err(option(name));
            }
        }
        if self.max_changes > 15 {
            return Err(option("max_changes").found(self.max_changes.into()));
        }
        let max_changes = self.max_changes as usize;
        Ok(Config { confidence, tolerance, resolution, max_changes, detector, ..Config::default() })
    }
}

const fn sizer(points: usize) -> Sizer {
    Sizer::new().array::<Point>(points).array::<Node>(Requirements::new(points).nodes)
}

/// Maximum number of ranges.
const RANGES: usize = 16;

/// Sizes that `LOGGAP_FIT_BYTES` of the header assumes.
const _: () = assert!(size_of::<Point>() <= 32 && size_of::<Node>() <= 24, "a size is larger");

/// Fills in the defaults: 95 percent, a tolerance of 6 percent, a resolution of
/// 1 ps, up to 7 changes.
///
/// Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_fit_options_default(options: *mut FitOptions) -> i32 {
    let usual = Config::default();
    // SAFETY: by the contract of this function.
    let place = unsafe { Place::new(options) };
    let outcome = place.map(|mut place| {
        place.put(FitOptions {
            confidence_percent: 95.0,
            tolerance: usual.tolerance,
            resolution_ps: usual.resolution,
            max_changes: 7,
        });
    });
    // SAFETY: a null detail is allowed.
    unsafe { finish(outcome, core::ptr::null_mut()) }
}

/// Bytes of memory that `loggap_fit` needs for `points` points.
/// `LOGGAP_FIT_BYTES` is an upper bound of it as a constant expression.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_fit_bytes(points: usize) -> usize {
    sizer(points).bytes()
}

/// Fits a line to each range of a sweep of at least three `points` with
/// strictly ascending sizes. Ranges are split at protocol changes, and where a
/// residual would exceed the tolerance. Writes the segments by ascending size
/// to `segments` and their number to `count`.
///
/// Errors: `LOGGAP_STATUS_NO_DATA` below three points;
/// `LOGGAP_STATUS_MALFORMED` if the point `at` is invalid or its size does not
/// ascend; `LOGGAP_STATUS_FULL` if there are more than `capacity` segments: the
/// first ones have been written, and `count` is the number of all;
/// `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_fit(
    points: *const FitPoint,
    point_count: usize,
    options: *const FitOptions,
    memory: *mut u8,
    bytes: usize,
    segments: *mut FitSegment,
    capacity: usize,
    count: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let call = Call { points, point_count, options, memory, bytes, segments, capacity, count };
    // SAFETY: by the contract of this function.
    unsafe { call.finish(Detector::optimal(), detail) }
}

/// As `loggap_fit`, but detects changes in one pass that looks three points
/// ahead, as the paper does: less code and less work, but less sensitive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_fit_look_ahead(
    points: *const FitPoint,
    point_count: usize,
    options: *const FitOptions,
    memory: *mut u8,
    bytes: usize,
    segments: *mut FitSegment,
    capacity: usize,
    count: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let call = Call { points, point_count, options, memory, bytes, segments, capacity, count };
    // SAFETY: by the contract of this function.
    unsafe { call.finish(Detector::look_ahead(LookAhead::default()), detail) }
}

/// Arguments of a fit.
struct Call {
    points: *const FitPoint,
    point_count: usize,
    options: *const FitOptions,
    memory: *mut u8,
    bytes: usize,
    segments: *mut FitSegment,
    capacity: usize,
    count: *mut usize,
}

impl Call {
    /// Fits and returns the status.
    ///
    /// # Safety
    ///
    /// All pointers are null or satisfy the contract of `loggap_fit`.
    unsafe fn finish(self, detector: Detector, detail: *mut Detail) -> i32 {
        let run = || {
            // SAFETY: by the contract of this function.
            let mut count = unsafe { Place::new(self.count) }?;
            // SAFETY: by the contract of this function.
            let mut places = unsafe { Places::new(self.segments, self.capacity) }?;
            // SAFETY: by the contract of this function.
            let config = unsafe { input(self.options) }?.config(detector)?;
            // SAFETY: by the contract of this function.
            let given = unsafe { slice(self.points, self.point_count) }?;
            let sizer = sizer(given.len());
            // SAFETY: by the contract of this function.
            let mut arena = unsafe { Arena::new(self.memory, self.bytes, sizer) }?;
            let points = arena.array(given.len())?;
            for ((index, given), point) in (0..).zip(given).zip(points.iter_mut()) {
                *point = given.point().map_err(|failure| failure.at(index))?;
            }
            fit(points, &config, &mut arena, &mut places, &mut count)
        };
        // SAFETY: by the contract of this function.
        unsafe { finish(run(), detail) }
    }
}

fn fit(
    points: &mut [Point],
    config: &Config,
    arena: &mut Arena<'_>,
    places: &mut Places<FitSegment>,
    count: &mut Place<usize>,
) -> Outcome<()> {
    if points.len() < 3 {
        let few = Detail::because(Status::NoData, Reason::FewPoints);
        return Err(few.needed(3).found(points.len() as u64));
    }
    let nodes = arena.array(Requirements::new(points.len()).nodes)?;
    let (mut changes, mut starts) =
        (heapless::Vec::<_, RANGES>::new(), heapless::Vec::<_, RANGES>::new());
    mark_outliers(points);
    let points = &*points;
    find_ranges(&[points], config, nodes, &mut changes, &mut starts).map_err(no_fit)?;
    count.put(starts.len());
    let index_of = |size: u64| points.partition_point(|point| point.size() < size);
    for (index, &start) in starts.iter().enumerate() {
        let (first, next) = (index_of(start), starts.get(index + 1));
        let end = next.map_or(points.len(), |&next| index_of(next));
        let before = first.checked_sub(1).and_then(|before| points.get(before));
        let change = changes.iter().find(|change| change.splits && change.at == start);
        let range = points.get(first..end).unwrap_or_default();
        let mut segment = FitSegment::of(range, first, config);
        segment.begins_low = before.map_or(start, |point| point.size() + 1);
        if let Some(&Change { low, jump_ppm, .. }) = change {
            (segment.begins_low, segment.jump_ppm) = (low, jump_ppm);
        }
        if !places.put(index, segment) {
            let full = Detail::of(Status::Full).needed(starts.len() as u64);
            return Err(full.found(places.len() as u64));
        }
    }
    Ok(())
}

impl FitPoint {
    pub(crate) fn point(&self) -> Outcome<Point> {
        let point = Point::new(self.size, self.value_ps, self.sigma_ps);
        point.map_err(|error| {
            let reason = match error {
                PointError::Value => Reason::PointValue,
                PointError::Sigma => Reason::PointSigma,
            };
            Detail::because(Status::Malformed, reason)
        })
    }
}

impl FitSegment {
    /// Segment of the points of `range`, whose first point has the index `first`.
    fn of(range: &[Point], first: usize, config: &Config) -> Self {
        let line = Line::fit(range).unwrap_or_default();
        let quantile = line.quantile(config.confidence);
        let estimate = |value: f64, error: f64| FitEstimate {
            value,
            low: f64::max(value - quantile * error, 0.0),
            high: value + quantile * error,
        };
        let (head, tail) = (range.first().copied(), range.last().copied());
        Self {
            first: first as u64,
            last: (first + range.len()).saturating_sub(1) as u64,
            first_size: head.unwrap_or_default().size(),
            last_size: tail.unwrap_or_default().size(),
            points: line.count(),
            outliers: range.iter().filter(|point| point.is_outlier()).count() as u64,
            gap_ps: estimate(line.at_one(), line.at_one_error()),
            gap_per_byte_ps: estimate(line.slope(), line.slope_error()),
            largest_deviation: line.largest_deviation(range),
            bound: match line.bound() {
                Bound::Free => 0,
                Bound::Gap => 1,
                Bound::Slope => 2,
                Bound::Both => 3,
            },
            ..Self::default()
        }
    }
}

fn no_fit(error: FitError) -> Detail {
    match error {
        FitError::NoPoints => Detail::because(Status::NoData, Reason::FewPoints).needed(3),
        FitError::Order { index, size, .. } => {
            Detail::because(Status::Malformed, Reason::PointOrder).at(index as u64).found(size)
        }
        // Cannot happen: the memory was sized by the formula that the fit checks.
        FitError::Memory(_) => Detail::of(Status::Memory),
    }
}
