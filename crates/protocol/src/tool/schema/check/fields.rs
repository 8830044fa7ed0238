//! Checks the keywords for objects.

use serde_json::{Map, Value};

use super::{Check, Fit, SchemaMismatch, broken, length, named, strings};

impl<'a> Check<'a> {
    pub(super) fn fields(
        &mut self,
        whole: &Value,
        fields: &Map<String, Value>,
        schema: &'a Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        for name in strings(schema.get("required")) {
            if !fields.contains_key(name) {
                return broken(at, format!("`{name}` is missing"));
            }
        }
        length(fields.len(), schema, ["minProperties", "maxProperties"], "properties", at)?;
        for (name, value) in fields {
            self.field(name, value, schema, &below(at, name))?;
        }
        self.dependent(whole, fields, schema, at)
    }

    fn field(
        &mut self,
        name: &str,
        value: &Value,
        schema: &'a Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        if let Some(rule) = schema.get("propertyNames") {
            self.name(name, rule, at)?;
        }
        let own = schema.get("properties").and_then(|known| known.get(name));
        if let Some(rule) = own {
            self.schema(value, rule, at)?;
        }
        let mut known = own.is_some();
        for (pattern, rule) in named(schema.get("patternProperties")) {
            match self.matches(pattern, name)? {
                Fit::Yes => {
                    known = true;
                    self.schema(value, rule, at)?;
                }
                // The unknown pattern may match this field, so nothing more is demanded of the field.
                Fit::Unknown => known = true,
                Fit::No => {}
            }
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if !known => broken(at, "it is not in the schema"),
            Some(rule) if !known => self.schema(value, rule, at),
            _ => Ok(()),
        }
    }

    fn name(&mut self, name: &str, rule: &'a Value, at: &str) -> Result<(), SchemaMismatch> {
        match self.schema(&Value::String(name.to_owned()), rule, at) {
            Err(SchemaMismatch::Broken { at, why }) => {
                Err(SchemaMismatch::Broken { at, why: format!("its name does not fit: {why}") })
            }
            other => other,
        }
    }

    /// Checks the demands of one field on the others.
    fn dependent(
        &mut self,
        whole: &Value,
        fields: &Map<String, Value>,
        schema: &'a Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        for word in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (name, needed) in named(schema.get(word)).filter(|(name, _)| fields.contains_key(*name)) {
                if !needed.is_array() {
                    self.schema(whole, needed, at)?;
                    continue;
                }
                if let Some(missing) = strings(Some(needed)).find(|needed| !fields.contains_key(*needed)) {
                    return broken(at, format!("`{missing}` is missing beside `{name}`"));
                }
            }
        }
        Ok(())
    }
}

/// The path of a field.
pub(super) fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}
