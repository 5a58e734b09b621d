//! `loggap-mpi trace`: runs a program with the library that records its MPI calls.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use loggap::terminal::{CliError, Console, Exit};
use nix::sys::signal::{SigSet, Signal};

use super::is_first;

/// Name of the library, as cargo names that of the package `loggap-mpi-trace`.
const LIBRARY: &str = "libloggap_mpi_trace.so";

/// Run a program and record its MPI calls, a file a rank.
///
/// Works with programs in C, C++ and Fortran that use Open MPI or MPICH, whichever MPI loggap-mpi
/// was built for. 'loggap trace info DIR' shows what they did. In place of this command a job script
/// may set LD_PRELOAD to the path that --library prints, and LOGGAP_TRACE_DIR.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 4 loggap-mpi trace -o lj.trace -- lmp -in in.lj
  srun -n 64 loggap-mpi trace -- ./app
  LD_PRELOAD=$(loggap-mpi trace --library) mpirun -n 4 ./app")]
pub(super) struct Args {
    /// Directory of the trace; it is created if missing, and files in it are replaced.
    #[arg(short = 'o', long, value_name = "DIR", default_value = "loggap-trace")]
    output: PathBuf,

    /// Do not keep the program's arguments in the trace.
    #[arg(long)]
    no_arguments: bool,

    /// Record only when each rank began and ended, as 'check --app' does of runs that it does not
    /// trace.
    #[arg(long)]
    ends_only: bool,

    /// Print the path of the library to preload, and end.
    #[arg(long)]
    library: bool,

    /// Program and its arguments.
    #[arg(last = true, required_unless_present = "library", value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let library = library()?;
    if args.library {
        writeln!(console.data(), "{}", library.display())?;
        return Ok(Exit::Done);
    }
    let Some((program, arguments)) = args.program.split_first() else {
        return Err(CliError::usage("no program is given: loggap-mpi trace -- PROGRAM"));
    };
    let path = found(program)?;
    check(&path)?;
    let directory = std::path::absolute(&args.output).map_err(CliError::usage)?;
    fs::create_dir_all(&directory).map_err(|error| {
        CliError::usage(format_args!("cannot create '{}': {error}", directory.display()))
    })?;
    if is_first() {
        clear(&directory);
    }
    let words = args.program.iter().map(|word| word.to_string_lossy());
    let words: Vec<_> = words.take(if args.no_arguments { 1 } else { usize::MAX }).collect();
    let mut preload = library.into_os_string();
    if let Some(others) = env::var_os("LD_PRELOAD") {
        preload.push(":");
        preload.push(others);
    }
    let mut command = Command::new(&path);
    if is_first() {
        command.env("LOGGAP_TRACE_PROCESS", process::id().to_string());
    }
    if args.ends_only {
        command.env("LOGGAP_TRACE_ENDS_ONLY", "1");
    }
    // The program handles signals as if it were started without this.
    let _as_it_is = SigSet::from(Signal::SIGXFSZ).thread_unblock();
    let error = command
        .arg0(program)
        .args(arguments)
        .env("LD_PRELOAD", preload)
        .env("LOGGAP_TRACE_DIR", directory)
        .env("LOGGAP_TRACE_COMMAND", serde_json::to_string(&words).unwrap_or_default())
        .exec();
    Err(CliError::usage(format_args!("cannot run '{}': {error}", path.display())))
}

/// Removes an earlier trace, which may have more ranks. No rank writes before this one is in `MPI_Init`.
fn clear(directory: &Path) {
    let names =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_of_rank = |name: &str| {
        let number = name.strip_suffix(".trace");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    for name in names
        .filter(|name| name.to_str().is_some_and(|name| name == "trace.json" || is_of_rank(name)))
    {
        let _replaced_later = fs::remove_file(directory.join(name));
    }
}

/// Path of the library: where cargo builds it, beside this program, or in the folder of libraries
/// beside that of programs.
fn library() -> Result<PathBuf, CliError> {
    let program = env::current_exe().map_err(CliError::failed)?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places =
        ["deps", "", "../lib", "../lib/loggap"].map(|place| folder.join(place).join(LIBRARY));
    let found = places.iter().find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
        CliError::refused(format_args!(
            "no {LIBRARY} in '{}' or '../lib': copy it there from target/release/deps, where \
             `cargo build --release -p loggap-mpi` leaves it",
            folder.display()
        ))
    })
}

/// Path of a program, as a shell finds it.
pub(in crate::cli) fn found(program: &OsStr) -> Result<PathBuf, CliError> {
    let here = Path::new(program);
    let path = if here.components().count() > 1 {
        Some(here.to_owned())
    } else {
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders).map(|folder| folder.join(here)).find(|path| path.is_file())
    };
    path.filter(|path| path.is_file())
        .ok_or_else(|| CliError::usage(format_args!("no program '{}'", here.display())))
}

/// Refuses a program that cannot be traced. What a script, an interpreter or a wrapper such as
/// `taskset` starts is seen when it runs.
pub(in crate::cli) fn check(path: &Path) -> Result<(), CliError> {
    let refused = |why: &str| Err(CliError::usage(format_args!("'{}' {why}", path.display())));
    let listed = Command::new("ldd").arg(path).env("LC_ALL", "C").env_remove("LD_PRELOAD").output();
    let Ok(listed) = listed else { return Ok(()) };
    let text = [listed.stdout, listed.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if is_elf(path)?
        && ["not a dynamic executable", "statically linked"].iter().any(|said| text.contains(said))
    {
        return refused("is linked statically: link it with its MPI as a shared library");
    }
    let needs = |names: &[&str]| {
        let mut needed = text.split_whitespace();
        needed.any(|word| names.iter().any(|name| word.starts_with(name)))
    };
    let open_mpi = needs(&["libmpi.so.40", "libmpi_mpifh.so", "libopen-rte.so", "libmpi.so.80"]);
    let mpich = needs(&["libmpich", "libmpi.so.12", "libmpifort.so.12"]);
    let is_set = |name| env::var_os(name).is_some();
    match (open_mpi, mpich) {
        (true, false) if is_set("MPI_LOCALNRANKS") && !is_set("OMPI_COMM_WORLD_SIZE") => {
            refused("uses Open MPI, and was started by the mpirun of MPICH: use that of Open MPI")
        }
        (false, true) if is_set("OMPI_COMM_WORLD_SIZE") => {
            refused("uses MPICH, and was started by the mpirun of Open MPI: use that of MPICH")
        }
        _ => Ok(()),
    }
}

fn is_elf(path: &Path) -> Result<bool, CliError> {
    let mut begin = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut begin));
    read.map_err(|error| {
        CliError::usage(format_args!("cannot read '{}': {error}", path.display()))
    })?;
    Ok(begin == *b"\x7fELF")
}
