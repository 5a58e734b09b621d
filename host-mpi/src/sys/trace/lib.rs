//! Library that `loggap-mpi trace` preloads into every rank of an MPI program: it records each call
//! and passes it on.
//!
//! The wrappers come from one table, `calls.txt`, by the build script. They pass machine words, so
//! that one build serves Open MPI and MPICH (`library`), and are there for C, for Fortran 77 and
//! 90 (`mpi_send_`), and for Fortran 2008 (`mpi_send_f08_`, `mpi_send_f08ts_`). Where one wrapper
//! calls another, as in MPICH's Fortran library, the outer one records.
//!
//! - `call`, `arguments`: a line of the table, and the arguments of a call.
//! - `tracer`: from a call to its record.
//! - `requests`, `communicators`: their identities.
//! - `stream`: records of a thread, and the file.
//! - `job`: begin, end, clocks, `trace.json`.

#![allow(unsafe_code, reason = "called by C and Fortran, it reads what their arguments point to")]

mod arguments;
mod call;
mod communicators;
mod job;
mod library;
mod requests;
mod stream;
mod tracer;

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::fmt::Arguments as Text;
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::libc;
use nix::time::{ClockId, clock_gettime};

use arguments::Arguments;
use call::{Action, Call, Count, Language, NONE, Positions};
use job::{JOB, Job};
use library::{Library, Real};
use stream::{Stream, TraceFile};
pub(crate) use table::{CALLS, NAMES};
use tracer::{Returned, Tracer};

/// True between `MPI_Init` and `MPI_Finalize`, unless only these are recorded.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Process that was traced: a child that it forks is not.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Standard error of the command.
static STDERR: OnceLock<File> = OnceLock::new();
static TRACER: Mutex<Option<Tracer>> = Mutex::new(None);

thread_local! {
    static LOCAL: Local = const {
        Local {
            is_inside: Cell::new(false),
            thread: Cell::new(None),
            before: RefCell::new(Before { handles: Vec::new(), statuses: Vec::new() }),
        }
    };
}

/// State of a thread.
struct Local {
    /// True inside a call that is recorded.
    is_inside: Cell<bool>,
    /// Place of the thread's stream; `None` before its first record.
    thread: Cell<Option<usize>>,
    before: RefCell<Before>,
}

/// Handles from before a call, which it changes, and room for statuses that the caller ignores.
struct Before {
    handles: Vec<usize>,
    statuses: Vec<u64>,
}

/// A call under way; `None` if it is not recorded.
type Ticket = Option<u64>;

/// Reading of the clock, in nanoseconds.
pub(crate) fn clock() -> u64 {
    let read = clock_gettime(ClockId::CLOCK_MONOTONIC_RAW);
    read.map_or(0, |time| {
        time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
    })
}

/// A message to the user. The program's own output is not disturbed by a failure.
pub(crate) fn complain(text: Text<'_>) {
    let line = format!("loggap trace: {text}\n");
    let _nothing_to_do = std::io::stderr().write_all(line.as_bytes());
}

fn tracer() -> MutexGuard<'static, Option<Tracer>> {
    TRACER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record of the tracer itself, behind those of the table.
pub(crate) const fn pseudo(number: u32, name: &'static str) -> Call {
    let (action, at) = (Action::Name, Positions::NOWHERE);
    Call { id: CALLS + number, name, action, at, count: Count::Int }
}

/// Begins a record, before the call is passed on.
fn before(call: &Call, language: Language, words: &mut [usize]) -> Ticket {
    let is_end = matches!(call.action, Action::Init | Action::Finalize);
    if !ACTIVE.load(Ordering::Relaxed) && !is_end {
        return None;
    }
    // A thread that ends makes calls without being recorded.
    let ticket = LOCAL.try_with(|local| {
        if local.is_inside.replace(true) {
            return None;
        }
        match call.action {
            Action::Finalize => finish(call, local),
            Action::Abort => flush(),
            _ if call.at.are_kept() => prepare(call, language, words, local),
            _ => {}
        }
        Some(clock())
    });
    ticket.ok().flatten()
}

