//! What messages cost, owned, with the overheads of both ends.

use loggap_core::model::{Protocol, Range, ReceiveOverhead, UnusableParameter};
use loggap_core::sim::Parameters;
use loggap_core::units::Bytes;

/// Parameter sets with the overheads of both ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParameterSets {
    /// One set for each protocol, ascending in size, at least one.
    pub protocols: Vec<Protocol>,
    /// What receiving costs with each; empty where that is what sending costs.
    pub receive: Vec<ReceiveOverhead>,
}

/// Why sets cannot be simulated with.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SetsError {
    /// None, too many, or out of order.
    #[error("a simulation takes up to {most} parameter sets, in ascending order of size", most = Parameters::MOST)]
    Number,
    /// Not as many overheads of the receiver as sets.
    #[error("each parameter set needs an overhead of the receiver")]
    Receive,
}

/// A measured range that gives no parameter set.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("messages from {first} to {last} B: {error}", first = .first.0, last = .last.0)]
pub struct UnusableRange {
    /// Its smallest size.
    pub first: Bytes,
    /// Its largest size.
    pub last: Bytes,
    /// What is missing or negative.
    pub error: UnusableParameter,
}

impl ParameterSets {
    /// These sets; `receive` has as many elements as `protocols`, or none.
    #[must_use]
    pub fn new(protocols: Vec<Protocol>, receive: Vec<ReceiveOverhead>) -> Self {
        let mut ends = protocols.iter().zip(&receive);
        if ends.all(|(protocol, receive)| protocol.parameters.receive_overhead() == *receive) {
            return Self { protocols, receive: Vec::new() };
        }
        Self { protocols, receive }
    }

    /// Those of measured ranges, with both overheads as they were measured,
    /// and `eager_limit` as S.
    ///
    /// # Errors
    ///
    /// [`UnusableRange`] names the first range that gives none.
    pub fn of_ranges<'a>(
        ranges: impl IntoIterator<Item = &'a Range>,
        eager_limit: Bytes,
    ) -> Result<Self, UnusableRange> {
        let (mut protocols, mut receive) = (Vec::new(), Vec::new());
        for range in ranges {
            let (parameters, ends) = range
                .loggops_apart(eager_limit)
                .map_err(|error| UnusableRange { first: range.first, last: range.last, error })?;
            protocols.push(Protocol { first: range.first, parameters });
            receive.push(ends);
        }
        Ok(Self::new(protocols, receive))
    }

    /// The sets as a simulation takes them.
    ///
    /// # Errors
    ///
    /// [`SetsError`].
    pub fn parameters(&self) -> Result<Parameters<'_>, SetsError> {
        let parameters = Parameters::per_protocol(&self.protocols).ok_or(SetsError::Number)?;
        if self.receive.is_empty() {
            return Ok(parameters);
        }
        parameters.with_receive(&self.receive).ok_or(SetsError::Receive)
    }
}
