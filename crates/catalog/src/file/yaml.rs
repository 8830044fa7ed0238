//! YAML: plain reading first, positions from a second one; both within bounds that no real configuration meets.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Options, Spanned};

use super::Broken;
use super::lines::Position;
use crate::node::{Node, Part, Spot};

/// Far beyond any configuration; a bomb of aliases ends here.
const MOST_NODES: usize = 20_000;

pub(crate) fn parse(text: &str) -> Result<Node, Broken> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| broken(&error))
}

/// Follows each spot through a second reading, which knows the place of every value.
pub(super) fn locate<'s>(text: &str, spots: impl Iterator<Item = &'s Spot>) -> Vec<Position> {
    let root: Option<Spanned<Tree>> = serde_saphyr::from_str_with_options(text, options()).ok();
    spots.map(|spot| root.as_ref().and_then(|root| follow(root, spot)).unwrap_or_default()).collect()
}

/// The letters of each value that is no list and no map, also of one that an alias stands for.
pub(super) fn letters<'s>(text: &str, spots: impl Iterator<Item = &'s Spot>) -> Vec<Option<String>> {
    let root = serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options()).ok();
    let written = |spot: &Spot| {
        let find = |tree, step: &usize| -> Option<&Spanned<Tree>> {
            let tree: &Spanned<Tree> = tree;
            tree.value.0.get(*step).map(|(_, value)| value)
        };
        let (start, end) = bytes(spot.steps.iter().try_fold(root.as_ref()?, find)?.defined)?;
        text.get(start..end).map(|letters| letters.trim().to_owned())
    };
    spots.map(written).collect()
}

fn bytes(location: Location) -> Option<(usize, usize)> {
    let (start, length) = (location.span().byte_offset()?, location.span().byte_len()?);
    Some((usize::try_from(start).ok()?, usize::try_from(start + length).ok()?))
}

fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        // `[no, y]` is a list of two words; who means false by `no` is understood where a flag is read.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_nodes: MOST_NODES,
            max_events: 4 * MOST_NODES,
            max_depth: 32,
        },
    }
}

fn follow(root: &Spanned<Tree>, spot: &Spot) -> Option<Position> {
    let mut tree = root;
    let mut at = root.referenced;
    for step in &spot.steps {
        let (key, value) = tree.value.0.get(*step)?;
        at = match (spot.part, key) {
            (Part::Key, Some(key)) => *key,
            _ => value.referenced,
        };
        tree = value;
    }
    Some(position(at))
}

fn position(location: Location) -> Position {
    let count = |number| usize::try_from(number).unwrap_or_default();
    Position { line: count(location.line()), column: count(location.column()) }
}

fn broken(error: &serde_saphyr::Error) -> Broken {
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
    Broken { at: error.location().map(position), message: format!("it is not valid YAML: {reason}"), help }
}

/// The positions in a tree: those of keys, which lists do not have, and values.
struct Tree(Vec<(Option<Location>, Spanned<Tree>)>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(Places)
    }
}

struct Places;

impl<'de> Visitor<'de> for Places {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree(Vec::new()))
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree(Vec::new()))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push((None, item));
        }
        Ok(Tree(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, _>()? {
            map.push((Some(key.referenced), value));
        }
        Ok(Tree(map))
    }
}