/// Keeps handles that the call will change, and gives it statuses where the caller ignores them.
fn prepare(call: &Call, language: Language, words: &mut [usize], local: &Local) {
    let Some(library) = Library::loaded() else { return };
    let arguments = Arguments { call, language, words, library };
    let at = call.at;
    let list = if at.incount != NONE { arguments.int(at.incount) } else { 1 };
    let list = usize::try_from(list).unwrap_or(0);
    let Before { handles, statuses } = &mut *local.before.borrow_mut();
    handles.clear();
    match call.action {
        Action::Start | Action::Free | Action::Complete => {
            handles.extend((0..list).map(|index| arguments.request(at.request, index)));
        }
        Action::Matched => handles.push(arguments.message(at.message)),
        Action::FreeComm => handles.push(arguments.new_comm(at.newcomm)),
        _ => {}
    }
    for (place, count) in [(at.status, 1), (at.statuses, list)] {
        if arguments.ignores(place) {
            let length = count * library.status_words().div_ceil(2) + 1;
            statuses.resize(statuses.len().max(length), 0);
            // None of these is cancelled, unless MPI says so.
            statuses.iter_mut().take(length).for_each(|word| *word = 0);
            if let Some(word) = arguments.words.get_mut(usize::from(place)) {
                *word = statuses.as_mut_ptr() as usize;
            }
        }
    }
}

/// Ends the record of a call that returned.
fn after(call: &Call, language: Language, words: &mut [usize], code: c_int, ticket: Ticket) {
    let Some(enter) = ticket else { return };
    let mut leave = clock();
    let _thread_ends = LOCAL.try_with(|local| {
        if let Some(library) = Library::loaded() {
            if call.action == Action::Init && code == 0 {
                start(library, enter, local);
                leave = clock();
            }
            // Nothing is known of what a call did that failed.
            let failed;
            let call = if code == 0 {
                call
            } else {
                failed = Call { action: Action::Name, ..*call };
                &failed
            };
            let arguments = Arguments { call, language, words, library };
            let handles = &local.before.borrow().handles;
            let returned = Returned { arguments, handles, enter, leave };
            if let Some(tracer) = &mut *tracer() {
                let thread = local.thread(tracer);
                tracer.record(thread, &returned);
                tell_failure(&mut tracer.file);
            }
        }
        local.is_inside.set(false);
    });
}

impl Local {
    /// Place of this thread's stream.
    fn thread(&self, tracer: &mut Tracer) -> usize {
        let place = self.thread.get().unwrap_or_else(|| tracer.begin_thread());
        self.thread.set(Some(place));
        place
    }
}

impl Drop for Local {
    /// The thread ends. Inside a call, as in a signal handler that exits, it may have the tracer.
    fn drop(&mut self) {
        if let Some(place) = self.thread.get()
            && !self.is_inside.get()
            && PROCESS.load(Ordering::Relaxed) == process::id()
            && let Some(tracer) = &mut *tracer()
        {
            tracer.end_thread(place);
        }
    }
}

/// Begins the trace, after MPI was initialised at `base`.
fn start(library: &'static Library, base: u64, local: &Local) {
    // What a traced program spawns has ranks of its own, whose files would have the same names.
    let mut parent = library.no_comm;
    library::comm_get_parent(&mut parent);
    if parent != library.no_comm {
        return;
    }
    let cost = cost(library, local);
    let (job, file) = Job::begin(library, base, cost);
    *tracer() = Some(Tracer::new(library, base, file));
    let _once = JOB.set(job);
    PROCESS.store(process::id(), Ordering::Relaxed);
    ACTIVE.store(std::env::var_os("LOGGAP_TRACE_ENDS_ONLY").is_none(), Ordering::Relaxed);
    // SAFETY: the function is there as long as the process.
    unsafe { libc::atexit(at_exit) };
}

