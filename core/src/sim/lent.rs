//! Lent memory, divided into named parts.

/// Declares `Memory`, which borrows a slice for each part, and `Requirements`, with the number of
/// elements of each part and some further fields.
macro_rules! lent_memory {
    (
        further { $($(#[$further_doc:meta])* $further:ident: $further_type:ty,)* }
        $($(#[$doc:meta])* $part:ident: $element:ty,)*
    ) => {
        /// Number of elements of each part of [`Memory`].
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct Requirements {
            $(
                #[doc = concat!("[`Memory::", stringify!($part), "`].")]
                pub $part: usize,
            )*
            $($(#[$further_doc])* pub $further: $further_type,)*
        }

        impl Requirements {
            /// Size of all parts together, bytes; saturating.
            #[must_use]
            pub const fn bytes(&self) -> u64 {
                let mut bytes = 0u64;
                $(
                    let part = (self.$part as u64).saturating_mul(size_of::<$element>() as u64);
                    bytes = bytes.saturating_add(part);
                )*
                bytes
            }
        }

        /// Lent memory in parts, of the sizes in [`Requirements`]. The content on entry does not
        /// matter.
        #[derive(Debug, Default)]
        pub struct Memory<'m> {
            $($(#[$doc])* pub $part: &'m mut [$element],)*
        }

        impl Memory<'_> {
            /// Shortens each part to its required length; `None` if one is shorter.
            pub(super) fn cut(self, requirements: &Requirements) -> Option<Self> {
                Some(Self { $($part: self.$part.get_mut(..requirements.$part)?,)* })
            }

            /// Takes the first elements of each part, as many as required.
            #[allow(dead_code, reason = "not all memory is divided")]
            pub(super) fn split_off(&mut self, requirements: &Requirements) -> Option<Self> {
                Some(Self { $($part: self.$part.split_off_mut(..requirements.$part)?,)* })
            }
        }
    };
}

pub(super) use lent_memory;

/// Lent elements that no index can make panic: one out of range reads and writes a sentinel, and is
/// noted when it writes. Debug builds assert.
#[derive(Debug)]
pub(super) struct Checked<'m, T> {
    all: &'m mut [T],
    sentinel: T,
    lost: bool,
}

impl<'m, T: Default> Checked<'m, T> {
    pub(super) fn new(all: &'m mut [T]) -> Self {
        Self { all, sentinel: T::default(), lost: false }
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// True if an element was written that does not exist.
    pub(super) const fn lost(&self) -> bool {
        self.lost
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.all.len(), "no element {index}");
        self.all.get(index as usize).unwrap_or(&self.sentinel)
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.all.get(index as usize)
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut T {
        debug_assert!((index as usize) < self.all.len(), "no element {index}");
        self.all.get_mut(index as usize).unwrap_or_else(|| {
            self.lost = true;
            &mut self.sentinel
        })
    }
}
