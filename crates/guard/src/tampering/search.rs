//! Decides which protected paths a search may find.

use super::{
    roots::Roots,
    watch::{GuardedPath, key_parts},
};
use crate::{path::Pattern, walk::FindChange};

/// The tests of a search by name or path.
pub(super) struct Tests<'a> {
    /// Whether it has any.
    wants: bool,
    /// Those of them that it wants.
    names: Vec<Pattern<'a>>,
    /// Those of these that some protected path may fit.
    wanted: Vec<Pattern<'a>>,
    left_out: Vec<Pattern<'a>>,
    /// Whether it looks for usual files of protected folders.
    usual: bool,
}

impl<'a> Tests<'a> {
    /// Of a search, where this is protected.
    pub(super) fn of(search: &'a FindChange, roots: &Roots) -> Tests<'a> {
        /// In a protected folder there are files like these.
        const USUAL: &[&str] =
            &["config.json", "config.toml", "config.yaml", "hook.sh", "hook.yaml", "pre-commit", "trusted-hooks.json"];
        let patterns = |texts: &'a [String]| texts.iter().map(|text| Pattern::new(text)).collect::<Vec<_>>();
        let mut wanted = patterns(&search.wanted);
        let usual = wanted.iter().any(|pattern| USUAL.iter().any(|name| pattern.fits(name)));
        let names = patterns(&search.wanted);
        wanted.retain(|pattern| pattern.has_folder() || roots.may_end(pattern));
        Tests { wants: !search.wanted.is_empty(), names, wanted, left_out: patterns(&search.left_out), usual }
    }

    /// Whether no protected path may fit them, so that they can only find what is there.
    pub(super) fn need_files(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether they let it act on a protected path, or on something in it.
    pub(super) fn pass(&self, rest: &str, guarded: &GuardedPath) -> bool {
        // A search finds only what is there.
        if !self.wants && self.left_out.is_empty() {
            return guarded.exists;
        }
        // Then only a file in it can have such a name.
        if self.wanted.is_empty() && !self.usual && !guarded.exists {
            return false;
        }
        let rest = key_parts(rest);
        let path = format!("./{}", rest.join("/"));
        let fits = |pattern: &Pattern<'_>| rest.iter().any(|part| pattern.fits(part)) || pattern.fits(&path);
        let finds_inside = |pattern: &Pattern<'_>| guarded.may_be_folder() && pattern.fits_inside(&path);
        let is_there = |pattern: &&Pattern<'_>| {
            !pattern.is_vague() || guarded.exists || rest.iter().any(|part| pattern.is_around(part))
        };
        if self.left_out.iter().any(fits) {
            return false;
        }
        if !self.wants {
            return guarded.exists;
        }
        self.wanted.iter().filter(is_there).any(fits)
            || self.wanted.iter().any(finds_inside)
            || (self.usual && guarded.exists && guarded.may_be_folder())
            || guarded.holds(|name| self.names.iter().any(|pattern| pattern.fits(name)))
    }
}
