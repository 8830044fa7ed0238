//! `ollm ext reload`: reads extensions again and reports differences from the approved state.
//!
//! Every command reads everything at its start, so no process needs to be told. Long-lived processes notice changes
//! themselves.

use ollm_app::extension_review::additions;
use ollm_app::{App, AppContext};
use ollm_catalog::{Extension, ExtensionState};
use ollm_store::one_line;

use super::{approved, named};
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(name: Option<&str>, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(context)?;
    app.problems_around_extensions(context).for_each(|problem| output.tell(&problem.to_string()));
    let chosen: Vec<&Extension> = match name {
        Some(name) => vec![named(name, &app)?],
        None => app.extensions.iter().collect(),
    };
    let mut failed = false;
    for extension in chosen {
        failed |= extension.error().is_some();
        output.line(&one_line(&line(extension, &app)))?;
        if let Some(before) = app.engine.trust.approved_extension(&extension.name, &extension.root)
            && approved(extension, &app).trust == "modified"
            && extension.error().is_none()
        {
            for (what, text) in additions(extension, &before, &app.rules) {
                output.line(&one_line(&format!("  {what} {text}")))?;
            }
        }
    }
    Ok(if failed { FINDING } else { OK })
}

fn line(extension: &Extension, app: &App) -> String {
    let name = &extension.name;
    match &extension.state {
        ExtensionState::On => {
            format!("{name} {} is on, {}", extension.manifest.version, approved(extension, app).trust)
        }
        ExtensionState::Off(why) => format!("{name} {} is off: {why}", extension.manifest.version),
        ExtensionState::Failed(why) => format!("{name} cannot be loaded: {why}"),
    }
}
