//! Words that threads use in turn. No two threads use one in the same window, so relaxed accesses
//! suffice.

use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Declares an atomic word with relaxed accesses.
macro_rules! word {
    ($name:ident, $atomic:ident, $integer:ident) => {
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub(super) struct $name($atomic);

        impl $name {
            #[inline]
            pub(super) fn get(&self) -> $integer {
                self.0.load(Relaxed)
            }

            #[inline]
            pub(super) fn set(&self, to: $integer) {
                self.0.store(to, Relaxed);
            }

            pub(super) fn get_mut(&mut self) -> &mut $integer {
                self.0.get_mut()
            }
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                Self::from(self.get())
            }
        }

        impl From<$integer> for $name {
            fn from(value: $integer) -> Self {
                Self(value.into())
            }
        }
    };
}

word!(Word32, AtomicU32, u32);
#[cfg(target_has_atomic = "64")]
word!(Word64, AtomicU64, u64);
