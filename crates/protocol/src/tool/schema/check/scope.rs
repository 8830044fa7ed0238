//! Finds references of a schema, starting in the current part that has an address of its own.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::reference::{Target, anchored, find, is_resource};
use super::start;

/// The steps that a search costs; a remembered result costs hardly any.
const SEARCH: usize = 50;

/// The target of a reference, and the part that contains it.
pub(super) type FoundSchema<'a> = (Target<'a>, &'a Map<String, Value>);

/// The current parts with addresses of their own, the outermost first.
pub(super) struct Scope<'a> {
    /// Whether the schema was written before 2019.
    pub(super) older: bool,
    /// Whether `1.0` is no integer, as drafts 3 and 4 say.
    pub(super) integers_lack_a_point: bool,
    /// Whether `contains` counts as evaluating its items, which 2019 did not say.
    pub(super) counts_contained: bool,
    resources: Vec<&'a Map<String, Value>>,
    found: HashMap<(usize, &'a str), Option<FoundSchema<'a>>>,
    anchors: HashMap<(usize, &'a str), Option<Target<'a>>>,
    effort: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(root: &'a Map<String, Value>) -> Self {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let drafts = ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"];
        Self {
            older: drafts.iter().any(|name| draft.contains(name)),
            integers_lack_a_point: ["draft-03", "draft-04"].iter().any(|name| draft.contains(name)),
            counts_contained: !draft.contains("2019-09"),
            resources: vec![root],
            found: HashMap::new(),
            anchors: HashMap::new(),
            effort: 0,
        }
    }

    /// Enters a schema; returns whether it is a part with an address of its own.
    pub(super) fn enter(&mut self, schema: &'a Map<String, Value>) -> bool {
        is_resource(schema) && self.visit(schema)
    }

    /// Enters a part with an address of its own, unless it is already the current one.
    pub(super) fn visit(&mut self, resource: &'a Map<String, Value>) -> bool {
        let new = self.resources.last().is_none_or(|last| !std::ptr::eq(*last, resource));
        if new {
            self.resources.push(resource);
        }
        new
    }

    pub(super) fn leave(&mut self, entered: bool) {
        if entered {
            self.resources.pop();
        }
    }

    /// The steps of the searches since the last call.
    pub(super) fn effort(&mut self) -> usize {
        1 + std::mem::take(&mut self.effort)
    }

    /// The target of a reference of this kind.
    pub(super) fn find(&mut self, word: &str, reference: &'a str) -> Option<FoundSchema<'a>> {
        let (root, here) = (*self.resources.first()?, *self.resources.last()?);
        let effort = &mut self.effort;
        let first = *self.found.entry((number(here), reference)).or_insert_with(|| {
            *effort += SEARCH;
            find(here, reference).or_else(|| find(root, reference))
        });
        match (word, first?.0) {
            ("$recursiveRef", Target::Object(target)) => Some(self.recursive(target).or(first)?),
            ("$dynamicRef", Target::Object(target)) => Some(self.dynamic(target).or(first)?),
            _ => first,
        }
    }

    /// The outermost part that allows recursive references, if the target allows them.
    fn recursive(&self, target: &Map<String, Value>) -> Option<FoundSchema<'a>> {
        let recursive = |part: &Map<String, Value>| part.get("$recursiveAnchor") == Some(&Value::Bool(true));
        let outermost = self.resources.iter().find(|part| recursive(part)).filter(|_| recursive(target))?;
        Some((Target::Object(outermost), *outermost))
    }

    /// The outermost part that has the target's dynamic anchor.
    fn dynamic(&mut self, target: &'a Map<String, Value>) -> Option<FoundSchema<'a>> {
        let name = target.get("$dynamicAnchor").and_then(Value::as_str)?;
        let (anchors, effort) = (&mut self.anchors, &mut self.effort);
        self.resources.iter().find_map(|part| {
            *effort += 1;
            let anchor = anchors.entry((number(part), name)).or_insert_with(|| {
                *effort += SEARCH;
                anchored(part, "$dynamicAnchor", name)
            });
            Some(((*anchor)?, *part))
        })
    }
}

/// A number that identifies a part.
fn number(part: &Map<String, Value>) -> usize {
    std::ptr::from_ref(part).addr()
}

/// The note about a reference without a target.
pub(super) fn lost(word: &str, reference: &str) -> String {
    let why = if reference.starts_with('#') { "leads nowhere" } else { "leads out of the schema" };
    format!("the `{word}` to {} {why} and is not checked", start(reference))
}
