//! Trees: binomial broadcast and reduction, binary broadcast.

use super::script::{Place, Script};
use crate::goal::Sink;

/// Binomial broadcast: in round k the virtual ranks below 2ᵏ send to the virtual rank 2ᵏ above
/// them.
pub(super) fn binomial_broadcast<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    let own = at.virtual_rank();
    let mut received = None;
    let mut bit = 1u64;
    let mut children = 0u32;
    while bit < u64::from(at.ranks) {
        if u64::from(own) < bit {
            if let Some(child) = child(at, own, bit) {
                let send = out.send(at.swapped(child), at.size)?;
                out.follows(send, received)?;
                out.end(send)?;
                children = children.wrapping_add(1);
            }
        } else if u64::from(own) < 2 * bit {
            let receive = out.receive(at.swapped(parent(own, bit)), at.size)?;
            out.start(receive)?;
            received = Some(receive);
        }
        bit *= 2;
    }
    match received {
        Some(receive) if children == 0 => out.end(receive),
        _ => Ok(()),
    }
}

/// Binomial reduction: the reversed broadcast. The send to the parent is emitted first and waits
/// for every receive.
pub(super) fn binomial_reduce<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    let own = at.virtual_rank();
    let mut sent = None;
    let mut children = 0u32;
    let mut bit = 1u64;
    while bit < u64::from(at.ranks) {
        if u64::from(own) < bit {
            if let Some(child) = child(at, own, bit) {
                let receive = out.receive(at.swapped(child), at.size)?;
                out.start(receive)?;
                match sent {
                    Some(send) => out.requires(send, receive)?,
                    None => out.end(receive)?,
                }
                children = children.wrapping_add(1);
            }
        } else if u64::from(own) < 2 * bit {
            sent = Some(out.send(at.swapped(parent(own, bit)), at.size)?);
        }
        bit *= 2;
    }
    match sent {
        Some(send) => {
            if children == 0 {
                out.start(send)?;
            }
            out.end(send)
        }
        None => Ok(()),
    }
}

/// Binary broadcast: virtual rank v sends to 2v + 1 and 2v + 2. With a root other than 0 Schedgen
/// takes roles from real ranks but peers from virtual ranks, and deadlocks; here both are virtual.
pub(super) fn binary_broadcast<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    let own = at.virtual_rank();
    let mut received = None;
    if let Some(above) = own.checked_sub(1) {
        let receive = out.receive(at.swapped(above / 2), at.size)?;
        out.start(receive)?;
        received = Some(receive);
    }
    let first = 2 * u64::from(own) + 1;
    for child in [first, first + 1] {
        let Some(child) = u32::try_from(child).ok().filter(|&child| child < at.ranks) else {
            continue;
        };
        let send = out.send(at.swapped(child), at.size)?;
        out.follows(send, received)?;
        out.end(send)?;
    }
    match received {
        Some(receive) if first >= u64::from(at.ranks) => out.end(receive),
        _ => Ok(()),
    }
}

/// Virtual rank `bit` above `own`, if it exists.
fn child(at: &Place, own: u32, bit: u64) -> Option<u32> {
    u32::try_from(u64::from(own) + bit).ok().filter(|&child| child < at.ranks)
}

/// Virtual rank `bit` below `own`, which is at least `bit`.
#[allow(clippy::cast_possible_truncation, reason = "bit <= own, which is a u32")]
const fn parent(own: u32, bit: u64) -> u32 {
    (own as u64).saturating_sub(bit) as u32
}
