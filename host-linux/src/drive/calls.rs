//! Duration of the calls of RDMA verbs, part by part: measured in extra rounds, whose other results
//! are discarded.

use std::time::Duration;

use loggap_core::measure::{Experiment, Initiator, Quantity, SessionError};
use loggap_core::units::Picos;

use crate::link::{CallTimes, LinkError, VerbsLink};
use crate::machine::clock::{Deadline, HostClock};

/// Rounds in a batch, after which the time is checked; most batches.
const ROUNDS: usize = 8;
const BATCHES: u32 = 8;
/// Time limit for one size; a batch that has begun is completed.
const LIMIT: Duration = Duration::from_millis(50);

/// Times the parts of calls at the shortest and at the longest size.
pub(super) fn time(
    session: &mut Initiator<'_, HostClock, VerbsLink>,
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
    session: &mut Initiator<'_, HostClock, VerbsLink>,
    size: u32,
) -> Result<Option<CallTimes>, SessionError<LinkError>> {
    let trip = Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size };
    let clock = *session.clock();
    let deadline = Deadline::after(LIMIT);
    // Warm-up: the first rounds at a size are slower.
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
