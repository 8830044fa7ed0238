//! The JSON Schema of a server as it is declared, for editors: the same in every file that declares servers.

use ollm_protocol::units;
use serde_json::{Map, Value, json};

use super::read::{Keys, LIMIT_KEYS, OAUTH_KEYS, OTHER_TRANSPORTS, SERVER_KEYS, TRANSPORTS};
use crate::config::KEYS;

const TIME: &str = units::DURATION_PATTERN;
const SIZE: &str = units::SIZE_PATTERN;
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
    let url = SERVER_KEYS.iter().find(|(key, _)| *key == "url").map(|(_, others)| *others).unwrap_or_default();
    let address: Vec<Value> = ["url"].iter().chain(url).map(|key| has(key)).collect();
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
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let flag = || json!({"type": "boolean"});
    let time = || json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, text(TIME)]});
    let pairs = |name: &str, value: &str| json!({"type": "object", "propertyNames": {"pattern": name}, "additionalProperties": text(value)});
    spread(SERVER_KEYS, |key| {
        let schema = match key {
            "command" | "cwd" => text(WORD),
            "args" | "allowTools" | "denyTools" => texts(),
            "env" => pairs(r"^[^=\x00]+$", r"^[^\x00]*$"),
            "limits" => limits(),
            "url" => text(ADDRESS),
            "headers" => pairs(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", r"^[^\x00-\x08\x0a-\x1f\x7f]*$"),
            "transport" => text(&transports()),
            "timeout" | "toolTimeout" => time(),
            "idleTimeout" => json!({"anyOf": [{"type": "number", "minimum": 0}, text(TIME)]}),
            "enabled" | "disabled" | "lazy" | "autoRestart" => flag(),
            "oauth" => oauth(),
            // Anything may stand there.
            _ => json!({}),
        };
        (schema, about(key))
    })
}

/// What a key of a server is for, as the table of settings says it.
fn about(key: &str) -> &'static str {
    let known = KEYS.iter().find(|known| known.path.strip_prefix("mcp.servers.*.") == Some(key));
    known.map_or("", |known| known.about)
}

fn text(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern})
}

/// The schema of each key, and what it is for, under all the words for it; none of them has to have a value.
fn spread(keys: Keys, property: impl Fn(&str) -> (Value, &'static str)) -> Map<String, Value> {
    let each = |(ours, others): &(&str, &[&str])| {
        let (schema, about) = property(ours);
        let words = [(*ours, about.to_owned())].into_iter();
        let words = words.chain(others.iter().map(|theirs| (*theirs, format!("The same as `{ours}`."))));
        let described = words.map(|(word, about)| {
            let mut schema = or_null(schema.clone());
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".to_owned(), about.into());
            }
            (word.to_owned(), schema)
        });
        described.collect::<Vec<_>>()
    };
    keys.iter().flat_map(each).collect()
}

/// The words for how a server is spoken to, in capital letters or not.
fn transports() -> String {
    let either = |letter: char| match letter.to_ascii_uppercase() {
        upper if upper == letter => letter.to_string(),
        upper => format!("[{letter}{upper}]"),
    };
    let words = TRANSPORTS.iter().chain(OTHER_TRANSPORTS.iter().map(|(theirs, _)| theirs));
    let words: Vec<String> = words.map(|word| word.chars().map(either).collect()).collect();
    format!("^({})$", words.join("|"))
}

fn limits() -> Value {
    let size = || json!({"anyOf": [{"type": "integer", "minimum": 0}, text(SIZE)]});
    let count = || json!({"type": "integer", "minimum": 0});
    let words = LIMIT_KEYS
        .iter()
        .flat_map(|(ours, others)| [&[*ours], *others].concat().into_iter().map(move |word| (*ours, word)));
    let all = words.map(|(ours, word)| {
        let (mut schema, about) = match ours {
            "cpu" => (text(TIME), "Time on a processor, with its unit."),
            "memory" => (size(), "Bytes of memory."),
            "fileSize" => (size(), "Bytes of a file it writes."),
            "processes" => (count(), "Processes at once."),
            "files" => (count(), "Open files at once."),
            _ => (json!({}), ""),
        };
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), about.into());
        }
        (word.to_owned(), schema)
    });
    json!({"type": "object", "properties": all.collect::<Map<_, _>>()})
}

fn oauth() -> Value {
    let properties = spread(OAUTH_KEYS, |key| match key {
        "clientId" => (text(WORD), "The name by which the issuer knows us; nobody registers then."),
        "clientSecret" => (text(WORD), "The word that proves it; write it as `${NAME}`."),
        "clientMetadataUrl" => (text(DOCUMENT), "Where a document says who we are, for issuers that read it there."),
        "scopes" => (json!({"type": "array", "items": {"type": "string"}}), "What to ask for."),
        "callbackPort" => {
            (json!({"type": "integer", "minimum": 1, "maximum": 65535}), "The port the browser comes back to.")
        }
        "redirectUri" => (text(REDIRECT), "The whole address on this machine that the browser comes back to."),
        _ => (json!({}), "Of no effect: whether it is needed is found out by asking."),
    });
    let any = |keys: [&str; 2]| json!({"anyOf": keys.map(has)});
    json!({
        "type": "object",
        "properties": properties,
        "if": any(["clientSecret", "client_secret"]),
        "then": any(["clientId", "client_id"]),
    })
}
