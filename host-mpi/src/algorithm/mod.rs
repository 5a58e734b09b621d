//! Algorithms of a library's collective operations, and their predicted times.
//!
//! [`force`] requests algorithms of the table before MPI is initialised;
//! afterwards [`in_force`] reads through MPI's tool interface which ones the
//! library will use. A [`Program`] is the schedule of an algorithm;
//! [`makespan`] simulates it with the [`MessageCost`]s of a profile,
//! [`repeated`] repeats it under noise.

mod noise;
mod program;
mod simulate;
mod table;

pub use loggap::check::{End, MessageCost, protocols};
use loggap::collective::COMPONENTS;
pub use loggap::collective::Shape as Tuned;
pub use noise::{Repeated, repeated};
pub use program::{Program, Shape, Way};
pub use simulate::{PredictError, makespan};
pub use table::Known;

use crate::collective::operation::Collective;
use crate::job::launched;
use crate::library::Implementation;
use crate::sys::environment;
use crate::sys::settings::{self, Value};
use table::KNOWN;

/// Environment variables that make a library accept a choice of algorithm, with
/// their values.
const SWITCHES: [(&str, &str); 2] =
    [("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"), ("MPIR_CVAR_DEVICE_COLLECTIVES", "none")];

/// Requests known algorithms by environment variables, for any MPI library.
/// Variables that are already set stay. Call it only at the beginning of
/// `main`, before there are other threads and before MPI is initialised.
pub fn force() {
    let ranks = launched().unwrap_or(1);
    for (name, value) in SWITCHES {
        environment::set_unless_given(name, value);
    }
    for known in KNOWN.iter().filter(|known| known.holds(ranks)) {
        let (name, value) = known.assignment();
        // Of several entries for an operation the first one stays.
        environment::set_unless_given(&name, &value);
    }
}

/// The algorithm that an operation uses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InForce {
    /// An algorithm of the table.
    Known(&'static Known),
    /// Another algorithm, or the library's own choice: description of the setting.
    Other(String),
}

impl InForce {
    /// Description for reports.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Known(known) => known.name.to_owned(),
            Self::Other(words) => words.clone(),
        }
    }
}

/// True if the table has an algorithm of `collective`.
#[must_use]
pub fn has_known(collective: Collective) -> bool {
    KNOWN.iter().any(|known| known.collective == collective)
}

/// Algorithm of `collective` on `ranks` ranks in this process, once MPI is initialised.
#[must_use]
pub fn in_force(collective: Collective, ranks: u32) -> InForce {
    read_with(Implementation::of_this_process(), collective, ranks, settings::read)
}

fn read_with(
    library: Implementation,
    collective: Collective,
    ranks: u32,
    read: impl Fn(&str) -> Option<Value>,
) -> InForce {
    let of_library =
        || KNOWN.iter().filter(|known| (known.library, known.collective) == (library, collective));
    let Some(variable) = of_library().next().map(Known::variable) else {
        return InForce::Other("unknown to loggap".to_owned());
    };
    if let Some(words) = own_choice(library, &read) {
        return InForce::Other(words);
    }
    match read(&variable) {
        Some(Value::Number(0)) => InForce::Other(format!("chosen by the library ({variable})")),
        Some(Value::Number(number)) => {
            let found = of_library().find(|known| known.number == number && known.holds(ranks));
            found.map_or_else(|| InForce::Other(format!("{variable} = {number}")), InForce::Known)
        }
        Some(Value::Text(text)) => InForce::Other(format!("{variable} = {text}")),
        None => InForce::Other(format!("this library has no {variable}")),
    }
}

/// Reason why the library ignores its algorithm variables, if it does.
fn own_choice(library: Implementation, read: impl Fn(&str) -> Option<Value>) -> Option<String> {
    const RULES: &str = "coll_tuned_use_dynamic_rules";
    const DEVICE: &str = "MPIR_CVAR_DEVICE_COLLECTIVES";
    /// Number of `none` among `all`, `none`, `percoll`.
    const NONE: Value = Value::Number(1);
    match library {
        Implementation::OpenMpi => {
            let is_on = match read(RULES) {
                // A boolean of one byte.
                Some(Value::Text(text)) => !text.is_empty(),
                Some(Value::Number(number)) => number != 0,
                None => false,
            };
            if !is_on {
                return Some(format!("chosen by the library ({RULES} is off)"));
            }
            rival(read)
        }
        Implementation::Mpich => {
            (read(DEVICE) != Some(NONE)).then(|| format!("chosen by the device ({DEVICE})"))
        }
        Implementation::Other => None,
    }
}

