//! GOAL schedules: text and both binary formats.

use core::ffi::c_void;

use loggap_core::goal::binary::{BinaryReadError, Format, Native, Reference};
use loggap_core::goal::text::{self, Block, LabelMemory, ReadError, TextMemory};
use loggap_core::goal::{Edge, Op, OpKind, Sink};

use crate::arena::{Arena, Sizer};
use crate::boundary::{Place, input, plain, slice};
use crate::goal_error::{binary, text as text_error};
use crate::status::{Detail, Outcome, Status, finish};

/// Format of a schedule.
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

/// Kind of an operation.
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

/// Survey of a schedule.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GoalInfo {
    /// A `loggap_format_kind`.
    pub format: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations, over all ranks.
    pub ops: u64,
    /// Number of dependencies, over all ranks.
    pub edges: u64,
    /// Largest number of dependencies of a rank.
    pub edges_most: u64,
    /// Bytes of memory that `loggap_goal_read` needs; may be 0.
    pub read_bytes: usize,
}

/// One operation of a rank.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Operation {
    /// A `loggap_operation_kind`.
    pub kind: u32,
    /// The other rank; `UINT32_MAX` for any source, 0 for a calculation.
    pub peer: u32,
    /// Tag of the message; `UINT64_MAX` for any tag, 0 for a calculation.
    pub tag: u64,
    /// Processor of the rank that the operation occupies.
    pub cpu: u32,
    /// Network interface of the rank that the operation occupies.
    pub nic: u32,
    /// Bytes of a message, or picoseconds of a calculation.
    pub amount: u64,
}

/// Callbacks that receive a schedule. Each may be null, and returns 0 to
/// continue or a code of your own to reject the element: reading then ends with
/// `LOGGAP_STATUS_SINK`, the rank, and the operation of the rejected call,
/// `UINT32_MAX` if it had none. Ranks come in ascending order.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SinkTable {
    /// Passed to all functions.
    pub context: *mut c_void,
    /// Receives the number of ranks; called first.
    pub ranks: Option<unsafe extern "C" fn(context: *mut c_void, ranks: u32) -> i32>,
    /// Opens a rank.
    pub begin_rank: Option<unsafe extern "C" fn(context: *mut c_void, rank: u32) -> i32>,
    /// Receives the next operation of the open rank; `index` counts from 0.
    pub op:
        Option<unsafe extern "C" fn(context: *mut c_void, index: u32, op: *const Operation) -> i32>,
    /// Operation `op` of the open rank waits until `on` has completed, or, if
    /// `start` is 1, until `on` has started.
    pub requires:
        Option<unsafe extern "C" fn(context: *mut c_void, op: u32, on: u32, start: u32) -> i32>,
    /// Closes the open rank.
    pub end_rank: Option<unsafe extern "C" fn(context: *mut c_void) -> i32>,
}

plain!(GoalInfo, SinkTable);

/// Schedule whose outline has been checked.
pub(crate) enum Source<'t> {
    Text(&'t [u8], text::Survey),
    Reference(Reference<'t>),
    Native(Native<'t>),
}

impl<'t> Source<'t> {
    /// Surveys `bytes`; their beginning tells the format.
    pub(crate) fn open(bytes: &'t [u8]) -> Outcome<Self> {
        Ok(match Format::of(bytes) {
            Some(Format::Reference) => Self::Reference(Reference::open(bytes).map_err(binary)?),
            Some(Format::Native) => Self::Native(Native::open(bytes).map_err(binary)?),
            None => Self::Text(bytes, text::Survey::of(bytes).map_err(text_error)?),
        })
    }

    /// Memory that reading takes.
    pub(crate) fn sizer(&self) -> Sizer {
        match self {
            Self::Text(_, survey) => Sizer::new()
                .array::<Block>(survey.blocks_to_lend())
                .array::<[u64; 2]>(survey.labels_most())
                .array::<u32>(survey.labels_most()),
            Self::Reference(view) => Sizer::new().array::<u32>(view.extent().ops_most),
            Self::Native(_) => Sizer::new(),
        }
    }

    pub(crate) fn info(&self) -> GoalInfo {
        let read_bytes = self.sizer().bytes();
        let (format, extent) = match self {
            Self::Text(_, survey) => (FormatKind::Text, survey.extent()),
            Self::Reference(view) => (FormatKind::Reference, view.extent()),
            Self::Native(view) => (FormatKind::Native, view.extent()),
        };
        let [ops, edges, edges_most] =
            [extent.ops, extent.edges, extent.edges_most].map(|count| count as u64);
        let ranks = extent.ranks;
        GoalInfo { format: format as u32, ranks, ops, edges, edges_most, read_bytes }
    }

    /// Reads the schedule into `sink`; `refused` converts the sink's errors.
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
                let scratch = arena.array(view.extent().ops_most)?;
                view.read(scratch, sink).map_err(from_binary)
            }
            Self::Native(view) => view.read(sink).map_err(from_binary),
        }
    }
}

/// Surveys a schedule in any of the formats: its size, and the memory that
/// reading it takes. Takes time proportional to the text, or to the number of
/// ranks of a binary file.
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
/// `loggap_goal_survey`; null if 0 bytes are needed). A sink of null functions
/// only checks the schedule.
///
/// `label_seed` seeds the hash table of a text's labels. An attacker who knows
/// it can write a text whose reading takes time proportional to the square of
/// its labels: pass an unpredictable number if texts are untrusted, any number
/// otherwise. The result does not depend on it.
///
/// Errors: as `loggap_goal_survey`; `LOGGAP_STATUS_SINK` with the code, and
/// with the rank and operation of the rejected call if it had one;
/// `LOGGAP_STATUS_MEMORY`. After an error the sink holds an incomplete
/// schedule.
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

/// Sink that calls a table of C functions, and records where a call was rejected.
struct TableSink {
    table: SinkTable,
    rank: u32,
    /// Operation of the rejected call, or `u32::MAX`.
    at: u32,
    /// Operations of the open rank received so far.
    ops: u32,
}

const fn taken(code: i32) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

impl TableSink {
    /// Converts a callback's code, and records `op` if it was rejected. Not
    /// inlined: both kinds of dependencies share it.
    #[inline(never)]
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
