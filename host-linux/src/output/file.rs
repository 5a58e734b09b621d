//! Files that are written completely or not at all.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use serde::Serialize;
use tempfile::NamedTempFile;

/// Why a file could not be written. The previous content under its name, if any, is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("cannot write '{}': {source}{}", path.display(), hint(source))]
pub struct FileError {
    /// Path of the file.
    pub path: PathBuf,
    /// System error.
    pub source: io::Error,
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; create its folder first",
        io::ErrorKind::PermissionDenied => "; choose a file and folder that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room or choose another folder"
        }
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes, see `ulimit -f`",
        _ => "",
    }
}

/// File that is opened before the work and gets its content in one step when that is complete. An
/// existing file keeps its mode and owner.
#[derive(Debug)]
pub struct PendingFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Writes a temporary file in the same folder and renames it when complete.
    Replace {
        temporary: NamedTempFile,
        /// File to replace, symbolic links resolved.
        path: PathBuf,
        /// Handle of the file to replace, written in place if the rename fails, as for a
        /// bind-mounted file.
        existing: Option<File>,
    },
    /// Writes a temporary file and copies it when complete, for a file that cannot be replaced: in
    /// a folder without write permission, of another user, with several hard links, or behind a
    /// descriptor, where the content is appended (`follows`).
    Copy { scratch: File, existing: File, follows: bool },
    /// Writes a device or pipe directly.
    Direct(File),
}

impl PendingFile {
    /// Opens a temporary file in the folder of `path`, or standard output for `-`, so that a wrong
    /// path is reported before the work.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the folder does not exist or is not writable.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, FileError> {
        let mut path = path.into();
        if path == Path::new("-") {
            path = "/dev/stdout".into();
        }
        match Target::open(&path) {
            Ok(target) => {
                target.register();
                Ok(Self { path, target })
            }
            Err(source) => Err(FileError { path, source }),
        }
    }

    /// Path of the final file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the file by `write` and gives it its name.
    ///
    /// # Errors
    ///
    /// [`FileError`]; the previous file is then unchanged.
    pub fn commit(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let path = self.path.clone();
        let failed = |source| FileError { path, source };
        self.commit_with(|file| fill(file, write).map_err(failed))
    }

    /// Writes `document` as indented JSON and a newline, and gives the file its name.
    ///
    /// # Errors
    ///
    /// [`FileError`]; the previous file is then unchanged.
    pub fn commit_json(self, document: &impl Serialize) -> Result<(), FileError> {
        self.commit(|out| {
            serde_json::to_writer_pretty(&mut *out, document)?;
            out.write_all(b"\n")
        })
    }

    /// As [`PendingFile::commit`], for a `write` that seeks.
    ///
    /// # Errors
    ///
    /// Errors of `write`, and [`FileError`]; the previous file is then unchanged.
    pub fn commit_with<E: From<FileError>>(
        self,
        write: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), E> {
        let done = match self.target {
            Target::Replace { mut temporary, path, existing } => {
                write(temporary.as_file_mut())?;
                temporary.as_file().sync_data().and_then(|()| {
                    let Err(refused) = temporary.persist(path) else { return Ok(()) };
                    let mut existing = existing.ok_or(refused.error)?;
                    existing.set_len(0)?;
                    copy(&mut existing, refused.file.into_file())
                })
            }
            Target::Copy { mut scratch, mut existing, follows } => {
                write(&mut scratch)?;
                let emptied = if follows { Ok(()) } else { existing.set_len(0) };
                emptied.and_then(|()| copy(&mut existing, scratch))
            }
            Target::Direct(mut file) => return write(&mut file),
        };
        done.map_err(|source| FileError { path: self.path, source }.into())
    }
}

/// Temporary names that this process uses, and some of completed files.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes incomplete temporary files, before the process is terminated.
pub fn remove_unfinished() {
    let names = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    for name in &*names {
        let _complete = fs::remove_file(name);
    }
}

