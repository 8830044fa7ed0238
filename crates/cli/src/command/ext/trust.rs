//! `ollm ext trust`: a person says that an extension may run exactly as it is, with all its hooks, in one step.

use std::sync::Arc;

use ollm_app::{App, AppContext, refuse_approval};
use ollm_catalog::Extension;
use ollm_protocol::{Code, Hook};
use ollm_shell::shell_word;
use ollm_store::{Digest, digest_bytes, read_bounded};
use ollm_trust::{Approvable, ApproveError, ContentStoreError, Proposal, Standing, Term, Unready};

use super::{consent, hooks, loaded, understood};
use crate::approver::{AskedAbout, HookGroup};
use crate::command::review::{self, Uncovered};
use crate::error::{Failure, OK};
use crate::output::Output;

/// Larger manifests are not read.
const LARGEST_MANIFEST: u64 = 1 << 20;

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
    let whole = propose(extension, &app)?;
    // Whoever names a digest counts on it, also where nothing is left to approve.
    if let Some(named) = digest {
        let hint = format!("review {}, then read its digest with `ollm ext list --json`", extension.root.display());
        review::check_digest(&format!("extension `{name}`"), &whole.identity.digest, named, hint)?;
    }
    if is_approved(extension, &whole.identity.digest, uncovered, &app) {
        output.tell(&format!("extension `{name}` is trusted already"));
        return Ok(OK);
    }
    if digest.is_none() {
        ask_person(extension, &whole, &app, output)?;
    }
    record(extension, &whole, uncovered, &app, output)?;
    Ok(OK)
}

/// The hooks of an extension that is approved as it is.
pub(super) fn approved_hooks(name: &str, app: &App) -> Result<Vec<Arc<Hook>>, Failure> {
    let extension = loaded(name, app)?;
    let digest = app.engine.trust.tree_digest(&extension.root).ok();
    if digest.is_some_and(|digest| is_approved(extension, &digest, Uncovered::Refused, app)) {
        return Ok(hooks(extension, app));
    }
    Err(Failure::new(Code::NotApproved, format!("extension `{name}` is not approved as it is, so nothing of it runs"))
        .hint(format!("`ollm ext trust {}` shows and approves it", shell_word(name))))
}

/// The extension as it is now, with a copy to look at.
pub(super) fn propose(extension: &Extension, app: &App) -> Result<Proposal, Failure> {
    let context = app.engine.environment().trust_context();
    let whole = app.engine.trust.propose(&consent::folder(extension), &context).map_err(|why| {
        Failure::new(Code::Unreadable, format!("extension `{}` cannot be approved: {why}", extension.name))
    })?;
    let manifest = whole.copy_folder().map(|copy| copy.join("manifest.json"));
    let manifest = manifest.and_then(|file| read_bounded(&file, LARGEST_MANIFEST).ok().flatten());
    // What is shown was read earlier than the copy was made.
    if manifest.map(|bytes| digest_bytes(&bytes)) == extension.digest { Ok(whole) } else { Err(changed(extension)) }
}

fn changed(extension: &Extension) -> Failure {
    let message = format!("extension `{}` changed while it was looked at; nothing was approved", extension.name);
    Failure::new(Code::DigestMismatch, message).hint("look through it again")
}

/// Whether the whole, and every hook that can run at all, is approved as it is. Hooks that no approval covers are left out
/// unless they are wanted.
pub(super) fn is_approved(extension: &Extension, digest: &Digest, uncovered: Uncovered, app: &App) -> bool {
    let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
    let whole = trust.extension_standing(&extension.name, &extension.root, digest) == Standing::Approved;
    let left_out = |hook: &Hook| {
        uncovered == Uncovered::Refused && !trust.uncovered(hook, &context).unwrap_or_default().is_empty()
    };
    whole
        && hooks(extension, app).iter().all(|hook| {
            let identity = trust.identity(&**hook, &context).ok();
            identity.is_none_or(|identity| trust.standing(&**hook, Some(&identity)) == Standing::Approved)
                || left_out(hook)
        })
}

/// Shows everything that would run, or only what is new, and asks. Without a terminal nobody approves anything.
pub(super) fn ask_person(
    extension: &Extension,
    whole: &Proposal,
    app: &App,
    output: &mut Output,
) -> Result<(), Failure> {
    let name = &extension.name;
    let question = format!("Let the extension `{name}` run from now on, as long as nothing of it changes?");
    let by_script = format!("a script may approve by naming the digest: `{}`", by_digest(name, &whole.identity.digest));
    let screen = screen(extension, whole, app);
    review::ask_yes(&screen, &format!("extension `{name}`"), &question, [by_script], output)
}

