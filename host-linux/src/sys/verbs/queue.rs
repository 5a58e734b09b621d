//! A queue pair with its completion queues.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sys as ffi;
use ibverbs_sys::ibv_qp_attr_mask as mask;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::device::{Domain, access, none, not_null, succeeded};
use super::memory::Region;
use super::work::{Notify, Poll, PostReceive, PostSend, Standing};

/// Transport service of a queue pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueKind {
    /// RC: reliable, in order, to one peer.
    Connected,
    /// UD: datagrams.
    Datagram,
}

/// Type and capacity of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueOptions<'a> {
    pub(crate) kind: QueueKind,
    /// Capacity of the send queue.
    pub(crate) sends: u32,
    /// Capacity of the receive queue.
    pub(crate) receives: u32,
    /// Sizes of inline data to request, in bytes; the first that is granted is used.
    pub(crate) inline: &'a [u32],
    /// True if receive completions should generate events.
    pub(crate) events: bool,
}

/// Route and parameters of the connection to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) port: u8,
    /// Index of this end's GID; `None` if the peer is addressed by LID.
    pub(crate) gid_index: Option<u8>,
    /// Largest packet payload in bytes.
    pub(crate) mtu: u16,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    /// Outstanding reads.
    pub(crate) reads: u8,
    /// First packet number of this end.
    pub(crate) packet_number: u32,
}

/// Address of the queue pair at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePeer {
    pub(crate) number: u32,
    pub(crate) packet_number: u32,
    pub(crate) lid: u16,
    pub(crate) gid: [u8; 16],
    /// Queue key that datagrams to it must carry.
    pub(crate) datagram_key: u32,
}

/// Completion queue; destroyed when dropped.
#[derive(Debug)]
pub(super) struct Completions(pub(super) NonNull<ffi::ibv_cq>);

impl Drop for Completions {
    fn drop(&mut self) {
        // SAFETY: the queue pair that used it has been destroyed, and its events were acknowledged
        // when they were read.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_cq(self.0.as_ptr()) };
    }
}

/// Channel of completion events; destroyed when dropped.
#[derive(Debug)]
pub(super) struct Channel(pub(super) NonNull<ffi::ibv_comp_channel>);

impl Channel {
    /// Descriptor that is readable when an event has arrived.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel is alive, and its descriptor does not change.
        let descriptor = unsafe { (*self.0.as_ptr()).fd };
        // SAFETY: the descriptor is open for as long as the channel.
        unsafe { BorrowedFd::borrow_raw(descriptor) }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the completion queue that used it has been destroyed.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_comp_channel(self.0.as_ptr()) };
    }
}

/// Owner of a queue pair; destroys it when dropped.
#[derive(Debug)]
pub(super) struct Pair(pub(super) NonNull<ffi::ibv_qp>);

impl Pair {
    /// Creates a queue pair with the first size of `inline` that is granted; `attributes` then
    /// holds the granted capacities. The completion queues in `attributes` must be alive.
    fn create(
        domain: &Domain,
        attributes: &mut ffi::ibv_qp_init_attr,
        inline: &[u32],
    ) -> io::Result<Self> {
        let asked = attributes.cap;
        let mut made = Err(io::ErrorKind::InvalidInput.into());
        for inline in inline {
            attributes.cap = ffi::ibv_qp_cap { max_inline_data: *inline, ..asked };
            // SAFETY: the domain is alive, and so are the completion queues.
            let raw = unsafe { ffi::ibv_create_qp(domain.raw(), attributes) };
            made = not_null(raw).map(Self);
            if made.is_ok() {
                break;
            }
        }
        made
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_qp(self.0.as_ptr()) };
    }
}

/// Address handle of datagrams; destroyed when dropped.
#[derive(Debug)]
pub(super) struct Handle(pub(super) NonNull<ffi::ibv_ah>);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the queue pair that used it has been destroyed.
        let _no_one_to_tell = unsafe { ffi::ibv_destroy_ah(self.0.as_ptr()) };
    }
}

/// The queue pair to which datagrams are sent.
#[derive(Debug)]
pub(super) struct DatagramPeer {
    pub(super) handle: Handle,
    pub(super) number: u32,
    /// Queue key that datagrams to it must carry.
    pub(super) key: u32,
}

/// A queue pair with its completion queues and memory. The fields are destroyed in their order.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(super) pair: Pair,
    pub(super) datagrams_to: Option<DatagramPeer>,
    pub(super) sent: Completions,
    pub(super) received: Completions,
    pub(super) channel: Option<Channel>,
    pub(super) memory: Region,
    domain: Arc<Domain>,
    pub(super) post_send: PostSend,
    pub(super) post_receive: PostReceive,
    pub(super) poll: Poll,
    pub(super) notify: Notify,
    /// Prebuilt request for [`Queue::post_again`].
    pub(super) standing: Standing,
    /// The completion polled last.
    pub(super) found: ffi::ibv_wc,
    kind: QueueKind,
    inline: u32,
    sends: u32,
}

