//! Gives the verdict that the hook itself declares. Its texts are filled in from the event, and no process starts.

use ollm_protocol::Verdict;
use serde_json::Value;

use super::{ActionContext, PreparedAction};
use crate::template::Template;

pub(super) fn prepare(declared: &Verdict, context: &ActionContext<'_>) -> PreparedAction {
    let mut verdict = Box::new(declared.clone());
    let templates: Vec<Template> = verdict.texts_mut().map(|text| Template::parse(text)).collect();
    // The scope copies the event, so it is made only if a text needs it.
    let has_paths = templates.iter().any(|template| template.paths().next().is_some());
    let scope = if has_paths { context.scope() } else { Value::Null };
    let mut warnings = Vec::new();
    for (text, template) in verdict.texts_mut().zip(&templates) {
        let rendered = template.render(&scope);
        *text = rendered.text;
        warnings.extend(rendered.warnings);
    }
    PreparedAction::Decided(verdict, warnings)
}
