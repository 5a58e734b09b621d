//! Connection data exchanged over the control connection.
//!
//! The initiator sends an offer, the responder an answer, each [`LENGTH`] bytes long and
//! little-endian. Afterwards the connection carries no data until it closes.

use loggap_core::wire::FRAME_LEN;

use super::settings::Operation;
use super::station::Layout;

/// Length of an offer and of an answer, bytes.
pub(super) const LENGTH: usize = 1_024;
/// Name of the format.
const NAME: [u8; 7] = *b"lgverb\0";
/// Version of the format; incremented whenever the bytes or their meaning change.
const VERSION: u8 = 4;

/// Value of `inline` for the default size of inline data.
pub(super) const AUTO_INLINE: u32 = u32::MAX;

/// True if `bytes` may be the beginning of an offer or answer of any version.
pub(crate) fn begins_an_offer(bytes: &[u8]) -> bool {
    bytes.iter().zip(&NAME).all(|(byte, known)| byte == known)
}

const NO_PAYLOAD: &str = "a packet payload other than 256, 512, 1024, 2048 or 4096 bytes";

/// True if this is a possible packet payload of a port, in bytes.
const fn is_payload(mtu: u16) -> bool {
    matches!(mtu, 256 | 512 | 1_024 | 2_048 | 4_096)
}

/// Address of an end and of its memory.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct StationData {
    /// Number of its queue pair.
    pub(super) queue: u32,
    /// First packet number.
    pub(super) packet_number: u32,
    /// LID in an InfiniBand subnet.
    pub(super) lid: u16,
    /// GID, or zero.
    pub(super) gid: [u8; 16],
    /// Address of its registered memory.
    pub(super) address: u64,
    /// Remote key of that memory.
    pub(super) key: u32,
    /// Queue key that datagrams to it must carry.
    pub(super) datagram_key: u32,
    /// Limit of its device on outstanding reads, as either end.
    pub(super) reads: u8,
}

/// Error of connection data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unusable {
    /// Data of another protocol.
    Foreign,
    /// Connection data of another version.
    Version,
    /// Invalid connection data; the text names the invalid request.
    Wrong(&'static str),
}

/// Offer of the initiator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Offer {
    pub(super) operation: Operation,
    /// Largest packet payload that it accepts, in bytes.
    pub(super) mtu: u16,
    /// True if no other payload is acceptable.
    pub(super) mtu_asked: bool,
    pub(super) service_level: u8,
    pub(super) traffic_class: u8,
    /// Messages in flight, a power of two.
    pub(super) depth: u16,
    /// Longest message in bytes.
    pub(super) longest: u32,
    /// Largest inline data in bytes, or [`AUTO_INLINE`].
    pub(super) inline: u32,
    pub(super) signal_every: u16,
    pub(super) station: StationData,
    /// Description of the device, as JSON.
    pub(super) port: String,
}

/// Answer of the responder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The responder is connected.
    Connected {
        /// Packet payload in bytes.
        mtu: u16,
        station: StationData,
        /// Messages in flight, at most those of the offer.
        depth: u16,
        /// Description of the device, as JSON.
        port: String,
    },
    /// The responder does not connect, for this reason.
    Refused(String),
}

impl Offer {
    pub(super) fn to_bytes(&self) -> [u8; LENGTH] {
        let mut bytes = Bytes::new();
        let operation = Operation::ALL.iter().position(|known| *known == self.operation);
        bytes.put(&[u8::try_from(operation.unwrap_or(0)).unwrap_or(0)]);
        bytes.put(&[u8::from(self.mtu_asked), self.service_level, self.traffic_class]);
        bytes.put(&self.mtu.to_le_bytes());
        bytes.put(&self.depth.to_le_bytes());
        bytes.put(&self.longest.to_le_bytes());
        bytes.put(&self.inline.to_le_bytes());
        bytes.put(&self.signal_every.to_le_bytes());
        bytes.station(&self.station);
        bytes.text(&self.port)
    }

    /// Parses and checks an offer.
    pub(super) fn from_bytes(bytes: &[u8; LENGTH]) -> Result<Self, Unusable> {
        let fields = Fields::of(bytes)?;
        let offer = Self::of(fields).ok_or(Unusable::Wrong("fields without a meaning"))?;
        offer.check()?;
        Ok(offer)
    }

