//! Where other agents are found, and how they are told to ask us: facts, as data.

use std::time::Duration;

/// How long an agent is told to wait for us. Our hooks have limits of their own; this one is there for the worst day.
pub const WAIT: Duration = Duration::from_mins(10);

/// Where an agent reads its hooks, and in what form.
#[derive(Debug)]
pub struct Home {
    /// The names of its program.
    pub programs: &'static [&'static str],
    /// The file for all work of a person, below their home; a folder where the files are ours alone.
    pub user: &'static str,
    /// The variable that names the first folder of that path instead.
    pub variable: Option<&'static str>,
    /// The same for one project, below its root.
    pub project: Option<&'static str>,
    /// Settings of other agents whose hooks it runs beside its own.
    pub also_reads: &'static [Foreign],
    /// What stands there.
    pub form: Form,
    /// What runs the line that stands there.
    pub shell: LineShell,
    /// The events at which it asks us: not those that happen for each piece of an answer.
    pub events: &'static [&'static str],
    /// What it does with a file that is not plain JSON.
    pub taste: Taste,
    /// What a person has to do in it before its hooks run.
    pub review: Option<&'static str>,
    /// The variables in which its hooks find the project's folder.
    pub project_variables: &'static [&'static str],
    /// The hooks that people wrote for it themselves.
    pub written: Written,
}

/// Hooks that people wrote for an agent: the files, and what stands in them.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The files below a person's home; a star stands for any one name.
    pub user: &'static [&'static str],
    /// The same below the root of a project.
    pub project: &'static [&'static str],
    /// What stands in them.
    pub form: WrittenForm,
    /// What a matcher means that is not a list of names.
    pub matcher: MatcherForm,
    /// What the folder of a file means to its hooks.
    pub folder: OwnFolder,
}

/// What the folder of a file means to the hooks in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnFolder {
    /// Nothing.
    Unused,
    /// Hooks in a person's home run in it.
    Runs,
    /// This variable names the folder above it.
    Above(&'static str),
}

/// What stands in a file with hooks for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenForm {
    /// As in [`Form::Groups`].
    Groups,
    /// As in [`Form::Flat`].
    Flat,
    /// `{"hooks": [{"trigger": EVENT, "action": {"type": …}}]}`, or, in the configuration of an agent, as in [`Form::Flat`].
    Triggers,
    /// Each file is a program, with the name of its event.
    Programs,
    /// Code that only the agent itself can run.
    Code,
}

/// What the matcher of a hook means where it is not a list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatcherForm {
    /// A regular expression that is found anywhere.
    Within,
    /// A regular expression for all of it.
    Whole,
    /// The name of a tool, in which a star stands for anything; `@SERVER` and `@SERVER/TOOL` are those of an MCP server.
    Names,
}

/// Settings of another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The other agent.
    pub agent: &'static str,
    /// Those for all work of a person are read.
    pub user: bool,
    /// Those of a project are read.
    pub project: bool,
    /// When they are, where that is not always so.
    pub when: Option<&'static str>,
}

/// What stands in the place where an agent reads its hooks.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`
    Groups,
    /// `{"hooks": {EVENT: [{"command": …}]}}`, with the names of the keys that differ.
    Flat(FlatEntry),
    /// Files that are ours alone, made from the command for each event.
    Own(fn(&Commands<'_>) -> Vec<OwnFile>),
}

/// The shell that an agent runs a hook's line in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineShell {
    /// The system's.
    Sh,
    /// `bash`, wherever it is found.
    Bash,
    /// The person's own, with what they read in at a login.
    Login,
}

/// The keys of an entry in a flat list.
#[derive(Clone, Copy, Debug)]
pub struct FlatEntry {
    /// Whether the file begins with `"version": 1`.
    pub version: bool,
    /// Whether an entry says `"type": "command"`.
    pub typed: bool,
    /// The key of the command.
    pub command: &'static str,
    /// The key of the timeout.
    pub timeout: Option<&'static str>,
}

/// The line of shell by which an agent asks us at an event.
pub struct Commands<'a> {
    /// The events that it should ask at.
    pub events: &'static [&'static str],
    /// The line for one of them.
    pub line: &'a dyn Fn(&str) -> String,
}

/// A file that is ours alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Where, in the agent's folder.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
}

/// What an agent does with a settings file that is not plain JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taste {
    /// It takes comments.
    pub comments: bool,
    /// It takes a comma after the last item.
    pub commas: bool,
    /// It takes a byte order mark.
    pub mark: bool,
    /// The only keys that it takes at the top, where it minds others.
    pub keys: Option<&'static [&'static str]>,
}

impl Taste {
    /// It is not known to mind anything.
    pub const ANYTHING: Taste = Taste { comments: true, commas: true, mark: true, keys: None };
    /// Plain JSON, which may begin with a mark.
    pub const PLAIN_OR_MARKED: Taste = Taste { comments: false, commas: false, mark: true, keys: None };
    /// Plain JSON and nothing else.
    pub const PLAIN: Taste = Taste { comments: false, commas: false, mark: false, keys: None };
}

/// The usual events of agents that took over Claude Code's names.
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
