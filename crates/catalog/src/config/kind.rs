//! The kinds of settings: reads their values, describes them, and gives their JSON Schemas.
//!
//! A value that was read is JSON in one canonical form: times in milliseconds, sizes in bytes, and a single text for a
//! list as a list.

use std::time::Duration;

use ollm_protocol::dialect::agents::home::WrittenForm;
use ollm_protocol::dialect::{AGENTS, agent_named};
use ollm_protocol::units;
use serde_json::{Value, json};

use super::settings::{BOX_SOCKETS, GUARDS};
use crate::mcp::{self, ServerKey};
use crate::node::Node;
use crate::value::{self, ReadValue};

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigKind {
    /// True or false.
    Flag,
    /// A positive time; a bare number is in this unit.
    Time(Duration),
    /// A time in milliseconds that may be zero.
    Pause,
    /// A whole number within bounds, both included.
    Count(u64, u64),
    /// A number within bounds, both included.
    Number(f64, f64),
    /// A positive number of bytes, or text with a unit.
    Size,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Text in this form.
    Text(Item),
    /// A list of texts in this form.
    List(Item),
    /// Names with text values.
    Pairs,
    /// True, false or a list of absolute paths.
    Trust,
    /// True, false or a list of the built-in guards.
    Guards,
    /// Text, a number, a boolean, or a list or map of them: the extension knows which.
    Setting,
    /// The declaration of an MCP server, whose keys are settings of their own.
    Server,
    /// A map with these keys, which applies as a whole.
    Parts(&'static [ServerKey]),
    /// Anything; passed on unchanged.
    Any,
}

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Any text.
    Free,
    /// Any text that is not blank.
    Words,
    /// The name of a program, without a path.
    Program,
    /// A folder: absolute, below `~`, or relative to the project.
    Folder,
    /// An absolute path, or one below `~`.
    Absolute,
    /// A host name or address, with a port or a prefix length if wanted.
    Host,
    /// A minisign public key.
    PublicKey,
    /// `sha256:` and 64 hexadecimal digits.
    Digest,
    /// The name of an environment variable.
    Variable,
    /// An `http` or `https` address.
    Url,
    /// The name of another agent whose hooks can be read.
    Agent,
    /// A program whose sockets a box can leave open.
    Socket,
}

/// A bound that no real value reaches, so messages omit it.
const UNBOUNDED: u64 = 0xffff_ffff;

const MILLISECOND: Duration = Duration::from_millis(1);

impl ConfigKind {
    /// The canonical value of a node, if it is valid.
    pub(crate) fn read(self, node: &Node) -> ReadValue<Value> {
        match self {
            ConfigKind::Flag => value::flag(node).map(Value::from),
            ConfigKind::Time(unit) => value::time(node, unit).map(milliseconds),
            ConfigKind::Pause => value::pause(node, MILLISECOND).map(milliseconds),
            ConfigKind::Count(least, most) => {
                let within = |count: &u64| (least..=most).contains(count);
                keep(value::whole(node), within).map(Value::from)
            }
            ConfigKind::Number(least, most) => {
                keep(value::decimal(node), |number| (least..=most).contains(number)).map(number)
            }
            ConfigKind::Size => keep(value::size(node), |size| *size > 0).map(Value::from),
            ConfigKind::Choice(words) => {
                keep(value::plain(node), |word| words.contains(&word.as_str())).map(Value::from)
            }
            ConfigKind::Text(item) => keep(value::text(node), |text| item.fits(text)).map(Value::from),
            ConfigKind::List(item) => {
                keep(value::texts(node), |texts| texts.iter().all(|text| item.fits(text))).map(Value::from)
            }
            ConfigKind::Pairs => pairs(node),
            ConfigKind::Trust => trust(node),
            ConfigKind::Guards => guards(node),
            ConfigKind::Setting => setting(node),
            ConfigKind::Server | ConfigKind::Parts(_) if !matches!(node, Node::Map(_)) => ReadValue::Wrong,
            ConfigKind::Server | ConfigKind::Parts(_) | ConfigKind::Any => ReadValue::Exact(node.to_json()),
        }
    }

