//! The command `loggap` as a user runs it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Longer than any command of a test takes; a test that hangs fails by it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// `loggap` with a time limit, ready for arguments.
pub fn loggap() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(binary());
    command.timeout(PATIENCE);
    command
}

/// `loggap` as a plain command, for processes that run beside the test.
pub fn loggap_process() -> Command {
    Command::new(binary())
}

/// Path of the program, built by the first call in this process. Cargo builds
/// programs of other packages for tests only by accident, so it is asked to;
/// where everything is built already this takes a fraction of a second.
pub fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--quiet", "--profile", "test", "--package", "loggap"])
            .args(["--bin", "loggap", "--message-format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo starts");
        assert!(output.status.success(), "loggap was not built");
        let messages = String::from_utf8(output.stdout).expect("cargo speaks UTF-8");
        let executable = |line: &str| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        };
        messages.lines().find_map(executable).expect("cargo names the program")
    })
}
