//! Data-parallel training of ResNet-152: a forward pass, then ten steps of the backward pass, each
//! with an allreduce of its bucket of gradients, by dissemination.

use super::dissemination::dissemination;
use super::script::{Place, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Duration of the forward pass: 119,000 ns, as in Schedgen.
const FORWARD: Picos = Picos(119_000_000);
/// Duration of one of the ten steps of the backward pass.
const BACKWARD: Picos = Picos(23_800_000);
/// Size of one gradient, bytes.
const GRADIENT_BYTES: u64 = 4;
/// Number of gradients in each bucket, in the order of the backward pass; in total the 60,192,808
/// parameters of ResNet-152.
const BUCKETS: [u64; 10] = [
    6_511_592, 6_567_936, 5_905_920, 6_113_280, 6_176_256, 6_112_768, 6_176_256, 6_112_768,
    5_321_216, 5_194_816,
];

/// Emits one iteration. The first operations of each allreduce wait for its step of the backward
/// pass. (In Schedgen the receives of the earlier rounds do not; they cost nothing to post, so the
/// times are the same.)
pub(super) fn resnet<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    let forward = out.calc(FORWARD)?;
    out.start(forward)?;
    for (bucket, tag) in BUCKETS.iter().zip(100_000u32..) {
        let backward = out.calc(BACKWARD)?;
        out.requires(backward, forward)?;
        let gate = out.calc(Picos::ZERO)?;
        out.requires(gate, backward)?;
        out.set_tag(1 << 24 | tag);
        let bucket = Place { size: GRADIENT_BYTES * bucket, ..*at };
        out.behind(gate, |out| dissemination(out, &bucket))?;
        if at.ranks < 2 {
            out.end(gate)?;
        }
    }
    Ok(())
}
