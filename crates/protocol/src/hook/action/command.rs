//! `command`: starts a program, without a shell.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Action, ActionDescriptor, ActionSpec, ActionText, ActionType, Needs, Program, ProgramAnswer};
use crate::event::EventKind;
use crate::hook::definition::path;
use crate::hook::key::{ApprovedPart, HookKey, KeyKind, ROW, TextForm, text};
use crate::hook::{HookError, HookSpec, Rules, Runs, runs};

/// Characters that cannot be part of a program's name.
const METACHARACTERS: &[char] = &[';', '&', '|', '`', '$', '(', ')', '{', '}', '[', ']', '<', '>', '\n', '\0'];

/// A program that is started without a shell, as declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program: absolute, or on the whitelist.
    pub command: String,
    /// Its arguments, which may hold templates.
    pub args: Vec<String>,
    /// The file whose content decides what it does, if there is one.
    pub script: Option<PathBuf>,
}

/// The row of `command`, for actions and for entries.
pub(in crate::hook) const COMMAND: HookKey = HookKey {
    name: "command",
    about: "The program: absolute, relative to this file's folder, or an interpreter; no shell characters",
    required: true,
    kind: KeyKind::Text(text("text", TextForm::Expression), field!(Command.command)),
    approved: part!(Command.command),
    ..ROW
};

/// The row of `args`, for actions and for entries.
pub(in crate::hook) const ARGS: HookKey = HookKey {
    name: "args",
    about: "Its arguments, which may hold templates; a relative script is found beside this file",
    kind: KeyKind::Texts("a list of texts", field!(Command.args)),
    approved: part!(Command.args),
    ..ROW
};

/// The row of the script, which comes from the hook's place.
pub(super) const SCRIPT: HookKey = HookKey {
    name: "script",
    about: "The file whose content decides what happens",
    approved: ApprovedPart::Part(|hook| hook.script().map(|script| path(script)).into()),
    ..ROW
};

impl CommandSpec {
    pub(super) const TYPE: &ActionType = &ActionType {
        name: "command",
        about: "Starts a program, without a shell",
        keys: &[COMMAND, ARGS, SCRIPT],
        blank: Some(|| ActionSpec::Command(CommandSpec::default())),
    };

    fn line(&self) -> Vec<&str> {
        std::iter::once(&self.command).chain(&self.args).map(String::as_str).collect()
    }
}

impl ActionDescriptor for CommandSpec {
    fn kind(&self) -> &'static ActionType {
        CommandSpec::TYPE
    }

    fn check(&self, _: &HookSpec, _: &[EventKind], rules: &Rules) -> Result<Action, HookError> {
        check_program(&self.command, &self.args, rules)?;
        let CommandSpec { command, args, script } = self.clone();
        Ok(Action::Program(Program { program: command, args, script, answer: ProgramAnswer::Dialect }))
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Program { program: &self.command, args: &self.args }
    }

    fn words(&self) -> Vec<&str> {
        self.line()
    }

    fn title(&self) -> String {
        let file = self.script.as_deref().and_then(|script| script.file_name()).map(|name| name.to_string_lossy());
        file.map_or_else(|| self.command.rsplit('/').next().unwrap_or_default().to_owned(), Cow::into_owned)
    }

    fn summary(&self) -> String {
        self.line().join(" ")
    }

    fn shown(&self) -> ActionText<'_> {
        ActionText::Words(self.line())
    }

    fn script(&self) -> Option<&PathBuf> {
        self.script.as_ref()
    }

    fn is_twin(&self, other: &ActionSpec, same_program: &dyn Fn(&str, &str) -> bool) -> bool {
        let ActionSpec::Command(other) = other else { return false };
        (&self.args, &self.script) == (&other.args, &other.script) && same_program(&self.command, &other.command)
    }
}

/// Checks that a program may be started, and that it would not read the event as its code.
pub(super) fn check_program(command: &str, args: &[String], rules: &Rules) -> Result<(), HookError> {
    check_command(command, rules)?;
    if runs(command, args) == Runs::Input {
        return Err(HookError::ReadsEvent(command.to_owned()));
    }
    Ok(())
}

/// Checks that the command word is one program: absolute, or on the whitelist.
fn check_command(command: &str, rules: &Rules) -> Result<(), HookError> {
    if command.trim().is_empty() {
        return Err(HookError::NoCommand);
    }
    // No shell reads the command, so its folders may have any names.
    let absolute = Path::new(command).is_absolute();
    let word = if absolute { command.rsplit('/').next().unwrap_or(command) } else { command };
    if holds_shell_characters(word) || command.contains('\0') {
        return Err(HookError::Metacharacters(command.to_owned()));
    }
    if absolute {
        return Ok(());
    }
    if rules.whitelist.iter().any(|allowed| allowed == command) {
        return Ok(());
    }
    if let Some((first, _)) = command.split_once(char::is_whitespace)
        && rules.whitelist.iter().any(|allowed| allowed == first)
    {
        return Err(HookError::Arguments(command.to_owned()));
    }
    Err(HookError::NotAllowed { command: command.to_owned(), whitelist: rules.whitelist.join(", ") })
}

/// Whether a word has shell characters, which no program's name needs.
pub fn holds_shell_characters(word: &str) -> bool {
    word.contains(METACHARACTERS)
}
