//! What a hook does: `command` and `args`, or an action of another type.

use std::borrow::Cow;

use ollm_protocol::ActionSpec;

use super::reader::{Reader, meant, not_loaded};
use super::{Draft, canonical};
use crate::file::Finding;
use crate::format::Context;
use crate::node::{Cursor, Node};
use crate::path::{self, Outside, Refused};
use crate::value;

const STAY: &str = "move the file into that folder, or give its absolute path";

/// Every type of action, with its keys.
pub(super) const TYPES: &[(&str, &[&str])] = &[
    ("command", &["command", "args"]),
    ("shell", &["command"]),
    ("askAgent", &["prompt"]),
    ("runCommand", &["command"]),
    ("http", &["url", "headers"]),
    ("mcp", &["server", "tool", "args"]),
];

/// What a hook does, as written.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Starts a program, whose files have yet to be found.
    Program { command: String, args: Vec<String> },
    /// Something that needs no file of ours.
    Plain(ActionSpec),
}

impl Deed {
    /// The text this is told from others by.
    pub(super) fn line(&self) -> String {
        let words: Vec<&str> = match self {
            Deed::Program { command, args } => {
                std::iter::once(command.as_str()).chain(args.iter().map(String::as_str)).collect()
            }
            Deed::Plain(ActionSpec::Shell { script }) => vec![script],
            Deed::Plain(ActionSpec::AskAgent { prompt }) => vec!["askAgent", prompt],
            Deed::Plain(ActionSpec::RunCommand { line, .. }) => vec!["runCommand", line],
            Deed::Plain(ActionSpec::Http { url, .. }) => vec!["http", url],
            Deed::Plain(ActionSpec::Mcp { server, tool, .. }) => vec!["mcp", server, tool],
            Deed::Plain(ActionSpec::Command { .. } | ActionSpec::Builtin(_)) => Vec::new(),
        };
        words.join("\0")
    }
}

/// The keys of an action of any type.
#[derive(Default)]
struct Parts {
    command: Option<String>,
    args: Vec<String>,
    prompt: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    server: Option<String>,
    tool: Option<String>,
    object: serde_json::Map<String, serde_json::Value>,
}

impl Parts {
    /// What comes of them, if all that is needed is there.
    fn deed(self, kind: &str) -> Option<Deed> {
        let action = match kind {
            "command" => return self.command.map(|command| Deed::Program { command, args: self.args }),
            "shell" => ActionSpec::Shell { script: self.command? },
            "runCommand" => ActionSpec::RunCommand { line: self.command?, words: Vec::new() },
            "askAgent" => ActionSpec::AskAgent { prompt: self.prompt? },
            "http" => ActionSpec::Http { url: self.url?, headers: self.headers },
            _ => ActionSpec::Mcp { server: self.server?, tool: self.tool?, args: self.object },
        };
        Some(Deed::Plain(action))
    }
}

impl Draft {
    /// What the hook does, with its files found; `holder` is the node with `command` and `args` in it.
    pub(crate) fn act(
        &mut self,
        holder: &Cursor<'_>,
        context: &Context<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<ActionSpec> {
        let (command, args) = match self.deed.clone()? {
            Deed::Plain(action) => return Some(action),
            Deed::Program { command, args } => (command, args),
        };
        match path::command(context.folder, &command, args.clone(), &context.rules.whitelist, &context.walked) {
            Ok((action, files)) => {
                self.spec.inputs.extend(files);
                self.spec.inputs.dedup();
                Some(action)
            }
            Err(refused) => {
                findings.push(misplaced(holder, &command, &args, &refused));
                None
            }
        }
    }
}

fn misplaced(holder: &Cursor<'_>, command: &str, args: &[String], refused: &Refused) -> Finding {
    let named = holder.get("command");
    let list = holder.get("args");
    let (cursor, (message, help)) = match refused {
        Refused::Command(outside) => (named, left(command, outside)),
        Refused::Argument(index, outside) => {
            let item = list.as_ref().and_then(|list| list.items().nth(*index));
            let written = args.get(*index).map_or("", String::as_str);
            (item.or(list), left(written, outside))
        }
        Refused::Arguments => {
            let message = format!("command `{command}` holds arguments");
            (named, (message, "name the program alone and put the rest into `args`"))
        }
    };
    not_loaded(&cursor.unwrap_or(*holder), &message, Some(help.to_owned()))
}

impl Reader<'_> {
    /// An action: `{"type": …}` and what that type needs.
    pub(crate) fn action(&mut self, at: &Cursor<'_>) -> Option<Deed> {
        let (kind, known) = self.kind(at)?;
        let mut parts = Parts::default();
        self.map(at, |reader, key, at| match key {
            "type" => {}
            key if !known.contains(&key) => reader.unsuited(at, kind, known),
            "args" if kind == "mcp" => parts.object = reader.object(at),
            "args" => parts.args = reader.texts(at, "a list of texts"),
            "headers" => parts.headers = reader.texts_by_name(at),
            "command" => parts.command = reader.need(at, value::plain(at.node), "text"),
            "prompt" => parts.prompt = reader.word(at),
            "url" => parts.url = reader.word(at),
            "server" => parts.server = reader.word(at),
            _ => parts.tool = reader.word(at),
        });
        let deed = parts.deed(kind);
        if deed.is_none() && self.sound {
            let needed: Vec<String> = known.iter().filter(|key| is_needed(key)).map(|key| format!("`{key}`")).collect();
            self.refuse(at, &format!("an action of type \"{kind}\" needs {}", needed.join(" and ")), None);
        }
        deed
    }

