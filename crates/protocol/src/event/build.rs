//! Makes events in a program. Their fields are checked against the table, so that a guard does not miss a misspelt
//! field.

use serde_json::{Map, Value};

use super::{Event, EventKind, Shape};

/// Why data does not make a valid event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// A required field is missing, so hooks cannot tell what the event is about.
    #[error("a {event} event needs the field `{field}`{}", found.as_ref().map(|found| format!("; it has `{found}` instead")).unwrap_or_default())]
    Missing {
        /// The event.
        event: &'static str,
        /// The field.
        field: &'static str,
        /// A field that was probably meant instead.
        found: Option<String>,
    },
    /// A field of the table has the wrong type.
    #[error("the field `{field}` of a {event} event must be {wanted}")]
    WrongType {
        /// The event.
        event: &'static str,
        /// The field.
        field: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
}

impl Event {
    /// An event whose fields fit the table. Other fields pass through.
    ///
    /// ```
    /// use ollm_protocol::{Event, EventKind};
    /// let wrong = Event::new(EventKind::BeforeTool, [("tool", "shell".into())]).unwrap_err();
    /// assert_eq!(wrong.to_string(), "a before_tool event needs the field `tool_name`; it has `tool` instead");
    /// ```
    pub fn new<'a>(kind: EventKind, data: impl IntoIterator<Item = (&'a str, Value)>) -> Result<Event, EventError> {
        let event = Event::unchecked(kind, data);
        for (field, shape) in kind.fields() {
            let fits = event.data.get(field).is_none_or(|value| value.is_null() || shape.admits(value));
            if !fits {
                return Err(EventError::WrongType { event: kind.name(), field, wanted: shape.name() });
            }
        }
        let is_needed = !matches!(kind, EventKind::Notification | EventKind::ApprovalRequest);
        match kind.subject_field() {
            Some(field) if is_needed && event.text(field).is_none_or(str::is_empty) => {
                let meant = |name: &&String| field.starts_with(name.as_str()) || name.to_lowercase().contains("name");
                let found = event.data.keys().find(meant).cloned();
                Err(EventError::Missing { event: kind.name(), field, found })
            }
            _ => Ok(event),
        }
    }

    /// A tool is about to be called.
    ///
    /// ```
    /// use ollm_protocol::Event;
    /// assert_eq!(Event::before_tool("shell", [("command", "ls".into())]).subject(), Some("shell"));
    /// ```
    pub fn before_tool<'a>(tool: &str, args: impl IntoIterator<Item = (&'a str, Value)>) -> Event {
        Event::unchecked(EventKind::BeforeTool, [("tool_name", tool.into()), ("args", object(args))])
    }

    /// A tool was called, with this result.
    pub fn after_tool<'a>(tool: &str, args: impl IntoIterator<Item = (&'a str, Value)>, result: Value) -> Event {
        Event::unchecked(EventKind::AfterTool, [("tool_name", tool.into()), ("args", object(args)), ("result", result)])
    }

    /// A custom event.
    pub fn custom(name: &str, data: Value) -> Event {
        Event::unchecked(EventKind::Custom, [("eventName", name.into()), ("data", data)])
    }
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

impl Shape {
    fn admits(self, value: &Value) -> bool {
        match self {
            Shape::Text => value.is_string(),
            Shape::Number => value.is_number(),
            Shape::Object => value.is_object(),
            Shape::List => value.is_array(),
            Shape::Any => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Shape::Text => "text",
            Shape::Number => "a number",
            Shape::Object => "an object",
            Shape::List => "a list",
            Shape::Any => "anything",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_sample_fits_the_table() {
        for row in crate::event::EVENTS {
            let sample = Event::sample(row.kind);
            let fields = sample.data.iter().map(|(name, value)| (name.as_str(), value.clone()));
            assert_eq!(Event::new(row.kind, fields), Ok(sample.clone()), "{}", row.name);
        }
    }

    #[test]
    fn a_field_of_another_type_is_named() {
        let wrong = Event::new(EventKind::BeforeTool, [("tool_name", "shell".into()), ("args", json!([1]))]);
        assert_eq!(wrong.unwrap_err().to_string(), "the field `args` of a before_tool event must be an object");
        assert!(Event::new(EventKind::Custom, []).is_err());
    }
}
