//! TOML, as far as other agents keep hooks in it. It is only read, and where something stands in it is not told.

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use super::Broken;
use crate::node::Node;

/// Parses a text; it is never repeated in a message, because such files hold keys as well.
pub(super) fn parse(text: &str) -> Result<Node, Broken> {
    let document = text.parse::<DocumentMut>();
    let document = document.map_err(|_| Broken { at: None, message: "it is not valid TOML".to_owned(), help: None })?;
    Ok(Node::from_json(&to_json(document.as_item())))
}

/// A value of TOML as JSON; times become nothing.
pub(crate) fn to_json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(key, item)| (key.to_owned(), to_json(item))).collect();
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|table| to_json(&Item::Table(table.clone()))).collect();
    }
    if let Some(array) = item.as_array() {
        return array.iter().map(|value| to_json(&Item::Value(value.clone()))).collect();
    }
    let text = item.as_str().map(Value::from);
    let number = || item.as_integer().map(Value::from).or_else(|| item.as_float().map(Value::from));
    text.or_else(number).or_else(|| item.as_bool().map(Value::from)).unwrap_or_default()
}
