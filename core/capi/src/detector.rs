//! Changes found while a sweep runs.

use loggap_core::fit::{ChangeDetector, Detected, LookAhead};

use crate::arena::{Arena, Sizer};
use crate::boundary::{Place, input, plain};
use crate::fit::FitPoint;
use crate::object::{Marked, Object};
use crate::status::{Detail, Outcome, Status, finish};

/// A streaming detector of protocol changes, see `loggap_detector_init`.
#[derive(Debug)]
pub struct StreamDetector {
    _content: ChangeDetector,
}

impl Marked for ChangeDetector {
    const MARK: u64 = u64::from_le_bytes(*b"lgDetect");
}

/// Settings of a streaming detector. Begin with
/// `loggap_detector_options_default`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DetectorOptions {
    /// How many times as far as the points of the present protocol those
    /// ahead must lie from its line; 2 as in the paper.
    pub factor: f64,
    /// Resolution of the values in ps.
    pub resolution_ps: f64,
    /// Points to look ahead, 3 to 8.
    pub points: u32,
}

/// A change that a streaming detector found.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DetectedChange {
    /// 1 where a change was found; otherwise the rest is 0.
    pub found: u32,
    /// Index of the first point of the new protocol, counted from the first
    /// point pushed.
    pub index: u64,
    /// Last size of the old protocol. The change lies above it.
    pub before: u64,
    /// First size of the new protocol, at the latest.
    pub at: u64,
    /// g of the old protocol in ps; 0 where it is not known.
    pub gap_ps: f64,
    /// G of the old protocol in ps per byte; 0 where it is not known.
    pub gap_per_byte_ps: f64,
}

plain!(DetectorOptions);

/// Bytes to lend to `loggap_detector_init`; `loggap_detector_bytes` says how
/// many of them are needed.
pub const LOGGAP_DETECTOR_BYTES: usize = 704;

const NEEDS: Sizer = Sizer::new().array::<Object<ChangeDetector>>(1);
const _: () = assert!(NEEDS.fits(LOGGAP_DETECTOR_BYTES), "the constant is too small");

/// Bytes to lend to `loggap_detector_init`.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_detector_bytes() -> usize {
    NEEDS.bytes()
}

/// Fills in the usual settings: factor 2, three points ahead, 1 ps.
///
/// Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_detector_options_default(options: *mut DetectorOptions) -> i32 {
    // SAFETY: by the contract of this function.
    let place = unsafe { Place::new(options) };
    let usual = DetectorOptions { factor: 2.0, resolution_ps: 1.0, points: 3 };
    let outcome = place.map(|mut place| place.put(usual));
    // SAFETY: a null detail is allowed.
    unsafe { finish(outcome, core::ptr::null_mut()) }
}

/// Makes a detector in `memory`, which is lent for as long as it is used.
///
/// Errors: `LOGGAP_STATUS_OPTION`, `LOGGAP_STATUS_MEMORY`,
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_detector_init(
    detector: *mut *mut StreamDetector,
    options: *const DetectorOptions,
    memory: *mut u8,
    bytes: usize,
    detail: *mut Detail,
) -> i32 {
    let init = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(detector) }?;
        // SAFETY: by the contract of this function.
        let settings = unsafe { input(options) }?.settings()?;
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::new(memory, bytes, NEEDS) }?;
        let object = arena.object(Object::new(ChangeDetector::new(settings)))?;
        place.put(object.cast());
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(init(), detail) }
}

impl DetectorOptions {
    fn settings(&self) -> Outcome<LookAhead> {
        let option = |name| Detail::of(Status::Option).named(name);
        let Self { factor, resolution_ps: resolution, points } = *self;
        for (name, value) in [("factor", factor), ("resolution_ps", resolution)] {
            if !(0.0..=1e18).contains(&value) {
                return Err(option(name));
            }
        }
        if !(3..=8).contains(&points) {
            return Err(option("points").found(points.into()));
        }
        Ok(LookAhead { factor, points: points as usize, resolution })
    }
}

/// Takes the next point of a sweep, larger than the one before. A change is
/// told once the points after it show where it is.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` for numbers that are no point (the
/// detector is as before), `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_detector_push(
    detector: *mut StreamDetector,
    point: *const FitPoint,
    change: *mut DetectedChange,
    detail: *mut Detail,
) -> i32 {
    let push = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(change) }?;
        // SAFETY: by the contract of this function.
        let point = unsafe { input(point) }?.point()?;
        // SAFETY: by the contract of this function; a detector is its object.
        let object = unsafe { Object::<ChangeDetector>::at(detector.cast()) }?;
        place.put(told(object.content.push(point)));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(push(), detail) }
}

/// Ends the sweep: a change that only further points would have told the place
/// of.
///
/// Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_detector_finish(
    detector: *mut StreamDetector,
    change: *mut DetectedChange,
    detail: *mut Detail,
) -> i32 {
    let end = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(change) }?;
        // SAFETY: by the contract of this function; a detector is its object.
        let object = unsafe { Object::<ChangeDetector>::at(detector.cast()) }?;
        place.put(told(object.content.finish()));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(end(), detail) }
}

fn told(change: Option<Detected>) -> DetectedChange {
    let Some(change) = change else { return DetectedChange::default() };
    DetectedChange {
        found: 1,
        index: change.index as u64,
        before: change.before,
        at: change.at,
        gap_ps: change.line.gap().unwrap_or_default(),
        gap_per_byte_ps: change.line.gap_per_byte().unwrap_or_default(),
    }
}
