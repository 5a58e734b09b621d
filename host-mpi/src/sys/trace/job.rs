//! Begin and end of a trace: what all ranks do together, and `trace.json`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::env;
use std::ffi::c_void;
use std::fs;
use std::path;
use std::sync::OnceLock;

use loggap_core::sync::{Ping, Pinger, SeriesOptions, measure_offset};
use loggap_core::trace::FileHeader;
use loggap_core::units::Picos;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::library::{self, Library};
use crate::stream::TraceFile;
use crate::{clock, complain};

/// Tag of the tracer's own messages, in a communicator of their own.
const TAG: i32 = 0;

/// What ranks tell each other of themselves.
#[derive(Clone, Copy, Debug)]
struct Rank {
    /// Boot of the kernel, whose clock all its processes read.
    boot: u128,
    /// Reading of the clock at the entry into `MPI_Init`.
    base: u64,
    /// Processors that it may use, a bit each.
    processors: [u64; 16],
    /// Name of the host, with zeros behind.
    host: [u8; 72],
}

impl Rank {
    fn own(rank: usize, base: u64) -> Self {
        let kernel = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        let boot = kernel("random/boot_id").unwrap_or_default().trim().replace('-', "");
        let boot = u128::from_str_radix(&boot, 16).unwrap_or(rank as u128 + 1);
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let mut processors = [0; 16];
        for at in (0..CpuSet::count()).filter(|at| allowed.is_set(*at) == Ok(true)) {
            if let Some(word) = processors.get_mut(at / 64) {
                *word |= 1_u64 << (at % 64);
            }
        }
        let name = kernel("hostname").unwrap_or_default();
        let mut host = [0; _];
        host.iter_mut().zip(name.trim().bytes()).for_each(|(place, byte)| *place = byte);
        Self { boot, base, processors, host }
    }
}

/// What this rank knows of the job.
#[derive(Debug)]
pub(crate) struct Job {
    library: &'static Library,
    comm: usize,
    pub(crate) rank: usize,
    pub(crate) directory: String,
    run: u64,
    ranks: Vec<Rank>,
    begin: Vec<Value>,
    /// Cost of recording a call without and of reading the clock, in nanoseconds.
    cost: [f64; 2],
}

/// The job, from `MPI_Init` on.
pub(crate) static JOB: OnceLock<Job> = OnceLock::new();

impl Job {
    /// Begins a trace together with all ranks, and gives the file of this one.
    pub(crate) fn begin(library: &'static Library, base: u64, cost: [f64; 2]) -> (Self, TraceFile) {
        let (mut comm, mut rank, mut ranks) = (0, 0, 0);
        library::comm_dup(library.world, &mut comm);
        library::comm_rank(comm, &mut rank);
        library::comm_size(comm, &mut ranks);
        let mut run = [getrandom::u64().unwrap_or(base)];
        let length = size_of_val(&run).try_into().unwrap_or(0);
        library::broadcast(run.as_mut_ptr().cast(), length, library.byte, 0, comm);
        let tasks =
            env::var("SLURM_STEP_NUM_TASKS").ok().filter(|tasks| ranks == 1 && tasks != "1");
        if let Some(tasks) = tasks.filter(|_| env::var_os("OMPI_COMM_WORLD_SIZE").is_none()) {
            complain(format_args!(
                "{tasks} processes of srun, each alone for MPI: --mpi=pmix is Open MPI's, pmi2 MPICH's"
            ));
        }
        let [rank, ranks] = [rank, ranks].map(|number| usize::try_from(number).unwrap_or(0));
        let directory = env::var("LOGGAP_TRACE_DIR").unwrap_or_else(|_| "loggap-trace".to_owned());
        // The program may go to another directory.
        let directory = path::absolute(&directory)
            .map_or(directory, |absolute| absolute.to_string_lossy().into_owned());
        let mut job = Self {
            library,
            comm,
            rank,
            directory,
            run: run[0],
            ranks: Vec::new(),
            begin: Vec::new(),
            cost,
        };
        job.ranks = job.gathered(ranks, Rank::own(rank, base));
        job.begin = job.clocks();
        let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let header = FileHeader { run: job.run, rank: word(rank), ranks: word(ranks) };
        let path = format!("{}/{rank}.trace", job.directory);
        let created =
            fs::create_dir_all(&job.directory).and_then(|()| TraceFile::create(&path, &header));
        let file = created.unwrap_or_else(|error| {
            complain(format_args!(
                "rank {rank}: cannot create '{path}': {error}; it is not traced"
            ));
            TraceFile::nowhere()
        });
        job.describe(&[]);
        // None begins while rank 0 reads the library's variables, which takes it 0.2 s.
        job.gathered(ranks, 0_u64);
        (job, file)
    }

