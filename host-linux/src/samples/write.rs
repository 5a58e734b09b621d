//! Writing samples.

use std::io::{self, Write};

use loggap_core::measure::{Quantity, Sample};

use super::RAW;
use crate::decimal;

/// Writes `samples` in the raw form, in their order.
///
/// # Errors
///
/// Those of `out`.
pub fn write<'s>(
    mut out: impl Write,
    samples: impl IntoIterator<Item = &'s Sample>,
) -> io::Result<()> {
    writeln!(out, "{}", RAW.join(","))?;
    for sample in samples {
        let experiment = &sample.experiment;
        let (size, messages) = (experiment.size, experiment.messages);
        let delay = decimal::seconds(sample.delay);
        let elapsed = decimal::seconds(sample.elapsed);
        match experiment.quantity {
            Quantity::Receive => writeln!(out, "{size},{messages},{delay},,{elapsed}")?,
            Quantity::RoundTrip | Quantity::Gap | Quantity::Paced => {
                writeln!(out, "{size},{messages},{delay},{elapsed},")?;
            }
        }
    }
    out.flush()
}
