//! Hooks in two stages: [`HookSpec`] is what somebody declared, [`Hook`] is what has been found valid, with every
//! default applied and the basis of each default remembered.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ollm_condition::{Condition, ConditionError};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::dialect::{self, Dialect};
use crate::event::EventKind;
use crate::matcher::Matcher;
use crate::pattern::FilePatterns;

pub mod action;
mod definition;
mod endpoint;
mod error;
mod held;
mod interpreter;
pub mod key;
mod permissions;
mod valid;

pub use action::{Action, ActionSpec, Builtin, Needs, holds_shell_characters};
pub use endpoint::{Endpoint, EndpointError, Header};
pub use error::HookError;
pub use held::Held;
pub use interpreter::{Runs, runs};
pub use permissions::{DefaultBox, PermissionsSpec};

/// The programs a hook may name without a path.
pub const WHITELIST: &[&str] = &["node", "python", "python3", "bash", "sh", "npx", "uvx"];

/// Where a hook comes from; this decides whether it needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// Part of the program that embeds the engine.
    Builtin,
    /// Required by the machine's policy.
    Policy,
    /// Written by the user, in the user's own folder.
    User,
    /// Came with a project.
    Workspace,
    /// Part of an extension that was found in place.
    Extension,
    /// Part of something we downloaded.
    Downloaded,
}

impl Source {
    /// Whether no user can switch it off with all other hooks.
    pub fn is_required(self) -> bool {
        matches!(self, Source::Builtin | Source::Policy)
    }
}

/// Whose folder a hook was found in; this decides the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layer {
    /// The user's.
    #[default]
    User,
    /// The project's.
    Workspace,
}

/// How urgent a hook is among those of its rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Priority {
    Critical,
    High,
    #[default]
    Normal,
    Low,
}

/// What a failed hook means for the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl<T> Setting<T> {
    /// The hook's own value, or else its dialect's.
    fn of(own: Option<T>, default: T) -> Setting<T> {
        let basis = if own.is_some() { Basis::Hook } else { Basis::Dialect };
        Setting { value: own.unwrap_or(default), basis }
    }
}

/// A timeout as written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Timeout {
    /// A bare number, in the unit of the hook's dialect.
    Bare(f64),
    /// A number with its unit.
    Exact(Duration),
}

/// Where a hook is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from one; zero when unknown.
    pub line: usize,
    /// The column, counted from one; zero when unknown.
    pub column: usize,
}

/// What a hook may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// How often a hook may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// At most so often in any sixty seconds.
    pub per_minute: Option<u32>,
    /// At least so long between the starts of two runs.
    pub cooldown: Option<Duration>,
}

impl RateLimit {
    /// The limit in a few words, if there is one.
    pub fn describe(&self) -> Option<String> {
        let per_minute = self.per_minute.map(|count| format!("{count} per minute"));
        let cooldown = self.cooldown.filter(|pause| !pause.is_zero()).map(|pause| format!("once in {pause:?}"));
        let parts: Vec<String> = [per_minute, cooldown].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// What must be there for a hook to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requires {
    /// Programs on the search path.
    pub commands: Vec<String>,
    /// Files, relative to the project root or absolute.
    pub files: Vec<String>,
    /// Services that answer, as `host:port`.
    pub services: Vec<String>,
}

/// For which agents of a session a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reach {
    /// The agent the person speaks to.
    Main,
    /// The agents it started.
    Subagents,
    /// All of them.
    All,
}

/// A variable that is handed to a hook although its declaration does not hold the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Held,
    /// Whether the value must never be shown.
    pub secret: bool,
}

impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.known().filter(|_| !self.secret);
        write!(formatter, "{}={:?}", self.name, value.unwrap_or("(hidden)"))
    }
}

/// A hook as declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Whether it can be kept between events: it answers one line for each line, and ends with its input.
    pub persistent: bool,
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
    /// What its program may do, as declared.
    pub permissions: Option<PermissionsSpec>,
    pub enabled: bool,
    pub source: Source,
    pub layer: Layer,
    pub extension: Option<String>,
    /// The folder whose whole content decides what happens: that of the extension.
    pub tree: Option<PathBuf>,
    /// The group whose members are approved together.
    pub group: Option<String>,
    /// The agent in whose own file it stands, and which runs it by itself.
    #[serde(deserialize_with = "known_agent")]
    pub read_from: Option<AgentName>,
    pub origin: Origin,
    /// The root of the project it came with.
    pub project: Option<PathBuf>,
}

/// The name of an agent that we know.
type AgentName = &'static str;

/// The agent with a name that was written down.
fn known_agent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static str>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    let known = |name: String| dialect::agent_named(&name).ok_or_else(|| D::Error::custom("no such agent"));
    Ok(name.map(known).transpose()?.map(|agent| agent.name))
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
            persistent: false,
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
            permissions: None,
            enabled: true,
            source: Source::User,
            layer: Layer::User,
            extension: None,
            tree: None,
            group: None,
            read_from: None,
            origin: Origin::default(),
            project: None,
        }
    }

    /// Its id among the hooks of its own project, wherever we are: see [`HookSpec::id_in`].
    pub fn own_id(&self) -> &str {
        let elsewhere = self.project.as_ref().and_then(|project| {
            let own = self.id.strip_suffix(project.to_str()?)?;
            own.strip_suffix('@')
        });
        elsewhere.unwrap_or(&self.id)
    }

    /// An id under which a hook of a project that encloses ours is known here: no hook of ours can have it.
    pub fn id_in(project: &Path, id: &str) -> String {
        format!("{id}@{}", project.display())
    }

    /// The hook in a message: what it is called, and whose it is.
    pub fn title(&self) -> String {
        let HookSpec { source, name, extension, .. } = self;
        match extension {
            Some(extension) => format!("hook `{name}` of extension `{extension}`"),
            None => format!("{} hook `{name}`", source.name()),
        }
    }

    /// Whether it runs a program of its own.
    pub fn runs_program(&self) -> bool {
        matches!(self.action.needs(), Needs::Program { .. } | Needs::Shell(_))
    }

    /// Its title and the id that commands take.
    pub fn label(&self) -> String {
        if self.id == self.name { self.title() } else { format!("{} ({})", self.title(), self.id) }
    }

    /// The file whose content decides what happens, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        self.action.descriptor().script()
    }
}

