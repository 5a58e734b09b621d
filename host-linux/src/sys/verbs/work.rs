//! Work requests and their completions.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use ibverbs_sys as ffi;

use super::device::{none, succeeded};
use super::queue::Queue;

/// Operation of a work request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verb {
    Send,
    Write,
    /// A write that gives the peer a completion with this immediate value.
    WriteImmediate(u32),
    Read,
}

/// Location of the payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Bytes copied into the work request.
    Inline(&'a [u8]),
    /// Registered memory, copied into the work request.
    Copied { offset: usize, length: usize },
    /// Registered memory, from which the device reads.
    Memory { offset: usize, length: usize },
}

/// A work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) verb: Verb,
    /// Address in the peer's memory, for writes and reads.
    pub(crate) remote_address: u64,
    /// Remote key of that memory.
    pub(crate) remote_key: u32,
    /// Identifier, returned with the completion.
    pub(crate) id: u64,
    /// True if it generates a completion even when it succeeds.
    pub(crate) signalled: bool,
}

/// Completion of a work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) id: u64,
    /// Bytes received; for a datagram including the 40 bytes of its header.
    pub(crate) length: usize,
    /// Immediate value of a write that has one.
    pub(crate) immediate: u32,
    /// For a datagram: true if it came from the peer's queue pair.
    pub(crate) from_peer: bool,
    /// Error of a request that failed.
    pub(crate) error: Option<Failure>,
}

/// Error of a work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    /// Status code of the interface.
    pub(crate) status: u32,
    /// Error code of the vendor.
    pub(crate) vendor: u32,
}

/// Fields in which a work request differs when it is posted again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repost {
    pub(crate) id: u64,
    pub(crate) signalled: bool,
    /// Address in the peer's memory, for writes.
    pub(crate) remote_address: Option<u64>,
}

/// A work request that is built once and posted repeatedly.
pub(super) struct Standing {
    request: ffi::ibv_send_wr,
    sge: ffi::ibv_sge,
}

impl Standing {
    /// An empty request.
    pub(super) fn new() -> Self {
        Self { request: ffi::ibv_send_wr::default(), sge: sge(0, 0, 0) }
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").field("sge", &self.sge).finish_non_exhaustive()
    }
}

pub(super) type PostSend = unsafe extern "C" fn(
    *mut ffi::ibv_qp,
    *mut ffi::ibv_send_wr,
    *mut *mut ffi::ibv_send_wr,
) -> i32;
pub(super) type PostReceive = unsafe extern "C" fn(
    *mut ffi::ibv_qp,
    *mut ffi::ibv_recv_wr,
    *mut *mut ffi::ibv_recv_wr,
) -> i32;
pub(super) type Poll = unsafe extern "C" fn(*mut ffi::ibv_cq, i32, *mut ffi::ibv_wc) -> i32;
pub(super) type Notify = unsafe extern "C" fn(*mut ffi::ibv_cq, i32) -> i32;

impl Queue {
    /// Posts a work request.
    #[inline(always)]
    pub(crate) fn post(&mut self, work: &Work, source: Source<'_>) -> io::Result<()> {
        let (mut request, mut sge) = self.request(work, source)?;
        request.sg_list = &raw mut sge;
        let mut refused = none();
        // SAFETY: the pair is alive. The request and its element are only read during the call;
        // what the device reads or writes later lies within the registered memory, as checked, or
        // was copied into the request.
        succeeded(unsafe {
            (self.post_send)(self.pair.0.as_ptr(), &raw mut request, &raw mut refused)
        })
    }

    /// Builds the request that [`Self::post_again`] posts.
    pub(crate) fn build(&mut self, work: &Work, source: Source<'static>) -> io::Result<()> {
        let (request, sge) = self.request(work, source)?;
        self.standing = Standing { request, sge };
        Ok(())
    }

    /// Posts the request built last with the fields of `repost`. Calls `built` immediately before
    /// the post itself.
    #[inline(always)]
    pub(crate) fn post_again(&mut self, repost: Repost, built: impl FnOnce()) -> io::Result<()> {
        let Repost { id, signalled, remote_address } = repost;
        let Standing { request, sge } = &mut self.standing;
        // The address may have changed, because `self` may have been moved.
        request.sg_list = &raw mut *sge;
        request.wr_id = id;
        let signal = ffi::ibv_send_flags::IBV_SEND_SIGNALED.0;
        request.send_flags &= !signal;
        request.send_flags |= if signalled { signal } else { 0 };
        if let Some(address) = remote_address {
            request.wr.rdma.remote_addr = address;
        }
        let mut refused = none();
        built();
        // SAFETY: as in `post`. What was checked when the request was built still holds, because
        // the memory is the same; a default request refers to no memory; and the address handle
        // that a datagram's request refers to is kept by `self` and never replaced.
        succeeded(unsafe { (self.post_send)(self.pair.0.as_ptr(), request, &raw mut refused) })
    }

