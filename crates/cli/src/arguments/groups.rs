//! The list of commands in groups, those to begin with first.

use std::fmt::Write as _;

use clap::Command;

/// What commands are for, and which they are.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "connect", "hook", "doctor"]),
    ("See what happened, and why", &["explain", "trace", "replay"]),
    ("Hooks elsewhere", &["disconnect", "import", "git-hook", "watch", "emit", "box"]),
    ("Extensions, servers and settings", &["ext", "skill", "mcp", "config", "trust"]),
    ("Work with a model", &["tui", "chat", "run", "model", "session"]),
    ("For your shell and your tools", &["help", "completions", "schema", "man"]),
];

/// How far the names reach.
const NAMES: usize = 12;

/// The same command line, whose help lists the commands in groups.
pub(super) fn grouped(command: Command) -> Command {
    let mut list = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(list, "{title}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(list, "  {name:NAMES$} {}", short(&about.unwrap_or_default()));
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}\n\
         `ollm help COMMAND` says more, `ollm help CODE` explains the code of an error."
    ))
}

/// The first part of a sentence that stands in a list.
fn short(about: &str) -> &str {
    about.split([':', ';']).next().unwrap_or(about)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = Cli::command();
        let mut known: Vec<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_list_fits_a_small_terminal() {
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(short(&about).len() <= 80 - NAMES - 3, "{}: {about}", command.get_name());
        }
    }
}
