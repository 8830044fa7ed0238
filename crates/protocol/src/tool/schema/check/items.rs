//! Checks the keywords for lists.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::number::{canonical, count};
use super::{Check, Fit, SchemaMismatch, broken, length};

impl<'a> Check<'a> {
    pub(super) fn items(
        &mut self,
        items: &[Value],
        schema: &'a Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        length(items.len(), schema, ["minItems", "maxItems"], "items", at)?;
        let (tuple, rest) = parts(schema);
        for (index, item) in items.iter().enumerate() {
            if let Some(rule) = tuple.get(index).or(rest) {
                self.schema(item, rule, &format!("{at}/{index}"))?;
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && self.repeats(items)? {
            return broken(at, "two of its items are the same");
        }
        schema.get("contains").map_or(Ok(()), |rule| self.contains(items, rule, schema, at))
    }

    fn contains(
        &mut self,
        items: &[Value],
        rule: &'a Value,
        schema: &Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        let least = schema.get("minContains").and_then(count).unwrap_or(1);
        let most = schema.get("maxContains").and_then(count).unwrap_or(usize::MAX);
        let before = self.mark();
        let (mut fitting, mut unknown) = (0, 0);
        for item in items {
            match self.fits(item, rule, at)? {
                Fit::Yes => fitting += 1,
                Fit::No => {}
                Fit::Unknown => unknown += 1,
            }
        }
        if fitting + unknown < least {
            return broken(at, format!("{fitting} of its items are as wanted, and at least {least} must be"));
        }
        if fitting > most {
            return broken(at, format!("{fitting} of its items are as wanted, and at most {most} may be"));
        }
        if fitting >= least && fitting + unknown <= most {
            self.forget(before);
        }
        Ok(())
    }

    fn repeats(&mut self, items: &[Value]) -> Result<bool, SchemaMismatch> {
        let mut seen = BTreeSet::new();
        for item in items {
            let text = canonical(item);
            self.step(1 + text.len() / 256)?;
            if !seen.insert(text) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The schemas of the first items, and that of all others. Before 2020, both had other names.
pub(super) fn parts(schema: &Map<String, Value>) -> (&[Value], Option<&Value>) {
    match (schema.get("prefixItems"), schema.get("items")) {
        (Some(Value::Array(tuple)), rest) => (tuple.as_slice(), rest),
        (_, Some(Value::Array(tuple))) => (tuple.as_slice(), schema.get("additionalItems")),
        (_, rest) => (&[], rest),
    }
}
