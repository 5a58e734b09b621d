//! The responding side: listener, queue of waiting clients, responder, and a responder embedded in
//! a measurement.

pub mod description;
mod hello;
pub mod listener;
pub mod local;
pub mod queue;
pub mod respond;
