//! Passes an open file to another process over a Unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Sends `bytes` (at least one) with `file` attached.
pub(crate) fn send_file(socket: &UnixStream, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    let files = [file.as_raw_fd()];
    let attached = [ControlMessage::ScmRights(&files)];
    let parts = [IoSlice::new(bytes)];
    let sent = sendmsg::<()>(socket.as_raw_fd(), &parts, &attached, MsgFlags::MSG_NOSIGNAL, None)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives up to `bytes.len()` bytes and the attached file, if any. Zero bytes mean that the peer
/// has closed the socket.
pub(crate) fn receive_file(
    socket: &UnixStream,
    bytes: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = cmsg_space!(RawFd);
    let mut parts = [IoSliceMut::new(bytes)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut received = None;
    for attached in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(files) = attached {
            for file in files {
                // SAFETY: the kernel has just installed this descriptor for this process, and
                // nothing else knows it. If there are several, each assignment drops, and so
                // closes, the previous one.
                received = Some(unsafe { OwnedFd::from_raw_fd(file) });
            }
        }
    }
    Ok((message.bytes, received))
}
