//! A queue pair with its completion queues.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sys as ffi;
use ibverbs_sys::ibv_qp_attr_mask as mask;

use super::device::{Domain, none, not_null, succeeded};
use super::memory::Region;

/// Which service a queue pair gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueKind {
    /// RC: reliable, in order, to one peer.
    Connected,
    /// UD: datagrams.
    Datagram,
}

/// How large a queue pair is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueOptions {
    pub(crate) kind: QueueKind,
    /// Entries of the send queue.
    pub(crate) sends: u32,
    /// Entries of the receive queue.
    pub(crate) receives: u32,
    /// Most bytes of a message that travel within its work request.
    pub(crate) inline: u32,
    /// Whether receive completions can be slept for.
    pub(crate) events: bool,
}

/// How packets reach the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) port: u8,
    /// This end's address; `None` where the peer is found by its LID.
    pub(crate) gid_index: Option<u8>,
    /// Largest packet payload in bytes.
    pub(crate) mtu: u16,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    /// Reads under way at a time.
    pub(crate) reads: u8,
    /// First packet number of this end.
    pub(crate) packet_number: u32,
}

/// The queue pair at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePeer {
    pub(crate) number: u32,
    pub(crate) packet_number: u32,
    pub(crate) lid: u16,
    pub(crate) gid: [u8; 16],
}

/// What is asked of the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verb {
    Send,
    Write,
    /// A write of which the peer gets a completion with this number.
    WriteImmediate(u32),
    Read,
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Copied into the work request: a message, and what follows it.
    Inline(&'a [u8], &'a [u8]),
    /// In registered memory, from an offset on.
    Memory { offset: usize, length: usize },
}

/// A work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) verb: Verb,
    /// Address in the peer's memory, of writes and reads.
    pub(crate) remote_address: u64,
    /// Key of that memory.
    pub(crate) remote_key: u32,
    /// Comes back with its completion.
    pub(crate) id: u64,
    /// Whether it gets a completion when it succeeds.
    pub(crate) signalled: bool,
}

/// A work request is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) id: u64,
    /// Bytes received; of a datagram with the 40 bytes before it.
    pub(crate) length: usize,
    /// The peer's number, of writes with one.
    pub(crate) immediate: u32,
    /// Status and the vendor's code where it failed.
    pub(crate) error: Option<(u32, u32)>,
}

/// Completion queue; destroyed when dropped.
#[derive(Debug)]
struct Completions(NonNull<ffi::ibv_cq>);

impl Drop for Completions {
    fn drop(&mut self) {
        // SAFETY: the queue pair that used it has been destroyed, and its events are
        // acknowledged as they are read.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_cq(self.0.as_ptr()) };
    }
}

/// Channel of completion events; destroyed when dropped.
#[derive(Debug)]
struct Channel(NonNull<ffi::ibv_comp_channel>);

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the completion queue that used it has been destroyed.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_comp_channel(self.0.as_ptr()) };
    }
}

/// The queue pair itself; destroyed when dropped.
#[derive(Debug)]
struct Pair(NonNull<ffi::ibv_qp>);

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_qp(self.0.as_ptr()) };
    }
}

/// Where datagrams go; destroyed when dropped.
#[derive(Debug)]
struct Handle(NonNull<ffi::ibv_ah>);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the queue pair that used it has been destroyed.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_ah(self.0.as_ptr()) };
    }
}

type PostSend = unsafe extern "C" fn(
    *mut ffi::ibv_qp,
    *mut ffi::ibv_send_wr,
    *mut *mut ffi::ibv_send_wr,
) -> i32;
type PostReceive = unsafe extern "C" fn(
    *mut ffi::ibv_qp,
    *mut ffi::ibv_recv_wr,
    *mut *mut ffi::ibv_recv_wr,
) -> i32;
type Poll = unsafe extern "C" fn(*mut ffi::ibv_cq, i32, *mut ffi::ibv_wc) -> i32;
type Notify = unsafe extern "C" fn(*mut ffi::ibv_cq, i32) -> i32;

