//! The messages of a conversation, and their JSON form, which events, transcripts and replay files share.

use serde_json::{Map, Value, json};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Guidance outside of the dialogue: the system prompt, and what hooks add.
    System(String),
    /// A prompt of the person, or of a hook in their name.
    User(String),
    /// An answer of the model.
    Assistant {
        /// Its text.
        content: String,
        /// The tool calls that it requests.
        calls: Vec<Call>,
    },
    /// The result of a call.
    Tool {
        /// The call it answers.
        call_id: String,
        /// The tool's name.
        name: String,
        /// What the model reads.
        content: String,
    },
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id, unique within the answer.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments for the tool.
    pub arguments: Arguments,
}

/// A call's arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// A JSON object, as required.
    Object(Map<String, Value>),
    /// Text that is no JSON object.
    Broken(String),
}

impl Arguments {
    /// Parses the text that a model wrote; an empty text means no arguments.
    pub fn parse(text: &str) -> Arguments {
        if text.trim().is_empty() {
            return Arguments::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Arguments::Object(map),
            _ => Arguments::Broken(text.to_owned()),
        }
    }

    /// The text of the arguments.
    pub fn text(&self) -> String {
        match self {
            Arguments::Object(map) => Value::Object(map.clone()).to_string(),
            Arguments::Broken(text) => text.clone(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Arguments::Object(map) => map.clone().into(),
            Arguments::Broken(text) => text.clone().into(),
        }
    }

    fn from_json(value: &Value) -> Arguments {
        match value {
            Value::Object(map) => Arguments::Object(map.clone()),
            Value::String(text) => Arguments::parse(text),
            Value::Null => Arguments::Object(Map::new()),
            other => Arguments::Broken(other.to_string()),
        }
    }
}

impl Call {
    /// The call as JSON.
    pub fn to_json(&self) -> Value {
        json!({"id": self.id, "name": self.name, "arguments": self.arguments.to_json()})
    }

    /// Reads a call from JSON; `fallback` is its id if it has none.
    pub fn from_json(value: &Value, fallback: &str) -> Option<Call> {
        let name = value.get("name")?.as_str()?.to_owned();
        let id = value.get("id").and_then(Value::as_str).unwrap_or(fallback).to_owned();
        Some(Call { id, name, arguments: Arguments::from_json(value.get("arguments").unwrap_or(&Value::Null)) })
    }
}

impl Message {
    /// The role of the speaker.
    pub fn role(&self) -> &'static str {
        match self {
            Message::System(_) => "system",
            Message::User(_) => "user",
            Message::Assistant { .. } => "assistant",
            Message::Tool { .. } => "tool",
        }
    }

    /// The text of the message.
    pub fn content(&self) -> &str {
        match self {
            Message::System(content)
            | Message::User(content)
            | Message::Assistant { content, .. }
            | Message::Tool { content, .. } => content,
        }
    }

    /// About how many bytes the model reads.
    pub fn size(&self) -> usize {
        let calls = match self {
            Message::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        };
        self.content().len() + calls.iter().map(|call| call.name.len() + call.arguments.text().len()).sum::<usize>()
    }

    /// The message as JSON.
    pub fn to_json(&self) -> Value {
        let mut map =
            Map::from_iter([("role".to_owned(), self.role().into()), ("content".to_owned(), self.content().into())]);
        match self {
            Message::Assistant { calls, .. } if !calls.is_empty() => {
                map.insert("tool_calls".to_owned(), calls.iter().map(Call::to_json).collect());
            }
            Message::Tool { call_id, name, .. } => {
                map.insert("tool_call_id".to_owned(), call_id.clone().into());
                map.insert("name".to_owned(), name.clone().into());
            }
            _ => {}
        }
        Value::Object(map)
    }

    /// Reads a message from JSON.
    pub fn from_json(value: &Value) -> Option<Message> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        let content = text("content").unwrap_or_default();
        Some(match value.get("role")?.as_str()? {
            "system" => Message::System(content),
            "user" => Message::User(content),
            "assistant" => Message::Assistant { content, calls: calls_from(value) },
            "tool" => Message::Tool { call_id: text("tool_call_id")?, name: text("name").unwrap_or_default(), content },
            _ => return None,
        })
    }
}

/// The calls listed under `tool_calls`.
pub(crate) fn calls_from(value: &Value) -> Vec<Call> {
    let listed = value.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    listed.enumerate().filter_map(|(at, call)| Call::from_json(call, &format!("call_{}", at + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_its_json_form() {
        let object = Arguments::Object(Map::from_iter([("a".to_owned(), 1.into())]));
        let calls = vec![
            Call { id: "1".into(), name: "shell".into(), arguments: object },
            Call { id: "2".into(), name: "shell".into(), arguments: Arguments::Broken("{".into()) },
        ];
        for message in [
            Message::System("s".into()),
            Message::User("u".into()),
            Message::Assistant { content: String::new(), calls },
            Message::Tool { call_id: "1".into(), name: "shell".into(), content: "ok".into() },
        ] {
            assert_eq!(Message::from_json(&message.to_json()), Some(message));
        }
    }

    #[test]
    fn arguments_are_an_object_or_broken() {
        assert_eq!(Arguments::parse(" "), Arguments::Object(Map::new()));
        assert_eq!(Arguments::parse("[1]"), Arguments::Broken("[1]".into()));
        assert_eq!(Arguments::parse("{\"a\":"), Arguments::Broken("{\"a\":".into()));
    }
}
