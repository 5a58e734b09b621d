//! Objects in lent memory: a detector and a responder, each beside the core's
//! own that is told the same.

use super::codecs::emitted;
use super::lent::{Lent, Plain};
use super::numbers::Numbers;
use super::place::{Place, Told, scribbled};
use loggap_capi::{
    ActionKind, Bounds, DetectedChange, DetectorOptions, FitPoint, Frame, Responder,
    ResponderAction, ResponderNext, Served, Status, StreamDetector,
};
use loggap_core::fit::{ChangeDetector, LookAhead, Point};
use loggap_core::measure::{LinkProperties, ResponderState};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire;

/// What a stranger has to echo.
const NONCE: u64 = 0x5eed;

/// The objects that are in use, and memory in which there is none.
#[derive(Default)]
pub(super) struct Objects {
    detector: Option<(Lent, *mut StreamDetector, ChangeDetector)>,
    responder: Option<(Lent, *mut Responder, ResponderState, Vec<u8>)>,
    now: u64,
}

/// A pointer that an object's function is given.
enum Handle<T> {
    Right(*mut T),
    /// Null, misaligned, of another type, or of memory without an object.
    Wrong(*mut T),
}

const OBJECT: [Status; 3] = [Status::Handle, Status::Null, Status::Alignment];

impl<T> Handle<T> {
    fn new(
        right: Option<*mut T>,
        other: Option<*mut u8>,
        blank: &Lent,
        input: &mut Numbers<'_>,
    ) -> Self {
        match (input.byte(), right, other) {
            (0xff, ..) => Self::Wrong(core::ptr::null_mut()),
            (0xfe, Some(right), _) => Self::Wrong(right.wrapping_byte_add(4)),
            (0xfd, _, Some(other)) => Self::Wrong(other.cast()),
            (0..=0xfc, Some(right), _) => Self::Right(right),
            _ => Self::Wrong(blank.pointer().cast()),
        }
    }

    fn pointer(&self) -> *mut T {
        match self {
            Self::Right(pointer) | Self::Wrong(pointer) => *pointer,
        }
    }

    /// What a call with this handle may say.
    fn check(&self, told: &Told, status: i32, documented: &[Status]) {
        told.check(status, documented);
        assert!(matches!(self, Self::Right(_)) || status != 0, "a wrong handle is taken");
    }
}

impl Objects {
    pub(super) fn make_detector(&mut self, input: &mut Numbers<'_>) {
        let mut usual = DetectorOptions::zeros();
        assert_eq!(call!(loggap_detector_options_default(&raw mut usual)), 0);
        let options = scribbled(usual, input);
        let (told, place) = (Told::new(input), Place::<*mut StreamDetector>::new(input));
        let given = Place::holding(input, &[options]);
        let needed = call!(loggap_detector_bytes());
        let (bytes, shift) = (input.length(needed), if input.seldom() { 4 } else { 0 });
        let memory = Lent::filled(bytes, shift);
        let (target, first) = (place.pointer(), memory.pointer());
        let status =
            call!(loggap_detector_init(target, given.pointer(), first, bytes, told.pointer()));
        told.check(status, &[Status::Option, Status::Memory, Status::Null, Status::Alignment]);
        place.holds(status);
        assert!(memory.is_guarded() && (status == 0 || memory.is_untouched()));
        if status == 0 {
            assert!(bytes >= needed && shift == 0 && !given.is_wrong());
            let DetectorOptions { factor, resolution_ps: resolution, points } = options;
            let settings = LookAhead { factor, points: points as usize, resolution };
            self.detector = Some((memory, place.get(), ChangeDetector::new(settings)));
        }
    }

    pub(super) fn push(&mut self, input: &mut Numbers<'_>) {
        let blank = Lent::filled(call!(loggap_detector_bytes()), 0);
        let other = self.responder.as_ref().map(|(memory, ..)| memory.pointer());
        let right = self.detector.as_ref().map(|(_, detector, _)| *detector);
        let handle = Handle::new(right, other, &blank, input);
        let (told, change) = (Told::new(input), Place::<DetectedChange>::new(input));
        let (detector, place, detail) = (handle.pointer(), change.pointer(), told.pointer());
        let is_end = input.seldom();
        let point = FitPoint {
            size: input.number(),
            value_ps: input.double(),
            sigma_ps: if input.seldom() { input.double() } else { 0.0 },
        };
        let given = Place::holding(input, &[point]);
        let status = if is_end {
            call!(loggap_detector_finish(detector, place, detail))
        } else {
            call!(loggap_detector_push(detector, given.pointer(), place, detail))
        };
        handle.check(&told, status, &[&OBJECT[..], &[Status::Malformed]].concat());
        change.holds(status);
        if status != 0 {
            return;
        }
        let Some((memory, _, mirror)) = &mut self.detector else { return };
        let found = if is_end {
            mirror.finish()
        } else {
            let point = Point::new(point.size, point.value_ps, point.sigma_ps);
            mirror.push(point.expect("the library has taken it"))
        };
        let change = change.get();
        let expected = found.map(|found| (found.index as u64, found.before, found.at));
        let told = (change.found == 1).then_some((change.index, change.before, change.at));
        assert_eq!(told, expected);
        assert!(memory.is_guarded());
    }

