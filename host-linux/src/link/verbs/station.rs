//! An end before it is connected: device, address, memory, queue pair.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::{fs, io};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::error::VerbsError;
use super::offer::{Offer, StationData};
use super::record::VerbsPort;
use super::settings::{Operation, VerbsSettings};
use crate::machine::kernel_files::{read_entry, read_setting};
use crate::machine::near::run_on_node;
use crate::sys::verbs::{
    Context, Domain, Gid, GidKind, LinkLayer, PageSize, Path, Port, Queue, QueueKind, QueueOptions,
    QueuePeer, Region,
};

/// Size of the area before the message slots, bytes: announcements and escapes.
const HEAD: usize = 4_096;
/// Offset to which the peer writes its announcements of consumed messages.
pub(super) const CONSUMED_BY_PEER: usize = 0;
/// Offset of this end's announcement, from which the device fetches it.
pub(super) const CONSUMED_HERE: usize = 64;
/// Offset to which the peer writes the number of a message whose last byte it has inverted.
pub(super) const ESCAPED_BY_PEER: usize = 128;
/// Offset of this end's escape, from which the device fetches it.
pub(super) const ESCAPED_HERE: usize = 192;
/// Offset of the template from which messages of rounds are sent, and which reads fetch.
pub(super) const TEMPLATE: usize = HEAD;
/// Last byte of an empty slot.
pub(super) const EMPTY: u8 = u8::MAX;
/// Length of the global route header that the device puts before a datagram.
pub(super) const GRH_BYTES: usize = 40;
/// Limit on the memory of an end, bytes, unless it is too small for [`LEAST_DEPTH`] messages.
const MOST_MEMORY: usize = 128 << 20;
/// Memory of an end, in bytes, if a process may lock 8 MiB, the usual limit; 1 MiB is left for
/// other locked memory.
const USUAL_MEMORY: usize = 7 << 20;
/// Minimum number of messages in flight.
const LEAST_DEPTH: usize = 2;
/// Sizes of inline data that `--inline auto` requests in turn, as perftest does.
const INLINE: [u32; 4] = [USUAL_INLINE, 128, 64, 0];
/// Default size of inline data, bytes.
pub(super) const USUAL_INLINE: u32 = 220;

/// Layout of the registered memory of an end, the same at both ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Layout {
    /// Number of message slots in each direction, a power of two.
    pub(super) depth: usize,
    /// Size of a slot, bytes.
    pub(super) slot_bytes: usize,
}

impl Layout {
    /// Layout for `depth` messages of up to `longest` bytes, or for as many as fit into `memory`
    /// bytes and [`MOST_MEMORY`].
    pub(super) fn new(depth: u16, longest: u32, memory: usize) -> Self {
        let layout = Self { depth: depth.max(1).into(), slot_bytes: Self::slot_of(longest) };
        layout.in_memory(memory.min(MOST_MEMORY))
    }

    /// Reduces the number of slots to a power of two that fits into `memory` bytes.
    fn in_memory(self, memory: usize) -> Self {
        let fit = (memory / self.slot_bytes).saturating_sub(1) / 2;
        let depth = self.depth.clamp(LEAST_DEPTH, fit.max(LEAST_DEPTH));
        Self { depth: 1 << depth.ilog2(), ..self }
    }

    /// Size of a slot: the message and a global route header, rounded up to a cache line.
    const fn slot_of(longest: u32) -> usize {
        (longest as usize + GRH_BYTES).next_multiple_of(64)
    }

    pub(super) const fn bytes(&self) -> usize {
        HEAD + (1 + 2 * self.depth) * self.slot_bytes
    }

    /// Slot number of message `index`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "only the low bits count")]
    const fn slot(&self, index: u64) -> usize {
        index as usize & (self.depth - 1)
    }

    /// Offset of the slot from which message `index` is sent.
    #[inline]
    pub(super) const fn outgoing(&self, index: u64) -> usize {
        HEAD + (1 + self.slot(index)) * self.slot_bytes
    }

    /// Offset of the slot at which message `index` arrives.
    #[inline]
    pub(super) const fn incoming(&self, index: u64) -> usize {
        HEAD + (1 + self.depth + self.slot(index)) * self.slot_bytes
    }

    /// End of the slot at which message `index` arrives.
    #[inline]
    pub(super) const fn end_of_incoming(&self, index: u64) -> usize {
        self.incoming(index) + self.slot_bytes
    }

    /// Length of the receive to post for a slot, bytes.
    pub(super) const fn receive_bytes(&self, operation: Operation) -> usize {
        match operation {
            Operation::WriteImmediate => 0,
            _ => self.slot_bytes,
        }
    }

