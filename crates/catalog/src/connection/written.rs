//! Reads hooks that people wrote for other agents. Each becomes an entry as in our own hook files, and still uses its
//! agent's dialect.

use std::path::Path;

use ollm_protocol::dialect::agents::home::{Form, MatcherForm, OwnFolder, WrittenForm};
use ollm_protocol::dialect::agents::{AgentDialect, AgentEvent};
use ollm_protocol::{EventKind, placeholders};
use ollm_shell::shell_word;
use serde_json::{Map, Value, json};

use super::filter::{Filter, HookFilter};
use super::{HOOKS, WrittenFile, items, leads_to_us, pair, structure, text};
use crate::node::{Cursor, Node};

/// A hook as one of our entries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrittenHook {
    /// The event, as a key of our hook files.
    pub(crate) event: String,
    /// The keys of the entry. It has a name only if its author gave it one.
    pub(crate) entry: Map<String, Value>,
}

/// Receives each hook with its place. The error says why the hook is left out.
pub(crate) type Visitor<'v> = &'v mut dyn FnMut(&Cursor<'_>, Result<WrittenHook, String>);

/// Visits every hook in an agent's settings file, except those that ask us. The error says why the file is invalid.
pub(crate) fn each(
    root: &Cursor<'_>,
    agent: &'static AgentDialect,
    file: &WrittenFile,
    visit: Visitor<'_>,
) -> Result<(), String> {
    let switch = Switch::of(root.node);
    let wrapped = root.get(HOOKS);
    let (mut form, mut matcher) = (agent.home.written.form, agent.home.written.matcher);
    if form == WrittenForm::Triggers {
        let Some(hooks) = &wrapped else { return Ok(()) };
        match hooks.node {
            Node::List(_) => {
                for hook in hooks.items() {
                    let name = text(hook.node, "trigger").unwrap_or_default();
                    Handler { agent, file, switch, name, group: None, matcher, at: &hook }.show(visit);
                }
                return Ok(());
            }
            // This is an agent's configuration.
            Node::Map(_) => (form, matcher) = (WrittenForm::Flat, MatcherForm::Names),
            other => return Err(format!("`{HOOKS}` is {}, neither a list nor an object", other.kind())),
        }
    }
    structure(root.node)?;
    // Some files consist only of events.
    let is_bare = || root.entries().all(|(key, _)| agent.events.iter().any(|event| event.name == key));
    let Some(events) = wrapped.as_ref().or_else(|| is_bare().then_some(root)) else { return Ok(()) };
    for (name, list) in events.entries() {
        for item in list.items() {
            if form == WrittenForm::Flat {
                Handler { agent, file, switch, name, group: None, matcher, at: &item }.show(visit);
                continue;
            }
            let Some(handlers) = item.get(HOOKS).filter(|handlers| matches!(handlers.node, Node::List(_))) else {
                visit(&item, Err(format!("has no list `{HOOKS}`")));
                continue;
            };
            for handler in handlers.items() {
                Handler { agent, file, switch, name, group: Some(item.node), matcher, at: &handler }.show(visit);
            }
        }
    }
    Ok(())
}

/// The hook of a program file, by the file's name. `None` if the name is not an event of the agent, or the program asks
/// us.
pub(crate) fn program(file: &WrittenFile, text: &str, agent: &AgentDialect) -> Option<WrittenHook> {
    if leads_to_us(text) {
        return None;
    }
    let name = file.path.file_name()?.to_str()?;
    let event = agent.events.iter().find(|event| event.name == name)?;
    // The command must find the project wherever it is.
    let action = if file.in_project {
        json!({"type": "shell", "command": format!("\"${{OLLM_PROJECT_DIR}}\"/{}", shell_word(&file.label))})
    } else {
        json!({"type": "command", "command": file.path.to_str()?})
    };
    let mut entry = Map::from_iter([("dialect".to_owned(), agent.name.into())]);
    entry.extend(spoken_as(agent, event));
    entry.insert("action".to_owned(), action);
    Some(WrittenHook { event: key(event), entry })
}

/// The settings in a file about all of its hooks.
#[derive(Clone, Copy)]
pub(super) struct Switch<'n> {
    pub(super) on: bool,
    /// The names of the hooks that are off.
    off: &'n [Node],
}

