//! Environment variables of this process, for the MPI library to read.

#![allow(unsafe_code, reason = "the standard library cannot know that no other thread runs")]

/// Sets the variable `name`, unless it is set already. Call it only at the
/// beginning of `main`, before the process starts a thread and before MPI is
/// initialised.
pub(crate) fn set_unless_given(name: &str, value: &str) {
    if std::env::var_os(name).is_some() {
        return;
    }
    // SAFETY: no other thread runs yet, so none accesses the environment at the
    // same time: this is called first in `main`.
    unsafe { std::env::set_var(name, value) };
}
