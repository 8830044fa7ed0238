//! `todo`: the model's own list of its tasks.

use ollm_protocol::tool::table::TODO;
use serde_json::{Map, Value};

use super::{Argument, Bench, BuiltIn, Description, ToolOutcome, lists, needs, takes};

/// The most items of a list.
const MOST: usize = 100;

/// One item of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    text: String,
    status: &'static str,
}

/// The states of an item.
const STATES: &[(&str, &str)] = &[("pending", "[ ]"), ("in_progress", "[~]"), ("done", "[x]")];

/// The fields of an item.
const FIELDS: &[Argument] =
    &[needs("text", "string", "What is to be done"), takes("status", "string", "pending, in_progress or done")];

pub(crate) struct Todo;

impl BuiltIn for Todo {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: TODO,
                text: "Keep a list of what is to be done. Each call replaces the whole list.",
                args: &[lists("items", FIELDS, "The whole list")],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let items = args.get("items").and_then(Value::as_array).ok_or("`items` must be a list")?;
        if items.len() > MOST {
            return Err(format!("`items` has {} entries; at most {MOST} are kept", items.len()));
        }
        *bench.todos = items.iter().map(item).collect::<Result<_, _>>()?;
        let lines: Vec<String> = bench.todos.iter().map(line).collect();
        Ok(ToolOutcome::text(if lines.is_empty() { "the list is empty".to_owned() } else { lines.join("\n") }))
    }
}

fn item(value: &Value) -> Result<Item, String> {
    let text = value.as_str().or_else(|| value.get("text")?.as_str()).ok_or("every item needs a `text`")?;
    let status = value.get("status").and_then(Value::as_str).unwrap_or("pending");
    let known = STATES.iter().find(|(name, _)| *name == status);
    let (status, _) = known.ok_or_else(|| format!("`{status}` is no status; use pending, in_progress or done"))?;
    Ok(Item { text: ollm_store::cut(text, 500).into_owned(), status })
}

fn line(item: &Item) -> String {
    let mark = STATES.iter().find(|(name, _)| *name == item.status).map_or("[ ]", |(_, mark)| mark);
    format!("{mark} {}", item.text)
}
