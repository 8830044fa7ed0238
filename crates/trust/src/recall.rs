//! Remembers that something was approved, as long as nothing that was checked has changed.
//!
//! A check reads, hashes and compares. The next check of the same thing only looks at the state of each file. If the
//! state is the same as at hashing, so is the content. As in [`FileDigests`](ollm_store::FileDigests), only files that
//! were quiet for a while are remembered. A change right after hashing could leave the same timestamp.

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

/// The most working folders that are remembered for one thing.
const MOST_FOLDERS: usize = 64;

/// A check that found something approved for good, with everything it depended on.
#[derive(Debug)]
pub(crate) struct CheckedApproval {
    approvals: Arc<Contents>,
    project: Option<PathBuf>,
    home: Option<PathBuf>,
    /// Files and folders, with links followed.
    states: SeenStates,
    /// The name behind `#!/usr/bin/env`, and the program it meant.
    interpreter: Option<(String, PathBuf)>,
    /// The owners of the files, and of the folders on the way to them.
    owners: Owners,
    /// The copy it runs from.
    copy: Option<Arc<States>>,
    run: Arc<Run>,
}

impl Trust {
    /// The remembered run of something that was approved, if nothing it depends on has changed.
    pub(crate) fn recall<T: Approvable>(
        &self,
        thing: &T,
        defined: &KnownDefinition,
        context: &TrustContext<'_>,
    ) -> Option<Arc<Run>> {
        let known = Arc::clone(checks(defined).get(&place_of(context))?);
        let CheckedApproval { approvals, project, home, states, interpreter, owners, copy, run } = &*known;
        let is_same_program = || {
            // If the program's state is already checked, no second check is needed.
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

    /// Remembers a check if all its parts are remembered.
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
    ) -> Option<CheckedApproval> {
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
        Some(CheckedApproval {
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

fn checks(defined: &KnownDefinition) -> MutexGuard<'_, HashMap<PathBuf, Arc<CheckedApproval>>> {
    defined.checked.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
