//! What `docs/embedded.md` shows is what is built.

use std::fs;
use std::path::Path;

#[test]
fn code_in_the_guide_for_firmware_is_that_of_the_library_that_is_linked_for_all_targets() {
    let read = |path| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (guide, source) = (read("../docs/embedded.md"), read("footprint/src/measuring.rs"));
    let blocks: Vec<&str> = guide
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("an end of the block").0)
        .collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        assert!(source.contains(block), "not in tests/footprint/src/measuring.rs:\n{block}");
    }
}