impl<'n> Switch<'n> {
    pub(super) fn of(root: &'n Node) -> Switch<'n> {
        let is = |node: Option<(usize, &Node)>, wanted| node.is_some_and(|(_, node)| *node == Node::Bool(wanted));
        let config = pair(root, "hooksConfig").map(|(_, config)| config);
        let off = config.and_then(|config| pair(config, "disabled")).map_or(&[][..], |(_, names)| items(names));
        let all_off = is(pair(root, "disableAllHooks"), true);
        Switch { on: !all_off && !is(config.and_then(|config| pair(config, "enabled")), false), off }
    }
}

/// One hook in a file.
struct Handler<'a> {
    agent: &'static AgentDialect,
    file: &'a WrittenFile,
    switch: Switch<'a>,
    /// The event, as written.
    name: &'a str,
    group: Option<&'a Node>,
    /// The meaning of its matcher.
    matcher: MatcherForm,
    at: &'a Cursor<'a>,
}

impl Handler<'_> {
    fn show(&self, visit: Visitor<'_>) {
        if let Some(found) = self.read().transpose() {
            visit(self.at, found);
        }
    }

    /// The entry; `None` if the hook only asks us.
    fn read(&self) -> Result<Option<WrittenHook>, String> {
        let event = self.agent.events.iter().find(|event| event.name == self.name);
        let event = event.ok_or("is for an event that the agent does not have, as far as is known")?;
        let handler = self.at.node;
        if let Some(key) = [Some(handler), self.group].into_iter().flatten().find_map(doubled) {
            return Err(format!("has `{key}` twice, and agents differ in which of the two counts"));
        }
        let Some(action) = self.action()? else { return Ok(None) };
        if is_set(handler, "only_when_turn_complete", &Node::Bool(true)) {
            return Err(format!("waits for the end of a turn, which only {} can do", self.agent.title));
        }
        if is_set(handler, "asyncRewake", &Node::Bool(true)) {
            return Err(format!("wakes the model when it is done, which only {} can do", self.agent.title));
        }
        let matcher = text(self.group.unwrap_or(handler), "matcher");
        let wanted = HookFilter { matcher, form: self.matcher, rule: text(handler, "if") };
        let filter = Filter::of(self.agent, event, wanted)?;
        let mut entry = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            entry.extend(value.map(|value| (key.to_owned(), value)));
        };
        set("name", text(handler, "name").filter(|name| !name.is_empty()).map(Value::from));
        set("description", text(handler, "description").map(Value::from));
        set("dialect", Some(self.agent.name.into()));
        set("spokenAs", spoken_as(self.agent, event).map(|(_, name)| name));
        set("matcher", filter.matcher.map(Value::from));
        set("if", filter.condition.map(Value::from));
        set("action", Some(action));
        set("timeout", self.timeout()?.map(Value::from));
        set("async", is_set(handler, "async", &Node::Bool(true)).then_some(true.into()));
        let blocks = is_set(handler, "failClosed", &Node::Bool(true))
            || is_set(handler, "on_failure", &Node::Text("block".to_owned()));
        set("onFailure", blocks.then_some("block".into()));
        let passed = allowed(handler);
        set("passEnv", (!passed.is_empty()).then(|| passed.into()));
        set("env", pair(handler, "env").map(|(_, env)| env.to_json()));
        let cwd = text(handler, "cwd").or_else(|| text(handler, "working_directory"));
        set("cwd", cwd.or_else(|| self.own_folder()).map(Value::from));
        set("enabled", self.is_off().then_some(false.into()));
        Ok(Some(WrittenHook { event: key(event), entry }))
    }

    /// The action; `None` if the hook only asks us.
    fn action(&self) -> Result<Option<Value>, String> {
        // In files with triggers, the action is a map of its own.
        let node = pair(self.at.node, "action").map_or(self.at.node, |(_, action)| action);
        match text(node, "type").unwrap_or("command") {
            "command" => self.command(node),
            "agent" if self.agent.home.written.form == WrittenForm::Triggers => {
                let prompt = text(node, "prompt").ok_or("has no prompt")?;
                Ok(Some(json!({"type": "askAgent", "prompt": prompt})))
            }
            "http" => {
                let url = text(node, "url").ok_or("has no url")?;
                let mut action = json!({"type": "http", "url": url});
                if let (Some((_, headers)), Some(map)) = (pair(node, "headers"), action.as_object_mut()) {
                    map.insert("headers".to_owned(), filled_in(headers, &allowed(node)));
                }
                Ok(Some(action))
            }
            "mcp_tool" => {
                let (server, tool) = text(node, "server").zip(text(node, "tool")).ok_or("names no server and tool")?;
                let args =
                    pair(node, "input").map_or_else(|| Ok(json!({})), |(_, input)| arguments(&input.to_json()))?;
                Ok(Some(json!({"type": "mcp", "server": server, "tool": tool, "args": args})))
            }
            // In Copilot, this text is sent as if the person typed it. In other agents, a model judges by it.
            "prompt" if self.agent.name == "copilot" => {
                let prompt = text(node, "prompt").ok_or("has no prompt")?;
                Ok(Some(json!({"type": "askAgent", "prompt": prompt})))
            }
            "prompt" => Err(format!("asks a model by itself, which only {} can do", self.agent.title)),
            other => Err(format!("is of type `{other}`, which only {} itself can run", self.agent.title)),
        }
    }

    fn command(&self, node: &Node) -> Result<Option<Value>, String> {
        if text(node, "shell").is_some_and(|shell| shell != "bash" && shell != "sh") {
            return Err("is for a shell that is not there".to_owned());
        }
        let usual = if let Form::Flat(entry) = self.agent.home.form { entry.command } else { "command" };
        let line = [usual, "command", "exec"].into_iter().find_map(|key| text(node, key)).ok_or("has no command")?;
        let line = match pair(node, "args") {
            None => line.to_owned(),
            Some((_, args)) => {
                let words = items(args).iter().map(Node::as_text).collect::<Option<Vec<&str>>>();
                let words = words.ok_or("has `args` that are not a list of texts")?;
                self.quoted(std::iter::once(line).chain(words))
            }
        };
        let is_ours = leads_to_us(&line);
        let line = self.with_folder(line)?;
        Ok((!is_ours).then(|| json!({"type": "shell", "command": line})))
    }

    /// The folder that the agent runs it in, if that is the file's folder.
    fn own_folder(&self) -> Option<&str> {
        let runs = self.agent.home.written.folder == OwnFolder::Runs && !self.file.in_project;
        self.file.path.parent().filter(|_| runs)?.to_str()
    }

    /// A line that finds the folder above its file in the agent's variable.
    fn with_folder(&self, line: String) -> Result<String, String> {
        let OwnFolder::Above(variable) = self.agent.home.written.folder else { return Ok(line) };
        let below = Path::new(&self.file.label).ancestors().nth(2).and_then(Path::to_str).unwrap_or_default();
        let base = if self.file.in_project { "OLLM_PROJECT_DIR" } else { "HOME" };
        let plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
        if !below.chars().all(plain) {
            return Err(format!("is in a folder whose name cannot be written in `{variable}`"));
        }
        Ok(format!("{variable}=\"${{{base}}}/{below}\"; export {variable}; {line}"))
    }

    /// A program with its arguments as a shell line with exactly this meaning. The project's folder, which an agent
    /// fills in itself, stays a variable.
    fn quoted<'w>(&self, words: impl Iterator<Item = &'w str>) -> String {
        let part = |part: &str| if part.is_empty() { String::new() } else { shell_word(part).into_owned() };
        let word = |word: &str| {
            let variables = self.agent.home.project_variables.iter().map(|name| format!("${{{name}}}"));
            let filled = variables.into_iter().find_map(|variable| {
                let (before, after) = word.split_once(&variable)?;
                Some(format!("{}\"{variable}\"{}", part(before), part(after)))
            });
            filled.unwrap_or_else(|| shell_word(word).into_owned())
        };
        words.map(word).collect::<Vec<_>>().join(" ")
    }

    /// Its timeout, in our notation.
    fn timeout(&self) -> Result<Option<String>, String> {
        let keys = ["timeout", "timeoutSec", "timeout_ms"];
        let found = keys.iter().find_map(|key| Some((*key, pair(self.at.node, key)?.1)));
        let Some((key, value)) = found.filter(|(_, value)| **value != Node::Null) else { return Ok(None) };
        let unit = u64::try_from(self.agent.timeout_unit.as_millis()).unwrap_or(u64::MAX);
        let millis = |unit: u64| match value {
            Node::Whole(number) => u64::try_from(*number).ok().map(|number| number.saturating_mul(unit)),
            Node::Fraction(number) => {
                let time = std::time::Duration::try_from_secs_f64(*number).ok()?;
                u64::try_from(time.as_millis()).ok().map(|millis| millis.saturating_mul(unit) / 1000)
            }
            _ => None,
        };
        // Qwen reads large numbers as milliseconds.
        let is_large = || matches!(value, Node::Whole(1000..));
        let in_millis = key == "timeout_ms" || (self.agent.name == "qwen" && is_large());
        let millis = millis(if in_millis { 1 } else { unit }).filter(|millis| *millis > 0);
        match millis {
            Some(millis) => Ok(Some(format!("{millis}ms"))),
            None => Err(format!("has a `{key}` that is no positive number")),
        }
    }

    fn is_off(&self) -> bool {
        let name = text(self.at.node, "name").or_else(|| text(self.at.node, "command"));
        let named = name.is_some_and(|name| self.switch.off.iter().any(|off| off.as_text() == Some(name)));
        !self.switch.on || named || is_set(self.at.node, "enabled", &Node::Bool(false))
    }
}