    /// The valid values, as text for people.
    pub fn expected(self) -> String {
        match self {
            ConfigKind::Flag => "true or false".to_owned(),
            ConfigKind::Time(MILLISECOND) => {
                "a positive number of milliseconds, or text with a unit such as \"5s\"".to_owned()
            }
            ConfigKind::Time(_) => "a positive number of seconds, or text with a unit such as \"5s\"".to_owned(),
            ConfigKind::Pause => "a number of milliseconds, or text with a unit such as \"5s\"".to_owned(),
            ConfigKind::Count(least, UNBOUNDED..) => format!("a whole number from {least}"),
            ConfigKind::Count(least, most) => format!("a whole number from {least} to {most}"),
            ConfigKind::Number(least, most) => format!("a number from {least} to {most}"),
            ConfigKind::Size => "a positive number of bytes, or text with a unit such as \"16MiB\"".to_owned(),
            ConfigKind::Choice(words) => words.join(" or "),
            ConfigKind::Text(item) => item.one().to_owned(),
            ConfigKind::List(item) => format!("a list of {}", item.many()),
            ConfigKind::Pairs => "a map of names to texts".to_owned(),
            ConfigKind::Trust => "true, false or a list of absolute paths".to_owned(),
            ConfigKind::Guards => format!("true, false or a list out of {}", GUARDS.join(", ")),
            ConfigKind::Setting => "text, a number, true or false, a list or a map".to_owned(),
            ConfigKind::Server => "a map with a `command` or a `url`".to_owned(),
            ConfigKind::Parts(keys) => format!("a map with {}", ServerKey::names(keys).join(", ")),
            ConfigKind::Any => "anything".to_owned(),
        }
    }

    /// The JSON Schema of a value as it should be written.
    pub(crate) fn schema(self) -> Value {
        let texts = |pattern: &str| json!({"type": "array", "items": {"type": "string", "pattern": pattern}});
        let words = |words: Vec<&str>| json!({"type": "array", "items": {"enum": words}});
        match self {
            ConfigKind::Flag => json!({"type": "boolean"}),
            ConfigKind::Time(_) => {
                json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": POSITIVE_TIME}]})
            }
            ConfigKind::Pause => {
                json!({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": TIME}]})
            }
            ConfigKind::Count(least, UNBOUNDED..) => json!({"type": "integer", "minimum": least}),
            ConfigKind::Count(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            ConfigKind::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
            ConfigKind::Size => {
                json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": SIZE}]})
            }
            ConfigKind::Choice(words) => json!({"enum": words}),
            ConfigKind::Text(item) => json!({"type": "string", "pattern": item.pattern()}),
            ConfigKind::List(Item::Agent) => {
                words(AGENTS.iter().map(|agent| agent.name).filter(|name| Item::Agent.fits(name)).collect())
            }
            ConfigKind::List(Item::Socket) => words(BOX_SOCKETS.to_vec()),
            ConfigKind::List(item) => texts(item.pattern()),
            ConfigKind::Pairs => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            ConfigKind::Trust => json!({"anyOf": [{"type": "boolean"}, texts(Item::Absolute.pattern())]}),
            ConfigKind::Guards => json!({"anyOf": [{"type": "boolean"}, words(GUARDS.to_vec())]}),
            ConfigKind::Setting => json!({"type": ["string", "number", "boolean", "array", "object"]}),
            ConfigKind::Server => mcp::schema(),
            ConfigKind::Parts(_) => json!({"type": "object"}),
            ConfigKind::Any => json!(true),
        }
    }
}

const TIME: &str = units::DURATION_PATTERN;
const POSITIVE_TIME: &str = units::POSITIVE_DURATION_PATTERN;
const SIZE: &str = units::POSITIVE_SIZE_PATTERN;

impl Item {
    pub(crate) fn fits(self, text: &str) -> bool {
        let all = |fits: fn(char) -> bool| !text.is_empty() && text.chars().all(fits);
        match self {
            Item::Free => true,
            Item::Words => !text.trim().is_empty(),
            Item::Program => all(|letter| letter.is_alphanumeric() || "._+-".contains(letter)),
            Item::Folder => !text.trim().is_empty() && !text.contains('\0'),
            Item::Absolute => text.starts_with('/') || text == "~" || text.starts_with("~/"),
            Item::Host => all(|letter| letter.is_ascii_alphanumeric() || "._-:[]/".contains(letter)) && is_host(text),
            // 42 bytes; the first two name the algorithm.
            Item::PublicKey => {
                let known = ["RWQ", "RWR", "RWS", "RWT"];
                text.len() == 56 && known.iter().any(|start| text.starts_with(start)) && all(is_base64)
            }
            Item::Digest => text
                .strip_prefix("sha256:")
                .is_some_and(|hex| hex.len() == 64 && hex.chars().all(|digit| digit.is_ascii_hexdigit())),
            Item::Variable => {
                all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
                    && !text.starts_with(|first: char| first.is_ascii_digit())
            }
            Item::Socket => BOX_SOCKETS.contains(&text),
            Item::Agent => agent_named(text).is_some_and(|agent| agent.home.written.form != WrittenForm::Code),
            Item::Url => ["http://", "https://"].iter().any(|scheme| {
                text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
                    && !text.contains(char::is_whitespace)
            }),
        }
    }

    fn one(self) -> &'static str {
        match self {
            Item::Free => "text",
            Item::Words => "text that is not blank",
            Item::Program => "the name of a program without a path",
            Item::Folder => "the path of a folder",
            Item::Absolute => "an absolute path",
            Item::Host => "a host name or an address",
            Item::PublicKey => "a minisign public key, 56 characters that begin with `RW`",
            Item::Digest => "`sha256:` and 64 hexadecimal digits",
            Item::Variable => "the name of an environment variable",
            Item::Url => "an address that begins with http:// or https://",
            Item::Agent => "an agent whose hooks can be read",
            Item::Socket => "a program whose sockets a box knows, such as docker",
        }
    }

    fn many(self) -> &'static str {
        match self {
            Item::Free | Item::Words => "texts",
            Item::Program => "program names without a path",
            Item::Folder => "folders",
            Item::Absolute => "absolute paths",
            Item::Host => "host names or addresses such as localhost:8080 or 10.0.0.0/8",
            Item::PublicKey => "minisign public keys, each 56 characters that begin with `RW`",
            Item::Digest => "digests, each `sha256:` and 64 hexadecimal digits",
            Item::Variable => "names of environment variables",
            Item::Url => "addresses that begin with http:// or https://",
            Item::Agent => "agents whose hooks can be read, such as claude or gemini",
            Item::Socket => "programs whose sockets a box knows, such as docker or tmux",
        }
    }

    fn pattern(self) -> &'static str {
        match self {
            Item::Free => "",
            Item::Words | Item::Folder => r"\S",
            Item::Program => r"^[\p{L}\p{N}._+-]+$",
            Item::Absolute => "^(/|~$|~/)",
            Item::Host => r"^[A-Za-z0-9._:\[\]/-]+$",
            Item::PublicKey => "^RW[Q-T][A-Za-z0-9+/]{53}$",
            Item::Digest => "^sha256:[0-9a-fA-F]{64}$",
            Item::Variable => "^[A-Za-z_][A-Za-z0-9_]*$",
            Item::Url => r"^https?://[^/\s]\S*$",
            Item::Agent | Item::Socket => "^[a-z]+$",
        }
    }
}

