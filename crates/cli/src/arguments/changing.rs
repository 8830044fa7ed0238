//! `--json` of the commands that change something: what they tell becomes one object, in one place for all of them.

use clap::{Arg, ArgAction, ArgMatches, Command};

/// The commands that change something and tell it in words alone.
const CHANGING: &[&[&str]] = &[
    &["completions", "install"],
    &["config", "set"],
    &["config", "unset"],
    &["disconnect"],
    &["ext", "disable"],
    &["ext", "enable"],
    &["ext", "install"],
    &["ext", "new"],
    &["ext", "pin"],
    &["ext", "reload"],
    &["ext", "set"],
    &["ext", "trust"],
    &["ext", "uninstall"],
    &["ext", "update"],
    &["git-hook", "install"],
    &["git-hook", "uninstall"],
    &["hook", "add"],
    &["hook", "convert"],
    &["hook", "disable"],
    &["hook", "edit"],
    &["hook", "enable"],
    &["hook", "new"],
    &["hook", "remove"],
    &["hook", "untrust"],
    &["import"],
    &["man"],
    &["mcp", "add"],
    &["mcp", "remove"],
    &["mcp", "trust"],
    &["mcp", "untrust"],
    &["model", "pull"],
    &["trust", "init"],
];

/// The same command line, with `--json` for these commands.
pub(super) fn added(command: Command) -> Command {
    CHANGING.iter().fold(command, |command, path| below(command, path))
}

fn below(command: Command, path: &[&str]) -> Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |inner| below(inner, rest)),
        None => command.arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print a JSON object with what was done, or the code of the error"),
        ),
    }
}

/// Whether one of these commands is to print JSON.
pub(super) fn is_asked(found: &ArgMatches) -> bool {
    CHANGING.iter().any(|path| {
        let leaf = path.iter().try_fold(found, |found, name| found.subcommand_matches(name));
        leaf.is_some_and(|leaf| leaf.get_flag("json"))
    })
}
