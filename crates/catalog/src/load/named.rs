//! Hook files that a person names, wherever they are.

use std::path::Path;

use ollm_protocol::{Code, Hook, Layer, Rules, Source};

use super::{FileForm, Ids, Incoming, Loading, Owner, StampSet};
use crate::file::{Syntax, whole_file};
use crate::problem::{Problem, Severity};

/// The hooks of a hook file, or of a folder of them, as if they were the user's own.
///
/// Everything is read with its place. A person must have told the caller to run such hooks.
pub fn load_named(path: &Path, rules: Rules) -> (Vec<Hook>, Vec<Problem>) {
    let mut loading = Loading {
        seen: Vec::new(),
        ids: Ids::default(),
        hooks: Vec::new(),
        problems: Vec::new(),
        settings_off: false,
        budget: None,
        looked: StampSet::default(),
    };
    let owner = Owner { source: Source::User, layer: Layer::User, rules, project: None, encloses: false };
    let is_there = if path.is_dir() {
        loading.hooks(path.to_owned(), &owner);
        true
    } else {
        let label = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new("/"));
        let syntax = Syntax::of(path);
        let form = FileForm::Hooks;
        loading.file(&Incoming { path, label: &label, folder, group: None, syntax, form }, &owner)
    };
    if !is_there {
        loading.problems.push(whole_file(Code::UnreadableFile, Severity::Error, path, "it does not exist".to_owned()));
    }
    (loading.hooks, loading.problems)
}