/// Cost of a blocking send to the tracer, without and of reading the clock twice, in nanoseconds:
/// least mean of several series.
fn cost(library: &'static Library, local: &Local) -> [f64; 2] {
    const SERIES: usize = 20;
    const CALLS_EACH: u32 = 500;
    *tracer() = Some(Tracer::new(library, clock(), TraceFile::nowhere()));
    local.is_inside.set(false);
    ACTIVE.store(true, Ordering::Relaxed);
    let mean = |work: fn(&'static Library)| {
        let series = (0..SERIES).map(|_| {
            let began = clock();
            (0..CALLS_EACH).for_each(|_| work(library));
            clock() - began
        });
        f64::from(u32::try_from(series.min().unwrap_or(0)).unwrap_or(u32::MAX))
            / f64::from(CALLS_EACH)
    };
    let read = mean(|_| {
        black_box((clock(), clock()));
    });
    let both = mean(|library| {
        let mut words = [0, 0, 0, 0, 1, library.world].map(black_box);
        let ticket = before(&table::Send, Language::C, &mut words);
        after(&table::Send, Language::C, &mut words, 0, ticket);
    });
    ACTIVE.store(false, Ordering::Relaxed);
    local.is_inside.set(true);
    local.thread.set(None);
    *tracer() = None;
    [(both - read).max(0.0), read]
}

/// Tells once why a rank's file ended early.
fn tell_failure(file: &mut TraceFile) {
    if let Some(error) = file.failure() {
        let rank = JOB.get().map_or(0, |job| job.rank);
        complain(format_args!("rank {rank}: the trace ends here: cannot write its file: {error}"));
    }
}

/// Ends the trace: the program calls `MPI_Finalize`.
fn finish(call: &Call, local: &Local) {
    let now = clock();
    let Some(library) = Library::loaded() else { return };
    let mut counts = [0; 5];
    if let Some(tracer) = &mut *tracer() {
        let arguments = Arguments { call, language: Language::C, words: &mut [], library };
        let returned = Returned { arguments, handles: &[], enter: now, leave: now };
        let thread = local.thread(tracer);
        tracer.record(thread, &returned);
        tracer.flush();
        tell_failure(&mut tracer.file);
        let of = |one: fn(&Stream) -> u64| tracer.streams.iter().map(one).sum();
        let records = of(|stream| stream.records);
        let (tested, flushed) = (of(|stream| stream.tested), of(|stream| stream.flushed));
        counts = [
            records,
            tested,
            flushed,
            now.saturating_sub(tracer.began),
            u64::from(tracer.file.is_lost()),
        ];
    }
    ACTIVE.store(false, Ordering::Relaxed);
    *tracer() = None;
    if let Some(job) = JOB.get() {
        job.end(counts);
    }
}

/// Writes what is there.
fn flush() {
    // The thread that has it may never go on.
    if let Ok(mut tracer) = TRACER.try_lock()
        && let Some(tracer) = &mut *tracer
        && PROCESS.load(Ordering::Relaxed) == process::id()
    {
        tracer.flush();
    }
}

/// The program ended without `MPI_Finalize`.
extern "C" fn at_exit() {
    if ACTIVE.swap(false, Ordering::Relaxed) && PROCESS.load(Ordering::Relaxed) == process::id() {
        flush();
    }
}

/// True in the process that `loggap-mpi trace` of the first rank became, and not in those that it
/// started.
fn is_command() -> bool {
    let process = std::env::var("LOGGAP_TRACE_PROCESS").unwrap_or_default();
    process == process::id().to_string()
}

/// The command says so if there was nothing to trace.
extern "C" fn loaded() {
    if is_command() {
        // Programs of coreutils close it before this library says anything.
        if let Ok(own) = std::io::stderr().as_fd().try_clone_to_owned() {
            let _first = STDERR.set(File::from(own));
        }
        // SAFETY: the function is there as long as the process.
        unsafe { libc::atexit(unused) };
    }
}

// SAFETY: the loader calls functions of this section, of any signature that takes nothing.
#[unsafe(link_section = ".init_array")]
#[used]
static LOADED: extern "C" fn() = loaded;

extern "C" fn unused() {
    // What it forked ends here, too.
    if !is_command() {
        return;
    }
    // A program that it started may have been traced.
    let directory = std::env::var("LOGGAP_TRACE_DIR").unwrap_or_default();
    if PROCESS.load(Ordering::Relaxed) == 0 && !Path::new(&directory).join("trace.json").exists() {
        let mut out = STDERR.get();
        let line = "loggap trace: the program ended without MPI_Init: there is no trace\n";
        let _nothing_to_do = out.as_mut().map(|out| out.write_all(line.as_bytes()));
    }
}