    /// Reduces the number of slots to at most `depth`.
    pub(super) fn at_most(self, depth: u16) -> Self {
        Self { depth: self.depth.min(usize::from(depth)), ..self }
    }

    /// Reduces the number of slots to what fits into the work queues of a device.
    fn within(self, longest_queue: u32) -> Self {
        let mut layout = self;
        while layout.depth > 2 && layout.sends() > longest_queue as usize {
            layout.depth /= 2;
        }
        layout
    }

    /// Capacity of the send queue: for each message, the message itself, an announcement and an
    /// escape.
    pub(super) const fn sends(&self) -> usize {
        3 * self.depth + 16
    }
}

/// An end that is ready to be connected.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) queue: Queue,
    pub(super) layout: Layout,
    pub(super) port: Port,
    gid: Option<Gid>,
    packet_number: u32,
    datagram_key: u32,
    operation: Operation,
    settings: VerbsSettings,
    reads: u8,
    /// Entry in the profile.
    pub(super) record: VerbsPort,
}

/// Requirements on the queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    pub(super) operation: Operation,
    /// Layout; the number of slots may be reduced if the device has shorter queues.
    pub(super) layout: Layout,
    /// Size of inline data; `None` for the default.
    pub(super) inline: Option<u32>,
    pub(super) events: bool,
}

impl Station {
    /// Opens the device named by `settings`, or the first suitable one.
    pub(super) fn open(settings: &VerbsSettings, purpose: Purpose) -> Result<Self, VerbsError> {
        let chosen = choose(settings)?;
        let record = chosen.describe(settings.port);
        let Chosen { name, context, port, gid } = chosen;
        let refused = |action, hint| {
            let device = name.clone();
            move |source| VerbsError::Device { device, action, source, hint }
        };
        let reads = context.most_reads().clamp(1, 16);
        let longest_queue = context.longest_queue();
        let domain = Domain::new(context)
            .map_err(refused("allocating a protection domain", "see the kernel's log"))?;
        let domain = Arc::new(domain);
        let purpose = Purpose { layout: purpose.layout.within(longest_queue), ..purpose };
        // On the device's NUMA node, regardless of where this thread is pinned later.
        let (layout, made) = run_on_node(record.numa_node, || {
            let (layout, memory) = register(&domain, purpose.layout, settings)?;
            let purpose = Purpose { layout, ..purpose };
            Ok::<_, VerbsError>((layout, create(domain, memory, purpose, longest_queue)))
        })?;
        let datagram_key = random_datagram_key();
        let mut queue = made.map_err(|source| VerbsError::QueuePair {
            device: name.clone(),
            inline: purpose.inline,
            source,
        })?;
        queue
            .initialise(settings.port, datagram_key)
            .map_err(refused("initialising the queue pair", "see the kernel's log"))?;
        Ok(Self {
            queue,
            layout,
            port,
            gid,
            packet_number: packet_number(),
            datagram_key,
            operation: purpose.operation,
            settings: *settings,
            reads,
            record,
        })
    }

    /// Posts receives, or marks the slots as empty.
    fn post_receives(&mut self) -> io::Result<()> {
        let slots = 0..self.layout.depth as u64;
        match self.operation {
            Operation::Read => {}
            Operation::Write => {
                for index in slots {
                    let last = self.layout.incoming(index) + self.layout.slot_bytes - 1;
                    self.queue.memory().set_byte(last, EMPTY);
                }
            }
            operation => {
                let length = self.layout.receive_bytes(operation);
                for index in slots {
                    self.queue.post_receive(index, self.layout.incoming(index), length)?;
                }
            }
        }
        Ok(())
    }

    /// Number of messages in flight.
    pub(super) fn depth(&self) -> u16 {
        u16::try_from(self.layout.depth).unwrap_or(u16::MAX)
    }

    /// Connection data for the peer.
    pub(super) fn data(&self) -> StationData {
        StationData {
            queue: self.queue.number(),
            packet_number: self.packet_number,
            lid: self.port.lid,
            gid: self.gid.map_or([0; 16], |gid| gid.bytes),
            address: self.queue.memory().address(),
            key: self.queue.memory().remote_key(),
            datagram_key: self.datagram_key,
            reads: self.reads,
        }
    }

    /// Description of the device for the peer, as JSON.
    pub(super) fn described(&self) -> String {
        serde_json::to_string(&self.record).unwrap_or_default()
    }

