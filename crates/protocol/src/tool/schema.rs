//! Schemas of tools: taken over as their author wrote them, and lowered to what a model API accepts.
//!
//! What is offered to a model may be looser than what was written, never stricter: the server checks the arguments
//! anyway. Nothing is fetched: a reference that leads out of the schema stands for anything. However a schema is written,
//! lowering comes to an end and gives a bounded answer.

use serde_json::{Map, Value};

use super::ToolSchema;

mod bound;
mod check;
mod inline;
mod reference;
mod shape;

pub use check::{Unfit, check};
use inline::inline;

/// More bytes of one tool are not put into every question to a model.
const LARGEST: usize = 32 << 10;

/// What a model API accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Every keyword, as long as the whole is an object.
    Full,
    /// No references, at the top a plain object without alternatives, and every list says what it holds.
    Object,
    /// As `Object`, and only the keywords that grammars of local models know.
    Simple,
}

/// A schema in the form an API accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The schema.
    pub schema: Map<String, Value>,
    /// What of the meaning was left out, for people.
    pub notes: Vec<String>,
    /// How many bytes it had, where those were too many and it was loosened until they were not.
    pub size: Option<usize>,
}

/// Why a schema is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its {field} must be an object, not {kind}")]
pub struct BadSchema {
    field: &'static str,
    kind: &'static str,
}

/// A schema as a server wrote it. A tool without one takes any object.
pub fn read(field: &'static str, written: Option<&Value>) -> Result<ToolSchema, BadSchema> {
    match written {
        None | Some(Value::Null | Value::Bool(true)) => Ok(ToolSchema(shape::any_object())),
        Some(Value::Object(schema)) => Ok(ToolSchema(schema.clone())),
        Some(other) => Err(BadSchema { field, kind: kind(other) }),
    }
}

/// The schema in a form that an API accepts.
///
/// ```
/// use ollm_protocol::ToolSchema;
/// use ollm_protocol::schema::{Api, lower};
/// use serde_json::{Value, json};
///
/// let Value::Object(written) = json!({
///     "properties": {"at": {"$ref": "#/$defs/point"}},
///     "$defs": {"point": {"type": "array", "items": {"type": "number"}}}
/// }) else { unreachable!() };
/// let lowered = lower(&ToolSchema(written), Api::Object);
/// let expected = json!({
///     "type": "object",
///     "properties": {"at": {"type": "array", "items": {"type": "number"}}}
/// });
/// assert_eq!(Value::Object(lowered.schema), expected);
/// ```
pub fn lower(schema: &ToolSchema, api: Api) -> Lowered {
    if api == Api::Full {
        let full = shape::named_object(schema.0.clone());
        if let (schema, None) = bound::bound(full, LARGEST) {
            return Lowered { schema, notes: Vec::new(), size: None };
        }
    }
    let (inlined, mut notes) = inline(&schema.0);
    let mut object = shape::plain_object(inlined, &mut notes);
    if api == Api::Simple {
        object = shape::simple(object);
    }
    shape::describe_lists(&mut object);
    let (schema, size) = bound::bound(object, LARGEST);
    notes
        .extend(size.map(|size| format!("its schema has {size} bytes, which are too many; parts of it are left open")));
    Lowered { schema, notes, size }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
