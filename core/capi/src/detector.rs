//! Streaming detector of protocol changes.

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

/// Settings of a streaming detector. Start from `loggap_detector_options_default`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DetectorOptions {
    /// Threshold: root mean square distance of the points ahead from the line,
    /// as a multiple of that of the current protocol's points; 2 as in the
    /// paper.
    pub factor: f64,
    /// Resolution of the values in ps; smaller deviations are insignificant.
    pub resolution_ps: f64,
    /// Points to look ahead, 3 to 8.
    pub points: u32,
}

/// A change that a streaming detector found.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DetectedChange {
    /// 1 if a change was found; otherwise all other fields are 0.
    pub found: u32,
    /// Index of the first point of the new protocol, counted from the first
    /// point pushed.
    pub index: u64,
    /// Last size of the old protocol. The change lies above it.
    pub before: u64,
    /// Upper bound of the first size of the new protocol.
    pub at: u64,
    /// g of the old protocol in ps; 0 if unknown.
    pub gap_ps: f64,
    /// G of the old protocol in ps per byte; 0 if unknown.
    pub gap_per_byte_ps: f64,
}

plain!(DetectorOptions);

/// Upper bound of `loggap_detector_bytes`, as a constant.
pub const LOGGAP_DETECTOR_BYTES: usize = 704;

const NEEDS: Sizer = Sizer::new().array::<Object<ChangeDetector>>(1);
const _: () = assert!(NEEDS.fits(LOGGAP_DETECTOR_BYTES), "the constant is too small");

/// Bytes of memory that `loggap_detector_init` needs.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_detector_bytes() -> usize {
    NEEDS.bytes()
}

/// Fills in the defaults: factor 2, three points ahead, a resolution of 1 ps.
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

/// Creates a detector in `memory`, which stays lent while the detector is in use.
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

/// Pushes the next point of a sweep, larger than the one before. A change is
/// reported once enough points after it confirm its position.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` for an invalid point (the detector is
/// unchanged), `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
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

/// Ends the sweep, and reports a change that was still waiting for further points.
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
