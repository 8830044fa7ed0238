//! Whether a value fits a schema: the keywords that servers use for results, in bounded time.
//!
//! A full validator is four megabytes of program and runs as long as a hostile schema wants. Of the newest draft's
//! vocabulary this one ignores `format`, `pattern`, `patternProperties` (whatever it could cover fits), `propertyNames`,
//! `contains` and its bounds, `multipleOf`, `dependentSchemas`, `unevaluated…`, `$dynamicRef`, and references that lead
//! out of the schema: these demand nothing here. So a value that fits may still break a rule, and one that does not fit
//! does break one. It stops after a fixed number of steps, and then says so instead of guessing.

use serde_json::{Map, Number, Value};

use super::kind;
use super::reference::{Target, find};

/// Far beyond any honest result.
const MOST_STEPS: usize = 200_000;
const DEEPEST: usize = 200;
/// Longer lists are not searched for repetitions.
const MOST_COMPARED: usize = 100;

/// Why a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It breaks a rule.
    #[error("{}: {why}", place(at))]
    Broken {
        /// The way to the part that breaks it, as a JSON pointer.
        at: String,
        /// Which rule.
        why: String,
    },
    /// Finding out would take too long.
    #[error("the schema is too involved to check")]
    Endless,
}

fn place(at: &str) -> &str {
    if at.is_empty() { "the whole value" } else { at }
}

/// Whether a value fits a schema.
///
/// ```
/// use serde_json::json;
/// let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
/// let schema = schema.as_object().unwrap();
/// assert!(ollm_protocol::schema::check(&json!({"n": 1}), schema).is_ok());
/// let why = ollm_protocol::schema::check(&json!({"n": "one"}), schema).unwrap_err();
/// assert_eq!(why.to_string(), "/n: it must be integer, not text");
/// ```
pub fn check(value: &Value, schema: &Map<String, Value>) -> Result<(), Unfit> {
    Check { root: schema, left: MOST_STEPS, depth: 0 }.object(value, schema, "")
}

struct Check<'a> {
    root: &'a Map<String, Value>,
    left: usize,
    depth: usize,
}

