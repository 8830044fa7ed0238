//! One hook as declared: the keys of an entry, the same in every form.

use std::path::PathBuf;
use std::time::Duration;

use ollm_protocol::hook::{RateLimit, Reach, Requires};
use ollm_protocol::{ActionSpec, HookSpec, LimitsSpec, OnFailure, Priority, Timeout};

use crate::file::Finding;
use crate::format::Context;
use crate::node::{Cursor, Node, Part};
use crate::path;
use crate::value;

mod action;
mod reader;
mod schema;

pub(crate) use action::Deed;
use action::left;
use reader::{COUNT, FLAG, SIZE, TIME};
pub(crate) use reader::{MANY, Reader, canonical, meant, not_loaded};
pub(crate) use schema::by_event;
pub use schema::{hook_file_schema, hook_schema};

/// The keys of an entry.
const KEYS: &[&str] = &[
    "name",
    "description",
    "command",
    "args",
    "action",
    "dialect",
    "matcher",
    "filePatterns",
    "if",
    "timeout",
    "onFailure",
    "priority",
    "parallel",
    "persistent",
    "async",
    "rateLimit",
    "requires",
    "scope",
    "env",
    "passEnv",
    "cwd",
    "inputs",
    "limits",
    "id",
    "version",
    "enabled",
    "type",
];

const LIMITS: &[&str] = &["time", "cpu", "memory", "processes", "files", "fileSize", "output"];
const RATE: &[&str] = &["perMinute", "cooldownMs", "cooldown"];
const REQUIRES: &[&str] = &["commands", "files", "services"];

/// The keys that are read in an entry and in its parts; an action is named with its type.
pub(crate) fn keys() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let own = [("hooks", KEYS), ("hooks.limits", LIMITS), ("hooks.rateLimit", RATE), ("hooks.requires", REQUIRES)];
    own.into_iter().chain(action::TYPES.iter().copied())
}

/// What an entry says, before it is known where its files are.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    version: Option<String>,
    description: Option<String>,
    /// The events, where the entry itself names them.
    pub(crate) events: Vec<String>,
    /// `command` and `args` beside the other keys.
    command: Option<String>,
    args: Vec<String>,
    /// What it does, once that is known.
    pub(crate) deed: Option<Deed>,
    dialect: Option<String>,
    pub(crate) matcher: Option<String>,
    pub(crate) file_patterns: Vec<String>,
    condition: Option<String>,
    timeout: Option<Timeout>,
    on_failure: Option<OnFailure>,
    priority: Priority,
    parallel: bool,
    persistent: bool,
    detached: Option<bool>,
    rate_limit: RateLimit,
    requires: Requires,
    reach: Option<Reach>,
    env: Vec<(String, String)>,
    pass_env: Vec<String>,
    cwd: Option<PathBuf>,
    inputs: Vec<PathBuf>,
    limits: LimitsSpec,
    enabled: Option<bool>,
}

/// A form's own keys: whether it took this one.
pub(crate) type Own = fn(&mut Reader<'_>, &mut Draft, &str, &Cursor<'_>) -> bool;

/// A form whose entries have no keys of their own.
pub(crate) fn no_own(_: &mut Reader<'_>, _: &mut Draft, _: &str, _: &Cursor<'_>) -> bool {
    false
}

/// Reads the keys of an entry; `None` when the hook cannot be loaded, with the findings that say why.
pub(crate) fn read(entry: &Cursor<'_>, context: &Context<'_>, findings: &mut Vec<Finding>, own: Own) -> Option<Draft> {
    let mut reader = Reader { context, findings, sound: true };
    let draft = reader.draft(entry, own);
    reader.sound.then_some(draft)
}

impl Draft {
    /// One of which nothing is known but its name.
    pub(crate) fn named(name: Option<String>) -> Draft {
        Draft { name, ..Draft::default() }
    }

    /// What it does as written, which is what a hook without a name is told by.
    pub(crate) fn line(&self) -> String {
        self.deed.as_ref().map(Deed::line).unwrap_or_default()
    }

    /// The declared hook, with its own action.
    pub(crate) fn spec(self, id: String, event: &str, action: ActionSpec, context: &Context<'_>) -> HookSpec {
        let events = if self.events.is_empty() { vec![event.to_owned()] } else { self.events };
        HookSpec {
            name: self.name.unwrap_or_else(|| action::readable(&action)),
            version: self.version.unwrap_or_else(|| "1.0.0".to_owned()),
            description: self.description,
            events,
            matcher: self.matcher,
            dialect: self.dialect,
            timeout: self.timeout,
            on_failure: self.on_failure,
            priority: self.priority,
            parallel: self.parallel,
            persistent: self.persistent,
            detached: self.detached,
            file_patterns: self.file_patterns,
            condition: self.condition,
            rate_limit: self.rate_limit,
            requires: self.requires,
            reach: self.reach,
            env: self.env,
            pass_env: self.pass_env,
            cwd: self.cwd,
            inputs: self.inputs,
            limits: self.limits,
            enabled: self.enabled.unwrap_or(true),
            source: context.source,
            layer: context.layer,
            group: context.group.map(str::to_owned),
            extension: context.extension.map(str::to_owned),
            read_from: context.agent.map(|agent| agent.name),
            tree: context.extension.map(|_| context.folder.to_owned()),
            ..HookSpec::new(id, event, action)
        }
    }