fn is_base64(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+/".contains(letter)
}

/// A name or address. Only a prefix length may have a slash: a path or scheme would promise an effect that it does not
/// have.
fn is_host(text: &str) -> bool {
    let (host, rest) = text.split_once('/').map_or((text, None), |(host, rest)| (host, Some(rest)));
    let length = rest.map(|rest| rest.split(':').next().unwrap_or(rest));
    !host.is_empty() && length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= 128))
}

fn keep<T>(reading: ReadValue<T>, fits: impl Fn(&T) -> bool) -> ReadValue<T> {
    match &reading {
        ReadValue::Exact(value) | ReadValue::Converted(value) if !fits(value) => ReadValue::Wrong,
        _ => reading,
    }
}

/// A time as a number of milliseconds, as an integer if possible.
pub(crate) fn milliseconds(time: Duration) -> Value {
    match u64::try_from(time.as_millis()) {
        Ok(whole) if Duration::from_millis(whole) == time => Value::from(whole),
        _ => Value::from(time.as_secs_f64() * 1e3),
    }
}

/// A number of milliseconds as a time.
pub(crate) fn duration(value: &Value) -> Option<Duration> {
    match value.as_u64() {
        Some(whole) => Some(Duration::from_millis(whole)),
        None => Duration::try_from_secs_f64(value.as_f64()? / 1e3).ok(),
    }
}

fn number(number: f64) -> Value {
    Value::from(number)
}

fn pairs(node: &Node) -> ReadValue<Value> {
    let Node::Map(entries) = node else { return ReadValue::Wrong };
    let mut converted = false;
    let mut map = serde_json::Map::new();
    for (name, node) in entries {
        let text = match value::text(node) {
            ReadValue::Exact(text) => text,
            ReadValue::Converted(text) => {
                converted = true;
                text
            }
            ReadValue::Wrong => return ReadValue::Wrong,
        };
        map.insert(name.clone(), Value::from(text));
    }
    if converted { ReadValue::Converted(map.into()) } else { ReadValue::Exact(map.into()) }
}

fn trust(node: &Node) -> ReadValue<Value> {
    let absolute = |node: &Node| matches!(node, Node::Text(path) if Item::Absolute.fits(path));
    match node {
        Node::List(items) if items.iter().all(absolute) => ReadValue::Exact(node.to_json()),
        Node::List(_) => ReadValue::Wrong,
        node if absolute(node) => ReadValue::Converted(Value::from(vec![node.to_json()])),
        node => value::flag(node).map(Value::from),
    }
}

/// All guards, none, or those in the list.
fn guards(node: &Node) -> ReadValue<Value> {
    let known = |names: &Vec<String>| names.iter().all(|name| GUARDS.contains(&name.as_str()));
    match node {
        Node::List(_) => keep(value::texts(node), known).map(Value::from),
        node => value::flag(node).map(|on| if on { Value::from(GUARDS) } else { Value::from(Vec::<Value>::new()) }),
    }
}

fn setting(node: &Node) -> ReadValue<Value> {
    match node {
        Node::Null => ReadValue::Wrong,
        said => ReadValue::Exact(said.to_json()),
    }
}