    pub(super) fn make_responder(&mut self, input: &mut Numbers<'_>) {
        let bounds = scribbled(Bounds { message: 600, messages: 40, ..usual_bounds() }, input);
        let given = Place::holding(input, &[bounds]);
        let (told, place) = (Told::new(input), Place::<*mut Responder>::new(input));
        let max_message = if input.seldom() { input.number() } else { 1500 };
        let (reliable, nonce) =
            (u32::from(input.byte() % 11 / 5), u64::from(input.byte() & 1) * NONCE);
        let least = call!(loggap_responder_bytes(0));
        let more = usize::from(input.byte());
        let bytes = input.length(least + more);
        let (target, given_bounds, detail) = (place.pointer(), given.pointer(), told.pointer());
        let memory = Lent::filled(bytes, if input.seldom() { 4 } else { 0 });
        let first = memory.pointer();
        let status = call!(loggap_responder_init(
            target,
            given_bounds,
            max_message,
            reliable,
            nonce,
            first,
            bytes,
            detail
        ));
        told.check(status, &[Status::Option, Status::Memory, Status::Null, Status::Alignment]);
        place.holds(status);
        assert!(memory.is_guarded() && (status == 0 || memory.is_untouched()));
        if status != 0 {
            return;
        }
        assert!(bytes >= least && reliable <= 1 && max_message >= 448);
        let capacity = (bytes - least + 448) / 8 * 8;
        let usual = given_bounds.is_null();
        let bounds = if usual { wire::Bounds::default() } else { core_bounds(&bounds) };
        let bounds = bounds.with_message_at_most(Bytes(max_message.min(capacity as u64)));
        let properties = LinkProperties {
            reliable: reliable == 1,
            ..LinkProperties::reliable(Bytes(max_message))
        };
        let mirror = ResponderState::with(bounds, properties, nonce, []);
        self.responder = Some((memory, place.get(), mirror, vec![0x55; capacity]));
        self.now = 0;
    }

    pub(super) fn respond(&mut self, input: &mut Numbers<'_>) {
        let blank = Lent::filled(call!(loggap_responder_bytes(0)), 0);
        let other = self.detector.as_ref().map(|(memory, ..)| memory.pointer());
        let right = self.responder.as_ref().map(|(_, responder, ..)| *responder);
        for _ in 0..=input.below(6) {
            let handle = Handle::new(right, other, &blank, input);
            match input.below(10) {
                0 => self.look_next(&handle, input),
                1 => self.look_served(&handle, input),
                2 => self.hand_time(&handle, input),
                3 => self.stay_silent(&handle, input),
                4 => self.ask_for_more(&handle, input),
                _ => self.hand_message(&handle, input),
            }
            if let Some((memory, ..)) = &self.responder {
                assert!(memory.is_guarded());
            }
        }
        assert!(blank.is_untouched() && blank.is_guarded());
    }

    fn look_next(&mut self, handle: &Handle<Responder>, input: &mut Numbers<'_>) {
        let (told, next) = (Told::new(input), Place::<ResponderNext>::new(input));
        let status = call!(loggap_responder_next(handle.pointer(), next.pointer(), told.pointer()));
        handle.check(&told, status, &OBJECT);
        next.holds(status);
        if let (0, Some((.., mirror, _))) = (status, &self.responder) {
            let (next, awaited) = (next.get(), mirror.awaited());
            assert_eq!((next.length, next.timed == 1), (awaited.length, awaited.timed));
        }
    }

    fn look_served(&mut self, handle: &Handle<Responder>, input: &mut Numbers<'_>) {
        let (told, served) = (Told::new(input), Place::<Served>::new(input));
        let status =
            call!(loggap_responder_served(handle.pointer(), served.pointer(), told.pointer()));
        handle.check(&told, status, &OBJECT);
        served.holds(status);
        if let (0, Some((.., mirror, _))) = (status, &self.responder) {
            let (served, counted) = (served.get(), mirror.served());
            let same = (counted.received, counted.replied, counted.rounds);
            assert_eq!((served.received, served.replied, served.rounds), same);
        }
    }