impl Target {
    fn register(&self) {
        if let Self::Replace { temporary, .. } = self {
            let mut names = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
            names.retain(|name| name.exists());
            names.push(temporary.path().to_owned());
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        let Resolved { path, descriptor } = Resolved::of(path)?;
        if let Some(number) = descriptor {
            // Through the descriptor itself, so that later output is appended after this.
            let file = match number {
                1 => io::stdout().as_fd().try_clone_to_owned()?.into(),
                2 => io::stderr().as_fd().try_clone_to_owned()?.into(),
                _ => OpenOptions::new().append(true).open(path)?,
            };
            return Self::behind(file);
        }
        let found = match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) => {
                let file = OpenOptions::new().write(true).open(&path)?;
                if !found.is_file() {
                    return Ok(Self::Direct(file));
                }
                Some((file, found))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new()
            .prefix(".loggap-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            // The temporary name is of no use to the user.
            .map_err(|error| io::Error::from(error.kind()));
        let Some((existing, found)) = found else {
            return Ok(Self::Replace { temporary: temporary?, path, existing: None });
        };
        match temporary {
            Ok(temporary) if found.nlink() == 1 && is_made_like(temporary.as_file(), &found) => {
                Ok(Self::Replace { temporary, path, existing: Some(existing) })
            }
            _ => Ok(Self::Copy { scratch: tempfile::tempfile()?, existing, follows: false }),
        }
    }

    /// Target that appends to an open file.
    fn behind(file: File) -> io::Result<Self> {
        if !file.metadata()?.is_file() {
            return Ok(Self::Direct(file));
        }
        Ok(Self::Copy { scratch: tempfile::tempfile()?, existing: file, follows: true })
    }
}

/// True if `path` leads to standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-") || Resolved::of(path).is_ok_and(|found| found.descriptor == Some(1))
}

/// A path with all symbolic links resolved, including a last one that dangles.
struct Resolved {
    path: PathBuf,
    /// Number of the descriptor that it names, as `/dev/stdout` does.
    descriptor: Option<u32>,
}

impl Resolved {
    fn of(path: &Path) -> io::Result<Self> {
        /// Most links to follow: the kernel's limit.
        const MOST_LINKS: usize = 40;
        let descriptors = fs::canonicalize("/proc/self/fd").ok();
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
            let Some(name) = path.file_name() else {
                return Err(io::ErrorKind::IsADirectory.into());
            };
            if descriptors.as_ref() == Some(&folder) {
                let descriptor = name.to_str().and_then(|number| number.parse().ok());
                return Ok(Self { path: folder.join(name), descriptor });
            }
            let here = folder.join(name);
            match fs::read_link(&here) {
                Ok(target) => path = folder.join(target),
                Err(_) => return Ok(Self { path: here, descriptor: None }),
            }
        }
        Err(Errno::ELOOP.into())
    }
}

/// Gives `file` the owner and mode of the file that it is to replace; false if that is not
/// permitted.
fn is_made_like(file: &File, replaced: &Metadata) -> bool {
    let owner = (Some(replaced.uid()), Some(replaced.gid()));
    let is_owned = file
        .metadata()
        .is_ok_and(|made| (made.uid(), made.gid()) == (replaced.uid(), replaced.gid()));
    (is_owned || fchown(file, owner.0, owner.1).is_ok())
        && file.set_permissions(replaced.permissions()).is_ok()
}

/// Copies `content` from its begin.
fn copy(file: &mut File, mut content: File) -> io::Result<()> {
    content.rewind()?;
    io::copy(&mut content, file)?;
    file.sync_data()
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
    fn a_link_to_no_file_yet_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::os::unix::fs::symlink("real", &link).unwrap();
        PendingFile::create(&link).unwrap().commit(|out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(PendingFile::create(&circle).is_err());
    }

    #[test]
    fn what_is_replaced_keeps_its_mode_and_owner_and_its_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["own", "linked", "others"] {
            fs::write(path(name), "old and longer").unwrap();
            fs::set_permissions(path(name), Permissions::from_mode(0o600)).unwrap();
        }
        fs::hard_link(path("linked"), path("second")).unwrap();
        let root = nix::unistd::Uid::effective().is_root();
        let owner = if root { 65_534 } else { fs::metadata(path("own")).unwrap().uid() };
        std::os::unix::fs::chown(path("others"), Some(owner), None).unwrap();
        for name in ["own", "linked", "others"] {
            let pending = PendingFile::create(path(name)).unwrap();
            pending.commit(|out| out.write_all(b"new")).unwrap();
            let found = fs::metadata(path(name)).unwrap();
            assert_eq!(found.mode() & 0o777, 0o600, "{name}");
            assert_eq!(fs::read(path(name)).unwrap(), b"new", "{name}");
        }
        assert_eq!(fs::metadata(path("others")).unwrap().uid(), owner);
        assert_eq!(fs::read(path("second")).unwrap(), b"new");
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
