//! Mapping of 64-bit tags to the 32-bit tags of the simulation.

use std::collections::HashMap;

use loggap_core::goal::{ANY_TAG, Op, OpKind, Sink};
use loggap_core::sim::BuildError;

use super::EachOp;

/// Smallest tag that is replaced by a number; lower ones are kept.
const FIRST_NUMBER: u32 = 1 << 31;

/// Distinct numbers for the large tags of a schedule, in the order of their first occurrence; all
/// are below the wildcard.
#[derive(Clone, Debug, Default)]
pub struct TagNumbers {
    numbers: HashMap<u64, u32>,
    /// Tags by their numbers, from [`FIRST_NUMBER`] on.
    tags: Vec<u64>,
}

impl TagNumbers {
    /// Number of a tag that has occurred.
    pub(super) fn number(&self, tag: u64) -> Option<u32> {
        match u32::try_from(tag) {
            Ok(low) if low < FIRST_NUMBER => Some(low),
            _ => self.numbers.get(&tag).copied(),
        }
    }

    /// Number of a tag, a new one at its first occurrence; `None` if there are no more.
    pub(crate) fn add(&mut self, tag: u64) -> Option<u32> {
        if let Some(number) = self.number(tag) {
            return Some(number);
        }
        let next = u32::try_from(self.tags.len()).ok()?;
        let number = FIRST_NUMBER.checked_add(next).filter(|&number| number < u32::MAX)?;
        self.tags.try_reserve(1).ok()?;
        self.numbers.try_reserve(1).ok()?;
        self.tags.push(tag);
        self.numbers.insert(tag, number);
        Some(number)
    }

    /// Tag with this number.
    #[must_use]
    pub fn tag(&self, number: u64) -> u64 {
        let place = number.checked_sub(FIRST_NUMBER.into()).map(usize::try_from);
        let tag = place.and_then(|place| self.tags.get(place.ok()?));
        tag.copied().unwrap_or(number)
    }

    /// Memory in use, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let of_table = self.numbers.capacity() * (size_of::<(u64, u32)>() + 1);
        (of_table + self.tags.capacity() * size_of::<u64>()) as u64
    }
}

/// `op` with its tag replaced by `numbered`; `None` if that returns `None`.
pub(super) fn with_number(op: Op, numbered: impl FnOnce(u64) -> Option<u32>) -> Option<Op> {
    let mut op = op;
    if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut op.kind
        && *tag >= FIRST_NUMBER.into()
        && *tag != ANY_TAG
    {
        *tag = numbered(*tag)?.into();
    }
    Some(op)
}

/// Sink adapter that replaces large tags by numbers.
pub(super) fn numbering<S: Sink<Error = BuildError>>(
    tags: &mut TagNumbers,
    sink: &mut S,
) -> impl Sink<Error = BuildError> {
    EachOp::new(sink, |_, op| with_number(op, |tag| tags.add(tag)).ok_or(BuildError::TooManyOps))
}

/// Sink adapter that puts back tags for their numbers.
pub(super) fn original<S: Sink>(tags: &TagNumbers, sink: &mut S) -> impl Sink<Error = S::Error> {
    EachOp::new(sink, |_, mut op: Op| {
        if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut op.kind {
            *tag = tags.tag(*tag);
        }
        Ok(op)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_tags_have_different_numbers_and_come_back_from_them() {
        let mut tags = TagNumbers::default();
        let high = [1 << 31, u64::from(u32::MAX), 7 + (1 << 32), 50_000_100_007, ANY_TAG - 1];
        let numbers = high.map(|tag| tags.add(tag).unwrap());
        assert_eq!(numbers, [0, 1, 2, 3, 4].map(|after| FIRST_NUMBER + after));
        assert_eq!(high.map(|tag| tags.add(tag).unwrap()), numbers);
        assert_eq!(numbers.map(|number| tags.tag(number.into())), high);
        assert_eq!((tags.add(7), tags.tag(7), tags.tag(ANY_TAG)), (Some(7), 7, ANY_TAG));
        assert_eq!(tags.number(1 << 40), None);
    }
}