    fn of(mut fields: Fields<'_>) -> Option<Self> {
        let [operation, mtu_asked, service_level, traffic_class] = fields.take()?;
        Some(Self {
            operation: *Operation::ALL.get(usize::from(operation))?,
            mtu_asked: mtu_asked != 0,
            service_level,
            traffic_class,
            mtu: u16::from_le_bytes(fields.take()?),
            depth: u16::from_le_bytes(fields.take()?),
            longest: u32::from_le_bytes(fields.take()?),
            inline: u32::from_le_bytes(fields.take()?),
            signal_every: u16::from_le_bytes(fields.take()?),
            station: fields.station()?,
            port: fields.text()?,
        })
    }

    /// Checks the rules that every correct initiator follows; memory is registered only if they
    /// hold.
    fn check(&self) -> Result<(), Unusable> {
        let depth = usize::from(self.depth);
        let wrong = if !is_payload(self.mtu) {
            NO_PAYLOAD
        } else if !depth.is_power_of_two() || depth < 2 {
            "a number of messages under way that is no power of two from 2 on"
        } else if u64::from(self.longest) > crate::link::LONGEST_MESSAGE.0 {
            "messages longer than any link takes"
        } else if (self.longest as usize) < FRAME_LEN {
            "messages shorter than a control frame, which has 448 bytes (a larger --mtu, for --op ud)"
        } else if depth > Layout::new(u16::MAX, self.longest, usize::MAX).depth {
            "more messages under way than memory is lent for at that length"
        } else if self.signal_every == 0 || self.signal_every > self.depth {
            "a completion for each so many sends that is none of 1 to the messages under way"
        } else {
            return Ok(());
        };
        Err(Unusable::Wrong(wrong))
    }
}

impl Answer {
    pub(super) fn to_bytes(&self) -> [u8; LENGTH] {
        let mut bytes = Bytes::new();
        match self {
            Self::Connected { mtu, station, depth, port } => {
                bytes.put(&[1]);
                bytes.put(&mtu.to_le_bytes());
                bytes.station(station);
                bytes.put(&depth.to_le_bytes());
                bytes.text(port)
            }
            Self::Refused(reason) => {
                bytes.put(&[0]);
                bytes.text(reason)
            }
        }
    }

    /// Parses the answer to `offer`.
    pub(super) fn from_bytes(bytes: &[u8; LENGTH], offer: &Offer) -> Result<Self, Unusable> {
        let fields = Fields::of(bytes)?;
        let answer = Self::of(fields).ok_or(Unusable::Wrong("fields without a meaning"))?;
        let Self::Connected { mtu, depth, .. } = answer else { return Ok(answer) };
        if !depth.is_power_of_two() || depth < 2 || depth > offer.depth {
            Err(Unusable::Wrong("another number of messages under way than was offered"))
        } else if !is_payload(mtu) {
            Err(Unusable::Wrong(NO_PAYLOAD))
        } else if mtu > offer.mtu {
            Err(Unusable::Wrong("a larger packet payload than was offered"))
        } else {
            Ok(answer)
        }
    }

    fn of(mut fields: Fields<'_>) -> Option<Self> {
        match fields.take()? {
            [0] => Some(Self::Refused(fields.text()?)),
            [1] => Some(Self::Connected {
                mtu: u16::from_le_bytes(fields.take()?),
                station: fields.station()?,
                depth: u16::from_le_bytes(fields.take()?),
                port: fields.text()?,
            }),
            _ => None,
        }
    }
}

/// Serialiser of connection data.
struct Bytes {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Bytes {
    fn new() -> Self {
        let mut empty = Self { bytes: [0; LENGTH], length: 0 };
        empty.put(&NAME);
        empty.put(&[VERSION]);
        empty
    }

    /// Appends a field. All fields except the text together are shorter than [`LENGTH`].
    fn put(&mut self, field: &[u8]) {
        let end = self.length + field.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(field);
            self.length = end;
        }
    }

