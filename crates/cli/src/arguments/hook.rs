//! The command line of `ollm hook`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ollm_app::scaffold::{Language, Purpose};
use ollm_protocol::Dialect;
use ollm_protocol::units::duration;

use super::{dialect, dialect_names, languages, purposes};

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Pass one event through its hooks and print the verdict
    #[command(
        after_help = "The event is JSON on standard input, {\"event\": NAME, \"data\": {…}}, or EVENT with --data.\nExit codes: 0 continue, 2 do not continue, 3 the event could not be read, 64 wrong usage."
    )]
    Run(RunArguments),
    /// List all hooks, where they come from, and whether they are trusted
    List(ListArguments),
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
    Add(Box<AddArguments>),
    /// Change a hook where it is declared, key by key or in your editor
    Edit(EditArguments),
    /// Remove hooks from the files that declare them, and if you like their scripts and golden cases
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
    /// Say everything that is wrong with hook files: all of them, or one file or folder
    #[command(
        after_help = "Nothing runs, and nothing must be approved.\nExit codes: 0 nothing is wrong, 1 something is, in whatever file, 3 the configuration cannot be read."
    )]
    Validate {
        /// A hook file, or a folder of them, wherever it is
        file: Option<PathBuf>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Start a hook for user_triggered by hand
    Trigger(TriggerArguments),
    /// Approve hooks exactly as they are now
    Trust(TrustArguments),
    /// Withdraw the approval of hooks
    #[command(arg_required_else_help = true)]
    Untrust {
        /// The hooks' ids, or their names if no other hook has them; `trusted` for all hooks of the project's hooks/trusted
        ids: Vec<String>,
        /// Withdraw every approval
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 listed, 1 listed, but a file or a declaration cannot be read.")]
pub(crate) struct ListArguments {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the ids as well
    #[arg(long)]
    pub(crate) long: bool,
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
    #[arg(long, value_parser = dialect_names())]
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
    /// Remove also the scripts and golden cases that no other hook needs
    #[arg(long)]
    pub(crate) with_files: bool,
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
#[command(
    after_help = "In patterns `*` stands for any text and `?` for one character. The words of a pattern of commands must be in one\ncommand, in this order; a pattern of files fits in any folder. Options with patterns may be given several times."
)]
pub(crate) struct NewArguments {
    /// The hook's name
    pub(crate) name: String,
    /// What it is for, where no other option says it [default: validation]
    #[arg(long = "for", value_name = "PURPOSE", value_parser = purposes(), group = "intent")]
    pub(crate) purpose: Option<Purpose>,
    /// Refuse calls that read, write or name such files, as in '*.env'
    #[arg(long, value_name = "PATTERN", group = "intent")]
    pub(crate) deny_files: Vec<String>,
    /// Refuse such commands, as in 'git push --force*'
    #[arg(long, value_name = "PATTERN", group = "intent")]
    pub(crate) deny_commands: Vec<String>,
    /// Have a person decide about such commands, as in 'npm publish*'
    #[arg(long, value_name = "PATTERN", group = "intent")]
    pub(crate) ask_before: Vec<String>,
    /// Keep a log of tool calls
    #[arg(long, group = "intent")]
    pub(crate) log: bool,
    /// Tell the agent what this file of the project says, before it begins
    #[arg(long, value_name = "FILE", group = "intent")]
    pub(crate) context_from: Option<String>,
    /// What it is written in
    #[arg(long = "in", visible_alias = "lang", value_name = "LANGUAGE", value_parser = languages(), default_value = "python")]
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
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct TestArguments {
    /// The hook's id, or its name if no other hook has it
    #[arg(required_unless_present = "all")]
    pub(crate) id: Option<String>,
    /// Run golden cases: those of the hook, or of all hooks
    #[arg(long, conflicts_with_all = ["event", "data", "from_trace"])]
    pub(crate) all: bool,
    /// The event to try it on, in any dialect's spelling; without it, a sample of the hook's first event
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Try it on a recorded event: a `traceId`, its beginning, or its end; needs `trace.payload: full`
    #[arg(long, value_name = "TRACE-ID", conflicts_with = "event")]
    pub(crate) from_trace: Option<String>,
    /// Data of the event as JSON, in place of what the sample has
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Run it in its box, or in the least one where it has none, and print what it opened and reached
    #[arg(long = "box", conflicts_with = "all")]
    pub(crate) in_box: bool,
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
    /// The hooks' ids, or their names if no other hook has them; `trusted` for all hooks of the project's hooks/trusted
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
    /// Print a JSON object with what was done, or the code of the error; with --list a JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Approve without a terminal by naming the digest that `ollm hook show ID --json` prints: `digest` of the hook, or
    /// `groupDigest` of all hooks of its group
    #[arg(long, value_name = "sha256:…", requires = "ids")]
    pub(crate) digest: Option<String>,
    /// Approve for good also what runs files or packages that no approval covers
    #[arg(long, conflicts_with = "list")]
    pub(crate) uncovered: bool,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct RunArguments {
    /// The event, in any dialect's spelling; without it the event is read from standard input. With --from, what an event is
    /// called that does not say so itself
    pub(crate) event: Option<String>,
    /// The event's data as JSON
    #[arg(long, value_name = "JSON", requires = "event", conflicts_with = "from")]
    pub(crate) data: Option<String>,
    /// Read the event, and answer, exactly in another agent's form
    #[arg(long, value_name = "NAME", value_parser = dialect())]
    pub(crate) from: Option<&'static dyn Dialect>,
    /// How long the agent waits for the answer, where its settings say so, as in `60s`; hooks that still run then have failed
    #[arg(long, value_name = "TIME", requires = "from", value_parser = |text: &str| duration(text).ok_or("a time is a number with ms, s, m or h"))]
    pub(crate) within: Option<Duration>,
    /// Have a shell command that is not refused run in a box, as `ollm box` does
    #[arg(long = "box", requires = "from")]
    pub(crate) in_box: bool,
    /// List also the hooks of the event that do not fit
    #[arg(long)]
    pub(crate) explain: bool,
}
