//! Hooks in two stages: [`HookSpec`] is the declaration, and [`Hook`] is the valid hook. A valid hook has all defaults
//! applied, and knows where each value comes from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ollm_condition::{Condition, ConditionError};
use serde::{Deserialize, Serialize};

use crate::dialect::{Addressee, Dialect, HookAnswer, Output};
use crate::event::{Event, EventKind};
use crate::matcher::Matcher;
use crate::pattern::FilePatterns;
use crate::tool;

pub mod action;
mod definition;
mod endpoint;
mod error;
mod held;
mod interpreter;
pub mod key;
mod limits;
mod permissions;
mod requires;
mod spec;
mod valid;

pub use action::{Action, ActionSpec, Builtin, Needs, holds_shell_characters};
pub use endpoint::{Endpoint, EndpointError, Header};
pub use error::HookError;
pub use held::HeldText;
pub use interpreter::{Runs, runs};
pub use limits::LimitsSpec;
pub use permissions::{DefaultBox, PermissionsSpec};
pub use requires::{RateLimit, Requires};
pub use spec::HookSpec;

/// The programs that a hook may name without a path.
pub const WHITELIST: &[&str] = &["node", "python", "python3", "bash", "sh", "npx", "uvx"];

/// Where a hook comes from; this decides whether it needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// Part of the program that embeds the engine.
    Builtin,
    /// The machine's policy requires it.
    Policy,
    /// The user wrote it, in the user's own folder.
    User,
    /// It came with a project.
    Workspace,
    /// It is part of an extension that was found in place.
    Extension,
    /// It is part of a download.
    Downloaded,
}

impl Source {
    /// Whether it stays on when the user switches all hooks off.
    pub fn is_required(self) -> bool {
        matches!(self, Source::Builtin | Source::Policy)
    }
}

/// The layer of the folder with the hook's file; this decides the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layer {
    /// The user's folder.
    #[default]
    User,
    /// The project's folder.
    Workspace,
}

/// The urgency of a hook among those of its rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Priority {
    Critical,
    High,
    #[default]
    Normal,
    Low,
}

/// How a failed hook affects the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnFailure {
    /// The operation goes on.
    Allow,
    /// The operation is blocked.
    Block,
    /// A person decides.
    Ask,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The hook declares it.
    Hook,
    /// The configuration sets it.
    Config,
    /// It is the default of the hook's dialect.
    Dialect,
}

/// A value and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub basis: Basis,
}

impl<T> Setting<T> {
    /// The hook's own value, or the default of its dialect.
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

impl Timeout {
    /// The duration, with this unit for a bare number; `None` if it is not a valid time.
    pub fn duration(self, unit: Duration) -> Option<Duration> {
        match self {
            Timeout::Bare(number) => Duration::try_from_secs_f64(number * unit.as_secs_f64()).ok(),
            Timeout::Exact(value) => Some(value),
        }
    }
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

/// The agents of a session for which a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reach {
    /// The agent that the person speaks to.
    Main,
    /// The agents that it started.
    Subagents,
    /// All of them.
    All,
}

/// A variable for a hook whose value is not in the hook's declaration.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: HeldText,
    /// Whether the value is a secret.
    pub secret: bool,
}

impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.known().filter(|_| !self.secret);
        write!(formatter, "{}={:?}", self.name, value.unwrap_or("(hidden)"))
    }
}

/// The user's configuration for all hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The programs that a hook may name without a path.
    pub whitelist: Vec<String>,
    /// The timeout of hooks that declare none.
    pub timeout: Option<Duration>,
    /// Whether hooks without declared permissions run in a box with the minimum.
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
    /// The declaration.
    pub spec: HookSpec,
    /// The events it is for.
    pub events: Vec<EventKind>,
    /// The subjects it is for.
    pub matcher: Matcher,
    /// What it does.
    pub action: Action,
    /// The dialect that it speaks.
    pub dialect: &'static dyn Dialect,
    /// How long it may take.
    pub timeout: Setting<Duration>,
    /// How its failure affects the operation.
    pub on_failure: Setting<OnFailure>,
    /// The agents for which it runs.
    pub reach: Setting<Reach>,
    /// The permissions of its program, declared or not. `None` if it runs without a box, or runs no program.
    pub permissions: Option<PermissionsSpec>,
    /// Why it is switched off, if its own declaration does not switch it off.
    pub off: Option<String>,
    /// The settings of its extension, as variables; not part of what is approved.
    pub settings: Vec<Variable>,
    /// The files it is for. Without patterns, it is for every event.
    pub patterns: FilePatterns,
    /// The condition under which it runs. A hook with an unreadable condition is kept, because it may be a gate: then
    /// it fails.
    pub condition: Option<Result<Arc<Condition>, ConditionError>>,
    /// Why it fails at each of its events, if it replaces a hook that could not be loaded.
    pub broken: Option<String>,
}

