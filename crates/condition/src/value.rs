//! The values a condition works on, and how they compare.
//!
//! The event's JSON is borrowed, never copied: a list or map is converted one element at a time, when it is looked at.

use std::cmp::Ordering;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::DEEPEST;
use crate::error::Fault;
use crate::fuel::Fuel;
use crate::syntax::Literal;

/// A value of the language.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Shared<'a, str>),
    Bytes(Shared<'a, [u8]>),
    List(List<'a>),
    Map(Map<'a>),
    Type(Kind),
}

/// Text or bytes of the event or the condition, or made by it; cheap to clone, because a macro's variable is cloned at
/// each mention.
#[derive(Debug)]
pub(crate) enum Shared<'a, T: ?Sized> {
    Borrowed(&'a T),
    Made(Rc<T>),
}

impl<T: ?Sized> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Borrowed(value) => Self::Borrowed(value),
            Self::Made(value) => Self::Made(Rc::clone(value)),
        }
    }
}

impl<T: ?Sized> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Made(value) => value,
        }
    }
}

/// A list of the event's data, or one made by the condition.
#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    Json(&'a [Json]),
    Made(Made<Value<'a>>),
}

/// An object of the event's data, or a map made by the condition.
#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>),
    Made(Made<(Value<'a>, Value<'a>)>),
}

/// What a condition has put together, and how deeply it is nested: steps alone would let it be nested so deeply that
/// comparing or dropping it overflows the stack.
#[derive(Debug)]
pub(crate) struct Made<T> {
    elements: Rc<[T]>,
    depth: usize,
}

// Derived, this would ask for elements that can be cloned.
impl<T> Clone for Made<T> {
    fn clone(&self) -> Made<T> {
        Made { elements: Rc::clone(&self.elements), depth: self.depth }
    }
}

impl<T> Made<T> {
    fn new(elements: Vec<T>, depth: impl Fn(&T) -> usize) -> Result<Made<T>, Fault> {
        let depth = 1 + elements.iter().map(depth).max().unwrap_or(0);
        if depth > DEEPEST { Err(Fault::TooDeep) } else { Ok(Made { elements: elements.into(), depth }) }
    }
}

/// The types of the language, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    List,
    Map,
    Type,
}

impl Kind {
    pub(crate) const ALL: &[Kind] = &[
        Kind::Null,
        Kind::Bool,
        Kind::Int,
        Kind::Uint,
        Kind::Double,
        Kind::Text,
        Kind::Bytes,
        Kind::List,
        Kind::Map,
        Kind::Type,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Map => "map",
            Self::Type => "type",
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Uint(_) => Kind::Uint,
            Self::Double(_) => Kind::Double,
            Self::Text(_) => Kind::Text,
            Self::Bytes(_) => Kind::Bytes,
            Self::List(_) => Kind::List,
            Self::Map(_) => Kind::Map,
            Self::Type(_) => Kind::Type,
        }
    }

    /// Whether a map can be asked for this value; a double finds the whole number it equals.
    pub(crate) fn is_key(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Double(_) | Self::Text(_))
    }

    /// A new list.
    pub(crate) fn list(elements: Vec<Value<'a>>) -> Result<Value<'a>, Fault> {
        Ok(Self::List(List::Made(Made::new(elements, Value::depth)?)))
    }

    /// A new map.
    pub(crate) fn map(entries: Vec<(Value<'a>, Value<'a>)>) -> Result<Value<'a>, Fault> {
        Ok(Self::Map(Map::Made(Made::new(entries, |(_, value)| value.depth())?)))
    }

    fn depth(&self) -> usize {
        match self {
            Self::List(List::Made(made)) => made.depth,
            Self::Map(Map::Made(made)) => made.depth,
            _ => 0,
        }
    }

    pub(crate) fn borrowed(text: &'a str) -> Value<'a> {
        Self::Text(Shared::Borrowed(text))
    }

    /// A new text.
    pub(crate) fn text(text: String) -> Value<'a> {
        Self::Text(Shared::Made(text.into()))
    }

    /// New bytes.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Value<'a> {
        Self::Bytes(Shared::Made(bytes.into()))
    }

    /// A size or position.
    pub(crate) fn count(count: usize) -> Value<'a> {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    /// Whole numbers are ints, so that they can be counted with; other numbers are doubles.
    fn from(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) => Self::Uint(value),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::borrowed(text),
            Json::Array(elements) => Self::List(List::Json(elements)),
            Json::Object(fields) => Self::Map(Map::Json(fields)),
        }
    }
}