/// The agent's event that a hook was written for, if others of the same kind look different.
fn spoken_as(agent: &AgentDialect, event: &AgentEvent) -> Option<(String, Value)> {
    Some(("spokenAs".to_owned(), agent.spoken_as(event)?.name.into()))
}

/// The event's key in our hook files.
fn key(event: &AgentEvent) -> String {
    match event.kind {
        EventKind::Custom => format!("custom:{}", event.name),
        kind => kind.name().to_owned(),
    }
}

fn is_set(node: &Node, key: &str, value: &Node) -> bool {
    pair(node, key).is_some_and(|(_, found)| found == value)
}

/// The variables that headers of a request may use.
fn allowed(node: &Node) -> Vec<&str> {
    let listed = pair(node, "allowedEnvVars").map_or(&[][..], |(_, names)| items(names));
    listed.iter().filter_map(Node::as_text).collect()
}

/// Headers with their variables in our notation. Variables that are not allowed become empty, as in their agent.
fn filled_in(headers: &Node, allowed: &[&str]) -> Value {
    let Node::Map(headers) = headers else { return headers.to_json() };
    let header = |(name, value): &(String, Node)| {
        let value = value.as_text().map_or_else(|| value.to_json(), |text| with_variables(text, allowed).into());
        (name.clone(), value)
    };
    headers.iter().map(header).collect::<Map<_, _>>().into()
}