    fn station(&mut self, station: &StationData) {
        self.put(&station.queue.to_le_bytes());
        self.put(&station.packet_number.to_le_bytes());
        self.put(&station.lid.to_le_bytes());
        self.put(&station.gid);
        self.put(&station.address.to_le_bytes());
        self.put(&station.key.to_le_bytes());
        self.put(&station.datagram_key.to_le_bytes());
        self.put(&[station.reads]);
    }

    /// Appends the text, which is the last field, truncated if it is too long.
    fn text(mut self, text: &str) -> [u8; LENGTH] {
        let mut room = (LENGTH - self.length - 2).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        let length = u16::try_from(room).unwrap_or(0);
        self.put(&length.to_le_bytes());
        self.put(text.get(..room).unwrap_or_default().as_bytes());
        self.bytes
    }
}

/// Parser of connection data.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Checks name and version, and returns the fields after them.
    fn of(bytes: &'a [u8; LENGTH]) -> Result<Self, Unusable> {
        let mut fields = Self(bytes);
        if fields.take() != Some(NAME) {
            return Err(Unusable::Foreign);
        }
        if fields.take() != Some([VERSION]) {
            return Err(Unusable::Version);
        }
        Ok(fields)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn station(&mut self) -> Option<StationData> {
        Some(StationData {
            queue: u32::from_le_bytes(self.take()?),
            packet_number: u32::from_le_bytes(self.take()?),
            lid: u16::from_le_bytes(self.take()?),
            gid: self.take()?,
            address: u64::from_le_bytes(self.take()?),
            key: u32::from_le_bytes(self.take()?),
            datagram_key: u32::from_le_bytes(self.take()?),
            reads: u8::from_le_bytes(self.take()?),
        })
    }

    fn text(&mut self) -> Option<String> {
        let length = u16::from_le_bytes(self.take()?);
        let text = self.0.get(..usize::from(length))?;
        Some(printable(std::str::from_utf8(text).ok()?))
    }
}

