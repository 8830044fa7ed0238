//! Hooks in two stages: [`HookSpec`] is what somebody declared, [`Hook`] is what has been found valid, with every
//! default applied and the basis of each default remembered.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::dialect::{self, Dialect, UnknownEvent};
use crate::event::{Event, EventKind};
use crate::matcher::{Matcher, MatcherError, Pattern};
use crate::template::{ShellTemplate, Template, TemplateError};
use crate::verdict::Verdict;

mod definition;
mod interpreter;

pub use interpreter::{Runs, runs};

/// The programs a hook may name without a path.
pub const WHITELIST: &[&str] = &["node", "python", "python3", "bash", "sh", "npx", "uvx"];

/// Characters that have no business in the name of a program.
const METACHARACTERS: &[char] = &[';', '&', '|', '`', '$', '(', ')', '{', '}', '[', ']', '<', '>', '\n', '\0'];

/// Where a hook comes from; this decides whether it needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Part of the program that embeds the engine.
    Builtin,
    /// Written by the user, in the user's own folder.
    User,
    /// Came with a project.
    Workspace,
    /// Part of an extension that was found in place.
    Extension,
    /// Part of something we downloaded.
    Downloaded,
}

/// Whose folder a hook was found in; this decides the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The user's.
    #[default]
    User,
    /// The project's.
    Workspace,
}

/// How urgent a hook is among those of its rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Priority {
    Critical,
    High,
    #[default]
    Normal,
    Low,
}

/// What a failed hook means for the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// It goes on.
    Allow,
    /// It is blocked.
    Block,
    /// A person decides.
    Ask,
}

/// Where a value that applies comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The hook says so itself.
    Hook,
    /// The configuration says so.
    Config,
    /// The hook's dialect says so.
    Dialect,
}

/// A value and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub basis: Basis,
}

/// A timeout as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timeout {
    /// A bare number, in the unit of the hook's dialect.
    Bare(f64),
    /// A number with its unit.
    Exact(Duration),
}

/// Where a hook is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from one; zero when unknown.
    pub line: usize,
    /// The column, counted from one; zero when unknown.
    pub column: usize,
}

/// What a hook may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LimitsSpec {
    pub time: Option<Timeout>,
    pub cpu: Option<Duration>,
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub files: Option<u64>,
    pub file_size: Option<u64>,
    pub output: Option<u64>,
}

/// What a hook does, as declared.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpec {
    /// Starts a program, without a shell.
    Command {
        /// The program: absolute, or on the whitelist.
        command: String,
        /// Its arguments, which may hold templates.
        args: Vec<String>,
        /// The file whose content decides what happens, if there is one.
        script: Option<PathBuf>,
    },
    /// Runs a line of shell, which may hold templates.
    Shell {
        /// The line.
        script: String,
    },
    /// Gives the agent a prompt, which may hold templates.
    AskAgent {
        /// The prompt.
        prompt: String,
    },
    /// Runs a program whose answer is its exit status, from one line that is split without a shell.
    RunCommand {
        /// The line.
        line: String,
    },
    /// Posts the event to an address.
    Http {
        /// The address.
        url: String,
        /// Headers beside our own.
        headers: Vec<(String, String)>,
    },
    /// Calls a tool of an MCP server.
    Mcp {
        /// The server.
        server: String,
        /// The tool, by the server's own name for it.
        tool: String,
        /// Its arguments; texts in it may hold templates.
        args: serde_json::Map<String, serde_json::Value>,
    },
    /// Calls a closure of the embedding program.
    Builtin(Builtin),
}

/// How often a hook may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// At most so often in any sixty seconds.
    pub per_minute: Option<u32>,
    /// At least so long between the starts of two runs.
    pub cooldown: Option<Duration>,
}

/// What must be there for a hook to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    /// Programs on the search path.
    pub commands: Vec<String>,
    /// Files, relative to the project root or absolute.
    pub files: Vec<String>,
    /// Services that answer, as `host:port`.
    pub services: Vec<String>,
}

/// For which agents of a session a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The agent the person speaks to.
    Main,
    /// The agents it started.
    Subagents,
    /// All of them.
    All,
}

/// A closure of the embedding program.
#[derive(Clone)]
pub struct Builtin(Arc<dyn Fn(&Event) -> Verdict + Send + Sync>);

impl Builtin {
    /// Wraps a closure.
    pub fn new(closure: impl Fn(&Event) -> Verdict + Send + Sync + 'static) -> Builtin {
        Builtin(Arc::new(closure))
    }

