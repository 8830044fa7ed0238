//! What was found to be approved, for as long as nothing that was looked at has changed.
//!
//! A check reads, hashes and compares; the next one of the same thing needs one look at each file: a file whose state is
//! what it was when it was hashed has the content it had. The rule is that of [`FileDigests`](ollm_store::FileDigests): only
//! what had been quiet for a while is remembered, because a change that follows at once could have the same time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use ollm_store::Owners;

use crate::approvable::Approvable;
use crate::approvals::Standing;
use crate::approvals_file::Contents;
use crate::content_store::States;
use crate::context::TrustContext;
use crate::identity::{DependsOn, Identity, KnownDefinition, SeenStates, on_path, place_of, state_of};
use crate::trust::{Run, Trust};

/// More folders that one thing runs in are not remembered.
const MOST_FOLDERS: usize = 64;

/// A check that found something approved for good, with all that it depended on.
#[derive(Debug)]
pub(crate) struct Checked {
    approvals: Arc<Contents>,
    project: Option<PathBuf>,
    home: Option<PathBuf>,
    /// Files and folders, through links.
    states: SeenStates,
    /// The name behind `#!/usr/bin/env`, and what it meant.
    interpreter: Option<(String, PathBuf)>,
    /// Whose the files are, and the folders on the way to them.
    owners: Owners,
    /// The copy it runs from.
    copy: Option<Arc<States>>,
    run: Arc<Run>,
}

impl Trust {
    /// What runs for something that was found approved before, if all of that is as it was.
    pub(crate) fn recall<T: Approvable>(
        &self,
        thing: &T,
        defined: &KnownDefinition,
        context: &TrustContext<'_>,
    ) -> Option<Arc<Run>> {
        let known = Arc::clone(checks(defined).get(&place_of(context))?);
        let Checked { approvals, project, home, states, interpreter, owners, copy, run } = &*known;
        let is_same_program = || {
            // Another look at a file that is looked at anyway says nothing new.
            states.iter().any(|(path, _)| path == run.program())
                || thing.program(context).is_ok_and(|program| program == run.program())
        };
        let is_same_interpreter =
            |(name, path): &(String, PathBuf)| on_path(name, context).is_ok_and(|found| found == *path);
        let holds = project.as_deref() == context.project
            && home.as_deref() == context.home
            && Arc::ptr_eq(approvals, &self.approvals.current())
            && states.iter().all(|(path, state)| state_of(path) == *state)
            && is_same_program()
            && interpreter.as_ref().is_none_or(is_same_interpreter)
            && owners.still_hold()
            && copy.as_ref().is_none_or(|states| self.copies.still_holds(states));
        holds.then(|| Arc::clone(run))
    }

    /// Remembers a check whose every part is remembered.
    pub(crate) fn note_checked<T: Approvable>(
        &self,
        thing: &T,
        defined: &KnownDefinition,
        identity: &Identity,
        looked_at: (DependsOn, Owners),
        run: &Arc<Run>,
        context: &TrustContext<'_>,
    ) {
        let checked = self.checked(thing, defined, identity, looked_at, run, context);
        let mut checks = checks(defined);
        if checks.len() >= MOST_FOLDERS {
            checks.clear();
        }
        match checked {
            Some(checked) => drop(checks.insert(place_of(context), Arc::new(checked))),
            None => drop(checks.remove(&place_of(context))),
        }
    }

    fn checked<T: Approvable>(
        &self,
        thing: &T,
        defined: &KnownDefinition,
        identity: &Identity,
        (depends_on, owners): (DependsOn, Owners),
        run: &Arc<Run>,
        context: &TrustContext<'_>,
    ) -> Option<Checked> {
        let approvals = self.approvals.current();
        let standing = approvals.0.check(&identity.source, &thing.id(), &identity.hash, &identity.digest);
        if standing != Standing::Approved {
            return None;
        }
        let mut states = SeenStates::clone(&*self.memory.seen(defined, context)?);
        for file in depends_on.files {
            let state = Some(self.memory.digests.remembered(&file)?);
            match states.iter().find(|(path, _)| *path == file) {
                Some((_, seen)) if *seen != state => return None,
                Some(_) => {}
                None => states.push((file, state)),
            }
        }
        let copy = run.copy();
        let copy_states = copy.map(|copy| self.copies.good_states(&copy.folder));
        if copy_states.as_ref().is_some_and(Option::is_none) {
            return None;
        }
        Some(Checked {
            approvals,
            project: context.project.map(PathBuf::from),
            home: context.home.map(PathBuf::from),
            states,
            interpreter: depends_on.interpreter.zip(identity.program.clone()),
            owners,
            copy: copy_states.flatten(),
            run: Arc::clone(run),
        })
    }
}

fn checks(defined: &KnownDefinition) -> MutexGuard<'_, HashMap<PathBuf, Arc<Checked>>> {
    defined.checked.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
