//! Where other agents read their hooks, and how we register with them: facts, as data.

use std::time::Duration;

/// The timeout that we register with an agent. Our hooks have their own limits; this one is only for emergencies.
pub const WAIT: Duration = Duration::from_mins(10);

/// Where an agent reads its hooks, and in which form.
#[derive(Debug)]
pub struct Home {
    /// The names of its program.
    pub programs: &'static [&'static str],
    /// The user's hook file, below the home; a folder if we own the files in it.
    pub user: &'static str,
    /// The variable that replaces the first folder of that path.
    pub variable: Option<&'static str>,
    /// The same for a project, below its root.
    pub project: Option<&'static str>,
    /// Settings of other agents whose hooks it also runs.
    pub also_reads: &'static [ForeignSettings],
    /// The format of the file.
    pub form: Form,
    /// The shell that runs the registered line.
    pub shell: LineShell,
    /// The events to register for, without those that occur for each piece of an answer.
    pub events: &'static [&'static str],
    /// Which deviations from plain JSON it accepts.
    pub taste: SettingsSyntax,
    /// What a person must do in the agent before its hooks run.
    pub review: Option<&'static str>,
    /// The variables that hold the project's folder, for its hooks.
    pub project_variables: &'static [&'static str],
    /// The hooks that people wrote for the agent.
    pub written: WrittenHooks,
}

/// Hooks that people wrote for an agent: the files and their format.
#[derive(Clone, Copy, Debug)]
pub struct WrittenHooks {
    /// The files below a person's home; a star means any name.
    pub user: &'static [&'static str],
    /// The files below the root of a project.
    pub project: &'static [&'static str],
    /// The format of the files.
    pub form: WrittenForm,
    /// The meaning of a matcher.
    pub matcher: MatcherForm,
    /// How a file's folder affects its hooks.
    pub folder: OwnFolder,
}

/// How a file's folder affects its hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnFolder {
    /// Not at all.
    Unused,
    /// Hooks from a person's home run in it.
    Runs,
    /// This variable holds the folder above it.
    Above(&'static str),
}

/// The format of a file with hooks for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenForm {
    /// As in [`Form::Groups`].
    Groups,
    /// As in [`Form::Flat`].
    Flat,
    /// `{"hooks": [{"trigger": EVENT, "action": {"type": …}}]}`, or, in the configuration of an agent, as in [`Form::Flat`].
    Triggers,
    /// Each file is a program, named after its event.
    Programs,
    /// Code that only the agent can run.
    Code,
}

/// The meaning of a hook's matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatcherForm {
    /// A list of names; anything else is a regular expression that may match anywhere.
    NamesOrWithin,
    /// A regular expression that may match anywhere, including plain words: `write` also fits `write_file`.
    Within,
    /// A regular expression that must match the whole name.
    Whole,
    /// A tool name in which a star means any text; `@SERVER` and `@SERVER/TOOL` are tools of an MCP server.
    Names,
}

/// Settings of another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignSettings {
    /// The other agent.
    pub agent: &'static str,
    /// Whether the user's settings are read.
    pub user: bool,
    /// Whether the project's settings are read.
    pub project: bool,
    /// The condition for reading them, if there is one.
    pub when: Option<&'static str>,
}

/// The format of the place where an agent reads its hooks.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`
    Groups,
    /// `{"hooks": {EVENT: [{"command": …}]}}`, with variations in the keys.
    Flat(FlatEntry),
    /// Files that we own, made from the command for each event.
    Own(fn(&Commands<'_>) -> Vec<OwnFile>),
}

/// The shell that an agent runs a hook's line in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineShell {
    /// The system's shell.
    Sh,
    /// `bash`, found on the search path.
    Bash,
    /// The person's own shell, with its login files.
    Login,
}

/// The keys of an entry in a flat list.
#[derive(Clone, Copy, Debug)]
pub struct FlatEntry {
    /// Whether the file begins with `"version": 1`.
    pub version: bool,
    /// Whether an entry has `"type": "command"`.
    pub typed: bool,
    /// The key of the command.
    pub command: &'static str,
    /// The key of the timeout.
    pub timeout: Option<&'static str>,
    /// The key that makes the agent show our output, if it needs one.
    pub shows: Option<&'static str>,
}

/// The shell lines by which an agent asks us.
pub struct Commands<'a> {
    /// The events at which it should ask.
    pub events: &'static [&'static str],
    /// Makes the line for an event.
    pub line: &'a dyn Fn(&str) -> String,
}

/// A file that we own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Its path in the agent's folder.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Whether it is executable.
    pub executable: bool,
}

/// Which deviations from plain JSON an agent accepts in its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsSyntax {
    /// Whether comments are allowed.
    pub comments: bool,
    /// Whether a comma after the last item is allowed.
    pub commas: bool,
    /// Whether a byte order mark is allowed.
    pub mark: bool,
    /// The only top-level keys that are allowed, if others are not.
    pub keys: Option<&'static [&'static str]>,
}

impl SettingsSyntax {
    /// No known restrictions.
    pub const ANYTHING: SettingsSyntax = SettingsSyntax { comments: true, commas: true, mark: true, keys: None };
    /// Plain JSON, with an optional byte order mark.
    pub const PLAIN_OR_MARKED: SettingsSyntax =
        SettingsSyntax { comments: false, commas: false, mark: true, keys: None };
    /// Plain JSON and nothing else.
    pub const PLAIN: SettingsSyntax = SettingsSyntax { comments: false, commas: false, mark: false, keys: None };
}

/// The usual events of agents that use Claude Code's names.
pub(super) const USUAL: &[&str] = &[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
];

impl OwnFile {
    pub(super) fn new(path: &str, text: String) -> OwnFile {
        OwnFile { path: path.to_owned(), text, executable: false }
    }
}