    fn word(&mut self, at: &Cursor<'_>) -> Option<String> {
        self.need(at, value::word(at.node), "text that is not empty")
    }

    /// The type of an action, and the keys of that type.
    fn kind(&mut self, at: &Cursor<'_>) -> Option<(&'static str, &'static [&'static str])> {
        let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        if !matches!(at.node, Node::Map(_)) {
            let key = at.key().unwrap_or_default();
            let help = "write {\"type\": \"askAgent\", \"prompt\": …}, for instance".to_owned();
            self.refuse(at, &format!("`{key}` must be a map, not {}", at.node.kind()), Some(help));
            return None;
        }
        let Some(written) = at.get("type") else {
            let likely = TYPES.iter().find(|(_, keys)| keys.iter().any(|key| is_needed(key) && at.get(key).is_some()));
            let help = likely.map(|(name, _)| format!("add \"type\": \"{name}\""));
            self.refuse(at, &format!("an action must have a `type`: one of {}", names.join(", ")), help);
            return None;
        };
        let kind = match written.node {
            Node::Text(text) => canonical(text),
            _ => Cow::Borrowed(""),
        };
        let found = TYPES.iter().find(|(name, _)| *name == kind).copied();
        if found.is_none() {
            let help = meant(&kind, &names);
            self.refuse(&written, &format!("`type` must be one of {}", names.join(", ")), help);
        }
        found
    }

    /// A key that this type of action does not have; dropping it could change what the hook does.
    fn unsuited(&mut self, at: &Cursor<'_>, kind: &str, known: &[&str]) {
        let key = at.key().unwrap_or_default();
        let beside = super::KEYS.contains(&&*canonical(key));
        let help = meant(key, known).or_else(|| beside.then(|| "write it beside the action".to_owned()));
        self.refuse(at, &format!("`{key}` is no part of an action of type \"{kind}\""), help);
    }

    fn object(&mut self, at: &Cursor<'_>) -> serde_json::Map<String, serde_json::Value> {
        if let serde_json::Value::Object(map) = at.node.to_json() {
            return map;
        }
        self.refuse(at, &format!("`args` must be a map, not {}", at.node.kind()), None);
        serde_json::Map::new()
    }
}

pub(super) fn is_needed(key: &str) -> bool {
    !matches!(key, "args" | "headers")
}

/// What is wrong with a file that a hook names, and the way out.
pub(super) fn left(written: &str, outside: &Outside) -> (String, &'static str) {
    let Outside { path, folder, trouble } = outside;
    match trouble {
        Some(trouble) => (format!("`{written}` cannot be looked at: {}", trouble.why), trouble.help),
        None => {
            (format!("`{written}` leads to {}, out of the hook's folder {}", path.display(), folder.display()), STAY)
        }
    }
}

/// A name for a hook that has none.
pub(super) fn readable(action: &ActionSpec) -> String {
    match action {
        ActionSpec::Command { command, script, .. } => {
            let file = script.as_deref().and_then(|script| script.file_name()).map(|name| name.to_string_lossy());
            file.map_or_else(|| command.rsplit('/').next().unwrap_or_default().to_owned(), Cow::into_owned)
        }
        ActionSpec::Shell { script } => short(script),
        ActionSpec::AskAgent { prompt } => short(prompt),
        ActionSpec::RunCommand { line, .. } => short(line),
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