    /// Connects the queue pair to `peer`, which uses `depth` of the slots, with packets of `mtu`
    /// bytes on the path of `offer`; it may send once it knows that.
    pub(super) fn connect(
        &mut self,
        peer: &StationData,
        depth: u16,
        mtu: u16,
        offer: &Offer,
    ) -> Result<(), VerbsError> {
        self.layout = self.layout.at_most(depth);
        self.post_receives().map_err(|source| VerbsError::Device {
            device: self.record.device.clone(),
            action: "posting receives",
            source,
            hint: "a smaller --depth may be granted; `ibv_devinfo -v` shows the limits",
        })?;
        let path = Path {
            port: self.settings.port,
            gid_index: self.gid.map(|gid| gid.index),
            mtu,
            service_level: offer.service_level,
            traffic_class: offer.traffic_class,
            reads: reads_under_way(self.reads, peer.reads),
            packet_number: self.packet_number,
        };
        let peer = QueuePeer {
            number: peer.queue,
            packet_number: peer.packet_number,
            lid: peer.lid,
            gid: peer.gid,
            datagram_key: peer.datagram_key,
        };
        self.queue.connect(&peer, &path).map_err(|source| VerbsError::Device {
            device: self.record.device.clone(),
            action: "connecting the queue pair",
            source,
            hint: "the peer's address is not reached from this one; name the same kind of address on both ends with --gid-index, and try `ping` between the interfaces",
        })
    }
}

/// Template content: varying bytes, so that no device on the path can compress them, none of which
/// is [`EMPTY`].
fn filling(length: usize) -> Vec<u8> {
    let byte = |index: u32| (index.wrapping_mul(0x9e37_79b1) >> 24).to_le_bytes()[0] & 0x7f;
    (0..).map(byte).take(length).collect()
}

/// Registers memory for the slots of `layout`, or for fewer if less can be locked.
fn register(
    domain: &Arc<Domain>,
    mut layout: Layout,
    settings: &VerbsSettings,
) -> Result<(Layout, Region), VerbsError> {
    let register = |layout: Layout| Region::register(domain, layout.bytes(), settings.pages());
    let mut registered = register(layout);
    // The effective limit can be lower than reported: for root in a container, or if other links
    // have locked memory.
    let lacks = |error: &io::Error| error.kind() == io::ErrorKind::OutOfMemory;
    while layout.depth > LEAST_DEPTH && registered.as_ref().is_err_and(lacks) {
        layout.depth /= 2;
        registered = register(layout);
    }
    let bytes = layout.bytes();
    let memory = registered.map_err(|source| match settings.pages() {
        PageSize::Huge => VerbsError::HugePages { bytes, source },
        PageSize::Usual => VerbsError::Register { bytes, limit: lock_limit(), source },
    })?;
    memory.write(TEMPLATE, &filling(layout.slot_bytes));
    Ok((layout, memory))
}

/// Creates a queue pair for `purpose`, with as much inline data as is granted.
fn create(
    domain: Arc<Domain>,
    memory: Region,
    purpose: Purpose,
    longest_queue: u32,
) -> io::Result<Queue> {
    let entries = |wanted: usize| u32::try_from(wanted).unwrap_or(u32::MAX).min(longest_queue);
    let asked = purpose.inline.map(|bytes| [bytes]);
    let options = QueueOptions {
        kind: match purpose.operation {
            Operation::Datagram => QueueKind::Datagram,
            _ => QueueKind::Connected,
        },
        sends: entries(purpose.layout.sends()),
        receives: entries(purpose.layout.depth),
        inline: asked.as_ref().map_or(&INLINE, |asked| asked),
        events: purpose.events,
    };
    Queue::create(memory, domain, options)
}

/// Parses a port's rate as the kernel shows it, such as `2.5 Gb/sec (1X SDR)`, into bit/s.
fn rate(text: &str) -> Option<u64> {
    let gigabits: f64 = text.split_once(" Gb/sec")?.0.parse().ok()?;
    let bits = (gigabits * 1e9).round();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    (bits > 0.0 && bits < 1e18).then_some(bits as u64)
}

/// An open device with its port and GID.
struct Chosen {
    name: String,
    context: Context,
    port: Port,
    gid: Option<Gid>,
}

impl Chosen {
    /// Entry of port `number` of the device in the profile.
    fn describe(&self, number: u8) -> VerbsPort {
        let Self { name, context, port, gid } = self;
        let folder = format!("/sys/class/infiniband/{name}");
        let of_port = |entry| format!("{folder}/ports/{number}/{entry}");
        let node = read_setting(format!("{folder}/device/numa_node"));
        let link_layer = match port.link_layer {
            LinkLayer::InfiniBand => "InfiniBand",
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Unknown => "unknown",
        };
        VerbsPort {
            device: name.clone(),
            port: number,
            firmware: context.firmware(),
            link_layer: link_layer.to_owned(),
            rate_bits_per_s: rate(&read_setting(of_port("rate")).unwrap_or_default()),
            mtu_bytes: port.mtu,
            numa_node: node.and_then(|node| node.parse().ok()),
            interface: interface(name, number, gid.as_ref()),
            gid_index: gid.map(|gid| gid.index),
        }
    }
}

