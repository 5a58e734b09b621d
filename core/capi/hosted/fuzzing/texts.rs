//! Texts, versions and defaults.

use super::lent::Plain;
use super::numbers::Numbers;
use super::place::{Place, Told, scribbled};
use core::ffi::{CStr, c_char};
use loggap_capi::{
    AssessOptions, Bounds, DetectorOptions, FitOptions, LOGGAP_ABI_VERSION, PatternOptions, Sizes,
    Status,
};

const NAMES: [&[u8]; 4] = [b"gather", b"binomialtreebcast", b"random-pairs", b"resnet152"];

fn length(text: *const c_char) -> usize {
    assert!(!text.is_null());
    // SAFETY: a text of the library, ended by a zero byte.
    unsafe { CStr::from_ptr(text) }.to_bytes().len()
}

pub(super) fn texts(input: &mut Numbers<'_>) {
    let number = input.word();
    assert!(length(call!(loggap_status_text(number.cast_signed()))) > 0);
    assert_eq!(length(call!(loggap_reason_text(number))) > 0, (1..=81).contains(&number));
    defaults(input);
    name(input);
    let told = Told::new(input);
    let sizes = scribbled(Sizes::zeros(), input);
    let sizes = Place::holding(input, &[sizes]);
    let version = if input.seldom() { number } else { LOGGAP_ABI_VERSION };
    let bytes = if input.seldom() { input.byte().into() } else { size_of::<Sizes>() };
    let status = call!(loggap_abi_check(version, sizes.pointer(), bytes, told.pointer()));
    told.check(status, &[Status::Version, Status::Null, Status::Alignment]);
    assert_ne!(status, 0, "zeros, or nearly");
}

fn defaults(input: &mut Numbers<'_>) {
    macro_rules! filled_in {
        ($type:ty, $name:ident($($argument:expr),*)) => {{
            let place = Place::<$type>::new(input);
            let status = call!($name(place.pointer(), $($argument),*));
            place.holds(status);
            assert_eq!(status == 0, place.is_right());
        }};
    }
    match input.below(5) {
        0 => filled_in!(AssessOptions, loggap_assess_options_default()),
        1 => filled_in!(Bounds, loggap_bounds_default()),
        2 => filled_in!(DetectorOptions, loggap_detector_options_default()),
        3 => filled_in!(FitOptions, loggap_fit_options_default()),
        _ => filled_in!(PatternOptions, loggap_pattern_options_default(3, 9)),
    }
}

fn name(input: &mut Numbers<'_>) {
    let (told, kind) = (Told::new(input), Place::<u32>::new(input));
    let name = match input.below(8) {
        known @ 0..4 => NAMES[known].to_vec(),
        _ => {
            let count = input.below(30);
            input.take(count).to_vec()
        }
    };
    let (first, length) = (name.as_ptr().cast(), name.len());
    let status = call!(loggap_pattern_named(first, length, kind.pointer(), told.pointer()));
    told.check(status, &[Status::UnknownName, Status::Null, Status::Alignment]);
    kind.holds(status);
    if status == 0 {
        assert!(kind.get() <= 26);
    }
}
