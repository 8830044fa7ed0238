//! Hooks that are approved together: a project's `hooks/trusted` folder, in one step, bound to the content of each.

use std::sync::Arc;

use ollm_app::App;
use ollm_app::approving::Together;
use ollm_protocol::{Code, Hook};
use ollm_shell::shell_word;
use ollm_trust::Standing;

use super::{Way, ask_together, record_all};
use crate::error::{Failure, OK};
use crate::output::Output;

/// What an approval is asked for.
pub(super) enum Target {
    /// One hook.
    One(Arc<Hook>),
    /// All hooks of a group, by its name.
    Group(String),
}

/// The hook, or the group that it belongs to or that has this name.
///
/// Naming the digest of one member approves that one alone.
pub(super) fn target(id: &str, digest: Option<&str>, app: &App) -> Result<Target, Failure> {
    let hook = match app.hook(id) {
        Ok(hook) => hook,
        Err(_) if !app.hooks_in_group(id).is_empty() => return Ok(Target::Group(id.to_owned())),
        Err(error) => return Err(error.into()),
    };
    let own = || {
        app.engine
            .trust
            .identity(&*hook, &app.engine.environment().trust_context())
            .ok()
            .map(|own| own.digest.to_string())
    };
    match &hook.spec.group {
        Some(group) if digest.is_none() || own().as_deref() != digest => Ok(Target::Group(group.clone())),
        _ => Ok(Target::One(hook)),
    }
}

/// Approves all members: on a terminal after they were shown, else by their common digest.
pub(super) fn approve(group: &str, way: Way<'_>, app: &App, output: &mut Output) -> Result<u8, Failure> {
    let all = app.hooks_in_group(group);
    let count = all.len();
    let is_approved = all.iter().all(|hook| app.standing(hook) == Standing::Approved);
    let already = format!("all {count} hooks of the group `{group}` are trusted already");
    if is_approved && way.digest.is_none() {
        output.tell(&already);
        return Ok(OK);
    }
    let together = Together::hooks(all, way.uncovered, app)?;
    match way.digest {
        // A named digest must fit, also where nothing is left to approve.
        Some(named) => check(group, count, &together, named)?,
        None => ask_together(&together, output)?,
    }
    if is_approved {
        output.tell(&already);
        return Ok(OK);
    }
    record_all(together, output)
}

fn check(group: &str, count: usize, together: &Together<'_>, named: &str) -> Result<(), Failure> {
    if together.digest().to_string() == named {
        return Ok(());
    }
    let message = format!("the {count} hooks of the group `{group}` are not what {named} names; nothing was approved");
    let members = together.members();
    let one = members.first().map_or(group, |(id, _)| id);
    Err(Failure::new(Code::DigestMismatch, message)
        .hint(format!("review them, then read `groupDigest` with `ollm hook show {} --json`", shell_word(one))))
}
