//! `ollm schema`: prints JSON Schemas of all files we read and of all messages.

use std::fmt::Write;

use ollm_app::{AppContext, cases, extensions};
use ollm_catalog::{
    Form, config_schema, configuration, hook_file_schema, hook_schema, manifest_schema, settings_schema,
};
use ollm_protocol::dialect::{self, event_named, event_schema};
use ollm_protocol::{Code, Dialect, EventKind};
use ollm_store::Switches;
use serde_json::{Value, json};

use crate::arguments::SchemaArguments;
use crate::error::Failure;
use crate::output::Output;

/// The name of a file, its description, and its schema.
type FileSchema = (&'static str, &'static str, fn(&AppContext) -> Value);

/// The files that have a schema.
const FILES: &[FileSchema] = &[
    ("hooks", "a hook file of any form", |_| hook_file_schema()),
    ("hooks-events", "hooks by event", |_| hook_schema(Form::Events)),
    ("hooks-modern", "one hook, with eventType and action", |_| hook_schema(Form::Modern)),
    ("hooks-when-then", "one hook, with when and then", |_| hook_schema(Form::WhenThen)),
    ("hooks-agent", "hooks in an agent's settings", |_| hook_schema(Form::Agent)),
    ("config", "config.yaml, with the settings of the extensions there are", whole_config),
    ("mcp", "settings/mcp.json", |_| mcp_schema()),
    ("manifest", "an extension's manifest.json", |_| manifest_schema()),
    ("case", "a golden case of a hook", |_| cases::schema()),
];

/// The schema of the configuration for this person and place.
fn whole_config(context: &AppContext) -> Value {
    let env = |name: &str| context.variable(name);
    let (config, _) = configuration(&context.places, &env, &context.overrides);
    let (switches, _) = Switches::load(&context.switches());
    settings_schema(&extensions(context, &config, &switches, &mut Vec::new()))
}

/// This file declares servers like config.yaml does.
fn mcp_schema() -> Value {
    let config = config_schema();
    let servers = config.pointer("/properties/mcp/properties/servers").cloned().unwrap_or_default();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "MCP servers",
        "type": "object",
        "properties": {"mcpServers": servers, "$schema": {"type": "string"}},
        "required": ["mcpServers"],
    })
}

pub(super) fn run(arguments: &SchemaArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let Some(name) = &arguments.name else { return output.text(&listing()) };
    if let Some((_, _, schema)) = FILES.iter().find(|(known, _, _)| known == name) {
        return output.pretty_json(&schema(context));
    }
    let kind = match event_named(name) {
        Ok(named) => named.kinds.first().copied().unwrap_or(EventKind::Custom),
        Err(_) => {
            return Err(Failure::new(Code::UnknownName, format!("`{name}` is neither a file nor an event"))
                .hint("`ollm schema` lists what there is"));
        }
    };
    let dialect = speaking(arguments.dialect.as_deref(), name);
    let schema = if arguments.answer { dialect.answer_schema(kind) } else { event_schema(dialect, kind) };
    output.pretty_json(&schema)
}

/// The dialect that was asked for, else that of the event's spelling.
fn speaking(name: Option<&str>, event: &str) -> &'static dyn Dialect {
    name.and_then(dialect::by_name).unwrap_or_else(|| dialect::by_spelling(event))
}

fn listing() -> String {
    let mut text = String::from("Files: ollm schema NAME\n");
    for (name, about, _) in FILES {
        let _ = writeln!(text, "  {name:<18}{about}");
    }
    text.push_str("What a hook reads, and answers: ollm schema EVENT [--dialect NAME] [--answer]\n");
    let events: Vec<&str> = EventKind::all().map(EventKind::name).collect();
    for events in events.chunks(5) {
        let _ = writeln!(text, "  {}", events.join(" "));
    }
    text
}
