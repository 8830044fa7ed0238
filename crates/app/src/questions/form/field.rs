//! One field of a form: describes its accepted values, and checks the answer.

use ollm_mcp::check;
use serde_json::{Map, Number, Value};

use super::super::word;

/// Further options are not offered.
const MOST_OPTIONS: usize = 100;
/// Longer defaults are cut when shown.
const SHOWN: usize = 80;

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    kind: FieldKind,
    required: bool,
    default: Option<Value>,
    schema: Map<String, Value>,
}

#[derive(Debug, PartialEq)]
enum FieldKind {
    Text,
    Number,
    Whole,
    Flag,
    /// One of these options: its value and its title.
    One(Vec<(String, String)>),
    /// Any of these options.
    Many(Vec<(String, String)>),
}

impl Field {
    pub(super) fn read(name: &str, schema: &Value, required: bool) -> Result<Field, String> {
        let unknown = || format!("its field `{}` is of a kind that a form does not have", word(name));
        let schema = schema.as_object().ok_or_else(unknown)?;
        let kind = match (schema.get("type").and_then(Value::as_str), options(schema)) {
            (Some("string") | None, Some(options)) => FieldKind::One(options),
            (Some("string"), None) => FieldKind::Text,
            (Some("number"), _) => FieldKind::Number,
            (Some("integer"), _) => FieldKind::Whole,
            (Some("boolean"), _) => FieldKind::Flag,
            (Some("array"), _) => {
                let items = schema.get("items").and_then(Value::as_object).and_then(options);
                FieldKind::Many(items.ok_or_else(unknown)?)
            }
            _ => return Err(unknown()),
        };
        if matches!(&kind, FieldKind::One(options) | FieldKind::Many(options) if options.len() > MOST_OPTIONS) {
            return Err(format!("its field `{}` has more than {MOST_OPTIONS} options", word(name)));
        }
        // The server's default counts only if it follows the server's own rules.
        let default = schema.get("default").filter(|value| check(value, schema).is_ok()).cloned();
        Ok(Field { name: name.to_owned(), kind, required, default, schema: schema.clone() })
    }

    /// The field's title, kind and description.
    pub(super) fn described(&self) -> String {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str).map(word).unwrap_or_default();
        let mut words = vec![self.kind.name().to_owned()];
        let format = text("format");
        words.extend((!format.is_empty()).then_some(format));
        words.push(if self.required { "required" } else { "optional" }.to_owned());
        words.extend(self.limits());
        words.extend(self.default.as_ref().map(|value| format!("default {}", shown(value))));
        let mut line = format!("{} ({})", word(&self.name), words.join(", "));
        for about in [text("title"), text("description")].into_iter().filter(|about| !about.is_empty()) {
            line = format!("{line}: {about}");
        }
        if let FieldKind::One(options) | FieldKind::Many(options) = &self.kind {
            for (number, (value, title)) in options.iter().enumerate() {
                let title = if title == value { String::new() } else { format!(" ({})", word(title)) };
                line = format!("{line}\n      {}. {}{title}", number + 1, word(value));
            }
        }
        line
    }

    pub(super) fn prompt(&self) -> String {
        let default = self.default.as_ref().map(|value| format!(" [{}]", shown(value))).unwrap_or_default();
        let hint = match (&self.kind, self.required, &self.default) {
            (FieldKind::Flag, ..) => " (y/n)",
            (FieldKind::Many(_), ..) => " (several with commas)",
            (_, false, None) => " (Enter leaves it out)",
            _ => "",
        };
        format!("  {}{hint}{default}: ", word(&self.name))
    }

    /// The value of an answer; `None` if the field is left out.
    pub(super) fn take(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err("it needs an answer".to_owned()),
                (None, false) => Ok(None),
            };
        }
        let value = self.kind.read(text)?;
        check(&value, &self.schema).map_err(|why| why.to_string().replace("the whole value: ", ""))?;
        match self.schema.get("format").and_then(Value::as_str) {
            Some(format) if !fits(text, format) => Err(format!("it must be of the form {}", word(format))),
            _ => Ok(Some(value)),
        }
    }

    fn limits(&self) -> impl Iterator<Item = String> + '_ {
        const NAMES: [(&str, &str); 6] = [
            ("minLength", "at least {} characters"),
            ("maxLength", "at most {} characters"),
            ("minimum", "at least {}"),
            ("maximum", "at most {}"),
            ("minItems", "at least {} of them"),
            ("maxItems", "at most {} of them"),
        ];
        NAMES
            .iter()
            .filter_map(|(key, text)| Some(text.replace("{}", &self.schema.get(*key)?.as_number()?.to_string())))
    }
}

impl FieldKind {
    fn name(&self) -> &'static str {
        match self {
            FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Whole => "whole number",
            FieldKind::Flag => "yes or no",
            FieldKind::One(_) => "one of these",
            FieldKind::Many(_) => "any of these",
        }
    }

    fn read(&self, text: &str) -> Result<Value, String> {
        match self {
            FieldKind::Text => Ok(text.into()),
            FieldKind::Number => {
                let number = text.parse().ok().and_then(Number::from_f64);
                number.map(Value::Number).ok_or_else(|| "it must be a number".to_owned())
            }
            FieldKind::Whole => {
                text.parse::<i64>().map(Value::from).map_err(|_| "it must be a whole number".to_owned())
            }
            FieldKind::Flag => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("it must be yes or no".to_owned()),
            },
            FieldKind::One(options) => chosen(text, options).map(Value::from),
            FieldKind::Many(options) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                words.map(|word| chosen(word, options).map(Value::from)).collect()
            }
        }
    }
}

