//! What has to be gone when a program ends, however it ends: namespaces and
//! processes of its own.

use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::sys::signal::{SigSet, Signal, kill};

use crate::command::{Ended, finish, pid, start};

static NAMESPACES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static PROCESSES: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn locked<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over Ctrl-C, SIGTERM and SIGHUP: they remove what is left and end
/// this program with 130. To be called before any thread is started.
#[allow(clippy::exit, reason = "a signal ends the program, with everything removed")]
pub fn on_signals() {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().unwrap();
    thread::spawn(move || {
        signals.wait().unwrap();
        // Held until the end: nothing new is registered any more.
        let processes = locked(&PROCESSES);
        for process in processes.iter() {
            let _ended_already = kill(pid(*process), Signal::SIGKILL);
        }
        let namespaces = locked(&NAMESPACES);
        namespaces.iter().for_each(|name| delete(name));
        std::process::exit(130);
    });
}

fn delete(name: &str) {
    let _gone_already = Command::new("ip").args(["netns", "del", name]).output();
}

/// A network namespace, deleted when dropped and on signals.
#[derive(Debug)]
pub struct Namespace(String);

impl Namespace {
    /// A new namespace of this name.
    ///
    /// # Errors
    ///
    /// What `ip` said.
    pub fn add(name: String) -> Result<Self, String> {
        locked(&NAMESPACES).push(name.clone());
        let namespace = Self(name);
        ip(&format!("netns add {}", namespace.0))?;
        Ok(namespace)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        delete(&self.0);
        locked(&NAMESPACES).retain(|name| *name != self.0);
    }
}

/// Runs `ip`.
///
/// # Errors
///
/// What it said, or why there is none.
pub fn ip(arguments: &str) -> Result<(), String> {
    run(Command::new("ip").args(arguments.split(' ')), arguments)
}

/// Runs a command to its end.
///
/// # Errors
///
/// What it said, or why it could not be started.
pub fn run(command: &mut Command, words: &str) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("no `{name}` ({error})"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("`{words}`: {}", said.trim())) }
}

/// A process of this program, killed when dropped and on signals.
#[derive(Debug)]
pub struct Process {
    id: u32,
    child: Option<Child>,
}

impl Process {
    /// Starts it, both outputs in pipes.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut processes = locked(&PROCESSES);
        let child = start(command);
        processes.push(child.id());
        Self { id: child.id(), child: Some(child) }
    }

    /// The process, as long as it was not waited for.
    pub const fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Waits for its end; it is killed where it takes too long.
    #[must_use]
    pub fn finish(mut self) -> Ended {
        finish(self.child.take().expect("a process that was not waited for"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut processes = locked(&PROCESSES);
        if let Some(child) = &mut self.child {
            let _ended_already = child.kill();
            let _ = child.wait();
        }
        processes.retain(|process| *process != self.id);
    }
}