/// The requested device, or the first usable one.
fn choose(settings: &VerbsSettings) -> Result<Chosen, VerbsError> {
    let asked = settings.device.as_ref().map(|name| name.as_str().to_owned());
    let none = |present, source| VerbsError::NoDevice { asked: asked.clone(), present, source };
    let present = Context::names().map_err(|source| none(Vec::new(), Some(source)))?;
    let wanted = |name: &&String| asked.as_ref().is_none_or(|asked| asked == *name);
    let mut first = None;
    for name in present.iter().filter(wanted) {
        let chosen = open(name, settings.port).and_then(|(context, port)| {
            let gid = address(settings, name, &context, &port)?;
            Ok(Chosen { name: name.clone(), context, port, gid })
        });
        match chosen {
            Ok(chosen) => return Ok(chosen),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| none(present, None)))
}

fn open(name: &str, number: u8) -> Result<(Context, Port), VerbsError> {
    let device = || name.to_owned();
    let context =
        Context::open(name).map_err(|source| VerbsError::Open { device: device(), source })?;
    let ports = context.ports();
    if number == 0 || number > ports {
        return Err(VerbsError::NoPort { device: device(), port: number, ports });
    }
    let port = context.port(number).map_err(|source| VerbsError::Device {
        device: device(),
        action: "looking at the port",
        source,
        hint: "see the kernel's log",
    })?;
    if !port.active {
        return Err(VerbsError::PortDown { device: device(), port: number, state: port.state });
    }
    Ok((context, port))
}

/// GID of this end: the requested one, or the first of RoCE v2 over IPv4; none on InfiniBand, where
/// the LID is sufficient.
fn address(
    settings: &VerbsSettings,
    device: &str,
    context: &Context,
    port: &Port,
) -> Result<Option<Gid>, VerbsError> {
    let number = settings.port;
    let no_address =
        |index| VerbsError::NoAddress { device: device.to_owned(), port: number, index };
    if settings.gid_index.is_none() && port.link_layer == LinkLayer::InfiniBand {
        return Ok(None);
    }
    let gids = context.gids().map_err(|source| VerbsError::Device {
        device: device.to_owned(),
        action: "reading the table of addresses",
        source,
        hint: "use a newer libibverbs",
    })?;
    let mut of_port = gids.into_iter().filter(|gid| gid.port == number);
    let found = match settings.gid_index {
        Some(index) => of_port.find(|gid| gid.index == index),
        None => of_port.find(|gid| gid.kind == GidKind::RoceV2 && is_ipv4(gid.bytes)),
    };
    found.map(Some).ok_or_else(|| no_address(settings.gid_index))
}

/// True if it is an IPv4-mapped IPv6 address.
fn is_ipv4(gid: [u8; 16]) -> bool {
    gid.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff])
}

fn interface(device: &str, port: u8, gid: Option<&Gid>) -> Option<String> {
    let folder = format!("/sys/class/infiniband/{device}");
    let index = gid.map_or(0, |gid| gid.index);
    read_setting(format!("{folder}/ports/{port}/gid_attrs/ndevs/{index}")).or_else(|| {
        let mut interfaces = fs::read_dir(FilePath::new(&folder).join("device/net")).ok()?;
        interfaces.next()?.ok()?.file_name().into_string().ok()
    })
}

/// Memory that an end may use for slots, bytes: what systems let every user lock, or an eighth of
/// what this process may lock if that is more, so that several links are possible.
pub(super) fn memory_to_lend() -> usize {
    lent_of(lock_limit())
}

/// As [`memory_to_lend`], for a limit on locked memory in bytes; `None` means no limit.
fn lent_of(limit: Option<u64>) -> usize {
    let part = |limit: u64| usize::try_from(limit / 8).unwrap_or(usize::MAX);
    limit.map_or(MOST_MEMORY, |limit| part(limit).clamp(USUAL_MEMORY, MOST_MEMORY))
}

/// True if the limit does not apply to this process because it has `CAP_IPC_LOCK`.
fn may_lock_everything() -> bool {
    const IPC_LOCK: u32 = 14;
    read_entry("/proc/self/status", "CapEff")
        .and_then(|digits| u64::from_str_radix(&digits, 16).ok())
        .is_some_and(|capabilities| capabilities >> IPC_LOCK & 1 == 1)
}