impl Check<'_> {
    fn schema(&mut self, value: &Value, schema: &Value, at: &str) -> Result<(), Unfit> {
        match schema {
            Value::Object(schema) => self.object(value, schema, at),
            Value::Bool(false) => broken(at, "nothing may stand there"),
            _ => Ok(()),
        }
    }

    fn object(&mut self, value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
        if self.left == 0 || self.depth >= DEEPEST {
            return Err(Unfit::Endless);
        }
        self.left -= 1;
        self.depth += 1;
        let result = self.rules(value, schema, at);
        self.depth -= 1;
        result
    }

    fn rules(&mut self, value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            match find(self.root, reference) {
                Some(Target::Object(target)) => self.object(value, target, at)?,
                Some(Target::Nothing) => return broken(at, "nothing may stand there"),
                Some(Target::Anything) | None => {}
            }
        }
        // A thousand values against a list of a thousand are a million comparisons.
        self.left = self.left.saturating_sub(list(schema.get("enum")).len() / 16);
        typed(value, schema, at)?;
        match value {
            Value::Object(fields) => self.fields(fields, schema, at)?,
            Value::Array(items) => self.items(items, schema, at)?,
            Value::String(text) => length(text.chars().count(), schema, ["minLength", "maxLength"], "characters", at)?,
            Value::Number(number) => bounds(number, schema, at)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(value, schema, at)
    }

    fn fields(&mut self, fields: &Map<String, Value>, schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
        for name in strings(schema.get("required")) {
            if !fields.contains_key(name) {
                return broken(at, format!("`{name}` is missing"));
            }
        }
        length(fields.len(), schema, ["minProperties", "maxProperties"], "properties", at)?;
        let known = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.contains_key("patternProperties");
        for (name, value) in fields {
            let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(rule), _) => self.schema(value, rule, &at)?,
                (None, Some(Value::Bool(false))) if !patterns => return broken(&at, "it is not in the schema"),
                (None, Some(rule)) if !patterns => self.schema(value, rule, &at)?,
                (None, _) => {}
            }
        }
        for (name, needed) in schema.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            let missing = strings(Some(needed)).find(|needed| !fields.contains_key(*needed));
            if let (true, Some(missing)) = (fields.contains_key(name), missing) {
                return broken(at, format!("`{missing}` is missing beside `{name}`"));
            }
        }
        Ok(())
    }

    fn items(&mut self, items: &[Value], schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
        length(items.len(), schema, ["minItems", "maxItems"], "items", at)?;
        let (tuple, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(tuple)), rest) => (tuple.as_slice(), rest),
            (_, Some(Value::Array(tuple))) => (tuple.as_slice(), schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        for (index, item) in items.iter().enumerate() {
            if let Some(rule) = tuple.get(index).or(rest) {
                self.schema(item, rule, &format!("{at}/{index}"))?;
            }
        }
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        if unique && items.len() <= MOST_COMPARED && repeats(items) {
            return broken(at, "two of its items are the same");
        }
        Ok(())
    }

    fn combined(&mut self, value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
        for rule in list(schema.get("allOf")) {
            self.schema(value, rule, at)?;
        }
        if let Some(Value::Array(ways)) = schema.get("anyOf")
            && self.count(value, ways, at)? == 0
        {
            return broken(at, "it fits none of the alternatives");
        }
        if let Some(Value::Array(ways)) = schema.get("oneOf") {
            match self.count(value, ways, at)? {
                1 => {}
                0 => return broken(at, "it fits none of the alternatives"),
                many => return broken(at, format!("it fits {many} alternatives, and must fit one")),
            }
        }
        if let Some(rule) = schema.get("not")
            && self.fits(value, rule, at)?
        {
            return broken(at, "it is what it must not be");
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.fits(value, condition, at)? { "then" } else { "else" };
            if let Some(rule) = schema.get(branch) {
                self.schema(value, rule, at)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, value: &Value, ways: &[Value], at: &str) -> Result<usize, Unfit> {
        let mut count = 0;
        for way in ways {
            count += usize::from(self.fits(value, way, at)?);
        }
        Ok(count)
    }

    fn fits(&mut self, value: &Value, schema: &Value, at: &str) -> Result<bool, Unfit> {
        match self.schema(value, schema, at) {
            Ok(()) => Ok(true),
            Err(Unfit::Broken { .. }) => Ok(false),
            Err(Unfit::Endless) => Err(Unfit::Endless),
        }
    }
}

fn typed(value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        types => strings(types).collect(),
    };
    if !wanted.is_empty() && !wanted.iter().any(|name| is_a(value, name)) {
        return broken(at, format!("it must be {}, not {}", wanted.join(" or "), kind(value)));
    }
    if let Some(only) = schema.get("const")
        && !same(value, only)
    {
        return broken(at, "it is not the one value it must be");
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.iter().any(|one| same(value, one))
    {
        return broken(at, "it is none of the values it may be");
    }
    Ok(())
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        // A word that no draft knows demands nothing.
        _ => true,
    }
}

fn bounds(number: &Number, schema: &Map<String, Value>, at: &str) -> Result<(), Unfit> {
    let Some(number) = number.as_f64() else { return Ok(()) };
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let broken_by = [
        ("minimum", limit("minimum").is_some_and(|limit| number < limit)),
        ("maximum", limit("maximum").is_some_and(|limit| number > limit)),
        ("exclusiveMinimum", limit("exclusiveMinimum").is_some_and(|limit| number <= limit)),
        ("exclusiveMaximum", limit("exclusiveMaximum").is_some_and(|limit| number >= limit)),
    ];
    match broken_by.iter().find(|(_, broken)| *broken) {
        Some((rule, _)) => broken(at, format!("{number} breaks `{rule}`")),
        None => Ok(()),
    }
}

fn length(
    length: usize,
    schema: &Map<String, Value>,
    [least, most]: [&str; 2],
    what: &str,
    at: &str,
) -> Result<(), Unfit> {
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    let outside = limit(least).is_some_and(|limit| length < limit) || limit(most).is_some_and(|limit| length > limit);
    if outside { broken(at, format!("it has {length} {what}, which is outside of its bounds")) } else { Ok(()) }
}

/// Equal by JSON Schema's measure, for which `1.0` is `1`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

fn repeats(items: &[Value]) -> bool {
    items.iter().enumerate().any(|(index, item)| items.iter().take(index).any(|other| same(item, other)))
}

fn broken<T>(at: &str, why: impl Into<String>) -> Result<T, Unfit> {
    Err(Unfit::Broken { at: at.to_owned(), why: why.into() })
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    list(value).iter().filter_map(Value::as_str)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
