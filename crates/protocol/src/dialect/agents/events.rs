//! Events as an agent sends them, and as its hooks read them.

use serde_json::{Map, Value, json};

use super::field::{get, set, take};
use super::{AgentDialect, AgentEvent, Field, McpName, Pick};
use crate::dialect::{DialectError, Request, Spelling, line, request_object};
use crate::event::{COMMON, Event, EventKind};
use crate::matcher::UNNAMED_SERVER;
use crate::tool::{self, Effect};

const SEPARATOR: &str = "__";

impl AgentDialect {
    /// Reads an event; `named` is its name, where it does not say that itself.
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
        let added_args = if kind.is_tool_call() { self.read_call(event, &mut data) } else { Vec::new() };
        let mut event = Event::from_loose(kind, data.into());
        if kind == EventKind::Custom && name != EventKind::Custom.name() {
            event.data = custom(&name, event.data);
        }
        Ok(Request { spelling: Spelling { event: name, added_args }, ..Request::new(event) })
    }

    /// Writes an event as a hook of the agent reads it.
    pub(super) fn write(&self, event: &Event) -> Vec<u8> {
        let own = self.event_for(event);
        let mut data = event.data.clone();
        match event.kind {
            EventKind::BeforeTool | EventKind::AfterTool => self.spell_call(own, &mut data, ("tool_name", "args")),
            EventKind::ApprovalRequest => self.spell_call(own, &mut data, ("operation", "details")),
            EventKind::Custom if own.is_some() => flatten(&mut data),
            _ => {}
        }
        match own.map(|own| own.pick) {
            // Which server and tool it is goes where the agent has them.
            Some(Pick::Mcp) => split_mcp(&mut data),
            Some(Pick::Tool(_)) => _ = data.shift_remove("tool_name"),
            _ => {}
        }
        let fields: Vec<&Field> = self.fields_of(own).collect();
        let taken: Vec<Option<Value>> = fields.iter().map(|field| get(&data, field.canonical).cloned()).collect();
        for field in &fields {
            take(&mut data, field.canonical);
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
        let mut wire = Map::from_iter([(self.event_field().to_owned(), Value::from(name))]);
        wire.append(&mut data);
        line(wire)
    }

    /// The agent's event that says this one.
    pub(super) fn event_for(&self, event: &Event) -> Option<&'static AgentEvent> {
        if event.kind == EventKind::Custom {
            return self.events_of(event.kind).find(|own| Some(own.name) == event.text("eventName"));
        }
        self.events_of(event.kind).find(|own| own.is_for(event))
    }

    /// The agent's event of this name; a mark decides between several.
    fn event_named(&self, name: &str, data: &Map<String, Value>) -> Option<&'static AgentEvent> {
        let named = || self.events.iter().filter(|event| event.name == name);
        let marked = |event: &&AgentEvent| match event.pick {
            Pick::Marked(field, word) => data.get(field).and_then(Value::as_str) == Some(word),
            Pick::Shaped(field) => data.contains_key(field),
            _ => true,
        };
        named().find(marked).or_else(|| named().next())
    }

    /// What the event is called: as it says itself, unless only what we were told is known.
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
        // A tool that runs commands may be given them without a name.
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

    /// The field without which a call cannot be judged before it happens: an event of another agent has it elsewhere.
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
            let parts = data.shift_remove("mcp").unwrap_or_default();
            let part = |name: &str| parts.get(name).and_then(Value::as_str);
            return Some(mcp_name(part("server").unwrap_or(UNNAMED_SERVER), part("tool").unwrap_or_default()));
        }
        let name = data.get("tool_name").and_then(Value::as_str)?;
        match self.mcp {
            McpName::Arguments(tool) if tool == name => {
                let part = |name: &str| data.get("args")?.get(name)?.as_str();
                Some(mcp_name(part("server_name").unwrap_or(UNNAMED_SERVER), part("tool_name").unwrap_or_default()))
            }
            McpName::Canonical => None,
            McpName::Gemini => {
                let part = |name: &str| get(data, name).and_then(Value::as_str);
                Some(mcp_name(part("mcp_context.server_name")?, part("mcp_context.tool_name")?))
            }
            McpName::At => name.strip_prefix('@')?.split_once('/').map(|(server, tool)| mcp_name(server, tool)),
            McpName::Colon => name.strip_prefix("MCP:").map(|tool| mcp_name(UNNAMED_SERVER, tool)),
            McpName::Arguments(_) | McpName::Bare | McpName::Joined(_)
                if tool::declared(name).is_some() || name.starts_with("mcp__") || self.is_own(name) =>
            {
                None
            }
            McpName::Arguments(_) | McpName::Bare => {
                name.split_once(SEPARATOR).map(|(server, tool)| mcp_name(server, tool))
            }
            McpName::Joined(sign) => {
                let parts = name.split_once(sign).filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
                parts.map(|(server, tool)| mcp_name(server, tool))
            }
        }
    }

    /// Whether it is a tool of the agent itself that is named as one of a server.
    fn is_own(&self, name: &str) -> bool {
        self.own_tools.iter().any(|(own, _)| *own == name)
    }

    /// Puts a call into the words of the agent.
    fn spell_call(&self, own: Option<&AgentEvent>, data: &mut Map<String, Value>, (name, args): (&str, &str)) {
        let Some(tool) = data.get(name).and_then(Value::as_str).map(str::to_owned) else { return };
        if let Some((server, bare)) = mcp_parts(&tool) {
            let spelled = match self.mcp {
                McpName::Canonical => return,
                McpName::Arguments(tool) => tool.to_owned(),
                McpName::Gemini => format!("mcp_{server}_{bare}"),
                McpName::At => format!("@{server}/{bare}"),
                McpName::Colon => format!("MCP:{bare}"),
                McpName::Bare => format!("{server}{SEPARATOR}{bare}"),
                McpName::Joined(sign) => format!("{server}{sign}{bare}"),
            };
            if self.mcp == McpName::Gemini {
                let known = data.entry("mcp_context").or_insert_with(|| json!({}));
                if let Some(known) = known.as_object_mut() {
                    known.insert("server_name".to_owned(), server.into());
                    known.insert("tool_name".to_owned(), bare.into());
                }
            }
            // An event for such tools has places for the parts.
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
    /// Whether it can say this event of its kind.
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

/// Only an agent that another one started names itself; one that has no parent is the session's own.
fn unname(data: &mut Map<String, Value>) {
    if let Some(parent) = data.get("parent_agent_id")
        && parent.as_str().is_none_or(str::is_empty)
        && let Some(id) = data.shift_remove("agent_id")
    {
        set(data, "agent.id", id);
    }
}

/// An event that only the agent knows: what all events have stays where it is, the rest is its data.
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

/// Server and tool of a canonical name.
fn mcp_parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once(SEPARATOR)
}

fn split_mcp(data: &mut Map<String, Value>) {
    let name = data.shift_remove("tool_name");
    if let Some((server, tool)) = name.as_ref().and_then(Value::as_str).and_then(mcp_parts) {
        data.insert("mcp".to_owned(), json!({"server": server, "tool": tool}));
    }
}
