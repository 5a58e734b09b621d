//! The MPI library of this process, found as the process runs: no header of any MPI is needed to
//! build this, and one build serves all.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{iter, process, ptr};

use nix::libc;

/// Constants and layouts of an implementation, of its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    pub(crate) world: usize,
    pub(crate) own: usize,
    pub(crate) no_comm: usize,
    pub(crate) byte: usize,
    double: usize,
    sum: usize,
    pub(crate) any_source: i32,
    pub(crate) proc_null: i32,
    /// `MPI_ROOT`.
    pub(crate) root: i32,
    pub(crate) cartesian: i32,
    pub(crate) graph: i32,
    /// True if handles are integers in C, too.
    pub(crate) is_mpich: bool,
    /// `MPI_IN_PLACE` in C and in Fortran, and for descriptors.
    pub(crate) in_place: [usize; 3],
    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` of all languages.
    pub(crate) ignored: [usize; 6],
}

/// `MPI_UNDEFINED`.
pub(crate) const UNDEFINED: i32 = -32_766;
/// `MPI_DIST_GRAPH`.
pub(crate) const DISTRIBUTED_GRAPH: i32 = 3;

/// A status: 24 bytes in Open MPI, 20 in MPICH, the same in C and Fortran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) source: i32,
    pub(crate) tag: i32,
    pub(crate) bytes: u64,
    pub(crate) cancelled: bool,
}

impl Library {
    /// The library of this process; `None` if neither Open MPI nor MPICH is loaded.
    pub(crate) fn loaded() -> Option<&'static Self> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY.get_or_init(Self::found).as_ref()
    }

    fn found() -> Option<Self> {
        let world = find(c"ompi_mpi_comm_world");
        if world != 0 {
            let ignore = [c"mpi_fortran_status_ignore_", c"mpi_fortran_statuses_ignore_"];
            let [one, all] = ignore.map(find);
            return Some(Self {
                world,
                own: find(c"ompi_mpi_comm_self"),
                no_comm: find(c"ompi_mpi_comm_null"),
                byte: find(c"ompi_mpi_byte"),
                double: find(c"ompi_mpi_double"),
                sum: find(c"ompi_mpi_op_sum"),
                any_source: -1,
                proc_null: -2,
                root: -4,
                cartesian: 1,
                graph: 2,
                is_mpich: false,
                in_place: [1, find(c"mpi_fortran_in_place_"), usize::MAX],
                ignored: [0, one, all, 0, 0, 0],
            });
        }
        if find(c"MPIX_Comm_failure_ack") == 0 {
            return None;
        }
        let pointer = |name| pointed(find(name));
        Some(Self {
            world: 0x4400_0000,
            own: 0x4400_0001,
            no_comm: 0x0400_0000,
            byte: 0x4c00_010d,
            double: 0x4c00_080b,
            sum: 0x5800_0003,
            any_source: -2,
            proc_null: -1,
            root: -3,
            cartesian: 2,
            graph: 1,
            is_mpich: true,
            in_place: [usize::MAX, pointer(c"MPIR_F_MPI_IN_PLACE"), find(c"MPIR_F08_MPI_IN_PLACE")],
            ignored: [
                1,
                pointer(c"MPI_F_STATUS_IGNORE"),
                pointer(c"MPI_F_STATUSES_IGNORE"),
                pointer(c"MPI_F08_STATUS_IGNORE"),
                pointer(c"MPI_F08_STATUSES_IGNORE"),
                0,
            ],
        })
    }

    /// First index of lists of requests in `mpi_f08`: 1, but 0 in MPICH 4.0, which is asked for the
    /// index of the second of two requests.
    pub(crate) fn first_index(&self) -> i32 {
        static FIRST: OnceLock<i32> = OnceLock::new();
        const NO_REQUEST: i32 = 0x2c00_0000;
        if !self.is_mpich {
            return 1;
        }
        *FIRST.get_or_init(|| {
            let (mut requests, mut index, mut code) = ([NO_REQUEST; 2], 2, 0);
            let [_, second] = &mut requests;
            isend(ptr::null(), 0, self.byte, self.proc_null, 0, self.world, second);
            let mut status = [0; 8];
            fortran_waitany(&2, requests.as_mut_ptr(), &mut index, status.as_mut_ptr(), &mut code);
            index - 1
        })
    }

    /// Time to add a byte of two vectors of doubles, in nanoseconds.
    pub(crate) fn combining(&self) -> f64 {
        const TRIES: usize = 20;
        let (one, mut other) = ([1.0_f64; 4_096], [1.0_f64; 4_096]);
        let took = (0..TRIES).map(|_| {
            let begin = crate::clock();
            let (from, to) = (one.as_ptr().cast(), other.as_mut_ptr().cast());
            reduce_local(from, to, 4_096, self.double, self.sum);
            crate::clock().saturating_sub(begin)
        });
        #[allow(clippy::cast_precision_loss, reason = "a ratio")]
        took.min().map_or(0.0, |nanos| nanos as f64 / size_of_val(&one) as f64)
    }

    /// Words of a status, all of 32 bits.
    pub(crate) const fn status_words(&self) -> usize {
        if self.is_mpich { 5 } else { 6 }
    }

    /// A status from its words.
    pub(crate) fn status(&self, words: &[i32]) -> Status {
        let at = |place: usize| words.get(place).copied().unwrap_or(0);
        let long = |low: i32, high: i32| {
            u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
        };
        if self.is_mpich {
            Status {
                source: at(2),
                tag: at(3),
                bytes: long(at(0), (at(1).cast_unsigned() >> 1).cast_signed()),
                cancelled: at(1) & 1 != 0,
            }
        } else {
            Status { source: at(0), tag: at(1), bytes: long(at(4), at(5)), cancelled: at(3) != 0 }
        }
    }
}

/// A function of the MPI library, looked up at its first call: the next one of this name behind
/// this library.
#[derive(Debug)]
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<()>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Address of the function. Without one the process ends, as it could not be called, either.
    pub(crate) fn address(&self) -> *const () {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        let found = look_up(libc::RTLD_NEXT, self.name);
        if found.is_null() {
            crate::complain(format_args!("no {:?} in this program's MPI", self.name));
            process::abort();
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

fn find(name: &CStr) -> usize {
    look_up(libc::RTLD_DEFAULT, name) as usize
}

/// Looks where `place` says, then in libraries that a program loaded for itself only, as
/// interpreters do.
fn look_up(place: *mut c_void, name: &CStr) -> *mut () {
    const NAMES: [&CStr; 8] = [
        c"libmpi.so.40",
        c"libmpi.so.12",
        c"libmpich.so.12",
        c"libmpi_mpifh.so.40",
        c"libmpi_usempif08.so.40",
        c"libmpichfort.so.12",
        c"libmpifort.so.12",
        c"libmpi.so",
    ];
    let handles = NAMES.into_iter().map(|library| {
        // SAFETY: the name ends in zero; a library that is not loaded is not loaded by this.
        unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) }
    });
    let handles = iter::once(place).chain(handles.filter(|handle| !handle.is_null()));
    // SAFETY: the name ends in zero, and the handle is one of a loaded library or a special one.
    let mut found = handles.map(|handle| unsafe { libc::dlsym(handle, name.as_ptr()) });
    found.find(|address| !address.is_null()).unwrap_or(ptr::null_mut()).cast()
}

/// Value of the pointer at `address`, or 0.
fn pointed(address: usize) -> usize {
    // SAFETY: an address other than zero is that of a pointer variable that a library exports.
    if address == 0 { 0 } else { unsafe { *(address as *const usize) } }
}

/// Functions of MPI that the tracer itself calls. Handles are words: an implementation with
/// handles of 32 bits takes the low half.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($arg:ident: $type:ty),* $(,)?);)*) => {
        $(#[allow(clippy::too_many_arguments, reason = "MPI's own")]
        pub(crate) fn $name($($arg: $type),*) -> c_int {
            static REAL: Real = Real::new($symbol);
            // SAFETY: MPI's function of this name has this signature.
            let function = unsafe {
                transmute::<*const (), unsafe extern "C" fn($($type),*) -> c_int>(REAL.address())
            };
            // SAFETY: MPI is initialised, handles are valid, and pointers are those of references
            // to as many values as the function reads or writes.
            unsafe { function($($arg),*) }
        })*
    };
}

functions! {
    comm_size = c"PMPI_Comm_size"(comm: usize, size: &mut i32);
    comm_rank = c"PMPI_Comm_rank"(comm: usize, rank: &mut i32);
    comm_group = c"PMPI_Comm_group"(comm: usize, group: &mut usize);
    comm_remote_group = c"PMPI_Comm_remote_group"(comm: usize, group: &mut usize);
    comm_test_inter = c"PMPI_Comm_test_inter"(comm: usize, flag: &mut i32);
    comm_get_parent = c"PMPI_Comm_get_parent"(parent: &mut usize);
    comm_dup = c"PMPI_Comm_dup"(comm: usize, new: &mut usize);
    comm_free = c"PMPI_Comm_free"(comm: &mut usize);
    group_size = c"PMPI_Group_size"(group: usize, size: &mut i32);
    group_free = c"PMPI_Group_free"(group: &mut usize);
    group_translate_ranks = c"PMPI_Group_translate_ranks"(
        group: usize, count: i32, ranks: *const i32, other: usize, translated: *mut i32);
    topo_test = c"PMPI_Topo_test"(comm: usize, kind: &mut i32);
    cartdim_get = c"PMPI_Cartdim_get"(comm: usize, dimensions: &mut i32);
    cart_get = c"PMPI_Cart_get"(
        comm: usize, most: i32, extents: *mut i32, periods: *mut i32, coordinates: *mut i32);
    graph_neighbors_count = c"PMPI_Graph_neighbors_count"(comm: usize, rank: i32, count: &mut i32);
    graph_neighbors = c"PMPI_Graph_neighbors"(
        comm: usize, rank: i32, most: i32, neighbours: *mut i32);
    dist_graph_neighbors_count = c"PMPI_Dist_graph_neighbors_count"(
        comm: usize, incoming: &mut i32, outgoing: &mut i32, weighted: &mut i32);
    dist_graph_neighbors = c"PMPI_Dist_graph_neighbors"(
        comm: usize, most_in: i32, sources: *mut i32, source_weights: *mut i32,
        most_out: i32, targets: *mut i32, target_weights: *mut i32);
    type_size_x = c"PMPI_Type_size_x"(datatype: usize, size: &mut i64);
    get_library_version = c"PMPI_Get_library_version"(text: *mut c_char, length: &mut i32);
    query_thread = c"PMPI_Query_thread"(level: &mut i32);
    tool_init = c"MPI_T_init_thread"(level: i32, provided: &mut i32);
    variable_index = c"MPI_T_cvar_get_index"(name: *const c_char, index: &mut i32);
    variable_open = c"MPI_T_cvar_handle_alloc"(
        index: i32, object: *mut c_void, handle: &mut usize, count: &mut i32);
    variable_read = c"MPI_T_cvar_read"(handle: usize, value: *mut c_void);
    variable_close = c"MPI_T_cvar_handle_free"(handle: &mut usize);
    send = c"PMPI_Send"(
        data: *const c_void, count: i32, datatype: usize, to: i32, tag: i32, comm: usize);
    isend = c"PMPI_Isend"(
        data: *const c_void, count: i32, datatype: usize, to: i32, tag: i32, comm: usize,
        request: &mut i32);
    fortran_waitany = c"mpi_waitany_f08_"(
        count: &i32, requests: *mut i32, index: &mut i32, status: *mut i32, error: &mut i32);
    receive = c"PMPI_Recv"(
        data: *mut c_void, count: i32, datatype: usize, from: i32, tag: i32, comm: usize,
        status: *mut c_void);
    broadcast = c"PMPI_Bcast"(
        data: *mut c_void, count: i32, datatype: usize, root: i32, comm: usize);
    reduce_local = c"PMPI_Reduce_local"(
        from: *const c_void, to: *mut c_void, count: i32, datatype: usize, operation: usize);
    allgather = c"PMPI_Allgather"(
        data: *const c_void, count: i32, datatype: usize, all: *mut c_void, each: i32,
        as_type: usize, comm: usize);
}

/// Converters of Fortran's handles; integers in MPICH, where they are the same.
macro_rules! converters {
    ($($name:ident = $symbol:literal;)*) => {
        $(pub(crate) fn $name(library: &Library, handle: i32) -> usize {
            static REAL: Real = Real::new($symbol);
            if library.is_mpich {
                return handle.cast_unsigned() as usize;
            }
            // SAFETY: Open MPI's function of this name has this signature.
            let function = unsafe {
                transmute::<*const (), unsafe extern "C" fn(i32) -> usize>(REAL.address())
            };
            // SAFETY: any integer may be given.
            unsafe { function(handle) }
        })*
    };
}

converters! {
    comm_of = c"PMPI_Comm_f2c";
    type_of = c"PMPI_Type_f2c";
    request_of = c"PMPI_Request_f2c";
    message_of = c"PMPI_Message_f2c";
}

/// Description of the library by itself.
pub(crate) fn version() -> String {
    let (mut text, mut length) = ([0_u8; 8_192], 0);
    get_library_version(text.as_mut_ptr().cast(), &mut length);
    let whole = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
    whole.lines().next().unwrap_or_default().trim().replace('\t', " ")
}

/// Variables of the library that decide about algorithms of collectives, as the environment would
/// name them: what is in force, also by files. Those that are 0 or empty are left out.
pub(crate) fn variables() -> Vec<(String, String)> {
    const OPERATIONS: [&str; 7] =
        ["bcast", "allreduce", "allgather", "alltoall", "barrier", "gather", "scatter"];
    const COMPONENTS: [&str; 8] =
        ["tuned", "adapt", "cuda", "han", "hcoll", "portals4", "sm", "ucc"];
    let (mut level, mut provided) = (0, 0);
    // The program's level: Open MPI 4.1 takes another one for the level of all of MPI. It stays
    // initialised: MPICH 4.0 finds no variables the second time.
    if query_thread(&mut level) != 0 || tool_init(level, &mut provided) != 0 {
        return Vec::new();
    }
    let of = |what: &str| format!("coll_tuned_{what}");
    let chosen = OPERATIONS.iter().flat_map(|operation| {
        ["", "_segmentsize"].map(|what| of(&format!("{operation}_algorithm{what}")))
    });
    let priorities = COMPONENTS.iter().map(|name| format!("coll_{name}_priority"));
    let names = [of("use_dynamic_rules"), of("dynamic_rules_filename")];
    let names = names.into_iter().chain(chosen).chain(priorities);
    names.filter_map(|name| Some((format!("OMPI_MCA_{name}"), variable(&name)?))).collect()
}

fn variable(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    let (mut index, mut handle, mut count) = (0, 0, 0);
    if variable_index(name.as_ptr(), &mut index) != 0
        || variable_open(index, ptr::null_mut(), &mut handle, &mut count) != 0
    {
        return None;
    }
    // Numbers have up to 8 bytes, and texts as many bytes as the count says.
    let mut words = vec![0_u64; usize::try_from(count).ok()? + 1];
    let code = variable_read(handle, words.as_mut_ptr().cast());
    variable_close(&mut handle);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let value = match count {
        1 => i32::from_ne_bytes(*bytes.first_chunk()?).to_string(),
        _ => CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy().into_owned(),
    };
    Some(value).filter(|value| code == 0 && value != "0" && !value.is_empty())
}
