//! YAML with the place of every value, within bounds that no real configuration meets.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Options, Spanned};

use super::lines::Position;
use super::{Mark, ParsedText, SyntaxFault};
use crate::node::Node;

/// Far beyond any configuration; a bomb of aliases ends here.
const MOST_NODES: usize = 20_000;

pub(super) fn parse(text: &str) -> Result<ParsedText, SyntaxFault> {
    let tree = serde_saphyr::from_str_with_options(text, options()).map_err(|error| broken(&error))?;
    Ok(parsed(tree, None))
}

fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        // `[no, y]` is a list of two words; a `no` that means false is understood where a flag is read.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_nodes: MOST_NODES,
            max_events: 4 * MOST_NODES,
            max_depth: 32,
        },
    }
}

/// A value and the place where it is shown; its letters are those of what an alias stands for.
fn parsed(tree: Spanned<Tree>, key: Option<Location>) -> ParsedText {
    let Spanned { value: Tree { node, inside }, referenced, defined, .. } = tree;
    let mark = Mark { key: key.map(position), value: position(referenced), letters: bytes(defined), inside };
    ParsedText { node, mark }
}

fn bytes(location: Location) -> Option<std::ops::Range<usize>> {
    let (start, length) = (location.span().byte_offset()?, location.span().byte_len()?);
    Some(usize::try_from(start).ok()?..usize::try_from(start + length).ok()?)
}

fn position(location: Location) -> Position {
    let count = |number| usize::try_from(number).unwrap_or_default();
    Position { line: count(location.line()), column: count(location.column()) }
}

fn broken(error: &serde_saphyr::Error) -> SyntaxFault {
    let reason = error.without_snippet().to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    let (reason, help) = match () {
        () if reason.starts_with("duplicate mapping key") => {
            (reason.split(", set ").next().unwrap_or_default(), Some("keep one of them"))
        }
        () if reason.contains("quoted scalar") => (reason, Some("close the quote; lines of one text are indented")),
        () if reason.contains("tabs") => (reason, Some("indent with spaces")),
        () if reason.starts_with("budget breached") || reason.contains("limit") || reason.contains("alias") => {
            ("it has too many or too deeply nested values", Some("write it shorter and without aliases"))
        }
        () if reason.starts_with("multiple YAML documents") => {
            ("it holds more than one document", Some("remove what follows the second `---`"))
        }
        () => (reason, None),
    };
    SyntaxFault { at: error.location().map(position), message: format!("it is not valid YAML: {reason}"), help }
}

/// A value, and the places of what is in it.
struct Tree {
    node: Node,
    inside: Vec<Mark>,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

impl Tree {
    fn plain(node: Node) -> Tree {
        Tree { node, inside: Vec::new() }
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Whole(value.into())))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Whole(value.into())))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Whole(value)))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Whole(i128::try_from(value).unwrap_or(i128::MAX))))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Fraction(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Text(value.to_owned())))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Text(value)))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Tree, E> {
        Ok(Tree::plain(Node::Text(String::from_utf8_lossy(value).into_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let (mut list, mut inside) = (Vec::new(), Vec::new());
        while let Some(item) = items.next_element()? {
            let ParsedText { node, mark } = parsed(item, None);
            list.push(node);
            inside.push(mark);
        }
        Ok(Tree { node: Node::List(list), inside })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let (mut map, mut inside) = (Vec::new(), Vec::new());
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, _>()? {
            let ParsedText { node, mark } = parsed(value, Some(key.referenced));
            map.push((key.value, node));
            inside.push(mark);
        }
        Ok(Tree { node: Node::Map(map), inside })
    }
}