fn screen(extension: &Extension, whole: &Proposal, app: &App) -> String {
    review::text(&consent::review(extension, whole, uncovered_parts(extension, app), app))
}

/// An extension, for the question before one of its hooks runs.
pub(crate) struct ExtensionGroup {
    name: String,
    app: App,
    whole: Proposal,
    members: Vec<AskedAbout>,
}

impl ExtensionGroup {
    pub(crate) fn of(name: String, app: App) -> Result<ExtensionGroup, Failure> {
        let extension = understood(&name, &app)?;
        let whole = propose(extension, &app)?;
        let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
        let member = |hook: Arc<Hook>| {
            let part = trust.propose_part(&whole, &*hook, &context).ok()?;
            Some((Approvable::id(&*hook).into_owned(), part.identity.digest.to_string()))
        };
        let members = hooks(extension, &app).into_iter().filter_map(member).collect();
        Ok(ExtensionGroup { name, app, whole, members })
    }
}

impl HookGroup for ExtensionGroup {
    fn title(&self) -> String {
        format!("The extension `{}`", self.name)
    }

    fn screen(&self) -> String {
        understood(&self.name, &self.app).map(|one| screen(one, &self.whole, &self.app)).unwrap_or_default()
    }

    fn members(&self) -> Vec<AskedAbout> {
        self.members.clone()
    }

    fn approve(&self, output: &mut Output) -> Result<(), Failure> {
        record(understood(&self.name, &self.app)?, &self.whole, Uncovered::Refused, &self.app, output)
    }
}

/// What hooks and servers of an extension may run without being part of what is approved.
fn uncovered_parts(extension: &Extension, app: &App) -> Vec<String> {
    let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
    let of_hooks = hooks(extension, app).into_iter().flat_map(|hook| {
        let parts = trust.uncovered(&*hook, &context).unwrap_or_default();
        parts.into_iter().map(move |part| format!("hook `{}`: {part}", hook.spec.name))
    });
    of_hooks.chain(uncovered_servers(extension, app)).collect()
}

fn uncovered_servers(extension: &Extension, app: &App) -> Vec<String> {
    let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
    let servers = extension.servers_in(&extension.root).0.into_iter();
    let parts = servers.flat_map(|server| {
        let parts = trust.uncovered(&server, &context).unwrap_or_default();
        parts.into_iter().map(move |part| format!("server `{}`: {part}", server.name))
    });
    parts.collect()
}

/// The command by which a script approves.
pub(super) fn by_digest(name: &str, digest: &Digest) -> String {
    format!("ollm ext trust {} --digest {digest}", shell_word(name))
}

/// Keeps the approval of the whole and of each hook; a hook that cannot run now, or that no approval covers, is told and
/// left out.
pub(super) fn record(
    extension: &Extension,
    whole: &Proposal,
    uncovered: Uncovered,
    app: &App,
    output: &mut Output,
) -> Result<(), Failure> {
    let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
    let unapproved = |error| review::unapproved(&format!("extension `{}`", extension.name), error);
    let servers = uncovered_servers(extension, app);
    if uncovered == Uncovered::Refused && !servers.is_empty() {
        return Err(unapproved(ApproveError::Uncovered(servers)));
    }
    let folder = consent::folder(extension);
    let mut approvals = vec![trust.approval_of(&folder, whole, Term::Always, &context).map_err(unapproved)?];
    for hook in hooks(extension, app) {
        let proposal = match trust.propose_part(whole, &*hook, &context) {
            Ok(proposal) => uncovered.applied(proposal),
            Err(Unready::NoCopy(ContentStoreError::Changed { .. })) => return Err(changed(extension)),
            Err(why) => {
                output.tell(&format!("hook `{}` cannot run: {why}", hook.id()));
                continue;
            }
        };
        match trust.approval_of(&*hook, &proposal, Term::Always, &context) {
            Ok(approval) => approvals.push(approval),
            Err(error) => {
                output.tell(&format!("hook `{}` was not approved: {error}; `--uncovered` approves it", hook.id()));
            }
        }
    }
    trust.approve_together(approvals).map_err(unapproved)?;
    output.tell(&format!("extension `{}` is approved as {}", extension.name, whole.identity.digest));
    Ok(())
}
