//! `ollm completions`: the scripts for shells that complete our commands, and the answers to these shells.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum as _;
use clap_complete::env::{EnvCompleter, Shells};
use ollm_app::AppContext;
use ollm_protocol::Code;
use ollm_store::write_atomic;
use serde_json::json;

use crate::arguments::{CompletionShell, CompletionsArguments, CompletionsCommand, completed_line};
use crate::error::{Failure, OK};
use crate::output::{Output, shown};

/// The variable that names the asking shell.
pub(crate) const ASKED_BY: &str = "COMPLETE";
const NAME: &str = "ollm";

/// Answers a shell that completes a command line.
pub(crate) fn complete(
    shell: &OsStr,
    words: &[OsString],
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    let shells = Shells::builtins();
    let Some(shell) = shell.to_str().and_then(|name| shells.completer(name)) else { return Ok(OK) };
    let context = Arc::new(context.clone());
    let mut answer = Vec::new();
    let written = shell.write_complete(&mut completed_line(&context), words.to_vec(), Some(&context.cwd), &mut answer);
    // On a failure the shell offers nothing; an error message would appear in the typed line.
    if written.is_ok() { output.bytes(&answer, &[], OK) } else { Ok(OK) }
}

pub(super) fn run(arguments: &CompletionsArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    match (&arguments.command, arguments.shell) {
        (Some(CompletionsCommand::Install { shell }), _) => install(*shell, context, output),
        (None, Some(shell)) => output.bytes(&script(shell)?, &[], OK),
        (None, None) => Err(Failure::usage("name a shell")),
    }
}

/// The script that makes a shell ask us.
fn script(shell: CompletionShell) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| Failure::new(Code::NotWritten, format!("the script cannot be made: {why}"));
    let name = shell.name();
    let shells = Shells::builtins();
    let completer: &dyn EnvCompleter =
        shells.completer(&name).ok_or_else(|| failed(format!("`{name}` is not known")))?;
    let mut script = Vec::new();
    completer.write_registration(ASKED_BY, NAME, NAME, NAME, &mut script).map_err(|error| failed(error.to_string()))?;
    Ok(script)
}

impl CompletionShell {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

fn install(shell: Option<CompletionShell>, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let named = context.variable("SHELL").unwrap_or_default();
    let usual = Path::new(&named)
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| CompletionShell::from_str(name, true).ok());
    let shell = shell.or(usual).ok_or_else(|| {
        Failure::usage("`SHELL` names no shell that is known").hint("name one: bash, elvish, fish, powershell or zsh")
    })?;
    let (file, further) = place(shell, context)?;
    write_atomic(&file, &script(shell)?)
        .map_err(|error| Failure::new(Code::NotWritten, format!("{} cannot be written: {error}", file.display())))?;
    output.changed(json!({"completions": shell.name(), "file": shown(&file)}));
    output.line(&format!("saved to {}; {further}", file.display()))
}

/// The file that a shell reads such a script from, and what else a person has to do.
fn place(shell: CompletionShell, context: &AppContext) -> Result<(PathBuf, String), Failure> {
    let home = context.places.user_home.clone().ok_or_else(|| {
        Failure::new(Code::NoFolder, "the home folder is not known")
            .hint("set HOME, or redirect `ollm completions SHELL`")
    })?;
    let folder = |variable: &str, usual: &str| {
        let named = context.variable(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        named.unwrap_or_else(|| home.join(usual))
    };
    let (data, config) = (folder("XDG_DATA_HOME", ".local/share"), folder("XDG_CONFIG_HOME", ".config"));
    Ok(match shell {
        CompletionShell::Bash => {
            let file = data.join("bash-completion/completions/ollm");
            (file, "a new bash completes ollm, where the package bash-completion is installed".to_owned())
        }
        CompletionShell::Fish => (config.join("fish/completions/ollm.fish"), "a new fish completes ollm".to_owned()),
        CompletionShell::Zsh => {
            let folder = data.join("zsh/site-functions");
            let line = format!("put `fpath=({} $fpath)` into ~/.zshrc before `compinit`", folder.display());
            (folder.join("_ollm"), line)
        }
        CompletionShell::Elvish => {
            (config.join("elvish/lib/ollm.elv"), "put `use ollm` into ~/.config/elvish/rc.elv".to_owned())
        }
        CompletionShell::Powershell => {
            let file = config.join("powershell/ollm.ps1");
            let line = format!("put `. {}` into the file that $PROFILE names", file.display());
            (file, line)
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_holds_together() {
        crate::arguments::command_line().debug_assert();
    }
}
