//! Settings of the MPI library, through MPI's own tool interface (MPI 3.1,
//! §14.3.6): MCA parameters of Open MPI, control variables of MPICH.

#![allow(unsafe_code, reason = "the bindings have no safe form of the tool interface")]

use std::ffi::{CStr, CString, c_int};
use std::mem::MaybeUninit;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::LazyLock;

use mpi::ffi;

/// Value of a setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Value {
    /// A whole number.
    Number(i64),
    /// Text.
    Text(String),
}

/// True if the tool interface has been initialised, which happens once for the
/// life of the process: MPICH 4.0 finds no settings after it was finalised and
/// initialised again.
static IS_THERE: LazyLock<bool> = LazyLock::new(|| {
    let (mut level, mut provided) = (0, 0);
    // SAFETY: the number is a local variable.
    let queried = unsafe { ffi::MPI_Query_thread(&raw mut level) };
    // Open MPI 4.1 would take another level for that of MPI.
    // SAFETY: the number is a local variable.
    queried == SUCCESS && unsafe { ffi::MPI_T_init_thread(level, &raw mut provided) } == SUCCESS
});

const SUCCESS: c_int = ffi::MPI_SUCCESS as c_int;

/// Value of the setting `name`; `None` if this library has no setting of that
/// name, or one of another type.
pub(crate) fn read(name: &str) -> Option<Value> {
    let name = CString::new(name).ok()?;
    let mut index = 0;
    if !*IS_THERE {
        return None;
    }
    // SAFETY: the name ends with a zero, the index is a local variable.
    let outcome = unsafe { ffi::MPI_T_cvar_get_index(name.as_ptr(), &raw mut index) };
    if outcome == SUCCESS { read_at(index) } else { None }
}

/// Value of the setting at `index`.
fn read_at(index: c_int) -> Option<Value> {
    let size = size_of_type(index)?;
    let mut handle = MaybeUninit::uninit();
    let mut count = 0;
    // SAFETY: the setting is bound to no object; both point to local variables.
    let allocated = unsafe {
        ffi::MPI_T_cvar_handle_alloc(index, null_mut(), handle.as_mut_ptr(), &raw mut count)
    };
    if allocated != SUCCESS {
        return None;
    }
    // SAFETY: the call has succeeded.
    let mut handle = unsafe { handle.assume_init() };
    let bytes = usize::try_from(count).ok()?.checked_mul(size)?;
    // Words, so that numbers are aligned, and a zero after text.
    let mut words = vec![0_u64; bytes / 8 + 2];
    // SAFETY: the memory holds `count` elements of `size` bytes.
    let outcome = unsafe { ffi::MPI_T_cvar_read(handle, words.as_mut_ptr().cast()) };
    // SAFETY: the handle is freed by this, and not used afterwards.
    unsafe { ffi::MPI_T_cvar_handle_free(&raw mut handle) };
    (outcome == SUCCESS).then(|| value(&words, size, count))?
}

/// Size of an element of the setting at `index`, in bytes.
fn size_of_type(index: c_int) -> Option<usize> {
    let (mut verbosity, mut bind, mut scope, mut size) = (0, 0, 0, 0);
    let mut datatype = MaybeUninit::uninit();
    // SAFETY: texts that are not wanted may be null with a null length; all
    // others point to local variables.
    let outcome = unsafe {
        ffi::MPI_T_cvar_get_info(
            index,
            null_mut(),
            null_mut(),
            &raw mut verbosity,
            datatype.as_mut_ptr(),
            without_provenance_mut(0),
            null_mut(),
            null_mut(),
            &raw mut bind,
            &raw mut scope,
        )
    };
    if outcome != SUCCESS {
        return None;
    }
    // SAFETY: the call has succeeded and has written the type.
    let datatype = unsafe { datatype.assume_init() };
    // SAFETY: a predefined type of MPI, and a local variable.
    unsafe { ffi::MPI_Type_size(datatype, &raw mut size) };
    usize::try_from(size).ok()
}

/// `count` elements of `size` bytes in `words` as a value: characters are text,
/// anything else is one number.
fn value(words: &[u64], size: usize, count: c_int) -> Option<Value> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    match (size, count) {
        (1, _) => {
            let text = CStr::from_bytes_until_nul(&bytes).ok()?;
            Some(Value::Text(text.to_string_lossy().into_owned()))
        }
        (4, 1) => {
            let number = bytes.first_chunk::<4>()?;
            Some(Value::Number(i32::from_ne_bytes(*number).into()))
        }
        (8, 1) => Some(Value::Number(i64::from_ne_bytes(*bytes.first_chunk::<8>()?))),
        _ => None,
    }
}
