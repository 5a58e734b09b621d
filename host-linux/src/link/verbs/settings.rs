//! Settings of an RDMA verbs link.

use std::fmt;

#[cfg(feature = "verbs")]
use crate::sys::verbs::PageSize;

/// Operation by which messages are transferred.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// RC send into a receive that the peer has posted.
    Send,
    /// RC write; the peer polls the last byte in memory.
    Write,
    /// RC write with immediate; the peer gets a completion.
    WriteImmediate,
    /// RC read: this end fetches from the peer, whose processor is not involved.
    Read,
    /// UD send (datagrams).
    Datagram,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 5] =
        [Self::Send, Self::Write, Self::WriteImmediate, Self::Read, Self::Datagram];

    /// Name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "write",
            Self::WriteImmediate => "write-imm",
            Self::Read => "read",
            Self::Datagram => "ud",
        }
    }

    /// The operation with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Name of a device, at most 63 bytes, as in the kernel.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct DeviceName {
    bytes: [u8; Self::LONGEST],
    length: usize,
}

impl DeviceName {
    /// Longest name in bytes.
    pub const LONGEST: usize = 63;

    /// Checks a name; `None` if it is empty or no device can have it.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; Self::LONGEST];
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
        if name.is_empty() || !name.bytes().all(plain) {
            return None;
        }
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self { bytes, length: name.len() })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Settings of an RDMA verbs link. A responder uses only device, port, GID index, huge pages and
/// longest message; if `operation` is set there, it serves only that one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VerbsSettings {
    /// Device; by default the first one with an active port.
    pub device: Option<DeviceName>,
    /// Port, counted from 1.
    pub port: u8,
    /// Index of this end's GID; found automatically by default.
    pub gid_index: Option<u8>,
    /// Operation; [`Operation::Send`] by default.
    pub operation: Option<Operation>,
    /// Largest inline data in bytes; by default what the device grants up to 220, as in perftest.
    pub inline: Option<u32>,
    /// Packet payload in bytes; by default that of the ports.
    pub mtu: Option<u16>,
    /// Service level.
    pub service_level: u8,
    /// Traffic class of RoCE; its upper six bits are the DSCP.
    pub traffic_class: u8,
    /// Messages in flight; reduced for long messages.
    pub depth: u16,
    /// Number of sends for each completion; by default a quarter of `depth`.
    pub signal_every: Option<u16>,
    /// True to register huge pages.
    pub huge_pages: bool,
    /// Longest message in bytes.
    pub longest_message: u32,
}

impl Default for VerbsSettings {
    /// [`VerbsSettings::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl VerbsSettings {
    /// Send over the first active port, 128 messages in flight, up to 64 KiB.
    pub const DEFAULT: Self = Self {
        device: None,
        port: 1,
        gid_index: None,
        operation: None,
        inline: None,
        mtu: None,
        service_level: 0,
        traffic_class: 0,
        depth: 128,
        signal_every: None,
        huge_pages: false,
        longest_message: 64 << 10,
    };

    /// Page size of the registered memory.
    #[cfg(feature = "verbs")]
    pub(super) const fn pages(&self) -> PageSize {
        if self.huge_pages { PageSize::Huge } else { PageSize::Usual }
    }

    /// Settings for a responder that this process starts, as a word of its command line: device,
    /// port, GID index and page size.
    pub(crate) fn place(&self) -> String {
        let device = self.device.as_ref().map_or("-", DeviceName::as_str);
        let gid = self.gid_index.map_or_else(|| "-".to_owned(), |index| index.to_string());
        let pages = if self.huge_pages { "huge" } else { "usual" };
        format!("{device}:{}:{gid}:{pages}", self.port)
    }

    /// Parses the settings of a responder from a word of [`Self::place`].
    pub(crate) fn at(word: &str) -> Option<Self> {
        let mut words = word.split(':');
        let (device, port, gid) = (words.next()?, words.next()?, words.next()?);
        let huge_pages = match words.next()? {
            "usual" => false,
            "huge" => true,
            _ => return None,
        };
        let device = match device {
            "-" => None,
            name => Some(DeviceName::new(name)?),
        };
        let gid_index = match gid {
            "-" => None,
            index => Some(index.parse().ok()?),
        };
        let port = port.parse().ok()?;
        words.next().is_none().then_some(Self {
            device,
            port,
            gid_index,
            huge_pages,
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_the_command_line() {
        let named = VerbsSettings {
            device: DeviceName::new("mlx5_0"),
            port: 2,
            gid_index: Some(3),
            huge_pages: true,
            ..VerbsSettings::default()
        };
        for settings in [VerbsSettings::default(), named] {
            assert_eq!(VerbsSettings::at(&settings.place()), Some(settings));
        }
        for word in ["", "-:1:-", "-:1:-:few", "-:1:-:huge:2", "-:256:-:usual", "a/b:1:-:huge"] {
            assert_eq!(VerbsSettings::at(word), None, "{word}");
        }
    }

    #[test]
    fn names_of_devices_are_bounded() {
        assert_eq!(DeviceName::new("rxe0").unwrap().as_str(), "rxe0");
        assert!(DeviceName::new(&"x".repeat(63)).is_some());
        for name in ["", "a b", "a/b", "a:b", &"x".repeat(64)] {
            assert!(DeviceName::new(name).is_none(), "{name}");
        }
    }
}
