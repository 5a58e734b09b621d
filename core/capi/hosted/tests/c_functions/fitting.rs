//! The fit of a sweep and the streaming detector.

use crate::fuzzing::lent::{Lent, Plain};
use loggap_capi::{
    DetectedChange, DetectorOptions, FitOptions, FitPoint, FitSegment, Reason, StreamDetector,
};

const SIZES: [u64; 14] = [1, 2, 8, 32, 64, 128, 256, 400, 512, 600, 700, 800, 900, 1024];

/// 300 ns and 80 ps a byte; from 512 bytes on 900 ns and 40 ps a byte.
fn points() -> [FitPoint; 14] {
    SIZES.map(|size| {
        let rest = (size - 1) as f64;
        let value_ps = if size < 512 { 300e3 + 80.0 * rest } else { 900e3 + 40.0 * rest };
        FitPoint { size, value_ps, sigma_ps: 0.0 }
    })
}

fn usual() -> FitOptions {
    let mut options = FitOptions::zeros();
    assert_eq!(call!(loggap_fit_options_default(&raw mut options)), 0);
    options.max_changes = 1;
    options
}

#[test]
fn a_change_of_protocol_divides_the_sweep() {
    let (points, options) = (points(), usual());
    let memory = Lent::new(call!(loggap_fit_bytes(points.len())));
    let segments = Lent::new(2 * size_of::<FitSegment>());
    let mut count = 0_usize;
    gives!(
        Ok,
        loggap_fit(
            points.as_ptr(),
            points.len(),
            &raw const options,
            memory.pointer(),
            memory.length(),
            segments.pointer().cast(),
            2,
            &raw mut count,
        )
    );
    assert_eq!(count, 2);
    let second = segments.pointer().cast::<FitSegment>().wrapping_add(1);
    // SAFETY: two segments have been written there.
    let second = unsafe { second.read() };
    assert_eq!((second.first_size, second.begins_low, second.points), (512, 401, 6));
    assert!(memory.is_guarded() && segments.is_guarded());
}

#[test]
fn looking_ahead_finds_the_same_change_on_the_same_memory() {
    let (points, options) = (points(), usual());
    let memory = Lent::new(call!(loggap_fit_bytes(points.len())));
    let mut segments = [FitSegment::default(); 4];
    for _ in 0..2 {
        let mut count = 0_usize;
        gives!(
            Ok,
            loggap_fit_look_ahead(
                points.as_ptr(),
                points.len(),
                &raw const options,
                memory.pointer(),
                memory.length(),
                segments.as_mut_ptr(),
                segments.len(),
                &raw mut count,
            )
        );
        assert_eq!((count, segments[1].first_size), (2, 512));
    }
    assert!(memory.is_guarded());
}

#[test]
fn too_few_places_hold_the_first_segments() {
    let (points, options) = (points(), usual());
    let memory = Lent::new(call!(loggap_fit_bytes(points.len())));
    let places = Lent::new(size_of::<FitSegment>());
    let mut count = 0_usize;
    let fit = |bytes, capacity, count| {
        let (options, memory) = (&raw const options, memory.pointer());
        let (points, given) = (points.as_ptr(), points.len());
        let places = places.pointer().cast();
        let null = core::ptr::null_mut();
        call!(loggap_fit_look_ahead(
            points, given, options, memory, bytes, places, capacity, count, null
        ))
    };
    let status = fit(memory.length(), 1, &raw mut count);
    assert_eq!((status, count), (loggap_capi::Status::Full as i32, 2));
    // SAFETY: the first segment has been written there.
    assert_eq!(unsafe { places.pointer().cast::<FitSegment>().read() }.first_size, 1);
    let status = fit(memory.length() - 1, 1, &raw mut count);
    assert_eq!(status, loggap_capi::Status::Memory as i32);
    assert!(places.is_guarded() && memory.is_guarded());
}

#[test]
fn points_that_are_none_are_told_by_their_index() {
    let options = usual();
    let memory = Lent::new(call!(loggap_fit_bytes(14)));
    let mut count = 0_usize;
    let mut fit = |points: &[FitPoint]| {
        gives!(
            Malformed,
            loggap_fit(
                points.as_ptr(),
                points.len(),
                &raw const options,
                memory.pointer(),
                memory.length(),
                core::ptr::null_mut(),
                0,
                &raw mut count,
            )
        )
    };
    let mut wrong = points();
    wrong[5].size = 64;
    let detail = fit(&wrong);
    assert_eq!((detail.at, detail.reason), (5, Reason::PointOrder as u32));
    wrong[3].value_ps = f64::NAN;
    let detail = fit(&wrong);
    assert_eq!((detail.at, detail.reason), (3, Reason::PointValue as u32));
}

fn detector(memory: &Lent) -> *mut StreamDetector {
    let mut options = DetectorOptions::zeros();
    assert_eq!(call!(loggap_detector_options_default(&raw mut options)), 0);
    let mut detector = core::ptr::null_mut();
    gives!(
        Ok,
        loggap_detector_init(
            &raw mut detector,
            &raw const options,
            memory.pointer(),
            memory.length(),
        )
    );
    detector
}

#[test]
fn a_detector_tells_the_change_while_points_come() {
    let memory = Lent::new(call!(loggap_detector_bytes()));
    let detector = detector(&memory);
    let mut change = DetectedChange::default();
    for point in points() {
        gives!(Ok, loggap_detector_push(detector, &raw const point, &raw mut change));
        if change.found == 1 {
            break;
        }
    }
    if change.found == 0 {
        gives!(Ok, loggap_detector_finish(detector, &raw mut change));
    }
    assert_eq!((change.found, change.index, change.before, change.at), (1, 8, 400, 512));
    assert!(memory.is_guarded());
}

#[test]
fn a_detector_is_made_anew_on_the_memory_of_the_last_one() {
    let memory = Lent::new(call!(loggap_detector_bytes()));
    let mut change = DetectedChange::default();
    for _ in 0..2 {
        let detector = detector(&memory);
        let point = FitPoint { size: 1, value_ps: 1.0, sigma_ps: 0.0 };
        gives!(Ok, loggap_detector_push(detector, &raw const point, &raw mut change));
        let wrong = FitPoint { sigma_ps: -1.0, ..point };
        gives!(Malformed, loggap_detector_push(detector, &raw const wrong, &raw mut change));
        gives!(Ok, loggap_detector_finish(detector, &raw mut change));
    }
}

#[test]
fn memory_in_which_no_detector_was_made_is_no_detector() {
    let memory = Lent::filled(call!(loggap_detector_bytes()), 0);
    let detector: *mut StreamDetector = memory.pointer().cast();
    let mut change = DetectedChange::default();
    gives!(Handle, loggap_detector_finish(detector, &raw mut change));
    gives!(Null, loggap_detector_finish(core::ptr::null_mut(), &raw mut change));
    assert!(memory.is_untouched() && memory.is_guarded());
}
