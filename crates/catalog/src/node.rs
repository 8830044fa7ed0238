//! A parsed file as a tree, and a cursor that knows its way back to the root.
//!
//! The tree has no positions. A [`Spot`] names a node by the indexes on the way to it, which the places of a document
//! follow; doubled keys keep their own index and are never lost.

use std::fmt::{self, Write as _};

use ollm_store::Redactor;
use serde_json::Value;

/// A JSON or YAML value; a map keeps the order of its keys, and doubled ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Whether nothing is said: no value, or an empty list or map.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Node::Null => true,
            Node::List(items) => items.is_empty(),
            Node::Map(entries) => entries.is_empty(),
            Node::Bool(_) | Node::Whole(_) | Node::Fraction(_) | Node::Text(_) => false,
        }
    }

    /// The word for what this is.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "nothing",
            Node::Bool(_) => "true or false",
            Node::Whole(_) | Node::Fraction(_) => "a number",
            Node::Text(text) if text.trim().is_empty() => "empty text",
            Node::Text(_) => "text",
            Node::List(_) => "a list",
            Node::Map(_) => "a map",
        }
    }

    /// The text, where it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The node at the end of a way, by indexes.
    pub(crate) fn at(&self, steps: &[usize]) -> Option<&Node> {
        steps.iter().try_fold(self, |node, step| match node {
            Node::Map(entries) => entries.get(*step).map(|(_, value)| value),
            Node::List(items) => items.get(*step),
            _ => None,
        })
    }

    /// The node at the end of a way, to change it.
    pub(crate) fn at_mut(&mut self, steps: &[usize]) -> Option<&mut Node> {
        steps.iter().try_fold(self, |node, step| match node {
            Node::Map(entries) => entries.get_mut(*step).map(|(_, value)| value),
            Node::List(items) => items.get_mut(*step),
            _ => None,
        })
    }

    /// The same as a JSON value; of doubled keys the last one stays.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::from(*value),
            Node::Whole(value) => i64::try_from(*value)
                .map(Value::from)
                .or_else(|_| u64::try_from(*value).map(Value::from))
                .unwrap_or_else(|_| Value::from(value.to_string())),
            Node::Fraction(value) => Value::from(*value),
            Node::Text(value) => Value::from(value.as_str()),
            Node::List(items) => items.iter().map(Node::to_json).collect(),
            Node::Map(entries) => entries.iter().map(|(key, value)| (key.clone(), value.to_json())).collect(),
        }
    }

    /// The tree of a JSON value.
    pub(crate) fn from_json(value: &Value) -> Node {
        match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Node::Whole(whole.into()),
                (_, Some(whole)) => Node::Whole(whole.into()),
                _ => Node::Fraction(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Node::Text(text.clone()),
            Value::Array(items) => Node::List(items.iter().map(Node::from_json).collect()),
            Value::Object(pairs) => {
                Node::Map(pairs.iter().map(|(key, value)| (key.clone(), Node::from_json(value))).collect())
            }
        }
    }

    /// The value in JSON, cut to a length that can be shown.
    pub(crate) fn shown(&self) -> String {
        let mut text = ShortText::default();
        // The only error is that the text is long enough.
        let _ = self.write(&mut text, &Redactor::default());
        text.0
    }

    /// Secrets are hidden before the text is cut: half a secret could not be recognized as one.
    fn write(&self, text: &mut ShortText, redactor: &Redactor) -> fmt::Result {
        match self {
            Node::Null => text.write_str("null"),
            Node::Bool(value) => write!(text, "{value}"),
            Node::Whole(value) => write!(text, "{value}"),
            Node::Fraction(value) => write!(text, "{value}"),
            Node::Text(value) => write_quoted(text, &redactor.redact_str(value)),
            Node::List(items) => {
                text.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    text.write_str(if index == 0 { "" } else { ", " })?;
                    item.write(text, redactor)?;
                }
                text.write_char(']')
            }
            Node::Map(entries) => {
                text.write_char('{')?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    text.write_str(if index == 0 { "" } else { ", " })?;
                    write_quoted(text, key)?;
                    text.write_str(": ")?;
                    value.write(text, redactor)?;
                }
                text.write_char('}')
            }
        }
    }
}

