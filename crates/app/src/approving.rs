//! Approves several things in one step: an extension with all its hooks, or the hooks of one group.
//!
//! The commands, the question before a hook runs and embedding programs all approve this way.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use ollm_catalog::Extension;
use ollm_protocol::{Code, Hook, Remedy};
use ollm_store::{Digest, digest_bytes, read_bounded};
use ollm_trust::{Approvable, ApproveError, ContentStoreError, Proposal, Review, Standing, StartRefusal, Term};

use crate::{App, AppError, extension_review};

/// Larger manifests are not read.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// Whether to approve for good although some parts are not covered by the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncovered {
    /// Parts that are not covered are left out.
    Refused,
    /// Parts that are not covered are approved too.
    Accepted,
}

impl Uncovered {
    /// The choice that a command-line flag stands for.
    pub fn of_flag(given: bool) -> Uncovered {
        if given { Uncovered::Accepted } else { Uncovered::Refused }
    }

    /// The proposal, made approvable for good if this choice allows it.
    pub fn applied(self, proposal: Proposal) -> Proposal {
        match self {
            Uncovered::Refused => proposal,
            Uncovered::Accepted => proposal.accept_uncovered(),
        }
    }
}

/// Hooks that are approved together, alone or with their extension.
#[derive(Debug)]
pub struct Together<'a> {
    app: &'a App,
    /// The extension as a whole, with a copy to look at.
    whole: Option<(&'a Extension, Proposal)>,
    hooks: Vec<(Arc<Hook>, Result<Proposal, StartRefusal>)>,
    uncovered: Uncovered,
}

/// The result of an approval.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ApprovalResult {
    /// The extension they belong to, with the digest of the whole approval.
    pub extension: Option<(String, Digest)>,
    /// The hooks that may run from now on, each with the digest of its approval.
    pub hooks: Vec<(Arc<Hook>, Digest)>,
    /// The hooks that are left out, each with the reason.
    pub left_out: Vec<(Arc<Hook>, LeftOut)>,
}

/// Why a hook is not approved with the others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOut {
    /// It cannot run now.
    #[error(transparent)]
    Unready(StartRefusal),
    /// No approval covers the whole hook.
    #[error(transparent)]
    Refused(ApproveError),
}

