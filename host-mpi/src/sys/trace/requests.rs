//! Requests and matched messages by identities of their own: a library uses handles again, and
//! gives one handle to several operations that were complete at once.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use loggap_core::trace::{Envelope, Message};

/// An operation behind a handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Identity; 0 if it is not recorded, or is inactive.
    pub(crate) id: u64,
    /// `None` for collective operations.
    pub(crate) message: Option<Message>,
    /// True if it can be started again.
    pub(crate) is_persistent: bool,
}

/// Operations under way, and persistent ones.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Oldest operation of each handle.
    first: HashMap<usize, Request, Fast>,
    /// Further ones.
    more: HashMap<usize, VecDeque<Request>, Fast>,
    last_id: u64,
}

impl Requests {
    /// Identity of a new operation.
    pub(crate) const fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn insert(&mut self, handle: usize, request: Request) {
        if let Some(older) = self.first.insert(handle, request)
            && !older.is_persistent
        {
            self.first.insert(handle, older);
            self.more.entry(handle).or_default().push_back(request);
        }
    }

    pub(crate) fn get_mut(&mut self, handle: usize) -> Option<&mut Request> {
        self.first.get_mut(&handle)
    }

    /// Takes an operation that is complete out; a persistent one stays, inactive.
    pub(crate) fn complete(&mut self, handle: usize) -> Option<Request> {
        let Entry::Occupied(mut found) = self.first.entry(handle) else { return None };
        if found.get().is_persistent {
            let request = *found.get();
            found.get_mut().id = 0;
            return Some(request);
        }
        let request = found.remove();
        self.advance(handle);
        Some(request)
    }

    /// Takes an operation out.
    pub(crate) fn remove(&mut self, handle: usize) -> Option<Request> {
        let found = self.first.remove(&handle)?;
        self.advance(handle);
        Some(found)
    }

    /// The next operation of a handle takes the place of the one that was taken out.
    #[inline]
    fn advance(&mut self, handle: usize) {
        if !self.more.is_empty()
            && let Some(more) = self.more.get_mut(&handle)
        {
            if let Some(next) = more.pop_front() {
                self.first.insert(handle, next);
            }
            if more.is_empty() {
                self.more.remove(&handle);
            }
        }
    }
}

/// Messages that a probe matched and no receive has taken yet.
pub(crate) type Matched = HashMap<usize, Envelope, Fast>;

/// Hash of words by one multiplication.
pub(crate) type Fast = BuildHasherDefault<Multiplied>;

#[derive(Debug, Default)]
pub(crate) struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let product = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn request(id: u64) -> Request {
        Request { id, message: None, is_persistent: false }
    }

    #[test]
    fn operations_that_share_a_handle_complete_in_order_and_each_once() {
        let mut requests = Requests::default();
        for id in 1..=3 {
            assert_eq!(requests.next_id(), id);
            requests.insert(7, request(id));
        }
        requests.insert(8, request(4));
        let taken = [7, 8, 7, 7, 7].map(|handle| requests.complete(handle).map(|one| one.id));
        assert_eq!(taken, [Some(1), Some(4), Some(2), Some(3), None]);
    }

    #[test]
    fn a_persistent_operation_stays_until_it_is_removed() {
        let mut requests = Requests::default();
        requests.insert(7, Request { is_persistent: true, ..request(0) });
        requests.get_mut(7).unwrap().id = 5;
        let ids = [requests.complete(7), requests.complete(7), requests.remove(7)];
        assert_eq!(ids.map(|one| one.map(|one| one.id)), [Some(5), Some(0), Some(0)]);
        assert!(requests.get_mut(7).is_none());
    }
}
