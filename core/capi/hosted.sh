# Calls every function of loggap.h from Rust, and the same under Miri, which
# knows what Rust leaves undefined. Part of the script "check".
step 'C functions called from Rust'

check 'format of the calls' cargo fmt --check --manifest-path hosted/Cargo.toml
check 'lints of the calls' cargo clippy --quiet --manifest-path hosted/Cargo.toml \
  --target-dir target/hosted --all-targets -- -D warnings
check 'every C function, and the kept inputs of the fuzzer' cargo test --quiet \
  --manifest-path hosted/Cargo.toml --target-dir target/hosted

# Pointers are never made from numbers here: Miri may be strict about it.
under_miri() {
  MIRIFLAGS=-Zmiri-strict-provenance cargo +nightly miri test --quiet \
    --manifest-path hosted/Cargo.toml --target-dir target/miri
}

has_miri() { cargo +nightly miri --version >/dev/null 2>&1; }
if ! has_miri; then
  step 'install Miri: runs the calls of C functions'
  { cargo +nightly --version || rustup toolchain install nightly --profile minimal; } >/dev/null 2>&1
  timeout 300 rustup +nightly component add miri rust-src >/dev/null 2>&1
fi
if has_miri; then
  check 'every C function under Miri' under_miri
else
  skipped=$((skipped + 1))
  echo 'skipped: every C function under Miri: could not install miri and rust-src'
fi