/// The value of the chosen option, which may be given by its value, title or number.
fn chosen(text: &str, options: &[(String, String)]) -> Result<String, String> {
    let named = options.iter().find(|(value, title)| value == text || title == text);
    let numbered = || options.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    named.or_else(numbered).map(|(value, _)| value.clone()).ok_or_else(|| format!("`{text}` is none of these"))
}

/// The options of a schema, in any of their notations.
fn options(schema: &Map<String, Value>) -> Option<Vec<(String, String)>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let title = |at: usize| titles.and_then(|titles| titles.get(at)).and_then(Value::as_str);
        let one = |(at, value): (usize, &Value)| {
            let value = value.as_str()?;
            Some((value.to_owned(), title(at).unwrap_or(value).to_owned()))
        };
        return values.iter().enumerate().map(one).collect();
    }
    let choices = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let one = |choice: &Value| {
        let value = choice.get("const")?.as_str()?;
        Some((value.to_owned(), choice.get("title").and_then(Value::as_str).unwrap_or(value).to_owned()))
    };
    choices.iter().map(one).collect()
}

/// Whether a text has a well-known format, checked only as far as is useful; unknown formats fit.
fn fits(text: &str, format: &str) -> bool {
    match format {
        "email" => text.split_once('@').is_some_and(|(who, place)| !who.is_empty() && place.contains('.')),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            !rest.is_empty() && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        }),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == "2000-01-01".len(),
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    word(&text).chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: &Value, required: bool) -> Field {
        Field::read("f", schema, required).unwrap()
    }

    #[test]
    fn what_is_typed_becomes_what_the_schema_wants_or_a_reason() {
        let colours = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]});
        let titled = json!({"type": "string", "oneOf": [{"const": "r", "title": "red"}]});
        let many = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 2});
        for (schema, text, wanted) in [
            (json!({"type": "string"}), "hi", Ok(json!("hi"))),
            (json!({"type": "string", "minLength": 3}), "hi", Err("outside of its bounds")),
            (json!({"type": "string", "format": "email"}), "a@b.c", Ok(json!("a@b.c"))),
            (json!({"type": "string", "format": "email"}), "a", Err("of the form email")),
            (json!({"type": "string", "format": "uri"}), "https://a", Ok(json!("https://a"))),
            (json!({"type": "string", "format": "date"}), "2026-11-15", Ok(json!("2026-11-15"))),
            (json!({"type": "string", "format": "date"}), "tomorrow", Err("of the form date")),
            (
                json!({"type": "string", "format": "date-time"}),
                "2026-11-15T10:00:00Z",
                Ok(json!("2026-11-15T10:00:00Z")),
            ),
            (json!({"type": "integer", "maximum": 9}), "7", Ok(json!(7))),
            (json!({"type": "integer", "maximum": 9}), "10", Err("maximum")),
            (json!({"type": "integer"}), "7.5", Err("whole number")),
            (json!({"type": "number"}), "7.5", Ok(json!(7.5))),
            (json!({"type": "number"}), "NaN", Err("a number")),
            (json!({"type": "boolean"}), "YES", Ok(json!(true))),
            (json!({"type": "boolean"}), "perhaps", Err("yes or no")),
            (colours.clone(), "g", Ok(json!("g"))),
            (colours.clone(), "green", Ok(json!("g"))),
            (colours.clone(), "2", Ok(json!("g"))),
            (colours, "3", Err("none of these")),
            (titled, "red", Ok(json!("r"))),
            (many.clone(), "a, 3", Ok(json!(["a", "c"]))),
            (many, "a,b,c", Err("outside of its bounds")),
        ] {
            let taken = field(&schema, true).take(text);
            match wanted {
                Ok(value) => assert_eq!(taken, Ok(Some(value)), "{schema} {text}"),
                Err(part) => assert!(taken.clone().unwrap_err().contains(part), "{schema} {text}: {taken:?}"),
            }
        }
    }

    #[test]
    fn an_empty_answer_is_the_default_or_nothing_or_too_little() {
        let plain = json!({"type": "string"});
        assert_eq!(field(&plain, false).take(""), Ok(None));
        assert!(field(&plain, true).take("").is_err());
        assert_eq!(field(&json!({"type": "integer", "default": 3}), true).take(""), Ok(Some(json!(3))));
        let lying = json!({"type": "integer", "default": "rm -rf"});
        assert!(field(&lying, true).take("").is_err(), "a default against the schema is none");
    }

    #[test]
    fn a_field_is_described_without_control_characters() {
        let schema = json!({"type": "string", "title": "a\u{1b}[2J", "description": "b\u{202e}c", "default": "d\re"});
        let line = field(&schema, true).described() + &field(&schema, true).prompt();
        assert!(!line.contains(['\u{1b}', '\u{202e}', '\r']), "{line:?}");
        assert!(line.contains("text, required, default d"), "{line}");
    }
}
