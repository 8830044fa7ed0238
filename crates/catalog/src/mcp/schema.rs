//! The JSON Schema of a server as it is declared, for editors.

use serde_json::{Map, Value, json};

use super::read::TRANSPORTS;

/// Words for how a server is spoken to that other programs write.
const OTHER_TRANSPORTS: &[&str] = &["local", "streamable-http", "streamable_http", "streamablehttp"];
const TIME: &str = r"^\s*[0-9.]+\s*(ms|s|m|h)\s*$";
const SIZE: &str = r"^\s*[0-9]+\s*(KiB|MiB|GiB|kB|KB|MB|GB|B)?\s*$";
/// Text with something in it.
const WORD: &str = r"\S";
const ADDRESS: &str = r"^(https?://[^/?#\s]\S*|\$\{\S*)$";
const DOCUMENT: &str = r"^https://[^/\s]*/\S+$";
const REDIRECT: &str = r"^http://(localhost|127\.0\.0\.1):[1-9][0-9]{0,4}(/[^?# ]*)?$";

/// A value, or none: keys without one are not set.
pub(crate) fn or_null(mut schema: Value) -> Value {
    // What is not allowed is not allowed of nothing either.
    if schema.get("not").is_none()
        && let Some(kind) = schema.get_mut("type")
        && kind.is_string()
    {
        *kind = json!([kind.clone(), "null"]);
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// The declaration of one server, as it is read.
pub(crate) fn schema() -> Value {
    let address = ["url", "httpUrl", "serverUrl"].map(has);
    json!({
        "type": "object",
        "description": "A server that is started by its command, or that is reached at its address.",
        "oneOf": [has("command"), {"anyOf": address}],
        "properties": properties(),
    })
}

/// A map in which this key has a value.
fn has(key: &str) -> Value {
    json!({"required": [key], "properties": {key: {"type": "string"}}})
}

fn properties() -> Map<String, Value> {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let flag = || json!({"type": "boolean"});
    let time = || json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, text(TIME)]});
    let pause = json!({"anyOf": [{"type": "number", "minimum": 0}, text(TIME)]});
    let pairs = |name: &str, value: &str| json!({"type": "object", "propertyNames": {"pattern": name}, "additionalProperties": text(value)});
    let transport = text(&transports());
    let listed: [(&[&str], Value); 16] = [
        (&["command"], text(WORD)),
        (&["args"], texts()),
        (&["env"], pairs(r"^[^=\x00]+$", r"^[^\x00]*$")),
        (&["cwd", "working_directory", "workingDirectory"], text(WORD)),
        (&["limits"], limits()),
        (&["url", "httpUrl", "serverUrl"], text(ADDRESS)),
        (&["headers"], pairs(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", r"^[^\x00-\x08\x0a-\x1f\x7f]*$")),
        (&["transport", "type"], transport),
        (&["timeout", "toolTimeout", "tool_timeout"], time()),
        (&["idleTimeout", "idle_timeout"], pause),
        (&["enabled", "disabled", "lazy"], flag()),
        (&["autoRestart", "auto_restart"], flag()),
        (&["allowTools", "includeTools", "enabledTools"], texts()),
        (&["denyTools", "excludeTools", "disabledTools"], texts()),
        (&["oauth"], oauth()),
        (&["description"], json!({})),
    ];
    spread(listed)
}

/// Each schema under all the names of its key; none of them has to have a value.
fn spread<const N: usize>(listed: [(&[&str], Value); N]) -> Map<String, Value> {
    let each = |(names, schema): (&[&str], Value)| {
        let schema = or_null(schema);
        names.iter().map(|name| ((*name).to_owned(), schema.clone())).collect::<Vec<_>>()
    };
    listed.into_iter().flat_map(each).collect()
}

/// The words for how a server is spoken to, in capital letters or not.
fn transports() -> String {
    let either = |letter: char| match letter.to_ascii_uppercase() {
        upper if upper == letter => letter.to_string(),
        upper => format!("[{letter}{upper}]"),
    };
    let words = TRANSPORTS.iter().chain(OTHER_TRANSPORTS);
    let words: Vec<String> = words.map(|word| word.chars().map(either).collect()).collect();
    format!("^({})$", words.join("|"))
}

fn limits() -> Value {
    let size = json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE}]});
    let count = json!({"type": "integer", "minimum": 0});
    json!({"type": "object", "properties": {
        "cpu": {"type": "string", "pattern": TIME},
        "memory": size,
        "fileSize": size,
        "processes": count,
        "files": count,
    }})
}

fn oauth() -> Value {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let listed: [(&[&str], Value); 6] = [
        (&["clientId", "client_id"], text(WORD)),
        (&["clientSecret", "client_secret"], text(WORD)),
        (&["clientMetadataUrl", "clientIdMetadataUrl"], text(DOCUMENT)),
        (&["scopes", "scope"], json!({"type": "array", "items": {"type": "string"}})),
        (
            &["callbackPort", "callback_port", "redirectPort"],
            json!({"type": "integer", "minimum": 1, "maximum": 65535}),
        ),
        (&["redirectUri", "redirect_uri"], text(REDIRECT)),
    ];
    let any = |keys: [&str; 2]| json!({"anyOf": keys.map(has)});
    json!({
        "type": "object",
        "properties": spread(listed),
        "if": any(["clientSecret", "client_secret"]),
        "then": any(["clientId", "client_id"]),
    })
}
