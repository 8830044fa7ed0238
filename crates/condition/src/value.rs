//! The values of conditions, and how they compare.
//!
//! The event's JSON is borrowed, never copied: elements of a list or map are converted one at a time, when they are
//! used.

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
pub(crate) enum CelValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Shared<'a, str>),
    Bytes(Shared<'a, [u8]>),
    List(List<'a>),
    Map(Map<'a>),
    Type(CelKind),
}

/// Text or bytes of the event or the condition, or built by it. Cloning is cheap, because each use of a macro's
/// variable clones it.
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
    Made(MadeList<CelValue<'a>>),
}

/// An object of the event's data, or a map made by the condition.
#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>),
    Made(MadeList<(CelValue<'a>, CelValue<'a>)>),
}

/// A list or map that a condition built, with its nesting depth. The step limit alone would allow nesting so deep that
/// comparing or dropping the value overflows the stack.
#[derive(Debug)]
pub(crate) struct MadeList<T> {
    elements: Rc<[T]>,
    depth: usize,
}

// A derived `Clone` would require elements that can be cloned.
impl<T> Clone for MadeList<T> {
    fn clone(&self) -> MadeList<T> {
        MadeList { elements: Rc::clone(&self.elements), depth: self.depth }
    }
}

impl<T> MadeList<T> {
    fn new(elements: Vec<T>, depth: impl Fn(&T) -> usize) -> Result<MadeList<T>, Fault> {
        let depth = 1 + elements.iter().map(depth).max().unwrap_or(0);
        if depth > DEEPEST { Err(Fault::TooDeep) } else { Ok(MadeList { elements: elements.into(), depth }) }
    }
}

/// The types of the language, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CelKind {
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

impl CelKind {
    pub(crate) const ALL: &[CelKind] = &[
        CelKind::Null,
        CelKind::Bool,
        CelKind::Int,
        CelKind::Uint,
        CelKind::Double,
        CelKind::Text,
        CelKind::Bytes,
        CelKind::List,
        CelKind::Map,
        CelKind::Type,
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

impl<'a> CelValue<'a> {
    pub(crate) fn kind(&self) -> CelKind {
        match self {
            Self::Null => CelKind::Null,
            Self::Bool(_) => CelKind::Bool,
            Self::Int(_) => CelKind::Int,
            Self::Uint(_) => CelKind::Uint,
            Self::Double(_) => CelKind::Double,
            Self::Text(_) => CelKind::Text,
            Self::Bytes(_) => CelKind::Bytes,
            Self::List(_) => CelKind::List,
            Self::Map(_) => CelKind::Map,
            Self::Type(_) => CelKind::Type,
        }
    }

    /// Whether this value can be a map key; a double finds the whole number it equals.
    pub(crate) fn is_key(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Double(_) | Self::Text(_))
    }

    /// A new list.
    pub(crate) fn list(elements: Vec<CelValue<'a>>) -> Result<CelValue<'a>, Fault> {
        Ok(Self::List(List::Made(MadeList::new(elements, CelValue::depth)?)))
    }

    /// A new map.
    pub(crate) fn map(entries: Vec<(CelValue<'a>, CelValue<'a>)>) -> Result<CelValue<'a>, Fault> {
        Ok(Self::Map(Map::Made(MadeList::new(entries, |(_, value)| value.depth())?)))
    }

    fn depth(&self) -> usize {
        match self {
            Self::List(List::Made(made)) => made.depth,
            Self::Map(Map::Made(made)) => made.depth,
            _ => 0,
        }
    }

    pub(crate) fn borrowed(text: &'a str) -> CelValue<'a> {
        Self::Text(Shared::Borrowed(text))
    }

    /// A new text.
    pub(crate) fn text(text: String) -> CelValue<'a> {
        Self::Text(Shared::Made(text.into()))
    }

    /// New bytes.
    pub(crate) fn bytes(bytes: Vec<u8>) -> CelValue<'a> {
        Self::Bytes(Shared::Made(bytes.into()))
    }

    /// A size or position.
    pub(crate) fn count(count: usize) -> CelValue<'a> {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl<'a> From<&'a Json> for CelValue<'a> {
    /// Whole numbers become ints, so that conditions can count with them; other numbers become doubles.
    fn from(json: &'a Json) -> CelValue<'a> {
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

impl<'a> From<&'a Literal> for CelValue<'a> {
    fn from(literal: &'a Literal) -> CelValue<'a> {
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

    pub(crate) fn get(&self, index: usize) -> Option<CelValue<'a>> {
        match self {
            Self::Json(elements) => elements.get(index).map(CelValue::from),
            Self::Made(made) => made.elements.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = CelValue<'a>> + use<'a> {
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

    /// The value of a key; a number also finds an equal number of another type.
    pub(crate) fn get(&self, key: &CelValue<'_>, fuel: &mut Fuel) -> Result<Option<CelValue<'a>>, Fault> {
        match (self, key) {
            (Self::Json(fields), CelValue::Text(key)) => Ok(fields.get(&**key).map(CelValue::from)),
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

    pub(crate) fn field(&self, name: &str, fuel: &mut Fuel) -> Result<Option<CelValue<'a>>, Fault> {
        self.get(&CelValue::borrowed(name), fuel)
    }

    /// The keys, which are never nested.
    pub(crate) fn keys(&self) -> Vec<CelValue<'a>> {
        match self {
            Self::Json(fields) => fields.keys().map(|key| CelValue::borrowed(key)).collect(),
            Self::Made(made) => made.elements.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

/// Whether two values are equal. Values of different types are never equal, except numbers.
pub(crate) fn equal(left: &CelValue<'_>, right: &CelValue<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    fuel.take(1)?;
    Ok(match (left, right) {
        (CelValue::Null, CelValue::Null) => true,
        (CelValue::Bool(left), CelValue::Bool(right)) => left == right,
        (CelValue::Text(left), CelValue::Text(right)) => {
            fuel.read(left.len().min(right.len()))?;
            **left == **right
        }
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            fuel.read(left.len().min(right.len()))?;
            **left == **right
        }
        (CelValue::Type(left), CelValue::Type(right)) => left == right,
        (CelValue::List(left), CelValue::List(right)) => equal_lists(left, right, fuel)?,
        (CelValue::Map(left), CelValue::Map(right)) => equal_maps(left, right, fuel)?,
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

/// The result of comparing two values.
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
pub(crate) fn compare(left: &CelValue<'_>, right: &CelValue<'_>, fuel: &mut Fuel) -> Result<Order, Fault> {
    Ok(match (left, right) {
        (CelValue::Bool(left), CelValue::Bool(right)) => Order::Known(left.cmp(right)),
        (CelValue::Text(left), CelValue::Text(right)) => {
            fuel.read(left.len().min(right.len()))?;
            Order::Known((**left).cmp(&**right))
        }
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            fuel.read(left.len().min(right.len()))?;
            Order::Known((**left).cmp(&**right))
        }
        _ => compare_numbers(left, right),
    })
}

fn compare_numbers(left: &CelValue<'_>, right: &CelValue<'_>) -> Order {
    match (whole(left), whole(right), left, right) {
        (Some(left), Some(right), ..) => Order::Known(left.cmp(&right)),
        (Some(left), None, _, CelValue::Double(right)) => compare_double(*right, left).map(Ordering::reverse).into(),
        (None, Some(right), CelValue::Double(left), _) => compare_double(*left, right).into(),
        (None, None, CelValue::Double(left), CelValue::Double(right)) => left.partial_cmp(right).into(),
        _ => Order::None,
    }
}

fn whole(value: &CelValue<'_>) -> Option<i128> {
    match value {
        CelValue::Int(value) => Some(i128::from(*value)),
        CelValue::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Compares exact numbers, not rounded doubles: 2^53 + 1 is not 2^53.
fn compare_double(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // A double outside all 64-bit numbers keeps its order when it is clamped.
    #[expect(clippy::cast_possible_truncation, reason = "the whole part of a double in this range fits")]
    let floor = double.floor().clamp(-2e19, 2e19) as i128;
    Some(floor.cmp(&whole).then(if double > double.floor() { Ordering::Greater } else { Ordering::Equal }))
}
