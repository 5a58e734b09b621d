//! RDMA devices, their ports and protection domains.

use std::ffi::CStr;
use std::io;
use std::ptr::{self, NonNull};

use ibverbs_sys as ffi;

/// An open device; closed when dropped.
#[derive(Debug)]
pub(crate) struct Context {
    open: OpenDevice,
    attributes: ffi::ibv_device_attr,
}

/// Owner of an open device; closes it when dropped.
#[derive(Debug)]
struct OpenDevice(NonNull<ffi::ibv_context>);

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; a context does not change after it was opened.
unsafe impl Sync for Context {}

/// Link layer of a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LinkLayer {
    /// InfiniBand: peers are addressed by LID.
    InfiniBand,
    /// Ethernet (RoCE): peers are addressed by GID.
    Ethernet,
    /// Not reported by the driver.
    Unknown,
}

/// State of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// True if the port is in the state ACTIVE.
    pub(crate) active: bool,
    /// Name of the state as in `ibv_devinfo`.
    pub(crate) state: &'static str,
    pub(crate) link_layer: LinkLayer,
    /// LID, its address in the InfiniBand subnet.
    pub(crate) lid: u16,
    /// Largest packet payload in bytes.
    pub(crate) mtu: u16,
}

/// Type of a GID, which determines the packet format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GidKind {
    InfiniBand,
    RoceV1,
    RoceV2,
}

/// Entry of a port's GID table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gid {
    pub(crate) port: u8,
    pub(crate) index: u8,
    pub(crate) kind: GidKind,
    pub(crate) bytes: [u8; 16],
}

/// Limit on the entries of the GID table that are read.
const MOST_GIDS: usize = 1_024;

impl Context {
    /// Names of the devices of this machine.
    pub(crate) fn names() -> io::Result<Vec<String>> {
        let devices = ibverbs::devices()?;
        let name = |device: ibverbs::Device<'_>| Some(device.name()?.to_str().ok()?.to_owned());
        Ok(devices.iter().filter_map(name).collect())
    }

    /// Opens the named device; `NotFound` for an unknown name.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let mut count = 0;
        // SAFETY: the count is written to a local variable.
        let list = unsafe { ffi::ibv_get_device_list(&raw mut count) };
        let list = not_null(list)?;
        let count = usize::try_from(count).unwrap_or(0);
        let mut opened = Err(io::ErrorKind::NotFound.into());
        for index in 0..count {
            // SAFETY: the list has `count` entries until it is freed below.
            let entry = unsafe { list.as_ptr().add(index) };
            // SAFETY: as above.
            let device = unsafe { *entry };
            // SAFETY: an entry of the list is a device.
            let found = unsafe { ffi::ibv_get_device_name(device) };
            // SAFETY: a device's name is a C string that lives as long as the device.
            let found = unsafe { CStr::from_ptr(found) };
            if found.to_bytes() == name.as_bytes() {
                // SAFETY: as above; opened devices outlive the list.
                let raw = unsafe { ffi::ibv_open_device(device) };
                opened = not_null(raw).map(OpenDevice);
                break;
            }
        }
        // SAFETY: it came from `ibv_get_device_list` and is not used again.
        unsafe { ffi::ibv_free_device_list(list.as_ptr()) };
        let open = opened?;
        let mut attributes = ffi::ibv_device_attr::default();
        // SAFETY: the context is open, and the structure is local.
        succeeded(unsafe { ffi::ibv_query_device(open.0.as_ptr(), &raw mut attributes) })?;
        Ok(Self { open, attributes })
    }

    pub(crate) fn firmware(&self) -> String {
        let bytes = self.attributes.fw_ver.iter().map(|byte| byte.cast_unsigned());
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Limit of the device on entries of a work queue.
    pub(crate) fn longest_queue(&self) -> u32 {
        u32::try_from(self.attributes.max_qp_wr).unwrap_or(0)
    }

    /// Limit of the device on outstanding reads of a queue pair, as either end.
    pub(crate) fn most_reads(&self) -> u8 {
        let reads = self.attributes.max_qp_rd_atom.min(self.attributes.max_qp_init_rd_atom);
        u8::try_from(reads.clamp(0, 255)).unwrap_or(1)
    }

    /// Number of ports, which are numbered from 1.
    pub(crate) const fn ports(&self) -> u8 {
        self.attributes.phys_port_cnt
    }

    /// Queries a port.
    pub(crate) fn port(&self, number: u8) -> io::Result<Port> {
        let mut attributes = ffi::ibv_port_attr::default();
        let filled = (&raw mut attributes).cast::<ffi::_compat_ibv_port_attr>();
        // SAFETY: the context is open; the call fills the beginning of the structure, which has the
        // older layout.
        let code = unsafe { ffi::ibv_query_port(self.raw(), number, filled) };
        succeeded(code)?;
        Ok(Port {
            active: attributes.state == ffi::ibv_port_state::IBV_PORT_ACTIVE,
            state: state_name(attributes.state),
            link_layer: match u32::from(attributes.link_layer) {
                ffi::IBV_LINK_LAYER_INFINIBAND => LinkLayer::InfiniBand,
                ffi::IBV_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
                _ => LinkLayer::Unknown,
            },
            lid: attributes.lid,
            mtu: 128_u16.checked_shl(attributes.active_mtu).unwrap_or(0),
        })
    }

    /// GID table of all ports.
    pub(crate) fn gids(&self) -> io::Result<Vec<Gid>> {
        let mut entries = vec![ffi::ibv_gid_entry::default(); MOST_GIDS];
        let size = size_of::<ffi::ibv_gid_entry>();
        // SAFETY: `entries` has space for as many entries of that size as stated.
        let count = unsafe {
            ffi::_ibv_query_gid_table(self.raw(), entries.as_mut_ptr(), MOST_GIDS, 0, size)
        };
        let count = usize::try_from(count).map_err(|_| {
            io::Error::from_raw_os_error(i32::try_from(count.unsigned_abs()).unwrap_or(0))
        })?;
        let gid = |entry: &ffi::ibv_gid_entry| {
            Some(Gid {
                port: u8::try_from(entry.port_num).ok()?,
                index: u8::try_from(entry.gid_index).ok()?,
                kind: match entry.gid_type {
                    ffi::IBV_GID_TYPE_IB => GidKind::InfiniBand,
                    ffi::IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
                    ffi::IBV_GID_TYPE_ROCE_V2 => GidKind::RoceV2,
                    _ => return None,
                },
                // SAFETY: every bit pattern is a valid value of these bytes.
                bytes: unsafe { entry.gid.raw },
            })
        };
        Ok(entries.iter().take(count).filter_map(gid).collect())
    }

    pub(super) const fn raw(&self) -> *mut ffi::ibv_context {
        self.open.0.as_ptr()
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        // SAFETY: it is open, and all objects that belong to it have been destroyed, because they
        // hold the context through a `Domain`.
        let _no_one_to_tell = unsafe { ffi::ibv_close_device(self.0.as_ptr()) };
    }
}