/// A peer's text without characters that control a terminal or the direction of text.
pub(super) fn printable(text: &str) -> String {
    let acts =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.replace(acts, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        let station = StationData {
            queue: 17,
            packet_number: 0xab_cdef,
            lid: 3,
            gid: [7; 16],
            address: 1 << 40,
            key: 99,
            datagram_key: 0x1234_5678,
            reads: 16,
        };
        Offer {
            operation: Operation::Write,
            mtu: 1024,
            mtu_asked: true,
            service_level: 1,
            traffic_class: 104,
            depth: 32,
            longest: 1 << 16,
            inline: u32::MAX,
            signal_every: 8,
            station,
            port: "{\"device\":\"rxe0\"}".into(),
        }
    }

    #[test]
    fn connection_data_survive_the_wire() {
        let offer = offer();
        assert_eq!(Offer::from_bytes(&offer.to_bytes()), Ok(offer.clone()));
        let answers = [
            Answer::Connected {
                mtu: 512,
                station: offer.station,
                depth: 16,
                port: offer.port.clone(),
            },
            Answer::Refused("no ä".into()),
        ];
        for answer in answers {
            assert_eq!(Answer::from_bytes(&answer.to_bytes(), &offer), Ok(answer));
        }
    }

    /// Offsets that `tests/verbs/scenarios` and `host-linux/tests/verbs.rs` modify.
    #[test]
    fn fields_are_at_the_offsets_that_tests_change() {
        let station = StationData { queue: 0x4433_2211, key: 0x8877_6655, ..offer().station };
        let bytes = Offer { depth: 0x0201, longest: 0x0403_0201, ..offer() }.to_bytes();
        assert_eq!((bytes[7], &bytes[14..16]), (VERSION, &[1, 2][..]));
        assert_eq!(bytes[16..20], [1, 2, 3, 4]);
        let answer = Answer::Connected { mtu: 512, station, depth: 0x0201, port: String::new() };
        let bytes = answer.to_bytes();
        assert_eq!(bytes[11..15], [0x11, 0x22, 0x33, 0x44]);
        assert_eq!(bytes[45..49], [0x55, 0x66, 0x77, 0x88]);
        // Fields after the station, which occupies 11..54.
        assert_eq!((bytes[53], &bytes[54..56]), (station.reads, &[1, 2][..]));
    }

    #[test]
    fn what_is_no_connection_data_is_told_from_another_version() {
        let offer_of = |index: usize| {
            let mut bytes = offer().to_bytes();
            bytes[index] += 1;
            Offer::from_bytes(&bytes)
        };
        assert_eq!(offer_of(0), Err(Unusable::Foreign));
        let bytes = offer().to_bytes();
        assert!([0, 1, 7, LENGTH].iter().all(|length| begins_an_offer(&bytes[..*length])));
        assert!(!begins_an_offer(b"L") && !begins_an_offer(b"lgverB"));
        assert_eq!(offer_of(7), Err(Unusable::Version));
        let mut answer = Answer::Refused("busy".into()).to_bytes();
        answer[7] -= 1;
        assert_eq!(Answer::from_bytes(&answer, &offer()), Err(Unusable::Version));
        assert_eq!(Answer::from_bytes(&[0; LENGTH], &offer()), Err(Unusable::Foreign));
    }

    #[test]
    fn an_offer_that_takes_too_much_is_refused_before_memory_is() {
        let most = u16::try_from(Layout::new(u16::MAX, 4 << 20, usize::MAX).depth).unwrap();
        let long = Offer { depth: most, longest: 4 << 20, signal_every: 1, ..offer() };
        assert_eq!(Offer::from_bytes(&long.to_bytes()), Ok(long.clone()));
        let shortest = Offer { longest: u32::try_from(FRAME_LEN).unwrap(), ..offer() };
        assert_eq!(Offer::from_bytes(&shortest.to_bytes()), Ok(shortest.clone()));
        for (words, wrong) in [
            ("packet payload", Offer { mtu: 0, ..offer() }),
            ("packet payload", Offer { mtu: 1_025, ..offer() }),
            ("power of two", Offer { depth: 3, ..offer() }),
            ("power of two", Offer { depth: 1, signal_every: 1, ..offer() }),
            ("longer than any link", Offer { longest: u32::MAX, ..offer() }),
            ("than a control frame", Offer { longest: shortest.longest - 1, ..offer() }),
            ("than memory is lent for", Offer { depth: 2 * most, ..long.clone() }),
            ("than memory is lent for", Offer { depth: 1 << 15, ..long }),
            ("a completion for each", Offer { signal_every: 0, ..offer() }),
            ("a completion for each", Offer { signal_every: 33, ..offer() }),
        ] {
            let refused = Offer::from_bytes(&wrong.to_bytes());
            assert!(
                matches!(refused, Err(Unusable::Wrong(why)) if why.contains(words)),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn an_answer_takes_no_more_than_was_offered() {
        let station = StationData::default();
        let read = |mtu, depth| {
            let answer = Answer::Connected { mtu, station, depth, port: String::new() };
            Answer::from_bytes(&answer.to_bytes(), &offer())
        };
        assert!(matches!(read(1_024, 32), Ok(Answer::Connected { .. })));
        for depth in [0, 1, 3, 64, u16::MAX] {
            let read = read(1_024, depth);
            assert!(
                matches!(read, Err(Unusable::Wrong(why)) if why.contains("under way")),
                "{depth}"
            );
        }
        for mtu in [0, 255, 1_000, 2_048, u16::MAX] {
            let read = read(mtu, 32);
            assert!(matches!(read, Err(Unusable::Wrong(why)) if why.contains("payload")), "{mtu}");
        }
    }

    #[test]
    fn a_reason_cannot_act_on_the_terminal() {
        let reason = Answer::Refused("b\u{1b}[2Ju\rs\ny ä \u{202e}".into());
        let read = Answer::from_bytes(&reason.to_bytes(), &offer());
        assert_eq!(read, Ok(Answer::Refused("b?[2Ju?s?y ä ?".into())));
    }

    #[test]
    fn a_reason_that_is_too_long_is_cut_off() {
        let long = Answer::Refused("ä".repeat(LENGTH));
        assert!(matches!(Answer::from_bytes(&long.to_bytes(), &offer()), Ok(Answer::Refused(cut))
            if cut.len() < LENGTH && cut.len() > LENGTH - 20));
    }
}
