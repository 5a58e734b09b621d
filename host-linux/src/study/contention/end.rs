//! One end of the exchange: requests over some links, each with a window of unanswered ones, or the
//! replies to them.

use std::mem;

use loggap_core::measure::{Clock, Link, Phase, SessionError};
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

/// Length of a slot, in which messages are counted.
const SLOT: Picos = Picos(1_000_000_000);
/// Visits between two readings of the clock; one where a handler reads it anyway.
const VISITS_A_READING: u32 = 16;
/// Longest wait for a message.
const SILENCE: Picos = Picos(5_000_000_000_000);
/// First byte of a request or reply.
const MESSAGE: u8 = 1;
/// First byte of the message that ends the exchange over a link.
const LAST: u8 = 2;

/// Part of an end in the exchange.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Role {
    /// Sends requests.
    Requester {
        /// Most unanswered requests of a link.
        window: u32,
        /// Time after which it sends no more, ps.
        duration_ps: u64,
    },
    /// Replies to each request.
    Replier {
        /// Computation before each reply, ps.
        handler_ps: u64,
    },
}

/// Requests answered over one link, counted in slots of a millisecond.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Activity {
    /// First slot, from the origin.
    first: u64,
    counts: Vec<u64>,
}

impl Activity {
    fn add(&mut self, slot: u64, count: u64) {
        if count == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.first = slot;
        }
        let at = usize::try_from(slot.saturating_sub(self.first)).unwrap_or(0);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        if let Some(counted) = self.counts.get_mut(at) {
            *counted += count;
        }
    }

    fn end(&self) -> u64 {
        self.first + self.counts.len() as u64
    }

    /// Sum of the counts from slot `first` to before slot `end`.
    fn within(&self, first: u64, end: u64) -> u64 {
        let slots = (self.first..).zip(&self.counts);
        slots.filter(|(slot, _)| (first..end).contains(slot)).map(|(_, count)| count).sum()
    }
}

/// Mean gap of `requesters` requesters over the span in which all links are active, without its
/// first fifth; `None` if that is too short.
#[must_use]
pub fn common_gap(links: &[Activity], requesters: u32) -> Option<Picos> {
    const FEWEST_SLOTS: u64 = 5;
    // The first and the last slot of a link are partly idle.
    let first = links.iter().map(|link| link.first + 1).max()?;
    let end = links.iter().map(|link| link.end().saturating_sub(1)).min()?;
    let first = first + end.saturating_sub(first) / 5;
    let slots = end.saturating_sub(first);
    let total: u64 = links.iter().map(|link| link.within(first, end)).sum();
    if slots < FEWEST_SLOTS || total == 0 {
        return None;
    }
    Some(Picos(slots * SLOT.0 * u64::from(requesters) / total))
}

/// State of one link.
struct Line<L> {
    link: L,
    incoming: Vec<u8>,
    /// Requests without a reply.
    unanswered: u32,
    is_open: bool,
    /// Answers since the last reading of the clock.
    answered: u64,
    activity: Activity,
}

/// One end of the exchange. Links are visited in turn; a visit costs the same for any number.
pub struct End<C, L> {
    clock: C,
    role: Role,
    lines: Vec<Line<L>>,
    outgoing: Vec<u8>,
    /// Index of the next link.
    next: usize,
    visits: u32,
    /// Reading of the clock from which slots are counted.
    origin: u64,
    began: u64,
    /// Reading at which the last answer was noted.
    alive: u64,
    is_over: bool,
}

impl<C, L> std::fmt::Debug for End<C, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End").field("role", &self.role).finish_non_exhaustive()
    }
}

impl<C: Clock, L: Link> End<C, L> {
    /// An end that exchanges messages of `size` bytes, at least 1, over `links`, of which there is
    /// one at least. Slots are counted from the reading `origin` of `clock`.
    pub fn new(clock: C, links: Vec<L>, role: Role, size: u32, origin: u64) -> Self {
        let message = vec![MESSAGE; size.max(1) as usize];
        let line = |link| Line {
            link,
            incoming: message.clone(),
            unanswered: 0,
            is_open: true,
            answered: 0,
            activity: Activity::default(),
        };
        let lines = links.into_iter().map(line).collect();
        let began = clock.now();
        Self {
            clock,
            role,
            lines,
            outgoing: message,
            next: 0,
            visits: 0,
            origin,
            began,
            alive: began,
            is_over: false,
        }
    }

