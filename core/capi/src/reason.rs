//! Why a call failed, finer than its status.

use core::ffi::{CStr, c_char};

/// Why a call failed; `loggap_reason_text` has the words. Numbers do not
/// change between versions of the interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Reason {
    /// Nothing beyond what the status says.
    None = 0,
    /// A length is beyond the address space.
    AddressSpace = 1,
    /// `loggap_clock.now` is null.
    NowNull = 2,
    /// `loggap_clock.picos_per_tick_q32` is 0.
    TickZero = 3,
    /// `loggap_link.send` is null.
    SendNull = 4,
    /// `loggap_link.poll_receive` is null.
    PollNull = 5,
    /// `loggap_link.discard` is null on a link that loses messages.
    DiscardNull = 6,
    /// `loggap_link.reliable` is neither 0 nor 1.
    ReliableValue = 7,
    /// `loggap_link.poll_receive` gave a length beyond the capacity.
    PollLength = 8,
    /// The link's messages are smaller than a control frame.
    SmallMessages = 9,
    /// `loggap_sizes` has another size.
    SizesSize = 10,
    /// `loggap_detail` has another size.
    DetailSize = 11,
    /// `loggap_clock` has another size.
    ClockSize = 12,
    /// `loggap_link` has another size.
    LinkSize = 13,
    /// `loggap_bounds` has another size.
    BoundsSize = 14,
    /// `loggap_frame` has another size.
    FrameSize = 15,
    /// `loggap_served` has another size.
    ServedSize = 16,
    /// `loggap_assess_options` has another size.
    OptionsSize = 17,
    /// `loggap_assess_report` has another size.
    ReportSize = 18,
    /// `loggap_profile` has another size.
    ProfileSize = 19,
    /// The frame ends here.
    FrameEnds = 20,
    /// Not the magic bytes of a frame.
    FrameMagic = 21,
    /// The body is longer than a frame.
    FrameBody = 22,
    /// The checksum is another one.
    Checksum = 23,
    /// The kind of frame is unknown.
    FrameKind = 24,
    /// The version is unknown.
    Version = 25,
    /// A field is out of its range.
    FieldRange = 26,
    /// The Ethernet frame ends here.
    EthernetEnds = 27,
    /// The Ethernet frame is of another protocol.
    EthernetForeign = 28,
    /// More bytes in a message than the responder allows.
    AllowedMessage = 29,
    /// More messages in a round than the responder allows.
    AllowedMessages = 30,
    /// More rounds in a batch than the responder allows.
    AllowedRounds = 31,
    /// A longer pause than the responder allows.
    AllowedPause = 32,
    /// A longer silence than the responder allows.
    AllowedSilence = 33,
    /// A longer session than the responder allows.
    AllowedSession = 34,
    /// Initiator and responder speak different versions.
    VersionsDiffer = 35,
    /// The responder is taken, and others wait.
    Busy = 36,
    /// The responder got a control frame of this kind out of order.
    RefusedOrder = 37,
    /// The responder got no frame where one belongs.
    RefusedFrame = 38,
    /// A control frame of this kind is out of order.
    FrameOrder = 39,
    /// A message came that is not the reply.
    NotTheReply = 40,
    /// No size has both round trips and bursts: allow more time or messages.
    NoSizes = 41,
    /// Rounds wait for the timer of delayed acknowledgements, not the link.
    DelayedAcknowledgement = 42,
    /// The profile holds what none can hold.
    ProfileValue = 43,
    /// The profile ends here.
    ProfileEnds = 44,
    /// A profile begins with the letters LGPR.
    ProfileMagic = 45,
    /// More ranges or changes than LOGGAP_MAX_RANGES.
    ProfileRanges = 46,
    /// A number too large, or not in its shortest form.
    ProfileNumber = 47,
    /// More bytes than the profile has.
    ProfileTrailing = 48,
}

