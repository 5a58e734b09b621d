//! Owned memory for a simulation.

use loggap_core::sim::{Crowd, Entry, Memory, Rank, Record, Requirements, Slot};

/// The parts of [`Memory`], each as long as a simulation requires.
#[derive(Debug)]
pub struct OwnedMemory {
    records: Vec<Record>,
    edges: Vec<u32>,
    ranks: Vec<Rank>,
    firsts: Vec<u32>,
    slots: Vec<Slot>,
    crowds: Vec<Crowd>,
    index: Vec<u32>,
    clocks: Vec<u64>,
    times: Vec<u64>,
    tries: Vec<u64>,
    done: Vec<u64>,
    queue: Vec<Entry>,
    places: Vec<u32>,
    scratch: Vec<[u32; 2]>,
}

impl OwnedMemory {
    /// Allocates what `requirements` ask for.
    #[must_use]
    pub fn new(requirements: &Requirements) -> Self {
        Self {
            records: vec![Record::default(); requirements.records],
            edges: vec![0; requirements.edges],
            ranks: vec![Rank::default(); requirements.ranks],
            firsts: vec![0; requirements.firsts],
            slots: vec![Slot::default(); requirements.slots],
            crowds: vec![Crowd::default(); requirements.crowds],
            // Zeroed memory costs nothing before it is used.
            index: vec![0; requirements.index],
            clocks: vec![0; requirements.clocks],
            times: vec![0; requirements.times],
            tries: vec![0; requirements.tries],
            done: vec![0; requirements.done],
            queue: vec![Entry::default(); requirements.queue],
            places: vec![0; requirements.places],
            scratch: vec![[0; 2]; requirements.scratch],
        }
    }

    /// Lends all of it.
    pub fn lend(&mut self) -> Memory<'_> {
        Memory {
            records: &mut self.records,
            edges: &mut self.edges,
            ranks: &mut self.ranks,
            firsts: &mut self.firsts,
            slots: &mut self.slots,
            crowds: &mut self.crowds,
            index: &mut self.index,
            clocks: &mut self.clocks,
            times: &mut self.times,
            tries: &mut self.tries,
            done: &mut self.done,
            queue: &mut self.queue,
            places: &mut self.places,
            scratch: &mut self.scratch,
        }
    }
}
