//! The models: parameter sets, profiles of measured links, predictions.
//!
//! - [`LogGops`]: one set of parameters, with the closed forms of point-to-point communication.
//! - [`Profile`]: the result of a measurement: one [`Range`] of sizes per protocol, every number
//!   with its interval and a [`Mark`] of its quality.
//! - [`Parameter`] and [`Coefficient`]: the table of what is measured, with names, symbols and keys.
//! - [`compact`]: binary encoding of a profile.
//! - [`ClosedForm`]: times of collective operations, and where a simulation differs from them.
//! - [`Preset`]: published parameter sets.
//!
//! Equation numbers are those of Hoefler, Lichei, Rehm: "Low-Overhead `LogGP`
//! Parameter Assessment for Modern Interconnection Networks" and its journal
//! form, "`LogGP` in Theory and Practice".

mod collective;
pub mod compact;
mod equations;
mod estimate;
mod line;
mod parameter;
mod parameters;
mod predict;
mod preset;
mod profile;

pub use collective::{Caveat, ClosedForm};
pub use equations::{Prtt, per_message, send_overhead};
pub use estimate::{Estimate, Mark};
pub use line::SizeLine;
pub use parameter::{Coefficient, Curve, Parameter};
pub use parameters::{LogGops, ReceiveOverhead};
pub use predict::{PredictError, Prediction};
pub use preset::{Preset, Protocol, UnknownPreset};
pub use profile::{Change, Profile, Range, UnusableParameter};
