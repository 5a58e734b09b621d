//! Receives that are posted in advance, and cancelled if no message arrives.

#![allow(unsafe_code, reason = "the bindings do not tell whether a request was cancelled")]

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::rc::Rc;

use mpi::datatype::Equivalence;
use mpi::ffi;
use mpi::point_to_point::{Source, Status};
use mpi::raw::AsRaw;
use mpi::topology::AsCommunicator;
use mpi::topology::Process;

use super::TAG;

/// Number of tests after which a receive is cancelled: some milliseconds.
const TESTS: u32 = 1 << 14;

/// Posts a receive of a message from `peer`, runs `before`, and tests the
/// receive until the message has arrived. Returns its length in bytes, or
/// `None` if none arrived in [`TESTS`] tests. The receive is cancelled then,
/// and also if `before` fails.
///
/// If the message does not fit into `buffer`, MPI ends the job.
#[inline]
pub(crate) fn around<R, E>(
    peer: &Process<'_>,
    buffer: &mut [u8],
    before: impl FnOnce() -> Result<R, E>,
) -> Result<(R, Option<usize>), E> {
    let mut posted = Posted::new(peer, buffer);
    let before = before()?;
    for _ in 0..TESTS {
        if let Some(length) = posted.test() {
            return Ok((before, Some(length)));
        }
    }
    Ok((before, posted.take_back()))
}

/// A receive that is posted again as soon as a message has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenReceive(Rc<RefCell<Option<Answers>>>);

/// A posted receive, and the buffer of the next one.
#[derive(Debug)]
struct Answers {
    // Declared first: it is completed or cancelled before the other fields are dropped.
    posted: Posted<'static>,
    buffer: *mut [u8],
}

impl OpenReceive {
    /// Runs `body` while a receive from `peer` into `buffer` is posted.
    pub(crate) fn while_open<R>(
        &self,
        peer: &Process<'_>,
        buffer: &mut [u8],
        body: impl FnOnce() -> R,
    ) -> R {
        /// Cancels the receive also if `body` panics.
        struct Scope<'o>(&'o OpenReceive);
        impl Drop for Scope<'_> {
            fn drop(&mut self) {
                self.0.0.replace(None);
            }
        }
        let buffer: *mut [u8] = buffer;
        // SAFETY: the buffer is borrowed until `while_open` returns, and the receive
        // is dropped, which completes or cancels it, before that.
        let posted = Posted::new(peer, unsafe { &mut *buffer });
        self.0.replace(Some(Answers { posted, buffer }));
        let _scope = Scope(self);
        body()
    }

    /// True during [`OpenReceive::while_open`].
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Length of a message that has arrived; posts the next receive then.
    #[inline]
    pub(crate) fn test(&self, peer: &Process<'_>) -> Option<usize> {
        let mut answers = self.0.borrow_mut();
        let answers = answers.as_mut()?;
        let length = answers.posted.test()?;
        // SAFETY: as in `while_open`, and the previous receive is complete.
        answers.posted = Posted::new(peer, unsafe { &mut *answers.buffer });
        Some(length)
    }
}

/// A posted receive into borrowed memory.
#[derive(Debug)]
struct Posted<'b> {
    request: ffi::MPI_Request,
    /// True while MPI may still write into the memory.
    is_open: bool,
    buffer: PhantomData<&'b mut [u8]>,
}

impl<'b> Posted<'b> {
    #[inline]
    fn new(peer: &Process<'_>, buffer: &'b mut [u8]) -> Self {
        let length = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        let mut request = MaybeUninit::uninit();
        let bytes = u8::equivalent_datatype();
        let communicator = peer.as_communicator().as_raw();
        // SAFETY: the buffer has `length` bytes and stays borrowed as long as
        // this value lives, whose drop completes or cancels the request. The
        // type is private to this module, which never leaks a value.
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
        let request = unsafe { request.assume_init() };
        Self { request, is_open: true, buffer: PhantomData }
    }

    /// Length of the message, if it has arrived.
    #[inline]
    fn test(&mut self) -> Option<usize> {
        let (mut done, mut status) = (0, MaybeUninit::uninit());
        // SAFETY: all three point to memory of this function or value, and the
        // request is active.
        unsafe { ffi::MPI_Test(&raw mut self.request, &raw mut done, status.as_mut_ptr()) };
        if done == 0 {
            return None;
        }
        self.is_open = false;
        // SAFETY: MPI_Test writes the status of a request that is done.
        length(&Status::from_raw(unsafe { status.assume_init() }))
    }

    /// Cancels the receive. Returns the length of a message that arrived before that.
    #[cold]
    fn take_back(&mut self) -> Option<usize> {
        let (mut cancelled, mut status) = (0, MaybeUninit::uninit());
        // SAFETY: the request is active, as the last test has shown.
        unsafe { ffi::MPI_Cancel(&raw mut self.request) };
        // SAFETY: both point to memory of this function or value; a cancelled
        // receive completes.
        unsafe { ffi::MPI_Wait(&raw mut self.request, status.as_mut_ptr()) };
        self.is_open = false;
        // SAFETY: MPI_Wait has written the status.
        let status = unsafe { status.assume_init() };
        // SAFETY: both point to local variables.
        unsafe { ffi::MPI_Test_cancelled(&raw const status, &raw mut cancelled) };
        if cancelled == 0 { length(&Status::from_raw(status)) } else { None }
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.take_back();
        }
    }
}

/// Length of a received message in bytes.
pub(crate) fn length(status: &Status) -> Option<usize> {
    usize::try_from(status.count(u8::equivalent_datatype())).ok()
}
