//! One hook as declared: the keys of an entry, the same in every format that has entries.

use std::path::PathBuf;

use ollm_protocol::{ActionSpec, HookSpec, LimitsSpec, OnFailure, Priority, Timeout};

use crate::file::Finding;
use crate::format::Context;
use crate::node::{Cursor, Node, Part};
use crate::path::{self, Outside, Refused};
use crate::problem::Severity;
use crate::value::{self, Reading, nearest};

/// The keys of an entry.
const KEYS: &[&str] = &[
    "name",
    "description",
    "command",
    "args",
    "dialect",
    "matcher",
    "timeout",
    "onFailure",
    "priority",
    "parallel",
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

/// Keys that narrow or change what a hook does: ignoring them would run it where it was not meant to.
const UNSUPPORTED: &[&str] =
    &["filePatterns", "if", "rateLimit", "requires", "scope", "permissions", "persistent", "async", "action"];

const LIMITS: &[&str] = &["time", "cpu", "memory", "processes", "files", "fileSize", "output"];

/// What an entry says, before it is known where its files are.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    version: Option<String>,
    description: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    dialect: Option<String>,
    pub(crate) matcher: Option<String>,
    timeout: Option<Timeout>,
    on_failure: Option<OnFailure>,
    priority: Priority,
    parallel: bool,
    env: Vec<(String, String)>,
    pass_env: Vec<String>,
    cwd: Option<PathBuf>,
    inputs: Vec<PathBuf>,
    limits: LimitsSpec,
    enabled: Option<bool>,
}

/// Reads the keys of an entry; `None` when the hook cannot be loaded, with the findings that say why.
pub(crate) fn read(entry: &Cursor<'_>, context: &Context<'_>, findings: &mut Vec<Finding>) -> Option<Draft> {
    let mut reader = Reader { context, findings, sound: true };
    let draft = reader.draft(entry);
    reader.sound.then_some(draft)
}

impl Draft {
    /// The command line as written, which is what a hook without a name is told by.
    pub(crate) fn line(&self) -> String {
        let command = self.command.iter().map(String::as_str);
        command.chain(self.args.iter().map(String::as_str)).collect::<Vec<_>>().join("\0")
    }

    /// The declared hook, with its own action.
    pub(crate) fn spec(self, id: String, event: &str, action: ActionSpec, context: &Context<'_>) -> HookSpec {
        HookSpec {
            name: self.name.unwrap_or_else(|| readable(&action)),
            version: self.version.unwrap_or_else(|| "1.0.0".to_owned()),
            description: self.description,
            matcher: self.matcher,
            dialect: self.dialect,
            timeout: self.timeout,
            on_failure: self.on_failure,
            priority: self.priority,
            parallel: self.parallel,
            env: self.env,
            pass_env: self.pass_env,
            cwd: self.cwd,
            inputs: self.inputs,
            limits: self.limits,
            enabled: self.enabled.unwrap_or(true),
            source: context.source,
            layer: context.layer,
            ..HookSpec::new(id, event, action)
        }
    }

    /// The program an entry names, without a shell.
    pub(crate) fn program(
        &mut self,
        entry: &Cursor<'_>,
        context: &Context<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<ActionSpec> {
        let command = self.command.clone().unwrap_or_default();
        let refused = match path::command(context.folder, &command, self.args.clone(), &context.rules.whitelist) {
            Ok((action, files)) => {
                self.inputs.extend(files);
                self.inputs.dedup();
                return Some(action);
            }
            Err(refused) => refused,
        };
        let mut report = |cursor: Option<Cursor<'_>>, message: String, help: &str| {
            let cursor = cursor.unwrap_or(*entry);
            findings.push(not_loaded(&cursor, &message, Some(help.to_owned())));
        };
        match refused {
            Refused::Command(outside) => report(entry.get("command"), left(&command, &outside), STAY),
            Refused::Argument(index, outside) => {
                let list = entry.get("args");
                let item = list.as_ref().and_then(|list| list.items().nth(index));
                let written = self.args.get(index).map_or("", String::as_str);
                report(item.or(list), left(written, &outside), STAY);
            }
            Refused::Arguments => {
                let message = format!("command `{command}` holds arguments");
                report(entry.get("command"), message, "name the program alone and put the rest into `args`");
            }
        }
        None
    }

