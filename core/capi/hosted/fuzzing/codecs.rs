//! Frames and profiles, as structs and as bytes.

use super::World;
use super::lent::{Lent, Plain};
use super::numbers::Numbers;
use super::place::{Place, Told, scribbled};
use loggap_capi::{Frame, LOGGAP_FRAME_BYTES, LOGGAP_PROFILE_BYTES, Profile, Status};
use loggap_core::model::compact;
use loggap_core::wire::{FRAME_LEN, Message};

const PROFILES: [&[u8]; 3] = [
    include_bytes!("../../../../fuzz/seeds/profile_compact/two_changes.bin"),
    include_bytes!("../../../../fuzz/seeds/profile_compact/prtt.bin"),
    include_bytes!("../../../../fuzz/seeds/profile_compact/least.bin"),
];

/// `bytes` with some of them changed.
pub(super) fn spoilt(bytes: &[u8], input: &mut Numbers<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..input.below(4) {
        let at = usize::from(input.short()) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = input.byte();
        }
    }
    let length = input.length(bytes.len());
    bytes.truncate(length);
    bytes
}

/// FNV-1a, which ends frames and profiles.
fn sum(bytes: &[u8]) -> [u8; 4] {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step).to_le_bytes()
}

/// A frame as the library writes it, `None` where it refuses.
pub(super) fn emitted(frame: &Frame) -> Option<Vec<u8>> {
    let memory = Lent::new(LOGGAP_FRAME_BYTES);
    let (bytes, room) = (memory.pointer(), memory.length());
    let null = core::ptr::null_mut();
    let status = call!(loggap_frame_emit(&raw const *frame, bytes, room, null));
    (status == 0).then(|| memory.bytes(LOGGAP_FRAME_BYTES))
}

/// A message in an Ethernet frame and out of it again.
pub(super) fn ethernet(input: &mut Numbers<'_>) {
    let (told, length) = (Told::new(input), Place::<usize>::new(input));
    let addresses = [input.take(6), input.take(6)].map(|bytes| {
        let mut address = [0_u8; 6];
        address[..bytes.len()].copy_from_slice(bytes);
        address
    });
    let size = usize::from(input.short()) % 1600;
    let message = vec![input.byte(); size];
    let capacity = input.length(size.saturating_add(18).max(60));
    let room = Lent::filled(capacity, input.below(8));
    let [to, from] = addresses.each_ref().map(|address| address.as_ptr());
    let (first, bytes, frame) = (message.as_ptr(), message.len(), room.pointer());
    let (place, detail) = (length.pointer(), told.pointer());
    let status =
        call!(loggap_ethernet_emit(to, from, first, bytes, frame, capacity, place, detail));
    told.check(status, &[Status::Full, Status::Null, Status::Alignment]);
    length.holds(status);
    assert!(room.is_guarded());
    if status != 0 {
        return;
    }
    let frame = spoilt(&room.bytes(length.get()), input);
    let (found, found_length) = (Place::<*const u8>::new(input), Place::<usize>::new(input));
    let (destination, source) = (Lent::filled(6, 1), Lent::filled(6, 3));
    let (first, bytes) = (frame.as_ptr(), frame.len());
    let (to, from) = (destination.pointer(), source.pointer());
    let (message, length) = (found.pointer(), found_length.pointer());
    let status = call!(loggap_ethernet_parse(first, bytes, to, from, message, length, detail));
    told.check(status, &[Status::Malformed, Status::Null, Status::Alignment]);
    found.holds(status);
    found_length.holds(status);
    assert!(destination.is_guarded() && source.is_guarded());
    if status == 0 {
        let offset = found.get().addr() - first.addr();
        assert!(offset + found_length.get() <= bytes, "a message outside of its frame");
    }
}

impl World {
    /// Bytes of a frame, perhaps spoilt, perhaps with the checksum that they should have.
    fn frame_bytes(&self, input: &mut Numbers<'_>) -> Vec<u8> {
        let whole = emitted(&self.frame).unwrap_or_else(|| vec![0; LOGGAP_FRAME_BYTES]);
        let mut bytes = spoilt(&whole, input);
        if let (true, Some(length)) = (input.byte() & 1 == 0, bytes.get(6..8)) {
            let end = 8 + usize::from(u16::from_le_bytes([length[0], length[1]]));
            if let Some((body, rest)) = bytes.split_at_mut_checked(end) {
                let sum = sum(body);
                rest.iter_mut().zip(sum).for_each(|(byte, sum)| *byte = sum);
            }
        }
        bytes
    }

