//! Templates: `{{ dotted.path }}` is filled in from an event, in one pass. Inserted values are not scanned again.
//!
//! [`Template`] is for prompts and single arguments: the value is inserted into the text. [`ShellTemplate`] is for
//! `sh -c` commands. There, the value never becomes shell text: it travels in an environment variable that the script
//! refers to.
//!
//! The braces must hold a plain path of names and array indexes. Anything else (`{{.Name | upper}}`) stays unchanged,
//! with a [`TemplateWarning`]. Strings render raw, null renders empty, all else as compact JSON. An unknown variable
//! renders empty, with a warning.

mod call;
mod error;
mod shell;
mod value;

pub(crate) use call::scope;
pub use error::{TemplateError, TemplateWarning};
pub use shell::{BoundValues, ShellTemplate};

use std::ops::Range;

use ollm_protocol::{Placeholder, placeholders};
use ollm_shell::template::{Hole, check_words};
use value::ScopeValue;

/// The longest string that the operating system accepts as one argument or environment entry, with its final NUL.
const MAX_ARGUMENT: usize = 131_072;

/// A text with `{{ path }}` variables.
///
/// ```
/// use ollm_engine::template::Template;
/// use serde_json::json;
///
/// let template = Template::parse("Explain {{ tool_args.file_path }}");
/// let rendered = template.render(&json!({"tool_args": {"file_path": "src/main.rs"}}));
/// assert_eq!(rendered.text, "Explain src/main.rs");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    warnings: Vec<TemplateWarning>,
}

/// A filled-in template, with warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedTemplate {
    /// The text with every variable replaced.
    pub text: String,
    /// One warning per unknown variable.
    pub warnings: Vec<TemplateWarning>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

impl Template {
    /// Reads a template; every text is valid.
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut from = 0;
        for variable in placeholders(text) {
            pieces.extend(literal(text, from..variable.span.start));
            pieces.push(Piece::Variable(variable.path.to_owned()));
            from = variable.span.end;
        }
        pieces.extend(literal(text, from..text.len()));
        Self { pieces, warnings: value::literals(text) }
    }

    /// The variables used, in order of first use.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let mut seen = Vec::new();
        self.variables().filter(move |path| {
            let new = !seen.contains(path);
            seen.push(path);
            new
        })
    }

    /// Warnings about braces that were left unchanged.
    pub fn warnings(&self) -> &[TemplateWarning] {
        &self.warnings
    }

    /// Fills the template in as free text, for a prompt.
    pub fn render(&self, scope: &serde_json::Value) -> RenderedTemplate {
        let mut rendered = RenderedTemplate { text: String::new(), warnings: Vec::new() };
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => rendered.text.push_str(text),
                Piece::Variable(path) => {
                    rendered.text.push_str(&ScopeValue::find(scope, path).text(&mut rendered.warnings));
                }
            }
        }
        rendered
    }

    /// Fills the template in as one argument of a program. Refuses values that the operating system cannot pass on.
    pub fn render_argument(&self, scope: &serde_json::Value) -> Result<RenderedTemplate, TemplateError> {
        let mut longest = (0, "");
        for path in self.variables() {
            let value = ScopeValue::find(scope, path).text(&mut Vec::new());
            if value.contains('\0') {
                return Err(TemplateError::Nul { variable: path.to_owned() });
            }
            longest = longest.max((value.len(), path));
        }
        let rendered = self.render(scope);
        if rendered.text.len() >= MAX_ARGUMENT {
            return Err(TemplateError::TooLong { variable: longest.1.to_owned(), size: longest.0 });
        }
        Ok(rendered)
    }

    fn variables(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable(path) => Some(path.as_str()),
            Piece::Text(_) => None,
        })
    }
}

fn literal(text: &str, span: Range<usize>) -> Option<Piece> {
    text.get(span).filter(|text| !text.is_empty()).map(|text| Piece::Text(text.to_owned()))
}

