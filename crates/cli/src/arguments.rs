//! The command line, for everything but the hot path.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use ollm_app::AppContext;
use ollm_app::command_box::BoxPolicy;
use ollm_app::scaffold::{Language, Purpose};
use ollm_catalog::Overrides;
use ollm_protocol::dialect::{all, by_name};
use ollm_protocol::{Code, Dialect};

use crate::command::config::refused;
use crate::error::Failure;
use crate::output::{Output, shown_width};

pub(crate) mod agent;
mod candidates;
mod changing;
pub(crate) mod config;
pub(crate) mod ext;
mod groups;
pub(crate) mod hook;
pub(crate) mod mcp;
pub(crate) mod trace;
pub(crate) mod trust;

pub(crate) use candidates::{NameSource, names};

use agent::{
    AgentArguments, CHAT_HELP, ModelCommand, SessionCommand, TASK_HELP, TUI_HELP, TaskArguments, TuiArguments,
};
use config::ConfigCommand;
use ext::{ExtCommand, SkillCommand};
use hook::HookCommand;
use mcp::McpCommand;
use trace::{TraceArguments, TraceFilters};
use trust::TrustCommand;

const WATCH_HELP: &str = "Files that .gitignore or .ollmignore names are left out. While a chat runs in the project, the chat tells hooks instead.\n\nExit codes: 5 the project is gone, 129, 130 or 143 a signal ended it.";

/// Hooks for AI agents: one event in, one verdict out.
#[derive(Debug, Parser)]
#[command(name = "ollm", version, disable_help_subcommand = true, subcommand_required = true, max_term_width = 120)]
#[command(
    after_help = "Exit codes: 0 proceed, 1 a finding (a failed test, a bad file, nothing to show), 2 blocked, 3 configuration error, 4 untrusted, 5 environment error, 64 usage."
)]
pub(crate) struct Cli {
    /// Let a setting be this for one run, whatever the files and the environment say; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    verbosity: Verbosity,
}

#[derive(Debug, Args)]
struct Verbosity {
    /// Verbose: also log files read, the plan and timings to stderr
    #[arg(long, short, global = true)]
    verbose: bool,
}

