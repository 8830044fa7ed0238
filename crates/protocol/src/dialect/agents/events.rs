//! Reads events that an agent sends, and writes events for its hooks.

use serde_json::{Map, Value, json};

use super::field::{get, set, take};
use super::{AgentDialect, AgentEvent, Field, McpName, NameField, Pick};
use crate::dialect::{DialectError, Request, Spelling, line, request_object};
use crate::event::{COMMON, Event, EventKind};
use crate::matcher::UNNAMED_SERVER;
use crate::tool::{self, Effect};

const SEPARATOR: &str = "__";
/// The object with server and tool as separate fields, in events that have it.
const MCP_PARTS: &str = "mcp";

impl AgentDialect {
    /// Reads an event. `named` is its name, for events that do not contain it.
    pub(super) fn read(&self, bytes: &[u8], named: Option<&str>) -> Result<Request, DialectError> {
        let mut data = request_object(bytes)?;
        let name = self.name_of(&mut data, named)?;
        let event = self.event_named(&name, &data);
        let kind = event.map(|event| event.kind).or_else(|| EventKind::from_name(&name)).unwrap_or(EventKind::Custom);
        if let Some(Pick::Marked(field, _)) = event.map(|event| event.pick) {
            data.shift_remove(field);
        }
        for field in self.fields_of(event).rev() {
            field.read(&mut data);
        }
        unname(&mut data);
        let wraps_call = kind.is_tool_call() && self.unwrap_call(&mut data);
        let added_args = match kind {
            EventKind::ApprovalRequest => read_approval(&mut data),
            kind if kind.is_tool_call() => self.read_call(event, &mut data),
            _ => Vec::new(),
        };
        let mut event = Event::from_loose(kind, data.into());
        if kind == EventKind::Custom && name != EventKind::Custom.name() {
            event.data = custom(&name, event.data);
        }
        Ok(Request { spelling: Spelling { event: name, added_args, wraps_call }, ..Request::new(event) })
    }

    /// Writes an event for a hook of the agent. `spoken_as` is the agent's event that the hook was written for.
    pub(super) fn write(&self, event: &Event, spoken_as: Option<&str>) -> Vec<u8> {
        let own = self.event_for(event, spoken_as);
        let mut data = event.data.clone();
        match event.kind {
            EventKind::BeforeTool | EventKind::AfterTool => self.spell_call(own, &mut data, ("tool_name", "args")),
            EventKind::ApprovalRequest => self.spell_call(own, &mut data, ("operation", "details")),
            EventKind::Custom if own.is_some() => flatten(&mut data),
            _ => {}
        }
        match own.map(|own| own.pick) {
            // Server and tool go into the agent's separate fields.
            Some(Pick::Mcp) => split_mcp(&mut data),
            Some(Pick::Tool(_)) => _ = data.shift_remove("tool_name"),
            _ => {}
        }
        let fields: Vec<&Field> = self.fields_of(own).collect();
        let taken: Vec<Option<Value>> = fields.iter().map(|field| get(&data, field.canonical).cloned()).collect();
        for field in &fields {
            take(&mut data, field.canonical);
        }
        if own.is_some_and(|own| own.pick == Pick::Mcp) {
            data.shift_remove(MCP_PARTS);
        }
        for (field, value) in fields.iter().zip(taken) {
            field.write(&mut data, value);
        }
        if let Some(Pick::Marked(field, word)) = own.map(|own| own.pick) {
            data.insert(field.to_owned(), word.into());
        }
        let name = own.map_or_else(|| event.kind.name(), |own| own.name);
        for field in self.event_fields {
            data.shift_remove(*field);
        }
        // A hook that is registered for several events needs the name to tell them apart.
        let field = match own.filter(|own| spoken_as == Some(own.name)).map_or(NameField::Usual, |own| own.named) {
            NameField::Usual => Some(self.event_field()),
            NameField::Other(field) => Some(field),
            NameField::None => None,
        };
        let mut wire: Map<String, Value> =
            field.map(|field| (field.to_owned(), Value::from(name))).into_iter().collect();
        wire.append(&mut data);
        line(wire)
    }

