//! The keys of a hook entry, one row each. The reader, the JSON Schema, the reference, the definition that an approval is bound
//! to and the comparison of twins all come from these rows.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::action::command::{ARGS, COMMAND};
use super::action::definition;
use super::definition::{limits, path, seconds};
use super::{Hook, HookSpec, OnFailure, PermissionsSpec, Priority, Reach, Timeout};
use crate::dialect::{self, Dialect};

/// A key of a hook entry.
#[derive(Clone, Copy, Debug)]
pub struct HookKey {
    /// As it is written; its spelling in snake case is read as well.
    pub name: &'static str,
    /// Other words for it.
    pub aliases: &'static [&'static str],
    /// What it says, in one sentence.
    pub about: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// Whether there is nothing without it.
    pub required: bool,
    /// What it holds, and where that goes.
    pub kind: KeyKind,
    /// Why this version cannot do what it asks for, if it cannot; who sets it is told so.
    pub unhonoured: Option<&'static str>,
    /// Whether an approval is bound to it.
    pub approved: Approved,
    /// Whether two hooks that differ in it do the same.
    pub same: Same,
}

/// What a key holds, and the field it goes into.
#[derive(Clone, Copy, Debug)]
pub enum KeyKind {
    /// It is no key of an entry: the place of the entry says it.
    Place,
    /// It says what the hook does: a map with a type, and the keys of that type.
    Action,
    /// It says nothing: other agents write it.
    CommandType,
    /// Text.
    Text(Text, fn(&mut HookSpec, String)),
    /// True or false.
    Flag(fn(&mut HookSpec, bool)),
    /// A list of texts, in these words.
    Texts(&'static str, fn(&mut HookSpec, Vec<String>)),
    /// A list of services, each as host and port.
    Services(fn(&mut HookSpec, Vec<String>)),
    /// Patterns of files, at least one.
    Patterns(fn(&mut HookSpec, Vec<String>)),
    /// A line that is split into words without a shell, and its words.
    Line(fn(&mut HookSpec, String, Vec<String>)),
    /// Variables and their values.
    Variables(fn(&mut HookSpec, Vec<(String, String)>)),
    /// Headers and their values.
    Headers(fn(&mut HookSpec, Vec<(String, String)>)),
    /// A map with any keys.
    Object(fn(&mut HookSpec, Map<String, Value>)),
    /// Files of the hook's folder.
    Files(fn(&mut HookSpec, Vec<PathBuf>)),
    /// A number in the unit of the dialect, or text with a unit.
    Time(fn(&mut HookSpec, Timeout)),
    /// Text with a unit of time.
    Span(fn(&mut HookSpec, Duration)),
    /// A number of milliseconds, or text with a unit; may be nothing.
    Pause(fn(&mut HookSpec, Duration)),
    /// A number of bytes, or text with a unit.
    Size(fn(&mut HookSpec, u64)),
    /// A whole number.
    Count(fn(&mut HookSpec, u64)),
    /// A whole number above zero.
    Positive(fn(&mut HookSpec, u32)),
    /// One of these words; the function takes it if it is one.
    Choice(fn() -> Vec<&'static str>, fn(&mut HookSpec, &str) -> bool),
    /// A map with keys of its own.
    Section(&'static [HookKey], Unknown),
}

/// Which text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// What is expected, for the message about anything else.
    pub expected: &'static str,
    /// How it may be written.
    pub form: TextForm,
    /// Whether only people look at it, so that a wrong one costs a warning and not the hook.
    pub for_people: bool,
}

/// How a text may be written.
#[derive(Clone, Copy, Debug)]
pub enum TextForm {
    /// Any text, or what can be taken for one.
    Any,
    /// Text with something in it, or what can be taken for one.
    Word,
    /// Nothing but text.
    Plain,
    /// Nothing but text, with something in it; what it means is checked later.
    Expression,
    /// Nothing but text, one of these words; whether it is one is checked later.
    OneOf(fn() -> Vec<&'static str>),
}

/// What an unknown key of a section means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It is ignored with a warning.
    Warned,
    /// The hook is not loaded: nobody knows what it would have meant.
    Refused,
}

/// Whether an approval is bound to a key.
#[derive(Clone, Copy, Debug)]
pub enum Approved {
    /// It is, with this value.
    Part(fn(&Hook) -> Value),
    /// It is where it is set: approvals from before there was such a key go on.
    PartIfSet(fn(&Hook) -> Option<Value>),
    /// It is a part of what the hook does, which has a row of its own.
    InAction,
    /// It changes nothing about what the hook does.
    No,
}

/// Whether two hooks that differ in a key do the same.
#[derive(Clone, Copy, Debug)]
pub enum Same {
    /// The key does not matter for that, or is compared elsewhere.
    Anyway,
    /// They do if this says so.
    If(fn(&Hook, &Hook) -> bool),
}

impl HookKey {
    /// The key of an entry with this name, or with this other word for it.
    pub fn find(name: &str) -> Option<&'static HookKey> {
        find(HOOK_KEYS, name)
    }

    /// Whether a file can have it.
    pub fn is_written(&self) -> bool {
        !matches!(self.kind, KeyKind::Place)
    }

    /// Whether this key leaves open that two hooks do the same.
    pub fn is_same(&self, one: &Hook, other: &Hook) -> bool {
        match self.same {
            Same::Anyway => true,
            Same::If(same) => same(one, other),
        }
    }

    /// What an approval is bound to of this key.
    pub fn part(&self, hook: &Hook) -> Option<Value> {
        match self.approved {
            Approved::Part(part) => Some(part(hook)),
            Approved::PartIfSet(part) => part(hook),
            Approved::InAction | Approved::No => None,
        }
    }
}

/// The key with this name, or with this other word for it.
pub fn find(keys: &'static [HookKey], name: &str) -> Option<&'static HookKey> {
    keys.iter().find(|key| key.name == name || key.aliases.contains(&name))
}

/// A row of which only people make anything.
pub(super) const ROW: HookKey = HookKey {
    name: "",
    aliases: &[],
    about: "",
    default: "none",
    required: false,
    kind: KeyKind::Place,
    unhonoured: None,
    approved: Approved::No,
    same: Same::Anyway,
};

pub(super) const fn text(expected: &'static str, form: TextForm) -> Text {
    Text { expected, form, for_people: false }
}

const fn remark(expected: &'static str, form: TextForm) -> Text {
    Text { expected, form, for_people: true }
}

fn dialects() -> Vec<&'static str> {
    dialect::all().map(Dialect::name).collect()
}

macro_rules! names {
    ($choice:ty) => {
        || <$choice>::NAMES.iter().map(|(_, name)| *name).collect()
    };
}

/// Every key of a hook entry, in the order in which the definition has them.
pub const HOOK_KEYS: &[HookKey] = &[
    HookKey {
        name: "name",
        about: "What people call it; a part of its id",
        default: "from the command",
        kind: KeyKind::Text(text("text that is not empty", TextForm::Word), |spec, name| spec.name = name),
        approved: Approved::Part(|hook| hook.spec.name.as_str().into()),
        ..ROW
    },
    HookKey {
        name: "version",
        about: "Its version, for people",
        default: "1.0.0",
        kind: KeyKind::Text(remark("text such as \"1.0.0\"", TextForm::Word), |spec, version| spec.version = version),
        approved: Approved::Part(|hook| hook.spec.version.as_str().into()),
        ..ROW
    },
    HookKey {
        name: "events",
        about: "The events it is for",
        approved: Approved::Part(|hook| hook.events.iter().map(|kind| kind.name()).collect()),
        ..ROW
    },
    HookKey {
        name: "matcher",
        about: "Which tools (notification types, custom names) it is for: names, prefixes with a star, a list with bars, or re: and an expression",
        default: "all",
        kind: KeyKind::Text(text("text", TextForm::Plain), |spec, matcher| spec.matcher = Some(matcher)),
        approved: Approved::Part(|hook| hook.matcher.text().into()),
        same: Same::If(|one, other| one.matcher == other.matcher),
        ..ROW
    },
    HookKey {
        name: "action",
        about: "What it does, where that is not starting a program: a map with a `type`",
        kind: KeyKind::Action,
        // Which programs are one is a fact that the engine knows.
        approved: Approved::Part(definition),
        ..ROW
    },
    HookKey { default: "required, or an `action`", required: false, approved: Approved::InAction, ..COMMAND },
    HookKey { approved: Approved::InAction, ..ARGS },
    HookKey {
        name: "type",
        about: "What kind of hook it is; other agents write it",
        default: "`command`",
        kind: KeyKind::CommandType,
        approved: Approved::InAction,
        ..ROW
    },
    HookKey {
        name: "dialect",
        about: "How it is spoken to: `ollm`, `gate`, `rpc`, `agent`, or as another agent does: `claude`, `codex`, …",
        default: "by the spelling of its event: `before_tool` → ollm, `pre-tool-call` → gate, `fileEdited` → rpc, `PreToolUse` → agent",
        kind: KeyKind::Text(text("ollm, gate, rpc or agent", TextForm::OneOf(dialects)), |spec, dialect| {
            spec.dialect = Some(dialect);
        }),
        approved: Approved::Part(|hook| hook.dialect.name().into()),
        same: Same::If(|one, other| one.dialect.name() == other.dialect.name()),
        ..ROW
    },
    HookKey {
        name: "timeout",
        about: "How long it may take: a number of milliseconds (seconds in `agent`), or text such as \"5s\"",
        default: "`hooks.timeout`, else 30 s (`gate`: 5 s)",
        kind: KeyKind::Time(|spec, time| spec.timeout = Some(time)),
        approved: Approved::Part(|hook| hook.spec.timeout.map(|_| hook.timeout.value.as_secs_f64()).into()),
        same: Same::If(|one, other| one.timeout.value == other.timeout.value),
        ..ROW
    },
    HookKey {
        name: "onFailure",
        about: "What the failure of the hook itself means for the operation",
        default: "`allow` (`gate`: `block`)",
        kind: KeyKind::Choice(names!(OnFailure), |spec, name| {
            spec.on_failure = OnFailure::from_name(name);
            spec.on_failure.is_some()
        }),
        approved: Approved::Part(|hook| hook.spec.on_failure.map(OnFailure::name).into()),
        same: Same::If(|one, other| one.on_failure.value == other.on_failure.value),
        ..ROW
    },
    HookKey {
        name: "priority",
        about: "How urgent it is among its neighbours",
        default: "`normal`",
        kind: KeyKind::Choice(names!(Priority), |spec, name| {
            let found = Priority::from_name(name);
            spec.priority = found.unwrap_or_default();
            found.is_some()
        }),
        approved: Approved::Part(|hook| hook.spec.priority.name().into()),
        ..ROW
    },
    HookKey {
        name: "parallel",
        about: "Whether it may run at the same time as its neighbours that may too",
        default: "false",
        kind: KeyKind::Flag(|spec, flag| spec.parallel = flag),
        approved: Approved::Part(|hook| hook.spec.parallel.into()),
        ..ROW
    },
    HookKey {
        name: "async",
        about: "Whether nobody waits for it; it decides nothing then",
        default: "false (`agent`: true at notifications)",
        kind: KeyKind::Flag(|spec, flag| spec.detached = Some(flag)),
        approved: Approved::Part(|hook| hook.spec.detached.into()),
        same: Same::If(|one, other| one.spec.detached == other.spec.detached),
        ..ROW
    },
    HookKey {
        name: "filePatterns",
        about: "The files it is for",
        default: "all, and events without a file",
        kind: KeyKind::Patterns(|spec, patterns| spec.file_patterns = patterns),
        approved: Approved::Part(|hook| hook.spec.file_patterns.as_slice().into()),
        ..ROW
    },
    HookKey {
        name: "if",
        about: "The condition under which it runs, in CEL",
        default: "always",
        kind: KeyKind::Text(text("an expression as text", TextForm::Expression), |spec, text| {
            spec.condition = Some(text);
        }),
        approved: Approved::Part(|hook| hook.spec.condition.as_deref().into()),
        ..ROW
    },
    HookKey {
        name: "rateLimit",
        about: "How often it may run",
        default: "always",
        kind: KeyKind::Section(RATE_KEYS, Unknown::Warned),
        approved: Approved::Part(|hook| {
            let limit = &hook.spec.rate_limit;
            serde_json::json!({"perMinute": limit.per_minute, "cooldown": limit.cooldown.map(seconds)})
        }),
        ..ROW
    },
    HookKey {
        name: "requires",
        about: "What must be there for it to run",
        kind: KeyKind::Section(REQUIRES_KEYS, Unknown::Refused),
        approved: Approved::Part(|hook| {
            let needed = &hook.spec.requires;
            serde_json::json!({"commands": needed.commands, "files": needed.files, "services": needed.services})
        }),
        ..ROW
    },
    HookKey {
        name: "scope",
        about: "For which agents of a session it runs",
        default: "`all`",
        kind: KeyKind::Choice(names!(Reach), |spec, name| {
            spec.reach = Reach::from_name(name);
            spec.reach.is_some()
        }),
        approved: Approved::Part(|hook| hook.spec.reach.map(Reach::name).into()),
        ..ROW
    },
    HookKey {
        name: "env",
        about: "Variables for it",
        kind: KeyKind::Variables(|spec, variables| spec.env = variables),
        approved: Approved::Part(|hook| {
            hook.spec.env.iter().map(|(name, value)| Value::from(vec![name.as_str(), value.as_str()])).collect()
        }),
        same: Same::If(|one, other| one.spec.env == other.spec.env),
        ..ROW
    },
    HookKey {
        name: "passEnv",
        about: "Variables of yours that it gets",
        kind: KeyKind::Texts("a list of names", |spec, names| spec.pass_env = names),
        approved: Approved::Part(|hook| hook.spec.pass_env.as_slice().into()),
        same: Same::If(|one, other| one.spec.pass_env == other.spec.pass_env),
        ..ROW
    },
    HookKey {
        name: "cwd",
        aliases: &["workingDirectory"],
        about: "The folder it runs in",
        default: "the event's; the project's root for an approved hook whose line names a file of the project by a relative path",
        kind: KeyKind::Text(text("a path", TextForm::Word), |spec, folder| spec.cwd = Some(folder.into())),
        approved: Approved::Part(|hook| hook.spec.cwd.as_deref().map(path).into()),
        same: Same::If(|one, other| one.spec.cwd == other.spec.cwd),
        ..ROW
    },
    HookKey {
        name: "inputs",
        about: "Further files that its script needs, beside those that the command names and the script imports; they are part of what is approved",
        kind: KeyKind::Files(|spec, files| spec.inputs = files),
        approved: Approved::Part(|hook| hook.spec.inputs.iter().map(|input| path(input)).collect()),
        same: Same::If(|one, other| one.spec.inputs == other.spec.inputs),
        ..ROW
    },
    HookKey {
        name: "limits",
        about: "What it may use: time, CPU time, memory, processes, open files, file size, output per stream",
        default: "1 MiB of output",
        kind: KeyKind::Section(LIMITS_KEYS, Unknown::Warned),
        approved: Approved::Part(|hook| limits(&hook.spec.limits, hook.dialect.defaults().timeout_unit)),
        same: Same::If(|one, other| one.spec.limits == other.spec.limits),
        ..ROW
    },
    HookKey {
        name: "permissions",
        about: "What its program may do: it then runs in a box, and reads only system folders, its own files and the project, writes only a temporary folder of its own, and has no network, but for what is named here",
        default: "nothing beyond that for hooks of a project or an extension (`hooks.box`), everything for your own",
        kind: KeyKind::Section(PERMISSIONS_KEYS, Unknown::Refused),
        approved: Approved::PartIfSet(|hook| hook.spec.permissions.as_ref().map(PermissionsSpec::to_json)),
        same: Same::If(|one, other| one.spec.permissions == other.spec.permissions),
        ..ROW
    },
    HookKey {
        name: "source",
        about: "Where it comes from",
        approved: Approved::Part(|hook| hook.spec.source.name().into()),
        ..ROW
    },
    HookKey {
        name: "extension",
        about: "The extension it came with",
        approved: Approved::Part(|hook| hook.spec.extension.as_deref().into()),
        ..ROW
    },
    HookKey {
        name: "persistent",
        about: "Whether it can be kept between events: it answers a line for each line, and ends with its input",
        default: "false",
        kind: KeyKind::Flag(|spec, flag| spec.persistent = flag),
        unhonoured: Some("this version starts the hook for each event all the same"),
        approved: Approved::PartIfSet(|hook| hook.spec.persistent.then_some(Value::Bool(true))),
        same: Same::If(|one, other| one.spec.persistent == other.spec.persistent),
        ..ROW
    },
    HookKey {
        name: "id",
        about: "What it is called where one hook is meant",
        default: "`scope:file:event:name`",
        kind: KeyKind::Text(text("text that is not empty", TextForm::Word), |spec, id| spec.id = id),
        ..ROW
    },
    HookKey {
        name: "description",
        about: "What it does, for people",
        kind: KeyKind::Text(remark("text", TextForm::Any), |spec, text| spec.description = Some(text)),
        ..ROW
    },
    HookKey {
        name: "enabled",
        about: "Whether it is on",
        default: "true",
        kind: KeyKind::Flag(|spec, flag| spec.enabled = flag),
        ..ROW
    },
];

const RATE_KEYS: &[HookKey] = &[
    HookKey {
        name: "perMinute",
        about: "At most so often in any sixty seconds",
        kind: KeyKind::Positive(|spec, count| spec.rate_limit.per_minute = Some(count)),
        ..ROW
    },
    HookKey {
        name: "cooldownMs",
        aliases: &["cooldown"],
        about: "At least so long between two runs: a number of milliseconds, or text such as \"5s\"",
        kind: KeyKind::Pause(|spec, pause| spec.rate_limit.cooldown = Some(pause).filter(|pause| !pause.is_zero())),
        ..ROW
    },
];

const REQUIRES_KEYS: &[HookKey] = &[
    HookKey {
        name: "commands",
        about: "Programs on the search path",
        kind: KeyKind::Texts("a list of programs", |spec, commands| spec.requires.commands = commands),
        ..ROW
    },
    HookKey {
        name: "files",
        about: "Files, from the project's root",
        kind: KeyKind::Texts("a list of paths", |spec, files| spec.requires.files = files),
        ..ROW
    },
    HookKey {
        name: "services",
        about: "Services that answer, as host:port",
        kind: KeyKind::Services(|spec, services| spec.requires.services = services),
        ..ROW
    },
];

const PERMISSIONS_KEYS: &[HookKey] = &[
    HookKey {
        name: "read",
        about: "Further files and folders that it may read: absolute, below `~`, or from the project's root",
        kind: KeyKind::Texts("a list of paths", |spec, paths| spec.permissions.get_or_insert_default().read = paths),
        ..ROW
    },
    HookKey {
        name: "write",
        about: "Files and folders that it may write, spelled likewise; a folder that ends in `/` is made if it is not there",
        kind: KeyKind::Texts("a list of paths", |spec, paths| spec.permissions.get_or_insert_default().write = paths),
        ..ROW
    },
    HookKey {
        name: "net",
        about: "Whether it may use the network and sockets of this machine",
        default: "false",
        kind: KeyKind::Flag(|spec, flag| spec.permissions.get_or_insert_default().net = flag),
        ..ROW
    },
];

const LIMITS_KEYS: &[HookKey] = &[
    HookKey {
        name: "time",
        about: "A number in the dialect's unit, or text such as \"5s\"",
        kind: KeyKind::Time(|spec, time| spec.limits.time = Some(time)),
        ..ROW
    },
    HookKey {
        name: "cpu",
        about: "Text such as \"5s\"",
        kind: KeyKind::Span(|spec, span| spec.limits.cpu = Some(span)),
        ..ROW
    },
    HookKey {
        name: "memory",
        about: "A number of bytes, or text such as \"256MiB\"",
        kind: KeyKind::Size(|spec, size| spec.limits.memory = Some(size)),
        ..ROW
    },
    HookKey {
        name: "processes",
        about: "How many at once",
        kind: KeyKind::Count(|spec, count| spec.limits.processes = Some(count)),
        ..ROW
    },
    HookKey {
        name: "files",
        about: "How many open at once",
        kind: KeyKind::Count(|spec, count| spec.limits.files = Some(count)),
        ..ROW
    },
    HookKey {
        name: "fileSize",
        about: "A number of bytes, or text such as \"16MiB\"",
        kind: KeyKind::Size(|spec, size| spec.limits.file_size = Some(size)),
        ..ROW
    },
    HookKey {
        name: "output",
        about: "A number of bytes of each stream, or text such as \"1MiB\"",
        kind: KeyKind::Size(|spec, size| spec.limits.output = Some(size)),
        ..ROW
    },
];
