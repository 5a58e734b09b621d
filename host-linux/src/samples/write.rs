//! Writing samples.

use std::io::{self, Write};

use loggap_core::measure::Quantity;

use super::{RAW, TimedSample, io_error};
use crate::decimal;

/// Writes `samples` in the raw form, in their order.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write<'s>(
    out: impl Write,
    samples: impl IntoIterator<Item = &'s TimedSample>,
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(RAW).map_err(io_error)?;
    for TimedSample { sample, launch, time } in samples {
        let experiment = &sample.experiment;
        let elapsed = decimal::seconds(sample.elapsed);
        let (round, receive) = match experiment.quantity {
            Quantity::Receive => (String::new(), elapsed),
            Quantity::RoundTrip | Quantity::Gap | Quantity::Paced => (elapsed, String::new()),
        };
        csv.write_record([
            experiment.size.to_string(),
            experiment.messages.to_string(),
            decimal::seconds(sample.delay),
            round,
            receive,
            launch.to_string(),
            decimal::seconds(*time),
        ])
        .map_err(io_error)?;
    }
    csv.flush()
}
