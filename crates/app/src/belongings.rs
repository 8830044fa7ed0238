//! The files that only one hook needs: its script, its golden cases and its sample event.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_protocol::{Code, Hook};

use crate::error::AppError;

/// The existing files of a hook beside the one that declares it, if no other hook needs them.
pub fn belongings(hook: &Hook, all: &[Arc<Hook>]) -> Vec<PathBuf> {
    let Some(folder) = hook.spec.origin.file.parent() else { return Vec::new() };
    let others = || all.iter().filter(|other| other.id() != hook.id());
    let is_needed = |script: &Path| others().any(|other| other.script().is_some_and(|needed| needed == script));
    let script = hook.script().filter(|script| script.starts_with(folder) && !is_needed(script));
    let has_namesake =
        others().any(|other| other.spec.name == hook.spec.name && other.spec.origin.file.parent() == Some(folder));
    let (cases, name) = (folder.join("cases"), &hook.spec.name);
    // A name is any text, so it must not lead out of the folder.
    let is_plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    let own = [cases.join(name), cases.join(format!("{name}.event.json"))];
    let own = own.into_iter().filter(|_| is_plain && !has_namesake);
    script.cloned().into_iter().chain(own).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Removes the files that belong to a hook; for a link, only the link.
pub fn remove_belongings(paths: &[PathBuf]) -> Result<(), AppError> {
    for path in paths {
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.map_err(|error| {
            AppError::new(Code::NotWritten, format!("{} cannot be removed: {error}", path.display()))
        })?;
        // Removes the folder of cases once it is empty.
        path.parent().filter(|folder| folder.ends_with("cases")).map(fs::remove_dir);
    }
    Ok(())
}
