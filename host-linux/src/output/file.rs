//! Files that are there whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Why a file could not be written. Nothing stands under its name that did
/// not stand there before.
#[derive(Debug, thiserror::Error)]
#[error("cannot write '{}': {source}{}", path.display(), hint(source))]
pub struct FileError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; create its folder first",
        io::ErrorKind::PermissionDenied => "; choose a folder that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room or choose another folder"
        }
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes, see `ulimit -f`",
        _ => "",
    }
}

/// A file that is opened before the work and appears under its name only
/// when it is complete.
#[derive(Debug)]
pub struct PendingFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A new file of the same folder takes the name when it is complete.
    Replace {
        temporary: NamedTempFile,
        /// The file to replace, with symbolic links followed.
        path: PathBuf,
    },
    /// A device or pipe has no other name to be written under.
    Direct(File),
}

impl PendingFile {
    /// Opens a file in the folder of `path`, so that a wrong path shows
    /// before the work and not after it.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the folder does not exist or may not be written.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, FileError> {
        let path = path.into();
        match Target::open(&path) {
            Ok(target) => Ok(Self { path, target }),
            Err(source) => Err(FileError { path, source }),
        }
    }

    /// Where the file will stand.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file stands until it is complete; `None` for devices and
    /// pipes.
    #[must_use]
    pub fn temporary(&self) -> Option<&Path> {
        match &self.target {
            Target::Replace { temporary, .. } => Some(temporary.path()),
            Target::Direct(_) => None,
        }
    }

    /// Lets `write` fill the file and gives it its name.
    ///
    /// # Errors
    ///
    /// [`FileError`]; what stood under the name before still does.
    pub fn commit(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let path = self.path.clone();
        let failed = |source| FileError { path, source };
        self.commit_with(|file| fill(file, write).map_err(failed))
    }

    /// Lets `write` fill the file, which it may do in any order, and gives
    /// it its name.
    ///
    /// # Errors
    ///
    /// Those of `write`, and [`FileError`]; what stood under the name before
    /// still does.
    pub fn commit_with<E: From<FileError>>(
        self,
        write: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.target {
            Target::Replace { mut temporary, path } => {
                write(temporary.as_file_mut())?;
                let named = temporary
                    .as_file()
                    .sync_data()
                    .and_then(|()| temporary.persist(path).map_err(|error| error.error));
                named.map(drop).map_err(|source| FileError { path: self.path, source }.into())
            }
            Target::Direct(mut file) => write(&mut file),
        }
    }
}

impl Target {
    fn open(path: &Path) -> io::Result<Self> {
        let path = match fs::metadata(path) {
            Ok(existing) if existing.is_file() => fs::canonicalize(path)?,
            Ok(existing) if existing.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => return OpenOptions::new().write(true).open(path).map(Self::Direct),
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        fs::metadata(folder)?;
        let temporary = tempfile::Builder::new()
            .prefix(".loggap-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            // Which temporary name was tried means nothing to the user.
            .map_err(|error| io::Error::from(error.kind()))?;
        Ok(Self::Replace { temporary, path })
    }
}

fn fill(file: &mut File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(file);
    write(&mut buffered)?;
    buffered.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let pending = PendingFile::create(&path).unwrap();
        assert!(!path.exists());
        pending.commit(|out| out.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["profile.json"]);
    }

    #[test]
    fn what_failed_half_way_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        fs::write(&path, "old").unwrap();
        let pending = PendingFile::create(&path).unwrap();
        let error = pending.commit(|out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let text = error.unwrap_err().to_string();
        assert!(text.contains("profile.json") && text.contains("make room"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["profile.json"]);
        drop(PendingFile::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        PendingFile::create(&link).unwrap().commit(|out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn a_device_is_written_and_not_replaced() {
        let pending = PendingFile::create("/dev/full").unwrap();
        let error = pending.commit(|out| out.write_all(b"x")).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("make room"), "{error}");
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }

    #[test]
    fn a_path_without_folder_shows_before_the_work() {
        let error = PendingFile::create("/nonexistent/p.json").unwrap_err().to_string();
        assert!(error.contains("create its folder"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        assert!(PendingFile::create(folder.path()).is_err());
    }
}
