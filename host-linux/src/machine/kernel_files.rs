//! Values in files of the kernel, below `/proc` and `/sys`.

use std::fs;
use std::path::Path;

/// Trimmed content of a file of `/sys` or `/proc`; `None` if empty or unreadable.
pub(crate) fn read_setting(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Value of the line `key: value` in a file of `/proc`.
pub(crate) fn read_entry(path: impl AsRef<Path>, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Entry `key` of `/proc/meminfo`, bytes.
pub(crate) fn memory_entry(key: &str) -> Option<u64> {
    let kilobytes = read_entry("/proc/meminfo", key)?;
    kilobytes.strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
}
