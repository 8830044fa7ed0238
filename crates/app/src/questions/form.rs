//! A form of a server: asks for its fields one by one, checks each answer, and shows everything before it is sent.

use std::fmt::Write as _;

use ollm_mcp::ElicitAnswer;
use serde_json::{Map, Value};

use super::{consent, quoted, too_long, word};
use crate::port::Person;

mod field;

use field::Field;

/// Longer forms are refused: no person fills them in on a terminal.
const MOST_FIELDS: usize = 32;
/// The form ends after this many wrong answers.
const MOST_TRIES: usize = 5;

pub(super) fn ask(server: &str, question: &Value, person: &dyn Person, over: &dyn Fn() -> bool) -> ElicitAnswer {
    let message = question.get("message").and_then(Value::as_str).unwrap_or_default();
    let fields = match fields(question) {
        Ok(fields) => fields,
        Err(why) => {
            person.say(&format!(
                "\nServer `{}` asks for something that cannot be shown; it was declined: {why}\n",
                word(server)
            ));
            return ElicitAnswer::Decline;
        }
    };
    let message = match quoted(message) {
        Ok(message) => message,
        Err(why) => return too_long(server, &why, person),
    };
    let mut shown = format!("\nServer `{}` asks you:\n{message}", word(server));
    for field in &fields {
        let _ = writeln!(shown, "  - {}", field.described());
    }
    shown.push_str("  What you answer goes to that server: no passwords, no keys.\n");
    shown.push_str("  Answer? [y]es, [n]o, anything else cancels: ");
    match consent(&shown, person, over) {
        Some(ElicitAnswer::Accept(_)) => {}
        other => return other.unwrap_or(ElicitAnswer::Cancel),
    }
    let Some(content) = fill(&fields, person, over) else { return ElicitAnswer::Cancel };
    let content = Value::Object(content);
    let review = match quoted(&content.to_string()) {
        Ok(all) => format!("{all}  Send it to `{}`? [y]es, [n]o, anything else cancels: ", word(server)),
        Err(why) => return too_long(server, &why, person),
    };
    match consent(&review, person, over) {
        Some(ElicitAnswer::Accept(_)) => ElicitAnswer::Accept(Some(content)),
        other => other.unwrap_or(ElicitAnswer::Cancel),
    }
}

/// The fields of a form, if we can show all of them.
fn fields(question: &Value) -> Result<Vec<Field>, String> {
    let schema = question.get("requestedSchema").and_then(Value::as_object).ok_or("it names no fields")?;
    let properties = schema.get("properties").and_then(Value::as_object).ok_or("it names no fields")?;
    if properties.len() > MOST_FIELDS {
        return Err(format!("it has {} fields, and {MOST_FIELDS} is the most", properties.len()));
    }
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let needed = |name: &str| required.iter().any(|one| one.as_str() == Some(name));
    properties.iter().map(|(name, schema)| Field::read(name, schema, needed(name))).collect()
}

/// Asks for each field; `None` if the person gave up.
fn fill(fields: &[Field], person: &dyn Person, over: &dyn Fn() -> bool) -> Option<Map<String, Value>> {
    let mut content = Map::new();
    for field in fields {
        let mut tries = 0;
        loop {
            let text = person.ask(&field.prompt(), over)?;
            match field.take(&text) {
                Ok(Some(value)) => {
                    content.insert(field.name.clone(), value);
                    break;
                }
                Ok(None) => break,
                Err(why) => person.say(&format!("    {}\n", word(&why))),
            }
            tries += 1;
            if tries >= MOST_TRIES {
                return None;
            }
        }
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_that_is_no_flat_list_of_plain_fields_is_not_shown() {
        for schema in [
            json!({}),
            json!({"properties": {"a": {"type": "object"}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
            json!({"properties": {"a": "text"}}),
            json!({"properties": (0..33).map(|n| (n.to_string(), json!({"type": "string"}))).collect::<Map<_, _>>()}),
        ] {
            assert!(fields(&json!({"requestedSchema": schema})).is_err(), "{schema}");
        }
    }
}
