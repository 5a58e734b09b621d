//! Driver in global order: one event after the other, of all ranks, by (time, stamp).

pub(super) mod clocks;
pub(super) mod engine;
mod event;
mod execute;
pub(super) mod order;
pub(super) mod part;
pub(super) mod part_mail;
mod pending;
mod prefetch;
pub(super) mod rank;
pub(super) mod ranks;
mod release;
mod rules;
pub(super) mod waiting;
