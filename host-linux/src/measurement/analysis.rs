//! From stored samples to parameters: what `loggap fit` repeats.

use std::{error, fmt};

use loggap_core::measure::{
    AssessError, AssessOptions, Assessment, Quantity, RowHeader, Sample, SampleStore, SizeRow,
    StoreError, StoreRequirements,
};

use crate::drive::AssessBuffers;
use crate::samples::Row;

/// Most sizes that are analysed together.
const MOST_SIZES: usize = 8_192;
/// Most values of the store: sizes times the longest list of samples times
/// the number of quantities. 1 GiB.
const MOST_VALUES: usize = 1 << 27;

/// The parameters, and the table that they were fitted to.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// The parameters, and what there is to say about them.
    pub assessment: Assessment,
    /// What the samples of each size say.
    pub rows: Vec<SizeRow>,
}

/// Why samples say nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnalysisError {
    /// So many sizes with up to so many samples of a kind each.
    TooMany {
        /// Different sizes.
        sizes: usize,
        /// Most samples of one kind at one size.
        samples: usize,
    },
    /// The samples do not belong together.
    Mixed(StoreError),
    /// They do not suffice, or show something else than a link.
    Assess(AssessError),
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { sizes, samples } => write!(
                f,
                "{sizes} sizes with up to {samples} samples of a kind are more than can be \
                 analysed; thin them out"
            ),
            Self::Mixed(error) => error.fmt(f),
            Self::Assess(error) => error.fmt(f),
        }
    }
}

impl error::Error for AnalysisError {}

impl From<StoreError> for AnalysisError {
    fn from(error: StoreError) -> Self {
        Self::Mixed(error)
    }
}

impl Analysis {
    /// Analyses `rows`; their order does not matter.
    ///
    /// # Errors
    ///
    /// [`AnalysisError`].
    pub fn of(rows: &[Row], options: &AssessOptions) -> Result<Self, AnalysisError> {
        let required = required(rows)?;
        let mut headers = vec![RowHeader::default(); required.rows];
        let mut values = vec![0; required.values];
        let mut store = SampleStore::new(&mut headers, &mut values);
        for row in rows {
            match row {
                Row::Round(sample) => store.insert(sample)?,
                Row::Gap { size, gap } => store.insert_gap(*size, *gap)?,
            }
        }
        let mut buffers = AssessBuffers::new(store.len(), options.max_changes);
        let assessment = Assessment::new(&store, options, &mut buffers.lend());
        let assessment = assessment.map_err(AnalysisError::Assess)?;
        let row = |row| store.row(row, options.confidence, options.relative_error_ppm);
        Ok(Self { assessment, rows: (0..store.len()).filter_map(row).collect() })
    }

    /// Analyses what a measurement has kept.
    ///
    /// # Errors
    ///
    /// [`AnalysisError`].
    pub fn of_samples(samples: &[Sample], options: &AssessOptions) -> Result<Self, AnalysisError> {
        let rows: Vec<Row> = samples.iter().copied().map(Row::Round).collect();
        Self::of(&rows, options)
    }
}

/// Room for all sizes, each with as many samples of a kind as the fullest.
fn required(rows: &[Row]) -> Result<StoreRequirements, AnalysisError> {
    let mut cells: Vec<(u32, Quantity)> = rows.iter().map(cell).collect();
    cells.sort_unstable();
    let samples = cells.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
    let sizes = cells.chunk_by(|a, b| a.0 == b.0).count();
    StoreRequirements::new(sizes, samples)
        .filter(|required| sizes <= MOST_SIZES && required.values <= MOST_VALUES)
        .ok_or(AnalysisError::TooMany { sizes, samples })
}

const fn cell(row: &Row) -> (u32, Quantity) {
    match row {
        Row::Round(sample) => (sample.experiment.size, sample.experiment.quantity),
        Row::Gap { size, .. } => (*size, Quantity::Gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::units::SignedPicos;

    fn gaps(sizes: impl Iterator<Item = u32>) -> Vec<Row> {
        let gap = |size: u32| SignedPicos(1_000_000 + i64::from(size) * 100);
        let rows = sizes.flat_map(|size| (0..7).map(move |i| (size, i)));
        rows.map(|(size, i)| Row::Gap { size, gap: SignedPicos(gap(size).0 + i * 10) }).collect()
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter() {
        let mut rows = gaps((0..14).map(|exponent| 1 << exponent));
        let options = AssessOptions::default();
        let forwards = Analysis::of(&rows, &options).unwrap();
        rows.reverse();
        let backwards = Analysis::of(&rows, &options).unwrap();
        assert_eq!(forwards.assessment, backwards.assessment);
        assert_eq!((forwards.rows.len(), forwards.rows), (14, backwards.rows));
        let slope = forwards.assessment.profile.ranges[0].gap.per_byte.value.seconds();
        assert!((slope - 100e-12).abs() < 1e-14, "{slope}");
    }

    #[test]
    fn floods_of_sizes_are_refused_before_memory_is_taken() {
        let error = Analysis::of(&gaps(1..9_000), &AssessOptions::default()).unwrap_err();
        assert_eq!(error, AnalysisError::TooMany { sizes: 8_999, samples: 7 });
        let mut uneven = gaps(1..8_000);
        uneven.extend(std::iter::repeat_n(uneven[0], 60_000));
        let error = Analysis::of(&uneven, &AssessOptions::default()).unwrap_err().to_string();
        assert!(error.contains("thin them out"), "{error}");
    }
}
