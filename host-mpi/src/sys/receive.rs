//! A receive that is taken back when nothing comes.

#![allow(unsafe_code, reason = "the bindings do not tell whether a request was cancelled")]

use std::mem::MaybeUninit;

use mpi::datatype::Equivalence;
use mpi::ffi;
use mpi::point_to_point::{Source, Status};
use mpi::raw::AsRaw;
use mpi::topology::AsCommunicator;
use mpi::topology::Process;

/// The tag of all messages: the bindings' own default.
const TAG: i32 = 0;

/// Tests until the receive is taken back: some milliseconds.
const TESTS: u32 = 1 << 14;

/// Posts a receive of a message from `peer`, tests it until the
/// message is there, and returns its length in bytes; `None` when none came
/// in [`TESTS`] tests: then the receive has been taken back.
///
/// Where the message does not fit into `buffer` MPI ends the job.
pub(crate) fn bounded(peer: &Process<'_>, buffer: &mut [u8]) -> Option<usize> {
    let length = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
    let mut request = MaybeUninit::uninit();
    let bytes = u8::equivalent_datatype();
    let communicator = peer.as_communicator().as_raw();
    // SAFETY: the buffer has `length` bytes and stays borrowed until the
    // request is complete or cancelled, which is before this function returns.
    unsafe {
        ffi::MPI_Irecv(
            buffer.as_mut_ptr().cast(),
            length,
            bytes.as_raw(),
            peer.source_rank(),
            TAG,
            communicator,
            request.as_mut_ptr(),
        );
    }
    // SAFETY: MPI_Irecv has written the request; an error would have ended the job.
    let mut request = unsafe { request.assume_init() };
    for _ in 0..TESTS {
        let (mut done, mut status) = (0, MaybeUninit::uninit());
        // SAFETY: all three point to local variables, the request is active.
        unsafe { ffi::MPI_Test(&raw mut request, &raw mut done, status.as_mut_ptr()) };
        if done != 0 {
            // SAFETY: MPI_Test writes the status of a request that is done.
            return received(unsafe { status.assume_init() });
        }
    }
    let (mut cancelled, mut status) = (0, MaybeUninit::uninit());
    // SAFETY: the request is active: the last test has said so.
    unsafe { ffi::MPI_Cancel(&raw mut request) };
    // SAFETY: both point to local variables; a cancelled receive completes.
    unsafe { ffi::MPI_Wait(&raw mut request, status.as_mut_ptr()) };
    // SAFETY: MPI_Wait has written the status.
    let status = unsafe { status.assume_init() };
    // SAFETY: both point to local variables.
    unsafe { ffi::MPI_Test_cancelled(&raw const status, &raw mut cancelled) };
    if cancelled == 0 { received(status) } else { None }
}

/// Bytes of what was received.
fn received(status: ffi::MPI_Status) -> Option<usize> {
    usize::try_from(Status::from_raw(status).count(u8::equivalent_datatype())).ok()
}
