//! TOML, as far as other agents keep hooks in it. It is only read.

use serde_json::Value;
use toml_edit::{Document, Item, Key};

use super::lines::Lines;
use super::{Mark, ParsedText, SyntaxFault};
use crate::node::Node;

/// Parses a text; it is never repeated in a message, because such files hold keys as well.
pub(super) fn parse(text: &str) -> Result<ParsedText, SyntaxFault> {
    let lines = Lines::new(text);
    let document = Document::parse(text).map_err(|error| SyntaxFault {
        at: error.span().map(|span| lines.position(span.start)),
        message: "it is not valid TOML".to_owned(),
        help: None,
    })?;
    Ok(parsed(document.as_item(), None, &lines))
}

/// A value of TOML as JSON; times become nothing.
pub(crate) fn to_json(item: &Item) -> Value {
    parsed(item, None, &Lines::new("")).node.to_json()
}

fn parsed(item: &Item, key: Option<&Key>, lines: &Lines<'_>) -> ParsedText {
    let mut inside = Vec::new();
    let mut add = |item: &Item, key: Option<&Key>| {
        let ParsedText { node, mark } = parsed(item, key, lines);
        inside.push(mark);
        node
    };
    let node = if let Some(table) = item.as_table_like() {
        Node::Map(table.iter().map(|(name, item)| (name.to_owned(), add(item, table.key(name)))).collect())
    } else if let Some(tables) = item.as_array_of_tables() {
        Node::List(tables.iter().map(|table| add(&Item::Table(table.clone()), None)).collect())
    } else if let Some(array) = item.as_array() {
        Node::List(array.iter().map(|value| add(&Item::Value(value.clone()), None)).collect())
    } else {
        plain(item)
    };
    let key = key.and_then(Key::span).map(|span| lines.position(span.start));
    let value = item.span().map(|span| lines.position(span.start)).or(key).unwrap_or_default();
    ParsedText { node, mark: Mark { key, value, letters: item.span(), inside } }
}

fn plain(item: &Item) -> Node {
    let text = item.as_str().map(|text| Node::Text(text.to_owned()));
    let number = || {
        let whole = item.as_integer().map(|number| Node::Whole(number.into()));
        whole.or_else(|| item.as_float().map(Node::Fraction))
    };
    text.or_else(number).or_else(|| item.as_bool().map(Node::Bool)).unwrap_or(Node::Null)
}
