//! Variables of this process's own environment, for the MPI library to read.

#![allow(unsafe_code, reason = "the standard library cannot know that no other thread runs")]

/// Sets the variable `name`, unless somebody has set it. Only at the beginning
/// of `main`, before the process starts a thread and before MPI is
/// initialised.
pub(crate) fn set_unless_given(name: &str, value: &str) {
    if std::env::var_os(name).is_some() {
        return;
    }
    // SAFETY: no other thread runs yet, so that none reads or writes the
    // environment at the same time: the caller is the first thing that `main`
    // does.
    unsafe { std::env::set_var(name, value) };
}
