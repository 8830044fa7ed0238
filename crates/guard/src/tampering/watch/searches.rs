//! Decides whether searches and listings find protected paths.

use std::path::{Path, PathBuf};

use super::{Hit, Reach, Watch};
use crate::{
    field::{Field, ShellPlace, is_pattern},
    path,
    tampering::search::Tests,
    walk::FindChange,
};

impl Watch {
    /// Whether a search may find something protected and change it.
    pub(in crate::tampering) fn found(&self, search: &FindChange, place: &ShellPlace) -> Option<Hit> {
        // Any folder that a pattern fits is searched with all that is in it.
        let reach = if search.root.glob { Reach::Tree } else { Reach::File };
        if let Some(inside) = self.check(&search.root, place, reach) {
            return Some(inside);
        }
        let roots: Vec<String> = place.folders.iter().map(|folder| self.root_key(folder, &search.root.text)).collect();
        if !roots.iter().any(|root| self.roots.may_hold(root, true)) {
            return None;
        }
        let tests = Tests::of(search, &self.roots);
        let mut near = self.guarded().iter().filter(|guarded| guarded.exists || !tests.need_files());
        let hit = near.find(|guarded| {
            let below = |key: &String| {
                let rest = roots.iter().find_map(|root| key.strip_prefix(root.as_str()));
                rest.is_some_and(|rest| tests.pass(rest, guarded))
            };
            guarded.keys.iter().any(below)
        });
        hit.map(|guarded| Hit::Perhaps(guarded.path.clone()))
    }

    /// The key of a folder, links followed.
    fn root_key(&self, folder: &Path, text: &str) -> String {
        let raw = path::in_folder(folder, text);
        // Only where a `..` may follow a link does its order count.
        let dotted = text.contains("..");
        path::key(&if dotted { path::resolve(&raw) } else { self.resolver.borrow_mut().look(&path::tidied(raw)).0 })
    }

    /// What a search or a listing found.
    pub(super) fn check_listed(&self, field: &Field, place: &ShellPlace) -> Option<Hit> {
        let name = field.tail.as_deref().unwrap_or_default().trim_start_matches('/');
        let root = field.text.trim_end_matches('/');
        let root = Field { glob: field.glob && is_pattern(root), ..Field::literal(root) };
        let root = if root.text.is_empty() { Field::literal("/") } else { root };
        let wanted: Vec<String> = (!name.is_empty()).then(|| name.to_lowercase()).into_iter().collect();
        // By contents, sizes or times a search finds any file of the project: that is everyday work.
        let inside = |folder: &PathBuf| {
            let root = path::join(folder, &root.text);
            self.projects.iter().any(|project| root.starts_with(project))
        };
        if wanted.is_empty() && place.folders.iter().all(inside) {
            return self.check(&root, place, Reach::File).or_else(|| self.agents_folder(&root, place));
        }
        let search = FindChange { root, wanted, left_out: Vec::new() };
        self.found(&search, place).or_else(|| self.agents_folder(&search.root, place))
    }
}
