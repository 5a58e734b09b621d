//! From stored samples to parameters, as `loggap fit` repeats it.

use std::ops::RangeInclusive;

use loggap_core::measure::{
    AssessError, AssessOptions, Assessment, Quantity, RowHeader, SampleStore, SizeRow, StoreError,
    StoreRequirements, floor,
};
use loggap_core::model::Profile;
use thiserror::Error;

use super::AssessBuffers;
use crate::profile::{
    ChangeRecord, ProfileDocument, RangeRecord, Requested, SCHEMA_VERSION, SizeRecord,
};
use crate::samples::{Row, TimedSample};

/// Most sizes that are measured or analysed together. A full store reserves 4 GiB of address space;
/// pages are used as they are filled.
pub(super) const MOST_SIZES: usize = 8_192;
/// Most values in the store: sizes · longest list of samples · number of quantities. 1 GiB.
const MOST_VALUES: usize = 1 << 27;

/// Fitted parameters and the table that they were fitted to.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Parameters with warnings.
    pub assessment: Assessment,
    /// Statistics of the samples by size.
    pub rows: Vec<SizeRow>,
}

/// Why samples could not be analysed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum AnalysisError {
    /// Too many sizes or samples.
    #[error(
        "{sizes} sizes with up to {samples} samples of a kind are more than can be analysed; \
         thin them out"
    )]
    TooMany {
        /// Number of different sizes.
        sizes: usize,
        /// Largest number of samples of one kind at one size.
        samples: usize,
    },
    /// The samples do not belong to one data set.
    #[error(transparent)]
    Mixed(#[from] StoreError),
    /// There are too few samples, or they do not behave like a link.
    #[error(transparent)]
    Assess(#[from] AssessError),
}

impl Analysis {
    /// Analyses `rows`, in the order of measuring: intervals depend on the order, values do not.
    ///
    /// # Errors
    ///
    /// [`AnalysisError`].
    pub fn of(rows: &[Row], options: &AssessOptions) -> Result<Self, AnalysisError> {
        // Values that another tool computed are results, not samples.
        let is_run = rows.iter().all(|row| matches!(row, Row::Round(_)));
        Self::claiming(is_run.then_some([floor::VALUE, floor::CHANGE]), rows, options)
    }

    /// Analyses rounds of a run; a change needs `change_floor` samples on each side.
    ///
    /// # Errors
    ///
    /// [`AnalysisError`].
    pub(super) fn of_rounds(
        rows: &[Row],
        options: &AssessOptions,
        change_floor: usize,
    ) -> Result<Self, AnalysisError> {
        Self::claiming(Some([floor::VALUE, change_floor]), rows, options)
    }

    /// Analyses `rows` that are results, such as medians: one of a kind and size suffices.
    ///
    /// # Errors
    ///
    /// [`AnalysisError`].
    pub fn of_results(rows: &[Row], options: &AssessOptions) -> Result<Self, AnalysisError> {
        Self::claiming(None, rows, options)
    }

    /// Parameters and sizes as a profile without a link.
    #[must_use]
    pub fn document(&self) -> ProfileDocument {
        let Profile { ranges, changes } = &self.assessment.profile;
        ProfileDocument {
            schema_version: SCHEMA_VERSION,
            ranges: ranges.iter().copied().map(RangeRecord::from).collect(),
            changes: changes.iter().copied().map(ChangeRecord::from).collect(),
            sizes: self.rows.iter().copied().map(SizeRecord::from).collect(),
            converged: is_converged(&self.assessment.profile),
            ..ProfileDocument::default()
        }
    }

    /// Analyses the samples of one launch with `sizes` as one range. A launch has few samples, so
    /// there are no least counts.
    pub(super) fn of_launch(
        samples: &[TimedSample],
        sizes: RangeInclusive<u64>,
        options: &AssessOptions,
    ) -> Result<Self, AnalysisError> {
        let rounds = samples.iter().map(|timed| timed.sample);
        let rows: Vec<Row> = rounds
            .filter(|sample| sizes.contains(&sample.experiment.size.into()))
            .map(Row::Round)
            .collect();
        Self::claiming(None, &rows, &AssessOptions { max_changes: 0, ..*options })
    }

    /// `floors` are the least counts of samples of a value, and on each side of a change.
    fn claiming(
        floors: Option<[usize; 2]>,
        rows: &[Row],
        options: &AssessOptions,
    ) -> Result<Self, AnalysisError> {
        let required = required(rows)?;
        let mut headers = vec![RowHeader::default(); required.rows];
        let mut values = vec![0; required.values];
        let mut store = SampleStore::new(&mut headers, &mut values);
        if let Some([value, change]) = floors {
            store.claim_from(value, change);
        }
        for row in rows {
            match row {
                Row::Round(sample) => store.insert(sample)?,
                Row::Gap { size, gap } => store.insert_gap(*size, *gap)?,
            }
        }
        let mut buffers = AssessBuffers::new(store.len());
        let assessment = Assessment::new(&store, options, &mut buffers.lend())?;
        Ok(Self { assessment, rows: size_rows(&store, options) })
    }
}

/// The per-size table of `store`.
pub(super) fn size_rows(store: &SampleStore<'_>, options: &AssessOptions) -> Vec<SizeRow> {
    (0..store.len()).filter_map(|row| store.row(row, options)).collect()
}

/// Requested accuracy, for documents.
pub(crate) fn requested(exact: &AssessOptions) -> Requested {
    Requested {
        relative_error: f64::from(exact.relative_error_ppm) / 1e6,
        // To the precision of the option.
        confidence_percent: (exact.confidence.probability() * 1e6).round() / 1e4,
    }
}

/// True if there are numbers and all have the requested accuracy.
pub(crate) fn is_converged(profile: &Profile) -> bool {
    !profile.ranges.is_empty() && profile.converged()
}

/// Store requirements: every size gets as many samples of a kind as the fullest.
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
    fn the_order_of_the_samples_does_not_move_the_values() {
        let mut rows = gaps((0..14).map(|exponent| 1 << exponent));
        let options = AssessOptions::default();
        let forwards = Analysis::of(&rows, &options).unwrap();
        rows.reverse();
        let backwards = Analysis::of(&rows, &options).unwrap();
        let gap = |analysis: &Analysis| {
            let line = analysis.assessment.profile.ranges[0].gap;
            (line.at_one.value, line.per_byte.value)
        };
        assert_eq!(gap(&forwards), gap(&backwards));
        assert_eq!((forwards.rows.len(), backwards.rows.len()), (14, 14));
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