    /// Ends the trace together with all ranks. Of this one are given its records, unsuccessful tests,
    /// nanoseconds that it wrote and ran, and 1 if its file lacks records.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn end(&self, own: [u64; 5]) {
        let clocks = self.clocks();
        let counts = self.gathered(self.ranks.len(), own);
        let mut comm = self.comm;
        library::comm_free(&mut comm);
        if self.rank == 0 {
            let is_described = self.describe(&clocks);
            let sum = |at: usize| counts.iter().filter_map(|rank| rank.get(at)).sum::<u64>();
            let [records, tests, flushed, span, lost] = [0, 1, 2, 3, 4].map(sum);
            if lost > 0 {
                return complain(format_args!(
                    "{}: the trace is incomplete: {lost} of {} files of ranks end early or are missing",
                    self.directory,
                    self.ranks.len()
                ));
            }
            if !is_described {
                return;
            }
            let [cost, read] = self.cost;
            let took = (records + tests) as f64 * (cost + read) + flushed as f64;
            let share = 100.0 * took / (span as f64).max(1.0);
            complain(format_args!(
                "{}: {} ranks, {records} records; a call costs {cost:.0} ns, and {read:.0} ns to read \
                 the clock twice, with writing {share:.2}% of the run; next: loggap trace info {}",
                self.directory,
                self.ranks.len(),
                self.directory
            ));
        }
    }

    /// Values of all ranks, which call this together. `T` has neither padding nor values that are not
    /// any bytes.
    fn gathered<T: Copy>(&self, ranks: usize, own: T) -> Vec<T> {
        let mut all = vec![own; ranks];
        let (length, byte) = (size_of::<T>().try_into().unwrap_or(0), self.library.byte);
        let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
        library::allgather(from, length, byte, to, length, byte, self.comm);
        all
    }

    /// Time of each rank, after its base, less that of rank 0: the difference, the bound of its
    /// error and the rank's time when it was so, in nanoseconds. Ranks of one kernel read one clock;
    /// the first of each other kernel exchanges pings with rank 0.
    fn clocks(&self) -> Vec<Value> {
        let boot = |rank: usize| self.ranks.get(rank).map(|rank| rank.boot);
        let apart = env::var_os("LOGGAP_TRACE_CLOCKS").is_some_and(|value| value == "rank");
        let leads = |rank: usize| {
            let first = (0..rank).find(|other| boot(*other) == boot(rank));
            rank != 0 && (apart || first.is_none())
        };
        let mut own = [0; 3];
        if leads(self.rank) {
            own = self.ping();
        } else if self.rank == 0 {
            (1..self.ranks.len()).filter(|rank| leads(*rank)).for_each(|rank| self.answer(rank));
        }
        let all = self.gathered(self.ranks.len(), own.map(i64::cast_unsigned));
        let of = |rank: usize| {
            let leader = (0..=rank).find(|other| boot(*other) == boot(rank));
            let leader = if apart { rank } else { leader.unwrap_or(rank) };
            let [at, offset, bound] =
                all.get(leader).copied().unwrap_or_default().map(u64::cast_signed);
            // They read one clock, and count from different times.
            let moved = self.base(leader).wrapping_sub(self.base(rank)).cast_signed();
            json!({ "at_ns": at + moved, "offset_ns": offset + moved, "bound_ns": bound })
        };
        (0..self.ranks.len()).map(of).collect()
    }

    /// Offset of this rank's clock against rank 0's.
    fn ping(&self) -> [i64; 3] {
        const LONGEST: Picos = Picos(200_000_000_000);
        let options = SeriesOptions { longest: LONGEST, ..SeriesOptions::default() };
        let series = measure_offset(&mut Peer { job: self, rank: 0 }, &options, &mut []);
        self.send(0, DONE);
        // As wide as the run is long, if the clock went backwards.
        let Ok(series) = series else { return [0, 0, i64::MAX] };
        let nanos = |picos: u64| i64::try_from(picos / 1_000).unwrap_or(i64::MAX);
        let offset = series.offset;
        [nanos(offset.at.0), offset.value.0 / 1_000, nanos(offset.half_width.0) + 1]
    }

    /// Answers pings of `rank` until it ends them.
    fn answer(&self, rank: usize) {
        while self.receive(rank) == PING {
            self.send(rank, self.now());
        }
    }

    fn base(&self, rank: usize) -> u64 {
        self.ranks.get(rank).map_or(0, |rank| rank.base)
    }

    /// Picoseconds since this rank's base.
    fn now(&self) -> u64 {
        clock().saturating_sub(self.base(self.rank)).saturating_mul(1_000)
    }

    fn send(&self, to: usize, number: u64) {
        let bytes = number.to_ne_bytes();
        let to = to.try_into().unwrap_or(self.library.proc_null);
        library::send(bytes.as_ptr().cast(), 8, self.library.byte, to, TAG, self.comm);
    }

    fn receive(&self, from: usize) -> u64 {
        let (mut bytes, mut status) = ([0; 8], [0_u64; 8]);
        let from = from.try_into().unwrap_or(self.library.proc_null);
        let status: *mut c_void = status.as_mut_ptr().cast();
        let data = bytes.as_mut_ptr().cast();
        library::receive(data, 8, self.library.byte, from, TAG, self.comm, status);
        u64::from_ne_bytes(bytes)
    }

    /// Number of processors that the ranks of each rank's host may use together.
    fn processors(&self) -> Vec<u32> {
        let mut together: BTreeMap<_, [u64; 16]> = BTreeMap::new();
        for rank in &self.ranks {
            let all = together.entry((rank.boot, rank.host)).or_default();
            all.iter_mut().zip(rank.processors).for_each(|(all, own)| *all |= own);
        }
        let of = |rank: &Rank| together.get(&(rank.boot, rank.host)).into_iter().flatten();
        self.ranks.iter().map(|rank| of(rank).map(|word| word.count_ones()).sum()).collect()
    }

    /// Rank 0 writes `trace.json`, at the end with the clocks of then; false if it cannot.
    fn describe(&self, end: &[Value]) -> bool {
        if self.rank != 0 {
            return true;
        }
        let host =
            |rank: &Rank| String::from_utf8_lossy(&rank.host).trim_end_matches('\0').to_owned();
        let command = env::var("LOGGAP_TRACE_COMMAND").ok();
        let command = command.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let is_setting =
            |name: &str| ["OMPI_MCA_", "MPIR_CVAR_"].iter().any(|own| name.starts_with(own));
        let settings = env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| is_setting(name))?;
            Some((name, Value::from(value.to_string_lossy().into_owned())))
        });
        let mut settings: serde_json::Map<_, _> = settings.collect();
        let variables = library::variables().into_iter();
        settings.extend(variables.map(|(name, value)| (name, Value::from(value))));
        let rules = settings.get("OMPI_MCA_coll_tuned_dynamic_rules_filename");
        let rules = rules.and_then(|path| fs::read_to_string(path.as_str()?).ok());
        let [cost, read] = self.cost;
        let document = json!({
            "schema_version": 1,
            "format": "loggap-trace",
            "run": format!("{:016x}", self.run),
            "ranks": self.ranks.len(),
            "library": library::version(),
            "command": command,
            "settings": settings,
            "rules": rules,
            "hosts": self.ranks.iter().map(host).collect::<Vec<_>>(),
            "processors": self.processors(),
            "bases_ns": self.ranks.iter().map(|rank| rank.base).collect::<Vec<_>>(),
            "clocks_begin": self.begin,
            "clocks_end": end,
            "cost_per_call_s": cost * 1e-9,
            "clock_reads_s": read * 1e-9,
            "combine_per_byte_s": self.library.combining() * 1e-9,
        });
        let path = format!("{}/trace.json", self.directory);
        let text = format!("{document:#}\n");
        // On a full disk that of the begin stays.
        let new = format!("{path}.new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        if let Err(error) = &written {
            let _nothing_to_do = fs::remove_file(&new);
            complain(format_args!("cannot write '{path}': {error}"));
        }
        written.is_ok()
    }
}

const PING: u64 = 1;
const DONE: u64 = 0;

/// The other end of pings.
struct Peer<'a> {
    job: &'a Job,
    rank: usize,
}

impl Pinger for Peer<'_> {
    type Error = Infallible;

    fn now(&mut self) -> Picos {
        Picos(self.job.now())
    }

    fn ping(&mut self) -> Result<Ping, Infallible> {
        let sent = self.now();
        self.job.send(self.rank, PING);
        let stamped = Picos(self.job.receive(self.rank));
        Ok(Ping { sent, stamped, received: self.now() })
    }
}
