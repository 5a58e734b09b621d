//! What becomes of the operations that are under way, found ahead of the conversion.

use std::collections::HashMap;

use loggap_core::trace::{Envelope, Message, Outcome};

use super::input::Records;
use crate::trace::What;

/// What became of a posted operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// It was completed as it was posted.
    AsPosted,
    /// It received this message.
    Received(Envelope),
    /// It was cancelled.
    Cancelled,
    /// Its request was freed before its completion was seen.
    Freed,
    /// No call reported its completion.
    Unfinished,
}

/// Second reader of a rank's records, ahead of the first: it is moved to the completion of each
/// operation that the first one sees posted. What it keeps are the operations that it saw posted
/// and not complete, and those posted behind the first reader that did not end as they were posted.
pub(super) struct Lookahead<'t> {
    records: Records<'t>,
    read: u64,
    open: HashMap<u64, Message>,
    ended: HashMap<u64, Fate>,
}

impl<'t> Lookahead<'t> {
    pub(super) fn new(records: Records<'t>) -> Self {
        let (open, ended) = (HashMap::new(), HashMap::new());
        Self { records, read: 0, open, ended }
    }

    /// What becomes of the operation `request`, which the record of the number `record`, from 1,
    /// posts.
    pub(super) fn fate(&mut self, record: u64, request: u64) -> Fate {
        while self.read < record || self.open.contains_key(&request) {
            if !self.advance() {
                let known = self.open.remove(&request).map(|_| Fate::Unfinished);
                return known.or_else(|| self.ended.remove(&request)).unwrap_or(Fate::AsPosted);
            }
        }
        self.ended.remove(&request).unwrap_or(Fate::AsPosted)
    }

    /// Reads a record; false at the end, or where the records cannot be read.
    fn advance(&mut self) -> bool {
        let Some(Ok(record)) = self.records.next() else { return false };
        self.read += 1;
        match record.what {
            What::Messages(all) => {
                let posted = all.into_iter().filter_map(|one| Some((one.request?, one)));
                self.open.extend(posted);
            }
            What::Completions(all) => {
                for one in all {
                    let Some(posted) = self.open.remove(&one.request) else { continue };
                    let fate = match one.outcome {
                        Outcome::Received(envelope) if envelope != posted.envelope => {
                            Fate::Received(envelope)
                        }
                        Outcome::Done | Outcome::Received(_) => continue,
                        Outcome::Cancelled => Fate::Cancelled,
                        Outcome::Freed => Fate::Freed,
                    };
                    self.ended.insert(one.request, fate);
                }
            }
            _ => {}
        }
        true
    }
}
