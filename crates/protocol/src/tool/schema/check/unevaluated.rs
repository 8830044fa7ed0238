//! Finds the values that no other part of a schema evaluates: `unevaluatedProperties` and `unevaluatedItems`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::reference::Target;
use super::fields::below;
use super::items::parts;
use super::{Check, Fit, SchemaMismatch, broken, list, named};

/// The parts that were evaluated.
#[derive(Default)]
struct SeenParts {
    /// Everything.
    all: bool,
    names: BTreeSet<String>,
    places: BTreeSet<usize>,
}

impl<'a> Check<'a> {
    pub(super) fn unevaluated(
        &mut self,
        value: &Value,
        schema: &'a Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        let word = match value {
            Value::Object(_) => "unevaluatedProperties",
            Value::Array(_) => "unevaluatedItems",
            _ => return Ok(()),
        };
        let Some(rule) = schema.get(word) else { return Ok(()) };
        let mut seen = SeenParts::default();
        self.look(value, schema, Some(word), &mut seen)?;
        if seen.all {
            return Ok(());
        }
        let unseen: Vec<(String, &Value)> = match value {
            Value::Object(fields) => {
                let unseen = fields.iter().filter(|(name, _)| !seen.names.contains(*name));
                unseen.map(|(name, value)| (below(at, name), value)).collect()
            }
            Value::Array(items) => {
                let unseen = items.iter().enumerate().filter(|(place, _)| !seen.places.contains(place));
                unseen.map(|(place, value)| (format!("{at}/{place}"), value)).collect()
            }
            _ => Vec::new(),
        };
        for (at, value) in unseen {
            if rule == &Value::Bool(false) {
                return broken(&at, "it is not in the schema");
            }
            self.schema(value, rule, &at)?;
        }
        Ok(())
    }

    /// Collects the parts that a schema evaluates, without the unevaluated keyword itself.
    fn look(
        &mut self,
        value: &Value,
        schema: &'a Map<String, Value>,
        without: Option<&str>,
        seen: &mut SeenParts,
    ) -> Result<(), SchemaMismatch> {
        self.step(1)?;
        if self.depth >= super::DEEPEST {
            return Err(SchemaMismatch::Endless);
        }
        self.depth += 1;
        let entered = self.scope.enter(schema);
        let result = self.look_around(value, schema, without, seen);
        self.scope.leave(entered);
        self.depth -= 1;
        result
    }

    fn look_around(
        &mut self,
        value: &Value,
        schema: &'a Map<String, Value>,
        without: Option<&str>,
        seen: &mut SeenParts,
    ) -> Result<(), SchemaMismatch> {
        match value {
            Value::Object(fields) => self.named_fields(fields, schema, without, seen)?,
            Value::Array(items) => self.placed_items(items, schema, without, seen)?,
            _ => {}
        }
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(Value::String(reference)) = schema.get(word) else { continue };
            if let Some((Target::Object(target), resource)) = self.lead(word, reference)? {
                let entered = self.scope.visit(resource);
                let looked = self.look(value, target, None, seen);
                self.scope.leave(entered);
                looked?;
            }
        }
        for rule in ["allOf", "anyOf", "oneOf"].iter().flat_map(|word| list(schema.get(*word))) {
            self.look_if(value, rule, seen)?;
        }
        if let Some(condition) = schema.get("if") {
            let met = self.look_if(value, condition, seen)?;
            let branches = [(Fit::No, "then"), (Fit::Yes, "else")];
            for (_, branch) in branches.iter().filter(|(unless, _)| met != *unless) {
                if let Some(rule) = schema.get(*branch) {
                    self.look_if(value, rule, seen)?;
                }
            }
        }
        let there = |name: &String| value.get(name).is_some();
        for (_, rule) in named(schema.get("dependentSchemas")).filter(|(name, _)| there(name)) {
            self.look_if(value, rule, seen)?;
        }
        Ok(())
    }

    /// Collects the parts that a subschema evaluates if the value fits it. If that is undecided, it may have evaluated
    /// them.
    fn look_if(&mut self, value: &Value, rule: &'a Value, seen: &mut SeenParts) -> Result<Fit, SchemaMismatch> {
        let fit = self.fits(value, rule, "")?;
        if let (Fit::Yes | Fit::Unknown, Value::Object(rule)) = (fit, rule) {
            self.look(value, rule, None, seen)?;
        }
        Ok(fit)
    }

    fn named_fields(
        &mut self,
        fields: &Map<String, Value>,
        schema: &'a Map<String, Value>,
        without: Option<&str>,
        seen: &mut SeenParts,
    ) -> Result<(), SchemaMismatch> {
        let has = |word: &str| without != Some(word) && schema.contains_key(word);
        seen.all |= has("additionalProperties") || has("unevaluatedProperties");
        seen.names.extend(named(schema.get("properties")).map(|(name, _)| name.clone()));
        for (pattern, _) in named(schema.get("patternProperties")) {
            for name in fields.keys() {
                if self.matches(pattern, name)? != Fit::No {
                    seen.names.insert(name.clone());
                }
            }
        }
        Ok(())
    }

    fn placed_items(
        &mut self,
        items: &[Value],
        schema: &'a Map<String, Value>,
        without: Option<&str>,
        seen: &mut SeenParts,
    ) -> Result<(), SchemaMismatch> {
        let (tuple, rest) = parts(schema);
        seen.all |= rest.is_some() || (without != Some("unevaluatedItems") && schema.contains_key("unevaluatedItems"));
        seen.places.extend(0..tuple.len());
        let Some(rule) = schema.get("contains").filter(|_| self.scope.counts_contained) else { return Ok(()) };
        for (place, item) in items.iter().enumerate() {
            if self.fits(item, rule, "")? != Fit::No {
                seen.places.insert(place);
            }
        }
        Ok(())
    }
}
