//! Send and receive on a connected socket by the bare system calls: the wrappers of std and nix
//! would be part of the timed path wherever they are not inlined.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

/// Sends; returns the number of bytes taken.
///
/// # Errors
///
/// The error of the call; [`Errno::EPIPE`], without a signal, if the peer has closed.
#[inline]
pub(crate) fn send(socket: RawFd, bytes: &[u8]) -> nix::Result<usize> {
    // SAFETY: the bytes are borrowed during the call, and `len` is their number.
    let sent =
        unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| Errno::last())
}

/// Receives into `buffer`; returns the number of bytes, 0 at the end of a stream.
///
/// # Errors
///
/// The error of the call; [`Errno::EAGAIN`] if a non-blocking socket has no data.
#[inline]
pub(crate) fn receive(socket: RawFd, buffer: &mut [u8]) -> nix::Result<usize> {
    // SAFETY: the buffer is borrowed during the call, and `len` is its length.
    let received = unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(received).map_err(|_| Errno::last())
}
