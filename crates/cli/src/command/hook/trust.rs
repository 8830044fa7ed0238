//! `ollm hook trust` and `untrust`: a person says that exactly this content may run.

use std::sync::Arc;

use ollm_app::approving::{Together, Uncovered, propose};
use ollm_app::{App, AppContext, refuse_agents, refuse_approval};
use ollm_catalog::configuration;
use ollm_protocol::units::counted;
use ollm_protocol::{Code, Hook, Source};
use ollm_shell::shell_word;
use ollm_trust::{Approvable, ApproveError, Proposal, Standing, Term};
use serde_json::json;

use crate::arguments::hook::TrustArguments;
use crate::ask::{PickedChoice, YES};
use crate::command::ext;
use crate::command::review;
use crate::command::trust::tell_floor;
use crate::error::{ErrorKind, Failure, OK};
use crate::output::Output;

mod group;
mod list;

use group::Target;

pub(super) fn approve(arguments: &TrustArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if arguments.list {
        return list::run(context, arguments.json, output);
    }
    if arguments.json {
        output.collect();
    }
    refuse_approval("hooks", arguments.digest.as_deref(), context)?;
    let app = App::load(context)?;
    context.tell_notices(output);
    let digest = arguments.digest.as_deref();
    let way = Way { digest, uncovered: Uncovered::of_flag(arguments.uncovered) };
    if !arguments.all && !arguments.review {
        return approve_named(&arguments.ids, way, &app, output);
    }
    let hooks = waiting(&app);
    if hooks.is_empty() {
        output.tell("no hook waits for approval");
        return Ok(OK);
    }
    if arguments.all {
        let together = Together::hooks(hooks, way.uncovered, &app)?;
        ask_together(&together, output)?;
        return record_all(together, output);
    }
    let each = hooks.iter().map(|hook| Target::One(Arc::clone(hook))).collect();
    approve_each(each, way, &app, output)
}

/// The hooks and groups that were named, each group once.
fn approve_named(ids: &[String], way: Way<'_>, app: &App, output: &mut Output) -> Result<u8, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for id in ids {
        let target = group::target(id, way.digest, app)?;
        let known = |other: &Target| matches!((other, &target), (Target::Group(a), Target::Group(b)) if a == b);
        if !targets.iter().any(known) {
            targets.push(target);
        }
    }
    approve_each(targets, way, app, output)
}

/// Approves one after the other; a refusal of one does not stop the next.
fn approve_each(targets: Vec<Target>, way: Way<'_>, app: &App, output: &mut Output) -> Result<u8, Failure> {
    let only = targets.len() == 1;
    let mut refused = None;
    for target in targets {
        let done = match target {
            Target::One(hook) => approve_one(&hook, way, app, output).map(|()| OK),
            Target::Group(group) => group::approve(&group, way, app, output),
        };
        match done {
            Ok(_) => {}
            Err(failure) if only || failure.kind != ErrorKind::Untrusted => return Err(failure),
            Err(failure) => refused = Some(failure),
        }
    }
    refused.map_or(Ok(OK), Err)
}

pub(super) fn withdraw(ids: &[String], all: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "change approvals")?;
    if all {
        let variable = |name: &str| context.variable(name);
        let (config, _) = configuration(&context.places, &variable, &context.overrides);
        let trust = context.trust(&config);
        let removed = trust.withdraw_all().map_err(|error| review::unchanged(&error))?;
        let are = if removed == 1 { "is" } else { "are" };
        output.tell(&format!("{} {are} withdrawn", counted(removed, "approval")));
        tell_floor(&trust, context, output);
        return Ok(OK);
    }
    let app = App::load(context)?;
    context.tell_notices(output);
    let trust = &app.engine.trust;
    let (mut keys, mut said) = (Vec::new(), Vec::new());
    for id in ids {
        // One member is withdrawn alone; the name of the group withdraws all of them.
        let hooks = match (app.hook(id), app.hooks_in_group(id)) {
            (Ok(hook), _) => vec![hook],
            (Err(_), members) if !members.is_empty() => members,
            (Err(error), _) => return Err(error.into()),
        };
        for hook in hooks {
            let of_extension = app.extensions.of_hook(&hook.spec);
            let own = match of_extension {
                Some(extension) => ext::approval_keys(extension, &app),
                // Its id in its own project, wherever we are.
                None => vec![(hook.source(), Approvable::id(&*hook).into_owned())],
            };
            let is_new = |key: &(String, String)| !keys.contains(key);
            let known = trust.counting();
            let removed = own.iter().any(|key| is_new(key) && known.find(&key.0, &key.1).is_some());
            let what = if removed { "is no longer approved" } else { "was not approved" };
            said.push(format!("hook `{}` {what}", hook.id()));
            keys.extend(own);
        }
    }
    let removed = trust.withdraw(&keys).map_err(|error| review::unchanged(&error))?;
    for line in &said {
        output.tell(line);
    }
    if removed > 0 {
        tell_floor(trust, context, output);
    }
    Ok(OK)
}

/// All hooks that wait for approval; those of extensions wait together with the rest of theirs.
fn waiting(app: &App) -> Vec<Arc<Hook>> {
    let others =
        app.hooks().into_iter().filter(|hook| hook.spec.source != Source::User && hook.spec.extension.is_none());
    others.filter(|hook| app.standing(hook) != Standing::Approved).collect()
}

