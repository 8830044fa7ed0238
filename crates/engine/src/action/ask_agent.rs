//! A prompt for the agent, filled in from the event; nothing is started, and nothing is decided.

use ollm_protocol::Verdict;
use ollm_protocol::hook::action::AskAgentSpec;
use serde_json::Value;

use super::{ActionContext, Prepared, Run};
use crate::template::Template;

impl Run for AskAgentSpec {
    fn prepare(&self, context: &ActionContext<'_>) -> Prepared {
        let prompt = Template::parse(&self.prompt);
        let scope = if prompt.paths().next().is_some() { context.scope() } else { Value::Null };
        let rendered = prompt.render(&scope);
        let verdict = Verdict { prompts: vec![rendered.text], ..Verdict::default() };
        Prepared::Decided(Box::new(verdict), rendered.warnings)
    }
}
