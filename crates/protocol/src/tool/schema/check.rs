//! Checks whether a value fits a schema: every assertion of drafts 4 to 2020-12, in bounded time.
//!
//! A full validator adds four megabytes to the program, and runs as long as a hostile schema wants. This one knows the
//! keywords of all drafts. If drafts differ about a keyword, the named draft decides, else the newest. `format` has no
//! effect. Some points cannot be decided, such as a reference out of the schema, or an unsupported pattern. They are
//! reported, and count neither for nor against a value. After a fixed number of steps, the check stops and says so.

use serde_json::{Map, Value};

use super::kind;
use super::reference::Target;

mod fields;
mod items;
mod number;
mod pattern;
mod scope;
mod unevaluated;

use number::same;
use pattern::Patterns;
use scope::{FoundSchema, Scope};

/// The most steps of a check, far more than any honest result needs.
const MOST_STEPS: usize = 200_000;
const DEEPEST: usize = 200;
/// The most undecided points that are reported.
const MOST_NOTES: usize = 10;
/// The longest text about an expected value.
const LONGEST_WISH: usize = 200;

/// Why a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// It violates a rule.
    #[error("{}: {why}", place(at))]
    Broken {
        /// The path of the violating part, as a JSON pointer.
        at: String,
        /// The violated rule.
        why: String,
    },
    /// The check would take too long.
    #[error("the schema is too involved to check")]
    Endless,
}

fn place(at: &str) -> &str {
    if at.is_empty() { "the whole value" } else { at }
}

/// Checks a value against a schema. Returns the parts of the schema that could not be checked.
///
/// ```
/// use serde_json::json;
/// let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
/// let schema = schema.as_object().unwrap();
/// assert!(ollm_protocol::schema::check(&json!({"n": 1}), schema).unwrap().is_empty());
/// let why = ollm_protocol::schema::check(&json!({"n": "one"}), schema).unwrap_err();
/// assert_eq!(why.to_string(), "/n: it must be integer, not text");
/// ```
pub fn check(value: &Value, schema: &Map<String, Value>) -> Result<Vec<String>, SchemaMismatch> {
    let mut check = Check {
        scope: Scope::new(schema),
        patterns: Patterns::default(),
        left: MOST_STEPS,
        depth: 0,
        doubts: 0,
        notes: Vec::new(),
    };
    check.object(value, schema, "")?;
    Ok(check.notes)
}

struct Check<'a> {
    scope: Scope<'a>,
    patterns: Patterns<'a>,
    left: usize,
    depth: usize,
    /// The number of undecided points.
    doubts: usize,
    /// The same for people.
    notes: Vec<String>,
}

/// Whether a part fits, as far as that can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    Unknown,
}

impl<'a> Check<'a> {
    fn schema(&mut self, value: &Value, schema: &'a Value, at: &str) -> Result<(), SchemaMismatch> {
        match schema {
            Value::Object(schema) => self.object(value, schema, at),
            Value::Bool(false) => broken(at, "nothing may stand there"),
            _ => Ok(()),
        }
    }

    fn object(&mut self, value: &Value, schema: &'a Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
        self.step(1)?;
        if self.depth >= DEEPEST {
            return Err(SchemaMismatch::Endless);
        }
        self.depth += 1;
        let entered = self.scope.enter(schema);
        let result = self.rules(value, schema, at);
        self.scope.leave(entered);
        self.depth -= 1;
        result
    }

    fn step(&mut self, steps: usize) -> Result<(), SchemaMismatch> {
        self.left = self.left.checked_sub(steps).ok_or(SchemaMismatch::Endless)?;
        Ok(())
    }

    fn rules(&mut self, value: &Value, schema: &'a Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
        self.references(value, schema, at)?;
        if self.scope.older && schema.get("$ref").is_some_and(Value::is_string) {
            // Before 2019, keywords beside a reference were ignored.
            return Ok(());
        }
        // A thousand values against a list of a thousand are a million comparisons.
        self.step(list(schema.get("enum")).len() / 16)?;
        self.type_fits(value, schema, at)?;
        listed(value, schema, at)?;
        match value {
            Value::Object(fields) => self.fields(value, fields, schema, at)?,
            Value::Array(items) => self.items(items, schema, at)?,
            Value::String(text) => self.text(text, schema, at)?,
            Value::Number(number) => self.number(number, schema, at)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(value, schema, at)?;
        self.unevaluated(value, schema, at)
    }

    fn type_fits(&self, value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
        let wanted: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            types => strings(types).collect(),
        };
        if !wanted.is_empty() && !wanted.iter().any(|name| self.is_a(value, name)) {
            return broken(at, format!("it must be {}, not {}", wanted.join(" or "), kind(value)));
        }
        Ok(())
    }

    fn is_a(&self, value: &Value, name: &str) -> bool {
        match name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "number" => value.is_number(),
            "integer" if self.scope.integers_lack_a_point => value.is_i64() || value.is_u64(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            // An unknown keyword demands nothing.
            _ => true,
        }
    }

