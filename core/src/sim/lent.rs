//! Memory in parts, each named once.

/// Declares `Memory`, which borrows a slice for each part, and `Requirements`,
/// which has the number of elements of each and some further fields.
macro_rules! lent_memory {
    (
        parts { $($(#[$doc:meta])* $part:ident: $element:ty,)* }
        further { $($(#[$further_doc:meta])* $further:ident: $further_type:ty,)* }
    ) => {
        /// Elements of each part of [`Memory`].
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
            /// Bytes of all parts together; saturating.
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

        /// Memory in parts; see [`Requirements`] for how much of each. Content on entry
        /// does not matter.
        #[derive(Debug, Default)]
        pub struct Memory<'m> {
            $($(#[$doc])* pub $part: &'m mut [$element],)*
        }

        impl Memory<'_> {
            /// The same, each part as long as required; `None` if one is shorter.
            pub(super) fn cut(self, requirements: &Requirements) -> Option<Self> {
                Some(Self { $($part: self.$part.get_mut(..requirements.$part)?,)* })
            }
        }
    };
}

pub(super) use lent_memory;

/// Lent elements. Where an index were none of theirs, reads give a default element and
/// writes are lost, so that no index can stop the program.
#[derive(Debug)]
pub(super) struct Checked<'m, T> {
    all: &'m mut [T],
    sentinel: T,
}

impl<'m, T: Default> Checked<'m, T> {
    pub(super) fn new(all: &'m mut [T]) -> Self {
        Self { all, sentinel: T::default() }
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.all.len(), "no element {index}");
        self.all.get(index as usize).unwrap_or(&self.sentinel)
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut T {
        debug_assert!((index as usize) < self.all.len(), "no element {index}");
        self.all.get_mut(index as usize).unwrap_or(&mut self.sentinel)
    }
}
