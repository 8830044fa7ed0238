//! What a person sees before they approve: the hook, what it runs, and what changed since the last approval.
//!
//! Files are shown from the copy that the approval will be bound to: what is seen is what is approved.

use std::fmt::Write;
use std::path::Path;

use ollm_app::App;
use ollm_engine::Proposal;
use ollm_protocol::Hook;
use ollm_store::{FileError, escape_for_people, read_bounded};
use similar::TextDiff;

use super::show;
use crate::open;
use crate::output::Output;

const LARGEST_SHOWN: u64 = 256 << 10;

pub(super) fn text(hook: &Hook, proposal: &Proposal, app: &App) -> String {
    let mut text = show::text(hook, &show::state(hook, app));
    if let Some(script) = hook.script()
        && let Some(difference) = difference(hook, script, proposal, app)
    {
        let _ = write!(text, "\n--- changed since it was approved: {}\n{difference}---\n", script.display());
    }
    for file in hook.script().into_iter().chain(&hook.spec.inputs) {
        let copy = proposal.copy_of(file);
        let _ = write!(text, "\n--- {}\n{}\n---\n", file.display(), content(copy.as_deref().unwrap_or(file)));
    }
    text
}

/// Shows a text, through a pager where it is long and somebody reads along.
pub(crate) fn show(text: &str, app: &App, output: &mut Output) {
    let text = escape_for_people(text);
    if !open::page(&text, app.engine.environment().get("PATH")) {
        output.explain(&text);
    }
}

fn difference(hook: &Hook, script: &Path, proposal: &Proposal, app: &App) -> Option<String> {
    let before = read(&app.engine.trust.approved_script(hook)?)?;
    let after = read(proposal.copy_of(script).as_deref().unwrap_or(script))?;
    let difference = TextDiff::from_lines(&before, &after);
    let text = difference.unified_diff().context_radius(3).header("approved", "now").to_string();
    (!text.is_empty()).then_some(text)
}

fn read(file: &Path) -> Option<String> {
    let bytes = read_bounded(file, LARGEST_SHOWN).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a file holds, or why it is not shown: a person must know what they have not seen.
pub(crate) fn content(file: &Path) -> String {
    match read_bounded(file, LARGEST_SHOWN) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => "(it does not exist)".to_owned(),
        Err(FileError::TooLarge { size, .. }) => {
            format!("(its {size} bytes are too long to show here; read it before you approve it)")
        }
        Err(error) => format!("({error})"),
    }
}