    /// Builds a request, without the pointer to its element, and the element.
    #[inline(always)]
    fn request(
        &self,
        work: &Work,
        source: Source<'_>,
    ) -> io::Result<(ffi::ibv_send_wr, ffi::ibv_sge)> {
        let mut flags = if work.signalled { ffi::ibv_send_flags::IBV_SEND_SIGNALED.0 } else { 0 };
        if matches!(source, Source::Inline(_) | Source::Copied { .. }) {
            flags |= ffi::ibv_send_flags::IBV_SEND_INLINE.0;
        }
        let sge = match source {
            Source::Memory { offset, length } | Source::Copied { offset, length } => {
                if !self.memory.holds(offset, length) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                let addr = self.memory.address() + offset as u64;
                sge(addr, length, self.memory.local_key())
            }
            Source::Inline(message) => sge(message.as_ptr() as u64, message.len(), 0),
        };
        let mut request = ffi::ibv_send_wr {
            wr_id: work.id,
            num_sge: i32::from(sge.length > 0),
            send_flags: flags,
            ..Default::default()
        };
        match work.verb {
            Verb::Send => request.opcode = ffi::ibv_wr_opcode::IBV_WR_SEND,
            Verb::Write => request.opcode = ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE,
            Verb::Read => request.opcode = ffi::ibv_wr_opcode::IBV_WR_RDMA_READ,
            Verb::WriteImmediate(number) => {
                request.opcode = ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
                request.__bindgen_anon_1.imm_data = number.to_be();
            }
        }
        match &self.datagrams_to {
            Some(peer) => {
                request.wr.ud = ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_3 {
                    ah: peer.handle.0.as_ptr(),
                    remote_qpn: peer.number,
                    remote_qkey: peer.key,
                }
            }
            None => {
                request.wr.rdma = ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
                    remote_addr: work.remote_address,
                    rkey: work.remote_key,
                }
            }
        }
        Ok((request, sge))
    }

    /// Posts a receive for a message of up to `length` bytes, to be stored at `offset`.
    #[inline(always)]
    pub(crate) fn post_receive(&mut self, id: u64, offset: usize, length: usize) -> io::Result<()> {
        if !self.memory.holds(offset, length) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut sge = sge(self.memory.address() + offset as u64, length, self.memory.local_key());
        let mut request =
            ffi::ibv_recv_wr { wr_id: id, sg_list: &raw mut sge, num_sge: 1, ..Default::default() };
        let mut refused = none();
        // SAFETY: the pair is alive. The request is only read during the call, and received data go
        // to registered memory, as checked.
        succeeded(unsafe {
            (self.post_receive)(self.pair.0.as_ptr(), &raw mut request, &raw mut refused)
        })
    }

    /// True if a send, write or read has completed; [`Self::completion`] returns it.
    #[inline(always)]
    pub(crate) fn poll_sent(&mut self) -> io::Result<bool> {
        let queue = self.sent.0;
        self.poll_one(queue)
    }

    /// True if a message has arrived; [`Self::completion`] returns its completion.
    #[inline(always)]
    pub(crate) fn poll_received(&mut self) -> io::Result<bool> {
        let queue = self.received.0;
        self.poll_one(queue)
    }

    #[inline(always)]
    fn poll_one(&mut self, queue: NonNull<ffi::ibv_cq>) -> io::Result<bool> {
        // SAFETY: the queue is one of this pair's, and there is space for one entry.
        match unsafe { (self.poll)(queue.as_ptr(), 1, &mut self.found) } {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(io::Error::other("ibv_poll_cq failed")),
        }
    }

    /// The completion polled last. Inlined, so that fields not used are not read.
    #[inline(always)]
    pub(crate) fn completion(&self) -> Completion {
        let found = &self.found;
        Completion {
            id: found.wr_id(),
            length: found.len(),
            immediate: u32::from_be(found.imm_data),
            from_peer: self.datagrams_to.as_ref().is_some_and(|peer| peer.number == found.src_qp),
            error: found.error().map(|(status, vendor)| Failure { status, vendor }),
        }
    }

    /// Requests an event for the next message. Poll once more afterwards: a message that has
    /// arrived in the meantime generates none.
    pub(crate) fn request_event(&mut self) -> io::Result<()> {
        // SAFETY: the queue is alive.
        succeeded(unsafe { (self.notify)(self.received.0.as_ptr(), 0) })
    }

    /// Descriptor that is readable when an event has arrived; `None` if events were not enabled.
    pub(crate) fn events(&self) -> Option<BorrowedFd<'_>> {
        Some(self.channel.as_ref()?.descriptor())
    }

    /// Takes an event; true if there was one.
    pub(crate) fn take_event(&mut self) -> io::Result<bool> {
        let Some(channel) = &self.channel else { return Ok(false) };
        let (mut queue, mut nothing) = (none(), none());
        // SAFETY: the channel is alive, and the call writes to local variables.
        let code =
            unsafe { ffi::ibv_get_cq_event(channel.0.as_ptr(), &raw mut queue, &raw mut nothing) };
        match succeeded(code) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            other => other?,
        }
        // SAFETY: the event was from this queue and has not been acknowledged.
        unsafe { ffi::ibv_ack_cq_events(queue, 1) };
        Ok(true)
    }
}

#[inline(always)]
fn sge(addr: u64, length: usize, lkey: u32) -> ffi::ibv_sge {
    // Messages are at most 1 GiB long.
    ffi::ibv_sge { addr, length: u32::try_from(length).unwrap_or(0), lkey }
}
