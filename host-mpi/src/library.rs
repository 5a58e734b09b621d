//! Which MPI this is, and the settings that move its changes of protocol.

use loggap::machine::environment::MpiLibrary;
use mpi::environment;

use crate::job::Job;
use crate::link::Calls;
use crate::sys::settings::{self, Value};

/// The implementation of MPI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Implementation {
    /// Open MPI.
    OpenMpi,
    /// MPICH and what descends from it.
    Mpich,
    /// Another one.
    Other,
}

impl Implementation {
    /// That of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(&version())
    }

    fn of(version: &str) -> Self {
        if version.starts_with("Open MPI") {
            Self::OpenMpi
        } else if version.contains("MPICH") {
            Self::Mpich
        } else {
            Self::Other
        }
    }
}

/// The library's name and version: the first line of what it says, up to the
/// first comma.
#[must_use]
pub fn version() -> String {
    let whole = environment::library_version().unwrap_or_default();
    let line = whole.lines().next().unwrap_or_default();
    let name = line.split(',').next().unwrap_or_default();
    name.replace('\t', " ").trim().trim_end_matches('\0').to_owned()
}

/// What carries messages between two ranks, as far as the settings tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Route {
    /// Memory that the ranks share.
    SharedMemory,
    /// TCP.
    Tcp,
    /// Not known.
    Unknown,
}

/// A setting that decides from which size on a message goes by another
/// protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// Its name, as the library knows it.
    pub name: &'static str,
    /// Its value in bytes.
    pub bytes: u64,
    /// What it is about.
    pub about: &'static str,
}

/// Names of settings, with the route they are for and what they limit.
const LIMITS: [(&str, Route, &str); 6] = [
    ("btl_vader_eager_limit", Route::SharedMemory, "eager limit"),
    ("btl_sm_eager_limit", Route::SharedMemory, "eager limit"),
    ("btl_vader_max_send_size", Route::SharedMemory, "longest fragment"),
    ("btl_tcp_eager_limit", Route::Tcp, "eager limit"),
    ("btl_tcp_max_send_size", Route::Tcp, "longest fragment"),
    ("MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE", Route::SharedMemory, "eager limit: cell size"),
];

/// Other settings that a profile keeps.
const KEPT: [&str; 4] = ["pml", "btl", "MPIR_CVAR_NOLOCAL", "MPIR_CVAR_CH4_SHM_POSIX_EAGER"];

/// How this rank and `peer` reach each other.
#[must_use]
pub fn route(job: &Job, peer: i32) -> Route {
    let same_host = job.share_a_host(job.rank(), peer);
    let Some(Value::Text(list)) = settings::read("btl") else {
        return if same_host { Route::SharedMemory } else { Route::Unknown };
    };
    let allows = |names: &[&str]| {
        let mut given = list.trim_start_matches('^').split(',').map(str::trim);
        let named = given.any(|name| names.contains(&name));
        list.is_empty() || named != list.starts_with('^')
    };
    if same_host && allows(&["vader", "sm"]) {
        Route::SharedMemory
    } else if allows(&["tcp"]) {
        Route::Tcp
    } else {
        Route::Unknown
    }
}

/// The limits that this library has on `route`.
#[must_use]
pub fn limits(route: Route) -> Vec<Limit> {
    let of_route = LIMITS.iter().filter(|(_, of, _)| *of == route);
    let limit = |&(name, _, about): &(&'static str, Route, &'static str)| {
        let Value::Number(bytes) = settings::read(name)? else { return None };
        Some(Limit { name, bytes: u64::try_from(bytes).ok()?, about })
    };
    of_route.filter_map(limit).collect()
}

/// What a profile says about the library.
#[must_use]
pub fn fingerprint(calls: Calls, route: Route) -> MpiLibrary {
    let text = |value| match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text,
    };
    let kept = KEPT.iter().filter_map(|&name| Some((name, text(settings::read(name)?))));
    let limits = limits(route);
    let limits = limits.iter().map(|limit| (limit.name, limit.bytes.to_string()));
    MpiLibrary {
        version: version(),
        send: calls.send.name().to_owned(),
        receive: calls.receive.name().to_owned(),
        settings: kept.chain(limits).map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_are_known_by_what_they_say() {
        let of = Implementation::of;
        assert_eq!(of("Open MPI v4.1.4, package: Debian OpenMPI"), Implementation::OpenMpi);
        assert_eq!(of("MPICH Version:\t4.0.2\nMPICH Release date"), Implementation::Mpich);
        assert_eq!(of("Something 1.0"), Implementation::Other);
    }
}
