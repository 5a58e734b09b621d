//! Texts, versions and the self-test.

use crate::fuzzing::lent::Plain;
use crate::text;
use core::ffi::{c_char, c_void};
use loggap_capi::{LOGGAP_ABI_VERSION, Reason, SelfTestCount, Sizes};

#[test]
fn every_number_has_a_text() {
    for status in [i32::MIN, -1, 0, 1, 23, 24, i32::MAX] {
        assert!(!text(call!(loggap_status_text(status))).is_empty());
    }
    for reason in 1..=Reason::NoiseEnd as u32 {
        assert!(!text(call!(loggap_reason_text(reason))).is_empty(), "{reason}");
    }
    for reason in [0, Reason::NoiseEnd as u32 + 1, u32::MAX] {
        assert!(text(call!(loggap_reason_text(reason))).is_empty());
    }
    assert!(text(call!(loggap_version())).contains('.'));
    assert_eq!(call!(loggap_abi_version()), LOGGAP_ABI_VERSION);
}

#[test]
fn a_header_of_other_sizes_is_refused_by_the_name_of_the_struct() {
    let sizes = Sizes::zeros();
    let (version, bytes) = (LOGGAP_ABI_VERSION, size_of::<Sizes>());
    let detail = gives!(Version, loggap_abi_check(version, &raw const sizes, bytes));
    assert_eq!(crate::name(&detail), "loggap_detail");
    gives!(Version, loggap_abi_check(version, &raw const sizes, bytes - 4));
    gives!(Version, loggap_abi_check(version + 1, &raw const sizes, bytes));
    gives!(Null, loggap_abi_check(version, core::ptr::null(), bytes));
}

/// Counts the checks into the number that `context` points to.
unsafe extern "C" fn count_check(
    context: *mut c_void,
    name: *const c_char,
    length: usize,
    passed: u32,
    computed: u64,
    answer: u64,
) {
    // SAFETY: the name has so many bytes.
    let name = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), length) };
    assert!(core::str::from_utf8(name).is_ok_and(|name| !name.is_empty()));
    assert_eq!((passed, computed), (1, answer));
    let counted = context.cast::<u32>();
    // SAFETY: the test passes a number, which nobody else uses meanwhile.
    unsafe { *counted += 1 };
}

#[test]
#[cfg_attr(miri, ignore = "computes for long in safe code")]
fn the_self_test_tells_each_check_and_counts_them() {
    let mut counted = 0_u32;
    let mut count = SelfTestCount::default();
    let context = (&raw mut counted).cast();
    gives!(Ok, loggap_selftest(Some(count_check), context, &raw mut count));
    assert_eq!((count.passed, count.failed), (counted, 0));
    let null = core::ptr::null_mut();
    gives!(Ok, loggap_selftest(None, null, null.cast()));
}
