//! Machines in QEMU that run the core without an operating system.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::cleanup::ip;
use crate::timing::go_first;

/// Longer than any image takes for its next line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network interface of this machine into which a board is plugged; gone
/// when dropped. Both exist only in the network namespace of this process.
#[derive(Debug)]
pub struct Tap(String);

impl Tap {
    /// A new interface, up.
    #[must_use]
    pub fn new(name: &str) -> Self {
        ip(&format!("tuntap add dev {name} mode tap")).unwrap();
        let tap = Self(name.to_owned());
        ip(&format!("link set {name} up")).unwrap();
        tap
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let _gone_already = ip(&format!("link delete {}", self.0));
    }
}

/// A running machine and what it prints; ended when dropped.
#[derive(Debug)]
pub struct Machine {
    qemu: Child,
    /// Turns what the board logs into text.
    printer: Option<Child>,
    lines: Receiver<String>,
}

impl Machine {
    /// The Cortex-M4F board with the image of that name. It goes first, and so
    /// does what the test starts from then on.
    #[must_use]
    pub fn board(image: &str, tap: Option<&Tap>, further: &[&str]) -> Self {
        go_first();
        let image = folder().join("mps2/target/thumbv7em-none-eabihf/release").join(image);
        let nic = tap.map_or("none".to_owned(), |tap| {
            format!("tap,ifname={},script=no,downscript=no", tap.name())
        });
        let mut qemu = Command::new("qemu-system-arm")
            .args(["-M", "mps2-an386", "-nographic", "-semihosting", "-nic", &nic, "-kernel"])
            .arg(&image)
            .args(further)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("qemu-system-arm starts");
        let log = qemu.stdout.take().unwrap();
        let mut printer = Command::new("defmt-print")
            .arg("-e")
            .arg(&image)
            .stdin(log)
            .stdout(Stdio::piped())
            .spawn()
            .expect("defmt-print starts");
        let lines = lines(printer.stdout.take().unwrap());
        Self { qemu, printer: Some(printer), lines }
    }

    /// The bare x86-64 machine.
    #[must_use]
    pub fn pc() -> Self {
        let image = "pc/target/x86_64-unknown-linux-gnu/release/loggap-firmware-pc";
        let mut qemu = Command::new("qemu-system-x86_64")
            .args("-accel tcg -cpu max -m 512 -nographic -no-reboot -net none".split(' '))
            .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
            .args("-serial stdio -monitor none -kernel".split(' '))
            .arg(folder().join(image))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("qemu-system-x86_64 starts");
        let lines = lines(qemu.stdout.take().unwrap());
        Self { qemu, printer: None, lines }
    }

    /// What the next line that has `mark` in it says behind the mark.
    #[must_use]
    pub fn after(&self, mark: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no '{mark}'"));
            println!("{line}");
            if let Some((_, rest)) = line.split_once(mark) {
                return rest.trim().to_owned();
            }
        }
    }

    /// All further lines, and how the machine ended by itself.
    #[must_use]
    pub fn finish(mut self) -> (Vec<String>, ExitStatus) {
        let mut rest = Vec::new();
        // An end of the lines is the end of the machine.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            println!("{line}");
            rest.push(line);
        }
        let status = self.qemu.try_wait().unwrap();
        let status = status.or_else(|| {
            thread::sleep(Duration::from_secs(2));
            self.qemu.try_wait().unwrap()
        });
        (rest, status.expect("the machine has ended"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for process in [Some(&mut self.qemu), self.printer.as_mut()].into_iter().flatten() {
            let _ended_already = process.kill();
            let _reaped_already = process.wait();
        }
    }
}

/// Reads lines on a thread of their own, so that waiting for one can end.
fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (out, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n') {
            let Ok(line) = line else { return };
            if out.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware")
}
