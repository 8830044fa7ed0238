//! What a change of one compared path means, how it is undone, and what the person is told.

use std::path::Path;
use std::sync::Arc;

use ollm_guard::{Lock, harmful_git_settings};

use super::content::Content;
use super::undone::{Undone, UndoneChanges};

/// A compared path.
#[derive(Clone, Copy)]
pub(super) struct ComparedPath<'a> {
    pub(super) path: &'a Path,
    pub(super) lock: Lock,
}

impl ComparedPath<'_> {
    /// Moves aside a path that appeared; if a new link leads to it, moves the link.
    pub(super) fn appeared(self, now: &Content, link: Option<&Path>, undone: &UndoneChanges) -> Option<String> {
        if self.is_new_repository(now) {
            return self.new_hosts(None, now);
        }
        let path = self.path.display();
        Some(match undone.undo(link.unwrap_or(self.path), None, Some(now)) {
            Ok(Undone::Aside(aside)) => format!(
                "`{path}` is protected and was made by the command; it is now `{}`, where nothing reads it",
                aside.display()
            ),
            Ok(_) => return None,
            Err(error) => {
                format!("`{path}` is protected and was made by the command; it cannot be moved aside: {error}")
            }
        })
    }

    /// Restores the earlier content.
    pub(super) fn restore(self, before: &Content, now: Option<Content>, undone: &UndoneChanges) -> Option<String> {
        if now.as_ref() == Some(before) {
            return None;
        }
        if self.is_ordinary(before, now.as_ref()) {
            return now.and_then(|now| self.new_hosts(Some(before), &now));
        }
        let path = self.path.display();
        Some(match undone.undo(self.path, Some(before), now.as_ref()) {
            Ok(Undone::Restored(Some(aside))) => format!(
                "`{path}` is protected and was changed by the command; it is restored, and the changed one is `{}`",
                aside.display()
            ),
            Ok(Undone::Restored(None)) => {
                format!("`{path}` is protected and was removed by the command; it is restored")
            }
            Ok(Undone::Aside(aside)) => format!(
                "`{path}` is protected and was changed by two commands at the same time; it is now `{}`, where nothing reads it",
                aside.display()
            ),
            Ok(Undone::Already) => return None,
            Err(error) => {
                format!("`{path}` is protected and was changed by the command; it cannot be restored: {error}")
            }
        })
    }

    /// Whether `git init` made this: settings that run nothing, and hooks that are only examples.
    fn is_new_repository(self, now: &Content) -> bool {
        let empty = Content::File { bytes: Arc::default(), mode: 0 };
        match now {
            Content::Folder { .. } => self.path.ends_with(".git/hooks") && now.has_examples_only(),
            now => self.is_ordinary(&empty, Some(now)),
        }
    }

    /// Whether a file that ordinary work must change was changed in an ordinary way.
    fn is_ordinary(self, before: &Content, now: Option<&Content>) -> bool {
        let (Lock::Compared, Content::File { bytes: before, .. }, Some(Content::File { bytes: now, .. })) =
            (self.lock, before, now)
        else {
            return false;
        };
        let (before, now) = (String::from_utf8_lossy(before), String::from_utf8_lossy(now));
        if self.is_known_hosts() {
            // A new host may be added; the key of a known host must not change.
            return before.lines().all(|line| now.lines().any(|other| other == line));
        }
        harmful_git_settings(&before, &now).is_empty()
    }

    /// Reports that `ssh` trusts more hosts than before.
    fn new_hosts(self, before: Option<&Content>, now: &Content) -> Option<String> {
        let lines = |content: &Content| match content {
            Content::File { bytes, .. } => String::from_utf8_lossy(bytes).lines().count(),
            _ => 0,
        };
        let added = lines(now).saturating_sub(before.map_or(0, lines));
        let told = || format!("`{}` has {added} new lines: `ssh` trusts further hosts", self.path.display());
        (self.is_known_hosts() && added > 0).then(told)
    }

    fn is_known_hosts(self) -> bool {
        self.path.file_name().is_some_and(|name| name == "known_hosts")
    }
}
