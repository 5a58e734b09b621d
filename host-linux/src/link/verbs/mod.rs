//! RDMA verbs: InfiniBand and RoCE, without the kernel between the two ends
//! while messages travel.
//!
//! The initiator sends what it has and wants over a TCP connection to the
//! responder's port and gets the other end's data back; that connection then
//! says whether the peer lives and nothing else. How messages travel is an
//! [`Operation`]; how the memory of both ends is laid out, `station`.
//!
//! - `settings`, `record`, `error`: what can be chosen, what a profile says, what fails.
//! - `open`: connecting two ends; `offer`: the bytes that they exchange for that;
//!   `station`: an end before it is connected.
//! - `link`: a connected end; `sending`, `receiving`, and `one_sided` for reads: its
//!   messages; `credits`: how many it may send; `countdown`: what is due once in so many.
//! - `calls`: timing the parts of posts and looks.
//! - `absent`: the link of a build without the feature.
//!
//! Without the feature `verbs` there is the same [`VerbsLink`], which nobody can
//! make: everything else of this crate is the same in both builds.

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
