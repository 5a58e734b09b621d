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

if nightly miri rust-src; then
  check 'every C function under Miri' under_miri
else
  skip 1 'every C function under Miri' 'could not install miri and rust-src'
fi