/// A queue pair, its completion queues and the memory that it reaches. What it
/// holds is destroyed in the order of its fields.
#[derive(Debug)]
pub(crate) struct Queue {
    pair: Pair,
    handle: Option<Handle>,
    sent: Completions,
    received: Completions,
    channel: Option<Channel>,
    memory: Arc<Region>,
    domain: Arc<Domain>,
    post_send: PostSend,
    post_receive: PostReceive,
    poll: Poll,
    notify: Notify,
    kind: QueueKind,
    inline: u32,
    /// The peer's queue pair, of datagrams.
    peer: u32,
}

// SAFETY: libibverbs may be called from any thread, and nothing in here belongs
// to the thread that made it.
unsafe impl Send for Queue {}

/// Key of datagrams; both ends have to use the same.
const DATAGRAM_KEY: u32 = 0x1111_1111;
/// 4.096 us * 2^14 = 67 ms until a packet is sent again, as in perftest.
const RETRANSMISSION: u8 = 14;
/// Retransmissions before the connection is given up; 7, the most that there
/// can be, are without end on soft-RoCE.
const RETRIES: u8 = 6;
/// Retries where the peer had no receive posted; 7 would be without end.
const RECEIVER_RETRIES: u8 = 6;
/// 0.64 ms until such a retry.
const RECEIVER_TIMER: u8 = 12;

impl Queue {
    /// A queue pair over `memory`, with as much inline data as was asked for.
    pub(crate) fn create(
        memory: Arc<Region>,
        domain: Arc<Domain>,
        options: QueueOptions,
    ) -> io::Result<Self> {
        let context = domain.context().raw();
        let channel = if options.events {
            // SAFETY: the context is open.
            Some(Channel(not_null(unsafe { ffi::ibv_create_comp_channel(context) })?))
        } else {
            None
        };
        let completions = |entries: u32, channel: Option<&Channel>| {
            let entries = i32::try_from(entries).unwrap_or(i32::MAX);
            let channel = channel.map_or(none(), |channel| channel.0.as_ptr());
            // SAFETY: the context is open and the channel, if there is one, alive.
            let raw = unsafe { ffi::ibv_create_cq(context, entries, none(), channel, 0) };
            not_null(raw).map(Completions)
        };
        let sent = completions(options.sends, None)?;
        let received = completions(options.receives, channel.as_ref())?;
        let mut attributes = ffi::ibv_qp_init_attr {
            send_cq: sent.0.as_ptr(),
            recv_cq: received.0.as_ptr(),
            cap: ffi::ibv_qp_cap {
                max_send_wr: options.sends,
                max_recv_wr: options.receives,
                max_send_sge: 2,
                max_recv_sge: 1,
                max_inline_data: options.inline,
            },
            qp_type: match options.kind {
                QueueKind::Connected => ffi::ibv_qp_type::IBV_QPT_RC,
                QueueKind::Datagram => ffi::ibv_qp_type::IBV_QPT_UD,
            },
            ..Default::default()
        };
        // SAFETY: the domain is alive, and so are the completion queues.
        let raw = unsafe { ffi::ibv_create_qp(domain.raw(), &raw mut attributes) };
        let pair = Pair(not_null(raw)?);
        // SAFETY: an open context's table of functions does not change.
        let functions = unsafe { &(*context).ops };
        let lacks = || io::Error::from(io::ErrorKind::Unsupported);
        Ok(Self {
            post_send: functions.post_send.ok_or_else(lacks)?,
            post_receive: functions.post_recv.ok_or_else(lacks)?,
            poll: functions.poll_cq.ok_or_else(lacks)?,
            notify: functions.req_notify_cq.ok_or_else(lacks)?,
            pair,
            handle: None,
            sent,
            received,
            channel,
            memory,
            domain,
            kind: options.kind,
            inline: attributes.cap.max_inline_data,
            peer: 0,
        })
    }

