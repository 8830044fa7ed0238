//! `ollm hook remove`: takes hooks out of the files that declare them, and if a person likes their own files, too.

use std::path::PathBuf;

use ollm_app::{App, AppContext, belongings, remove_belongings};
use ollm_catalog::edit;
use ollm_catalog::edit::Change;
use ollm_protocol::Hook;
use ollm_store::one_line;
use serde_json::json;

use super::{declared, refuse, unchanged};
use crate::arguments::hook::RemoveArguments;
use crate::ask::{Asker, PickedChoice, not_asked, not_removed};
use crate::error::{Failure, OK};
use crate::output::Output;

pub(in crate::command::hook) fn run(
    arguments: &RemoveArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse(context)?;
    for id in &arguments.ids {
        // Each removal moves what stands behind it.
        let app = App::load(context)?;
        let hook = declared(&app, id)?;
        let path = &hook.spec.origin.file;
        let own = belongings(&hook, &app.hooks());
        let with_files = wanted(&hook, &own, arguments, output.asker())?;
        let changed = edit::change(&hook, &app.rules, &[Change::Remove]).map_err(|error| unchanged(path, &error))?;
        output.changed(json!({"hook": hook.id(), "removedFrom": path.to_string_lossy()}));
        output.line(&one_line(&format!("{} was removed from {}", hook.id(), path.display())))?;
        if with_files {
            remove_belongings(&own)?;
        } else if !own.is_empty() {
            output.tell(&one_line(&format!("left where they are: {}", shown(&own))));
        }
        let emptied = changed.is_removed.then_some(path);
        for path in own.iter().filter(|_| with_files).chain(emptied) {
            output.line(&one_line(&format!("removed {}", path.display())))?;
        }
    }
    Ok(OK)
}

/// Whether the files of the hook go, too. Where a person does not want the hook removed at all, that is a failure.
fn wanted(hook: &Hook, own: &[PathBuf], arguments: &RemoveArguments, asker: &Asker) -> Result<bool, Failure> {
    if arguments.yes {
        return Ok(arguments.with_files);
    }
    let from = format!("Remove {} from {}", one_line(hook.id()), hook.spec.origin.file.display());
    if own.is_empty() {
        asker.confirm(&format!("{from}?"), hook.id())?;
        return Ok(false);
    }
    if arguments.with_files {
        asker.confirm(&one_line(&format!("{from}, and with it {}?", shown(own))), hook.id())?;
        return Ok(true);
    }
    let offered = [("[y]es", false), ("[w]ith its files", true)];
    let question = one_line(&format!("{from}? Its own files are {}.", shown(own)));
    match asker.choose(&question, &offered, &|| false) {
        PickedChoice::One(with_files) => Ok(with_files),
        PickedChoice::No => Err(not_removed(hook.id())),
        PickedChoice::Nobody => Err(not_asked(hook.id()).hint("`--with-files` removes its own files, too")),
    }
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
