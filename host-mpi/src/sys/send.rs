//! Sends that are started now and completed later.

#![allow(unsafe_code, reason = "the bindings complete all sends within the scope that begins them")]

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

use mpi::datatype::Equivalence;
use mpi::ffi;
use mpi::point_to_point::Destination;
use mpi::raw::AsRaw;
use mpi::topology::AsCommunicator;
use mpi::topology::Process;

use super::TAG;
use crate::watch::Watch;

/// Maximum number of open sends; a further one waits for all of them.
const MOST_OPEN: usize = 1024;

/// Open sends of one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenSends(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    requests: Vec<ffi::MPI_Request>,
    /// Message that [`OpenSends::while_open`] has borrowed.
    message: Option<*const [u8]>,
}

impl OpenSends {
    /// Runs `body`, in which sends of `message` may stay open, and completes
    /// them.
    pub(crate) fn while_open<R>(
        &self,
        message: &[u8],
        watch: &Watch,
        body: impl FnOnce() -> R,
    ) -> R {
        let mut state = self.0.borrow_mut();
        state.message = Some(message);
        state.requests.reserve(MOST_OPEN);
        drop(state);
        // Completes them also if `body` panics.
        let _train = Train { open: self, watch };
        body()
    }

    /// Starts to send `message` to `peer`. Does nothing and returns false
    /// unless it is the message of [`OpenSends::while_open`].
    #[inline]
    pub(crate) fn begin(&self, peer: &Process<'_>, message: &[u8], watch: &Watch) -> bool {
        let mut state = self.0.borrow_mut();
        if !state.message.is_some_and(|open| std::ptr::eq(open, message)) {
            return false;
        }
        if state.requests.len() == MOST_OPEN {
            state.complete(watch);
        }
        let mut request = MaybeUninit::uninit();
        let bytes = u8::equivalent_datatype();
        let length = i32::try_from(message.len()).unwrap_or(i32::MAX);
        // SAFETY: this is the memory that `while_open` has borrowed and does
        // not give back before the request is complete.
        unsafe {
            ffi::MPI_Isend(
                message.as_ptr().cast(),
                length,
                bytes.as_raw(),
                peer.destination_rank(),
                TAG,
                peer.as_communicator().as_raw(),
                request.as_mut_ptr(),
            );
        }
        // SAFETY: MPI_Isend has written the request; an error would have ended the job.
        state.requests.push(unsafe { request.assume_init() });
        true
    }
}

impl State {
    fn complete(&mut self, watch: &Watch) {
        for mut request in self.requests.drain(..) {
            watch.during(|| {
                // SAFETY: the request is active, and MPI ignores the status.
                unsafe { ffi::MPI_Wait(&raw mut request, ffi::RSMPI_STATUS_IGNORE) }
            });
        }
    }
}

/// Guard during whose life sends may be open.
struct Train<'o> {
    open: &'o OpenSends,
    watch: &'o Watch,
}

impl Drop for Train<'_> {
    fn drop(&mut self) {
        let mut state = self.open.0.borrow_mut();
        state.complete(self.watch);
        state.message = None;
    }
}