    /// The agent's event for this one; `preferred` takes precedence.
    pub(super) fn event_for(&self, event: &Event, preferred: Option<&str>) -> Option<&'static AgentEvent> {
        let preferred = preferred.and_then(|name| self.events_of(event.kind).find(|own| own.name == name));
        if preferred.is_some_and(|own| own.may_be_for(event)) {
            return preferred;
        }
        if event.kind == EventKind::Custom {
            return self.events_of(event.kind).find(|own| Some(own.name) == event.text("eventName"));
        }
        self.events_of(event.kind).find(|own| own.is_for(event))
    }

    /// The agent's event with this name. If there are several, a mark in the data decides.
    fn event_named(&self, name: &str, data: &Map<String, Value>) -> Option<&'static AgentEvent> {
        let named = || self.events.iter().filter(|event| event.name == name);
        let marked = |event: &&AgentEvent| match event.pick {
            Pick::Marked(field, word) => data.get(field).and_then(Value::as_str) == Some(word),
            Pick::Shaped(field) => data.contains_key(field),
            _ => true,
        };
        named().find(marked).or_else(|| named().next())
    }

    /// The name of the event. The name in the data takes precedence over the one we were given.
    fn name_of(&self, data: &mut Map<String, Value>, named: Option<&str>) -> Result<String, DialectError> {
        let mut said = None;
        for field in self.event_fields {
            match data.shift_remove(*field) {
                Some(Value::String(name)) => _ = said.get_or_insert(name),
                Some(Value::Null) | None => {}
                Some(_) => return Err(DialectError::WrongType { field, expected: "text" }),
            }
        }
        let is_known = |name: &str| self.events.iter().any(|event| event.name == name);
        let known = [said.as_deref(), named].into_iter().flatten().find(|name| is_known(name)).map(str::to_owned);
        known.or(said).or_else(|| named.map(str::to_owned)).ok_or(DialectError::Missing(self.event_field()))
    }

    fn event_field(&self) -> &'static str {
        self.event_fields.first().copied().unwrap_or_default()
    }

    pub(super) fn fields_of(
        &self,
        event: Option<&'static AgentEvent>,
    ) -> impl DoubleEndedIterator<Item = &'static Field> {
        event.map_or(&[][..], |event| event.fields).iter().copied().flatten().chain(self.fields)
    }

    fn read_call(&self, event: Option<&AgentEvent>, data: &mut Map<String, Value>) -> Vec<&'static str> {
        if let Some(Pick::Tool(name)) = event.map(|event| event.pick) {
            data.insert("tool_name".to_owned(), name.into());
        }
        // Some agents send the arguments as the text of a JSON object.
        let text = data.get("args").and_then(Value::as_str);
        if let Some(args) = text.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok()) {
            data.insert("args".to_owned(), args.into());
        }
        if let Some(name) = self.canonical_mcp(event, data) {
            data.insert("tool_name".to_owned(), name.into());
        }
        let mut name = data.get("tool_name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some((_, meant)) = self.own_tools.iter().find(|(own, _)| *own == name) {
            (*meant).clone_into(&mut name);
            data.insert("tool_name".to_owned(), (*meant).into());
        }
        // Some agents give a command tool its commands without an argument name.
        if let Some(commands @ (Value::String(_) | Value::Array(_))) = data.get("args")
            && tool::declared(&name).is_some_and(|tool| tool.has(|effect| effect == Effect::RunsEach))
        {
            let args = Map::from_iter([("commands".to_owned(), commands.clone())]);
            data.insert("args".to_owned(), args.into());
        }
        data.get_mut("args")
            .and_then(Value::as_object_mut)
            .map(|args| tool::add_canonical(&name, args))
            .unwrap_or_default()
    }

    /// The required field that a tool call lacks, so that it cannot be judged. Events of another agent have it under
    /// another name.
    pub fn lacks(&self, request: &Request) -> Option<&'static str> {
        let event = Some(&request.event).filter(|event| event.kind == EventKind::BeforeTool)?;
        let missing = match event.text("tool_name").filter(|name| !name.is_empty()) {
            None => "tool_name",
            Some(name) => {
                let tool = tool::declared(name).filter(|_| event.args().is_none())?;
                tool.effects.iter().any(|(_, effect)| !effect.is_harmless()).then_some("args")?
            }
        };
        let mut fields = self.fields_of(self.asked(request));
        Some(fields.find(|field| field.canonical == missing).map_or(missing, |field| field.wire))
    }

    /// The canonical name of the tool, if it is one of an MCP server.
    fn canonical_mcp(&self, event: Option<&AgentEvent>, data: &mut Map<String, Value>) -> Option<String> {
        if event.is_some_and(|event| event.pick == Pick::Mcp) {
            let parts = data.shift_remove(MCP_PARTS).unwrap_or_default();
            let part = |name: &str| parts.get(name).and_then(Value::as_str);
            return Some(mcp_name(part("server").unwrap_or(UNNAMED_SERVER), part("tool").unwrap_or_default()));
        }
        if self.mcp == McpName::Gemini {
            let part = |name: &str| get(data, name).and_then(Value::as_str);
            return Some(mcp_name(part("mcp_context.server_name")?, part("mcp_context.tool_name")?));
        }
        self.server_tool(data.get("tool_name").and_then(Value::as_str)?)
    }

    /// The canonical name of a tool of an MCP server, where the agent's name for it says that.
    pub fn server_tool(&self, name: &str) -> Option<String> {
        let joined = |signs: &str| {
            let is_none = tool::declared(name).is_some() || name.starts_with("mcp__") || self.is_own(name);
            let parts = name.split_once(signs).filter(|_| !is_none);
            parts.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        };
        let (server, tool) = match self.mcp {
            McpName::Canonical | McpName::Gemini => None,
            McpName::At => name.strip_prefix('@')?.split_once('/'),
            McpName::Colon => name.strip_prefix("MCP:").map(|tool| (UNNAMED_SERVER, tool)),
            McpName::Arguments(_) => joined(SEPARATOR),
            McpName::Joined(signs) => joined(signs),
        }?;
        Some(mcp_name(server, tool))
    }

    /// If the tool is the one for all server tools, replaces it by the real tool and its arguments. Returns whether it
    /// did.
    fn unwrap_call(&self, data: &mut Map<String, Value>) -> bool {
        let McpName::Arguments(tool) = self.mcp else { return false };
        if data.get("tool_name").and_then(Value::as_str) != Some(tool) {
            return false;
        }
        let part = |name: &str| data.get("args")?.get(name)?.as_str();
        let name = mcp_name(part("server_name").unwrap_or(UNNAMED_SERVER), part("tool_name").unwrap_or_default());
        let inner = data.get_mut("args").and_then(|args| args.get_mut("arguments")).map(Value::take);
        data.insert("tool_name".to_owned(), name.into());
        data.insert("args".to_owned(), inner.unwrap_or_else(|| json!({})));
        true
    }

    /// Whether this is one of the agent's own tools, although its name looks like a server's tool.
    fn is_own(&self, name: &str) -> bool {
        self.own_tools.iter().any(|(own, _)| *own == name)
    }

    /// Renames a call's tool and arguments to the agent's names.
    fn spell_call(&self, own: Option<&AgentEvent>, data: &mut Map<String, Value>, (name, args): (&str, &str)) {
        let Some(tool) = data.get(name).and_then(Value::as_str).map(str::to_owned) else { return };
        if let Some((server, bare)) = mcp_parts(&tool) {
            let spelled = match self.mcp {
                McpName::Canonical => return,
                McpName::Arguments(tool) => tool.to_owned(),
                McpName::Gemini => format!("mcp_{server}_{bare}"),
                McpName::At => format!("@{server}/{bare}"),
                McpName::Colon => format!("MCP:{bare}"),
                McpName::Joined(signs) => format!("{server}{signs}{bare}"),
            };
            if matches!(self.mcp, McpName::Arguments(_)) {
                let given = data.get(args).and_then(Value::as_object).cloned().unwrap_or_default();
                data.insert(args.to_owned(), wrapped_call(&tool, given).into());
            } else if self.mcp == McpName::Gemini {
                let known = data.entry("mcp_context").or_insert_with(|| json!({}));
                if let Some(known) = known.as_object_mut() {
                    known.insert("server_name".to_owned(), server.into());
                    known.insert("tool_name".to_owned(), bare.into());
                }
            }
            // An event for server tools has separate fields for the parts.
            if own.is_none_or(|own| own.pick != Pick::Mcp) {
                data.insert(name.to_owned(), spelled.into());
            }
            return;
        }
        let vocabulary = own.and_then(|own| own.vocabulary).unwrap_or(self.name);
        if let Some(Value::Object(given)) = data.get(args) {
            let (tool, given) = tool::spelled_for(vocabulary, &tool, given);
            data.insert(args.to_owned(), given.into());
            data.insert(name.to_owned(), tool.into());
        } else {
            data.insert(name.to_owned(), tool::spelled_for(vocabulary, &tool, &Map::new()).0.into());
        }
    }
}