// SAFETY: libibverbs may be called from any thread, and no field depends on the thread that created
// it.
unsafe impl Send for Queue {}

/// Retransmission timeout as a code of the interface: 4.096 µs · 2¹⁴ = 67 ms, as in perftest.
const RETRANSMISSION: u8 = 14;
/// Retransmissions before the connection fails. The maximum, 7, means without limit on soft-RoCE.
const RETRIES: u8 = 6;
/// Retries while the peer has no receive posted; 7 would be without limit.
const RECEIVER_RETRIES: u8 = 6;
/// Delay before such a retry, as a code of the interface: 0.64 ms.
const RECEIVER_TIMER: u8 = 12;

impl Queue {
    /// Creates a queue pair that uses `memory`.
    pub(crate) fn create(
        memory: Region,
        domain: Arc<Domain>,
        options: QueueOptions<'_>,
    ) -> io::Result<Self> {
        let context = domain.context().raw();
        let channel = if options.events {
            // SAFETY: the context is open.
            let channel = Channel(not_null(unsafe { ffi::ibv_create_comp_channel(context) })?);
            // Non-blocking, because callers wait with a timeout.
            fcntl(channel.descriptor(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            Some(channel)
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
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            qp_type: match options.kind {
                QueueKind::Connected => ffi::ibv_qp_type::IBV_QPT_RC,
                QueueKind::Datagram => ffi::ibv_qp_type::IBV_QPT_UD,
            },
            ..Default::default()
        };
        let pair = Pair::create(&domain, &mut attributes, options.inline)?;
        // SAFETY: the function table of an open context does not change.
        let functions = unsafe { &(*context).ops };
        let lacks = || io::Error::from(io::ErrorKind::Unsupported);
        Ok(Self {
            post_send: functions.post_send.ok_or_else(lacks)?,
            post_receive: functions.post_recv.ok_or_else(lacks)?,
            poll: functions.poll_cq.ok_or_else(lacks)?,
            notify: functions.req_notify_cq.ok_or_else(lacks)?,
            pair,
            datagrams_to: None,
            sent,
            received,
            channel,
            memory,
            domain,
            standing: Standing::new(),
            found: ffi::ibv_wc::default(),
            kind: options.kind,
            inline: attributes.cap.max_inline_data,
            // A device may grant more, but the completion queue was created for this number.
            sends: options.sends.min(attributes.cap.max_send_wr),
        })
    }

    /// Number that identifies it to the peer.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the pair is alive, and its number does not change.
        unsafe { (*self.pair.0.as_ptr()).qp_num }
    }

    /// Largest inline data of a work request, bytes.
    pub(crate) const fn inline(&self) -> u32 {
        self.inline
    }

    /// Granted capacity of the send queue.
    pub(crate) const fn sends(&self) -> u32 {
        self.sends
    }

    pub(crate) fn memory(&self) -> &Region {
        &self.memory
    }

    fn modify(&mut self, mut attributes: ffi::ibv_qp_attr, which: mask) -> io::Result<()> {
        let which = which.0.cast_signed();
        // SAFETY: the pair is alive, and the structure is local.
        succeeded(unsafe { ffi::ibv_modify_qp(self.pair.0.as_ptr(), &raw mut attributes, which) })
    }

    /// Moves it to the state INIT, in which receives can be posted. The device drops datagrams with
    /// another key.
    pub(crate) fn initialise(&mut self, port: u8, datagram_key: u32) -> io::Result<()> {
        let attributes = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_INIT,
            port_num: port,
            qkey: datagram_key,
            qp_access_flags: access().0,
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

    /// Connects it to `peer` over `path` (states RTR, then RTS).
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
            // SAFETY: the domain is alive, and the structure is local.
            let raw = unsafe { ffi::ibv_create_ah(self.domain.raw(), &raw mut route) };
            let handle = Handle(not_null(raw)?);
            let (number, key) = (peer.number, peer.datagram_key);
            self.datagrams_to = Some(DatagramPeer { handle, number, key });
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
}

/// Code of the interface for an MTU; 1 is 256 bytes.
const fn mtu_number(bytes: u16) -> u32 {
    match bytes {
        0..=256 => 1,
        257..=512 => 2,
        513..=1024 => 3,
        1025..=2048 => 4,
        _ => 5,
    }
}
