//! Macros that declare enums together with their `Display` texts.

/// Declares enums with a `Display` text after each variant. The text may use the variant's fields;
/// fields of tuple variants get their names here.
macro_rules! worded {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident $(<$generic:ident>)? {
            $(
                $(#[$variant_attribute:meta])*
                $variant:ident
                $({ $($(#[$field_attribute:meta])* $field:ident: $type:ty,)* })?
                $(($inner:ident: $inner_type:ty))?
                => $text:literal $(, $argument:expr)*;
            )*
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum $name $(<$generic>)? {
            $(
                $(#[$variant_attribute])*
                $variant
                $({ $($(#[$field_attribute])* $field: $type,)* })?
                $(($inner_type))?,
            )*
        }

        impl $(<$generic: core::fmt::Display>)? core::fmt::Display for $name $(<$generic>)? {
            #[allow(unused_variables, reason = "a text need not name every field")]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $(
                        Self::$variant $({ $($field),* })? $(($inner))? => {
                            write!(f, $text $(, $argument)*)
                        }
                    )*
                }
            }
        }
    )*};
}

/// As `worded!`, for error enums: also implements `Error`.
macro_rules! errors {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident $(<$generic:ident>)? { $($variants:tt)* }
    ) => {
        $crate::worded::worded! { $(#[$attribute])* pub enum $name $(<$generic>)? { $($variants)* } }

        impl $(<$generic: core::fmt::Debug + core::fmt::Display>)? core::error::Error
            for $name $(<$generic>)?
        {
        }
    };
}

pub(crate) use {errors, worded};