    /// Its number, by which the peer finds it.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the pair is alive, and its number does not change.
        unsafe { (*self.pair.0.as_ptr()).qp_num }
    }

    /// Most bytes that travel within a work request.
    pub(crate) const fn inline(&self) -> u32 {
        self.inline
    }

    pub(crate) fn memory(&self) -> &Region {
        &self.memory
    }

    fn modify(&mut self, mut attributes: ffi::ibv_qp_attr, which: mask) -> io::Result<()> {
        let which = which.0.cast_signed();
        // SAFETY: the pair is alive, and the structure is this function's.
        succeeded(unsafe { ffi::ibv_modify_qp(self.pair.0.as_ptr(), &raw mut attributes, which) })
    }

    /// Lets receives be posted.
    pub(crate) fn initialise(&mut self, port: u8) -> io::Result<()> {
        let access = ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
            | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
            | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        let attributes = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_INIT,
            port_num: port,
            qkey: DATAGRAM_KEY,
            qp_access_flags: access.0,
            ..Default::default()
        };
        let which = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT;
        let which = which
            | match self.kind {
                QueueKind::Connected => mask::IBV_QP_ACCESS_FLAGS,
                QueueKind::Datagram => mask::IBV_QP_QKEY,
            };
        self.modify(attributes, which)
    }

    /// Connects it to `peer` over `path`.
    pub(crate) fn connect(&mut self, peer: &QueuePeer, path: &Path) -> io::Result<()> {
        let mut route = ffi::ibv_ah_attr {
            dlid: peer.lid,
            sl: path.service_level,
            port_num: path.port,
            ..Default::default()
        };
        if let Some(index) = path.gid_index {
            route.is_global = 1;
            route.grh.dgid.raw = peer.gid;
            route.grh.sgid_index = index;
            route.grh.hop_limit = u8::MAX;
            route.grh.traffic_class = path.traffic_class;
        }
        let connected = self.kind == QueueKind::Connected;
        let mut which = mask::IBV_QP_STATE;
        if connected {
            which = which
                | mask::IBV_QP_AV
                | mask::IBV_QP_PATH_MTU
                | mask::IBV_QP_DEST_QPN
                | mask::IBV_QP_RQ_PSN
                | mask::IBV_QP_MAX_DEST_RD_ATOMIC
                | mask::IBV_QP_MIN_RNR_TIMER;
        }
        let ready_to_receive = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_RTR,
            path_mtu: mtu_number(path.mtu),
            dest_qp_num: peer.number,
            rq_psn: peer.packet_number,
            max_dest_rd_atomic: path.reads,
            min_rnr_timer: RECEIVER_TIMER,
            ah_attr: route,
            ..Default::default()
        };
        self.modify(ready_to_receive, which)?;
        let mut which = mask::IBV_QP_STATE | mask::IBV_QP_SQ_PSN;
        if connected {
            which = which
                | mask::IBV_QP_TIMEOUT
                | mask::IBV_QP_RETRY_CNT
                | mask::IBV_QP_RNR_RETRY
                | mask::IBV_QP_MAX_QP_RD_ATOMIC;
        } else {
            // SAFETY: the domain is alive, and the structure is this function's.
            let raw = unsafe { ffi::ibv_create_ah(self.domain.raw(), &raw mut route) };
            self.handle = Some(Handle(not_null(raw)?));
            self.peer = peer.number;
        }
        let ready_to_send = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_RTS,
            sq_psn: path.packet_number,
            timeout: RETRANSMISSION,
            retry_cnt: RETRIES,
            rnr_retry: RECEIVER_RETRIES,
            max_rd_atomic: path.reads,
            ..Default::default()
        };
        self.modify(ready_to_send, which)
    }

    /// Hands a work request to the device.
    #[inline]
    pub(crate) fn post(&mut self, work: &Work, source: Source<'_>) -> io::Result<()> {
        let mut pieces = [ffi::ibv_sge::default(); 2];
        let mut flags = if work.signalled { ffi::ibv_send_flags::IBV_SEND_SIGNALED.0 } else { 0 };
        let count = match source {
            Source::Memory { offset, length } => {
                if !self.memory.holds(offset, length) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                let addr = self.memory.address() + offset as u64;
                pieces[0] = piece(addr, length, self.memory.local_key());
                i32::from(length > 0)
            }
            Source::Inline(message, rest) => {
                flags |= ffi::ibv_send_flags::IBV_SEND_INLINE.0;
                pieces[0] = piece(message.as_ptr() as u64, message.len(), 0);
                pieces[1] = piece(rest.as_ptr() as u64, rest.len(), 0);
                if rest.is_empty() { 1 } else { 2 }
            }
        };
        let mut request = ffi::ibv_send_wr {
            wr_id: work.id,
            sg_list: pieces.as_mut_ptr(),
            num_sge: count,
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
        match &self.handle {
            Some(handle) => {
                request.wr.ud = ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_3 {
                    ah: handle.0.as_ptr(),
                    remote_qpn: self.peer,
                    remote_qkey: DATAGRAM_KEY,
                }
            }
            None => {
                request.wr.rdma = ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
                    remote_addr: work.remote_address,
                    rkey: work.remote_key,
                }
            }
        }
        let mut refused = none();
        // SAFETY: the pair is alive. The request and its pieces are only read during
        // the call; what the device reads or writes later lies within the
        // registered memory, as was checked, or was copied into the request.
        succeeded(unsafe {
            (self.post_send)(self.pair.0.as_ptr(), &raw mut request, &raw mut refused)
        })
    }

    /// Lets one message arrive at `offset`.
    #[inline]
    pub(crate) fn post_receive(&mut self, id: u64, offset: usize, length: usize) -> io::Result<()> {
        if !self.memory.holds(offset, length) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut place =
            piece(self.memory.address() + offset as u64, length, self.memory.local_key());
        let mut request = ffi::ibv_recv_wr {
            wr_id: id,
            sg_list: &raw mut place,
            num_sge: 1,
            ..Default::default()
        };
        let mut refused = none();
        // SAFETY: the pair is alive. The request is only read during the call, and
        // what arrives goes to registered memory, as was checked.
        succeeded(unsafe {
            (self.post_receive)(self.pair.0.as_ptr(), &raw mut request, &raw mut refused)
        })
    }

    /// A send, write or read that is over.
    #[inline]
    pub(crate) fn poll_sent(&mut self) -> io::Result<Option<Completion>> {
        let queue = self.sent.0;
        self.poll_one(queue)
    }

    /// A message that has arrived.
    #[inline]
    pub(crate) fn poll_received(&mut self) -> io::Result<Option<Completion>> {
        let queue = self.received.0;
        self.poll_one(queue)
    }

    #[inline]
    fn poll_one(&mut self, queue: NonNull<ffi::ibv_cq>) -> io::Result<Option<Completion>> {
        let mut found = ffi::ibv_wc::default();
        // SAFETY: the queue is one of this pair's, and there is room for one entry.
        match unsafe { (self.poll)(queue.as_ptr(), 1, &raw mut found) } {
            0 => Ok(None),
            1 => Ok(Some(Completion {
                id: found.wr_id(),
                length: found.len(),
                immediate: u32::from_be(found.imm_data),
                error: found.error(),
            })),
            _ => Err(io::Error::other("ibv_poll_cq failed")),
        }
    }

    /// Asks for an event when the next message arrives. Poll once more
    /// afterwards: one that has arrived meanwhile gives none.
    pub(crate) fn request_event(&mut self) -> io::Result<()> {
        // SAFETY: the queue is alive.
        succeeded(unsafe { (self.notify)(self.received.0.as_ptr(), 0) })
    }

    /// Readable when an event has come; `None` where they were not asked for.
    pub(crate) fn events(&self) -> Option<BorrowedFd<'_>> {
        let channel = self.channel.as_ref()?;
        // SAFETY: the channel is alive, and its descriptor does not change.
        let descriptor = unsafe { (*channel.0.as_ptr()).fd };
        // SAFETY: the descriptor is open for as long as the channel.
        Some(unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Takes an event that has come.
    pub(crate) fn take_event(&mut self) -> io::Result<()> {
        let Some(channel) = &self.channel else { return Ok(()) };
        let (mut queue, mut nothing) = (none(), none());
        // SAFETY: the channel is alive, and the call writes to these variables.
        let code =
            unsafe { ffi::ibv_get_cq_event(channel.0.as_ptr(), &raw mut queue, &raw mut nothing) };
        succeeded(code)?;
        // SAFETY: it is the queue that the event was of, which was not acknowledged.
        unsafe { ffi::ibv_ack_cq_events(queue, 1) };
        Ok(())
    }
}

#[inline]
fn piece(addr: u64, length: usize, lkey: u32) -> ffi::ibv_sge {
    // Messages are at most 1 GiB long.
    ffi::ibv_sge { addr, length: u32::try_from(length).unwrap_or(0), lkey }
}

/// The number of a packet size, as the interface counts: 1 for 256 bytes.
const fn mtu_number(bytes: u16) -> u32 {
    match bytes {
        0..=256 => 1,
        257..=512 => 2,
        513..=1024 => 3,
        1025..=2048 => 4,
        _ => 5,
    }
}