/// Component of Open MPI that takes precedence over `tuned`. Each operation is
/// done by the available component of the highest priority.
fn rival(read: impl Fn(&str) -> Option<Value>) -> Option<String> {
    let variable = |component: &str| format!("coll_{component}_priority");
    let priority = |component: &str| match read(&variable(component)) {
        Some(Value::Number(priority)) => Some(priority),
        _ => None,
    };
    let Some(tuned) = priority("tuned") else { return Some("without coll_tuned".to_owned()) };
    let above = |component: &&str| priority(component).is_some_and(|priority| priority >= tuned);
    let name = COMPONENTS.into_iter().find(above)?;
    Some(format!("by coll_{name}, which goes before coll_tuned ({})", variable(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_that_goes_before_tuned_is_named() {
        let with = |basic| {
            move |name: &str| match name {
                "coll_tuned_priority" => Some(Value::Number(30)),
                "coll_basic_priority" => Some(Value::Number(basic)),
                name => open_mpi(4)(name),
            }
        };
        let of = |basic| read_with(Implementation::OpenMpi, Collective::Barrier, 3, with(basic));
        assert_eq!(of(29).name(), "bruck");
        assert!(of(30).name().contains("coll_basic_priority"), "{:?}", of(30));
        assert_eq!(rival(|_| None).as_deref(), Some("without coll_tuned"));
    }

    fn open_mpi(barrier: i64) -> impl Fn(&str) -> Option<Value> {
        move |name| match name {
            "coll_tuned_use_dynamic_rules" => Some(Value::Text("\u{1}".to_owned())),
            "coll_tuned_barrier_algorithm" => Some(Value::Number(barrier)),
            "coll_tuned_priority" => Some(Value::Number(30)),
            _ => None,
        }
    }

    #[test]
    fn what_is_set_is_found_in_the_table() {
        let of = |number, ranks| {
            read_with(Implementation::OpenMpi, Collective::Barrier, ranks, open_mpi(number)).name()
        };
        assert_eq!(of(4, 3), "bruck");
        assert_eq!(of(3, 4), "recursive_doubling");
        assert_eq!(of(3, 3), "coll_tuned_barrier_algorithm = 3");
        assert_eq!(of(0, 4), "chosen by the library (coll_tuned_barrier_algorithm)");
    }

    #[test]
    fn what_the_library_decides_is_said() {
        let off = |_: &str| Some(Value::Text(String::new()));
        let choice = read_with(Implementation::OpenMpi, Collective::Bcast, 2, off);
        assert!(choice.name().contains("is off"), "{choice:?}");
        let device = |name: &str| Some(Value::Number(if name.contains("DEVICE") { 2 } else { 1 }));
        let choice = read_with(Implementation::Mpich, Collective::Bcast, 2, device);
        assert!(choice.name().contains("device"), "{choice:?}");
        let none = read_with(Implementation::Other, Collective::Bcast, 2, |_| None);
        assert_eq!(none.name(), "unknown to loggap");
    }

    #[test]
    fn each_operation_that_is_checked_has_an_algorithm_for_any_number_of_ranks() {
        use Collective as C;
        let all = [
            C::Bcast,
            C::Allreduce,
            C::Reduce,
            C::Barrier,
            C::Gather,
            C::Scatter,
            C::Allgather,
            C::Alltoall,
        ];
        for library in [Implementation::OpenMpi, Implementation::Mpich] {
            for collective in all {
                for ranks in 2..9 {
                    let fits = |known: &&Known| {
                        (known.library, known.collective) == (library, collective)
                            && known.holds(ranks)
                    };
                    assert!(KNOWN.iter().any(|known| fits(&known)), "{collective:?} {ranks}");
                }
            }
        }
    }
}
