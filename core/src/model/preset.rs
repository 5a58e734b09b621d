//! Published parameter sets, by name.

use core::fmt;
use core::str::FromStr;

use super::LogGops;
use crate::units::{Bytes, PerByte, Picos};

/// A published link, with one parameter set for each protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// Measured system and publication.
    pub source: &'static str,
    /// Parameters of each protocol, ascending in size.
    pub protocols: &'static [Protocol],
    /// Overheads of sender and receiver, `o_s` and `o_r`, if published apart: the protocols have
    /// their mean.
    pub ends: Option<[Picos; 2]>,
}

/// The parameters of one protocol of a [`Preset`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Protocol {
    /// Smallest size of a message that uses it.
    pub first: Bytes,
    /// Its parameters.
    pub parameters: LogGops,
}

/// Source of the paper's parameters.
const PAPER: &str = "LogGP in Theory and Practice, Table 2";

/// Eager limit of links without rendezvous.
const ALWAYS_EAGER: Bytes = Bytes(u64::MAX);

/// A row of the paper's Table 2: L, o, g in units of 10 ns, G in ps a byte.
const fn row(first: u64, [latency, overhead, gap]: [u64; 3], gap_per_byte: u64) -> Protocol {
    let scale = 10_000;
    Protocol {
        first: Bytes(first),
        parameters: LogGops {
            latency: Picos(latency * scale),
            overhead: Picos(overhead * scale),
            gap: Picos(gap * scale),
            gap_per_byte: PerByte(gap_per_byte << 16),
            overhead_per_byte: PerByte::ZERO,
            eager_limit: ALWAYS_EAGER,
        },
    }
}

/// A parameter set with `LogGOPSim`'s eager limit: L, o, g in ns, G and O in ps per byte.
const fn nanos([latency, overhead, gap]: [u64; 3], [gap_per_byte, per_byte]: [u64; 2]) -> Protocol {
    Protocol {
        first: Bytes(1),
        parameters: LogGops {
            latency: Picos(latency * 1_000),
            overhead: Picos(overhead * 1_000),
            gap: Picos(gap * 1_000),
            gap_per_byte: PerByte(gap_per_byte << 16),
            overhead_per_byte: PerByte(per_byte << 16),
            eager_limit: Bytes(65_535),
        },
    }
}

static PRESETS: [Preset; 13] = [
    Preset {
        name: "loggopsim",
        source: "the defaults of LogGOPSim",
        protocols: &[nanos([2_500, 1_500, 1_000], [6_000, 0])],
        ends: None,
    },
    Preset {
        name: "mpich2-tcp",
        source: PAPER,
        protocols: &[Protocol {
            parameters: LogGops {
                gap: Picos(915_000),
                ..row(1, [4_574, 346, 0], 8_490).parameters
            },
            ..row(1, [4_574, 346, 0], 8_490)
        }],
        ends: None,
    },
    Preset {
        name: "nmpi-sci",
        source: PAPER,
        protocols: &[row(1, [548, 610, 778], 4_500), row(12_289, [548, 610, 1_334], 3_700)],
        ends: None,
    },
    Preset {
        name: "ompi-ib-sdr",
        source: PAPER,
        protocols: &[row(1, [596, 472, 514], 730), row(12_289, [596, 472, 2_139], 1_030)],
        ends: None,
    },
    Preset {
        name: "ompi-10g",
        source: PAPER,
        protocols: &[row(1, [1_097, 505, 500], 2_300), row(12_289, [1_097, 505, 4_200], 1_010)],
        ends: None,
    },
    Preset {
        name: "ompi-ib-ddr",
        source: PAPER,
        protocols: &[row(1, [250, 149, 108], 670), row(12_289, [250, 149, 1_190], 580)],
        ends: None,
    },
    Preset {
        name: "ompi-gm",
        source: PAPER,
        protocols: &[row(1, [1_053, 127, 944], 9_200), row(32_769, [1_053, 127, 5_201], 4_200)],
        ends: None,
    },
    Preset {
        name: "ompi-mx",
        source: PAPER,
        protocols: &[row(1, [298, 148, 200], 810), row(32_769, [298, 148, 3_310], 1_090)],
        ends: None,
    },
    Preset {
        name: "odin",
        source: "Odin (InfiniBand), talk on LogGOPSim, LSAP '10",
        protocols: &[nanos([5_300, 2_300, 2_000], [2_500, 1_000])],
        ends: None,
    },
    Preset {
        name: "bigred",
        source: "Big Red (Myrinet), talk on LogGOPSim, LSAP '10",
        protocols: &[nanos([2_900, 2_400, 1_700], [5_000, 2_000])],
        ends: None,
    },
    Preset {
        name: "paragon",
        source: "Intel Paragon, short messages, LogP Performance Assessment, 3.3",
        protocols: &[nanos([6_300, 1_800, 7_600], [0, 0])],
        ends: Some([Picos(1_400_000), Picos(2_200_000)]),
    },
    Preset {
        name: "meiko",
        source: "Meiko CS-2, short messages, LogP Performance Assessment, 3.3",
        protocols: &[nanos([7_500, 1_650, 13_600], [0, 0])],
        ends: Some([Picos(1_700_000), Picos(1_600_000)]),
    },
    Preset {
        name: "myrinet",
        source: "SparcStation 20s with Myrinet, short messages, LogP Performance Assessment, 3.3",
        protocols: &[nanos([11_100, 2_300, 12_400], [0, 0])],
        ends: Some([Picos(2_000_000), Picos(2_600_000)]),
    },
];

