//! MPI implementation, and its settings that move protocol changes.

use loggap::link::MpiLibrary;
use mpi::environment;

use crate::job::Job;
use crate::link::Calls;
use crate::sys::settings::{self, Value};

/// An implementation of MPI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Implementation {
    /// Open MPI.
    OpenMpi,
    /// MPICH and its descendants.
    Mpich,
    /// Any other implementation.
    Other,
}

impl Implementation {
    /// Implementation that this process uses.
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

/// Name and version of the library: the first line of its description, up to
/// the first comma.
#[must_use]
pub fn version() -> String {
    let whole = environment::library_version().unwrap_or_default();
    let line = whole.lines().next().unwrap_or_default();
    let name = line.split(',').next().unwrap_or_default();
    name.replace(" Version:", "").replace('\t', " ").trim().trim_end_matches('\0').to_owned()
}

/// Transport between two ranks, as far as the settings tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Route {
    /// Shared memory.
    SharedMemory,
    /// TCP.
    Tcp,
    /// Unknown.
    Unknown,
}

/// A setting that decides at which message size the protocol changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// Name of the setting in the library.
    pub name: &'static str,
    /// Value in bytes.
    pub bytes: u64,
    /// Quantity that it limits.
    pub about: &'static str,
    /// True if it is not set, and the value is the documented default.
    pub is_default: bool,
}

/// Settings of MPI: name, route, and the quantity that they limit.
const LIMITS: [(&str, Route, &str); 5] = [
    ("btl_vader_eager_limit", Route::SharedMemory, "eager limit"),
    ("btl_sm_eager_limit", Route::SharedMemory, "eager limit"),
    ("btl_vader_max_send_size", Route::SharedMemory, "longest fragment"),
    ("btl_tcp_eager_limit", Route::Tcp, "eager limit"),
    ("btl_tcp_max_send_size", Route::Tcp, "longest fragment"),
];

/// Settings of UCX, which are environment variables: name, route, the quantity
/// that they limit, and UCX's default if that is a number of bytes (`ucx_info
/// -c`).
const UCX_LIMITS: [(&str, Route, &str, Option<u64>); 4] = [
    ("UCX_RNDV_THRESH", Route::SharedMemory, "rendezvous", None),
    ("UCX_RNDV_THRESH", Route::Tcp, "rendezvous", None),
    ("UCX_SYSV_SEG_SIZE", Route::SharedMemory, "segment", Some(8_256)),
    ("UCX_TCP_TX_SEG_SIZE", Route::Tcp, "segment", Some(8_192)),
];

/// Other settings that a profile records.
const KEPT: [&str; 3] = ["pml", "btl", "MPIR_CVAR_NOLOCAL"];
/// Environment variables that a profile records if they are set.
const KEPT_VARIABLES: [&str; 2] = ["UCX_TLS", "UCX_NET_DEVICES"];

/// Route between this rank and `peer`.
#[must_use]
pub fn route(job: &Job, peer: i32) -> Route {
    let same_host = job.share_a_host(job.rank(), peer);
    let list = if carries_by_ucx() {
        std::env::var("UCX_TLS").unwrap_or_default()
    } else if let Some(Value::Text(list)) = settings::read("btl") {
        list
    } else {
        String::new()
    };
    if same_host && allows(&list, &["vader", "sm", "shm", "mm", "sysv", "posix", "all"]) {
        Route::SharedMemory
    } else if allows(&list, &["tcp", "all"]) {
        Route::Tcp
    } else {
        Route::Unknown
    }
}

/// True if a list of transports includes one of `names`. An empty list includes
/// all, one that begins with `^` includes those that it does not name.
fn allows(list: &str, names: &[&str]) -> bool {
    let mut given = list.trim_start_matches('^').split(',').map(str::trim);
    let named = given.any(|name| names.contains(&name));
    list.is_empty() || named != list.starts_with('^')
}

/// True if UCX carries the messages: MPICH's device names it, Open MPI's
/// messaging layer is set to it.
fn carries_by_ucx() -> bool {
    let version = environment::library_version().unwrap_or_default();
    let by_open_mpi = settings::read("pml") == Some(Value::Text("ucx".to_owned()));
    version.contains("ch4:ucx") || by_open_mpi
}

/// Limits of this library on `route`.
#[must_use]
pub fn limits(route: Route) -> Vec<Limit> {
    if carries_by_ucx() {
        return ucx_limits(route, |name| std::env::var(name).ok());
    }
    let of_route = LIMITS.iter().filter(|(_, of, _)| *of == route);
    let limit = |&(name, _, about): &(&'static str, Route, &'static str)| {
        let Value::Number(bytes) = settings::read(name)? else { return None };
        Some(Limit { name, bytes: u64::try_from(bytes).ok()?, about, is_default: false })
    };
    of_route.filter_map(limit).collect()
}

fn ucx_limits(route: Route, variable: impl Fn(&str) -> Option<String>) -> Vec<Limit> {
    let of_route = UCX_LIMITS.iter().filter(|(_, of, ..)| *of == route);
    let limit = |&(name, _, about, default): &(&'static str, Route, &'static str, Option<u64>)| {
        // UCX_MM_… applies to all kinds of shared memory.
        let all = name.replace("SYSV", "MM");
        let set = variable(name).or_else(|| variable(&all));
        let bytes = set.as_deref().map_or(default, bytes)?;
        Some(Limit { name, bytes, about, is_default: set.is_none() })
    };
    of_route.filter_map(limit).collect()
}

/// Parses a number of bytes as UCX writes it, such as `8256`, `16k` or `1m`;
/// `None` for `auto` and `inf`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.get(digits.len()..)?.trim_end_matches(['b', 'B']);
    let shift = match unit {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Name of a value on the command line.
pub(crate) fn option_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |known| known.get_name().to_owned())
}

/// Library, calls and settings as a profile records them.
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
        send: option_name(&calls.send),
        receive: option_name(&calls.receive),
        alignment: Some(calls.alignment),
        rotated_bytes: calls.rotated_bytes,
        settings: kept
            .chain(limits)
            .chain(
                KEPT_VARIABLES.iter().filter_map(|&name| Some((name, std::env::var(name).ok()?))),
            )
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
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

    #[test]
    fn lists_of_transports_name_or_leave_out() {
        assert!(allows("", &["tcp"]) && allows("self,tcp", &["tcp"]) && allows("^vader", &["tcp"]));
        assert!(!allows("vader,self", &["tcp"]) && !allows("^tcp,vader", &["tcp"]));
    }

    #[test]
    fn limits_of_ucx_come_from_the_environment_or_its_documentation() {
        let none = ucx_limits(Route::SharedMemory, |_| None);
        let [segment] = &none[..] else { panic!("{none:?}") };
        assert!(segment.bytes == 8_256 && segment.is_default, "{segment:?}");
        let set = |name: &str| match name {
            "UCX_MM_SEG_SIZE" => Some("16k".to_owned()),
            "UCX_RNDV_THRESH" => Some("4096".to_owned()),
            _ => None,
        };
        let both = ucx_limits(Route::SharedMemory, set);
        let bytes: Vec<u64> = both.iter().map(|limit| limit.bytes).collect();
        assert!(bytes == [4_096, 16_384] && both.iter().all(|limit| !limit.is_default), "{both:?}");
        assert_eq!(super::bytes("auto"), None);
        assert_eq!(super::bytes("1m"), Some(1 << 20));
    }
}
