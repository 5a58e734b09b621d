//! Temporary folders whose files are arguments of commands.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::command::{Run as _, loggap};

/// A folder, gone when dropped.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Folder {
    /// An empty folder.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it makes a folder on the disk")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Path of a file, be it there or not.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.root().join(name).to_str().unwrap().to_owned()
    }

    /// Path of a file with this content.
    #[must_use]
    pub fn written(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Path of a schedule of a pattern, in the form by which its name ends.
    #[must_use]
    pub fn generated(&self, name: &str, pattern: &[&str]) -> String {
        let path = self.path(name);
        loggap().args(["goal", "generate", "-o", &path]).args(pattern).succeeds();
        path
    }

    /// Path of a profile of one range whose latency, 2 us, is known to so many percent.
    #[must_use]
    pub fn profile(&self, name: &str, percent: f64) -> String {
        let latency = 2e-6;
        let (low, high) = (latency * (1.0 - percent / 100.0), latency * (1.0 + percent / 100.0));
        let text = format!(
            r#"{{"schema_version":1,"ranges":[{{"first_bytes":1,"last_bytes":4194304,
            "latency_s":{latency},"latency_s_lo":{low},"latency_s_hi":{high},
            "send_overhead_s":3e-7,"send_overhead_per_byte_s":0,"recv_overhead_s":3e-7,
            "recv_overhead_per_byte_s":0,"gap_s":4e-7,"gap_per_byte_s":1e-10}}]}}"#
        );
        self.written(name, text)
    }

    /// Content of a text file.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// True if the file is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.root().join(name).exists()
    }

    /// Files and folders in it.
    #[must_use]
    pub fn count(&self) -> usize {
        fs::read_dir(self.root()).unwrap().count()
    }
}
