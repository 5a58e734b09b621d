//! Schedules: GOAL text and both binary formats.

use core::ffi::c_void;

use loggap_core::goal::binary::{BinaryReadError, Format, Native, Reference};
use loggap_core::goal::text::{self, Block, LabelMemory, ReadError, TextMemory};
use loggap_core::goal::{Edge, Op, OpKind, Sink};

use crate::arena::{Arena, Sizer};
use crate::boundary::{Place, input, plain, slice};
use crate::goal_error::{binary, text as text_error};
use crate::status::{Detail, Outcome, Status, finish};

/// How a schedule is written down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum FormatKind {
    /// GOAL text.
    Text = 0,
    /// The binary format of LogGOPSim's `txt2bin`.
    Reference = 1,
    /// loggap's own binary format, `.lgs`.
    Native = 2,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum OperationKind {
    /// Sends `amount` bytes to `peer`.
    Send = 0,
    /// Receives `amount` bytes from `peer`.
    Receive = 1,
    /// Computes for `amount` ps.
    Calc = 2,
}

/// What a look at a schedule tells.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GoalInfo {
    /// A `loggap_format_kind`.
    pub format: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: u64,
    /// Dependencies of all ranks.
    pub edges: u64,
    /// Dependencies of the rank that has most.
    pub edges_most: u64,
    /// Bytes to lend to `loggap_goal_read`; may be 0.
    pub read_bytes: usize,
}

/// One operation of a rank.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Operation {
    /// A `loggap_operation_kind`.
    pub kind: u32,
    /// The other rank; `UINT32_MAX` for any, 0 for a calculation.
    pub peer: u32,
    /// The message's tag; `UINT64_MAX` for any, 0 for a calculation.
    pub tag: u64,
    /// The rank's processor that it occupies.
    pub cpu: u32,
    /// The rank's network interface that it occupies.
    pub nic: u32,
    /// Bytes of a message, or picoseconds of a calculation.
    pub amount: u64,
}

/// Where a schedule goes. Each function may be null, and returns 0 to go on or
/// a code of your own to refuse the element: reading ends then with
/// `LOGGAP_STATUS_SINK`, the rank and the operation that the call was about,
/// `UINT32_MAX` where it was about none. Calls come rank by rank in ascending
/// order.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SinkTable {
    /// Passed to all functions.
    pub context: *mut c_void,
    /// Tells the number of ranks, first of all.
    pub ranks: Option<unsafe extern "C" fn(context: *mut c_void, ranks: u32) -> i32>,
    /// Opens a rank.
    pub begin_rank: Option<unsafe extern "C" fn(context: *mut c_void, rank: u32) -> i32>,
    /// The next operation of the open rank, which count from 0.
    pub op:
        Option<unsafe extern "C" fn(context: *mut c_void, index: u32, op: *const Operation) -> i32>,
    /// Operation `op` of the open rank waits until `on` has completed, or
    /// where `start` is 1 until it has started.
    pub requires:
        Option<unsafe extern "C" fn(context: *mut c_void, op: u32, on: u32, start: u32) -> i32>,
    /// Closes the open rank.
    pub end_rank: Option<unsafe extern "C" fn(context: *mut c_void) -> i32>,
}

plain!(GoalInfo, SinkTable);

/// A schedule whose outline has been checked.
pub(crate) enum Source<'t> {
    Text(&'t [u8], text::Survey),
    Reference(Reference<'t>),
    Native(Native<'t>),
}

impl<'t> Source<'t> {
    /// Looks at `bytes`, whose format their beginning tells.
    pub(crate) fn open(bytes: &'t [u8]) -> Outcome<Self> {
        Ok(match Format::of(bytes) {
            Some(Format::Reference) => Self::Reference(Reference::open(bytes).map_err(binary)?),
            Some(Format::Native) => Self::Native(Native::open(bytes).map_err(binary)?),
            None => Self::Text(bytes, text::Survey::of(bytes).map_err(text_error)?),
        })
    }

    /// The memory that reading it takes.
    pub(crate) fn sizer(&self) -> Sizer {
        match self {
            Self::Text(_, survey) => Sizer::new()
                .array::<Block>(survey.blocks_to_lend())
                .array::<[u64; 2]>(survey.labels_most())
                .array::<u32>(survey.labels_most()),
            Self::Reference(view) => Sizer::new().array::<u32>(view.ops_most() as usize),
            Self::Native(_) => Sizer::new(),
        }
    }

    pub(crate) fn info(&self) -> GoalInfo {
        let read_bytes = self.sizer().bytes();
        let (format, ranks, ops, edges, edges_most) = match self {
            Self::Text(_, survey) => {
                let (edges, most) = (survey.edges() as u64, survey.edges_most() as u64);
                (FormatKind::Text, survey.ranks(), survey.ops() as u64, edges, most)
            }
            Self::Reference(view) => {
                let most = view.edges_most().into();
                (FormatKind::Reference, view.ranks(), view.ops(), view.edges(), most)
            }
            Self::Native(view) => {
                let most = view.edges_most().into();
                (FormatKind::Native, view.ranks(), view.ops(), view.edges(), most)
            }
        };
        GoalInfo { format: format as u32, ranks, ops, edges, edges_most, read_bytes }
    }

    /// Reads it into `sink`, whose errors `refused` explains.
    pub(crate) fn read<S: Sink>(
        &self,
        arena: &mut Arena<'_>,
        label_seed: u64,
        sink: &mut S,
        refused: impl Fn(S::Error) -> Detail + Copy,
    ) -> Outcome<()> {
        let from_binary = |error| match error {
            BinaryReadError::File(error) => binary(error),
            BinaryReadError::Sink { rank, error } => refused(error).on_rank(rank),
        };
        match self {
            Self::Text(bytes, survey) => {
                let labels = LabelMemory {
                    entries: arena.array(survey.labels_most())?,
                    buckets: arena.array(survey.labels_most())?,
                    seed: label_seed,
                };
                let blocks = arena.array(survey.blocks_to_lend())?;
                let memory = TextMemory { blocks, labels };
                text::read(bytes, survey, memory, sink).map_err(|error| match error {
                    ReadError::Text(error) => text_error(error),
                    ReadError::Sink { at, line, error } => {
                        refused(error).at(at as u64).line(line, 0)
                    }
                })
            }
            Self::Reference(view) => {
                let scratch = arena.array(view.ops_most() as usize)?;
                view.read(scratch, sink).map_err(from_binary)
            }
            Self::Native(view) => view.read(sink).map_err(from_binary),
        }
    }
}

/// Takes a first look at a schedule in any of the formats: its size, and the
/// memory that reading it takes. Takes time proportional to the text, or to
/// the ranks of a binary file.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` with offset, line and column (text) or
/// rank (binary) and the reason; `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_goal_survey(
    bytes: *const u8,
    length: usize,
    info: *mut GoalInfo,
    detail: *mut Detail,
) -> i32 {
    let look = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(info) }?;
        // SAFETY: by the contract of this function.
        place.put(Source::open(unsafe { slice(bytes, length) }?)?.info());
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(look(), detail) }
}