/// Reads a program's arguments as templates. Refuses a value that could become code: `python3 -c '… {{x}} …'`.
pub fn arguments(program: &str, args: &[String]) -> Result<Vec<Template>, TemplateError> {
    let templates: Vec<Template> = args.iter().map(|arg| Template::parse(arg)).collect();
    if templates.iter().any(|arg| arg.paths().next().is_some()) {
        let words: Vec<&str> = std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
        check_words(&words, holes)?;
    }
    Ok(templates)
}

/// The variables of a text, as holes to fill later.
fn holes(text: &str) -> Vec<Hole> {
    let hole = |one: Placeholder<'_>| Hole { span: one.span, name: format!("{{{{{}}}}}", one.path) };
    placeholders(text).map(hole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(text: &str, scope: &serde_json::Value) -> (String, Vec<String>) {
        let rendered = Template::parse(text).render(scope);
        (rendered.text, rendered.warnings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn each_kind_of_value_renders_its_own_way() {
        let scope = json!({"s": "a \"b\"", "n": 1.5, "t": true, "z": null, "o": {"b": 1, "a": [1, "x"]}});
        for (text, want) in [
            ("{{s}}", "a \"b\""),
            ("{{ s }}{{\ts\t}}", "a \"b\"a \"b\""),
            ("{{n}} {{t}}", "1.5 true"),
            ("[{{z}}]", "[]"),
            ("{{o}}", r#"{"b":1,"a":[1,"x"]}"#),
            ("{{o.a}} {{o.a.1}} {{o.b}}", r#"[1,"x"] x 1"#),
            ("{{{s}}}", "{a \"b\"}"),
        ] {
            assert_eq!(render(text, &scope), (want.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn an_unknown_variable_is_empty_and_named_once() {
        let scope = json!({"a": ["x"], "s": "text", "z": null});
        for (path, text) in [("b", "[{{b}}{{b}}]"), ("a.1", "[{{a.1}}]"), ("s.0", "[{{s.0}}]"), ("z.a", "[{{z.a}}]")] {
            let warning = format!("unknown variable `{path}`: it is empty here");
            assert_eq!(render(text, &scope), ("[]".to_owned(), vec![warning]));
        }
    }

    #[test]
    fn values_are_never_read_again() {
        let scope = json!({"a": "{{b}}", "b": "{{a}}"});
        assert_eq!(render("{{a}}{{b}}", &scope).0, "{{b}}{{a}}");
    }

    #[test]
    fn braces_that_hold_no_plain_path_stay_with_a_warning() {
        for text in ["{{.Name | upper}}", "{{}}", "{{a b}}", "{{a", "{{a.}}", "{{a\n}}", "{{0}}", "{{{{", "{{a..b}} x"]
        {
            let template = Template::parse(text);
            assert_eq!(template.render(&json!({"a": 1})).text, text);
            assert_eq!(template.warnings().len(), 1, "{text}");
        }
        assert_eq!(
            Template::parse("x {{.Name}} y").warnings()[0].to_string(),
            "`{{.Name}}` at column 3 is no variable and stays as written"
        );
        for text in ["", "{a}", "}}", "{ {a}}", "{{a}}", "{{{a}}}"] {
            assert_eq!(Template::parse(text).warnings(), [], "{text}");
        }
    }

    #[test]
    fn paths_lists_each_variable_once() {
        let template = Template::parse("{{a.b}} {{ c }} {{a.b}} {{.d}}");
        assert_eq!(template.paths().collect::<Vec<_>>(), ["a.b", "c"]);
    }

    #[test]
    fn an_argument_holds_neither_nul_nor_more_than_the_system_takes() {
        let template = Template::parse("--file={{f}}");
        let argument = |value: &str| template.render_argument(&json!({"f": value}));
        assert_eq!(argument("a\0b"), Err(TemplateError::Nul { variable: "f".into() }));
        let fits = MAX_ARGUMENT - 1 - "--file=".len();
        assert!(argument(&"x".repeat(fits)).is_ok());
        let error = argument(&"x".repeat(fits + 1));
        assert_eq!(error, Err(TemplateError::TooLong { variable: "f".into(), size: fits + 1 }));
    }
}
