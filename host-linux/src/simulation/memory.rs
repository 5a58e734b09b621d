//! Owned memory for a simulation.

use std::io;

use loggap_core::sim::{Crowd, Entry, Memory, Rank, Record, Requirements, Slot};

use crate::sys::pages::Pages;

/// The parts of [`Memory`], each as long as a simulation requires.
#[derive(Debug)]
pub struct OwnedMemory {
    records: Pages<Record>,
    edges: Pages<u32>,
    ranks: Pages<Rank>,
    firsts: Pages<u32>,
    slots: Pages<Slot>,
    crowds: Pages<Crowd>,
    index: Pages<u32>,
    clocks: Pages<u64>,
    times: Pages<u64>,
    next_attempts: Pages<u64>,
    links: Pages<u64>,
    done: Pages<u64>,
    queue: Pages<Entry>,
    places: Pages<u32>,
    scratch: Pages<[u32; 2]>,
}

impl OwnedMemory {
    /// Takes what `requirements` ask for.
    ///
    /// # Errors
    ///
    /// The kernel's, where it has no more.
    pub fn new(requirements: &Requirements) -> io::Result<Self> {
        Ok(Self {
            records: Pages::zeroed(requirements.records)?,
            edges: Pages::zeroed(requirements.edges)?,
            ranks: Pages::zeroed(requirements.ranks)?,
            firsts: Pages::zeroed(requirements.firsts)?,
            slots: Pages::zeroed(requirements.slots)?,
            crowds: Pages::zeroed(requirements.crowds)?,
            index: Pages::zeroed(requirements.index)?,
            clocks: Pages::zeroed(requirements.clocks)?,
            times: Pages::zeroed(requirements.times)?,
            next_attempts: Pages::zeroed(requirements.next_attempts)?,
            links: Pages::zeroed(requirements.links)?,
            done: Pages::zeroed(requirements.done)?,
            queue: Pages::zeroed(requirements.queue)?,
            places: Pages::zeroed(requirements.places)?,
            scratch: Pages::zeroed(requirements.scratch)?,
        })
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
            next_attempts: &mut self.next_attempts,
            links: &mut self.links,
            done: &mut self.done,
            queue: &mut self.queue,
            places: &mut self.places,
            scratch: &mut self.scratch,
        }
    }
}
