//! Sending and receiving over a connected socket by the system's calls alone: what std and nix
//! add to them would be timed wherever it is not inlined.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

/// Bytes that `send` took.
///
/// # Errors
///
/// The error of the call; a closed peer is [`Errno::EPIPE`], without a signal.
#[inline]
pub(crate) fn send(socket: RawFd, bytes: &[u8]) -> nix::Result<usize> {
    // SAFETY: the bytes are borrowed during the call, and `len` is their number.
    let sent =
        unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| Errno::last())
}

/// Bytes that `recv` put into `buffer`; 0 at the end of a stream.
///
/// # Errors
///
/// The error of the call, [`Errno::EAGAIN`] where a non-blocking socket has nothing.
#[inline]
pub(crate) fn receive(socket: RawFd, buffer: &mut [u8]) -> nix::Result<usize> {
    // SAFETY: the buffer is borrowed during the call, and `len` is its length.
    let received = unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(received).map_err(|_| Errno::last())
}