/// Type of an argument: a machine word.
macro_rules! word {
    ($($any:tt)*) => {
        usize
    };
}

/// A line of the table, and its wrapper for C.
macro_rules! call {
    (
        $id:literal $name:ident $call:ident $count:ident $action:ident {$($at:tt)*}
        $c_name:ident $real:literal [$($c:ident)*]
    ) => {
        pub(super) static $call: Call = Call {
            id: $id,
            name: stringify!($name),
            action: Action::$action,
            count: Count::$count,
            at: Positions { $($at)* ..Positions::NOWHERE },
        };
        const _: () = {
            // SAFETY: no other library of the process defines this name to be preloaded.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $c_name($($c: usize),*) -> c_int {
                static REAL: Real = Real::new($real);
                let mut words = [$($c),*];
                let ticket = before(&$call, Language::C, &mut words);
                let [$($c),*] = words;
                // SAFETY: MPI's function of this name takes as many words.
                let real = unsafe {
                    transmute::<*const (), unsafe extern "C" fn($(word!($c)),*) -> c_int>(REAL.address())
                };
                // SAFETY: the arguments are the caller's, or statuses that are as many.
                let code = unsafe { real($($c),*) };
                after(&$call, Language::C, &mut words, code, ticket);
                code
            }
        };
    };
}

/// Wrapper of a line for Fortran: of 77 and 90, or of 2008 without or with descriptors.
macro_rules! fortran {
    ($call:ident $language:ident $fortran:ident $real:literal [$($f:ident)*] [$($h:ident)*]) => {
        const _: () = {
            // SAFETY: no other library of the process defines this name to be preloaded.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $fortran($($f: usize,)* error: *mut c_int $(, $h: usize)*) {
                static REAL: Real = Real::new($real);
                let mut words: [usize; _] = [$($f),*];
                let ticket = before(&$call, Language::$language, &mut words);
                let [$($f),*] = words;
                // SAFETY: MPI's function of this name takes as many words.
                let real = unsafe {
                    transmute::<
                        *const (),
                        unsafe extern "C" fn($(word!($f),)* *mut c_int $(, word!($h))*),
                    >(REAL.address())
                };
                let mut code = 0;
                // SAFETY: the arguments are the caller's, or statuses that are as many.
                unsafe { real($($f,)* &raw mut code $(, $h)*) };
                after(&$call, Language::$language, &mut words, code, ticket);
                if !error.is_null() {
                    // SAFETY: the caller gives an integer, or in Fortran 2008 nothing.
                    unsafe { *error = code };
                }
            }
        };
    };
}

/// Wrappers that the build script generated from `calls.txt`.
#[allow(non_upper_case_globals, non_snake_case, reason = "named as MPI's functions")]
mod table {
    use std::ffi::c_int;
    use std::mem::transmute;

    use super::{Action, Call, Count, Language, Positions, Real, after, before};

    include!(concat!(env!("OUT_DIR"), "/calls.rs"));
}

/// `MPI_Pcontrol`, whose further arguments are ignored: 0 switches recording off.
fn control(level: c_int) {
    if ACTIVE.load(Ordering::Relaxed)
        && let Some(tracer) = &mut *tracer()
    {
        tracer.switch(clock(), if level == 0 { &stream::OFF } else { &stream::ON });
    }
}

// SAFETY: no other library of the process defines this name to be preloaded.
#[unsafe(no_mangle)]
extern "C" fn MPI_Pcontrol(level: c_int) -> c_int {
    control(level);
    0
}

macro_rules! fortran_control {
    ($($name:ident)*) => {
        $(
            // SAFETY: no other library of the process defines this name to be preloaded.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(level: *const c_int) {
                // SAFETY: the caller gives an integer.
                control(unsafe { *level });
            }
        )*
    };
}

fortran_control! { mpi_pcontrol_ mpi_pcontrol_f08_ }