    /// Exchanges messages until the requesters end; returns the activity of each link.
    ///
    /// # Errors
    ///
    /// The link failed, or no message arrived for 5 s.
    pub fn run(mut self) -> Result<Vec<Activity>, SessionError<L::Error>> {
        while self.visit()? {}
        Ok(self.activities())
    }

    /// Activity of each link so far.
    pub(super) fn activities(self) -> Vec<Activity> {
        self.lines.into_iter().map(|line| line.activity).collect()
    }

    /// Visits the next link: sends or receives a message or two. False if all links have ended.
    ///
    /// # Errors
    ///
    /// As [`End::run`].
    #[inline]
    pub(super) fn visit(&mut self) -> Result<bool, SessionError<L::Error>> {
        let Self { clock, role, lines, outgoing, next, is_over, .. } = self;
        let count = lines.len();
        let Some(line) = lines.get_mut(*next) else { return Ok(false) };
        *next = if *next + 1 < count { *next + 1 } else { 0 };
        if line.is_open {
            let done = match *role {
                Role::Requester { .. } if *is_over => line.finish(outgoing),
                Role::Requester { window, .. } => line.request(outgoing, window),
                Role::Replier { handler_ps } => line.reply(clock, Picos(handler_ps)),
            };
            done.map_err(SessionError::Link)?;
        }
        self.visits += 1;
        let has_handler = matches!(self.role, Role::Replier { handler_ps: 1.. });
        if self.visits < VISITS_A_READING && !has_handler {
            return Ok(true);
        }
        self.visits = 0;
        self.look()
    }

    /// Reads the clock and counts the answers. False if all links have ended.
    fn look(&mut self) -> Result<bool, SessionError<L::Error>> {
        let now = self.clock.now();
        let slot = self.clock.duration(now.saturating_sub(self.origin)).0 / SLOT.0;
        for line in &mut self.lines {
            if line.answered > 0 {
                self.alive = now;
            }
            line.activity.add(slot, mem::take(&mut line.answered));
        }
        if self.clock.duration(now.saturating_sub(self.alive)) > SILENCE {
            return Err(SessionError::Silent { phase: Phase::Round, limit: SILENCE });
        }
        if let Role::Requester { duration_ps, .. } = self.role {
            self.is_over |= self.clock.duration(now.saturating_sub(self.began)).0 >= duration_ps;
        }
        Ok(self.lines.iter().any(|line| line.is_open))
    }
}

impl<L: Link> Line<L> {
    /// Receives replies, two at most, and sends a request if the window has room.
    #[inline]
    fn request(&mut self, request: &[u8], window: u32) -> Result<(), L::Error> {
        /// With one a full window would stay full.
        const MOST_REPLIES: u32 = 2;
        for _ in 0..MOST_REPLIES {
            if self.unanswered == 0 || self.link.poll_receive(&mut self.incoming)?.is_none() {
                break;
            }
            self.unanswered -= 1;
            self.answered += 1;
        }
        if self.unanswered < window {
            self.link.send(request)?;
            self.unanswered += 1;
        }
        Ok(())
    }

    /// Receives a reply that is still missing, or ends the exchange.
    #[cold]
    fn finish(&mut self, outgoing: &mut [u8]) -> Result<(), L::Error> {
        if self.unanswered > 0 {
            self.unanswered -= u32::from(self.link.poll_receive(&mut self.incoming)?.is_some());
            return Ok(());
        }
        self.is_open = false;
        if let Some(first) = outgoing.first_mut() {
            *first = LAST;
        }
        self.link.send(outgoing)
    }

    /// Answers a request, if there is one.
    #[inline]
    fn reply(&mut self, clock: &impl Clock, handler: Picos) -> Result<(), L::Error> {
        let Some(length) = self.link.poll_receive(&mut self.incoming)? else { return Ok(()) };
        if self.incoming.first() == Some(&LAST) {
            self.is_open = false;
            return Ok(());
        }
        if handler > Picos::ZERO {
            let (since, ticks) = (clock.now(), clock.ticks(handler));
            while clock.now().saturating_sub(since) < ticks {}
        }
        self.answered += 1;
        self.link.send(self.incoming.get(..length).unwrap_or_default())
    }
}