fn approve_one(hook: &Hook, way: Way<'_>, app: &App, output: &mut Output) -> Result<(), Failure> {
    if let Some(extension) = &hook.spec.extension {
        let message =
            format!("hook `{}` belongs to the extension `{extension}`, which is approved as a whole", hook.id());
        return Err(Failure::new(Code::Elsewhere, message)
            .hint(format!("`ollm ext trust {}` approves it", shell_word(extension))));
    }
    if app.standing(hook) == Standing::Approved {
        // A given digest must match, even if there is nothing left to approve.
        if let Some(named) = way.digest {
            check_digest(hook, &propose(hook, way.uncovered, app)?, named)?;
        }
        output.tell(&format!("hook `{}` is trusted already", hook.id()));
        return Ok(());
    }
    let proposal = propose(hook, way.uncovered, app)?;
    let term = match way.digest {
        Some(named) => check_digest(hook, &proposal, named)?,
        None => ask_person(hook, &proposal, way, app, output)?,
    };
    record(hook, &proposal, term, app, output)
}

/// Shows all of them, and asks once.
fn ask_together(together: &Together<'_>, output: &mut Output) -> Result<(), Failure> {
    let count = together.members().len();
    let question = format!("Let these {count} hooks run from now on, as long as nothing of them changes?");
    let reviews = together.reviews();
    let by_digest = (&together.remedy(), &together.digest());
    review::refuse_unshown(&reviews, "the list of hooks", by_digest, output.asker())?;
    match review::ask(&review::screen(&reviews), &question, YES, output) {
        PickedChoice::One(()) => Ok(()),
        PickedChoice::No => Err(Failure::new(Code::Declined, "nothing was approved")),
        PickedChoice::Nobody => Err(nobody("the hooks were not approved", "ID")
            .hint("the hooks of one group are approved at once by their `groupDigest`, which it prints as well")),
    }
}

/// Keeps the approval of each, for as long as nothing of it changes.
fn record_all(together: Together<'_>, output: &mut Output) -> Result<u8, Failure> {
    let approved = together.approve().map_err(|error| review::unapproved("the hooks", error))?;
    review::tell_approved(&approved, output);
    for (hook, digest) in &approved.hooks {
        output.changed(json!({"hook": hook.id(), "approved": digest.to_string()}));
    }
    Ok(OK)
}

/// How an approval is given.
#[derive(Clone, Copy)]
struct Way<'a> {
    /// The digest that a script names.
    digest: Option<&'a str>,
    uncovered: Uncovered,
}

fn check_digest(hook: &Hook, proposal: &Proposal, named: &str) -> Result<Term, Failure> {
    let hint = format!("review it, then read its digest with `ollm hook show {} --json`", shell_word(hook.id()));
    review::check_digest(&format!("hook `{}`", hook.id()), &proposal.identity.digest, named, hint)?;
    Ok(Term::Always)
}

/// Shows everything that would run, and asks. Without a terminal nothing is approved.
fn ask_person(hook: &Hook, proposal: &Proposal, way: Way<'_>, app: &App, output: &mut Output) -> Result<Term, Failure> {
    let review = app.engine.trust.review(hook, proposal);
    let what = format!("hook `{}`", hook.id());
    let by_digest = (&hook.remedy(), &proposal.identity.digest);
    review::refuse_unshown(std::slice::from_ref(&review), &what, by_digest, output.asker())?;
    let mut text = review.to_string();
    let question = "May this hook run, as long as nothing of it changes?";
    let mut offered = Vec::new();
    let covered = proposal.uncovered().is_empty() || way.uncovered == Uncovered::Accepted;
    if covered {
        offered.push(("[a]lways", Term::Always));
    } else {
        text.push_str(
            "\nIt cannot be approved for good, because of what is uncovered; `--uncovered` does so all the same.\n",
        );
    }
    if app.engine.trust.key().is_none() {
        // An approval for one run or a session changes the list when it is used up, and only a person can change a
        // signed list.
        offered.extend([("one [s]ession", Term::Session(None)), ("[o]nce", Term::Once)]);
    }
    if offered.is_empty() {
        let parts = ApproveError::Uncovered(proposal.uncovered().to_vec());
        return Err(review::unapproved(&what, parts));
    }
    match review::ask(&text, question, &offered, output) {
        PickedChoice::One(term) => Ok(term),
        PickedChoice::No => Err(Failure::new(Code::Declined, format!("{what} was not approved"))),
        PickedChoice::Nobody => Err(nobody(&format!("{what} was not approved"), &shell_word(hook.id()))),
    }
}

fn nobody(what: &str, id: &str) -> Failure {
    review::nobody_to_ask(what)
        .hint(format!("a script may approve by naming the digest: `ollm hook trust {id} --digest sha256:…`"))
        .hint(format!("`ollm hook show {id} --json` prints the digest, after you reviewed the hook"))
}

fn record(hook: &Hook, proposal: &Proposal, term: Term, app: &App, output: &mut Output) -> Result<(), Failure> {
    let until = match term {
        Term::Always => "",
        Term::Once => " for its next run",
        Term::Session(_) => " for the next session that meets it",
    };
    let approved = app.engine.trust.approve(hook, proposal, term, &app.engine.environment().trust_context());
    approved.map_err(|error| review::unapproved(&format!("hook `{}`", hook.id()), error))?;
    output.tell(&review::told(hook, &proposal.identity.digest, until));
    output.changed(json!({"hook": hook.id(), "approved": proposal.identity.digest.to_string()}));
    Ok(())
}