    /// The line of shell an entry names.
    pub(crate) fn shell(&mut self) -> ActionSpec {
        self.dialect = Some("agent".to_owned());
        ActionSpec::Shell { script: self.command.clone().unwrap_or_default() }
    }
}

const STAY: &str = "move the file into that folder, or give its absolute path";

fn left(written: &str, outside: &Outside) -> String {
    format!("`{written}` leads to {}, out of the hook's folder {}", outside.path.display(), outside.folder.display())
}

/// A hook that is not there, and why.
pub(crate) fn not_loaded(cursor: &Cursor<'_>, message: &str, help: Option<String>) -> Finding {
    Finding {
        severity: Severity::Error,
        spot: Some(cursor.spot(Part::Value)),
        value: Some(cursor.node.shown()),
        message: format!("{message}; the hook is not loaded"),
        help,
    }
}

/// A name for a hook that has none.
fn readable(action: &ActionSpec) -> String {
    match action {
        ActionSpec::Command { command, script, .. } => {
            let file = script.as_deref().and_then(|script| script.file_name()).map(|name| name.to_string_lossy());
            file.map_or_else(|| command.rsplit('/').next().unwrap_or_default().to_owned(), std::borrow::Cow::into_owned)
        }
        ActionSpec::Shell { script } => short(script),
        ActionSpec::AskAgent { prompt } => short(prompt),
        ActionSpec::RunCommand { line } => short(line),
        ActionSpec::Http { url, .. } => short(url),
        ActionSpec::Mcp { server, tool, .. } => format!("{server}/{tool}"),
        ActionSpec::Builtin(_) => "builtin".to_owned(),
    }
}

fn short(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(40).collect();
    if short.len() < words.len() { format!("{short}…") } else { short }
}

struct Reader<'a> {
    context: &'a Context<'a>,
    findings: &'a mut Vec<Finding>,
    /// Whether nothing has been found so far that forbids to load the hook.
    sound: bool,
}