impl AgentEvent {
    /// Whether a hook written for this event may get that event of its kind.
    fn may_be_for(&self, event: &Event) -> bool {
        matches!(self.pick, Pick::Shaped(_)) || self.is_for(event)
    }

    /// Whether the agent's event can represent that event of its kind.
    fn is_for(&self, event: &Event) -> bool {
        let tool = event.text("tool_name").unwrap_or_default();
        match self.pick {
            Pick::Any | Pick::Marked(..) => true,
            Pick::With(field) => event.data.get(field).is_some_and(|value| !value.is_null()),
            Pick::Tool(name) => match (tool::declared(tool), tool::declared(name)) {
                (Some(one), Some(other)) => one.does(other) || other.does(one),
                _ => false,
            },
            Pick::Mcp => mcp_parts(tool).is_some(),
            Pick::Shaped(_) => false,
        }
    }
}

/// Adds the canonical argument names to a call that a person is asked about.
fn read_approval(data: &mut Map<String, Value>) -> Vec<&'static str> {
    let name = data.get("operation").and_then(Value::as_str).unwrap_or_default().to_owned();
    let details = data.get_mut("details").and_then(Value::as_object_mut);
    details.map(|details| tool::add_canonical(&name, details)).unwrap_or_default()
}

/// Only an agent that another one started has an id. Without a parent, it is the session's own agent, so this removes
/// the id.
fn unname(data: &mut Map<String, Value>) {
    if let Some(parent) = data.get("parent_agent_id")
        && parent.as_str().is_none_or(str::is_empty)
        && let Some(id) = data.shift_remove("agent_id")
    {
        set(data, "agent.id", id);
    }
}

