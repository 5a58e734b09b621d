//! Send and receive buffers of one operation.

use loggap::machine::buffer::{Alignment, Buffer, BufferRole};
use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};

use super::calls::Call;
use super::operation::{Cell, Collective, Extent};

/// Send and receive buffer for one type of elements.
#[derive(Debug)]
pub(super) struct Pair<T> {
    pub(super) send: Buffer<T>,
    pub(super) receive: Buffer<T>,
}

impl<T: Copy + Default> Pair<T> {
    fn of(extent: Extent, alignment: Alignment) -> Option<Self> {
        let zeroed = |count: u64, role| {
            Buffer::new(usize::try_from(count).ok()?, alignment, role, T::default())
        };
        let send = zeroed(extent.send, BufferRole::Send)?;
        Some(Self { send, receive: zeroed(extent.receive, BufferRole::Receive)? })
    }
}

/// Rank and number of ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Standing {
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

/// Buffers of a cell on one rank: words for operations that reduce, bytes for all others.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) cell: Cell,
    pub(super) standing: Standing,
    pub(super) bytes: Pair<u8>,
    pub(super) words: Pair<u32>,
    /// Counts of the forms with a count per rank: all equal, as in OSU's benchmarks.
    counts: Vec<Count>,
    displacements: Vec<Count>,
}

impl Buffers {
    /// Allocates and touches the buffers of `cell`; `None` if memory is short.
    pub(super) fn new(cell: Cell, standing: Standing, alignment: Alignment) -> Option<Self> {
        let extent = cell.operation.extent(cell.elements, standing.ranks.into());
        let none = Extent { send: 0, receive: 0 };
        let (bytes, words) = if cell.operation.reduces() { (none, extent) } else { (extent, none) };
        let block = Count::try_from(cell.elements).ok()?;
        let displacement = |rank: u32| block.checked_mul(Count::try_from(rank).ok()?);
        let displacements = (0..standing.ranks).map(displacement).collect::<Option<Vec<_>>>()?;
        Some(Self {
            cell,
            standing,
            bytes: Pair::of(bytes, alignment)?,
            words: Pair::of(words, alignment)?,
            counts: vec![block; displacements.len()],
            displacements,
        })
    }

    /// Call of the operation on these buffers, with all arguments checked.
    pub(super) fn call(&mut self) -> Call<'_> {
        let (counts, displacements) = (&self.counts[..], &self.displacements[..]);
        let (send, receive) = (&self.bytes.send[..], &mut self.bytes.receive[..]);
        let (give, get) = (&self.words.send[..], &mut self.words.receive[..]);
        let sent = || Partition::new(send, counts, displacements);
        let parts = |get| PartitionMut::new(get, counts, displacements);
        match self.cell.operation.collective {
            Collective::Barrier => Call::Barrier,
            Collective::Bcast => Call::Bcast(receive),
            Collective::Reduce => Call::Reduce(give, get),
            Collective::Allreduce => Call::Allreduce(give, get),
            Collective::Scan => Call::Scan(give, get),
            Collective::Exscan => Call::Exscan(give, get),
            Collective::ReduceScatterBlock => Call::ReduceScatterBlock(give, get),
            Collective::Gather => Call::Gather(send, receive),
            Collective::Allgather => Call::Allgather(send, receive),
            Collective::Scatter => Call::Scatter(send, receive),
            Collective::Alltoall => Call::Alltoall(send, receive),
            Collective::Gatherv => Call::Gatherv(send, parts(receive)),
            Collective::Allgatherv => Call::Allgatherv(send, parts(receive)),
            Collective::Scatterv => Call::Scatterv(sent(), receive),
            Collective::Alltoallv => Call::Alltoallv(sent(), parts(receive)),
        }
    }
}
