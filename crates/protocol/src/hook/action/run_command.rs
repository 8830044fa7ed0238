//! `runCommand`: runs a program whose answer is its exit status, from one line that is split without a shell.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::command::{SCRIPT, check_program};
use super::{Action, ActionDescriptor, ActionSpec, ActionText, ActionType, Needs, Program, ProgramAnswer, short};
use crate::event::EventKind;
use crate::hook::key::{HookKey, KeyKind, ROW};
use crate::hook::{HookError, HookSpec, Rules, Runs, runs};
use crate::placeholder::placeholders;

/// The events it is for.
const EVENTS: &[EventKind] = &[EventKind::BeforeAgent, EventKind::AfterAgent];

/// A line that is split without a shell, as declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCommandSpec {
    /// The line, as written.
    pub line: String,
    /// Its words. A value of a template stays inside its word.
    pub words: Vec<String>,
}

impl RunCommandSpec {
    pub(super) const TYPE: &ActionType = &ActionType {
        name: "runCommand",
        about: "Runs one line, split without a shell; its exit status is the answer",
        keys: &[
            HookKey {
                name: "command",
                about: "The line, which may hold templates",
                required: true,
                kind: KeyKind::Line(|spec, line, words| {
                    if let ActionSpec::RunCommand(action) = &mut spec.action {
                        *action = RunCommandSpec { line, words };
                    }
                }),
                approved: part!(RunCommand.line),
                ..ROW
            },
            SCRIPT,
        ],
        blank: Some(|| ActionSpec::RunCommand(RunCommandSpec::default())),
    };
}

impl ActionDescriptor for RunCommandSpec {
    fn kind(&self) -> &'static ActionType {
        RunCommandSpec::TYPE
    }

    fn check(&self, hook: &HookSpec, events: &[EventKind], rules: &Rules) -> Result<Action, HookError> {
        if let Some(other) = events.iter().find(|kind| !EVENTS.contains(kind)) {
            return Err(HookError::NotForEvent(other.name()));
        }
        let (command, args) = self.words.split_first().ok_or(HookError::NoCommand)?;
        let mut args = args.to_vec();
        check_program(command, &args, rules)?;
        // The script is part of what is approved, so it must be the same file wherever the event happens.
        let mut script = None;
        if let Runs::Script(index) = runs(command, &args)
            && let Some(arg) = args.get_mut(index).filter(|arg| placeholders(arg).next().is_none())
        {
            let path = hook.origin.file.parent().map_or_else(|| PathBuf::from(&*arg), |folder| folder.join(&*arg));
            *arg = path.to_string_lossy().into_owned();
            script = Some(path);
        }
        Ok(Action::Program(Program { program: command.clone(), args, script, answer: ProgramAnswer::Status }))
    }

    fn needs(&self) -> Needs<'_> {
        self.words.split_first().map_or(Needs::Nothing, |(program, args)| Needs::Program { program, args })
    }

    fn words(&self) -> Vec<&str> {
        vec![RunCommandSpec::TYPE.name, &self.line]
    }

    fn title(&self) -> String {
        short(&self.line)
    }

    fn summary(&self) -> String {
        self.line.clone()
    }

    fn shown(&self) -> ActionText<'_> {
        ActionText::Text(self.line.clone())
    }
}
