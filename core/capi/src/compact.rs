//! Compact encoding of a profile.

use loggap_core::model::compact::{self, DecodeError, DecodeErrorKind, NoRoom};

use crate::boundary::{Place, bytes_mut, input, slice};
use crate::profile::{LOGGAP_MAX_RANGES, Profile};
use crate::reason::Reason;
use crate::status::{Detail, Status, finish};

/// Upper bound of an encoded profile, in bytes. A profile of one range takes about 110.
pub const LOGGAP_PROFILE_BYTES: usize = 3_952;
const _: () = assert!(
    compact::most_bytes(LOGGAP_MAX_RANGES) <= LOGGAP_PROFILE_BYTES,
    "the constant is small"
);

/// Writes `profile` in its compact, versioned and checksummed encoding to
/// `bytes`, and its length to `length`. The encoding is the same on all
/// machines; the tables of docs/formats.md describe it.
///
/// Errors: `LOGGAP_STATUS_FULL` (`LOGGAP_PROFILE_BYTES` always suffice;
/// `needed` is an upper bound for this profile), `LOGGAP_STATUS_OPTION` for an
/// invalid profile, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_profile_encode(
    profile: *const Profile,
    bytes: *mut u8,
    capacity: usize,
    length: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let encode = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(length) }?;
        // SAFETY: by the contract of this function.
        let profile = unsafe { input(profile) }?;
        let (ranges, changes) = (profile.ranges()?, profile.changes()?);
        let most = compact::most_bytes(ranges.len().max(changes.len()));
        // SAFETY: by the contract of this function.
        let bytes = unsafe { bytes_mut(bytes, capacity.min(most)) }?;
        let written = compact::encode_parts(
            ranges.iter().map(|range| range.as_core().map_err(Refused::Profile)),
            changes.iter().map(|change| change.as_core().map_err(Refused::Profile)),
            bytes,
        );
        place.put(written.map_err(|refused| match refused {
            Refused::Profile(detail) => detail,
            Refused::NoRoom => Detail::of(Status::Full).needed(most as u64).found(capacity as u64),
        })?);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(encode(), detail) }
}

/// Error of an encoding.
enum Refused {
    NoRoom,
    Profile(Detail),
}

impl From<NoRoom> for Refused {
    fn from(NoRoom: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Decodes a profile that fills `length` bytes.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` with the offset in `at` and the reason;
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`. On error `profile` has no
/// ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_profile_decode(
    bytes: *const u8,
    length: usize,
    profile: *mut Profile,
    detail: *mut Detail,
) -> i32 {
    let decode = || {
        // SAFETY: by the contract of this function.
        let place = unsafe { Place::new(profile) }?;
        // SAFETY: by the contract of this function.
        let bytes = unsafe { slice(bytes, length) }?;
        // SAFETY: nothing else accesses it during this call.
        let profile = unsafe { place.clear() }.ok_or(Detail::of(Status::Null))?;
        let decoded = compact::decode_parts(bytes, LOGGAP_MAX_RANGES, |part| profile.add(part));
        decoded.map_err(|error| {
            profile.empty();
            refused(error)
        })
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(decode(), detail) }
}

fn refused(error: DecodeError) -> Detail {
    let because = |reason| Detail::because(Status::Malformed, reason).at(error.at as u64);
    match error.kind {
        DecodeErrorKind::Truncated => because(Reason::ProfileEnds),
        DecodeErrorKind::Magic => because(Reason::ProfileMagic),
        DecodeErrorKind::Version(version) => because(Reason::Version).found(version.into()),
        DecodeErrorKind::Checksum { found, computed } => {
            because(Reason::Checksum).needed(computed.into()).found(found.into())
        }
        DecodeErrorKind::TooMany(count) => because(Reason::ProfileRanges).found(count.into()),
        DecodeErrorKind::Number => because(Reason::ProfileNumber),
        DecodeErrorKind::Field(name) => because(Reason::FieldRange).named(name),
        DecodeErrorKind::Trailing => because(Reason::ProfileTrailing),
    }
}