    fn hand_time(&mut self, handle: &Handle<Responder>, input: &mut Numbers<'_>) {
        let (told, duration) = (Told::new(input), input.number());
        let status = call!(loggap_responder_timed(handle.pointer(), duration, told.pointer()));
        handle.check(&told, status, &OBJECT);
        if let (0, Some((.., mirror, _))) = (status, &mut self.responder) {
            mirror.handle_timed(Picos(duration));
        }
    }

    fn stay_silent(&mut self, handle: &Handle<Responder>, input: &mut Numbers<'_>) {
        let (told, over) = (Told::new(input), Place::<u32>::new(input));
        let status =
            call!(loggap_responder_silence(handle.pointer(), over.pointer(), told.pointer()));
        handle.check(&told, status, &OBJECT);
        over.holds(status);
        if let (0, Some(_)) = (status, &self.responder) {
            assert_eq!(over.get(), 1);
        }
    }

    fn ask_for_more(&mut self, handle: &Handle<Responder>, input: &mut Numbers<'_>) {
        let (told, action) = (Told::new(input), Place::<ResponderAction>::new(input));
        let status =
            call!(loggap_responder_more(handle.pointer(), action.pointer(), told.pointer()));
        handle.check(&told, status, &OBJECT);
        action.holds(status);
        if status == 0 {
            self.check_action(&action.get());
        }
    }

    fn hand_message(&mut self, handle: &Handle<Responder>, input: &mut Numbers<'_>) {
        self.now = self.now.saturating_add(input.number());
        let expected = self.responder.as_ref().map_or(0, |(.., mirror, _)| mirror.awaited().length);
        let message = message(expected, input);
        let (told, action) = (Told::new(input), Place::<ResponderAction>::new(input));
        let (first, length, place) = (message.as_ptr(), message.len(), action.pointer());
        let (responder, now, detail) = (handle.pointer(), self.now, told.pointer());
        let status = call!(loggap_responder_handle(responder, now, first, length, place, detail));
        handle.check(&told, status, &OBJECT);
        action.holds(status);
        if status != 0 {
            return;
        }
        if let Some((.., mirror, _)) = &mut self.responder {
            mirror.handle(Picos(now), &message);
        }
        self.check_action(&action.get());
    }

    /// The responder does what the core's own does, and sends the same.
    fn check_action(&mut self, action: &ResponderAction) {
        let Some((memory, _, mirror, outgoing)) = &mut self.responder else { return };
        let length = mirror.poll_transmit(outgoing).unwrap_or(0);
        assert_eq!(action.length, length);
        assert_eq!(action.kind == ActionKind::End as u32, mirror.ending().is_some());
        if action.kind == ActionKind::SendMore as u32 {
            assert!(mirror.is_transmit_due());
        }
        if length > 0 {
            let offset = action.message.addr() - memory.pointer().addr();
            assert!(offset + length <= memory.length(), "a message outside of the memory");
            // SAFETY: inside of the responder's memory, and no call has followed.
            let sent = unsafe { core::slice::from_raw_parts(action.message, length) };
            assert_eq!(sent, &outgoing[..length]);
        }
    }
}

/// A message that gets far, or raw bytes.
pub(super) fn message(expected: usize, input: &mut Numbers<'_>) -> Vec<u8> {
    let kind = input.below(9);
    if kind == 3 || kind == 4 {
        let mut data = vec![0; expected.min(2000)];
        if let Some(tag) = data.first_mut() {
            *tag = input.byte() % 4;
        }
        return data;
    }
    if kind == 8 {
        let count = input.below(40);
        return input.take(count).to_vec();
    }
    let kinds = [1, 1, 5, 0, 0, 5, 8, 10];
    let mut frame = Frame { kind: kinds[kind], versions: [1, 2], ..Frame::zeros() };
    frame.bounds = usual_bounds();
    frame.nonce = u64::from(input.byte() & 1) * NONCE;
    frame.round_count = 1 + u32::from(input.byte() % 3);
    for round in &mut frame.rounds[..3] {
        (round.messages, round.size) =
            (1 + u32::from(input.byte() % 3), 1 + u32::from(input.byte()));
        (round.reply_size, round.repeats) = (1 + u32::from(input.byte()), 1);
        (round.reply_each, round.timed) =
            (u32::from(input.byte() & 1), u32::from(input.byte() & 1));
    }
    emitted(&scribbled(frame, input)).unwrap_or_default()
}

pub(super) fn usual_bounds() -> Bounds {
    let mut bounds = Bounds::zeros();
    assert_eq!(call!(loggap_bounds_default(&raw mut bounds)), 0);
    bounds
}

fn core_bounds(bounds: &Bounds) -> wire::Bounds {
    wire::Bounds {
        message: bounds.message,
        messages: bounds.messages,
        rounds: bounds.rounds,
        pause: Picos(bounds.pause_ps),
        silence: Picos(bounds.silence_ps),
        session: Picos(bounds.session_ps),
    }
}
