//! Self-test of the core.

use core::ffi::{c_char, c_void};

use loggap_core::selftest::{Check, run};

use crate::boundary::{Place, plain};
use crate::status::{Detail, Status, finish};

/// Receives each check of the self-test. `name` has `length` bytes and no
/// terminating zero byte; `passed` is 1 or 0. `computed` is 0 if nothing was
/// computed.
pub type CheckFunction = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        name: *const c_char,
        length: usize,
        passed: u32,
        computed: u64,
        answer: u64,
    ),
>;

/// Numbers of passed and failed checks.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SelfTestCount {
    /// Checks with the right answer.
    pub passed: u32,
    /// All other checks.
    pub failed: u32,
}

plain!(SelfTestCount);

/// Solves small problems with known answers in every part of the core, to show
/// that it was compiled, linked and stored correctly for this machine. Takes
/// about 7 KiB of stack on a Cortex-M4F. `report` and `count` may be null.
///
/// Errors: `LOGGAP_STATUS_SELF_TEST` with the number of wrong answers in
/// `found`; `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_selftest(
    report: CheckFunction,
    context: *mut c_void,
    count: *mut SelfTestCount,
    detail: *mut Detail,
) -> i32 {
    let test = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::optional(count) }?;
        let counted = run(|check| tell(report, context, check));
        place.put(SelfTestCount { passed: counted.passed, failed: counted.failed });
        if counted.failed > 0 {
            return Err(Detail::of(Status::SelfTest).found(counted.failed.into()));
        }
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(test(), detail) }
}

fn tell(report: CheckFunction, context: *mut c_void, check: &Check) {
    let Some(report) = report else { return };
    let (name, passed) = (check.name, check.passed().into());
    let computed = check.computed.unwrap_or_default();
    // SAFETY: the caller of the library vouches for function and context; the
    // name is static.
    unsafe { report(context, name.as_ptr().cast(), name.len(), passed, computed, check.answer) };
}
