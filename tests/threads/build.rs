//! Copies the simulator's pool of threads, as it is, or with one place weakened, for
//! which the model has to fail: `LOGGAP_WEAKEN` names it.

use std::path::Path;
use std::{env, fs};

const SOURCE: &str = "../../host-linux/src/simulation/windows/workers.rs";

/// Name, what stands there, and what is put there.
const WEAKER: [(&str, &str, &str); 4] = [
    ("done", "fetch_add(1, Ordering::Release)", "fetch_add(1, Ordering::Relaxed)"),
    ("wait-for-done", "self.done.load(Ordering::Acquire)", "self.done.load(Ordering::Relaxed)"),
    (
        "publish",
        "self.state.store(state, Ordering::SeqCst)",
        "self.state.store(state, Ordering::Relaxed)",
    ),
    ("wake", "self.wake.notify_all();", ""),
];

fn main() {
    println!("cargo::rerun-if-env-changed=LOGGAP_WEAKEN");
    println!("cargo::rerun-if-changed={SOURCE}");
    let mut source = fs::read_to_string(SOURCE).expect("the pool's source");
    if let Ok(name) = env::var("LOGGAP_WEAKEN") {
        let (_, from, to) =
            WEAKER.iter().find(|(known, ..)| *known == name).expect("a known place");
        assert_eq!(source.matches(from).count(), 1, "{from} stands there once");
        source = source.replace(from, to);
    }
    // Documentation of the file as a whole cannot stand within another one.
    let source = source.replace("//!", "//");
    let folder = env::var_os("OUT_DIR").expect("a folder");
    fs::write(Path::new(&folder).join("workers.rs"), source).expect("a copy");
}
