//! From a declared hook to a valid one, the shell text in it included: a mistake in it is told when it is loaded.

use ollm_protocol::{Code, Hook, HookError, HookSpec, Needs, Placeholder, Rules, placeholders};
use ollm_shell::template::{Hole, PlaceError, check_words, place};

/// Why a declared hook is not valid.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Invalid {
    /// Something about the hook itself.
    Hook(#[from] HookError),
    /// A variable stands where its value could become code.
    Place(#[from] PlaceError),
}

impl Invalid {
    /// What kind of problem it is.
    pub(super) fn code(&self) -> Code {
        match self {
            Invalid::Hook(HookError::Event(_)) => Code::UnknownEvent,
            Invalid::Hook(HookError::NoCommand) => Code::MissingKey,
            Invalid::Hook(HookError::Metacharacters(_) | HookError::Arguments(_) | HookError::NotAllowed { .. })
            | Invalid::Place(_) => Code::UnsafePath,
            Invalid::Hook(_) => Code::WrongValue,
        }
    }

    /// The key of the hook entry that is at fault.
    pub(super) fn field(&self) -> &'static str {
        match self {
            Invalid::Hook(error) => error.field(),
            Invalid::Place(_) => "command",
        }
    }
}

/// Checks a declared hook and applies the defaults.
pub(super) fn hook(spec: HookSpec, rules: &Rules) -> Result<Hook, Invalid> {
    let hook = Hook::new(spec, rules)?;
    check(hook.spec.action.needs())?;
    Ok(hook)
}

fn check(needs: Needs<'_>) -> Result<(), PlaceError> {
    match needs {
        Needs::Shell(line) => place(line, &holes(line)).map(drop),
        Needs::Program { program, args } => {
            if args.iter().all(|arg| placeholders(arg).next().is_none()) {
                return Ok(());
            }
            let words: Vec<&str> = std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
            check_words(&words, holes)
        }
        Needs::Nothing | Needs::Address(_) | Needs::Tool { .. } => Ok(()),
    }
}

fn holes(text: &str) -> Vec<Hole> {
    let hole = |one: Placeholder<'_>| Hole { span: one.span, name: format!("{{{{{}}}}}", one.path) };
    placeholders(text).map(hole).collect()
}
