//! The command line, for everything but the hot path.

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use ollm_catalog::Overrides;

use crate::command::config::refused;
use crate::error::{Failure, Kind};
use crate::output::Output;

mod mcp;

pub(crate) use mcp::{AddArguments, CallArguments, McpCommand};

/// Hooks for AI agents: one event in, one verdict out.
#[derive(Debug, Parser)]
#[command(name = "ollm", version, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 proceed, 2 blocked, 3 configuration error, 4 untrusted, 5 environment error, 64 usage."
)]
pub(crate) struct Cli {
    /// Let a setting be this for one run, whatever the files and the environment say; before the command, may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run hooks for an event, and see which there are
    Hook {
        #[command(subcommand)]
        command: HookCommand,
    },
    /// Show, check and change the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look after MCP servers, and call their tools
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Watch events pass through hooks in a throwaway home; needs nothing but a shell
    Demo {
        /// Print one JSON object per event instead of a timeline
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Pass one event through its hooks and print the verdict
    #[command(
        after_help = "The event is JSON on standard input, {\"event\": NAME, \"data\": {…}}, or EVENT with --data.\nExit codes: 0 continue, 2 do not continue, 3 the event could not be read, 64 wrong usage."
    )]
    Run(RunArguments),
    /// List all hooks, where they come from, and whether they are trusted
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one hook
    Show {
        /// The hook's id, or its name if no other hook has it
        id: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show which hooks would run for an event, in which order, and why the others would not
    Plan {
        /// The event, in any dialect's spelling
        event: String,
        /// The event's data as JSON
        #[arg(long, value_name = "JSON")]
        data: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Approve hooks exactly as they are now
    Trust(TrustArguments),
    /// Withdraw the approval of hooks
    #[command(arg_required_else_help = true)]
    Untrust {
        /// The hooks' ids, or their names if no other hook has them
        ids: Vec<String>,
        /// Withdraw every approval
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, who says so, and what was ignored and why
    Show {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what applies for one setting, or for all of a section
    Get {
        /// The setting, such as hooks.timeout, or a section, such as hooks
        key: String,
        /// Print a JSON object with the value and who says so
        #[arg(long)]
        json: bool,
    },
    /// Give a setting a value in config.yaml; everything else in the file stays as it is
    #[command(
        after_help = "VALUE is text, a number, true or false, a list such as \"a,b\" or \"[a, b]\", or a map such as \"{command: npx}\".\nSettings that guard something cannot be changed by an agent."
    )]
    Set {
        /// The setting, such as hooks.timeout
        key: String,
        /// Its value
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Set it for this project instead of for you; a project may only make things stricter
        #[arg(long)]
        project: bool,
    },
    /// Take a setting out of config.yaml, so that the default applies again
    Unset {
        /// The setting, such as hooks.timeout
        key: String,
        /// Take it out of the project's file instead of yours
        #[arg(long)]
        project: bool,
    },
    /// Check both files and the environment; exit 1 if something is wrong, 3 if it stops the program
    Validate {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Replace older names of settings by today's, and keep a copy of the file
    Migrate {
        /// Migrate the project's file instead of yours
        #[arg(long)]
        project: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print where the files are
    Path {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct TrustArguments {
    /// The hooks' ids, or their names if no other hook has them
    pub(crate) ids: Vec<String>,
    /// Show all hooks that wait for approval, and ask once for all of them
    #[arg(long, conflicts_with_all = ["ids", "digest"])]
    pub(crate) all: bool,
    /// Go through all hooks that wait for approval, one by one
    #[arg(long, conflicts_with_all = ["ids", "all", "digest"])]
    pub(crate) review: bool,
    /// List what is approved
    #[arg(long, conflicts_with_all = ["ids", "all", "review", "digest"])]
    pub(crate) list: bool,
    /// With --list: print a JSON array
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// Approve one hook without a terminal by naming the digest that `ollm hook show ID --json` prints
    #[arg(long, value_name = "sha256:…", requires = "ids")]
    pub(crate) digest: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The event, in any dialect's spelling; without it the event is read from standard input
    event: Option<String>,
    /// The event's data as JSON
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// Read the event, and answer, exactly in another agent's form
    #[arg(long, value_name = "NAME", value_parser = ["ollm", "gate", "rpc", "agent"])]
    from: Option<String>,
    /// List also the hooks of the event that do not fit
    #[arg(long)]
    explain: bool,
}

/// The settings in front of the command, and the rest of the command line.
pub(crate) fn overrides(arguments: &[OsString]) -> Result<(Overrides, &[OsString]), Failure> {
    let mut overrides = Overrides::default();
    let mut rest = arguments;
    loop {
        let (setting, after) = match rest {
            [flag, setting, after @ ..] if flag == "--set" => (setting.to_str(), after),
            [flag, after @ ..] => match flag.to_str().and_then(|flag| flag.strip_prefix("--set=")) {
                Some(setting) => (Some(setting), after),
                None => break,
            },
            [] => break,
        };
        let pair = setting.and_then(|setting| setting.split_once('='));
        let (key, value) = pair.ok_or_else(|| Failure::usage("`--set` needs KEY=VALUE"))?;
        overrides.set(key, value).map_err(refused)?;
        rest = after;
    }
    Ok((overrides, rest))
}

/// Whether help is asked for, which only the full parser can give.
pub(crate) fn wants_help(arguments: &[OsString]) -> bool {
    arguments.iter().any(|word| word == "--help" || word == "-h")
}

/// Parses the command line; nothing is left to do when it asked for help, which is printed here.
pub(crate) fn parse(arguments: &[OsString], output: &mut Output) -> Result<Option<Command>, Failure> {
    let words = std::iter::once(OsString::from("ollm")).chain(arguments.iter().cloned());
    let parsed = Cli::command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => Ok(Some(cli.command)),
        Err(error) if error.use_stderr() => {
            output.explain(&error.render().ansi().to_string());
            Err(Failure::new(Kind::Usage, ""))
        }
        Err(error) => {
            output.text(&error.render().ansi().to_string())?;
            Ok(None)
        }
    }
}
