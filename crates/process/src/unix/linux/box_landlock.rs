//! The rules of a box for Landlock: a list of what is allowed, since it cannot forbid below what it allows.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};

use crate::BoxRules;

/// The newest rules that we know; older kernels hold fewer of them.
const NEWEST: ABI = ABI::V6;
/// So many entries of one folder are looked at.
const MOST_ENTRIES: usize = 10_000;

/// The version of the kernel's rules.
fn version() -> Result<i64, String> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call only tells its version, and takes nothing.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    if version > 0 {
        return Ok(version);
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOSYS) => Err("this kernel has no Landlock".to_owned()),
        _ => Err("Landlock is not enabled in this kernel".to_owned()),
    }
}

/// Keeps processes in a box from signalling those outside and from reaching their abstract sockets, where the kernel can.
pub(super) fn scope() -> Option<OwnedFd> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(NEWEST)).ok()?;
    version().ok().filter(|version| *version >= 6)?;
    rules.create().ok()?.into()
}

/// The rules as a file, and what this kernel cannot hold of them.
pub(super) fn rules(rules: &BoxRules) -> Result<(OwnedFd, Vec<String>), String> {
    let version = version()?.min(rules.landlock.map_or(i64::MAX, i64::from));
    let used = rules.landlock.map_or(NEWEST, |limit| ABI::from(i32::from(limit)).min(NEWEST));
    let told = |error: &dyn std::error::Error| format!("Landlock refuses the rules: {error}");
    let (writes, reads) = (AccessFs::from_write(used), AccessFs::from_read(used));
    let handled = if rules.readable.is_some() { writes | reads } else { writes };
    let set = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(handled);
    let scopes = Scope::from_all(used);
    let set = if scopes.is_empty() { set } else { set.and_then(|set| set.scope(scopes)) };
    let mut set = set.and_then(Ruleset::create).map_err(|error| told(&error))?;
    for path in written(rules) {
        set = allow(set, &path, handled).map_err(|error| told(&error))?;
    }
    for path in rules.readable.iter().flatten() {
        set = allow(set, path, reads).map_err(|error| told(&error))?;
    }
    let file: Option<OwnedFd> = set.into();
    let file = file.ok_or("Landlock gave no rules")?;
    Ok((file, notes(rules, version)))
}

type RulesetCreated = landlock::RulesetCreated;

/// Allows this at a path and below it; what cannot be opened is not allowed either.
fn allow(
    set: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(file) = PathFd::new(path) else { return Ok(set) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    set.add_rule(PathBeneath::new(file, access).set_compatibility(CompatLevel::BestEffort))
}

/// The places that can be read, with links resolved; all where that is not limited.
pub(super) fn readable(rules: &BoxRules) -> Vec<PathBuf> {
    let Some(paths) = &rules.readable else { return vec![PathBuf::from("/")] };
    paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
}

/// The places that can be written.
pub(super) fn written(rules: &BoxRules) -> Vec<PathBuf> {
    let roots = rules.writable.clone().unwrap_or_else(|| vec![PathBuf::from("/")]);
    let real = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    let whole = real(&rules.whole);
    let mut denied: BTreeSet<PathBuf> = real(&rules.read_only).into_iter().chain(real(&rules.hidden)).collect();
    // A link itself is protected by the folder that it is in.
    denied.extend(rules.read_only.iter().filter(|path| path.is_symlink()).cloned());
    denied.retain(|path| !whole.iter().any(|root| path != root && path.starts_with(root)));
    let mut allowed = whole;
    for root in real(&roots) {
        spread(&root, &denied, &mut allowed);
    }
    allowed
}

/// Adds a folder, or what is in it if something in it is denied.
fn spread(folder: &Path, denied: &BTreeSet<PathBuf>, allowed: &mut Vec<PathBuf>) {
    if denied.iter().any(|path| folder.starts_with(path)) {
        return;
    }
    if !denied.iter().any(|path| path.starts_with(folder)) {
        allowed.push(folder.to_owned());
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().take(MOST_ENTRIES) {
        // Where a link leads is allowed by its own folder, or is not.
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            spread(&entry.path(), denied, allowed);
        }
    }
}

fn notes(rules: &BoxRules, version: i64) -> Vec<String> {
    let mut notes = Vec::new();
    if rules.writable.is_none() && !rules.read_only.is_empty() {
        notes.push("no new file can be made in a folder that holds protected ones, such as the home itself".to_owned());
    }
    if !rules.whole.is_empty() {
        notes.push("protected files in the project are compared and restored, not locked".to_owned());
    }
    if !rules.hidden.is_empty() && rules.readable.is_none() {
        notes.push("sockets of other programs are not hidden".to_owned());
    }
    if version < 2 {
        notes.push("files cannot be moved between folders (Landlock 1)".to_owned());
    }
    if version < 3 {
        notes.push(format!("files can be emptied although they cannot be written (Landlock {version})"));
    }
    if version < 6 {
        notes.push(format!("processes outside can be signalled (Landlock {version})"));
    }
    notes
}