/// Protection domain: queues and memory that may be used together.
#[derive(Debug)]
pub(crate) struct Domain {
    raw: NonNull<ffi::ibv_pd>,
    context: Context,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Domain {}
// SAFETY: as above; it does not change after its creation.
unsafe impl Sync for Domain {}

impl Domain {
    pub(crate) fn new(context: Context) -> io::Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { ffi::ibv_alloc_pd(context.raw()) };
        Ok(Self { raw: not_null(raw)?, context })
    }

    pub(crate) const fn context(&self) -> &Context {
        &self.context
    }

    pub(super) const fn raw(&self) -> *mut ffi::ibv_pd {
        self.raw.as_ptr()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: queues and memory hold it by reference count, so none is left.
        let _no_one_to_tell = unsafe { ffi::ibv_dealloc_pd(self.raw()) };
    }
}

/// Access rights to registered memory: of the device, and of a peer over a reliable queue pair.
pub(super) fn access() -> ffi::ibv_access_flags {
    ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
        | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
        | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_READ
}

/// Result of a call that returns 0 or an error number.
#[inline(always)]
pub(super) fn succeeded(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        number => Err(io::Error::from_raw_os_error(number.abs())),
    }
}

/// Result of a call that returns null and sets `errno` on failure.
pub(super) fn not_null<T>(pointer: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(io::Error::last_os_error)
}

const fn state_name(state: ffi::ibv_port_state::Type) -> &'static str {
    match state {
        ffi::ibv_port_state::IBV_PORT_DOWN => "DOWN",
        ffi::ibv_port_state::IBV_PORT_INIT => "INIT",
        ffi::ibv_port_state::IBV_PORT_ARMED => "ARMED",
        ffi::ibv_port_state::IBV_PORT_ACTIVE => "ACTIVE",
        ffi::ibv_port_state::IBV_PORT_ACTIVE_DEFER => "ACTIVE_DEFER",
        _ => "unknown",
    }
}

/// Null pointer for an optional structure.
pub(super) const fn none<T>() -> *mut T {
    ptr::null_mut()
}
