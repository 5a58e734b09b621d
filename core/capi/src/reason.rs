//! Reasons of failures, finer than statuses.

use core::ffi::{CStr, c_char};

/// Reason of a failure; `loggap_reason_text` explains it. The numbers are the
/// same in all versions of the interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Reason {
    /// No reason besides the status.
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
    /// `loggap_link.poll_receive` returned a length beyond the capacity.
    PollLength = 8,
    /// The link's messages are smaller than a control frame.
    SmallMessages = 9,
    /// A struct has different sizes in the header and in the library.
    StructSize = 10,
    /// The frame ends here.
    FrameEnds = 11,
    /// Not the magic bytes of a frame.
    FrameMagic = 12,
    /// The body is longer than a frame.
    FrameBody = 13,
    /// The checksum does not match.
    Checksum = 14,
    /// The kind of frame is unknown.
    FrameKind = 15,
    /// The version is unknown.
    Version = 16,
    /// A field is out of its range.
    FieldRange = 17,
    /// The Ethernet frame ends here.
    EthernetEnds = 18,
    /// The Ethernet frame is of another protocol.
    EthernetForeign = 19,
    /// More bytes in a message than the responder allows.
    AllowedMessage = 20,
    /// More messages in a round than the responder allows.
    AllowedMessages = 21,
    /// More rounds in a batch than the responder allows.
    AllowedRounds = 22,
    /// A longer pause than the responder allows.
    AllowedPause = 23,
    /// A longer silence than the responder allows.
    AllowedSilence = 24,
    /// A longer session than the responder allows.
    AllowedSession = 25,
    /// Initiator and responder speak different versions.
    VersionsDiffer = 26,
    /// The responder is busy, and other initiators wait.
    Busy = 27,
    /// The responder got a control frame of this kind out of order.
    RefusedOrder = 28,
    /// The responder received a message that is not a frame where a frame is expected.
    RefusedFrame = 29,
    /// A control frame of this kind is out of order.
    FrameOrder = 30,
    /// A message arrived that is not the reply.
    NotTheReply = 31,
    /// No size has both round trips and bursts: allow more time or messages.
    NoSizes = 32,
    /// The profile holds an invalid value.
    ProfileValue = 33,
    /// The profile ends here.
    ProfileEnds = 34,
    /// The profile does not begin with the letters LGPR.
    ProfileMagic = 35,
    /// More ranges or changes than LOGGAP_MAX_RANGES.
    ProfileRanges = 36,
    /// A number is too large, or not in its shortest form.
    ProfileNumber = 37,
    /// Bytes follow the end of the profile.
    ProfileTrailing = 38,
    /// A value is not a finite time within 53 days.
    PointValue = 39,
    /// A standard error is not a finite, non-negative time within 53 days.
    PointSigma = 40,
    /// The size of a point is not larger than the one before.
    PointOrder = 41,
    /// A line needs values at three or more message sizes.
    FewPoints = 42,
    /// The text does not have `name` here.
    TextExpected = 43,
    /// A number is too large.
    TextNumber = 44,
    /// `num_ranks` is 0, missing, or given twice.
    TextRanks = 45,
    /// A rank has no block, two blocks, or a number beyond `num_ranks`.
    TextRank = 46,
    /// A label is defined twice, or is a keyword.
    TextLabel = 47,
    /// A label is not defined above this line in this rank.
    TextUndefined = 48,
    /// A comment or a rank's block does not end.
    TextUnterminated = 49,
    /// A rank has more operations than 32 bits can count.
    TextTooLarge = 50,
    /// The file is cut off.
    FileEnds = 51,
    /// The first eight bytes are not those of a binary schedule.
    FileMagic = 52,
    /// The file was consumed by a simulation with --save-mem.
    FileConsumed = 53,
    /// The schedule has no ranks.
    FileRanks = 54,
    /// A field contradicts the others.
    FileField = 55,
    /// The sizes at the head of a rank's block do not add up.
    FileBlock = 56,
    /// An operation has an unknown type, unit or peer.
    FileOperation = 57,
    /// A calculation is longer than 213 days.
    FileDuration = 58,
    /// A list or index reaches beyond its rank.
    FileList = 59,
    /// 2^32 - 1 or more operations, 2^31 dependencies, or a tag above 2^32 - 2.
    ScheduleLarge = 60,
    /// Ranks are missing or out of order.
    ScheduleOrder = 61,
    /// A dependency names an operation that the rank does not have.
    ScheduleDependency = 62,
    /// A message goes to, or comes from, a rank that does not exist.
    SchedulePeer = 63,
    /// An operation is on a processor or interface that was not surveyed.
    ScheduleUnit = 64,
    /// No receive takes the message of this operation.
    Unreceived = 65,
    /// No message comes for this receive.
    Waiting = 66,
    /// This operation never becomes ready.
    NeverReady = 67,
    /// More than 2^32 operations become ready at one instant.
    AtOnce = 68,
    /// Protocols do not ascend by size, or there are none, or more than 16.
    Protocols = 69,
    /// The root is not one of the ranks.
    PatternRoot = 70,
    /// Ranks, groups, repetitions, ways, skew or poll interval are 0.
    PatternZero = 71,
    /// The skew leaves less than one byte.
    PatternSkew = 72,
    /// 2^32 or more ranks, or operations on one rank.
    PatternLarge = 73,
    /// This algorithm needs a power of two of ranks.
    PatternPower = 74,
    /// The collective has no such algorithm.
    PatternAlgorithm = 75,
    /// A time in nanoseconds was expected, such as 18720.79.
    NoiseNumber = 76,
    /// Another word follows start and duration on the line.
    NoiseLine = 77,
    /// A time is beyond 213 days.
    NoiseTime = 78,
    /// The trace has no detour.
    NoiseEmpty = 79,
    /// A detour starts before the previous one ends.
    NoiseOverlap = 80,
    /// A detour ends after the end of the trace.
    NoiseEnd = 81,
}

