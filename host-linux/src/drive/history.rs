//! Profiles of earlier runs in a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loggap_core::model::Range;
use thiserror::Error;

use crate::link::MpiLibrary;
use crate::profile::{ProfileDocument, ProfileError};

/// Most files that are read; the last ones in the order of names.
const MOST_FILES: usize = 1_000;
/// Factor within which both ends of a range must match those of an earlier run's.
const SAME_RANGE: u64 = 2;

/// The folder of earlier runs could not be used.
#[derive(Debug, Error)]
#[error("cannot use the history in '{}': {source}; name a folder that you may read and write", path.display())]
pub struct HistoryError {
    /// The folder.
    pub path: PathBuf,
    /// System error.
    pub source: io::Error,
}

/// Profiles of earlier runs.
#[derive(Debug, Default)]
pub struct History {
    runs: Vec<ProfileDocument>,
    /// Files that are not valid profiles.
    pub unreadable: Vec<ProfileError>,
}

impl History {
    /// Reads the profiles in `folder`, which is created if missing.
    ///
    /// # Errors
    ///
    /// [`HistoryError`]. An invalid profile is only added to `unreadable`.
    pub fn read(folder: &Path) -> Result<Self, HistoryError> {
        let failed = |source| HistoryError { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort_unstable();
        let mut history = Self::default();
        for path in paths.iter().rev().take(MOST_FILES) {
            match ProfileDocument::read(path) {
                // A copy of one already read, as where `-o` names a file in this folder.
                Ok(run) if history.runs.contains(&run) => {}
                Ok(run) => history.runs.push(run),
                Err(error) => history.unreadable.push(error),
            }
        }
        Ok(history)
    }

    /// Complete runs over the same link as `run`: equal machine, peer, transport, MTU, way of
    /// waiting, RDMA verbs options, method and span of sizes.
    pub(crate) fn of_same_link(&self, run: &ProfileDocument) -> Vec<&ProfileDocument> {
        let link = Link::of(run);
        let same =
            |earlier: &&ProfileDocument| earlier.incomplete.is_none() && Link::of(earlier) == link;
        self.runs.iter().filter(same).collect()
    }
}

/// Peer of `run`, without the process number of a local responder, which differs every time.
pub(crate) fn peer_name(run: &ProfileDocument) -> &str {
    let peer = run.host.link.peer.as_str();
    peer.split_once(" (process ").map_or(peer, |(name, _)| name)
}

/// Identity of a link: all fields must be equal.
#[derive(PartialEq)]
struct Link<'a> {
    transport: &'a str,
    method: &'a str,
    hostname: &'a str,
    peer: &'a str,
    mtu: Option<u64>,
    /// Way of waiting; empty in profiles of older versions.
    waiting: &'a str,
    /// Over RDMA verbs: operation, devices, inline bytes, and messages under way.
    verbs: Option<(&'a str, [&'a str; 2], u32, u16)>,
    /// Over MPI: library, calls, alignment and settings.
    mpi: Option<&'a MpiLibrary>,
    sizes: Option<(u64, u64)>,
}

impl<'a> Link<'a> {
    fn of(run: &'a ProfileDocument) -> Self {
        let (first, last) = (run.sizes.first(), run.sizes.last());
        Self {
            transport: &run.transport,
            method: &run.method,
            hostname: &run.host.hostname,
            peer: peer_name(run),
            mtu: run.host.link.mtu_bytes,
            waiting: &run.host.link.waiting,
            verbs: run.host.link.verbs.as_ref().map(|verbs| {
                let devices = [&verbs.here, &verbs.there].map(|end| end.device.as_str());
                (verbs.operation.as_str(), devices, verbs.inline_bytes, verbs.depth)
            }),
            mpi: run.host.link.mpi.as_ref(),
            sizes: first.zip(last).map(|(first, last)| (first.row.size.0, last.row.size.0)),
        }
    }
}

/// Ranges of `runs` whose ends match those of `range` within a factor of two.
#[must_use]
pub(super) fn same_ranges<'a>(runs: &[&'a ProfileDocument], range: &Range) -> Vec<&'a Range> {
    let near = |one: u64, other: u64| one.max(other) <= SAME_RANGE.saturating_mul(one.min(other));
    let same =
        |found: &&Range| near(found.first.0, range.first.0) && near(found.last.0, range.last.0);
    let in_run =
        |run: &&'a ProfileDocument| run.ranges.iter().map(|record| &record.range).find(same);
    runs.iter().filter_map(in_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{RangeRecord, SCHEMA_VERSION, SizeRecord};
    use loggap_core::measure::SizeRow;
    use loggap_core::model::SizeLine;
    use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};

    fn run(peer: &str, gap: i64) -> ProfileDocument {
        let range = Range {
            first: Bytes(1),
            last: Bytes(4_096),
            gap: SizeLine::exact(SignedPicos(gap), SignedPerByte(1 << 16)),
            ..Range::default()
        };
        let size = |size| {
            SizeRecord::from(SizeRow {
                size: Bytes(size),
                half_rtt: None,
                gap: None,
                send_overhead: None,
                recv_overhead: None,
                delay: None,
                samples: [0; 4],
            })
        };
        let mut run = ProfileDocument {
            schema_version: SCHEMA_VERSION,
            transport: "tcp".into(),
            ranges: vec![RangeRecord::from(range)],
            sizes: vec![size(1), size(4_096)],
            ..ProfileDocument::default()
        };
        peer.clone_into(&mut run.host.link.peer);
        run
    }

    #[test]
    fn runs_of_the_same_link_are_found_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("not/there/yet");
        assert!(History::read(&here).unwrap().runs.is_empty());
        let mut broken_off = run("a (process 9)", 7);
        broken_off.incomplete = Some("interrupted".into());
        let mut blocking = run("a (process 4)", 9);
        "block".clone_into(&mut blocking.host.link.waiting);
        let mut jumbo = run("a (process 5)", 9);
        jumbo.host.link.mtu_bytes = Some(9_000);
        let documents = [run("a (process 1)", 5), run("b", 6), broken_off, blocking, jumbo];
        for (index, document) in documents.iter().enumerate() {
            let text = serde_json::to_vec(document).unwrap();
            fs::write(here.join(format!("{index}.json")), text).unwrap();
        }
        fs::copy(here.join("0.json"), here.join("copy.json")).unwrap();
        fs::write(here.join("x.json"), "{}").unwrap();
        fs::write(here.join("notes.txt"), "").unwrap();
        let history = History::read(&here).unwrap();
        assert_eq!((history.runs.len(), history.unreadable.len()), (5, 1));
        let now = run("a (process 2)", 8);
        let same = history.of_same_link(&now);
        let gaps: Vec<i64> = same_ranges(&same, &now.ranges[0].range)
            .iter()
            .map(|range| range.gap.at_one.value.0)
            .collect();
        assert_eq!(gaps, [5]);
        let elsewhere = Range { first: Bytes(3), ..now.ranges[0].range };
        assert!(same_ranges(&same, &elsewhere).is_empty());
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = History::read(file.path()).unwrap_err().to_string();
        assert!(error.contains("name a folder"), "{error}");
    }
}
