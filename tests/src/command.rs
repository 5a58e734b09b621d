//! The command `loggap` as a user runs it.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::timing::go_first;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Longer than any command of a test takes; a test that hangs fails by it.
pub const PATIENCE: Duration = Duration::from_secs(150);

/// The right to measure on this machine: measurements beside each other would
/// measure each other. Held by one test of all processes at a time, until it
/// is dropped. What the test starts goes first.
pub fn machine() -> Flock<File> {
    go_first();
    let path = std::env::temp_dir().join("loggap-tests.lock");
    let file = shared_file(&path).expect("a file to lock");
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error).expect("a lock")
}

/// A file in a folder of all users: the first user makes it, and the others
/// may read it, which is enough for a lock. To open it as one that may have to
/// be made is refused to them where the folder is sticky
/// (`fs.protected_regular`).
fn shared_file(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    match File::options().write(true).create_new(true).open(path) {
        // Another test was first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => File::open(path),
        made => made.and_then(|file| {
            // Whatever the first user keeps from others by default.
            file.set_permissions(Permissions::from_mode(0o644))?;
            Ok(file)
        }),
    }
}

/// Says that a test, or a part of one, cannot run here, and why. `tests/run-all`
/// counts it, by the file that `LOGGAP_SKIPPED` names.
pub fn skipped(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
    let Some(path) = std::env::var_os("LOGGAP_SKIPPED") else { return };
    let mut file = File::options().create(true).append(true).open(path).expect("a list of skips");
    writeln!(file, "skipped: {what}: {why}").expect("a list of skips");
}

/// `loggap` with a time limit, ready for arguments.
pub fn loggap() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(binary());
    command.timeout(PATIENCE);
    command
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code; none after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Asserts that it ended with this exit code.
    #[must_use]
    pub fn exited(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// The document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("a document")
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code();
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Commands that a test runs to their end.
pub trait Run {
    /// Runs it, however it ends.
    fn ended(&mut self) -> Ended;

    /// Runs it, and asserts that it ends with this exit code.
    fn ends(&mut self, code: i32) -> Ended {
        self.ended().exited(code)
    }

    /// Runs it, and asserts that it succeeds.
    fn succeeds(&mut self) -> Ended {
        self.ends(0)
    }
}

impl Run for assert_cmd::Command {
    fn ended(&mut self) -> Ended {
        self.output().expect("a process").into()
    }
}

impl Run for Command {
    fn ended(&mut self) -> Ended {
        self.output().expect("a process").into()
    }
}

/// The JSON of a simulation that succeeds.
pub fn simulated(arguments: &[&str]) -> Value {
    loggap().arg("simulate").args(arguments).arg("-J").succeeds().json()
}

/// Exit code and standard error of a simulation that fails.
pub fn refused(arguments: &[&str]) -> (i32, String) {
    let ended = loggap().arg("simulate").args(arguments).ended();
    let code = ended.code.expect("an exit code");
    assert_ne!(code, 0, "{arguments:?}: {ended:#?}");
    (code, ended.stderr)
}

/// Asserts that a simulation ends with this exit code, and says these words.
pub fn assert_refused(arguments: &[&str], code: i32, words: &str) {
    let told = loggap().arg("simulate").args(arguments).ends(code).stderr;
    assert!(told.contains(words), "{arguments:?}: {told}");
}

/// `loggap` after words of a shell, such as those that set a limit, ready for arguments.
pub fn loggap_after(words: &str) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new("sh");
    let script = format!("{words}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(binary()).timeout(PATIENCE);
    command
}

/// `loggap` as a plain command, for processes that run beside the test.
pub fn loggap_process() -> Command {
    Command::new(binary())
}

/// Sends `signal` to a process that this test started and has not waited for.
pub fn send(signal: Signal, process: u32) {
    kill(pid(process), signal).expect("a process to signal");
}

/// Starts a process, both outputs in pipes.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
}

/// Waits for the end of `child` while reading what it writes: a pipe that
/// nobody reads would stop it when full. It is killed when it takes too long.
pub fn finish(child: Child) -> Ended {
    let process = child.id();
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    let output = ended.recv_timeout(PATIENCE).or_else(|_| {
        send(Signal::SIGKILL, process);
        ended.recv()
    });
    output.expect("a thread that waits").expect("output of the process").into()
}

/// What `loggap` with these arguments leaves that gets Ctrl-C while its runs are under way,
/// as soon as `is_enough` says that it left enough: what comes before the runs may take
/// longer on a busy machine.
///
/// # Panics
///
/// Where it ends otherwise than by that, or always too early.
pub fn interrupted(arguments: &[&str], is_enough: impl Fn(&Ended) -> bool) -> Ended {
    for wait in [1, 3, 10, 40] {
        let child = start(loggap_process().args(arguments));
        thread::sleep(Duration::from_secs(wait));
        send(Signal::SIGINT, child.id());
        let ended = finish(child);
        if ended.code.is_none() {
            // On a busy machine it did not take Ctrl-C over yet.
            continue;
        }
        let ended = ended.exited(130);
        if is_enough(&ended) {
            return ended;
        }
    }
    panic!("{arguments:?} left nothing");
}

/// The process number as the system's calls take it.
pub fn pid(process: u32) -> Pid {
    Pid::from_raw(process.try_into().expect("a process number"))
}

/// Path of the program: what `LOGGAP_BINARY` names, which `tests/run-all` has
/// just built with everything else, or built by the first call in this process,
/// for release where the caller is.
pub fn binary() -> &'static PathBuf {
    const PROFILE: &str = if cfg!(debug_assertions) { "test" } else { "release" };
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(built) = std::env::var_os("LOGGAP_BINARY") {
            return built.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--quiet", "--profile", PROFILE, "--package", "loggap"])
            .args(["--bin", "loggap", "--message-format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo starts");
        assert!(output.status.success(), "loggap was not built");
        let messages = String::from_utf8(output.stdout).expect("cargo speaks UTF-8");
        let executable = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        };
        messages.lines().find_map(executable).expect("cargo names the program")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::{Mode, umask};

    #[test]
    fn the_lock_of_another_user_is_taken_too() {
        const NOBODY: u32 = 65_534;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let path = folder.path().join("lock");
        let usual = umask(Mode::from_bits_truncate(0o077));
        let made = shared_file(&path).unwrap();
        umask(usual);
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        if !nix::unistd::Uid::effective().is_root() {
            return skipped("the lock of another user", "only root makes files of others");
        }
        std::os::unix::fs::chown(folder.path(), Some(NOBODY - 1), None).unwrap();
        std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
        let file = shared_file(&path).unwrap();
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error).unwrap();
    }
}