/// Limit of this process on locked memory, bytes; `None` if it is unlimited.
fn lock_limit() -> Option<u64> {
    let (soft, _hard) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
    (soft != RLIM_INFINITY && !may_lock_everything()).then_some(soft)
}

/// Random first packet number, 24 bits, so that packets of an earlier connection are not accepted.
fn packet_number() -> u32 {
    getrandom::u32().unwrap_or(1) & 0x00ff_ffff
}

/// Random queue key for datagrams to this end, so that those of other senders are dropped. The
/// highest bit is 0, because it has a special meaning.
fn random_datagram_key() -> u32 {
    getrandom::u32().unwrap_or(0x1111_1111) & 0x7fff_ffff
}

/// Number of outstanding reads: the lower limit of both devices, but at least one.
fn reads_under_way(here: u8, there: u8) -> u8 {
    here.min(there).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_messages_are_apart_and_within_the_memory() {
        for (depth, longest) in [(128, 1), (128, 64 << 10), (1, 100), (4_096, 1 << 20)] {
            let layout = Layout::new(depth, longest, USUAL_MEMORY);
            assert!(layout.depth.is_power_of_two() && layout.depth >= 2, "{layout:?}");
            let last = layout.depth as u64 - 1;
            assert!(layout.slot_bytes >= longest as usize + GRH_BYTES, "{layout:?}");
            assert_eq!(layout.incoming(last) + layout.slot_bytes, layout.bytes());
            assert_eq!(layout.outgoing(last) + layout.slot_bytes, layout.incoming(0));
            assert_eq!(layout.incoming(last + 1), layout.incoming(0));
            const { assert!(TEMPLATE >= ESCAPED_HERE + 4) };
            assert_eq!(TEMPLATE + layout.slot_bytes, layout.outgoing(0));
        }
    }

    #[test]
    fn filling_looks_like_no_empty_place_and_like_no_run_of_equal_bytes() {
        let bytes = filling(4_096);
        assert!(bytes.len() == 4_096 && bytes.iter().all(|byte| *byte < 128));
        assert!(bytes.windows(2).filter(|pair| pair[0] == pair[1]).count() < 100);
    }

    #[test]
    fn short_queues_of_a_device_make_fewer_places() {
        let layout = Layout::new(128, 1 << 10, USUAL_MEMORY);
        assert_eq!(layout.within(u32::MAX), layout);
        for longest_queue in [22, 100, 399, 400, 4_096] {
            let fewer = layout.within(longest_queue);
            assert!(fewer.sends() <= longest_queue as usize, "{fewer:?}");
            let twice = Layout { depth: 2 * fewer.depth, ..fewer };
            assert!(fewer == layout || twice.sends() > longest_queue as usize, "{fewer:?}");
        }
        assert_eq!(layout.within(1).depth, 2);
    }

    #[test]
    fn the_rate_of_a_port_is_read_from_the_words_of_the_kernel() {
        let rates =
            ["400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "0 Gb/sec", "", "fast"].map(rate);
        assert_eq!(rates, [Some(400_000_000_000), Some(2_500_000_000), None, None, None]);
    }

    #[test]
    fn no_more_reads_are_under_way_than_either_device_takes() {
        assert_eq!([(16, 4), (1, 16), (16, 0)].map(|(a, b)| reads_under_way(a, b)), [4, 1, 1]);
    }

    #[test]
    fn an_eighth_of_what_may_be_locked_is_lent() {
        let lent = [None, Some(0), Some(8 << 20), Some(256 << 20), Some(u64::MAX)].map(lent_of);
        assert_eq!(lent, [MOST_MEMORY, USUAL_MEMORY, USUAL_MEMORY, 32 << 20, MOST_MEMORY]);
    }

    #[test]
    fn long_messages_are_fewer_at_a_time() {
        let depth = |depth, longest, memory| Layout::new(depth, longest, memory).depth;
        assert_eq!(depth(128, 1 << 10, USUAL_MEMORY), 128);
        assert_eq!(depth(100, 1 << 10, USUAL_MEMORY), 64);
        assert_eq!(depth(128, 1 << 20, USUAL_MEMORY), LEAST_DEPTH);
        assert_eq!(depth(128, 1 << 20, usize::MAX), 32);
        assert_eq!(depth(128, 8 << 20, usize::MAX), 4);
        let peers = Layout::new(128, 1 << 20, usize::MAX).at_most(8);
        assert_eq!((peers.depth, peers.at_most(64)), (8, peers));
    }
}