impl HookSpec {
    /// All that is wrong with it, each part by itself, except for its action and its condition. [`Hook::new`] tells only
    /// the first.
    pub fn faults(&self, rules: &Rules) -> Vec<HookError> {
        let dialect = valid::spoken(self);
        let matcher = match valid::events(&self.events) {
            Ok((events, names)) => valid::matcher(self.matcher.as_deref(), &events, names).err(),
            Err(_) => Matcher::parse(self.matcher.as_deref().unwrap_or_default()).err().map(HookError::from),
        };
        let timeout = dialect.as_ref().ok().and_then(|dialect| valid::timeout(self, rules, *dialect).err());
        let patterns = FilePatterns::parse(&self.file_patterns).err().map(HookError::from);
        [matcher, dialect.err(), valid::bounds(self).err(), timeout, patterns].into_iter().flatten().collect()
    }
}

impl Hook {
    /// Checks a declared hook and applies the defaults. Its templates stay text here; the engine reads them at run
    /// time.
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
        valid::spoken_as(&spec, dialect, &events)?;
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

    /// Writes the event as the hook reads it.
    pub fn written(&self, event: &Event) -> Vec<u8> {
        let HookSpec { name, version, spoken_as, .. } = &self.spec;
        self.dialect.write_event(event, &Addressee { name, version, spoken_as: spoken_as.as_deref() })
    }

    /// Reads the hook's output.
    pub fn heard(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        match &self.spec.spoken_as {
            Some(event) => self.dialect.read_verdict_of(event, kind, output),
            None => self.dialect.read_verdict(kind, output),
        }
    }

    /// The hook's answer about an event. Where changed arguments replace all others, those that it leaves out are null.
    pub fn completed(&self, event: &Event, mut answer: HookAnswer) -> HookAnswer {
        let patch = &mut answer.verdict.patch;
        if patch.is_empty() || !self.dialect.replaces_args() {
            return answer;
        }
        let (written, name) = (self.written(event), self.spec.spoken_as.as_deref());
        let name = name.unwrap_or_else(|| self.dialect.spell(event.kind));
        if let Ok(told) = self.dialect.read_event_named(name, &written)
            && let Some((tool, Some(args))) = told.event.call()
        {
            let told = args.keys().filter(|name| !told.spelling.added_args.contains(&name.as_str()));
            tool::remove_others(tool, told, patch);
        }
        answer
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.spec.id
    }

    /// Whether it runs a program of its own.
    pub fn runs_program(&self) -> bool {
        self.spec.runs_program()
    }

    /// The file whose content decides what it does, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        self.action.script()
    }

    /// The hook's own file that a word of its command line names, if the file's path is not UTF-8. The word can then
    /// only resemble the path. `None` if it resembles two files.
    pub fn own_file(&self, word: &str) -> Option<&Path> {
        if !word.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        let files = self.script().into_iter().chain(&self.spec.inputs).map(PathBuf::as_path);
        let mut alike = files.filter(|file| file.to_str().is_none() && file.to_string_lossy() == word);
        let found = alike.next()?;
        alike.all(|other| other == found).then_some(found)
    }

    /// Whether it runs in the background at this event, so that it decides nothing.
    pub fn detached(&self, kind: EventKind) -> bool {
        self.spec.detached.unwrap_or_else(|| self.dialect.defaults().detached.contains(&kind))
    }

    /// Whether its failure stops the operation or makes it ask.
    pub fn is_gate(&self) -> bool {
        self.on_failure.value != OnFailure::Allow
    }
}

/// Gives the values of an enum names for files and reports.
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
