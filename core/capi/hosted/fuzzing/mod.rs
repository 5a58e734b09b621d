//! The C functions in any order, with any options, lengths and alignments: the
//! fuzzer's target `c_interface`. It keeps to what the head of `loggap.h` asks
//! of a caller, and to nothing more. It lives here and not beside the other
//! targets because it calls unsafe functions, and because Miri runs it, too.
//!
//! After every call: its status is one that the header names, the detail says
//! the same, nothing was written beside results and lent memory, and nothing at
//! all where the call has failed, unless the header says so.

/// Calls a function of `loggap.h`.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        #[allow(unused_unsafe, reason = "some of the functions take no pointers")]
        // SAFETY: callers keep to the head of loggap.h: pointers are null, or
        // misaligned for a type that is checked, or valid for the lengths
        // beside them; callbacks get the contexts that they expect.
        let result = unsafe { loggap_capi::$name($($argument),*) };
        result
    }};
}

mod codecs;
mod fitting;
pub mod lent;
mod numbers;
mod objects;
mod peer;
mod place;
mod schedules;
mod sessions;
mod texts;

use lent::Plain;
use loggap_capi::{Detour, FitPoint, Frame, Profile};
use numbers::Numbers;

/// What calls leave for later ones.
struct World {
    frame: Frame,
    profile: Profile,
    points: Vec<FitPoint>,
    detours: Vec<Detour>,
    goal: Vec<u8>,
    objects: objects::Objects,
    /// Assessments that may still be run: they take long.
    assessments: u32,
}

/// Most calls of one input.
const CALLS: usize = 60;

/// One input: which functions are called, and with what.
pub fn c_interface(data: &[u8]) {
    let mut input = Numbers(data);
    let mut world = World {
        frame: Frame::zeros(),
        profile: Profile::zeros(),
        points: Vec::new(),
        detours: Vec::new(),
        goal: Vec::new(),
        objects: objects::Objects::default(),
        assessments: if cfg!(miri) { 0 } else { 1 },
    };
    for _ in 0..CALLS {
        if input.is_empty() {
            return;
        }
        let kind = input.below(20);
        world.call(kind, &mut input);
    }
}

impl World {
    fn call(&mut self, kind: usize, input: &mut Numbers<'_>) {
        match kind {
            0 => self.parse_frame(input),
            1 => self.emit_frame(input),
            2 => codecs::ethernet(input),
            3 => self.decode_profile(input),
            4 => self.encode_profile(input),
            5 => self.predict(input),
            6 => fitting::form(input),
            7 => self.add_points(input),
            8 => self.fit(input),
            9 => self.objects.make_detector(input),
            10 => self.objects.push(input),
            11 => self.objects.make_responder(input),
            12 => self.objects.respond(input),
            13 => self.read_noise(input),
            14 => self.choose_goal(input),
            15 => self.read_goal(input),
            16 => self.simulate_goal(input),
            17 => self.simulate_pattern(input),
            18 => texts::texts(input),
            _ => self.session(input),
        }
    }
}