fn with_variables(text: &str, allowed: &[&str]) -> String {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(part.len());
        let (name, rest) = braced.unwrap_or(part.split_at(end));
        match name {
            "" => filled.extend(["$", part]),
            name if allowed.contains(&name) => filled.extend(["${", name, "}", rest]),
            _ => filled.push_str(rest),
        }
    }
    filled
}

/// The arguments of a tool with their variables in our notation: `${tool_input.file_path}` is a field of the event.
fn arguments(value: &Value) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains("{{") => {
            Err("has `{{` in its `input`, which is a variable here".to_owned())
        }
        Value::String(text) => {
            let mut parts = text.split("${");
            let mut filled = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let (path, rest) = part.split_once('}').ok_or("has a `${` without an end in its `input`")?;
                let variable = format!("{{{{stdin.{path}}}}}");
                if placeholders(&variable).next().is_none_or(|found| found.span.len() != variable.len()) {
                    return Err(format!("has `${{{path}}}` in its `input`, which is no field of an event"));
                }
                filled.extend([&variable, rest]);
            }
            Ok(filled.into())
        }
        Value::Array(items) => items.iter().map(arguments).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.clone(), arguments(value)?)));
            Ok(Value::Object(fields.collect::<Result<_, String>>()?))
        }
        other => Ok(other.clone()),
    }
}

/// A key that occurs twice in a map.
fn doubled(node: &Node) -> Option<&str> {
    let Node::Map(pairs) = node else { return None };
    let keys = || pairs.iter().map(|(key, _)| key.as_str());
    keys().enumerate().find(|(index, key)| keys().skip(index + 1).any(|other| other == *key)).map(|(_, key)| key)
}
