//! What searches and listings find of what is protected.

use std::path::{Path, PathBuf};

use super::{Hit, Reach, Watch};
use crate::{
    field::{Field, Place},
    path,
    tampering::search::Tests,
    walk::Found,
};

impl Watch {
    /// Whether a search may find something protected and change it.
    pub(in crate::tampering) fn found(&self, search: &Found, place: &Place) -> Option<Hit> {
        if let Some(inside) = self.check(&search.root, place, Reach::File) {
            return Some(inside);
        }
        let roots: Vec<String> = place.folders.iter().map(|folder| self.root_key(folder, &search.root.text)).collect();
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
    pub(super) fn check_listed(&self, field: &Field, place: &Place) -> Option<Hit> {
        let name = field.tail.as_deref().unwrap_or_default().trim_start_matches('/');
        let root = Field { glob: field.glob && name.is_empty(), ..Field::literal(field.text.trim_end_matches('/')) };
        let root = if root.text.is_empty() { Field::literal("/") } else { root };
        let wanted: Vec<String> = (!name.is_empty()).then(|| name.to_lowercase()).into_iter().collect();
        // By contents, sizes or times a search finds any file of the project: that is everyday work.
        let inside = |folder: &PathBuf| {
            let root = path::join(folder, &root.text);
            self.projects.iter().any(|project| root.starts_with(project))
        };
        if wanted.is_empty() && place.folders.iter().all(inside) {
            return self.check(&root, place, Reach::File);
        }
        let search = Found { root, wanted, left_out: Vec::new() };
        self.found(&search, place).or_else(|| self.agents_folder(&search.root, place))
    }
}
