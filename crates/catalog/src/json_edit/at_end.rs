//! What comes and goes at the end of a list or map: a splice that touches nothing else, so that one undoes the other.

use std::ops::Range;

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::node::Node;

/// A list or map, by the bytes in which it is written.
pub(super) struct Container<'t> {
    text: &'t str,
    /// What is between its brackets.
    inside: Range<usize>,
    /// Its items or pairs.
    items: Vec<Range<usize>>,
    /// The keys of its pairs.
    keys: Vec<String>,
}

impl<'t> Container<'t> {
    /// The list or map at this place, if there is one.
    pub(super) fn read(text: &'t str, at: &[usize]) -> Option<Container<'t>> {
        let tree = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
        let root = tree.value?;
        let value = at.iter().try_fold(&root, |value, step| match value {
            Value::Object(map) => map.properties.get(*step).map(|pair| &pair.value),
            Value::Array(list) => list.elements.get(*step),
            _ => None,
        })?;
        let range = value.range();
        let inside = range.start + 1..range.end.checked_sub(1)?;
        let bytes = |item: &dyn Ranged| item.range().start..item.range().end;
        let key = |pair: &ObjectProp<'_>| pair.name.as_str().to_owned();
        match value {
            Value::Object(map) => Some(Container {
                text,
                inside,
                items: map.properties.iter().map(|pair| bytes(pair)).collect(),
                keys: map.properties.iter().map(key).collect(),
            }),
            Value::Array(list) => {
                let items = list.elements.iter().map(|item| bytes(item)).collect();
                Some(Container { text, inside, items, keys: Vec::new() })
            }
            _ => None,
        }
    }

    /// The text with one more pair, unless one has this key.
    pub(super) fn with_pair(&self, key: &str, value: &Node) -> Option<String> {
        if self.keys.iter().any(|known| known == key) {
            return None;
        }
        self.with(&format!("{}: ", serde_json::to_string(key).ok()?), value)
    }

    /// The text with one more item.
    pub(super) fn with_item(&self, value: &Node) -> Option<String> {
        self.with("", value)
    }

    fn with(&self, key: &str, value: &Node) -> Option<String> {
        let unit = self.unit();
        let pretty = pretty(value, unit)?;
        let base = indent_at(self.text, self.inside.start);
        let line_break = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let written = |indent: &str| format!("{key}{}", pretty.replace('\n', &format!("{line_break}{indent}")));
        let gap = self.last_gap();
        let content = gap.content.end;
        if self.items.is_empty() && gap.content.is_empty() {
            let indent = format!("{base}{unit}");
            let item = written(&indent);
            return self.replaced(self.inside.clone(), &format!("{line_break}{indent}{item}{line_break}{base}"));
        }
        let item = if self.has_lines() {
            let indent = self.indent().unwrap_or_else(|| format!("{base}{unit}"));
            format!("{line_break}{indent}{}", written(&indent))
        } else {
            format!(" {}", written(base))
        };
        match (self.items.last(), gap.comma) {
            (Some(last), None) => {
                let between = self.text.get(last.end..content)?;
                self.replaced(last.end..content, &format!(",{between}{item}"))
            }
            (Some(_), Some(_)) => self.replaced(content..content, &format!("{item},")),
            (None, _) => self.replaced(content..content, &item),
        }
    }

    /// The text without its last item; nothing where that is another.
    pub(super) fn without(&self, index: usize) -> Option<String> {
        let (last, before) = self.items.split_last().filter(|(_, before)| before.len() == index)?;
        let start = before.last().map_or(self.inside.start, |item| item.end);
        let gap = Gap::read(self.text, start..last.start);
        let end = self.last_gap().comma.map_or(last.end, |comma| comma + 1);
        let (kept, rest) = (self.text.get(start..gap.content.end)?, self.text.get(end..self.inside.end)?);
        if before.is_empty() && kept.is_empty() && rest.trim().is_empty() {
            return self.replaced(self.inside.clone(), "");
        }
        // Where a comma ends the last item, that of the one before it is its own.
        let kept = match gap.comma.filter(|_| end == last.end) {
            Some(comma) => format!("{}{}", self.text.get(start..comma)?, self.text.get(comma + 1..gap.content.end)?),
            None => kept.to_owned(),
        };
        self.replaced(start..end, &kept)
    }

    fn replaced(&self, range: Range<usize>, with: &str) -> Option<String> {
        Some(format!("{}{with}{}", self.text.get(..range.start)?, self.text.get(range.end..)?))
    }

    /// What follows the last item.
    fn last_gap(&self) -> Gap {
        Gap::read(self.text, self.items.last().map_or(self.inside.start, |last| last.end)..self.inside.end)
    }

    /// What stands between the brackets and is no item.
    fn gaps(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(self.inside.start).chain(self.items.iter().map(|item| item.end));
        let ends = self.items.iter().map(|item| item.start).chain([self.inside.end]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// Whether its items stand on lines of their own, some of them at least.
    fn has_lines(&self) -> bool {
        self.gaps().any(|gap| self.text.get(gap).is_some_and(|gap| gap.contains('\n')))
    }

    /// How far the last item is indented that begins a line.
    fn indent(&self) -> Option<String> {
        let begins = |gap: Range<usize>| {
            let (_, line) = self.text.get(gap)?.rsplit_once('\n')?;
            line.trim().is_empty().then(|| line.to_owned())
        };
        self.gaps().take(self.items.len()).filter_map(begins).last()
    }

    /// What the text is indented by.
    fn unit(&self) -> &'t str {
        let indents = self.text.lines().filter_map(|line| line.split_once('"')).map(|(indent, _)| indent);
        indents.into_iter().find(|indent| !indent.is_empty() && indent.trim().is_empty()).unwrap_or("  ")
    }
}

/// What stands between two items, or behind the last one.
struct Gap {
    comma: Option<usize>,
    /// From its beginning to the end of its comma or its last comment.
    content: Range<usize>,
}

impl Gap {
    fn read(text: &str, range: Range<usize>) -> Gap {
        let mut gap = Gap { comma: None, content: range.start..range.start };
        let mut at = range.start;
        while let Some(rest) = text.get(at..range.end).filter(|rest| !rest.is_empty()) {
            let length = match rest {
                _ if rest.starts_with("//") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
                _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => rest.chars().next().map_or(1, char::len_utf8),
            };
            if rest.starts_with(',') {
                gap.comma = gap.comma.or(Some(at));
            }
            at += length;
            if !rest.starts_with(char::is_whitespace) {
                gap.content.end = at;
            }
        }
        gap
    }
}

/// How far the line of a place is indented.
fn indent_at(text: &str, at: usize) -> &str {
    let line = text.get(..at).map_or("", |before| before.rsplit('\n').next().unwrap_or_default());
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

/// A value on lines of its own.
fn pretty(value: &Node, unit: &str) -> Option<String> {
    let mut text = Vec::new();
    let mut writer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(unit.as_bytes()));
    value.to_json().serialize(&mut writer).ok()?;
    String::from_utf8(text).ok()
}
