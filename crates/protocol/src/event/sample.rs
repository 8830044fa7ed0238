//! One recorded event of each kind: to try hooks on, and to show what hooks get.
//!
//! The samples were recorded from `ollm run`, `ollm chat` and a commit, with neutral names, times and paths. A test of
//! the program records them again and compares.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Event, EventKind};

/// The recording: the data of each event under its canonical name.
const RECORDED: &str = include_str!("samples.json");
/// The folder of the recording.
const FOLDER: &str = "/home/sample/project";

impl Event {
    /// An event of this kind as a host sends it, with all its fields. Durations are in seconds.
    ///
    /// ```
    /// use ollm_protocol::{Event, EventKind};
    /// assert_eq!(Event::sample(EventKind::BeforeTool).subject(), Some("shell"));
    /// ```
    pub fn sample(kind: EventKind) -> Event {
        Event::sample_in(kind, FOLDER)
    }

    /// A sample as if it happened in this folder.
    pub fn sample_in(kind: EventKind, folder: &str) -> Event {
        let recorded = if folder == FOLDER { RECORDED.into() } else { moved(folder) };
        let mut recorded = object(serde_json::from_str(&recorded).unwrap_or_default());
        let data = object(recorded.shift_remove(kind.name()).unwrap_or_default());
        Event { kind, data }
    }
}

/// The recording, with this folder instead of the original one.
fn moved(folder: &str) -> Cow<'static, str> {
    let json = Value::from(folder).to_string();
    let inside = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(FOLDER);
    RECORDED.replace(FOLDER, inside).into()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{COMMON, Shape};

    #[test]
    fn a_sample_has_every_field_of_its_row_in_the_right_shape() {
        for kind in EventKind::all() {
            let sample = Event::sample(kind);
            for (field, shape) in kind.fields() {
                // Samples differ in the common fields they have, and a tool has either a result or an error.
                let optional = COMMON.iter().any(|(name, _)| *name == field);
                let Some(value) = sample.data.get(field) else {
                    let absent = optional || (kind == EventKind::AfterTool && field == "error");
                    assert!(absent, "{} has no {field}", kind.name());
                    continue;
                };
                let fits = match shape {
                    Shape::Text => value.is_string(),
                    Shape::Number => value.is_number(),
                    Shape::List => value.is_array(),
                    Shape::Object => value.is_object(),
                    Shape::Any => true,
                };
                assert!(fits, "{}: {field} is {value}", kind.name());
            }
        }
    }

    #[test]
    fn every_dialect_can_say_every_sample() {
        for dialect in crate::dialect::all() {
            for kind in EventKind::all() {
                let addressee = crate::dialect::Addressee::new("hook", "1.0.0");
                let bytes = dialect.write_event(&Event::sample(kind), &addressee);
                assert_eq!(dialect.read_event(&bytes).unwrap().event.kind, kind, "{}", dialect.name());
            }
        }
    }
}