/// An event that only the agent knows. Fields of all events stay where they are; the rest becomes its data.
fn custom(name: &str, data: Map<String, Value>) -> Map<String, Value> {
    let is_common = |field: &String| COMMON.iter().any(|(common, _)| common == field);
    let (mut common, rest): (Map<_, _>, Map<_, _>) = data.into_iter().partition(|(field, _)| is_common(field));
    common.insert("eventName".to_owned(), name.into());
    common.insert("data".to_owned(), rest.into());
    common
}

fn flatten(data: &mut Map<String, Value>) {
    data.shift_remove("eventName");
    if let Some(Value::Object(rest)) = data.shift_remove("data") {
        for (name, value) in rest {
            data.entry(name).or_insert(value);
        }
    }
}

fn mcp_name(server: &str, tool: &str) -> String {
    format!("mcp{SEPARATOR}{server}{SEPARATOR}{tool}")
}

/// The arguments of the one tool for all server tools, for a call of one of them.
pub(super) fn wrapped_call(tool: &str, args: Map<String, Value>) -> Map<String, Value> {
    let (server, tool) = mcp_parts(tool).unwrap_or((UNNAMED_SERVER, tool));
    let parts = [("server_name", server.into()), ("tool_name", tool.into()), ("arguments", Value::from(args))];
    parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The server and the tool in a canonical name.
fn mcp_parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once(SEPARATOR)
}

fn split_mcp(data: &mut Map<String, Value>) {
    let name = data.shift_remove("tool_name");
    if let Some((server, tool)) = name.as_ref().and_then(Value::as_str).and_then(mcp_parts) {
        data.insert(MCP_PARTS.to_owned(), json!({"server": server, "tool": tool}));
    }
}
