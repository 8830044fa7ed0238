//! `ollm ext trust`: a person approves the present state of an extension, with all its hooks, in one step.

use std::sync::Arc;

use ollm_app::approving::{Together, Uncovered};
use ollm_app::{App, AppContext, refuse_approval};
use ollm_protocol::{Code, Hook};
use ollm_shell::shell_word;
use ollm_store::Digest;
use serde_json::json;

use super::{loaded, understood};
use crate::command::review;
use crate::error::{Failure, OK};
use crate::interrupt::Interruption;
use crate::output::Output;

pub(super) fn run(
    name: &str,
    digest: Option<&str>,
    uncovered: Uncovered,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_approval("extensions", digest, context)?;
    let app = App::load_as_is(context)?;
    let extension = understood(name, &app)?;
    let whole = Together::extension(extension, uncovered, &app)?;
    // A named digest must fit, also where nothing is left to approve.
    if let Some(named) = digest {
        let hint = format!("review {}, then read its digest with `ollm ext list --json`", extension.root.display());
        review::check_digest(&format!("extension `{name}`"), &whole.digest(), named, hint)?;
    }
    if app.is_approved(extension, &whole.digest(), uncovered) {
        output.tell(&format!("extension `{name}` is trusted already"));
        return Ok(OK);
    }
    if digest.is_none() {
        ask_person(name, &whole, output)?;
    }
    let digest = whole.digest();
    record(name, whole, output)?;
    output.changed(json!({"extension": name, "approved": digest.to_string()}));
    Ok(OK)
}

/// The hooks of an extension that is approved in its present state.
pub(super) fn approved_hooks(name: &str, app: &App) -> Result<Vec<Arc<Hook>>, Failure> {
    let extension = loaded(name, app)?;
    let digest = app.engine.trust.tree_digest(&extension.root).ok();
    if digest.is_some_and(|digest| app.is_approved(extension, &digest, Uncovered::Refused)) {
        return Ok(app.hooks_of(extension));
    }
    Err(Failure::new(
        Code::NotApproved,
        format!("extension `{name}` is not approved in its present state, so nothing of it runs"),
    )
    .hint(format!("`ollm ext trust {}` shows and approves it", shell_word(name))))
}

/// Shows everything that would run, or only what is new, and asks. Without a terminal nothing is approved.
pub(super) fn ask_person(name: &str, whole: &Together<'_>, output: &mut Output) -> Result<(), Failure> {
    let question = format!("Let the extension `{name}` run from now on, as long as nothing of it changes?");
    let by_script = format!("a script may approve by naming the digest: `{}`", by_digest(name, &whole.digest()));
    let (what, reviews) = (format!("extension `{name}`"), whole.reviews());
    review::refuse_unshown(&reviews, &what, (&whole.remedy(), &whole.digest()), output.asker())?;
    // The copies for the review go, whatever ends it.
    let interruption = Interruption::hold(output.asker());
    let screen = review::screen(&reviews);
    let answer = review::ask_yes_unless(&screen, &what, &question, [by_script], &|| interruption.came(), output);
    answer.map_err(|failure| {
        whole.discard();
        interruption.failure().unwrap_or(failure)
    })
}

/// The command by which a script approves.
pub(super) fn by_digest(name: &str, digest: &Digest) -> String {
    format!("ollm ext trust {} --digest {digest}", shell_word(name))
}

/// Keeps the approval of the whole and of each hook; a hook that cannot run now, or that no approval covers, is told and
/// left out.
pub(super) fn record(name: &str, whole: Together<'_>, output: &mut Output) -> Result<(), Failure> {
    let approved = whole.approve().map_err(|error| review::unapproved(&format!("extension `{name}`"), error))?;
    review::tell_approved(&approved, output);
    Ok(())
}