    /// Calls it.
    pub fn call(&self, event: &Event) -> Verdict {
        (self.0)(event)
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Builtin")
    }
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Builtin) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A hook as declared.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the keys in a hook file")]
pub struct HookSpec {
    pub id: String,
    pub name: String,
    pub version: String,
    pub description: Option<String>,
    /// The events, as written.
    pub events: Vec<String>,
    pub matcher: Option<String>,
    pub action: ActionSpec,
    pub dialect: Option<String>,
    pub timeout: Option<Timeout>,
    pub on_failure: Option<OnFailure>,
    pub priority: Priority,
    pub parallel: bool,
    /// `async`: nobody waits for it, and it decides nothing.
    pub detached: Option<bool>,
    pub file_patterns: Vec<String>,
    /// `if`, in CEL.
    pub condition: Option<String>,
    pub rate_limit: RateLimit,
    pub requires: Requires,
    /// `scope`.
    pub reach: Option<Reach>,
    pub env: Vec<(String, String)>,
    pub pass_env: Vec<String>,
    pub cwd: Option<PathBuf>,
    /// Further files the script depends on, absolute.
    pub inputs: Vec<PathBuf>,
    pub limits: LimitsSpec,
    pub enabled: bool,
    pub source: Source,
    pub layer: Layer,
    pub extension: Option<String>,
    /// The group whose members are approved together.
    pub group: Option<String>,
    pub origin: Origin,
}

impl HookSpec {
    /// A hook with nothing but an id, an event and an action; the name is the id.
    pub fn new(id: impl Into<String>, event: impl Into<String>, action: ActionSpec) -> HookSpec {
        let id = id.into();
        HookSpec {
            name: id.clone(),
            id,
            version: "1.0.0".to_owned(),
            description: None,
            events: vec![event.into()],
            matcher: None,
            action,
            dialect: None,
            timeout: None,
            on_failure: None,
            priority: Priority::default(),
            parallel: false,
            detached: None,
            file_patterns: Vec::new(),
            condition: None,
            rate_limit: RateLimit::default(),
            requires: Requires::default(),
            reach: None,
            env: Vec::new(),
            pass_env: Vec::new(),
            cwd: None,
            inputs: Vec::new(),
            limits: LimitsSpec::default(),
            enabled: true,
            source: Source::User,
            layer: Layer::User,
            extension: None,
            group: None,
            origin: Origin::default(),
        }
    }

    /// The file whose content decides what happens, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        match &self.action {
            ActionSpec::Command { script, .. } => script.as_ref(),
            _ => None,
        }
    }
}

/// What the user's configuration says about all hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The programs a hook may name without a path.
    pub whitelist: Vec<String>,
    /// A timeout for hooks that have none of their own.
    pub timeout: Option<Duration>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { whitelist: WHITELIST.iter().map(|&name| name.to_owned()).collect(), timeout: None }
    }
}

/// What a valid hook does.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in ActionSpec")]
pub enum Action {
    Command { program: String, args: Vec<Template> },
    Shell(ShellTemplate),
    AskAgent(Template),
    RunCommand(String),
    Http { url: String, headers: Vec<(String, String)> },
    Mcp { server: String, tool: String, args: serde_json::Map<String, serde_json::Value> },
    Builtin(Builtin),
}

/// A valid hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// What was declared.
    pub spec: HookSpec,
    /// The events it is for.
    pub events: Vec<EventKind>,
    /// The subjects it is for.
    pub matcher: Matcher,
    /// What it does.
    pub action: Action,
    /// How it is spoken to.
    pub dialect: &'static dyn Dialect,
    /// How long it may take.
    pub timeout: Setting<Duration>,
    /// What its failure means.
    pub on_failure: Setting<OnFailure>,
}

