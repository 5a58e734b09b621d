//! Wrappers from the table of calls: a line of `call!` each, for the macro in `lib.rs`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=calls.txt");
    println!("cargo:rerun-if-changed=build.rs");
    let table = fs::read_to_string("calls.txt")?;
    let (mut wrappers, mut known) = (String::new(), Vec::new());
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(names), Some(action)) = (words.next(), words.next()) else {
            return Err(format!("calls.txt: no action: {line}").into());
        };
        let roles_of_line: Vec<&str> = words.collect();
        for name in names.split(',') {
            for (name, action, roles) in expanded(name, action, &roles_of_line) {
                known.push(wrapper(
                    &mut wrappers,
                    known.len(),
                    &name,
                    action,
                    &roles,
                    &roles_of_line,
                )?);
            }
        }
    }
    let count = known.len();
    writeln!(wrappers, "/// Number of traced calls.\npub(crate) const CALLS: u32 = {count};")?;
    writeln!(wrappers, "/// Their names.\npub(crate) static NAMES: [&str; {count}] = {known:?};")?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("calls.rs"), wrappers)?;
    Ok(())
}

/// A name with an exclamation mark stands for three calls.
fn expanded<'a>(
    name: &str,
    action: &'a str,
    roles: &[&'a str],
) -> Vec<(String, &'a str, Vec<&'a str>)> {
    let Some(name) = name.strip_suffix('!') else {
        return vec![(name.to_owned(), action, roles.to_vec())];
    };
    let immediate = [roles, &["request"]].concat();
    vec![
        (name.to_owned(), action, roles.to_vec()),
        (format!("I{}", name.to_lowercase()), action, immediate),
        (format!("{name}_init"), "Name", vec!["."; roles.len() + 2]),
    ]
}

fn wrapper(
    out: &mut String,
    id: usize,
    name: &str,
    action: &str,
    roles: &[&str],
    counted: &[&str],
) -> Result<String, std::fmt::Error> {
    let (name, strings) = name.split_once('+').unwrap_or((name, "0"));
    let (name, fortran) = name.split_once('/').unwrap_or((name, ""));
    let fortran = fortran.parse().unwrap_or(roles.len());
    let words = |letter: char, count: usize| {
        (0..count).map(|at| format!("{letter}{at}")).collect::<Vec<_>>().join(" ")
    };
    let known = roles.iter().enumerate().filter(|(_, role)| **role != ".");
    let positions: Vec<_> = known.map(|(at, role)| format!("{role}: {at}, ")).collect();
    let low = name.to_lowercase();
    let (positions, arguments) = (positions.concat(), words('a', roles.len()));
    let mut call = |suffix: &str, count: &str| {
        writeln!(
            out,
            "call! {{ {id} {name} {name}{suffix} {count} {action} {{{positions}}} MPI_{name}{suffix} \
             c\"PMPI_{name}{suffix}\" [{arguments}] }}"
        )
    };
    call("", "Int")?;
    let has_counts =
        ["scount", "rcount", "scounts", "rcounts"].iter().any(|at| counted.contains(at));
    // With MPI_Count, of MPI 4.
    if has_counts {
        call("_c", "Large")?;
    }
    let [fortran, strings] = [words('a', fortran), words('h', strings.parse().unwrap_or(0))];
    for (language, ending) in [("Fortran", ""), ("Modern", "f08_"), ("Descriptors", "f08ts_")] {
        let symbol = format!("mpi_{low}_{ending}");
        writeln!(
            out,
            "fortran! {{ {name} {language} {symbol} c\"{symbol}\" [{fortran}] [{strings}] }}"
        )?;
    }
    Ok(name.to_owned())
}