/// What the user's configuration says about all hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The programs a hook may name without a path.
    pub whitelist: Vec<String>,
    /// A timeout for hooks that have none of their own.
    pub timeout: Option<Duration>,
    /// Whether hooks that declare no permissions are held to the least.
    pub default_box: DefaultBox,
}

impl Default for Rules {
    fn default() -> Rules {
        let whitelist = WHITELIST.iter().map(|&name| name.to_owned()).collect();
        Rules { whitelist, timeout: None, default_box: DefaultBox::default() }
    }
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
    /// For which agents it runs.
    pub reach: Setting<Reach>,
    /// What its program is held to, declared or not; nothing where it runs without a box, or runs no program.
    pub permissions: Option<PermissionsSpec>,
    /// Why it is switched off, where that is not its declaration's own word.
    pub off: Option<String>,
    /// The settings of its extension, as variables; no part of what is approved.
    pub settings: Vec<Variable>,
    /// The files it is for; without patterns, events about any file and about none.
    pub patterns: FilePatterns,
    /// The condition under which it runs. One that cannot be read does not make the hook go away: it may be a gate, and then
    /// it stands in the way.
    pub condition: Option<Result<Arc<Condition>, ConditionError>>,
    /// Why it can do nothing, where it only stands in for one that could not be loaded: at every event it is for, it has
    /// failed.
    pub broken: Option<String>,
}

impl Hook {
    /// Checks a declared hook and applies the defaults. Its templates are text here; the engine reads them when it runs.
    ///
    /// ```
    /// use ollm_protocol::hook::action::CommandSpec;
    /// use ollm_protocol::{ActionSpec, Hook, HookSpec, Rules};
    /// let action = ActionSpec::Command(CommandSpec { command: "rm -rf".into(), ..CommandSpec::default() });
    /// assert!(Hook::new(HookSpec::new("x", "before_tool", action), &Rules::default()).is_err());
    /// ```
    pub fn new(spec: HookSpec, rules: &Rules) -> Result<Hook, HookError> {
        let (events, names) = valid::events(&spec.events)?;
        let matcher = valid::matcher(spec.matcher.as_deref(), &events, names)?;
        let dialect = valid::spoken(&spec)?;
        let action = spec.action.descriptor().check(&spec, &events, rules)?;
        valid::bounds(&spec)?;
        let timeout = valid::timeout(&spec, rules, dialect)?;
        let patterns = FilePatterns::parse(&spec.file_patterns)?;
        let condition = spec.condition.as_deref().map(|text| Condition::parse(text).map(Arc::new));
        let defaults = dialect.defaults();
        let on_failure = Setting::of(spec.on_failure, defaults.on_failure);
        let reach = Setting::of(spec.reach, defaults.reach);
        let permissions = rules.default_box.applies_to(spec.permissions.as_ref(), spec.source);
        let permissions = permissions.filter(|_| spec.runs_program());
        Ok(Hook {
            spec,
            events,
            matcher,
            action,
            dialect,
            timeout,
            on_failure,
            reach,
            permissions,
            off: None,
            settings: Vec::new(),
            patterns,
            condition,
            broken: None,
        })
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.spec.id
    }

    /// Whether it runs a program of its own.
    pub fn runs_program(&self) -> bool {
        self.spec.runs_program()
    }

    /// The file whose content decides what happens, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        self.action.script()
    }

    /// The file of the hook that a word of its command line names, where that file's path is no text: the word can then only
    /// look like it. Nothing if two files look the same.
    pub fn own_file(&self, word: &str) -> Option<&Path> {
        if !word.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        let files = self.script().into_iter().chain(&self.spec.inputs).map(PathBuf::as_path);
        let mut alike = files.filter(|file| file.to_str().is_none() && file.to_string_lossy() == word);
        let found = alike.next()?;
        alike.all(|other| other == found).then_some(found)
    }

    /// Whether nobody waits for it at this event, so that it decides nothing.
    pub fn detached(&self, kind: EventKind) -> bool {
        self.spec.detached.unwrap_or_else(|| self.dialect.defaults().detached.contains(&kind))
    }

    /// Whether its failure stands in the way of the operation.
    pub fn is_gate(&self) -> bool {
        self.on_failure.value != OnFailure::Allow
    }
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

named!(Source { Builtin = "builtin", Policy = "policy", User = "user", Workspace = "workspace", Extension = "extension", Downloaded = "downloaded" });
named!(Priority { Critical = "critical", High = "high", Normal = "normal", Low = "low" });
named!(OnFailure { Allow = "allow", Block = "block", Ask = "ask" });
named!(Reach { Main = "main", Subagents = "subagents", All = "all" });
named!(Basis { Hook = "hook", Config = "config", Dialect = "dialect" });
