//! Schemas of tools: kept as their author wrote them, and lowered to the form that a model API accepts.
//!
//! The schema for a model may be looser than the original, never stricter, because the server checks the arguments
//! anyway. Nothing is fetched: a reference out of the schema allows anything. Lowering always ends and gives a bounded
//! result, for any schema.

use serde_json::{Map, Value};

use super::ToolSchema;

mod bound;
mod check;
mod inline;
mod reference;
mod shape;

pub use check::{SchemaMismatch, check};
use inline::inline;

/// The most bytes of one tool's schema in a request to a model.
const LARGEST: usize = 32 << 10;

/// The kind of schema that a model API accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Every keyword, as long as the whole is an object.
    Full,
    /// No references, a plain object without alternatives at the top, and an item schema for every list.
    Object,
    /// As `Object`, with only the keywords that grammars of local models know.
    Simple,
}

/// A schema in the form that an API accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredSchema {
    /// The schema.
    pub schema: Map<String, Value>,
    /// The parts of the meaning that were left out, for people.
    pub notes: Vec<String>,
    /// Its original size in bytes, if it was too large and had to be loosened.
    pub size: Option<usize>,
}

/// Why a schema is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its {field} must be an object, not {kind}")]
pub struct BadSchema {
    field: &'static str,
    kind: &'static str,
}

/// Reads a server's schema. A tool without one accepts any object.
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
pub fn lower(schema: &ToolSchema, api: Api) -> LoweredSchema {
    if api == Api::Full {
        let full = shape::named_object(schema.0.clone());
        if let (schema, None) = bound::bound(full, LARGEST) {
            return LoweredSchema { schema, notes: Vec::new(), size: None };
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
    LoweredSchema { schema, notes, size }
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
