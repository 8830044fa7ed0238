//! Shell commands whose variables travel in the environment. Each variable is replaced by a reference that is quoted
//! for its place.

use ollm_protocol::placeholders;
use ollm_shell::template::place;

use super::{MAX_ARGUMENT, TemplateError, TemplateWarning, holes, value};

/// A `sh -c` script with `{{ path }}` variables.
///
/// ```
/// use ollm_engine::template::ShellTemplate;
/// use serde_json::json;
///
/// let template = ShellTemplate::parse("logger 'said: {{message}}'")?;
/// assert_eq!(template.script(), r#"logger 'said: '"${OLLM_T1}"''"#);
/// let bound = template.bind(&json!({"message": "it's $(me)"}))?;
/// assert_eq!(bound.env, [("OLLM_T1".to_owned(), "it's $(me)".to_owned())]);
/// # Ok::<(), ollm_engine::template::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTemplate {
    script: String,
    paths: Vec<String>,
    warnings: Vec<TemplateWarning>,
}

/// The values for one run of a script, with warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundValues {
    /// Environment variables as name and value, to be added to the child's environment.
    pub env: Vec<(String, String)>,
    /// One warning per unknown variable.
    pub warnings: Vec<TemplateWarning>,
}

impl ShellTemplate {
    /// Reads a script and finds the places of its variables.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let places = place(text, &holes(text))?;
        let mut paths: Vec<String> = Vec::new();
        let mut script = String::with_capacity(text.len());
        let mut from = 0;
        for (variable, quoting) in placeholders(text).zip(places) {
            // In a comment, the variable stays unchanged.
            let Some(quoting) = quoting else { continue };
            let index = paths.iter().position(|path| path == variable.path).unwrap_or_else(|| {
                paths.push(variable.path.to_owned());
                paths.len() - 1
            });
            script.push_str(text.get(from..variable.span.start).unwrap_or_default());
            script.push_str(&quoting.reference(&name(index)));
            from = variable.span.end;
        }
        script.push_str(text.get(from..).unwrap_or_default());
        Ok(Self { script, paths, warnings: value::literals(text) })
    }

    /// The text for `sh -c`.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// The variables used, in the order of their environment names.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Warnings about braces that were left unchanged.
    pub fn warnings(&self) -> &[TemplateWarning] {
        &self.warnings
    }

    /// The environment with the values. It has every name that the script refers to.
    pub fn bind(&self, scope: &serde_json::Value) -> Result<BoundValues, TemplateError> {
        let mut warnings = Vec::new();
        let mut env = Vec::new();
        for (index, path) in self.paths.iter().enumerate() {
            let name = name(index);
            let value = value::ScopeValue::find(scope, path).text(&mut warnings);
            if value.contains('\0') {
                return Err(TemplateError::Nul { variable: path.clone() });
            }
            if name.len() + "=\0".len() + value.len() > MAX_ARGUMENT {
                return Err(TemplateError::TooLong { variable: path.clone(), size: value.len() });
            }
            env.push((name, value));
        }
        Ok(BoundValues { env, warnings })
    }
}

/// The environment name of the variable at this index.
fn name(index: usize) -> String {
    format!("OLLM_T{}", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_variable_shares_one_name() {
        let template = ShellTemplate::parse("e {{b}} {{ a }} '{{b}}' # {{c}}").unwrap();
        assert_eq!(template.script(), r#"e "${OLLM_T1}" "${OLLM_T2}" ''"${OLLM_T1}"'' # {{c}}"#);
        assert_eq!(template.paths().collect::<Vec<_>>(), ["b", "a"]);
        let bound = template.bind(&json!({"a": {"k": 1}})).unwrap();
        assert_eq!(bound.env, [("OLLM_T1".into(), String::new()), ("OLLM_T2".into(), r#"{"k":1}"#.into())]);
        assert_eq!(bound.warnings, [TemplateWarning::Unknown { variable: "b".into() }]);
    }

    #[test]
    fn an_error_names_the_variable_by_its_path() {
        let error = ShellTemplate::parse("e\ne $(( {{ a.b }} ))").unwrap_err();
        assert!(error.to_string().starts_with("`{{a.b}}` at line 2, column 7 stands inside arithmetic"), "{error}");
    }

    #[test]
    fn the_size_of_a_value_is_capped() {
        let template = ShellTemplate::parse("e {{x}}").unwrap();
        let fits = MAX_ARGUMENT - "OLLM_T1=\0".len();
        assert!(template.bind(&json!({"x": "v".repeat(fits)})).is_ok());
        let error = template.bind(&json!({"x": "v".repeat(fits + 1)}));
        assert_eq!(error, Err(TemplateError::TooLong { variable: "x".into(), size: fits + 1 }));
        assert_eq!(template.bind(&json!({"x": "\0"})), Err(TemplateError::Nul { variable: "x".into() }));
    }
}
