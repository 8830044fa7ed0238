//! `shell`: runs a line of shell.

use serde::{Deserialize, Serialize};

use super::{Action, ActionDescriptor, ActionSpec, ActionText, ActionType, Needs, short};
use crate::event::EventKind;
use crate::hook::key::{HookKey, KeyKind, ROW, TextForm, text};
use crate::hook::{HookError, HookSpec, Rules};

/// A line of shell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShellSpec {
    /// The line, which may hold templates.
    pub script: String,
}

impl ShellSpec {
    pub(super) const TYPE: &ActionType = &ActionType {
        name: "shell",
        about: "Runs a line of shell",
        keys: &[HookKey {
            name: "command",
            about: "The line, which may hold templates",
            required: true,
            kind: KeyKind::Text(text("text", TextForm::Expression), field!(Shell.script)),
            approved: part!(Shell.script),
            ..ROW
        }],
        blank: Some(|| ActionSpec::Shell(ShellSpec::default())),
    };
}

impl ActionDescriptor for ShellSpec {
    fn kind(&self) -> &'static ActionType {
        ShellSpec::TYPE
    }

    fn check(&self, _: &HookSpec, _: &[EventKind], _: &Rules) -> Result<Action, HookError> {
        if self.script.trim().is_empty() {
            return Err(HookError::NoCommand);
        }
        Ok(Action::Shell(self.script.clone()))
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Shell(&self.script)
    }

    fn words(&self) -> Vec<&str> {
        vec![&self.script]
    }

    fn title(&self) -> String {
        short(&self.script)
    }

    fn summary(&self) -> String {
        self.script.clone()
    }

    fn shown(&self) -> ActionText<'_> {
        ActionText::Words(vec!["sh", "-c", &self.script])
    }
}