fn write_quoted(text: &mut ShortText, value: &str) -> fmt::Result {
    text.write_char('"')?;
    for letter in value.chars() {
        match letter {
            '"' | '\\' => write!(text, "\\{letter}")?,
            '\n' => text.write_str("\\n")?,
            '\t' => text.write_str("\\t")?,
            other => text.write_char(other)?,
        }
    }
    text.write_char('"')
}

/// Text that refuses to grow beyond what can be shown.
#[derive(Default)]
struct ShortText(String, usize);

impl ShortText {
    const LONGEST: usize = 80;
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.1 + 1 == ShortText::LONGEST {
                self.0.push('…');
                self.1 += 1;
            }
            if self.1 >= ShortText::LONGEST {
                return Err(fmt::Error);
            }
            self.0.push(letter);
            self.1 += 1;
        }
        Ok(())
    }
}

/// A node and the way to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) node: &'a Node,
    step: Option<Step<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    parent: &'a Cursor<'a>,
    index: usize,
    key: Option<&'a str>,
}

/// Which part of an entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Key,
    Value,
    /// So many bytes into the text that the value is.
    Inside(usize),
}

/// A place in a tree that outlives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The index at each level, from the root.
    pub(crate) steps: Vec<usize>,
    pub(crate) part: Part,
    /// The path for people, such as `hooks.before_tool[0].timeout`.
    pub(crate) field: String,
}

impl<'a> Cursor<'a> {
    /// The root of a tree.
    pub(crate) fn root(node: &'a Node) -> Cursor<'a> {
        Cursor { node, step: None }
    }

    /// The entries of a map; none for anything else.
    pub(crate) fn entries(&'a self) -> impl Iterator<Item = (&'a str, Cursor<'a>)> {
        let entries = if let Node::Map(entries) = self.node { entries.as_slice() } else { &[] };
        entries.iter().enumerate().map(|(index, (key, node))| {
            (key.as_str(), Cursor { node, step: Some(Step { parent: self, index, key: Some(key) }) })
        })
    }

    /// The items of a list; none for anything else.
    pub(crate) fn items(&'a self) -> impl Iterator<Item = Cursor<'a>> {
        let items = if let Node::List(items) = self.node { items.as_slice() } else { &[] };
        items
            .iter()
            .enumerate()
            .map(|(index, node)| Cursor { node, step: Some(Step { parent: self, index, key: None }) })
    }

    /// The entry of a map with this key.
    pub(crate) fn get(&'a self, key: &str) -> Option<Cursor<'a>> {
        self.entries().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The key under which this node stands.
    pub(crate) fn key(&self) -> Option<&'a str> {
        self.step.and_then(|step| step.key)
    }

    pub(crate) fn spot(&self, part: Part) -> Spot {
        let mut way = Vec::new();
        let mut here = self;
        while let Some(step) = &here.step {
            way.push(*step);
            here = step.parent;
        }
        way.reverse();
        Spot { steps: way.iter().map(|step| step.index).collect(), part, field: field(&way) }
    }
}

fn field(way: &[Step<'_>]) -> String {
    let mut field = String::new();
    for step in way {
        match step.key {
            Some(key) if field.is_empty() => field.push_str(key),
            Some(key) => field.extend([".", key]),
            None => field.extend(["[", &step.index.to_string(), "]"]),
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Syntax, parse};

    #[test]
    fn a_spot_names_the_way_and_doubled_keys_stay_apart() {
        let node: Node = parse(r#"{"a": 1, "b": [{}, {"c": true}], "a": 2}"#, Syntax::Json).unwrap();
        let root = Cursor::root(&node);
        let list = root.get("b").unwrap();
        let item = list.items().nth(1).unwrap();
        let spot = item.get("c").unwrap().spot(Part::Key);
        assert_eq!(spot, Spot { steps: vec![1, 1, 0], part: Part::Key, field: "b[1].c".to_owned() });
        assert_eq!(root.entries().filter(|(key, _)| *key == "a").count(), 2);
    }

    #[test]
    fn a_shown_value_is_cut_to_eighty_characters() {
        let node: Node = parse(r#"{"a": ["x\"", 1.5, null]}"#, Syntax::Json).unwrap();
        assert_eq!(node.shown(), r#"{"a": ["x\"", 1.5, null]}"#);
        let long = Node::Text("é".repeat(1000)).shown();
        assert_eq!(long.chars().count(), 80);
        assert!(long.ends_with('…'));
    }
}
