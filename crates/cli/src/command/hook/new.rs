//! `ollm hook new`: writes a working hook for the person to change.

use std::path::PathBuf;

use ollm_app::scaffold::{Purpose, Scaffold, is_plain, write_new};
use ollm_app::{AppContext, refuse_agents};
use ollm_protocol::Code;
use serde_json::json;

use crate::arguments::hook::NewArguments;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(arguments: &NewArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let NewArguments { name, language, event, project, .. } = arguments;
    if !is_plain(name) {
        return Err(Failure::new(Code::InvalidValue, format!("`{name}` cannot be the name of a hook"))
            .hint("a name has letters, digits, `-` and `_`, and begins with a letter or digit"));
    }
    let purpose = purpose(arguments);
    purpose.check()?;
    if !project {
        // Hooks in the user's own folder need no approval.
        refuse_agents(context, "declare hooks of the user")?;
    }
    let folder = folder(*project, context)?;
    let scaffold = Scaffold { name, purpose, language: *language };
    for path in write_new(&folder, &scaffold.hook(event.as_deref())?)? {
        output.changed(json!({"hook": name, "file": path.to_string_lossy()}));
        output.data(&path.display().to_string())?;
    }
    let trust = project.then(|| format!("ollm hook trust {name}"));
    let next = [language.build_command(&folder, name), trust, Some(format!("ollm hook test {name}"))];
    let next: Vec<String> = next.into_iter().flatten().collect();
    output.tell(&format!("try it: {}", next.join(" && ")));
    Ok(OK)
}

/// What the options say the hook is for; at most one of them is there.
fn purpose(arguments: &NewArguments) -> Purpose {
    let NewArguments { purpose, deny_files, deny_commands, ask_before, log, context_from, .. } = arguments;
    let some = |patterns: &[String]| (!patterns.is_empty()).then(|| patterns.to_vec());
    let intents = [
        purpose.clone(),
        some(deny_files).map(Purpose::DenyFiles),
        some(deny_commands).map(Purpose::DenyCommands),
        some(ask_before).map(Purpose::AskBefore),
        log.then_some(Purpose::Logging),
        context_from.clone().map(Purpose::ContextFrom),
    ];
    intents.into_iter().flatten().next().unwrap_or_else(Purpose::validation)
}

/// Where hooks of the user, or of the project, are declared.
pub(super) fn folder(project: bool, context: &AppContext) -> Result<PathBuf, Failure> {
    Ok(if project { project_folder(context)?.join("hooks") } else { context.places.home.join("hooks") })
}

/// Our folder in the project.
pub(crate) fn project_folder(context: &AppContext) -> Result<PathBuf, Failure> {
    let project = context.places.project.as_ref().map(|project| project.join(".ollm"));
    project.ok_or_else(|| {
        Failure::new(Code::NoProject, "--project: this folder is in no project")
            .hint("a project is a folder with `.git` or `.ollm`; `mkdir .ollm` makes this one")
    })
}
