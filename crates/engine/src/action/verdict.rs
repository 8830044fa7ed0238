//! A verdict that the hook itself declares, its texts filled in from the event; nothing is started.

use ollm_protocol::Verdict;
use serde_json::Value;

use super::{ActionContext, Prepared};
use crate::template::Template;

pub(super) fn prepare(declared: &Verdict, context: &ActionContext<'_>) -> Prepared {
    let mut verdict = Box::new(declared.clone());
    let templates: Vec<Template> = verdict.texts_mut().map(|text| Template::parse(text)).collect();
    // The scope copies the event.
    let has_paths = templates.iter().any(|template| template.paths().next().is_some());
    let scope = if has_paths { context.scope() } else { Value::Null };
    let mut warnings = Vec::new();
    for (text, template) in verdict.texts_mut().zip(&templates) {
        let rendered = template.render(&scope);
        *text = rendered.text;
        warnings.extend(rendered.warnings);
    }
    Prepared::Decided(verdict, warnings)
}
