//! Files named on a command line: checks that no input is overwritten, no two results go to one
//! file, and no ending belongs to another format.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::CliError;
use crate::output::is_standard_output;

/// Files of a command, each with the option that names it.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    read: Vec<NamedFile>,
    written: Vec<NamedFile>,
}

#[derive(Debug)]
struct NamedFile {
    option: &'static str,
    path: PathBuf,
    /// Allowed endings of an output; empty if any is allowed, and for inputs.
    endings: &'static [&'static str],
}

/// Endings that imply a format. All others are allowed for any content.
const TELLING: [&str; 23] = [
    "bin", "bmp", "csv", "dot", "eps", "gif", "goal", "gv", "htm", "html", "jpeg", "jpg", "json",
    "lgs", "pdf", "png", "ps", "svg", "tif", "tiff", "tsv", "viz", "webp",
];

/// Identity of a file, to compare paths.
#[derive(Debug, Eq, PartialEq)]
enum Identity {
    /// An existing file.
    Inode { device: u64, inode: u64 },
    /// A file that does not exist yet; symbolic links of its folder are resolved.
    Path(PathBuf),
}

impl NamedFiles {
    /// Adds an input; `-` is standard input.
    pub(crate) fn read(&mut self, option: &'static str, path: Option<&Path>) {
        let path = path.map(|path| if path == "-" { Path::new("/dev/stdin") } else { path });
        let named = |path: &Path| NamedFile { option, path: path.to_owned(), endings: &[] };
        self.read.extend(path.map(named));
    }

    /// Adds an output, `-` being standard output. `endings` are those of its format; empty if any
    /// is allowed.
    pub(crate) fn written(
        &mut self,
        option: &'static str,
        path: Option<&Path>,
        endings: &'static [&'static str],
    ) {
        let path = path.map(|path| if path == "-" { Path::new("/dev/stdout") } else { path });
        let named = |path: &Path| NamedFile { option, path: path.to_owned(), endings };
        self.written.extend(path.map(named));
    }

    /// True if one of the outputs is standard output.
    pub(crate) fn take_standard_output(&self) -> bool {
        self.written.iter().any(|file| is_standard_output(&file.path))
    }

    /// Refuses outputs that are inputs or are named twice, except devices and pipes, and outputs
    /// whose ending belongs to another format.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        for (at, written) in self.written.iter().enumerate() {
            let Some(identity) = Identity::of(&written.path) else { continue };
            let same = |other: &&NamedFile| Identity::of(&other.path).as_ref() == Some(&identity);
            if let Some(read) = self.read.iter().find(same) {
                return Err(CliError::usage(format_args!(
                    "{} '{}' is the file that {} '{}' reads, and would replace it; name another",
                    written.option,
                    written.path.display(),
                    read.option,
                    read.path.display()
                )));
            }
            if let Some(first) = self.written.iter().take(at).find(same) {
                return Err(CliError::usage(format_args!(
                    "{} '{}' and {} '{}' are one file, which can hold one of them; name another",
                    first.option,
                    first.path.display(),
                    written.option,
                    written.path.display()
                )));
            }
        }
        self.written.iter().try_for_each(NamedFile::check_ending)
    }
}

impl NamedFile {
    fn check_ending(&self) -> Result<(), CliError> {
        let Self { option, path, endings } = self;
        let ending = path.extension().and_then(OsStr::to_str).map(str::to_lowercase);
        let Some(ending) = ending.filter(|ending| TELLING.contains(&ending.as_str())) else {
            return Ok(());
        };
        if endings.is_empty() || endings.contains(&ending.as_str()) {
            return Ok(());
        }
        Err(CliError::usage(format_args!(
            "{option} '{}': what is written is no .{ending}; take a name that ends in .{}",
            path.display(),
            endings.join(" or .")
        )))
    }
}

impl Identity {
    /// Identity of `path`; `None` for devices, pipes and folders, and for inaccessible paths, which
    /// fail when opened.
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        match fs::metadata(path) {
            Ok(found) if found.is_file() => {
                Some(Self::Inode { device: found.dev(), inode: found.ino() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
                Some(Self::Path(folder.join(path.file_name()?)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(read: &[&Path], written: &[&Path]) -> Option<String> {
        let mut files = NamedFiles::default();
        read.iter().for_each(|path| files.read("FILE", Some(path)));
        written.iter().for_each(|path| files.written("--plot", Some(path), &[]));
        files.check().err().map(|error| error.to_string())
    }

    #[test]
    fn a_file_is_known_by_other_names_and_before_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::write(at("other"), "").unwrap();
        fs::create_dir(at("sub")).unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink(folder.path(), at("sub/up")).unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        for name in ["file", "link", "hard", "sub/../file", "sub/up/file"] {
            let told = refusal(&[&at("file")], &[&at(name)]).unwrap();
            assert!(told.contains("--plot") && told.contains("FILE"), "{told}");
        }
        assert_eq!(refusal(&[&at("file")], &[&at("other"), &at("new")]), None);
        for name in ["new", "sub/../new", "sub/up/new"] {
            let told = refusal(&[], &[&at("new"), &at(name)]).unwrap();
            assert!(told.contains("are one file"), "{told}");
        }
        // Opening the file reports the missing folder.
        assert_eq!(refusal(&[], &[&at("none/new"), &at("none/new")]), None);
    }

    #[test]
    fn devices_and_pipes_may_be_named_repeatedly() {
        let null = Path::new("/dev/null");
        assert_eq!(refusal(&[null], &[null, null]), None);
    }
}
