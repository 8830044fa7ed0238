//! A prompt for the agent, filled in from the event; nothing is started, and nothing is decided.

use ollm_protocol::Verdict;
use serde_json::Value;

use super::Prepared;
use crate::template::Template;

pub(super) fn render(prompt: &str, scope: impl FnOnce() -> Value) -> Prepared {
    let prompt = Template::parse(prompt);
    let scope = if prompt.paths().next().is_some() { scope() } else { Value::Null };
    let rendered = prompt.render(&scope);
    let verdict = Verdict { prompts: vec![rendered.text], ..Verdict::default() };
    Prepared::Decided(Box::new(verdict), rendered.warnings)
}
