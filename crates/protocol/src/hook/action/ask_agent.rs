//! `askAgent`: gives the agent a prompt.

use serde::{Deserialize, Serialize};

use super::{Action, ActionDescriptor, ActionSpec, ActionText, ActionType, Needs, short};
use crate::event::EventKind;
use crate::hook::key::{HookKey, KeyKind, ROW, TextForm, text};
use crate::hook::{HookError, HookSpec, Rules};
use crate::verdict::Verdict;

/// A prompt for the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AskAgentSpec {
    /// The prompt, which may hold templates.
    pub prompt: String,
}

impl AskAgentSpec {
    pub(super) const TYPE: &ActionType = &ActionType {
        name: "askAgent",
        about: "Gives the agent a prompt",
        keys: &[HookKey {
            name: "prompt",
            about: "The prompt, which may hold templates",
            required: true,
            kind: KeyKind::Text(text("text that is not empty", TextForm::Word), field!(AskAgent.prompt)),
            approved: part!(AskAgent.prompt),
            ..ROW
        }],
        blank: Some(|| ActionSpec::AskAgent(AskAgentSpec::default())),
    };
}

impl ActionDescriptor for AskAgentSpec {
    fn kind(&self) -> &'static ActionType {
        AskAgentSpec::TYPE
    }

    fn check(&self, _: &HookSpec, _: &[EventKind], _: &Rules) -> Result<Action, HookError> {
        if self.prompt.trim().is_empty() {
            return Err(HookError::empty("prompt"));
        }
        let prompts = vec![self.prompt.clone()];
        Ok(Action::Verdict(Box::new(Verdict { prompts, ..Verdict::default() })))
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Nothing
    }

    fn words(&self) -> Vec<&str> {
        vec![AskAgentSpec::TYPE.name, &self.prompt]
    }

    fn title(&self) -> String {
        short(&self.prompt)
    }

    fn summary(&self) -> String {
        AskAgentSpec::TYPE.name.to_owned()
    }

    fn shown(&self) -> ActionText<'_> {
        ActionText::Text(format!("asks the agent: {}", self.prompt))
    }
}