    pub(super) fn parse_frame(&mut self, input: &mut Numbers<'_>) {
        let (told, place) = (Told::new(input), Place::<Frame>::new(input));
        let bytes = self.frame_bytes(input);
        let (first, length) = (bytes.as_ptr(), bytes.len());
        let status = call!(loggap_frame_parse(first, length, place.pointer(), told.pointer()));
        told.check(status, &[Status::Malformed, Status::Null, Status::Alignment]);
        place.holds(status);
        let core = Message::parse(&bytes);
        if place.is_wrong() {
            assert_ne!(status, 0);
            return;
        }
        assert_eq!(status == 0, core.is_ok());
        if let Ok(message) = core {
            self.frame = place.get();
            let mut expected = [0; FRAME_LEN];
            message.emit(&mut expected);
            assert_eq!(emitted(&self.frame).as_deref(), Some(&expected[..]));
        }
    }

    pub(super) fn emit_frame(&mut self, input: &mut Numbers<'_>) {
        self.frame.kind = u32::try_from(input.below(13)).unwrap_or_default();
        self.frame.round_count = u32::from(input.byte() % 4);
        self.frame = scribbled(self.frame, input);
        let (told, frame) = (Told::new(input), Place::holding(input, &[self.frame]));
        let capacity = input.length(LOGGAP_FRAME_BYTES + 9);
        let room = Lent::filled(capacity, input.below(8));
        let (bytes, detail) = (room.pointer(), told.pointer());
        let status = call!(loggap_frame_emit(frame.pointer(), bytes, capacity, detail));
        told.check(status, &[Status::Full, Status::Option, Status::Null, Status::Alignment]);
        assert!(room.is_guarded());
        assert!(!(frame.is_wrong() && status == 0));
        if status == Status::Option as i32 {
            assert!(room.is_untouched());
        }
        if status == 0 {
            let bytes = room.bytes(LOGGAP_FRAME_BYTES);
            // What is written is read, and written the same.
            let mut read = Frame::zeros();
            let (first, length, null) = (bytes.as_ptr(), bytes.len(), core::ptr::null_mut());
            let parsed = call!(loggap_frame_parse(first, length, &raw mut read, null));
            if parsed == 0 {
                assert_eq!(emitted(&read), Some(bytes));
            }
        }
    }

    pub(super) fn decode_profile(&mut self, input: &mut Numbers<'_>) {
        let (told, place) = (Told::new(input), Place::<Profile>::new(input));
        let bytes = match input.below(5) {
            known @ 0..3 => spoilt(PROFILES[known], input),
            3 => self.profile_bytes().unwrap_or_default(),
            _ => {
                let count = usize::from(input.byte());
                input.take(count).to_vec()
            }
        };
        let body = bytes.len().saturating_sub(4);
        let bytes = if input.seldom() {
            bytes
        } else {
            [&bytes[..body], &sum(&bytes[..body])[..]].concat()
        };
        let (first, length) = (bytes.as_ptr(), bytes.len());
        let status = call!(loggap_profile_decode(first, length, place.pointer(), told.pointer()));
        told.check(status, &[Status::Malformed, Status::Null, Status::Alignment]);
        assert!(place.is_guarded());
        if place.is_wrong() {
            assert!(status != 0 && place.is_untouched());
            return;
        }
        let profile = place.get();
        assert_eq!(status == 0, compact::decode::<8>(&bytes).is_ok());
        if status == 0 {
            self.profile = profile;
            // A profile has one encoding only.
            assert_eq!(self.profile_bytes().as_ref(), Some(&bytes));
        } else {
            assert_eq!((profile.range_count, profile.change_count), (0, 0));
        }
    }

    /// The profile as the library writes it, `None` where it refuses.
    fn profile_bytes(&self) -> Option<Vec<u8>> {
        let (memory, mut length) = (Lent::new(LOGGAP_PROFILE_BYTES), 0_usize);
        let (bytes, room) = (memory.pointer(), memory.length());
        let (profile, null) = (&raw const self.profile, core::ptr::null_mut());
        let status = call!(loggap_profile_encode(profile, bytes, room, &raw mut length, null));
        assert!(memory.is_guarded());
        assert_ne!(status, Status::Full as i32, "the most bytes are too few");
        (status == 0).then(|| memory.bytes(length))
    }

    pub(super) fn encode_profile(&mut self, input: &mut Numbers<'_>) {
        self.profile = scribbled(self.profile, input);
        let profile = Place::holding(input, &[self.profile]);
        let (told, length) = (Told::new(input), Place::<usize>::new(input));
        let capacity = usize::from(input.short()) % 600;
        let room = Lent::filled(capacity, input.below(8));
        let (given, bytes) = (profile.pointer(), room.pointer());
        let (place, detail) = (length.pointer(), told.pointer());
        let status = call!(loggap_profile_encode(given, bytes, capacity, place, detail));
        told.check(status, &[Status::Full, Status::Option, Status::Null, Status::Alignment]);
        length.holds(status);
        assert!(room.is_guarded());
        if status == 0 {
            assert!(!profile.is_wrong());
            let bytes = room.bytes(length.get());
            assert_eq!(self.profile_bytes().as_ref(), Some(&bytes), "in more room the same");
            assert!(compact::decode::<8>(&bytes).is_ok(), "what is written is read");
        }
    }
}
