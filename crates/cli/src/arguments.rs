//! The command line, for everything but the hot path.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use ollm_catalog::Overrides;

use crate::command::config::refused;
use crate::error::{Failure, Kind};
use crate::output::Output;
use crate::scaffold::{Language, Purpose};

mod ext;

pub(crate) use ext::{ExtCommand, NewExtension, SetArguments, SkillCommand};

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
    /// Tell on standard error also what went well: which files were read, the plan, how long things took
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run hooks for an event, and see which there are
    Hook {
        #[command(subcommand)]
        command: HookCommand,
    },
    /// Send an event of your own, or any other, through its hooks
    Emit(EmitArguments),
    /// See what came of earlier events: what was planned, what ran, how long it took, what was decided
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// See, switch, approve, set and write extensions: folders that bring hooks, servers, settings and skills
    Ext {
        #[command(subcommand)]
        command: ExtCommand,
    },
    /// Use the prompts that extensions bring
    Skill {
        #[command(subcommand)]
        command: SkillCommand,
    },
    /// Show, check and change the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Watch events pass through hooks in a throwaway home; needs nothing but a shell
    Demo {
        /// Print one JSON object per event instead of a timeline
        #[arg(long)]
        json: bool,
    },
    /// Print the script that makes a shell complete our commands
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands
    Man {
        /// Write one page for each command into this folder
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 continue, 2 do not continue, 3 the data could not be read, 64 wrong usage.")]
pub(crate) struct EmitArguments {
    /// The name of your event, or an event in any dialect's spelling
    pub(crate) name: String,
    /// The event's data as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) data: String,
    /// Print the answer as JSON, as `ollm hook run` does
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Declare a script or a program as a hook
    Add(AddArguments),
    /// Change a hook where it is declared, key by key or in your editor
    Edit(EditArguments),
    /// Remove hooks from the files that declare them; their scripts stay
    Remove(RemoveArguments),
    /// Turn a file of one hook from when/then into the modern form, or back
    Convert(ConvertArguments),
    /// Switch hooks on again, whatever their files say
    Enable(SwitchArguments),
    /// Switch hooks off, for good or for a while
    Disable(SwitchArguments),
    /// Write a hook that works, with golden cases beside it, to begin from
    New(NewArguments),
    /// Try a hook on an event and show all that passed between them, or run golden cases
    Test(TestArguments),
    /// Start a hook for user_triggered by hand
    Trigger(TriggerArguments),
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
pub(crate) struct AddArguments {
    /// The event, in any dialect's spelling
    pub(crate) event: String,
    /// The script or program, in the folder of the hooks or from here
    pub(crate) path: PathBuf,
    /// Further arguments for it
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
    /// The hook's name; without it, that of the script
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Which tools it is for, such as `shell|write_*`
    #[arg(long)]
    pub(crate) matcher: Option<String>,
    /// Run it only where this CEL expression holds
    #[arg(long = "if", value_name = "CEL")]
    pub(crate) condition: Option<String>,
    /// How long it may take, such as 5s
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// What its failure means
    #[arg(long, value_parser = ["allow", "block", "ask"])]
    pub(crate) on_failure: Option<String>,
    /// How urgent it is among its neighbours
    #[arg(long, value_parser = ["critical", "high", "normal", "low"])]
    pub(crate) priority: Option<String>,
    /// The protocol it speaks, where the spelling of the event does not say it
    #[arg(long, value_parser = ["ollm", "gate", "rpc", "agent"])]
    pub(crate) dialect: Option<String>,
    /// What it does, for people
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// The hook file, in the folder of the hooks, JSON or YAML; without it, NAME.json
    #[arg(long)]
    pub(crate) file: Option<String>,
    /// Put it into the project instead of your own folder
    #[arg(long)]
    pub(crate) project: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A value is JSON, or else text: timeout=5000, matcher='shell|write_*', env='{\"MODE\": \"strict\"}'."
)]
pub(crate) struct EditArguments {
    /// The hook's id, or its name if no other hook has it
    pub(crate) id: String,
    /// Keys to set; without any, your editor opens the file
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A key to take away
    #[arg(long, value_name = "KEY")]
    pub(crate) unset: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// The hooks' ids, or their names if no other hook has them
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// The hook file
    pub(crate) file: PathBuf,
    /// The form to turn it into
    #[arg(long, value_enum, default_value = "modern")]
    pub(crate) to: FormName,
    /// Write the file instead of printing it
    #[arg(long)]
    pub(crate) write: bool,
}

/// The forms of a file that holds one hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormName {
    /// eventType, filePatterns, action
    Modern,
    /// when and then
    WhenThen,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 continue, 2 do not continue, 64 the hook is for other events.")]
pub(crate) struct TriggerArguments {
    /// The hook's id, or its name if no other hook has it
    pub(crate) id: String,
    /// What to give it as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) data: String,
    /// Print the answer as JSON, as `ollm hook run` does
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SwitchArguments {
    /// The hooks' ids, or their names if no other hook has them
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    /// How long: 90s, 10m, 2h, 7d; then the hook's file decides again
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) limit: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The hook's name
    pub(crate) name: String,
    /// What it is for
    #[arg(long = "for", value_name = "PURPOSE", value_enum, default_value = "validation")]
    pub(crate) purpose: Purpose,
    /// What it is written in
    #[arg(long = "in", value_name = "LANGUAGE", value_enum, default_value = "python")]
    pub(crate) language: Language,
    /// The event, in any dialect's spelling, where it is not the usual one for its purpose
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Put it into the project instead of your own folder
    #[arg(long)]
    pub(crate) project: bool,
}

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Golden cases are files cases/NAME/*.json beside the file that declares the hook NAME:\n\
    {\"event\": …, \"data\": {…}, \"expect\": {\"flow\": \"block\", \"reason\": \"part of the text\"}}\n\
    Exit codes: 0 fine, 1 the hook failed or a case differs, 4 not approved.")]
pub(crate) struct TestArguments {
    /// The hook's id, or its name if no other hook has it
    #[arg(required_unless_present = "all")]
    pub(crate) id: Option<String>,
    /// Run golden cases: those of the hook, or of all hooks
    #[arg(long, conflicts_with_all = ["event", "data"])]
    pub(crate) all: bool,
    /// The event to try it on, in any dialect's spelling; without it, a sample of the hook's first event
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Data of the event as JSON, in place of what the sample has
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Try again whenever the hook, its script or a case changes
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print a JSON object, or an array of golden cases
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show the last event
    #[command(after_help = "Exit codes: 0 shown, 1 there is none, 5 the trace cannot be read, 64 wrong usage.")]
    Last {
        #[command(flatten)]
        shape: TraceShape,
    },
    /// List events, the newest last
    List {
        #[command(flatten)]
        filters: TraceFilters,
        #[command(flatten)]
        shape: TraceShape,
    },
    /// Show one event
    Show {
        /// The `traceId` of an answer, its beginning, or its end
        id: String,
        #[command(flatten)]
        shape: TraceShape,
    },
}

/// Which events to list.
#[derive(Debug, Args)]
pub(crate) struct TraceFilters {
    /// Only this event, in any dialect's spelling
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Only events for which this hook ran, or was skipped; its id or name
    #[arg(long, value_name = "ID")]
    pub(crate) hook: Option<String>,
    /// Only events that did not continue
    #[arg(long)]
    pub(crate) blocked: bool,
    /// Only events of the last so many seconds, minutes or hours, as in 30s, 10m, 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// At most so many
    #[arg(short, default_value_t = 20, value_name = "NUMBER")]
    pub(crate) number: usize,
}

/// How to show events.
#[derive(Debug, Args)]
pub(crate) struct TraceShape {
    /// Print JSON, as it is stored; the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The form: JSON, in full for people, or one line for each event
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

impl TraceShape {
    pub(crate) fn format(&self) -> Option<Format> {
        if self.json { Some(Format::Json) } else { self.format }
    }
}

/// The forms of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Json,
    Pretty,
    Compact,
}

/// What stands in front of the command.
#[derive(Debug, Default)]
pub(crate) struct Preamble {
    pub(crate) overrides: Overrides,
    pub(crate) verbose: bool,
}

/// What stands in front of the command, and the rest of the command line.
pub(crate) fn preamble(arguments: &[OsString]) -> Result<(Preamble, &[OsString]), Failure> {
    let mut preamble = Preamble::default();
    let mut rest = arguments;
    loop {
        let (setting, after) = match rest {
            [flag, after @ ..] if flag == "-v" || flag == "--verbose" => {
                preamble.verbose = true;
                rest = after;
                continue;
            }
            [flag, setting, after @ ..] if flag == "--set" => (setting.to_str(), after),
            [flag, after @ ..] => match flag.to_str().and_then(|flag| flag.strip_prefix("--set=")) {
                Some(setting) => (Some(setting), after),
                None => break,
            },
            [] => break,
        };
        let pair = setting.and_then(|setting| setting.split_once('='));
        let (key, value) = pair.ok_or_else(|| Failure::usage("`--set` needs KEY=VALUE"))?;
        preamble.overrides.set(key, value).map_err(refused)?;
        rest = after;
    }
    Ok((preamble, rest))
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
        Ok(cli) => {
            if cli.verbose {
                output.be_verbose();
            }
            Ok(Some(cli.command))
        }
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
