//! Hooks that are approved together: a project's `hooks/trusted` folder, in one step, bound to the content of each.

use std::sync::Arc;

use ollm_app::App;
use ollm_protocol::{Code, Hook};
use ollm_shell::shell_word;
use ollm_trust::{Approvable, Proposal, Standing};

use super::{Way, ask_together, propose, record_all, screens, standing};
use crate::approver::{AskedAbout, HookGroup};
use crate::command::review::Uncovered;
use crate::error::{Failure, OK};
use crate::output::Output;

/// The hooks of a group that wait for approval, for the question before one of them runs.
pub(crate) struct FolderGroup {
    name: String,
    app: App,
    waiting: Vec<Arc<Hook>>,
    proposals: Vec<Proposal>,
}

impl FolderGroup {
    pub(crate) fn of(name: String, app: App) -> Result<FolderGroup, Failure> {
        let mut waiting = members(&name, &app);
        waiting.retain(|hook| standing(hook, &app) != Standing::Approved);
        let way = Way { digest: None, uncovered: Uncovered::Refused };
        let proposals = waiting.iter().map(|hook| propose(hook, way, &app)).collect::<Result<_, _>>()?;
        Ok(FolderGroup { name, app, waiting, proposals })
    }
}

impl HookGroup for FolderGroup {
    fn title(&self) -> String {
        format!("The group `{}` of {} hooks", self.name, self.waiting.len())
    }

    fn screen(&self) -> String {
        screens(&self.waiting, &self.proposals, &self.app)
    }

    fn members(&self) -> Vec<AskedAbout> {
        let digests = self.proposals.iter().map(|proposal| proposal.identity.digest.to_string());
        self.waiting.iter().map(|hook| Approvable::id(&**hook).into_owned()).zip(digests).collect()
    }

    fn approve(&self, output: &mut Output) -> Result<(), Failure> {
        record_all(&self.waiting, &self.proposals, &self.app, output).map(drop)
    }
}

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
        Err(_) if !members(id, app).is_empty() => return Ok(Target::Group(id.to_owned())),
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

/// The hooks of a group, in order.
pub(crate) fn members(group: &str, app: &App) -> Vec<Arc<Hook>> {
    app.hooks().into_iter().filter(|hook| hook.spec.group.as_deref() == Some(group)).collect()
}

/// What an approval of all members is bound to: their digests, in an order that does not depend on their names.
pub(crate) fn digest<'a>(members: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut digests = members.collect::<Option<Vec<&str>>>()?;
    digests.sort_unstable();
    Some(ollm_store::digest_bytes(digests.join("\n").as_bytes()).to_string())
}

/// Approves all members: on a terminal after they were shown, else by their common digest.
pub(super) fn approve(group: &str, way: Way<'_>, app: &App, output: &mut Output) -> Result<u8, Failure> {
    let all = members(group, app);
    let waiting: Vec<Arc<Hook>> =
        all.iter().filter(|hook| standing(hook, app) != Standing::Approved).cloned().collect();
    let propose_all = || all.iter().map(|hook| propose(hook, way, app)).collect::<Result<Vec<Proposal>, _>>();
    if waiting.is_empty() {
        // Whoever names a digest counts on it, also where nothing is left to approve.
        if let Some(named) = way.digest {
            check(group, &all, &propose_all()?, named)?;
        }
        output.tell(&format!("all {} hooks of the group `{group}` are trusted already", all.len()));
        return Ok(OK);
    }
    let proposals = propose_all()?;
    match way.digest {
        Some(named) => check(group, &all, &proposals, named)?,
        None => ask_together(&all, &proposals, app, output)?,
    }
    record_all(&all, &proposals, app, output)
}

fn check(group: &str, all: &[Arc<Hook>], proposals: &[Proposal], named: &str) -> Result<(), Failure> {
    let digests: Vec<String> = proposals.iter().map(|proposal| proposal.identity.digest.to_string()).collect();
    if digest(digests.iter().map(|digest| Some(digest.as_str()))).as_deref() == Some(named) {
        return Ok(());
    }
    let message =
        format!("the {} hooks of the group `{group}` are not what {named} names; nothing was approved", all.len());
    let one = all.first().map_or(group, |hook| hook.id());
    Err(Failure::new(Code::DigestMismatch, message)
        .hint(format!("review them, then read `groupDigest` with `ollm hook show {} --json`", shell_word(one))))
}
