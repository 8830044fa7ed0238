//! Events whose data fits the event table.

use ollm_protocol::event::Shape;
use ollm_protocol::{Event, EventKind};
use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Map, Value};

use crate::text::{json_object, json_value, number, text, timestamp};

/// How much of what the table lists is there.
#[derive(Clone, Copy)]
enum Fill {
    Everything,
    Anything,
}

/// Any event: some of the fields of its row, and unknown fields.
pub fn event() -> impl Strategy<Value = Event> {
    kind().prop_flat_map(event_of)
}

/// Any kind of event.
pub fn kind() -> impl Strategy<Value = EventKind> {
    prop::sample::select(EventKind::all().collect::<Vec<_>>())
}

/// An event of one kind: some of the fields of its row, and unknown fields.
///
/// The names of unknown fields begin with `x_`, as no field of any dialect does.
pub fn event_of(kind: EventKind) -> BoxedStrategy<Event> {
    let unknown = prop::collection::vec(("x_[a-z]{1,8}", json_value()), 0..3);
    let known = fields(kind, Fill::Anything);
    (known, unknown).prop_map(move |(known, unknown)| built(kind, &known.into_iter().chain(unknown).collect())).boxed()
}

/// An event of one kind with every field of its row, and every part of those fields.
pub fn complete_event(kind: EventKind) -> BoxedStrategy<Event> {
    fields(kind, Fill::Everything).prop_map(move |data| built(kind, &data)).boxed()
}

fn built(kind: EventKind, data: &Map<String, Value>) -> Event {
    Event::unchecked(kind, data.iter().map(|(name, value)| (name.as_str(), value.clone())))
}

fn fields(kind: EventKind, fill: Fill) -> BoxedStrategy<Map<String, Value>> {
    object(kind.fields().map(|(name, shape)| (name, value(kind, name, shape, fill))).collect(), fill)
}

/// An object of named values: all of them, or some.
fn object(members: Vec<(&'static str, BoxedStrategy<Value>)>, fill: Fill) -> BoxedStrategy<Map<String, Value>> {
    let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let kept = match fill {
        Fill::Everything => Just(vec![true; names.len()]).boxed(),
        Fill::Anything => prop::collection::vec(any::<bool>(), names.len()).boxed(),
    };
    (values, kept)
        .prop_map(move |(values, kept)| {
            let members = names.iter().zip(values).zip(kept).filter(|(_, kept)| *kept);
            members.map(|((name, value), _)| ((*name).to_owned(), value)).collect()
        })
        .boxed()
}

fn value(kind: EventKind, name: &str, shape: Shape, fill: Fill) -> BoxedStrategy<Value> {
    let parts = parts(kind, name);
    if !parts.is_empty() && shape == Shape::Object {
        let members = parts.iter().map(|(part, shape)| (*part, value(kind, part, *shape, fill)));
        return object(members.collect(), fill).prop_map(Value::from).boxed();
    }
    match (name, shape) {
        ("timestamp" | "startTime" | "endTime", _) => timestamp().prop_map(Value::from).boxed(),
        ("type", _) => Just(change(kind).into()).boxed(),
        ("attempt", _) => (0..5_u8).prop_map(Value::from).boxed(),
        ("success", _) => any::<bool>().prop_map(Value::from).boxed(),
        ("available_tools", _) => tools().boxed(),
        (_, Shape::Text) => text().prop_map(Value::from).boxed(),
        (_, Shape::Number) => number().boxed(),
        (_, Shape::Object) => json_object().prop_map(Value::from).boxed(),
        (_, Shape::List) => prop::collection::vec(json_value(), 0..3).prop_map(Value::from).boxed(),
        (_, Shape::Any) => json_value().boxed(),
    }
}

/// The parts of the fields that are objects with a known inside.
fn parts(kind: EventKind, name: &str) -> &'static [(&'static str, Shape)] {
    match (name, kind) {
        ("session", EventKind::SessionEnd) => &[
            ("id", Shape::Text),
            ("user", Shape::Text),
            ("startTime", Shape::Text),
            ("endTime", Shape::Text),
            ("duration", Shape::Number),
            ("messageCount", Shape::Number),
        ],
        ("session", _) => {
            &[("id", Shape::Text), ("user", Shape::Text), ("startTime", Shape::Text), ("config", Shape::Any)]
        }
        ("agent", _) => &[("mode", Shape::Text), ("context", Shape::Any), ("history", Shape::List)],
        ("user", _) => &[("preferences", Shape::Any), ("settings", Shape::Any)],
        ("config", EventKind::BeforeAgent) => &[("model", Shape::Text), ("temperature", Shape::Number)],
        ("metrics", EventKind::AfterTool) => &[("duration", Shape::Number), ("success", Shape::Any)],
        ("metrics", _) => &[("duration", Shape::Number), ("tokens", Shape::Number)],
        ("error", EventKind::Error) => &[("message", Shape::Text), ("code", Shape::Text), ("stack", Shape::Text)],
        ("changes", _) => &[("type", Shape::Text), ("size", Shape::Number), ("timestamp", Shape::Text)],
        ("file", _) => &[("path", Shape::Text), ("content", Shape::Text), ("changes", Shape::Text)],
        _ => &[],
    }
}

fn change(kind: EventKind) -> &'static str {
    match kind {
        EventKind::FileCreated => "created",
        EventKind::FileDeleted => "deleted",
        _ => "modified",
    }
}

/// Tools as hosts list them: by name, or as objects with one.
fn tools() -> impl Strategy<Value = Value> {
    let name = "[a-z_]{1,10}";
    let one = Union::new([
        name.prop_map(Value::from).boxed(),
        name.prop_map(|name| serde_json::json!({"name": name, "description": "a tool"})).boxed(),
    ]);
    prop::collection::vec(one, 0..4).prop_map(Value::from)
}