/// Reads a schedule in any of the formats into `sink`, on lent memory (see
/// `loggap_goal_survey`; null where 0 bytes are needed). A sink of null
/// functions only checks the schedule.
///
/// `label_seed` decides where labels of a text lie in memory. Whoever knows it
/// can write a text whose reading takes time proportional to the square of its
/// labels: a number that nobody can guess where texts come from strangers, any
/// number elsewhere. Nothing else depends on it.
///
/// Errors: as `loggap_goal_survey`; `LOGGAP_STATUS_SINK` with the code, and
/// with rank and operation where the call was about one;
/// `LOGGAP_STATUS_MEMORY`. What the sink got before is an unfinished schedule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_goal_read(
    bytes: *const u8,
    length: usize,
    memory: *mut u8,
    memory_bytes: usize,
    label_seed: u64,
    sink: *const SinkTable,
    detail: *mut Detail,
) -> i32 {
    let read = || {
        // SAFETY: by the contract of this function.
        let table = *unsafe { input(sink) }?;
        // SAFETY: by the contract of this function.
        let source = Source::open(unsafe { slice(bytes, length) }?)?;
        let sizer = source.sizer();
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::maybe_empty(memory, memory_bytes, sizer) }?;
        let mut sink = TableSink { table, rank: u32::MAX, at: u32::MAX, ops: 0 };
        let outcome = source.read(&mut arena, label_seed, &mut sink, |code| {
            Detail::of(Status::Sink).found(i64::from(code).cast_unsigned())
        });
        outcome.map_err(|failure| {
            let refused = failure.status == Status::Sink as i32;
            if refused { failure.on(sink.rank, sink.at) } else { failure }
        })
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(read(), detail) }
}

/// A table of C functions as a sink, with the place where it is.
struct TableSink {
    table: SinkTable,
    rank: u32,
    /// The operation that the refused call was about, or `u32::MAX`.
    at: u32,
    /// Operations of the rank taken so far.
    ops: u32,
}

const fn taken(code: i32) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

impl TableSink {
    /// Not inlined: both kinds of dependencies share it.
    #[inline(never)]
    /// What a call about the operation `op` has returned.
    fn taken(&mut self, op: u32, code: i32) -> Result<(), i32> {
        taken(code).inspect_err(|_| self.at = op)
    }
}

impl Sink for TableSink {
    type Error = i32;

    fn ranks(&mut self, ranks: u32) -> Result<(), i32> {
        let Some(tell) = self.table.ranks else { return Ok(()) };
        // SAFETY: the caller of the library vouches for function and context.
        taken(unsafe { tell(self.table.context, ranks) })
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), i32> {
        (self.rank, self.ops) = (rank, 0);
        let Some(tell) = self.table.begin_rank else { return Ok(()) };
        // SAFETY: as above.
        taken(unsafe { tell(self.table.context, rank) })
    }

    fn op(&mut self, op: Op) -> Result<u32, i32> {
        let index = self.ops;
        if let Some(tell) = self.table.op {
            let op = Operation::from_core(&op);
            // SAFETY: as above; the operation outlives the call.
            let code = unsafe { tell(self.table.context, index, &raw const op) };
            self.taken(index, code)?;
        }
        self.ops = index.wrapping_add(1);
        Ok(index)
    }

    fn edge(&mut self, Edge { op, on, start }: Edge) -> Result<(), i32> {
        let Some(tell) = self.table.requires else { return Ok(()) };
        // SAFETY: the caller of the library vouches for function and context.
        let code = unsafe { tell(self.table.context, op, on, start.into()) };
        self.taken(op, code)
    }

    fn end_rank(&mut self) -> Result<(), i32> {
        let Some(tell) = self.table.end_rank else { return Ok(()) };
        // SAFETY: as above.
        taken(unsafe { tell(self.table.context) })
    }
}

impl Operation {
    fn from_core(op: &Op) -> Self {
        let (kind, peer, tag, amount) = match op.kind {
            OpKind::Send { peer, size, tag } => (OperationKind::Send, peer, tag, size),
            OpKind::Receive { peer, size, tag } => (OperationKind::Receive, peer, tag, size),
            OpKind::Calc { duration } => (OperationKind::Calc, 0, 0, duration.0),
        };
        Self { kind: kind as u32, peer, tag, cpu: op.cpu.into(), nic: op.nic.into(), amount }
    }
}
