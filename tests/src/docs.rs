//! Commands in the documents.

use std::fs;
use std::path::Path;

/// Lines of the code blocks of a document, without comments at their end.
///
/// # Panics
///
/// If there is no such document.
#[must_use]
pub fn code(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(document);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut lines, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            lines.push(line.split(" # ").next().unwrap_or(line).trim_end().to_owned());
        }
    }
    lines
}

/// Options of each call of `program` in the code blocks of README.md and docs/, with the document's name.
///
/// # Panics
///
/// If there are no documents.
#[must_use]
pub fn calls(program: &str) -> Vec<(String, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let names = files.map(|name| format!("docs/{}", name.to_str().unwrap()));
    let documents = names.filter(|name| name.ends_with(".md")).chain(["README.md".to_owned()]);
    let calls = documents.flat_map(|document| {
        let lines = code(&document);
        let found = lines.iter().filter_map(|line| options(line, program)).collect::<Vec<_>>();
        found.into_iter().map(move |options| (document.clone(), options))
    });
    calls.collect()
}

/// Words of a line; those between quotes are one.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split('\'').zip([false, true].into_iter().cycle());
    parts.flat_map(|(part, is_quoted)| match is_quoted {
        true => vec![part],
        false => part.split_whitespace().collect(),
    })
}

/// Options of a call of `program` in a line: as the first word, after a prompt, or after `mpirun` or `cargo run`.
fn options(line: &str, program: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = words(line).collect();
    let is_program = |word: &&str| word.rsplit('/').next() == Some(program);
    let at = match words[..] {
        ["cargo", "run", ..] if program == "loggap" => {
            words.iter().position(|word| *word == "--")?
        }
        ["mpirun", ..] => words.iter().position(is_program)?,
        [prompt, name, ..] if prompt.ends_with('$') && is_program(&name) => 1,
        [name, ..] if is_program(&name) => 0,
        _ => return None,
    };
    let options = words[at + 1..].iter().map(|word| (*word).to_owned());
    let options =
        options.take_while(|word| !["|", "&&", "||", "&", ">", "--"].contains(&word.as_str()));
    Some(options.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_with_its_options() {
        for (line, found) in [
            ("loggap lat -s 8", Some("lat -s 8")),
            ("node1$ loggap lat node7 | tee out", Some("lat node7")),
            ("loggap lat --launcher 'a b' -s 8 -- it's", Some("lat --launcher a b -s 8")),
            ("cargo run --release -- measure", Some("measure")),
            ("mpirun -n 2 target/release/loggap-mpi sync", None),
            ("loggap measures a network link", Some("measures a network link")),
            ("cargo build --release", None),
            ("cargo test -p loggap -- --nocapture", None),
            ("", None),
        ] {
            assert_eq!(
                options(line, "loggap").map(|words| words.join(" ")).as_deref(),
                found,
                "{line}"
            );
        }
        let mpi = options("mpirun -n 2 target/release/loggap-mpi sync --check 1s", "loggap-mpi");
        assert_eq!(mpi.unwrap(), ["sync", "--check", "1s"]);
    }
}