/// Why a declared hook is not valid; each names the field, the value and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The event is in no dialect.
    #[error(transparent)]
    Event(#[from] UnknownEvent),
    /// A hook without an event would never run.
    #[error("no event is named")]
    NoEvent,
    /// A named custom event beside events that have no such name.
    #[error("`custom:{0}` stands beside other events; declare the hook once for each")]
    Mixed(String),
    /// The matcher makes no sense.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// The dialect does not exist.
    #[error("unknown dialect `{0}`; known are ollm, gate, rpc and agent")]
    Dialect(String),
    /// The command word holds characters that mean something to a shell.
    #[error(
        "command `{0}` holds shell characters; name the program alone and put the rest into `args`, or wrap it in a script"
    )]
    Metacharacters(String),
    /// The command word holds its arguments too.
    #[error("command `{0}` holds arguments; name the program alone and put the rest into `args`")]
    Arguments(String),
    /// The command is neither a path nor on the whitelist.
    #[error(
        "command `{command}` is neither a path nor one of {whitelist}; give its absolute path, or one relative to the hook file"
    )]
    NotAllowed {
        /// The command word.
        command: String,
        /// The programs that need no path.
        whitelist: String,
    },
    /// An interpreter without a script would take the event for its program.
    #[error("`{0}` without a script would run the event as code; name the script in `args`")]
    ReadsEvent(String),
    /// The command is empty.
    #[error("`command` is empty")]
    NoCommand,
    /// A template that cannot be rendered safely.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A timeout that is no time.
    #[error("timeout {0} is not a positive time")]
    Timeout(String),
}

impl HookError {
    /// The key of the hook entry that is at fault.
    pub fn field(&self) -> &'static str {
        match self {
            HookError::Event(_) | HookError::NoEvent | HookError::Mixed(_) => "event",
            HookError::Matcher(_) => "matcher",
            HookError::Dialect(_) => "dialect",
            HookError::Metacharacters(_)
            | HookError::Arguments(_)
            | HookError::NotAllowed { .. }
            | HookError::ReadsEvent(_)
            | HookError::NoCommand
            | HookError::Template(_) => "command",
            HookError::Timeout(_) => "timeout",
        }
    }
}

impl Hook {
    /// Checks a declared hook and applies the defaults.
    ///
    /// ```
    /// use ollm_protocol::{ActionSpec, Hook, HookSpec, Rules};
    /// let action = ActionSpec::Command { command: "rm -rf".into(), args: vec![], script: None };
    /// assert!(Hook::new(HookSpec::new("x", "before_tool", action), &Rules::default()).is_err());
    /// ```
    pub fn new(spec: HookSpec, rules: &Rules) -> Result<Hook, HookError> {
        let (events, names) = events(&spec.events)?;
        let matcher = matcher(spec.matcher.as_deref(), &events, names)?;
        let dialect = spoken(&spec)?;
        let action = action(&spec.action, rules)?;
        let timeout = timeout(&spec, rules, dialect)?;
        let on_failure = match spec.on_failure {
            Some(value) => Setting { value, basis: Basis::Hook },
            None => Setting { value: dialect.defaults().on_failure, basis: Basis::Dialect },
        };
        Ok(Hook { spec, events, matcher, action, dialect, timeout, on_failure })
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.spec.id
    }
}