impl<'a> Together<'a> {
    /// An extension with all its hooks.
    ///
    /// # Errors
    ///
    /// It cannot be read, or it changed since it was loaded.
    pub fn extension(extension: &'a Extension, uncovered: Uncovered, app: &'a App) -> Result<Together<'a>, AppError> {
        let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
        let whole = trust.propose(&extension_review::folder(extension), &context).map_err(|why| {
            AppError::new(Code::Unreadable, format!("extension `{}` cannot be approved: {why}", extension.name))
        })?;
        let manifest = whole.copy_folder().map(|copy| copy.join("manifest.json"));
        let manifest = manifest.and_then(|file| read_bounded(&file, LARGEST_MANIFEST).ok().flatten());
        // The manifest was read before the copy was made.
        if manifest.map(|bytes| digest_bytes(&bytes)) != extension.digest {
            return Err(changed(extension));
        }
        let mut hooks = Vec::new();
        for hook in app.hooks_of(extension) {
            let part = match trust.propose_part(&whole, &*hook, &context) {
                Err(StartRefusal::NoCopy(ContentStoreError::Changed { .. })) => return Err(changed(extension)),
                part => part.map(|part| uncovered.applied(part)),
            };
            hooks.push((hook, part));
        }
        Ok(Together { app, whole: Some((extension, whole)), hooks, uncovered })
    }

    /// Hooks that belong to no extension.
    ///
    /// # Errors
    ///
    /// One of them cannot be read.
    pub fn hooks(hooks: Vec<Arc<Hook>>, uncovered: Uncovered, app: &'a App) -> Result<Together<'a>, AppError> {
        let hooks = hooks.into_iter().map(|hook| {
            let proposal = propose(&hook, uncovered, app)?;
            Ok((hook, Ok(proposal)))
        });
        Ok(Together { app, whole: None, hooks: hooks.collect::<Result<_, AppError>>()?, uncovered })
    }

    /// The extension or group that a hook in question is approved with. `None` if it stands alone, or if it has changed
    /// since the question came up.
    pub fn around(id: &str, digest: &Digest, app: &'a App) -> Option<Together<'a>> {
        let hook = app.hooks().into_iter().find(|hook| Approvable::id(&**hook) == id)?;
        let group = match (app.extensions.of_hook(&hook.spec), &hook.spec.group) {
            (Some(extension), _) if !extension.is_broken() => {
                Together::extension(extension, Uncovered::Refused, app).ok()?
            }
            (None, Some(group)) => {
                let mut waiting = app.hooks_in_group(group);
                waiting.retain(|hook| app.standing(hook) != Standing::Approved);
                Together::hooks(waiting, Uncovered::Refused, app).ok()?
            }
            _ => return None,
        };
        group.members().contains(&(id.to_owned(), *digest)).then_some(group)
    }

    /// Their title, at the beginning of a sentence.
    pub fn title(&self) -> String {
        let group = self.hooks.first().and_then(|(hook, _)| hook.spec.group.as_deref());
        match (&self.whole, group) {
            (Some((extension, _)), _) => format!("The extension `{}`", extension.name),
            (None, Some(group)) => format!("The group `{group}` of {} hooks", self.hooks.len()),
            (None, None) => format!("A list of {} hooks", self.hooks.len()),
        }
    }

    /// The command that approves them for good; hooks that only share a list are approved one by one.
    pub fn remedy(&self) -> Remedy {
        let group = self.hooks.first().and_then(|(hook, _)| hook.spec.group.clone());
        match (&self.whole, group) {
            (Some((extension, _)), _) => Remedy::ApproveExtension(extension.name.clone()),
            (None, group) => Remedy::ApproveHook(group.unwrap_or_else(|| "ID".to_owned())),
        }
    }

    /// Everything that would run, for the person to review.
    pub fn reviews(&self) -> Vec<Review> {
        let trust = &self.app.engine.trust;
        if let Some((extension, whole)) = &self.whole {
            return vec![extension_review::review(extension, whole, uncovered_parts(extension, self.app), self.app)];
        }
        self.ready().map(|(hook, proposal)| trust.review(&**hook, proposal)).collect()
    }

    /// The hooks that can be approved, as an approval would bind them: id and digest.
    pub fn members(&self) -> Vec<(String, Digest)> {
        let digests = |(hook, proposal): (&Arc<Hook>, &Proposal)| {
            (Approvable::id(&**hook).into_owned(), proposal.identity.digest)
        };
        self.ready().map(digests).collect()
    }

    /// The digest that an approval of all of them is bound to.
    pub fn digest(&self) -> Digest {
        match &self.whole {
            Some((_, whole)) => whole.identity.digest,
            None => group_digest(self.ready().map(|(_, proposal)| proposal.identity.digest)),
        }
    }

    /// Removes the copies that were made for the review, if nothing is approved. Those of earlier approvals stay.
    pub fn discard(&self) {
        let whole = self.whole.iter().map(|(_, whole)| whole);
        let proposals = whole.chain(self.ready().map(|(_, proposal)| proposal));
        let copies: Vec<&Path> = proposals.filter_map(Proposal::copy_folder).collect();
        if !copies.is_empty() {
            self.app.engine.trust.drop_copies(&|copy| copies.contains(&copy));
        }
    }

    /// Saves an approval of everything that can be approved. It holds until any of that changes.
    ///
    /// # Errors
    ///
    /// A server of the extension is not covered and that is refused, or the list of approvals cannot be changed.
    pub fn approve(self) -> Result<ApprovalResult, ApproveError> {
        let (trust, context) = (&self.app.engine.trust, self.app.engine.environment().trust_context());
        let mut approvals = Vec::new();
        if let Some((extension, whole)) = &self.whole {
            let servers = uncovered_servers(extension, self.app);
            if self.uncovered == Uncovered::Refused && !servers.is_empty() {
                return Err(ApproveError::Uncovered(servers));
            }
            let folder = extension_review::folder(extension);
            approvals.push(trust.approval_of(&folder, whole, Term::Always, &context)?);
        }
        let extension = self.whole.map(|(extension, whole)| (extension.name.clone(), whole.identity.digest));
        let mut approved = ApprovalResult { extension, ..ApprovalResult::default() };
        for (hook, proposal) in self.hooks {
            let kept = proposal.map_err(LeftOut::Unready).and_then(|proposal| {
                let approval = trust.approval_of(&*hook, &proposal, Term::Always, &context);
                approval.map(|approval| (approval, proposal.identity.digest)).map_err(LeftOut::Refused)
            });
            match kept {
                Ok((approval, digest)) => {
                    approvals.push(approval);
                    approved.hooks.push((hook, digest));
                }
                Err(why) => approved.left_out.push((hook, why)),
            }
        }
        trust.approve_together(approvals)?;
        Ok(approved)
    }

    fn ready(&self) -> impl Iterator<Item = (&Arc<Hook>, &Proposal)> {
        self.hooks.iter().filter_map(|(hook, proposal)| Some((hook, proposal.as_ref().ok()?)))
    }
}

impl App {
    /// The hooks of an extension: the registered ones, or the declared ones where it is off.
    pub fn hooks_of(&self, extension: &Extension) -> Vec<Arc<Hook>> {
        let registered =
            |hook: &Hook| self.engine.registry.get(hook.id()).filter(|found| found.spec.tree == hook.spec.tree);
        let hooks = extension.hooks.iter();
        hooks.map(|hook| registered(hook).cloned().unwrap_or_else(|| Arc::new(hook.clone()))).collect()
    }

    /// The hooks of a group, in order.
    pub fn hooks_in_group(&self, group: &str) -> Vec<Arc<Hook>> {
        self.hooks().into_iter().filter(|hook| hook.spec.group.as_deref() == Some(group)).collect()
    }

    /// The present state of a hook's approval.
    pub fn standing(&self, hook: &Hook) -> Standing {
        let identity = self.engine.trust.identity(hook, &self.engine.environment().trust_context()).ok();
        self.engine.trust.standing(hook, identity.as_ref())
    }

    /// Whether an extension is approved in its present state, with every hook of it that can run. `uncovered` says
    /// whether hooks that no approval covers count.
    pub fn is_approved(&self, extension: &Extension, digest: &Digest, uncovered: Uncovered) -> bool {
        let (trust, context) = (&self.engine.trust, self.engine.environment().trust_context());
        let whole = trust.extension_standing(&extension.name, &extension.root, digest) == Standing::Approved;
        let left_out = |hook: &Hook| {
            uncovered == Uncovered::Refused && !trust.uncovered(hook, &context).unwrap_or_default().is_empty()
        };
        whole
            && self.hooks_of(extension).iter().all(|hook| {
                let identity = trust.identity(&**hook, &context).ok();
                identity.is_none_or(|identity| trust.standing(&**hook, Some(&identity)) == Standing::Approved)
                    || left_out(hook)
            })
    }
}

/// Proposes one hook in its present state for review and approval.
///
/// # Errors
///
/// It cannot be read.
pub fn propose(hook: &Hook, uncovered: Uncovered, app: &App) -> Result<Proposal, AppError> {
    let proposal = app.engine.trust.propose(hook, &app.engine.environment().trust_context());
    let proposal = proposal
        .map_err(|why| AppError::new(Code::Unreadable, format!("hook `{}` cannot be approved: {why}", hook.id())))?;
    Ok(uncovered.applied(proposal))
}

/// The digest that an approval of several hooks is bound to. It does not depend on the order of their names.
pub fn group_digest<D: Display>(members: impl IntoIterator<Item = D>) -> Digest {
    let mut digests: Vec<String> = members.into_iter().map(|digest| digest.to_string()).collect();
    digests.sort_unstable();
    digest_bytes(digests.join("\n").as_bytes())
}

fn changed(extension: &Extension) -> AppError {
    let message = format!("extension `{}` changed while it was looked at; nothing was approved", extension.name);
    AppError::new(Code::DigestMismatch, message).hint("look through it again")
}

/// Parts that hooks and servers of an extension may run, but that the approval does not cover.
fn uncovered_parts(extension: &Extension, app: &App) -> Vec<String> {
    let (trust, context) = (&app.engine.trust, app.engine.environment().trust_context());
    let of_hooks = app.hooks_of(extension).into_iter().flat_map(|hook| {
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
