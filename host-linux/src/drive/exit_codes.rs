//! Exit codes of the errors of links, processors and files.

use std::io::ErrorKind;

use crate::compare::CompareError;
use crate::link::LinkError;
use crate::machine::placement::PlacementError;
use crate::output::FileError;
use crate::serve::listener::ListenError;
use crate::serve::local::EmbeddedError;
use crate::terminal::{CliError, Exit};

impl From<PlacementError> for CliError {
    fn from(error: PlacementError) -> Self {
        match &error {
            PlacementError::Text { .. } | PlacementError::NotAllowed { .. } => Self::usage(error),
            PlacementError::Refused { .. } => Self::refused(error),
        }
    }
}

impl From<EmbeddedError> for CliError {
    fn from(error: EmbeddedError) -> Self {
        match error {
            EmbeddedError::Link(error) => error.into(),
            other => Self::failed(other),
        }
    }
}

impl From<LinkError> for CliError {
    fn from(error: LinkError) -> Self {
        match &error {
            LinkError::Connect { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Self::refused(error)
            }
            LinkError::Interface { .. } => Self::refused(error),
            LinkError::TooLong { .. } => Self::usage(error),
            LinkError::Verbs(verbs) if verbs.is_usage() => Self::usage(error),
            LinkError::Verbs(verbs) if verbs.is_environment() => Self::refused(error),
            _ => Self::failed(error),
        }
    }
}

impl From<ListenError> for CliError {
    fn from(error: ListenError) -> Self {
        match &error {
            ListenError::Endpoint(LinkError::Interface { .. }) => Self::refused(error),
            ListenError::Endpoint(LinkError::Verbs(verbs)) if verbs.is_usage() => {
                Self::usage(error)
            }
            ListenError::Endpoint(LinkError::Verbs(_)) => Self::refused(error),
            ListenError::Bind { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied => Self::refused(error),
                ErrorKind::AddrNotAvailable | ErrorKind::NotFound | ErrorKind::AlreadyExists => {
                    Self::usage(error)
                }
                _ => Self::failed(error),
            },
            _ => Self::failed(error),
        }
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
        match error.source.kind() {
            NotFound | NotADirectory | IsADirectory => Self::usage(error),
            PermissionDenied => Self::refused(error),
            _ => Self::failed(error),
        }
    }
}

impl From<CompareError> for CliError {
    fn from(error: CompareError) -> Self {
        match error {
            CompareError::Unusable { .. } => {
                Self::Message { exit: Exit::NotConverged, text: error.to_string() }
            }
            _ => Self::usage(error),
        }
    }
}
