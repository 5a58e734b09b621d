//! Minimum number of samples behind each claim about a link.

/// A value at one size: a single wrong one of three is not their median.
pub const VALUE: usize = 3;
/// A change of protocol, on each side, at its two nearest sizes together: all of eight are on one
/// side of their median once in 128.
pub const CHANGE: usize = 8;
/// As [`CHANGE`], on a machine that preempts the ends: a size that is measured for a short time
/// only meets one state of the machine.
pub const CHANGE_ON_BUSY: usize = 80;
/// 10% of the rounds are slower: two samples lie beyond it.
pub const P90: usize = 20;
/// 1% of the rounds are slower: two samples lie beyond it.
pub const P99: usize = 200;
/// 0.1% of the rounds are slower: two samples lie beyond it.
pub const P999: usize = 2_000;
/// Slowest round: it is of these rounds alone.
pub const MAXIMUM: usize = 1;
