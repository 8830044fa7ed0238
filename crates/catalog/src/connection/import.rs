//! Hooks that were written for another agent, as entries of our own hook files: each is still spoken to as that agent does.

use ollm_protocol::EventKind;
use ollm_protocol::dialect::agents::home::Form;
use ollm_protocol::dialect::agents::{AgentDialect, AgentEvent, Pick};
use serde_json::{Map, Value, json};

use super::{HOOKS, calls, draft, hooks_of, items, pair, text};
use crate::node::Node;

/// What came of the hooks in a settings file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The entries, by the event they are for.
    pub hooks: Vec<(String, Map<String, Value>)>,
    /// What was left out, and why, one line each.
    pub left: Vec<String>,
}

impl Imported {
    /// The hook file with these entries.
    pub fn file(&self) -> Value {
        let mut events = Map::new();
        for (event, entry) in &self.hooks {
            let list = events.entry(event.clone()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(Value::Object(entry.clone()));
            }
        }
        json!({"hooks": events})
    }
}

/// The hooks in the text of an agent's settings; entries of ours are none.
pub fn import(text: &str, agent: &AgentDialect) -> Result<Imported, String> {
    let draft = draft(text)?;
    let mut imported = Imported::default();
    let Some((_, events)) = hooks_of(draft.root()) else { return Ok(imported) };
    for (name, list) in events {
        let Some(event) = agent.events.iter().find(|event| event.name == name) else {
            imported.left.push(format!("{name}: the agent has no such event, as far as is known"));
            continue;
        };
        for item in items(list) {
            match (agent.home.form, pair(item, HOOKS)) {
                (Form::Groups, Some((_, handlers))) => {
                    for handler in items(handlers) {
                        take(&Found { agent, event, group: Some(item), handler }, &mut imported);
                    }
                }
                (Form::Groups, None) => imported.left.push(format!("{name}: a group without a list `hooks`")),
                _ => take(&Found { agent, event, group: None, handler: item }, &mut imported),
            }
        }
    }
    Ok(imported)
}

/// One handler in a file, and whose it is.
struct Found<'a> {
    agent: &'a AgentDialect,
    event: &'a AgentEvent,
    group: Option<&'a Node>,
    handler: &'a Node,
}

fn take(found: &Found<'_>, imported: &mut Imported) {
    let left = |why: &str| format!("{}: {} {why}", found.event.name, found.handler.shown());
    let action = match found.action() {
        Ok(Some(action)) => action,
        Ok(None) => return,
        Err(why) => return imported.left.push(left(&why)),
    };
    if pair(found.handler, "if").is_some() {
        return imported
            .left
            .push(left("has a permission rule in `if`, which means nothing elsewhere; write it as a matcher"));
    }
    let mut entry = Map::new();
    let number = imported.hooks.len() + 1;
    let name = text(found.handler, "name").map_or_else(|| format!("{}-{number}", found.agent.name), str::to_owned);
    entry.insert("name".to_owned(), name.into());
    if let Some(description) = text(found.handler, "description") {
        entry.insert("description".to_owned(), description.into());
    }
    entry.insert("dialect".to_owned(), found.agent.name.into());
    match found.matcher() {
        Ok(matcher) => entry.extend(matcher.map(|matcher| ("matcher".to_owned(), matcher.into()))),
        Err(why) => return imported.left.push(left(&why)),
    }
    if let Some(condition) = found.condition() {
        entry.insert("if".to_owned(), condition.into());
    }
    entry.insert("action".to_owned(), action);
    if let Some(timeout) = found.timeout() {
        entry.insert("timeout".to_owned(), timeout.into());
    }
    if pair(found.handler, "async").is_some_and(|(_, value)| *value == Node::Bool(true)) {
        entry.insert("async".to_owned(), true.into());
    }
    imported.hooks.push((found.key(), entry));
}

impl Found<'_> {
    /// What it does; nothing where it only asks us.
    fn action(&self) -> Result<Option<Value>, String> {
        match text(self.handler, "type").unwrap_or("command") {
            "command" => {
                let key = if let Form::Flat(entry) = self.agent.home.form { entry.command } else { "command" };
                let line = text(self.handler, key).or_else(|| text(self.handler, "command")).ok_or("has no command")?;
                let words = pair(self.handler, "args").map(|(_, args)| items(args).iter().filter_map(Node::as_text));
                Ok(calls(line).next().is_none().then(|| match words {
                    Some(args) => json!({"type": "command", "command": line, "args": args.collect::<Vec<_>>()}),
                    None => json!({"type": "shell", "command": line}),
                }))
            }
            "http" => {
                let url = text(self.handler, "url").ok_or("has no url")?;
                let headers = pair(self.handler, "headers").map(|(_, headers)| headers.to_json());
                let mut action = json!({"type": "http", "url": url});
                if let (Some(headers), Some(map)) = (headers, action.as_object_mut()) {
                    map.insert("headers".to_owned(), headers);
                }
                Ok(Some(action))
            }
            other => Err(format!("is of type `{other}`, which only {} itself can run", self.agent.title)),
        }
    }

    /// The event in a hook file of ours.
    fn key(&self) -> String {
        match self.event.kind {
            EventKind::Custom => format!("custom:{}", self.event.name),
            kind => kind.name().to_owned(),
        }
    }

    /// Which tools it is for. Plain names mean the tool in every agent's vocabulary; anything else is a regular expression.
    fn matcher(&self) -> Result<Option<String>, String> {
        let own = match self.event.pick {
            Pick::Tool(tool) => Some(tool.to_owned()),
            Pick::Mcp => Some("mcp__*".to_owned()),
            Pick::Marked(..) => return Err("is for a part of an event that has no name elsewhere".to_owned()),
            Pick::Any | Pick::With(_) => None,
        };
        let written = self.group.unwrap_or(self.handler);
        let written = text(written, "matcher").map(str::trim).filter(|matcher| !matches!(*matcher, "" | "*" | ".*"));
        let Some(written) = written.filter(|_| self.event.kind.subject_field().is_some()) else { return Ok(own) };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '|' | ',' | ' ');
        if written.chars().all(plain) {
            return Ok(Some(written.split(['|', ',']).map(str::trim).collect::<Vec<_>>().join("|")));
        }
        Ok(Some(format!("re:{written}")))
    }

    /// What tells events of one kind apart that the agent has two names for.
    fn condition(&self) -> Option<String> {
        if let Pick::With(field) = self.event.pick {
            return Some(format!("has(data.{field})"));
        }
        let rival = |other: &&AgentEvent| other.kind == self.event.kind && matches!(other.pick, Pick::With(_));
        let rival = self.agent.events.iter().find(rival).filter(|_| self.event.kind != EventKind::Custom)?;
        let Pick::With(field) = rival.pick else { return None };
        Some(format!("!has(data.{field})"))
    }

    /// How long it may take, as we write it.
    fn timeout(&self) -> Option<String> {
        let keys = ["timeout", "timeoutSec", "timeout_ms"];
        let (key, value) = keys.iter().find_map(|key| Some((*key, pair(self.handler, key)?.1)))?;
        let number = match value {
            Node::Whole(number) => u128::try_from(*number).ok()?,
            _ => return None,
        };
        // Qwen takes large numbers for milliseconds.
        let in_millis = key == "timeout_ms" || (self.agent.name == "qwen" && number >= 1000);
        let unit = if in_millis { 1 } else { self.agent.timeout_unit.as_millis() };
        Some(format!("{}ms", number.saturating_mul(unit)))
    }
}