/// The events, and the names of the custom ones among them.
fn events(written: &[String]) -> Result<(Vec<EventKind>, Vec<String>), HookError> {
    let mut kinds = Vec::new();
    let mut customs = Vec::new();
    for name in written {
        let named = dialect::event_named(name)?;
        customs.extend(named.custom);
        for kind in named.kinds {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    if kinds.is_empty() {
        return Err(HookError::NoEvent);
    }
    Ok((kinds, customs))
}

/// `custom:NAME` as an event key is a matcher on the name; it would keep the hook from every other event.
fn matcher(text: Option<&str>, events: &[EventKind], names: Vec<String>) -> Result<Matcher, HookError> {
    let written = Matcher::parse(text.unwrap_or_default())?;
    match (written, names.first()) {
        (Matcher::Any, Some(name)) if events.len() > 1 => Err(HookError::Mixed(name.clone())),
        (Matcher::Any, Some(_)) => Ok(Matcher::List(names.into_iter().map(Pattern::Exact).collect())),
        (written, _) => Ok(written),
    }
}

fn spoken(spec: &HookSpec) -> Result<&'static dyn Dialect, HookError> {
    match (&spec.dialect, spec.events.first()) {
        (Some(name), _) => dialect::by_name(name).ok_or_else(|| HookError::Dialect(name.clone())),
        (None, Some(event)) => Ok(dialect::by_spelling(event)),
        (None, None) => Err(HookError::NoEvent),
    }
}

fn action(action: &ActionSpec, rules: &Rules) -> Result<Action, HookError> {
    match action {
        ActionSpec::Command { command, args, .. } => {
            check_command(command, rules)?;
            if runs(command, args) == Runs::Input {
                return Err(HookError::ReadsEvent(command.clone()));
            }
            let templates: Vec<Template> = args.iter().map(|arg| Template::parse(arg)).collect();
            if templates.iter().any(|arg| arg.paths().next().is_some()) {
                check_arguments(command, args)?;
            }
            Ok(Action::Command { program: command.clone(), args: templates })
        }
        ActionSpec::Shell { script } if script.trim().is_empty() => Err(HookError::NoCommand),
        ActionSpec::Shell { script } => Ok(Action::Shell(ShellTemplate::parse(script)?)),
        ActionSpec::AskAgent { prompt } => Ok(Action::AskAgent(Template::parse(prompt))),
        ActionSpec::RunCommand { line } => Ok(Action::RunCommand(line.clone())),
        ActionSpec::Http { url, headers } => Ok(Action::Http { url: url.clone(), headers: headers.clone() }),
        ActionSpec::Mcp { server, tool, args } => {
            Ok(Action::Mcp { server: server.clone(), tool: tool.clone(), args: args.clone() })
        }
        ActionSpec::Builtin(builtin) => Ok(Action::Builtin(builtin.clone())),
    }
}

/// Whether a word holds characters that mean something to a shell, which no program's name needs.
pub fn holds_shell_characters(word: &str) -> bool {
    word.contains(METACHARACTERS)
}

/// A command word is one program: absolute, or on the whitelist.
fn check_command(command: &str, rules: &Rules) -> Result<(), HookError> {
    if command.trim().is_empty() {
        return Err(HookError::NoCommand);
    }
    // No shell ever reads the command, so the folders it lies in may be called anything.
    let absolute = std::path::Path::new(command).is_absolute();
    let word = if absolute { command.rsplit('/').next().unwrap_or(command) } else { command };
    if holds_shell_characters(word) || command.contains('\0') {
        return Err(HookError::Metacharacters(command.to_owned()));
    }
    if absolute {
        return Ok(());
    }
    if rules.whitelist.iter().any(|allowed| allowed == command) {
        return Ok(());
    }
    if let Some((first, _)) = command.split_once(char::is_whitespace)
        && rules.whitelist.iter().any(|allowed| allowed == first)
    {
        return Err(HookError::Arguments(command.to_owned()));
    }
    Err(HookError::NotAllowed { command: command.to_owned(), whitelist: rules.whitelist.join(", ") })
}

/// A variable may not stand where the program reads code: `python3 -c '… {{x}} …'` would run what is in it.
///
/// The same arguments as a line of shell are refused for the same reasons, so that one reader knows them all.
fn check_arguments(command: &str, args: &[String]) -> Result<(), HookError> {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let line: Vec<String> = std::iter::once(command).chain(args.iter().map(String::as_str)).map(quoted).collect();
    ShellTemplate::parse(&line.join(" ")).map(drop).map_err(HookError::Template)
}

fn timeout(spec: &HookSpec, rules: &Rules, dialect: &dyn Dialect) -> Result<Setting<Duration>, HookError> {
    let defaults = dialect.defaults();
    let own = spec.timeout.or(spec.limits.time);
    let Some(own) = own else {
        return Ok(match rules.timeout.filter(|timeout| !timeout.is_zero()) {
            Some(value) => Setting { value, basis: Basis::Config },
            None => Setting { value: defaults.timeout, basis: Basis::Dialect },
        });
    };
    let value = match own {
        Timeout::Exact(value) => value,
        Timeout::Bare(number) => Duration::try_from_secs_f64(number * defaults.timeout_unit.as_secs_f64())
            .map_err(|_| HookError::Timeout(number.to_string()))?,
    };
    if value.is_zero() {
        return Err(HookError::Timeout("0".to_owned()));
    }
    Ok(Setting { value, basis: Basis::Hook })
}

/// Enums with a name in files and reports.
macro_rules! named {
    ($type:ty { $($variant:ident = $name:literal),+ }) => {
        impl $type {
            /// Every value, with its name in files and reports.
            pub const NAMES: &[(Self, &str)] = &[$((Self::$variant, $name)),+];

            /// The name in files and reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

named!(Source { Builtin = "builtin", User = "user", Workspace = "workspace", Extension = "extension", Downloaded = "downloaded" });
named!(Priority { Critical = "critical", High = "high", Normal = "normal", Low = "low" });
named!(OnFailure { Allow = "allow", Block = "block", Ask = "ask" });
named!(Reach { Main = "main", Subagents = "subagents", All = "all" });
named!(Basis { Hook = "hook", Config = "config", Dialect = "dialect" });
