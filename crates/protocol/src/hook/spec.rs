//! A hook as declared. Each key is a row of the table and a field.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::action::command::{ARGS, COMMAND};
use super::action::definition;
use super::definition::{path, seconds};
use super::key::{ApprovedPart, HookKey, KeyKind, OF_PROGRAM, ROW, SameRule, TextForm, Unknown, parts, remark, text};
use super::limits::LIMITS_KEYS;
use super::permissions::PERMISSIONS_KEYS;
use super::requires::{RATE_KEYS, REQUIRES_KEYS};
use super::{
    ActionSpec, Layer, LimitsSpec, Needs, OnFailure, Origin, PermissionsSpec, Priority, RateLimit, Reach, Requires,
    Source, Timeout,
};
use crate::dialect::{self, Dialect};

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
    /// The agent's name for the event that it was written for.
    pub spoken_as: Option<String>,
    pub timeout: Option<Timeout>,
    pub on_failure: Option<OnFailure>,
    pub priority: Priority,
    pub parallel: bool,
    /// Whether its process can be kept between events: it answers each line with one line, and ends with its input.
    pub persistent: bool,
    /// `async`: runs in the background and decides nothing.
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
    /// The declared permissions of its program.
    pub permissions: Option<PermissionsSpec>,
    pub enabled: bool,
    pub source: Source,
    pub layer: Layer,
    pub extension: Option<String>,
    /// The folder whose whole content decides what happens: the extension's.
    pub tree: Option<PathBuf>,
    /// The group whose members are approved together.
    pub group: Option<String>,
    /// The agent that has it in its own file, and runs it itself.
    #[serde(deserialize_with = "known_agent")]
    pub read_from: Option<AgentName>,
    pub origin: Origin,
    /// The root of the project that it came with.
    pub project: Option<PathBuf>,
}

/// The name of an agent that we know.
type AgentName = &'static str;

/// Reads the name of a known agent.
fn known_agent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static str>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    let known = |name: String| dialect::agent_named(&name).ok_or_else(|| D::Error::custom("no such agent"));
    Ok(name.map(known).transpose()?.map(|agent| agent.name))
}

impl HookSpec {
    /// A hook with only an id, an event and an action; its name is the id.
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
            spoken_as: None,
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

    /// Its id among the hooks of its own project, wherever we are now: see [`HookSpec::id_in`].
    pub fn own_id(&self) -> &str {
        let elsewhere = self.project.as_ref().and_then(|project| {
            let own = self.id.strip_suffix(project.to_str()?)?;
            own.strip_suffix('@')
        });
        elsewhere.unwrap_or(&self.id)
    }

    /// The id here of a hook in a project around ours. No hook of our project can have this id.
    pub fn id_in(project: &Path, id: &str) -> String {
        format!("{id}@{}", project.display())
    }

    /// The hook for messages: its name, and its owner.
    pub fn title(&self) -> String {
        let HookSpec { source, name, extension, .. } = self;
        match extension {
            Some(extension) => format!("hook `{name}` of extension `{extension}`"),
            None => format!("{} hook `{name}`", source.name()),
        }
    }

    /// Whether it runs a program of its own.
    pub fn runs_program(&self) -> bool {
        self.action.needs().is_program()
    }

    /// Its title, and its id for commands.
    pub fn label(&self) -> String {
        if self.id == self.name { self.title() } else { format!("{} ({})", self.title(), self.id) }
    }

    /// The file whose content decides what it does, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        self.action.descriptor().script()
    }
}

fn dialects() -> Vec<&'static str> {
    dialect::all().map(Dialect::name).collect()
}

macro_rules! names {
    ($choice:ty) => {
        || <$choice>::NAMES.iter().map(|(_, name)| *name).collect()
    };
}

