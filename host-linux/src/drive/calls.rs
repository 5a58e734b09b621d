//! Duration of a link's calls, part by part: measured in extra rounds, whose other results
//! are discarded.

use std::time::Duration;

use loggap_core::measure::{Experiment, Initiator, Quantity, SessionError};
use loggap_core::units::Picos;

use crate::link::{CallTimes, HostLink, LinkError};
use crate::machine::clock::{Deadline, HostClock};

/// Rounds in a batch, after which the time is checked; most batches.
const ROUNDS: usize = 8;
const BATCHES: u32 = 8;
/// Time limit for one size; a batch that has begun is completed.
const LIMIT: Duration = Duration::from_millis(50);

/// Times the parts of calls at the shortest and at the longest size; none if the link has no parts.
pub(super) fn time(
    session: &mut Initiator<'_, HostClock, impl HostLink>,
    [shortest, longest]: [u32; 2],
) -> Result<Vec<CallTimes>, SessionError<LinkError>> {
    let mut found = Vec::with_capacity(2);
    found.extend(at(session, shortest)?);
    if longest > shortest {
        found.extend(at(session, longest)?);
    }
    Ok(found)
}

fn at(
    session: &mut Initiator<'_, HostClock, impl HostLink>,
    size: u32,
) -> Result<Option<CallTimes>, SessionError<LinkError>> {
    let trip = Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size };
    let clock = *session.clock();
    if !session.link_mut().time_calls(clock) {
        return Ok(None);
    }
    let deadline = Deadline::after(LIMIT);
    // The first rounds at a size are slower, so the timing begins anew after them.
    session.run(&[trip; ROUNDS], |_| ())?;
    session.link_mut().time_calls(clock);
    let mut outcome = Ok(());
    for _ in 0..BATCHES {
        outcome = session.run(&[trip; ROUNDS], |_| ());
        if outcome.is_err() || deadline.expired() {
            break;
        }
    }
    let times = session.link_mut().take_call_times(size);
    outcome.map(|()| times)
}