impl<'a> From<&'a Literal> for Value<'a> {
    fn from(literal: &'a Literal) -> Value<'a> {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Uint(value) => Self::Uint(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::Text(text) => Self::borrowed(text),
            Literal::Bytes(bytes) => Self::Bytes(Shared::Borrowed(bytes)),
        }
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(elements) => elements.len(),
            Self::Made(made) => made.elements.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Json(elements) => elements.get(index).map(Value::from),
            Self::Made(made) => made.elements.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let list = self.clone();
        (0..list.len()).filter_map(move |index| list.get(index))
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(fields) => fields.len(),
            Self::Made(made) => made.elements.len(),
        }
    }

    /// The value under a key; a number finds its equal of another type.
    pub(crate) fn get(&self, key: &Value<'_>, fuel: &mut Fuel) -> Result<Option<Value<'a>>, Fault> {
        match (self, key) {
            (Self::Json(fields), Value::Text(key)) => Ok(fields.get(&**key).map(Value::from)),
            (Self::Json(_), _) => Ok(None),
            (Self::Made(made), _) => {
                for (name, value) in made.elements.iter() {
                    if equal(name, key, fuel)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    pub(crate) fn field(&self, name: &str, fuel: &mut Fuel) -> Result<Option<Value<'a>>, Fault> {
        self.get(&Value::borrowed(name), fuel)
    }

    /// The keys, which are never nested.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json(fields) => fields.keys().map(|key| Value::borrowed(key)).collect(),
            Self::Made(made) => made.elements.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

/// Whether two values are equal; values of different types are not, numbers apart.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    fuel.take(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => {
            fuel.read(left.len().min(right.len()))?;
            **left == **right
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            fuel.read(left.len().min(right.len()))?;
            **left == **right
        }
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::List(left), Value::List(right)) => equal_lists(left, right, fuel)?,
        (Value::Map(left), Value::Map(right)) => equal_maps(left, right, fuel)?,
        _ => compare_numbers(left, right) == Order::Known(Ordering::Equal),
    })
}

fn equal_lists(left: &List<'_>, right: &List<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right.iter()) {
        if !equal(&left, &right, fuel)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(left: &Map<'_>, right: &Map<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    fuel.take(left.len())?;
    for key in left.keys() {
        let (Some(left), Some(right)) = (left.get(&key, fuel)?, right.get(&key, fuel)?) else { return Ok(false) };
        if !equal(&left, &right, fuel)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How two values stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Known(Ordering),
    /// One of them is not a number.
    Unordered,
    /// Values of these types have no order.
    None,
}

impl From<Option<Ordering>> for Order {
    fn from(order: Option<Ordering>) -> Order {
        order.map_or(Self::Unordered, Self::Known)
    }
}

/// The order of two values.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>, fuel: &mut Fuel) -> Result<Order, Fault> {
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Order::Known(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => {
            fuel.read(left.len().min(right.len()))?;
            Order::Known((**left).cmp(&**right))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            fuel.read(left.len().min(right.len()))?;
            Order::Known((**left).cmp(&**right))
        }
        _ => compare_numbers(left, right),
    })
}

fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Order {
    match (whole(left), whole(right), left, right) {
        (Some(left), Some(right), ..) => Order::Known(left.cmp(&right)),
        (Some(left), None, _, Value::Double(right)) => compare_double(*right, left).map(Ordering::reverse).into(),
        (None, Some(right), Value::Double(left), _) => compare_double(*left, right).into(),
        (None, None, Value::Double(left), Value::Double(right)) => left.partial_cmp(right).into(),
        _ => Order::None,
    }
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Compares as numbers, not as rounded doubles: 2^53 + 1 is not 2^53.
fn compare_double(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // What lies outside every 64-bit number keeps its order when it is cut off there.
    #[expect(clippy::cast_possible_truncation, reason = "the whole part of a double in this range fits")]
    let floor = double.floor().clamp(-2e19, 2e19) as i128;
    Some(floor.cmp(&whole).then(if double > double.floor() { Ordering::Greater } else { Ordering::Equal }))
}