impl Reader<'_> {
    fn draft(&mut self, entry: &Cursor<'_>) -> Draft {
        let mut draft = Draft::default();
        if !matches!(entry.node, Node::Map(_)) {
            let message = format!("a hook must be a map of its keys, not {}", entry.node.kind());
            self.refuse(entry, &message, Some("write {\"name\": …, \"command\": …}".to_owned()));
            return draft;
        }
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in entry.entries() {
            let key = if key == "working_directory" { "cwd" } else { key };
            if seen.contains(&key) {
                let help = Some("keep one of them".to_owned());
                self.refuse(&value, &format!("`{key}` is written twice"), help);
            }
            seen.push(key);
            if !matches!(value.node, Node::Null) {
                self.key(&mut draft, key, &value);
            }
        }
        if draft.command.is_none() && self.sound {
            self.refuse(entry, "the hook has no `command`", Some("name the program to start".to_owned()));
        }
        draft
    }

    fn key(&mut self, draft: &mut Draft, key: &str, at: &Cursor<'_>) {
        match key {
            "id" => draft.id = self.need(at, value::word(at.node), "text that is not empty"),
            "name" => draft.name = self.need(at, value::word(at.node), "text that is not empty"),
            "version" => draft.version = self.want(at, value::word(at.node), "text such as \"1.0.0\""),
            "description" => draft.description = self.want(at, value::text(at.node), "text"),
            "command" => draft.command = self.need(at, value::plain(at.node), "text"),
            "args" => draft.args = self.need(at, value::texts(at.node), "a list of texts").unwrap_or_default(),
            "dialect" => draft.dialect = self.need(at, value::plain(at.node), "ollm, gate, rpc or agent"),
            "matcher" => draft.matcher = self.need(at, value::plain(at.node), "text"),
            "timeout" => draft.timeout = self.need(at, value::timeout(at.node), TIME),
            "onFailure" => draft.on_failure = self.choice(at, OnFailure::from_name, OnFailure::NAMES),
            "priority" => draft.priority = self.choice(at, Priority::from_name, Priority::NAMES).unwrap_or_default(),
            "parallel" => draft.parallel = self.need(at, value::flag(at.node), FLAG).unwrap_or_default(),
            "enabled" => draft.enabled = self.need(at, value::flag(at.node), FLAG),
            "env" => draft.env = self.env(at),
            "passEnv" => draft.pass_env = self.need(at, value::texts(at.node), "a list of names").unwrap_or_default(),
            "cwd" => draft.cwd = self.need(at, value::word(at.node), "a path").map(PathBuf::from),
            "inputs" => draft.inputs = self.inputs(at),
            "limits" => draft.limits = self.limits(at),
            "type" => self.type_(at),
            "trusted" => self.trusted(at),
            "async" | "persistent" if matches!(at.node, Node::Bool(false)) => {}
            "hooks" => {
                let help = "write `command` beside `matcher`; groups are for agent settings files";
                self.refuse(at, "`hooks` inside an entry is not known in hook files", Some(help.to_owned()));
            }
            key if UNSUPPORTED.contains(&key) => {
                self.refuse(at, &format!("`{key}` is not supported by this version"), None);
            }
            key => self.unknown(at, key, KEYS),
        }
    }

    fn type_(&mut self, at: &Cursor<'_>) {
        if !matches!(at.node, Node::Text(kind) if kind == "command") {
            self.refuse(at, "only hooks of type \"command\" are supported by this version", None);
        }
    }

    fn trusted(&mut self, at: &Cursor<'_>) {
        let message = match (at.node, self.context.is_users_own()) {
            (Node::Bool(false), false) | (Node::Bool(true), true) => return,
            (_, false) => "`trusted` is ignored: a project cannot vouch for itself",
            (_, true) => "`trusted` is ignored: the user's own hooks need no approval",
        };
        let help = if self.context.is_users_own() { "write \"enabled\": false to switch it off" } else { "remove it" };
        self.warn(at, Part::Key, message.to_owned(), Some(help.to_owned()));
    }

    fn env(&mut self, at: &Cursor<'_>) -> Vec<(String, String)> {
        if !matches!(at.node, Node::Map(_)) {
            self.refuse(at, &format!("`env` must be a map of names to text, not {}", at.node.kind()), None);
        }
        let mut env: Vec<(String, String)> = Vec::new();
        for (name, value) in at.entries() {
            if name.is_empty() || name.contains(['=', '\0']) || env.iter().any(|(seen, _)| seen == name) {
                self.refuse(&value, &format!("`{name}` cannot be the name of a variable here"), None);
            }
            if let Some(text) = self.need(&value, value::text(value.node), "text") {
                env.push((name.to_owned(), text));
            }
        }
        env
    }

    fn inputs(&mut self, at: &Cursor<'_>) -> Vec<PathBuf> {
        let written = self.need(at, value::texts(at.node), "a list of paths").unwrap_or_default();
        let mut inputs = Vec::with_capacity(written.len());
        for (index, text) in written.iter().enumerate() {
            match path::inside(self.context.folder, text) {
                Ok(path) => inputs.push(path),
                Err(outside) => {
                    let item = at.items().nth(index).unwrap_or(*at);
                    self.refuse(&item, &left(text, &outside), Some(STAY.to_owned()));
                }
            }
        }
        inputs
    }

    fn limits(&mut self, at: &Cursor<'_>) -> LimitsSpec {
        let mut limits = LimitsSpec::default();
        if !matches!(at.node, Node::Map(_)) {
            self.refuse(at, &format!("`limits` must be a map, not {}", at.node.kind()), None);
        }
        for (key, at) in at.entries() {
            match key {
                "time" => limits.time = self.need(&at, value::timeout(at.node), TIME),
                "cpu" => limits.cpu = self.need(&at, value::span(at.node), "a time with its unit such as \"5s\""),
                "memory" => limits.memory = self.need(&at, value::size(at.node), SIZE),
                "fileSize" => limits.file_size = self.need(&at, value::size(at.node), SIZE),
                "output" => limits.output = self.need(&at, value::size(at.node), SIZE),
                "processes" => limits.processes = self.need(&at, value::whole(at.node), COUNT),
                "files" => limits.files = self.need(&at, value::whole(at.node), COUNT),
                key => self.unknown(&at, key, LIMITS),
            }
        }
        limits
    }

    fn choice<T: Copy>(
        &mut self,
        at: &Cursor<'_>,
        find: impl Fn(&str) -> Option<T>,
        names: &[(T, &'static str)],
    ) -> Option<T> {
        let choice = if let Node::Text(text) = at.node { find(text) } else { None };
        if choice.is_none() {
            let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
            let help = match at.node {
                Node::Text(text) => nearest(text, &names).map(|near| format!("did you mean {near}?")),
                _ => None,
            };
            let key = at.key().unwrap_or_default();
            self.refuse(at, &format!("`{key}` must be one of {}", names.join(", ")), help);
        }
        choice
    }

    /// A value without which the hook would do something else.
    fn need<T>(&mut self, at: &Cursor<'_>, reading: Reading<T>, expected: &str) -> Option<T> {
        match reading {
            Reading::Exact(value) => Some(value),
            Reading::Converted(value) => {
                self.converted(at, expected);
                Some(value)
            }
            Reading::Wrong => {
                let key = at.key().unwrap_or_default();
                self.refuse(at, &format!("`{key}` must be {expected}, not {}", at.node.kind()), None);
                None
            }
        }
    }

    /// A value that only people look at.
    fn want<T>(&mut self, at: &Cursor<'_>, reading: Reading<T>, expected: &str) -> Option<T> {
        match reading {
            Reading::Exact(value) => Some(value),
            Reading::Converted(value) => {
                self.converted(at, expected);
                Some(value)
            }
            Reading::Wrong => {
                let key = at.key().unwrap_or_default();
                let message = format!("`{key}` must be {expected}, not {}; it is ignored", at.node.kind());
                self.warn(at, Part::Value, message, None);
                None
            }
        }
    }

    fn converted(&mut self, at: &Cursor<'_>, expected: &str) {
        let key = at.key().unwrap_or_default();
        let message = format!("`{key}` should be {expected}, not {}; it is read as meant", at.node.kind());
        self.warn(at, Part::Value, message, None);
    }

    fn unknown(&mut self, at: &Cursor<'_>, key: &str, known: &[&str]) {
        let help = nearest(key, known).map(|near| format!("did you mean `{near}`?"));
        self.warn(at, Part::Key, format!("unknown key `{key}` is ignored"), help);
    }

    fn refuse(&mut self, at: &Cursor<'_>, message: &str, help: Option<String>) {
        self.sound = false;
        self.findings.push(not_loaded(at, message, help));
    }

    fn warn(&mut self, at: &Cursor<'_>, part: Part, message: String, help: Option<String>) {
        let value = Some(at.node.shown());
        self.findings.push(Finding { severity: Severity::Warning, spot: Some(at.spot(part)), value, message, help });
    }
}

const FLAG: &str = "true or false";
const TIME: &str = "a number, or text with a unit such as \"5s\"";
const SIZE: &str = "a number of bytes, or text with a unit such as \"256MiB\"";
const COUNT: &str = "a whole number";
