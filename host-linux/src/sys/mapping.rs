//! Memory shared with another process.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

/// Anonymous memory of a fixed length, identified by a file descriptor.
///
/// It is sealed against any change of its length, so that no peer can remove pages under a mapping
/// (which would end this process with SIGBUS).
#[derive(Debug)]
pub(crate) struct SharedMemory {
    descriptor: OwnedFd,
    length: NonZeroUsize,
}

const FIXED_LENGTH: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW);

impl SharedMemory {
    /// Creates zeroed memory.
    pub(crate) fn create(length: NonZeroUsize) -> io::Result<Self> {
        let descriptor =
            memfd_create(c"loggap", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        let bytes = i64::try_from(length.get()).map_err(|_| io::ErrorKind::InvalidInput)?;
        ftruncate(&descriptor, bytes)?;
        let seals = FIXED_LENGTH.union(SealFlag::F_SEAL_SEAL);
        fcntl(&descriptor, FcntlArg::F_ADD_SEALS(seals))?;
        Ok(Self { descriptor, length })
    }

    /// Accepts memory that a peer created, if it has exactly `length` bytes and is sealed against
    /// changes of its length.
    pub(crate) fn adopt(descriptor: OwnedFd, length: NonZeroUsize) -> io::Result<Self> {
        let seals = SealFlag::from_bits_retain(fcntl(&descriptor, FcntlArg::F_GET_SEALS)?);
        let bytes = fstat(&descriptor)?.st_size;
        if !seals.contains(FIXED_LENGTH) || usize::try_from(bytes) != Ok(length.get()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the peer's memory is not sealed or not of the announced length",
            ));
        }
        Ok(Self { descriptor, length })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Maps the whole memory with every page present, so that no page fault occurs during a
    /// measurement.
    ///
    /// Other processes may write the mapping at any time: it is only accessed through raw pointers
    /// and atomics, never through a reference to plain bytes.
    pub(crate) fn map(&self) -> io::Result<MmapRaw> {
        MmapOptions::new().len(self.length.get()).populate().map_raw(&self.descriptor)
    }
}
