//! Help on one screen: `-h` shows the options that most runs need, `--help` shows all.

use clap::Command;

/// Options shown by `-h` besides the arguments, for all subcommands.
pub(super) const SHORT: &str = "\
    port transport block cpu sizes rel_err strict max_time launches output samples json \
    table csv flags verbose plot bind once clients allow max_message device \
    detector latency overhead gap gap_per_byte eager_limit profile preset topology explain \
    sensitivity timeline sweep pattern ranks size exact assume_commutative combine rules \
    summary factors form all iters duration rtt queue_pairs bidirectional \
    report_gbits op counts draws budget interval time assertions hold openmetrics processes assert";

/// Subcommands with further options.
const LONG: [&str; 14] = [
    "measure",
    "lat",
    "bw",
    "serve",
    "fit",
    "simulate",
    "predict",
    "best",
    "check",
    "study overlap",
    "study messages",
    "study noise",
    "goal generate",
    "watch",
];

/// Most examples shown by `-h`.
const EXAMPLES: usize = 3;

/// Gives each subcommand of `command` a `-h` of one screen.
pub(super) fn on_one_screen(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let group = command.get_name().to_owned();
    names.iter().fold(command, |command, name| {
        let full_name = if group == "loggap" { name.clone() } else { format!("{group} {name}") };
        command.mut_subcommand(name, |verb| shortened(verb, &full_name))
    })
}

/// `verb` with a short `-h`, if it has many options; `full_name` are the words that call it.
pub(super) fn shortened(verb: Command, full_name: &str) -> Command {
    let verb = on_one_screen(verb);
    if !LONG.contains(&full_name) {
        return verb;
    }
    let verb = verb.mut_args(|argument| {
        let is_short = |name| argument.get_id() == name;
        let is_shown = argument.is_positional() || SHORT.split_whitespace().any(is_short);
        argument.hide_short_help(!is_shown)
    });
    let more = format!("More options and details: loggap {full_name} --help");
    let Some(whole) = verb.get_after_help().map(ToString::to_string) else {
        return verb.after_help(more);
    };
    let is_long = verb.get_after_long_help().is_some();
    let short: Vec<&str> = whole.lines().take(1 + EXAMPLES).collect();
    let short = if is_long { whole.clone() } else { short.join("\n") };
    let verb = verb.after_help(format!("{short}\n\n{more}"));
    if is_long { verb } else { verb.after_long_help(whole) }
}

/// Most similar name to `typed`, if their edit distance is at most a third of its length.
pub(super) fn nearest<'a>(
    typed: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let distances = names.into_iter().map(|name| (strsim::levenshtein(typed, name), name));
    let (least, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (least * 3 <= typed.chars().count()).then_some(name)
}

/// `did you mean NAME? ` if a name is similar, else empty; to precede a list of names.
pub(super) fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
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