    /// The line of shell an entry names.
    pub(crate) fn shell(&mut self) -> ActionSpec {
        self.dialect = Some("agent".to_owned());
        ActionSpec::Shell { script: self.command.clone().unwrap_or_default() }
    }
}

impl Reader<'_> {
    fn draft(&mut self, entry: &Cursor<'_>, own: Own) -> Draft {
        let mut draft = Draft::default();
        if !matches!(entry.node, Node::Map(_)) {
            let message = format!("a hook must be a map of its keys, not {}", entry.node.kind());
            self.refuse(entry, &message, Some("write {\"name\": …, \"command\": …}".to_owned()));
            return draft;
        }
        self.keys(entry, |reader, key, value| {
            if !own(reader, &mut draft, key, value) {
                reader.key(&mut draft, key, value);
            }
        });
        self.settle(&mut draft, entry);
        draft
    }

    /// What the hook does: either `command` or an action.
    fn settle(&mut self, draft: &mut Draft, entry: &Cursor<'_>) {
        match (&draft.command, &draft.deed) {
            (Some(_), Some(_)) => {
                let help = Some("keep one of them".to_owned());
                self.refuse(entry, "the hook has both a `command` and an action", help);
            }
            (Some(command), None) => {
                draft.deed = Some(Deed::Program { command: command.clone(), args: draft.args.clone() });
            }
            (None, Some(_)) if !draft.args.is_empty() => {
                self.refuse(entry, "`args` stands beside an action", Some("put it into the action".to_owned()));
            }
            (None, None) if self.sound => {
                self.refuse(entry, "the hook has no `command`", Some("name the program to start".to_owned()));
            }
            (None, _) => {}
        }
    }

    fn key(&mut self, draft: &mut Draft, key: &str, at: &Cursor<'_>) {
        match key {
            "id" => draft.id = self.need(at, value::word(at.node), "text that is not empty"),
            "name" => draft.name = self.need(at, value::word(at.node), "text that is not empty"),
            "version" => draft.version = self.want(at, value::word(at.node), "text such as \"1.0.0\""),
            "description" => draft.description = self.want(at, value::text(at.node), "text"),
            "command" => draft.command = self.need(at, value::plain(at.node), "text"),
            "args" => draft.args = self.texts(at, "a list of texts"),
            "action" => draft.deed = self.action(at),
            "dialect" => draft.dialect = self.need(at, value::plain(at.node), "ollm, gate, rpc or agent"),
            "matcher" => draft.matcher = self.need(at, value::plain(at.node), "text"),
            "filePatterns" => draft.file_patterns = self.patterns(at),
            "if" => draft.condition = self.need(at, value::plain(at.node), "an expression as text"),
            "timeout" => draft.timeout = self.need(at, value::timeout(at.node), TIME),
            "onFailure" => draft.on_failure = self.choice(at, OnFailure::from_name, OnFailure::NAMES),
            "priority" => draft.priority = self.choice(at, Priority::from_name, Priority::NAMES).unwrap_or_default(),
            "parallel" => draft.parallel = self.need(at, value::flag(at.node), FLAG).unwrap_or_default(),
            "persistent" => draft.persistent = self.need(at, value::flag(at.node), FLAG).unwrap_or_default(),
            "async" => draft.detached = self.need(at, value::flag(at.node), FLAG),
            "rateLimit" => draft.rate_limit = self.rate_limit(at),
            "requires" => draft.requires = self.requires(at),
            "scope" => draft.reach = self.choice(at, Reach::from_name, Reach::NAMES),
            "enabled" => draft.enabled = self.need(at, value::flag(at.node), FLAG),
            "env" => {
                draft.env = self.texts_by_name(at);
                self.relative_path(at);
            }
            "passEnv" => draft.pass_env = self.texts(at, "a list of names"),
            "cwd" => draft.cwd = self.need(at, value::word(at.node), "a path").map(PathBuf::from),
            "inputs" => draft.inputs = self.inputs(at),
            "limits" => draft.limits = self.limits(at),
            key => self.other(key, at),
        }
    }

    /// Says that entries of PATH are left out that mean another folder wherever the hook runs.
    fn relative_path(&mut self, env: &Cursor<'_>) {
        let Some(path) = env.get("PATH") else { return };
        let value::Reading::Exact(text) = value::word(path.node) else { return };
        let relative: Vec<String> = std::env::split_paths(&text)
            .filter(|entry| !entry.is_absolute())
            .map(|entry| format!("`{}`", entry.display()))
            .collect();
        if !relative.is_empty() {
            let message = format!("relative entries of PATH are left out: {}", relative.join(", "));
            self.warn(&path, Part::Value, message, Some("write them as absolute paths".to_owned()));
        }
    }

    /// Keys that say nothing about the hook, or nothing that could be taken.
    fn other(&mut self, key: &str, at: &Cursor<'_>) {
        match key {
            "$schema" => {}
            "type" if matches!(at.node, Node::Text(kind) if kind == "command") => {}
            "type" => {
                let help = "in a hook file, write what else a hook can do as {\"action\": {\"type\": …}}";
                self.refuse(at, "only hooks of type \"command\" are written like this", Some(help.to_owned()));
            }
            "trusted" => self.trusted(at),
            "source" | "sourcePath" | "extensionName" => {
                let message = format!("`{key}` is ignored: the place of its file says where a hook comes from");
                self.warn(at, Part::Key, message, Some("remove it".to_owned()));
            }
            "permissions" => {
                // Ignoring it would run the hook with more than it was given.
                let help = "remove it; `limits` bounds what a hook may use, `env` and `passEnv` what it gets to see";
                self.refuse(at, "this version cannot hold a hook to `permissions`", Some(help.to_owned()));
            }
            "hooks" => {
                let help = "write `command` beside `matcher`, or put groups into a file of their own";
                self.refuse(at, "`hooks` inside an entry is not known in this form", Some(help.to_owned()));
            }
            "eventType" | "when" | "then" => {
                let help = "such a hook has a file of its own; here the event is the key of the list";
                self.refuse(at, &format!("`{key}` belongs to another form"), Some(help.to_owned()));
            }
            _ => self.unknown(at, KEYS),
        }
    }

    fn inputs(&mut self, at: &Cursor<'_>) -> Vec<PathBuf> {
        let written = self.texts(at, "a list of paths");
        let mut inputs = Vec::with_capacity(written.len());
        for (index, text) in written.iter().enumerate() {
            match path::inside(self.context.folder, text, &self.context.walked) {
                Ok(path) => inputs.push(path),
                Err(outside) => {
                    let item = at.items().nth(index).unwrap_or(*at);
                    let (message, help) = left(text, &outside);
                    self.refuse(&item, &message, Some(help.to_owned()));
                }
            }
        }
        inputs
    }

    fn limits(&mut self, at: &Cursor<'_>) -> LimitsSpec {
        let mut limits = LimitsSpec::default();
        self.map(at, |reader, key, at| match key {
            "time" => limits.time = reader.need(at, value::timeout(at.node), TIME),
            "cpu" => limits.cpu = reader.need(at, value::span(at.node), "a time with its unit such as \"5s\""),
            "memory" => limits.memory = reader.need(at, value::size(at.node), SIZE),
            "fileSize" => limits.file_size = reader.need(at, value::size(at.node), SIZE),
            "output" => limits.output = reader.need(at, value::size(at.node), SIZE),
            "processes" => limits.processes = reader.need(at, value::whole(at.node), COUNT),
            "files" => limits.files = reader.need(at, value::whole(at.node), COUNT),
            _ => reader.unknown(at, LIMITS),
        });
        limits
    }

    fn rate_limit(&mut self, at: &Cursor<'_>) -> RateLimit {
        let mut limit = RateLimit::default();
        self.map(at, |reader, key, at| match key {
            "perMinute" => limit.per_minute = reader.need(at, value::positive(at.node), "a whole number above zero"),
            "cooldownMs" | "cooldown" => {
                let time = value::pause(at.node, Duration::from_millis(1));
                limit.cooldown = reader.need(at, time, "a number of milliseconds, or text such as \"5s\"");
            }
            _ => reader.unknown(at, RATE),
        });
        limit.cooldown = limit.cooldown.filter(|cooldown| !cooldown.is_zero());
        limit
    }

    fn requires(&mut self, at: &Cursor<'_>) -> Requires {
        let mut requires = Requires::default();
        self.map(at, |reader, key, at| match key {
            "commands" => requires.commands = reader.texts(at, "a list of programs"),
            "files" => requires.files = reader.texts(at, "a list of paths"),
            "services" => requires.services = reader.texts(at, "a list of addresses such as \"127.0.0.1:11434\""),
            // What is not understood is not known to be there.
            _ => reader.refuse(at, &format!("`{key}` cannot be required"), meant(key, REQUIRES)),
        });
        requires
    }
}