impl Reason {
    const ALL: [Self; 82] = [
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
        Self::StructSize,
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
        Self::ProfileValue,
        Self::ProfileEnds,
        Self::ProfileMagic,
        Self::ProfileRanges,
        Self::ProfileNumber,
        Self::ProfileTrailing,
        Self::PointValue,
        Self::PointSigma,
        Self::PointOrder,
        Self::FewPoints,
        Self::TextExpected,
        Self::TextNumber,
        Self::TextRanks,
        Self::TextRank,
        Self::TextLabel,
        Self::TextUndefined,
        Self::TextUnterminated,
        Self::TextTooLarge,
        Self::FileEnds,
        Self::FileMagic,
        Self::FileConsumed,
        Self::FileRanks,
        Self::FileField,
        Self::FileBlock,
        Self::FileOperation,
        Self::FileDuration,
        Self::FileList,
        Self::ScheduleLarge,
        Self::ScheduleOrder,
        Self::ScheduleDependency,
        Self::SchedulePeer,
        Self::ScheduleUnit,
        Self::Unreceived,
        Self::Waiting,
        Self::NeverReady,
        Self::AtOnce,
        Self::Protocols,
        Self::PatternRoot,
        Self::PatternZero,
        Self::PatternSkew,
        Self::PatternLarge,
        Self::PatternPower,
        Self::PatternAlgorithm,
        Self::NoiseNumber,
        Self::NoiseLine,
        Self::NoiseTime,
        Self::NoiseEmpty,
        Self::NoiseOverlap,
        Self::NoiseEnd,
    ];