impl Preset {
    /// All presets, in the order of the help text.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        &PRESETS
    }

    /// Parameters for messages of `size` bytes.
    #[must_use]
    pub fn at(&self, size: Bytes) -> Option<&'static LogGops> {
        let protocol = self.protocols.iter().rev().find(|protocol| protocol.first <= size);
        protocol.or(self.protocols.first()).map(|protocol| &protocol.parameters)
    }
}

/// No preset has this name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct UnknownPreset;

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such preset; there are")?;
        PRESETS.iter().try_for_each(|preset| write!(f, " {}", preset.name))
    }
}

impl core::error::Error for UnknownPreset {}

impl FromStr for Preset {
    type Err = UnknownPreset;

    /// Finds a preset by its name.
    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        PRESETS.iter().find(|preset| preset.name == name).copied().ok_or(UnknownPreset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name_and_begins_at_one_byte() {
        for preset in Preset::all() {
            assert_eq!(preset.name.parse::<Preset>(), Ok(*preset));
            assert_eq!(preset.protocols[0].first, Bytes(1));
            assert!(preset.protocols.is_sorted_by_key(|protocol| protocol.first));
        }
        assert_eq!("none".parse::<Preset>(), Err(UnknownPreset));
    }

    #[test]
    fn overheads_apart_have_the_protocols_overhead_as_their_mean() {
        for preset in Preset::all() {
            let Some([send, receive]) = preset.ends else { continue };
            let mean = Picos(send.0.midpoint(receive.0));
            assert!(preset.protocols.iter().all(|one| one.parameters.overhead == mean));
        }
    }

    #[test]
    fn the_protocol_changes_at_its_first_size() {
        let infiniband: Preset = "ompi-ib-sdr".parse().unwrap();
        let gap = |size| infiniband.at(Bytes(size)).unwrap().gap;
        assert_eq!(gap(0), Picos(5_140_000));
        assert_eq!(gap(12_288), Picos(5_140_000));
        assert_eq!(gap(12_289), Picos(21_390_000));
        let ethernet: Preset = "mpich2-tcp".parse().unwrap();
        assert_eq!(ethernet.at(Bytes(8)).unwrap().gap, Picos(915_000));
        assert_eq!(ethernet.at(Bytes(8)).unwrap().latency, Picos(45_740_000));
        assert_eq!(ethernet.at(Bytes(8)).unwrap().gap_per_byte.times(Bytes(1)), Ok(Picos(8_490)));
    }
}