    fn references(&mut self, value: &Value, schema: &'a Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(Value::String(reference)) = schema.get(word) else { continue };
            match self.lead(word, reference)? {
                Some((Target::Object(target), resource)) => {
                    let entered = self.scope.visit(resource);
                    let result = self.object(value, target, at);
                    self.scope.leave(entered);
                    result?;
                }
                Some((Target::Nothing, _)) => return broken(at, "nothing may stand there"),
                Some((Target::Anything, _)) => {}
                None => self.doubt(&scope::lost(word, reference)),
            }
        }
        Ok(())
    }

    /// The target of a reference.
    fn lead(&mut self, word: &str, reference: &'a str) -> Result<Option<FoundSchema<'a>>, SchemaMismatch> {
        let found = self.scope.find(word, reference);
        let effort = self.scope.effort();
        self.step(effort)?;
        Ok(found)
    }

    fn text(&mut self, text: &str, schema: &'a Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
        length(text.chars().count(), schema, ["minLength", "maxLength"], "characters", at)?;
        let Some(Value::String(pattern)) = schema.get("pattern") else { return Ok(()) };
        match self.matches(pattern, text)? {
            Fit::No => broken(at, format!("it does not match the pattern {pattern}")),
            Fit::Yes | Fit::Unknown => Ok(()),
        }
    }

    fn combined(&mut self, value: &Value, schema: &'a Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
        for rule in list(schema.get("allOf")) {
            self.schema(value, rule, at)?;
        }
        if let Some(Value::Array(ways)) = schema.get("anyOf") {
            self.any(value, ways, at)?;
        }
        if let Some(Value::Array(ways)) = schema.get("oneOf") {
            self.one(value, ways, at)?;
        }
        if let Some(rule) = schema.get("not")
            && self.fits(value, rule, at)? == Fit::Yes
        {
            return broken(at, "it is what it must not be");
        }
        let Some(condition) = schema.get("if") else { return Ok(()) };
        let branch = match self.fits(value, condition, at)? {
            Fit::Yes => schema.get("then"),
            Fit::No => schema.get("else"),
            Fit::Unknown => None,
        };
        branch.map_or(Ok(()), |rule| self.schema(value, rule, at))
    }

    fn any(&mut self, value: &Value, ways: &'a [Value], at: &str) -> Result<(), SchemaMismatch> {
        let before = self.mark();
        let mut unknown = false;
        for way in ways {
            match self.fits(value, way, at)? {
                Fit::Yes => {
                    // Undecided points of the other alternatives no longer matter.
                    self.forget(before);
                    return Ok(());
                }
                Fit::No => {}
                Fit::Unknown => unknown = true,
            }
        }
        if unknown { Ok(()) } else { broken(at, "it fits none of the alternatives") }
    }

    fn one(&mut self, value: &Value, ways: &'a [Value], at: &str) -> Result<(), SchemaMismatch> {
        let (mut fitting, mut unknown) = (0, 0);
        for way in ways {
            match self.fits(value, way, at)? {
                Fit::Yes => fitting += 1,
                Fit::No => {}
                Fit::Unknown => unknown += 1,
            }
        }
        match (fitting, unknown) {
            (2.., _) => broken(at, format!("it fits {fitting} alternatives, and must fit one")),
            (0, 0) => broken(at, "it fits none of the alternatives"),
            _ => Ok(()),
        }
    }

    /// Whether a value fits. Undecided points are only reported if they leave this undecided.
    fn fits(&mut self, value: &Value, schema: &'a Value, at: &str) -> Result<Fit, SchemaMismatch> {
        let before = self.mark();
        match self.schema(value, schema, at) {
            Ok(()) if self.doubts > before.0 => Ok(Fit::Unknown),
            Ok(()) => Ok(Fit::Yes),
            Err(SchemaMismatch::Broken { .. }) => {
                self.forget(before);
                Ok(Fit::No)
            }
            Err(SchemaMismatch::Endless) => Err(SchemaMismatch::Endless),
        }
    }

    /// Whether a text matches a pattern.
    fn matches(&mut self, pattern: &'a str, text: &str) -> Result<Fit, SchemaMismatch> {
        let (fit, steps) = self.patterns.matches(pattern, text);
        self.step(steps)?;
        if fit == Fit::Unknown {
            self.doubt(&format!("the pattern {} is not checked", start(pattern)));
        }
        Ok(fit)
    }

    fn doubt(&mut self, note: &str) {
        self.doubts += 1;
        if self.notes.len() < MOST_NOTES && !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    fn mark(&self) -> (usize, usize) {
        (self.doubts, self.notes.len())
    }

    fn forget(&mut self, (doubts, notes): (usize, usize)) {
        self.doubts = doubts;
        self.notes.truncate(notes);
    }
}

fn listed(value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
    if let Some(only) = schema.get("const")
        && !same(value, only)
    {
        return broken(at, format!("it is not the one value it must be, {}", start(&only.to_string())));
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.iter().any(|one| same(value, one))
    {
        let wished: Vec<String> = values.iter().take(MOST_NOTES).map(Value::to_string).collect();
        return broken(at, format!("it is none of the values it may be: {}", start(&wished.join(", "))));
    }
    Ok(())
}

fn length(
    length: usize,
    schema: &Map<String, Value>,
    [least, most]: [&str; 2],
    what: &str,
    at: &str,
) -> Result<(), SchemaMismatch> {
    let limit = |key: &str| schema.get(key).and_then(number::count);
    let bound = match (limit(least), limit(most)) {
        (Some(limit), _) if length < limit => format!("at least {limit}"),
        (_, Some(limit)) if length > limit => format!("at most {limit}"),
        _ => return Ok(()),
    };
    broken(at, format!("it has {length} {what}, which is outside of its bounds ({bound})"))
}

fn broken<T>(at: &str, why: impl Into<String>) -> Result<T, SchemaMismatch> {
    Err(SchemaMismatch::Broken { at: at.to_owned(), why: why.into() })
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    list(value).iter().filter_map(Value::as_str)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn named(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

/// The start of a text that may be long.
fn start(text: &str) -> String {
    if text.len() <= LONGEST_WISH {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(LONGEST_WISH)).unwrap_or_default())
}