    #[allow(clippy::too_many_lines, reason = "one line a reason")]
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
            Self::StructSize => c"a struct has another size in the header than in the library",
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
            Self::ProfileValue => c"the profile holds what none can hold",
            Self::ProfileEnds => c"the profile ends here",
            Self::ProfileMagic => c"a profile begins with the letters LGPR",
            Self::ProfileRanges => c"more ranges or changes than LOGGAP_MAX_RANGES",
            Self::ProfileNumber => c"a number too large, or not in its shortest form",
            Self::ProfileTrailing => c"more bytes than the profile has",
            Self::PointValue => c"a value is not a finite time within 53 days",
            Self::PointSigma => {
                c"a standard error is not a finite, non-negative time within 53 days"
            }
            Self::PointOrder => c"the size of a point is not larger than the one before",
            Self::FewPoints => c"a line needs values at three message sizes",
            Self::TextExpected => c"the text has something else than `name` here",
            Self::TextNumber => c"a number is too large",
            Self::TextRanks => c"num_ranks is 0, missing, or given twice",
            Self::TextRank => c"a rank has no block, two blocks, or a number beyond num_ranks",
            Self::TextLabel => c"a label is defined twice, or is a word of the grammar",
            Self::TextUndefined => c"a label is not defined above this line in this rank",
            Self::TextUnterminated => c"a comment or a rank's block does not end",
            Self::TextTooLarge => c"more operations in a rank than 32 bits count",
            Self::FileEnds => c"the file is cut off",
            Self::FileMagic => c"the first eight bytes are those of no binary schedule",
            Self::FileConsumed => c"the file was used up by a simulation with --save-mem",
            Self::FileRanks => c"a schedule of no ranks",
            Self::FileField => c"a field differs from what the others imply",
            Self::FileBlock => c"the sizes in the head of a rank's block do not add up",
            Self::FileOperation => c"an operation of unknown type, unit or peer",
            Self::FileDuration => c"a calculation is longer than 213 days",
            Self::FileList => c"a list or index reaches beyond its rank",
            Self::ScheduleLarge => {
                c"2^32 - 1 or more operations, 2^31 dependencies, or a tag above 2^32 - 2"
            }
            Self::ScheduleOrder => c"ranks are missing or out of order",
            Self::ScheduleDependency => {
                c"a dependency names an operation that the rank does not have"
            }
            Self::SchedulePeer => c"a message goes to, or comes from, a rank that does not exist",
            Self::ScheduleUnit => {
                c"an operation is on a processor or interface that was not surveyed"
            }
            Self::Unreceived => c"no receive takes the message of this operation",
            Self::Waiting => c"no message comes for this receive",
            Self::NeverReady => c"this operation never becomes ready",
            Self::AtOnce => c"more than 2^32 operations become ready at one instant",
            Self::Protocols => {
                c"protocols do not ascend by size, or there are none or more than 16"
            }
            Self::PatternRoot => c"the root is not one of the ranks",
            Self::PatternZero => c"ranks, groups, repetitions, ways, skew or poll interval are 0",
            Self::PatternSkew => c"the skew leaves less than one byte",
            Self::PatternLarge => c"2^32 or more ranks, or operations on one rank",
            Self::PatternPower => c"this algorithm needs a power of two of ranks",
            Self::PatternAlgorithm => c"the collective has no such algorithm",
            Self::NoiseNumber => c"a time in nanoseconds was expected, such as 18720.79",
            Self::NoiseLine => c"the line goes on after start and duration",
            Self::NoiseTime => c"a time is past 213 days",
            Self::NoiseEmpty => c"the trace has no detour",
            Self::NoiseOverlap => c"a detour starts before the one before it is over",
            Self::NoiseEnd => c"a detour reaches past the end of the trace",
        }
    }
}

/// One line that explains `reason`, terminated by a zero byte; empty for 0 and
/// for unknown numbers. Never null, valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_reason_text(reason: u32) -> *const c_char {
    let found = Reason::ALL.into_iter().find(|known| *known as u32 == reason);
    found.map_or(c"", Reason::text).as_ptr()
}
