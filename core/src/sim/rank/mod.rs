//! What happens on a rank at an event, for all programs and drivers.
//!
//! An event may begin once its clocks are free ([`Class::needs`], [`Clocks::begin`]), and not before
//! its operation was released, its receive is posted or its message has arrived. Then:
//!
//! - [`rules`]: what an event does, for stored programs; `implicit::step` for computed ones.
//! - [`charge`], [`price`]: how long that takes, with noise.
//! - [`dependencies`]: what it releases.
//! - [`matching`]: which receive takes which message.

pub(in crate::sim) mod charge;
pub(in crate::sim) mod dependencies;
pub(in crate::sim) mod matching;
pub(in crate::sim) mod price;
pub(in crate::sim) mod rules;

use crate::sim::hooks::Turn;
use crate::sim::parameters::Receive;
use crate::sim::record::Kind;

/// Processor and interface of an operation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::sim) struct Units {
    pub(in crate::sim) cpu: u16,
    pub(in crate::sim) nic: u16,
}

impl Units {
    /// Both in 16 bits, 8 for each; `u16::MAX` if they do not fit, 0 only for the first of both.
    pub(in crate::sim) const fn packed(self) -> u16 {
        let ([cpu, cpu_high], [nic, nic_high]) = (self.cpu.to_le_bytes(), self.nic.to_le_bytes());
        if cpu_high | nic_high == 0 { u16::from_le_bytes([cpu, nic]) } else { u16::MAX }
    }

    /// Inverse of [`Units::packed`], for units that fitted.
    pub(in crate::sim) const fn of_packed(packed: u16) -> Self {
        let [cpu, nic] = packed.to_le_bytes();
        Self { cpu: cpu as u16, nic: nic as u16 }
    }

    /// Both in 32 bits.
    pub(in crate::sim) const fn wide(self) -> u32 {
        self.cpu as u32 | (self.nic as u32) << 16
    }

    /// Inverse of [`Units::wide`].
    pub(in crate::sim) const fn of_wide(wide: u32) -> Self {
        let [a, b, c, d] = wide.to_le_bytes();
        Self { cpu: u16::from_le_bytes([a, b]), nic: u16::from_le_bytes([c, d]) }
    }
}

/// Clock: the time at which a processor, or the sending or receiving side of an interface, is free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim) enum Clock {
    Cpu(u16),
    Out(u16),
    Into(u16),
}

/// Clocks of a rank's first processor and interface, ps.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(in crate::sim) struct Clocks {
    pub(in crate::sim) cpu: u64,
    pub(in crate::sim) out: u64,
    pub(in crate::sim) into: u64,
}

impl Clocks {
    #[inline]
    pub(in crate::sim) const fn of(&self, clock: Clock) -> u64 {
        match clock {
            Clock::Cpu(_) => self.cpu,
            Clock::Out(_) => self.out,
            Clock::Into(_) => self.into,
        }
    }

    #[inline]
    pub(in crate::sim) const fn of_mut(&mut self, clock: Clock) -> &mut u64 {
        match clock {
            Clock::Cpu(_) => &mut self.cpu,
            Clock::Out(_) => &mut self.out,
            Clock::Into(_) => &mut self.into,
        }
    }

    /// Time at which an event of `class` may begin, as far as processor and interface are
    /// concerned: receives are posted at a time of their own.
    #[inline]
    pub(in crate::sim) fn begin(&self, class: Class, receive: Receive) -> u64 {
        match class {
            Class::Receives => 0,
            _ => {
                let [one, other] = class.needs(Units::default(), receive);
                self.of(one).max(self.of(other))
            }
        }
    }
}

/// Clocks that must be free for an event; twice the same if it needs one.
pub(in crate::sim) type Need = [Clock; 2];

/// Class of a waiting record on its rank. With one processor, one interface and
/// [`Receive::Hold`](super::parameters::Receive::Hold) each class is a circular list in stamp
/// order, known by its last record; otherwise see [`super::pending`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim) enum Class {
    /// Released sends, and CTS and data messages that are ready to leave.
    Sends = 0,
    /// Released receives that are not posted yet.
    Receives = 1,
    /// Released calculations.
    Calcs = 2,
    /// Messages that have arrived and wait for an interface.
    Arrived = 3,
    /// Messages that an interface has taken and that wait for a processor.
    Taken = 4,
    /// Messages in the mail of this window, which are in no list.
    Mailed = 5,
}

impl Class {
    /// Class of a released operation.
    pub(in crate::sim) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Send => Self::Sends,
            Kind::Receive => Self::Receives,
            Kind::Calc => Self::Calcs,
        }
    }

    /// Clocks that must be free for an event of this class on these units; a receive needs none.
    #[inline]
    pub(in crate::sim) const fn needs(self, Units { cpu, nic }: Units, receive: Receive) -> Need {
        match (self, receive) {
            (Self::Sends, _) => [Clock::Cpu(cpu), Clock::Out(nic)],
            (Self::Arrived | Self::Mailed, Receive::Hold) => [Clock::Cpu(cpu), Clock::Into(nic)],
            (Self::Arrived | Self::Mailed, Receive::Overlap) => [Clock::Into(nic); 2],
            (Self::Receives | Self::Calcs | Self::Taken, _) => [Clock::Cpu(cpu); 2],
        }
    }

    pub(in crate::sim) const fn turn(self) -> Turn {
        match self {
            Self::Calcs => Turn::Calculation,
            Self::Sends => Turn::Send,
            Self::Receives => Turn::Receive,
            Self::Arrived | Self::Taken | Self::Mailed => Turn::Message,
        }
    }
}
