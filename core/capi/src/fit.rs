//! The optimal piecewise-linear fit of a sweep.

use loggap_core::fit::{
    Cell, Config, Detector, Estimate, FitError, LookAhead, Node, Point, PointError, Segment,
    Segmentation,
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
    /// The value in ps: finite and within 2^62.
    pub value_ps: f64,
    /// Its standard error in ps, 0 where unknown.
    pub sigma_ps: f64,
}

/// What a fit is to do. Begin with `loggap_fit_options_default`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FitOptions {
    /// Level of the intervals in percent, above 0 and below 100.
    pub confidence_percent: f64,
    /// A change that moves the line nowhere by this fraction of its value is
    /// none; 0 reports every significant one.
    pub tolerance: f64,
    /// Resolution of the values in ps.
    pub resolution_ps: f64,
    /// Most changes to look for, at most 15.
    pub max_changes: u32,
}

/// A fitted number with its interval.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FitEstimate {
    /// The number.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The line of one protocol.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FitSegment {
    /// Index of the first point.
    pub first: u64,
    /// Index of the last point, included.
    pub last: u64,
    /// Size of the first point: where the protocol begins at the latest.
    pub first_size: u64,
    /// Size of the last point.
    pub last_size: u64,
    /// The protocol begins at this size at the earliest.
    pub begins_low: u64,
    /// Points that the line was fitted to.
    pub points: u64,
    /// Points of the range left out as outliers.
    pub outliers: u64,
    /// g: the value at one byte, in ps.
    pub gap_ps: FitEstimate,
    /// G: ps per byte.
    pub gap_per_byte_ps: FitEstimate,
    /// Sum of squared residuals over points - 2, in ps^2.
    pub residual_mean_square: f64,
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
        Ok(Config { confidence, tolerance, resolution, max_changes, detector })
    }
}

const fn sizer(points: usize, max_changes: usize) -> Sizer {
    let needs = Segmentation::requirements(points, max_changes);
    Sizer::new()
        .array::<Point>(points)
        .array::<Node>(needs.nodes)
        .array::<Cell>(needs.cells)
        .array::<Segment>(needs.segments)
}

/// Fills in the usual options: 95 percent, a tolerance of 5 percent, a
/// resolution of 1 ps, up to 7 changes.
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

/// Bytes to lend to `loggap_fit` for so many points and changes.
/// `LOGGAP_FIT_BYTES` is the same as a constant expression, or a little more.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_fit_bytes(points: usize, max_changes: usize) -> usize {
    sizer(points, max_changes).bytes()
}

/// Finds the protocols in a sweep of at least three `points`, which ascend
/// strictly by size, and fits a line to each. Puts them by ascending size to
/// `segments` and their number to `count`; there is one more than changes.
///
/// Errors: `LOGGAP_STATUS_NO_DATA` below three points;
/// `LOGGAP_STATUS_MALFORMED` for the point `at` whose numbers are none or
/// whose size does not ascend; `LOGGAP_STATUS_FULL` where `capacity` is less
/// than the segments: it holds the first ones, and `count` says how many there
/// are; `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION`, `LOGGAP_STATUS_NULL`,
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

/// Like `loggap_fit`, but finds the changes in one pass that looks three
/// points ahead, as the paper does: less code and far less work than the
/// optimal partition, and it sees less.
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

/// What the caller of a fit passes.
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
    /// Fits, and says what came of it.
    ///
    /// # Safety
    ///
    /// All pointers are null or as `loggap_fit` wants them.
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
            let sizer = sizer(given.len(), config.max_changes);
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
    points: &[Point],
    config: &Config,
    arena: &mut Arena<'_>,
    places: &mut Places<FitSegment>,
    count: &mut Place<usize>,
) -> Outcome<()> {
    let needs = Segmentation::requirements(points.len(), config.max_changes);
    let nodes = arena.array(needs.nodes)?;
    let cells = arena.array(needs.cells)?;
    let segments = arena.array(needs.segments)?;
    let mut segmentation = Segmentation::new(nodes, cells, segments);
    let fit = segmentation.run(points, config).map_err(no_fit)?;
    let found = fit.segments();
    count.put(found.len());
    for (index, segment) in found.iter().enumerate() {
        if !places.put(index, FitSegment::from_core(segment)) {
            let full = Detail::of(Status::Full).needed(found.len() as u64);
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
    fn from_core(segment: &Segment) -> Self {
        let estimate = |estimate: &Estimate| FitEstimate {
            value: estimate.value,
            low: estimate.low,
            high: estimate.high,
        };
        Self {
            first: segment.first as u64,
            last: segment.last as u64,
            first_size: segment.first_size,
            last_size: segment.last_size,
            begins_low: segment.begins.low,
            points: segment.points as u64,
            outliers: segment.outliers as u64,
            gap_ps: estimate(&segment.gap),
            gap_per_byte_ps: estimate(&segment.gap_per_byte),
            residual_mean_square: segment.residual_mean_square,
        }
    }
}

fn no_fit(error: FitError) -> Detail {
    match error {
        FitError::TooFewPoints(count) => {
            Detail::because(Status::NoData, Reason::FewPoints).needed(3).found(count as u64)
        }
        FitError::Order { index, size } => {
            Detail::because(Status::Malformed, Reason::PointOrder).at(index as u64).found(size)
        }
        // Lent by the same formula as the one that complains.
        FitError::Memory(_) => Detail::of(Status::Memory),
    }
}
