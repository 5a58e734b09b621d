//! Why a measurement failed.

use loggap_core::measure::{Phase, PlanError, SessionError};
use loggap_core::wire::{Limited, Refusal};
use thiserror::Error;

use super::AnalysisError;
use crate::link::LinkError;
use crate::output::number;
use crate::terminal::CliError;

/// Why a measurement did not start, or ended early.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError<LinkError>),
    /// The plan could not be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There are too few samples, or they do not behave like a link.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// No size was given.
    #[error("no message size to measure; give some with -s")]
    NoSizes,
    /// A size exceeds the longest message of this link.
    #[error(
        "a message of {size} bytes is over the {longest} that this link takes; use -s 1:{longest}"
    )]
    TooLong {
        /// The size in bytes.
        size: u32,
        /// The largest in bytes.
        longest: u32,
    },
    /// Allocation of a send and a receive buffer failed.
    #[error("no memory for two messages of {size} bytes; use smaller sizes")]
    Memory {
        /// The largest size in bytes.
        size: u32,
    },
}

/// Remedy for exceeding a limit of the responder.
fn within(what: Limited, asked: u64, allowed: u64) -> String {
    match what {
        Limited::Message => {
            let [asked, allowed] = [asked, allowed].map(number::bytes);
            format!(
                "-s 1:{allowed}, or, unless datagrams end there, loggap serve --max-message {asked}"
            )
        }
        Limited::Messages => format!("-n {allowed}"),
        // Pauses grow with the message size, and each launch is a session.
        Limited::Pause | Limited::Silence => "smaller sizes with -s".to_owned(),
        Limited::Rounds | Limited::Session => "more --launches, or several runs".to_owned(),
    }
}

impl From<MeasureError> for CliError {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Session(SessionError::Link(error)) => error.into(),
            MeasureError::Session(SessionError::OutOfBounds { what, asked, allowed }) => {
                Self::usage(format_args!("{error}; {}", within(what, asked, allowed)))
            }
            MeasureError::Session(SessionError::Refused(Refusal::Bounds {
                what,
                asked,
                allowed,
            })) => Self::failed(format_args!("{error}; {}", within(what, asked, allowed))),
            MeasureError::Session(SessionError::Invalid(_))
            | MeasureError::Plan(_)
            | MeasureError::NoSizes
            | MeasureError::TooLong { .. } => Self::usage(error),
            MeasureError::Session(SessionError::Silent { phase: Phase::Round, limit }) => {
                Self::failed(format_args!(
                    "the peer was silent for {limit} in a round, though it had answered before: it was stopped, the network was cut, or long messages do not arrive (path MTU?), and -s 1:1K does"
                ))
            }
            MeasureError::Session(_) | MeasureError::Analysis(_) | MeasureError::Memory { .. } => {
                Self::failed(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_the_responder_comes_with_a_remedy() {
        let (what, asked, allowed) = (Limited::Message, 8 << 20, 4 << 20);
        let error = MeasureError::Session(SessionError::OutOfBounds { what, asked, allowed });
        let text = CliError::from(error).to_string();
        assert!(
            text.contains("; -s 1:4M, or") && text.ends_with("loggap serve --max-message 8M"),
            "{text}"
        );
        let (what, asked, allowed) =
            (Limited::Session, 3_601_000_000_000_000, 3_600_000_000_000_000);
        let refusal = Refusal::Bounds { what, asked, allowed };
        let text =
            CliError::from(MeasureError::Session(SessionError::Refused(refusal))).to_string();
        assert!(text.contains("3601.000 s") && text.ends_with("several runs"), "{text}");
    }
}
