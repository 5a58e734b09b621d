//! Names the linker script by its full path, wherever cargo runs the linker.
use std::{env, path::PathBuf};

fn main() {
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    println!("cargo:rustc-link-arg=-Wl,-T,{}", here.join("link.ld").display());
    println!("cargo:rerun-if-changed=link.ld");
}
