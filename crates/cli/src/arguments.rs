//! The command line, for everything but the hot path.

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::{Failure, Kind};
use crate::output::Output;

/// Hooks for AI agents: one event in, one verdict out.
#[derive(Debug, Parser)]
#[command(name = "ollm", version, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 proceed, 2 blocked, 3 configuration error, 4 untrusted, 5 environment error, 64 usage."
)]
pub(crate) struct Cli {
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
    /// Give a model a task, and let it work with tools while every hook has its say
    #[command(after_help = TASK_HELP)]
    Run(TaskArguments),
    /// Talk with a model on the terminal, while every hook has its say
    #[command(after_help = CHAT_HELP)]
    Chat {
        #[command(flatten)]
        agent: AgentArguments,
    },
    /// Look at earlier conversations
    Session {
        #[command(subcommand)]
        command: SessionCommand,
    },
    /// Watch events pass through hooks in a throwaway home; needs nothing but a shell
    Demo {
        /// Print one JSON object per event instead of a timeline
        #[arg(long)]
        json: bool,
    },
}

const TASK_HELP: &str = "What is piped in is added to the prompt. Without --model, OLLM_MODEL is used, else the first model of a local Ollama.
Keys come from the environment: OPENAI_API_KEY, or OLLM_MODEL_KEY for any server.
Exit codes: 0 done, 1 ended by a bound or an expectation of a replay, 2 refused by a hook, 5 no answer, 64 usage, 130 interrupted.";

const CHAT_HELP: &str = "A backslash at the end of a line goes on with the next one. Ctrl-C interrupts the model, Ctrl-D leaves; /help lists
the commands. Models and keys are found as by `ollm run`.";

#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    /// What to do; without it, what is piped in
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
    /// Print one JSON object when all is over
    #[arg(long)]
    pub(crate) json: bool,
    /// Print everything that happens, one JSON object per line
    #[arg(long, conflicts_with = "json")]
    pub(crate) stream_json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// The model: ollama:NAME, openai:NAME@URL for any server that speaks OpenAI's protocol, or replay:FILE
    #[arg(long, value_name = "PROVIDER:NAME[@BASE_URL]")]
    pub(crate) model: Option<String>,
    /// When to ask before a tool runs: before every change, before all but edits of files here, or never
    #[arg(long, value_name = "MODE", value_parser = ["ask", "auto", "yolo"], default_value = "ask")]
    pub(crate) approval: String,
    /// Another folder that tools may touch
    #[arg(long, value_name = "FOLDER")]
    pub(crate) allow: Vec<std::path::PathBuf>,
    /// Write the model's answers to a new file, for --model replay:FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<std::path::PathBuf>,
    /// Go on with an earlier conversation
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,
    /// Go on with the latest conversation of this folder
    #[arg(long = "continue")]
    pub(crate) continue_last: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the conversations there are, the latest first
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Go on with a conversation on the terminal, as `ollm chat --resume` does
    Resume {
        /// Its id, or the beginning of it
        id: String,
        #[command(flatten)]
        agent: AgentArguments,
    },
    /// Show one conversation
    Show {
        /// Its id, or the beginning of it
        id: String,
        /// Print a JSON object
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