/// One command alone.
#[derive(Debug, Parser)]
struct Alone<A: Args> {
    #[command(flatten)]
    arguments: A,
    #[command(flatten)]
    verbosity: Verbosity,
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
    /// List the agents, or let one ask ollm at each of its events
    Connect(ConnectArguments),
    /// Take out of an agent's settings what `connect` put there
    Disconnect(DisconnectArguments),
    /// Take over the hooks that another agent has in its settings; they then run under every agent
    Import(ImportArguments),
    /// Have the commits of this repository go through your hooks
    GitHook {
        #[command(subcommand)]
        command: GitHookCommand,
    },
    /// Tell hooks of every file that changes in this project; people and programs may create, edit or delete it
    #[command(after_help = WATCH_HELP)]
    Watch {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run a command in a box; neither it nor anything that it starts can change protected files
    #[command(after_help = BOX_HELP)]
    Box(BoxArguments),
    /// Look over what is set up, and say what keeps it from working
    #[command(after_help = "Exit codes: 0 nothing is wrong, 1 something that was set up does not work.")]
    Doctor(DoctorArguments),
    /// Say why a hook does or does not run; or how a verdict came about
    Explain(ExplainArguments),
    /// See what came of earlier events: what was planned, what ran, how long it took, what was decided
    Trace(TraceArguments),
    /// Pass recorded events through the hooks again, and compare; nothing is touched
    Replay(ReplayArguments),
    /// Find, install, approve, set and write extensions: folders that bring hooks, servers, settings and skills
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
    /// Sign your approvals with a key; see what the machine's policy fixes
    Trust {
        #[command(subcommand)]
        command: TrustCommand,
    },
    /// Manage MCP servers and call their tools
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Give a model a task; it works with tools while every hook has its say
    #[command(after_help = TASK_HELP)]
    Run(TaskArguments),
    /// Talk with a model on the terminal; every hook has its say
    #[command(after_help = CHAT_HELP)]
    Chat {
        #[command(flatten)]
        agent: AgentArguments,
    },
    /// Talk with a model and manage hooks in full-screen panels
    #[command(after_help = TUI_HELP)]
    Tui(TuiArguments),
    /// List, fetch and look at the models of a local Ollama
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Look at earlier conversations
    Session {
        #[command(subcommand)]
        command: SessionCommand,
    },
    /// Watch a whole session with hooks in a throwaway home; it needs nothing but a shell
    Demo {
        /// Print one JSON object instead of the story
        #[arg(long)]
        json: bool,
    },
    /// Have a shell complete our commands; it offers the names of your hooks, servers, extensions and sessions
    Completions(CompletionsArguments),
    /// Print the JSON Schema of a file, of an event, or of an answer
    Schema(SchemaArguments),
    /// Explain a command, or the code of an error
    Help {
        /// A command and its subcommands; or a code, such as C003; or `codes`, which lists them
        words: Vec<String>,
    },
    /// Print the manual page, or write the pages of all commands
    Man {
        /// Write one page for each command into this folder
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GitHookCommand {
    /// Put one line into the repository's commit-msg hook, beside what is there
    Install,
    /// Take that line out again
    Uninstall,
    /// Say where the line is, and whether it works
    #[command(after_help = "Exit codes: 0 it is there and works, 1 it is missing or does not work.")]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Send the commit that is about to be made through its hooks; git runs this
    #[command(after_help = "Exit codes: 0 commit, 2 do not commit.")]
    Run {
        /// The file with the message
        message: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CompletionsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<CompletionsCommand>,
    /// Print the script for this shell
    #[arg(required = true)]
    pub(crate) shell: Option<CompletionShell>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CompletionsCommand {
    /// Write the script where the shell looks for it, and say where that is
    Install {
        /// The shell; without it, the one that `SHELL` names
        shell: Option<CompletionShell>,
    },
}

/// The shells that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompletionShell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// A file, or an event in any dialect's spelling; without it, all names are listed
    pub(crate) name: Option<String>,
    /// The dialect, where the spelling of the event does not say it
    #[arg(long, value_parser = dialect_names())]
    pub(crate) dialect: Option<String>,
    /// What the hook answers, instead of what it reads
    #[arg(long)]
    pub(crate) answer: bool,
}

const BOX_HELP: &str = "Protected are the settings and hooks of ollm and other agents, ollm itself, shell start files, \
SSH keys, and hooks of the repository. What the kernel cannot hold is compared afterwards and restored.

Exit codes: that of the command, 128 and its number for a signal, 3 configuration error, 5 no box or no such program, 64 \
usage.";

#[derive(Debug, Args)]
pub(crate) struct BoxArguments {
    /// How much the box keeps from the command: `strict` also limits writing to the project, temporary folders and
    /// caches, and hides secrets; without this, the setting `agent.box` decides
    #[arg(long, value_parser = box_policies())]
    pub(crate) policy: Option<BoxPolicy>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
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

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ConnectArguments {
    /// The agent, by its id; without one, every known agent is listed
    pub(crate) agent: Option<String>,
    /// Write the project's settings, for everybody who works in it, instead of your own
    #[arg(long, requires = "agent")]
    pub(crate) project: bool,
    /// Show what would change, and change nothing
    #[arg(long, requires = "agent")]
    pub(crate) dry_run: bool,
    /// Have the agent's shell commands run in a box, as `ollm box` does, where it lets a hook change them
    #[arg(long = "box", requires = "agent", conflicts_with = "capabilities")]
    pub(crate) in_box: bool,
    /// Show what hooks can do at each event of the agent, and change nothing
    #[arg(long, requires = "agent", conflicts_with_all = ["project", "dry_run"])]
    pub(crate) capabilities: bool,
    /// Print the list, what hooks can do, or what was done, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DisconnectArguments {
    /// The agent, by its id; or --all
    pub(crate) agent: Option<String>,
    /// Every agent, in your own settings and in those of this project
    #[arg(long, conflicts_with = "agent")]
    pub(crate) all: bool,
    /// The project's settings instead of your own
    #[arg(long)]
    pub(crate) project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The agent, by its id
    pub(crate) agent: String,
    /// The project's settings instead of your own; its hooks then need approval
    #[arg(long)]
    pub(crate) project: bool,
    /// Show the hook file, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn dialect_names() -> PossibleValuesParser {
    all().map(Dialect::name).into()
}

/// What a scaffolded hook is for.
fn purposes() -> impl TypedValueParser<Value = Purpose> {
    let all = [
        ("validation", "Refuse a tool call that must not happen", Purpose::validation()),
        ("logging", "Keep a log of tool calls", Purpose::Logging),
        ("context", "Tell the agent something before it begins", Purpose::Context),
    ];
    one_of(all.map(|(name, help, purpose)| (PossibleValue::new(name).help(help), purpose)))
}

/// How much a box keeps from a command.
fn box_policies() -> impl TypedValueParser<Value = BoxPolicy> {
    one_of(
        [("on", BoxPolicy::On), ("strict", BoxPolicy::Strict)].map(|(name, policy)| (PossibleValue::new(name), policy)),
    )
}

/// What a scaffolded hook is written in.
fn languages() -> impl TypedValueParser<Value = Language> {
    let all = [
        ("sh", Language::Sh),
        ("bash", Language::Bash),
        ("python", Language::Python),
        ("node", Language::Node),
        ("rust", Language::Rust),
    ];
    one_of(all.map(|(name, language)| (PossibleValue::new(name), language)))
}

fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    values: [(PossibleValue, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(values.clone().map(|(name, _)| name));
    names.try_map(move |given| {
        let value = values.iter().find(|(name, _)| name.get_name() == given).map(|(_, value)| value.clone());
        value.ok_or("there is no such value")
    })
}

fn dialect() -> impl TypedValueParser<Value = &'static dyn Dialect> {
    dialect_names().try_map(|name| by_name(&name).ok_or("there is no such dialect"))
}

/// The options that every command has, wherever they stand.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    pub(crate) overrides: Overrides,
    pub(crate) verbose: bool,
}

/// The options that every command has, and the command line without them. Behind `--` stands what is another program's.
pub(crate) fn globals(arguments: &[OsString]) -> Result<(Globals, Vec<OsString>), Failure> {
    let mut globals = Globals::default();
    let mut rest: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut json = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let in_front = rest.is_empty();
        let assigned = word.to_str().and_then(|word| word.strip_prefix("--set="));
        if word == "--" {
            rest.extend(json.take());
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
        } else if in_front && (word == "-v" || word == "--verbose") {
            globals.verbose = true;
        } else if rest.len() < 2 && word == "--json" {
            json = Some(word.clone());
        } else if (word == "--set" || assigned.is_some()) && !has_set(&rest) {
            let setting = assigned.or_else(|| words.next().and_then(|next| next.to_str()));
            let pair = setting.and_then(|setting| setting.split_once('='));
            let (key, value) = pair.ok_or_else(|| Failure::usage("`--set` needs KEY=VALUE"))?;
            globals.overrides.set(key, value).map_err(refused)?;
        } else {
            rest.push(word.clone());
        }
    }
    rest.extend(json);
    Ok((globals, rest))
}

/// Whether the command has a `--set` of its own.
fn has_set(words: &[OsString]) -> bool {
    matches!(words, [skill, run, ..] if skill == "skill" && run == "run")
}

/// Whether help is asked for, which only the full parser can give.
pub(crate) fn wants_help(arguments: &[OsString]) -> bool {
    arguments.iter().any(|word| word == "--help" || word == "-h")
}

/// Whether a program reads the answer; behind `--` stands what is another program's.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json" || word == "--stream-json")
}

/// On a screen of fewer columns each option is explained below its name.
const NARROW: usize = 40;

/// The whole command line, with its commands in groups.
pub(crate) fn command_line() -> clap::Command {
    let line = groups::grouped(changing::added(Cli::command()));
    line.next_line_help(shown_width().is_some_and(|width| width < NARROW))
}

/// The same for a shell that completes it: names of what there is, in these surroundings.
pub(crate) fn completed_line(context: &std::sync::Arc<AppContext>) -> clap::Command {
    candidates::added(command_line(), context)
}

/// Parses the command line; nothing is left to do when it asked for help, which is printed here.
pub(crate) fn parse(arguments: &[OsString], output: &mut Output) -> Result<Option<Command>, Failure> {
    let words = std::iter::once(OsString::from("ollm")).chain(arguments.iter().cloned());
    let parsed = command_line().try_get_matches_from(words).and_then(|found| {
        let as_json = changing::is_asked(&found);
        Ok((Cli::from_arg_matches(&found)?, as_json))
    });
    match parsed {
        Ok((cli, as_json)) => {
            if as_json {
                output.collect();
            }
            if cli.verbosity.verbose {
                output.be_verbose();
            }
            Ok(Some(cli.command))
        }
        Err(error) if error.use_stderr() => Err(misused(&error)),
        Err(error) => {
            output.text(&error.render().ansi().to_string())?;
            Ok(None)
        }
    }
}

/// Parses the options of one command by their definition, without that of every other command.
pub(crate) fn parse_alone<A: Args>(
    name: &'static str,
    options: &[OsString],
    output: &mut Output,
) -> Result<A, Failure> {
    let words = std::iter::once(OsString::from(name)).chain(options.iter().cloned());
    let found = Alone::<A>::command().name(name).try_get_matches_from(words);
    let alone = found.and_then(|found| Alone::<A>::from_arg_matches(&found)).map_err(|error| misused(&error))?;
    if alone.verbosity.verbose {
        output.be_verbose();
    }
    Ok(alone.arguments)
}

fn misused(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let said: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let message = said.join(" ").trim_start_matches("error: ").to_owned();
    let coded = format!("error[{}]:", Code::Usage);
    let styled = error.render().ansi().to_string().replacen("error:", &coded, 1);
    Failure { styled: Some(styled), ..Failure::new(Code::Usage, message) }
}

/// What to do with what is found.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Mend what needs no decision of yours; nothing is approved, installed or switched on
    #[arg(long)]
    pub(crate) fix: bool,
}

/// What to replay.
#[derive(Debug, Args)]
#[command(
    after_help = "Only events that were recorded with `trace.payload: full` can be replayed. Programs of hooks run in a box that only \
    reads, without a network. Hooks that ask servers are not run; their part in a verdict is what it was.\n\
    Exit codes: 0 nothing differs, or nothing could be replayed, 1 something differs, 3 the hooks cannot be read."
)]
pub(crate) struct ReplayArguments {
    /// The `traceId` of one event, its beginning, or its end; without it, all events that the options leave
    #[arg(conflicts_with_all = ["event", "hook", "status", "session", "blocked", "since", "until"])]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) filters: TraceFilters,
    /// Hooks of this file or folder in place of all hooks that files declare
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) hooks: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to explain.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// An event in any dialect's spelling, a hook's id or name, or a `traceId` or a part of one
    pub(crate) what: String,
    /// The event's data as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
