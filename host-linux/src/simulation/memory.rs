//! Owned memory for a simulation.

use std::io;

use loggap_core::sim::{Memory, Requirements};

use crate::sys::pages::Pages;

/// Declares a struct that owns each part of the `Memory` that it lends.
macro_rules! owned_memory {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident;
        $($(#[$_part:meta])* $part:ident: $element:ty,)*
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name {
            $($part: Pages<$element>,)*
        }

        impl $name {
            /// Allocates as much as `requirements` say.
            ///
            /// # Errors
            ///
            /// The kernel's, if it has not enough memory.
            $vis fn new(requirements: &Requirements) -> io::Result<Self> {
                Ok(Self { $($part: Pages::zeroed(requirements.$part)?,)* })
            }

            /// Lends all parts.
            $vis fn lend(&mut self) -> Memory<'_> {
                Memory { $($part: &mut self.$part,)* }
            }
        }
    };
}

pub(super) use owned_memory;

loggap_core::with_memory_parts! {
    owned_memory
    /// Owner of the parts of [`Memory`], each as long as a simulation requires.
    pub struct OwnedMemory;
}
