//! Details of errors in schedules.

use loggap_core::goal::binary::{BinaryError, BinaryErrorKind, Field};
use loggap_core::goal::text::{Quantity, TextError, TextErrorKind, Wanted};
use loggap_core::sim::BuildError;

use crate::reason::Reason;
use crate::status::{Detail, Status};

const fn wanted_name(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::RankOrCount => "num_ranks or rank",
        Wanted::OpeningBrace => "{",
        Wanted::Statement => "a statement or }",
        Wanted::AfterLabel => ":, requires or irequires",
        Wanted::Operation => "send, recv or calc",
        Wanted::Label => "a label",
        Wanted::Number => "a number",
        Wanted::NumberOrAny => "a number or -1",
        Wanted::ByteUnit => "b",
        Wanted::To => "to",
        Wanted::From => "from",
        Wanted::TagCpuNicOrEnd => "tag, cpu, nic or the end of the line",
        Wanted::CpuNicOrEnd => "cpu, nic or the end of the line",
        Wanted::NicOrEnd => "nic or the end of the line",
        Wanted::CpuOrEnd => "cpu or the end of the line",
        Wanted::End => "the end of the line",
    }
}

const fn quantity_name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Ranks => "num_ranks",
        Quantity::Rank => "rank",
        Quantity::Size => "size",
        Quantity::Duration => "calc",
        Quantity::Peer => "peer",
        Quantity::Tag => "tag",
        Quantity::Cpu => "cpu",
        Quantity::Nic => "nic",
    }
}

pub(crate) fn text(error: TextError) -> Detail {
    let because = |reason| Detail::because(Status::Malformed, reason);
    let told = match error.kind {
        TextErrorKind::Expected { wanted, found } => because(Reason::TextExpected)
            .named(wanted_name(wanted))
            .found(found.and_then(|word| word.bytes().first().copied()).map_or(0, u64::from)),
        TextErrorKind::OtherDialect { .. } => {
            because(Reason::TextExpected).named(wanted_name(Wanted::Operation))
        }
        TextErrorKind::TooLarge { what, most } => {
            because(Reason::TextNumber).named(quantity_name(what)).needed(most)
        }
        TextErrorKind::NoRanks | TextErrorKind::CountTwice | TextErrorKind::CountMissing => {
            because(Reason::TextRanks)
        }
        TextErrorKind::DuplicateRank { rank, .. } => because(Reason::TextRank).on_rank(rank),
        TextErrorKind::RankOutOfRange { rank, ranks }
        | TextErrorKind::MissingRank { rank, ranks } => {
            because(Reason::TextRank).on_rank(rank).needed(ranks.into())
        }
        TextErrorKind::DuplicateLabel { .. } | TextErrorKind::ReservedLabel { .. } => {
            because(Reason::TextLabel)
        }
        TextErrorKind::UndefinedLabel { .. } => because(Reason::TextUndefined),
        TextErrorKind::UnterminatedComment => because(Reason::TextUnterminated),
        TextErrorKind::UnterminatedRank { rank } => because(Reason::TextUnterminated).on_rank(rank),
        TextErrorKind::TooManyOps => because(Reason::TextTooLarge),
        // Cannot happen: the memory was sized by the formula that the reader checks.
        TextErrorKind::LabelMemory { .. } | TextErrorKind::BlockMemory { .. } => {
            Detail::of(Status::Memory)
        }
        TextErrorKind::OtherText => because(Reason::None),
    };
    told.at(error.at as u64).line(error.line, error.column)
}

const fn field_name(field: Field) -> &'static str {
    match field {
        Field::BlockStart => "start of the rank's block",
        Field::FileLength => "file length",
        Field::HeaderLength => "header length",
        Field::Reserved => "reserved field",
        Field::RootCount => "number of roots",
        Field::Root => "root",
        Field::Dependencies => "dependencies of the operation",
        Field::Successors => "number of successors",
        Field::Ops => "number of operations",
        Field::Edges => "number of dependencies",
        Field::Version => "format version",
        Field::Wide => "mark of a rank with wide numbers",
    }
}

pub(crate) fn binary(error: BinaryError) -> Detail {
    let because = |reason| Detail::because(Status::Malformed, reason);
    let told = match error.kind {
        BinaryErrorKind::Truncated { needed } => because(Reason::FileEnds).needed(needed),
        BinaryErrorKind::Magic { found } => because(Reason::FileMagic).found(found),
        BinaryErrorKind::Consumed => because(Reason::FileConsumed),
        BinaryErrorKind::Version { found } => because(Reason::Version).found(found.into()),
        BinaryErrorKind::NoRanks => because(Reason::FileRanks),
        BinaryErrorKind::Field { field, expected, found } => {
            because(Reason::FileField).named(field_name(field)).needed(expected).found(found)
        }
        BinaryErrorKind::BlockSize { bytes, ops } => {
            because(Reason::FileBlock).needed(bytes).found(ops)
        }
        BinaryErrorKind::OpType { found } => because(Reason::FileOperation).found(found.into()),
        BinaryErrorKind::Unit { highest, found } => {
            because(Reason::FileOperation).needed(highest.into()).found(found.into())
        }
        BinaryErrorKind::SendToAny => because(Reason::FileOperation).named("peer"),
        BinaryErrorKind::Duration { found } => because(Reason::FileDuration).found(found),
        BinaryErrorKind::List { first, available, .. } => {
            because(Reason::FileList).needed(available.into()).found(first.into())
        }
        BinaryErrorKind::OpIndex { found, ops } => {
            because(Reason::FileList).needed(ops.into()).found(found.into())
        }
        // Cannot happen: the memory was sized by the formula that the reader checks.
        BinaryErrorKind::Memory { .. } => Detail::of(Status::Memory),
    };
    told.at(error.at).on_rank(error.rank.unwrap_or(u32::MAX))
}

/// Detail of a schedule that cannot be simulated.
pub(crate) fn schedule(error: BuildError) -> Detail {
    let because = |reason| Detail::because(Status::Schedule, reason);
    match error {
        BuildError::TooManyOps => because(Reason::ScheduleLarge),
        // Cannot happen: the memory was sized by the formula that the builder checks.
        BuildError::Full => Detail::of(Status::Memory),
        BuildError::Order { rank } => because(Reason::ScheduleOrder).on_rank(rank),
        BuildError::UnknownOp { rank, op } => because(Reason::ScheduleDependency).on(rank, op),
        BuildError::Peer { rank, op, peer } => {
            because(Reason::SchedulePeer).on(rank, op).found(peer.into())
        }
        // Only the windows driver, which is not used here, returns the next two.
        BuildError::Tag { rank, op } => because(Reason::ScheduleLarge).on(rank, op),
        BuildError::Unsuitable(_) => Detail::of(Status::Schedule),
        BuildError::Unit { rank, op } => because(Reason::ScheduleUnit).on(rank, op),
    }
}
