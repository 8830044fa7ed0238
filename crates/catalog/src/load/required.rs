//! The hooks that the machine's policy requires: those in the folder `hooks` beside it.

use std::{fs, io};

use ollm_protocol::{Layer, Rules, Source};

use super::{Loading, Owner, names};
use crate::config::unsafe_place;
use crate::place::PolicyFile;
use crate::problem::{Problem, Severity};

impl Loading {
    /// Reads them. What cannot be relied on or understood is fatal: without it all is
    /// looser. Of the settings only those of the policy count for them.
    pub(super) fn required(&mut self, policy: &PolicyFile, rules: Rules) {
        let folder = policy.folder().join("hooks");
        if fs::symlink_metadata(&folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return;
        }
        let (before, known) = (self.problems.len(), self.hooks.len());
        let owner = Owner { source: Source::Policy, layer: Layer::User, rules, project: None, encloses: false };
        self.folder(&folder, None, &owner);
        for problem in self.problems.iter_mut().skip(before).filter(|problem| problem.severity == Severity::Error) {
            problem.severity = Severity::Fatal;
        }
        // Also a file in which nothing is left.
        let declared = names(&folder).map(|(names, _)| names).unwrap_or_default();
        let declaring = declared.into_iter().map(|name| folder.join(name));
        let required = self.hooks.iter().skip(known).map(|hook| &hook.spec);
        let run = required.flat_map(|spec| spec.script().into_iter().chain(&spec.inputs)).filter(|file| file.exists());
        let files = std::iter::once(folder.clone()).chain(declaring).chain(run.cloned());
        let found: Vec<Problem> = files.filter_map(|file| unsafe_place(policy, &file)).collect();
        self.problems.extend(found);
    }
}
