//! From a declared hook to a valid one, the shell text in it included: a mistake in it is told when it is loaded.

use ollm_protocol::{Action, ActionSpec, Hook, HookError, HookSpec, Placeholder, Rules, placeholders};
use ollm_shell::template::{Hole, PlaceError, check_words, place};
use ollm_shell::{LineError, split};

/// Why a declared hook is not valid.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Invalid {
    /// Something about the hook itself.
    Hook(#[from] HookError),
    /// The line of a `runCommand` cannot be split into words.
    Line(#[from] LineError),
    /// A variable stands where its value could become code.
    Place(#[from] PlaceError),
}

impl Invalid {
    /// The key of the hook entry that is at fault.
    pub(super) fn field(&self) -> &'static str {
        match self {
            Invalid::Hook(error) => error.field(),
            Invalid::Line(_) | Invalid::Place(_) => "command",
        }
    }
}

/// Checks a declared hook and applies the defaults.
pub(super) fn hook(mut spec: HookSpec, rules: &Rules) -> Result<Hook, Invalid> {
    if let ActionSpec::RunCommand { line, words } = &mut spec.action {
        let spans: Vec<_> = placeholders(line).map(|one| one.span).collect();
        *words = split(line, &spans)?;
    }
    let hook = Hook::new(spec, rules)?;
    check(&hook.action)?;
    Ok(hook)
}

fn check(action: &Action) -> Result<(), PlaceError> {
    match action {
        Action::Shell { script } => place(script, &holes(script)).map(drop),
        Action::Command { program, args } | Action::RunCommand { program, args, .. } => {
            if args.iter().all(|arg| placeholders(arg).next().is_none()) {
                return Ok(());
            }
            let words: Vec<&str> = std::iter::once(program).chain(args).map(String::as_str).collect();
            check_words(&words, holes)
        }
        Action::AskAgent { .. } | Action::Http { .. } | Action::Mcp { .. } | Action::Builtin(_) => Ok(()),
    }
}

fn holes(text: &str) -> Vec<Hole> {
    let hole = |one: Placeholder<'_>| Hole { span: one.span, name: format!("{{{{{}}}}}", one.path) };
    placeholders(text).map(hole).collect()
}
