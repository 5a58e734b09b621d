//! RDMA verbs link over InfiniBand or RoCE; the kernel is not involved in sending and receiving
//! messages.
//!
//! Over a TCP connection to the responder's port, the initiator sends its offer and receives the
//! other end's data. Afterwards this connection only shows whether the peer is alive. An
//! [`Operation`] determines how messages are transferred; `station` defines the memory layout of
//! both ends.
//!
//! - `settings`, `record`, `error`: options, profile entries, errors.
//! - `open`: connecting two ends; `offer`: the data that they exchange for it; `station`: an end
//!   before it is connected.
//! - `link`: a connected end; `sending`, `receiving`, and `one_sided` for reads: its messages;
//!   `credits`: flow control; `countdown`: periodic actions.
//! - `calls`: timing the parts of posts and polls.
//! - `absent`: stub for builds without the feature.
//!
//! Without the feature `verbs` there is a [`VerbsLink`] with the same interface, of which no value
//! can exist; so the rest of the crate is the same in both builds.

#[cfg(feature = "verbs")]
mod credits;
mod error;
mod record;
mod settings;

#[cfg(feature = "verbs")]
mod calls;
#[cfg(feature = "verbs")]
mod countdown;
#[cfg(feature = "verbs")]
mod link;
#[cfg(feature = "verbs")]
mod offer;
#[cfg(feature = "verbs")]
mod one_sided;
#[cfg(feature = "verbs")]
mod open;
#[cfg(feature = "verbs")]
mod receiving;
#[cfg(feature = "verbs")]
mod sending;
#[cfg(feature = "verbs")]
mod station;
#[cfg(feature = "verbs")]
pub use link::VerbsLink;

#[cfg(not(feature = "verbs"))]
mod absent;
#[cfg(not(feature = "verbs"))]
pub use absent::VerbsLink;

pub use error::VerbsError;
pub use record::{CallTimes, VerbsPort, VerbsRecord};
pub use settings::{DeviceName, Operation, VerbsSettings};

#[cfg(not(feature = "verbs"))]
pub(crate) use absent::{OFFER, begins_an_offer};
#[cfg(feature = "verbs")]
pub(crate) use offer::begins_an_offer;
#[cfg(feature = "verbs")]
pub(crate) use open::OFFER;