impl Reason {
    const ALL: [Self; 49] = [
        Self::None,
        Self::AddressSpace,
        Self::NowNull,
        Self::TickZero,
        Self::SendNull,
        Self::PollNull,
        Self::DiscardNull,
        Self::ReliableValue,
        Self::PollLength,
        Self::SmallMessages,
        Self::SizesSize,
        Self::DetailSize,
        Self::ClockSize,
        Self::LinkSize,
        Self::BoundsSize,
        Self::FrameSize,
        Self::ServedSize,
        Self::OptionsSize,
        Self::ReportSize,
        Self::ProfileSize,
        Self::FrameEnds,
        Self::FrameMagic,
        Self::FrameBody,
        Self::Checksum,
        Self::FrameKind,
        Self::Version,
        Self::FieldRange,
        Self::EthernetEnds,
        Self::EthernetForeign,
        Self::AllowedMessage,
        Self::AllowedMessages,
        Self::AllowedRounds,
        Self::AllowedPause,
        Self::AllowedSilence,
        Self::AllowedSession,
        Self::VersionsDiffer,
        Self::Busy,
        Self::RefusedOrder,
        Self::RefusedFrame,
        Self::FrameOrder,
        Self::NotTheReply,
        Self::NoSizes,
        Self::DelayedAcknowledgement,
        Self::ProfileValue,
        Self::ProfileEnds,
        Self::ProfileMagic,
        Self::ProfileRanges,
        Self::ProfileNumber,
        Self::ProfileTrailing,
    ];

    const fn text(self) -> &'static CStr {
        match self {
            Self::None => c"",
            Self::AddressSpace => c"a length is beyond the address space",
            Self::NowNull => c"loggap_clock.now is null",
            Self::TickZero => c"loggap_clock.picos_per_tick_q32 is 0",
            Self::SendNull => c"loggap_link.send is null",
            Self::PollNull => c"loggap_link.poll_receive is null",
            Self::DiscardNull => c"loggap_link.discard is null on a link that loses messages",
            Self::ReliableValue => c"loggap_link.reliable is neither 0 nor 1",
            Self::PollLength => c"loggap_link.poll_receive gave a length beyond the capacity",
            Self::SmallMessages => c"the link's messages are smaller than a control frame",
            Self::SizesSize => c"loggap_sizes has another size",
            Self::DetailSize => c"loggap_detail has another size",
            Self::ClockSize => c"loggap_clock has another size",
            Self::LinkSize => c"loggap_link has another size",
            Self::BoundsSize => c"loggap_bounds has another size",
            Self::FrameSize => c"loggap_frame has another size",
            Self::ServedSize => c"loggap_served has another size",
            Self::OptionsSize => c"loggap_assess_options has another size",
            Self::ReportSize => c"loggap_assess_report has another size",
            Self::ProfileSize => c"loggap_profile has another size",
            Self::FrameEnds => c"the frame ends here",
            Self::FrameMagic => c"not the magic bytes of a frame",
            Self::FrameBody => c"the body is longer than a frame",
            Self::Checksum => c"the checksum is another one",
            Self::FrameKind => c"the kind of frame is unknown",
            Self::Version => c"the version is unknown",
            Self::FieldRange => c"a field is out of its range",
            Self::EthernetEnds => c"the Ethernet frame ends here",
            Self::EthernetForeign => c"the Ethernet frame is of another protocol",
            Self::AllowedMessage => c"more bytes in a message than the responder allows",
            Self::AllowedMessages => c"more messages in a round than the responder allows",
            Self::AllowedRounds => c"more rounds in a batch than the responder allows",
            Self::AllowedPause => c"a longer pause than the responder allows",
            Self::AllowedSilence => c"a longer silence than the responder allows",
            Self::AllowedSession => c"a longer session than the responder allows",
            Self::VersionsDiffer => c"initiator and responder speak different versions",
            Self::Busy => c"the responder is taken, and others wait",
            Self::RefusedOrder => c"the responder got a control frame of this kind out of order",
            Self::RefusedFrame => c"the responder got no frame where one belongs",
            Self::FrameOrder => c"a control frame of this kind is out of order",
            Self::NotTheReply => c"a message came that is not the reply",
            Self::NoSizes => {
                c"no size has both round trips and bursts: allow more time or messages"
            }
            Self::DelayedAcknowledgement => {
                c"rounds wait for the timer of delayed acknowledgements, not the link"
            }
            Self::ProfileValue => c"the profile holds what none can hold",
            Self::ProfileEnds => c"the profile ends here",
            Self::ProfileMagic => c"a profile begins with the letters LGPR",
            Self::ProfileRanges => c"more ranges or changes than LOGGAP_MAX_RANGES",
            Self::ProfileNumber => c"a number too large, or not in its shortest form",
            Self::ProfileTrailing => c"more bytes than the profile has",
        }
    }
}

/// One line that says what `reason` means, ended by a zero byte; empty for 0
/// and for numbers that are none. Never null, valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_reason_text(reason: u32) -> *const c_char {
    let found = Reason::ALL.into_iter().find(|known| *known as u32 == reason);
    found.map_or(c"", Reason::text).as_ptr()
}
