//! `ollm git-hook`: sends the commits of a repository as events.

use ollm_app::dispatch::{DispatchOptions, dispatch};
use ollm_app::git_hook::{CommitHookPlace, Entry, event};
use ollm_app::{AppContext, refuse_agents, refuse_too_deep};
use serde_json::json;

use super::connect::own_program;
use crate::arguments::GitHookCommand;
use crate::error::{BLOCKED, FINDING, Failure, OK};
use crate::output::{Output, shown};

pub(super) fn run_command(command: &GitHookCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    match command {
        GitHookCommand::Install => install(context, output),
        GitHookCommand::Uninstall => uninstall(context, output),
        GitHookCommand::Status { json } => status(*json, context, output),
        GitHookCommand::Run { message } => {
            refuse_too_deep("no commit", context)?;
            let outcome = dispatch(&event(message, context)?, DispatchOptions::default(), context, output)?;
            if outcome.continues() {
                return Ok(OK);
            }
            let reason = outcome.verdict.reason();
            let reason = reason.as_deref().unwrap_or("a hook refused it and gave no reason");
            output.tell(&format!("no commit: {reason}"));
            Ok(BLOCKED)
        }
    }
}

fn install(context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "change what a repository runs")?;
    let place = CommitHookPlace::find(context)?;
    let changed = place.install(own_program(context)?)?;
    if changed {
        output.changed(json!({"file": shown(&place.file)}));
    }
    let (file, verb) = (place.file.display(), if changed { "go" } else { "go already" });
    output.line(&format!("commits of this repository {verb} through your hooks, by {file}"))?;
    if place.entry(context)? != Entry::Works {
        output.tell("but ollm is not on your PATH, where the line looks for it: put it there");
    }
    if place.is_lefthooks() {
        output.tell(
            "`lefthook install` writes that file anew, without this line: install again then, or have lefthook.yml run \
             `ollm git-hook run {1}` at commit-msg instead",
        );
    }
    if place.is_shared {
        output.tell("that file is part of the repository: people without ollm are told so, and can commit");
    }
    Ok(OK)
}

fn uninstall(context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "change what a repository runs")?;
    let place = CommitHookPlace::find(context)?;
    let file = place.file.display();
    let changed = place.uninstall()?;
    if changed {
        output.changed(json!({"removedFrom": shown(&place.file)}));
    }
    output.line(&if changed {
        format!("commits of this repository go through your hooks no longer; the line was removed from {file}")
    } else {
        format!("there is no line of ours in {file}")
    })?;
    Ok(OK)
}

fn status(as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let place = CommitHookPlace::find(context)?;
    let entry = place.entry(context)?;
    let code = if entry == Entry::Works { OK } else { FINDING };
    if as_json {
        let value = json!({"state": entry.name(), "file": shown(&place.file), "shared": place.is_shared});
        output.pretty_json(&value)?;
        return Ok(code);
    }
    let file = place.file.display();
    output.line(&match &entry {
        Entry::Works => format!("commits of this repository go through your hooks, by {file}"),
        Entry::Missing => "commits of this repository do not go through your hooks; `ollm git-hook install`".to_owned(),
        Entry::Gone(program) => {
            format!("{file} names {}, which is not there; `ollm git-hook install`", program.display())
        }
        Entry::NotExecutable => format!("{file} is not executable, so git does not run it; `chmod +x` it"),
    })?;
    Ok(code)
}
