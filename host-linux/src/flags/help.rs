//! Help on one screen: `-h` shows the options that most runs need, `--help` shows all; and the name
//! that was meant.

use clap::Command;

/// Most examples shown by `-h`.
const EXAMPLES: usize = 3;

/// What `-h` shows of the verbs of a program.
#[derive(Clone, Copy, Debug)]
pub struct ShortHelp {
    /// Verbs that have too many options for a screen, as they are called.
    pub long: &'static [&'static str],
    /// Options of these that are shown besides the arguments, with blanks between them.
    pub options: &'static str,
}

impl ShortHelp {
    /// Gives each verb of `program` a `-h` of one screen.
    #[must_use]
    pub fn of(&self, program: Command) -> Command {
        let name = program.get_name().to_owned();
        self.of_verbs(program, &name)
    }

    fn of_verbs(&self, group: Command, words: &str) -> Command {
        let names: Vec<String> =
            group.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        names.iter().fold(group, |group, name| {
            let words = format!("{words} {name}");
            group.mut_subcommand(name, |verb| self.shortened(self.of_verbs(verb, &words), &words))
        })
    }

    /// `verb` with a short `-h`, if it has many options; `words` call it.
    fn shortened(&self, verb: Command, words: &str) -> Command {
        let full_name = words.split_once(' ').map_or(words, |(_, verb)| verb);
        if !self.long.contains(&full_name) {
            return verb;
        }
        let verb = verb.mut_args(|argument| {
            let is_short = |name| argument.get_id() == name;
            let is_shown =
                argument.is_positional() || self.options.split_whitespace().any(is_short);
            argument.hide_short_help(!is_shown)
        });
        let more = format!("More options and details: {words} --help");
        let Some(whole) = verb.get_after_help().map(ToString::to_string) else {
            return verb.after_help(more);
        };
        let is_long = verb.get_after_long_help().is_some();
        let short: Vec<&str> = whole.lines().take(1 + EXAMPLES).collect();
        let short = if is_long { whole.clone() } else { short.join("\n") };
        let verb = verb.after_help(format!("{short}\n\n{more}"));
        if is_long { verb } else { verb.after_long_help(whole) }
    }
}

/// Most similar name to `typed`, if their edit distance is at most a third of its length.
pub(crate) fn nearest<'a>(
    typed: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let distances = names.into_iter().map(|name| (strsim::levenshtein(typed, name), name));
    let (least, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (least * 3 <= typed.chars().count()).then_some(name)
}

/// `did you mean NAME? ` if a name is similar, else empty; to precede a list of names.
pub(crate) fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, names).map_or_else(String::new, |name| format!("did you mean '{name}'? "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_has_a_nearest_name_and_another_word_has_none() {
        let names = ["allgather", "allreduce", "alltoall", "bcast"];
        assert_eq!(nearest("alreduce", names), Some("allreduce"));
        assert_eq!(nearest("alltoal", names), Some("alltoall"));
        assert_eq!(nearest("brodcast", ["bcast", "mpi-broadcast"]), None);
        assert_eq!(nearest("x", names), None);
        assert_eq!(did_you_mean("bcats", names), "");
    }
}
