//! The answering end: a listener, the clients that wait, the responder
//! itself, and one that is started on this machine.

pub mod description;
mod hello;
pub mod listener;
pub mod local;
pub mod queue;
pub mod respond;