/// Every key of a hook entry, in the order of the definition.
pub const HOOK_KEYS: &[HookKey] = &[
    HookKey {
        name: "name",
        about: "What people call it; a part of its id",
        default: "from the command",
        kind: KeyKind::Text(text("text that is not empty", TextForm::Word), |spec, name| spec.name = name),
        approved: ApprovedPart::Part(|hook| hook.spec.name.as_str().into()),
        ..ROW
    },
    HookKey {
        name: "version",
        about: "Its version, for people",
        default: "1.0.0",
        kind: KeyKind::Text(remark("text such as \"1.0.0\"", TextForm::Word), |spec, version| spec.version = version),
        approved: ApprovedPart::Part(|hook| hook.spec.version.as_str().into()),
        ..ROW
    },
    HookKey {
        name: "events",
        about: "The events it is for",
        approved: ApprovedPart::Part(|hook| hook.events.iter().map(|kind| kind.name()).collect()),
        ..ROW
    },
    HookKey {
        name: "matcher",
        about: "Which tools (notification types, custom names) it is for: names, prefixes with a star, a list with bars, or re: and an expression",
        default: "all",
        kind: KeyKind::Text(text("text", TextForm::Plain), |spec, matcher| spec.matcher = Some(matcher)),
        approved: ApprovedPart::Part(|hook| hook.matcher.text().into()),
        same: SameRule::If(|one, other| one.matcher == other.matcher),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "action",
        about: "What it does, where that is not starting a program: a map with a `type`",
        kind: KeyKind::Action,
        // The engine knows which programs are the same.
        approved: ApprovedPart::Part(definition),
        ..ROW
    },
    HookKey { default: "required, or an `action`", required: false, approved: ApprovedPart::InAction, ..COMMAND },
    HookKey { approved: ApprovedPart::InAction, ..ARGS },
    HookKey {
        name: "type",
        about: "What kind of hook it is; other agents write it",
        default: "`command`",
        kind: KeyKind::CommandType,
        approved: ApprovedPart::InAction,
        ..ROW
    },
    HookKey {
        name: "dialect",
        about: "How it is spoken to: `ollm`, `gate`, `rpc`, `agent`, or as another agent does: `claude`, `codex`, …",
        default: "by the spelling of its event: `before_tool` → ollm, `pre-tool-call` → gate, `fileEdited` → rpc, `PreToolUse` → agent",
        kind: KeyKind::Text(text("ollm, gate, rpc or agent", TextForm::OneOf(dialects)), |spec, dialect| {
            spec.dialect = Some(dialect);
        }),
        approved: ApprovedPart::Part(|hook| hook.dialect.name().into()),
        same: SameRule::If(|one, other| one.dialect.name() == other.dialect.name()),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "spokenAs",
        about: "For a hook that was written for one event of an agent: that agent's name for it, as in `beforeShellExecution`; an import writes it",
        default: "the first event of the agent that can say it",
        kind: KeyKind::Text(text("an agent's name for an event", TextForm::Word), |spec, event| {
            spec.spoken_as = Some(event);
        }),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.spoken_as.as_deref().map(Value::from)),
        same: SameRule::If(|one, other| one.spec.spoken_as == other.spec.spoken_as),
        ..ROW
    },
    HookKey {
        name: "timeout",
        about: "How long it may take: a number of milliseconds (seconds in `agent`), or text such as \"5s\"",
        default: "`hooks.timeout`, else 30 s (`gate`: 5 s)",
        kind: KeyKind::Time(|spec, time| spec.timeout = Some(time)),
        approved: ApprovedPart::Part(|hook| {
            let own = hook.spec.timeout.and_then(|time| time.duration(hook.dialect.defaults().timeout_unit));
            own.map(seconds).into()
        }),
        same: SameRule::If(|one, other| one.timeout.value == other.timeout.value),
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
        approved: ApprovedPart::Part(|hook| hook.spec.on_failure.map(OnFailure::name).into()),
        same: SameRule::If(|one, other| one.on_failure.value == other.on_failure.value),
        unknown: Unknown::Refused,
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
        approved: ApprovedPart::Part(|hook| hook.spec.priority.name().into()),
        ..ROW
    },
    HookKey {
        name: "parallel",
        about: "Whether it may run at the same time as its neighbours that may too",
        default: "false",
        kind: KeyKind::Flag(|spec, flag| spec.parallel = flag),
        approved: ApprovedPart::Part(|hook| hook.spec.parallel.into()),
        ..ROW
    },
    HookKey {
        name: "async",
        about: "Runs in the background: the agent does not wait, and it decides nothing",
        default: "false (`agent`: true at notifications)",
        kind: KeyKind::Flag(|spec, flag| spec.detached = Some(flag)),
        approved: ApprovedPart::Part(|hook| hook.spec.detached.into()),
        same: SameRule::If(|one, other| one.spec.detached == other.spec.detached),
        ..ROW
    },
    HookKey {
        name: "filePatterns",
        about: "The files it is for",
        default: "all, and events without a file",
        kind: KeyKind::Patterns(|spec, patterns| spec.file_patterns = patterns),
        approved: ApprovedPart::Part(|hook| hook.spec.file_patterns.as_slice().into()),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "if",
        about: "The condition under which it runs, in CEL",
        default: "always",
        kind: KeyKind::Text(text("an expression as text", TextForm::Expression), |spec, text| {
            spec.condition = Some(text);
        }),
        approved: ApprovedPart::Part(|hook| hook.spec.condition.as_deref().into()),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "rateLimit",
        about: "How often it may run",
        default: "always",
        kind: KeyKind::Section(RATE_KEYS),
        approved: ApprovedPart::Part(|hook| {
            let limit = &hook.spec.rate_limit;
            serde_json::json!({"perMinute": limit.per_minute, "cooldown": limit.cooldown.map(seconds)})
        }),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "requires",
        about: "What must be there for it to run",
        kind: KeyKind::Section(REQUIRES_KEYS),
        approved: ApprovedPart::Part(|hook| parts(REQUIRES_KEYS, hook).into()),
        unknown: Unknown::Refused,
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
        approved: ApprovedPart::Part(|hook| hook.spec.reach.map(Reach::name).into()),
        ..ROW
    },
    HookKey {
        name: "env",
        about: "Variables for it",
        kind: KeyKind::Variables(|spec, variables| spec.env = variables),
        approved: ApprovedPart::Part(|hook| {
            hook.spec.env.iter().map(|(name, value)| Value::from(vec![name.as_str(), value.as_str()])).collect()
        }),
        same: SameRule::If(|one, other| one.spec.env == other.spec.env),
        ..OF_PROGRAM
    },
    HookKey {
        name: "passEnv",
        about: "Variables of yours that it gets",
        kind: KeyKind::Texts("a list of names", |spec, names| spec.pass_env = names),
        approved: ApprovedPart::Part(|hook| hook.spec.pass_env.as_slice().into()),
        same: SameRule::If(|one, other| one.spec.pass_env == other.spec.pass_env),
        // Headers name variables, too.
        suits: |needs| needs.is_program() || matches!(needs, Needs::Address(_)),
        ..ROW
    },
    HookKey {
        name: "cwd",
        aliases: &["workingDirectory"],
        about: "The folder it runs in",
        default: "the event's; the project's root for an approved hook whose line names a file of the project by a relative path",
        kind: KeyKind::Text(text("a path", TextForm::Word), |spec, folder| spec.cwd = Some(folder.into())),
        approved: ApprovedPart::Part(|hook| hook.spec.cwd.as_deref().map(path).into()),
        same: SameRule::If(|one, other| one.spec.cwd == other.spec.cwd),
        ..OF_PROGRAM
    },
    HookKey {
        name: "inputs",
        about: "Further files that its script needs, beside those that the command names and the script imports; they are part of what is approved",
        kind: KeyKind::Files(|spec, files| spec.inputs = files),
        approved: ApprovedPart::Part(|hook| hook.spec.inputs.iter().map(|input| path(input)).collect()),
        same: SameRule::If(|one, other| one.spec.inputs == other.spec.inputs),
        ..OF_PROGRAM
    },
    HookKey {
        name: "limits",
        about: "What it may use: time, CPU time, memory, processes, open files, file size, output per stream",
        default: "1 MiB of output",
        kind: KeyKind::Section(LIMITS_KEYS),
        approved: ApprovedPart::Part(|hook| parts(LIMITS_KEYS, hook).into()),
        same: SameRule::If(|one, other| one.spec.limits == other.spec.limits),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "permissions",
        about: "What its program may do: it then runs in a box, and reads only system folders, its own files and the project, writes only a temporary folder of its own, and has no network, but for what is named here",
        default: "nothing beyond that for hooks of a project or an extension (`hooks.box`), everything for your own",
        kind: KeyKind::Section(PERMISSIONS_KEYS),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.permissions.as_ref().map(PermissionsSpec::to_json)),
        same: SameRule::If(|one, other| one.spec.permissions == other.spec.permissions),
        unknown: Unknown::Refused,
        ..ROW
    },
    HookKey {
        name: "source",
        about: "Where it comes from",
        approved: ApprovedPart::Part(|hook| hook.spec.source.name().into()),
        ..ROW
    },
    HookKey {
        name: "extension",
        about: "The extension it came with",
        approved: ApprovedPart::Part(|hook| hook.spec.extension.as_deref().into()),
        ..ROW
    },
    HookKey {
        name: "persistent",
        about: "Whether it can be kept between events: it answers a line for each line, and ends with its input",
        default: "false",
        kind: KeyKind::Flag(|spec, flag| spec.persistent = flag),
        unhonoured: Some("this version starts the hook for each event all the same"),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.persistent.then_some(Value::Bool(true))),
        same: SameRule::If(|one, other| one.spec.persistent == other.spec.persistent),
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
