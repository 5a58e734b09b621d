//! Static memory that is lent to the core.

use core::mem::MaybeUninit;

/// A `&'static mut [T]` of that many default values, filled in place: an
/// array built on the stack and moved would need the stack twice. Returns
/// `None` from the calling function the second time.
#[macro_export]
macro_rules! lend {
    ($type:ty, $count:expr) => {
        $crate::lend::filled(
            cortex_m::singleton!(: [core::mem::MaybeUninit<$type>; $count] =
                [const { core::mem::MaybeUninit::uninit() }; $count])?,
        )
    };
}

/// Fills `memory` with default values.
pub fn filled<T: Default>(memory: &'static mut [MaybeUninit<T>]) -> &'static mut [T] {
    for slot in memory.iter_mut() {
        slot.write(T::default());
    }
    // SAFETY: every element has just been written, and `MaybeUninit<T>` has
    // the layout of `T`.
    unsafe { &mut *(core::ptr::from_mut(memory) as *mut [T]) }
}
