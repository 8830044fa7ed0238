//! The rules of a box for Landlock: a list of allowed places, because Landlock cannot forbid anything below a place
//! that it allows.

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

/// The newest version of Landlock that we use; older kernels support fewer rules.
const NEWEST: ABI = ABI::V6;
/// The most entries of one folder that are read.
const MOST_ENTRIES: usize = 10_000;

/// The Landlock version of the kernel.
pub(super) fn version() -> Result<i64, String> {
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

/// Prevents processes in a box from signalling processes outside and from reaching their abstract sockets, if the
/// kernel supports that.
pub(super) fn scope() -> Option<OwnedFd> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(NEWEST)).ok()?;
    version().ok().filter(|version| *version >= 6)?;
    rules.create().ok()?.into()
}

/// The rules as a file descriptor, and what this kernel cannot enforce.
pub(super) fn rules(rules: &BoxRules) -> Result<(OwnedFd, Vec<String>), String> {
    let version = version()?.min(rules.landlock.map_or(i64::MAX, i64::from));
    let used = rules.landlock.map_or(NEWEST, |limit| ABI::from(i32::from(limit)).min(NEWEST));
    let told = |error: &dyn std::error::Error| format!("Landlock refuses the rules: {error}");
    let (writes, reads) = (AccessFs::from_write(used), AccessFs::from_read(used));
    let handled = match rules.readable {
        Some(_) => writes | reads,
        None if rules.secret.is_empty() => writes,
        None => writes | AccessFs::ReadFile,
    };
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
    if rules.readable.is_none() && !rules.secret.is_empty() {
        for path in not_secret(rules) {
            set = allow(set, &path, AccessFs::ReadFile.into()).map_err(|error| told(&error))?;
        }
    }
    let file: Option<OwnedFd> = set.into();
    let file = file.ok_or("Landlock gave no rules")?;
    Ok((file, notes(rules, version)))
}

type RulesetCreated = landlock::RulesetCreated;

/// Allows this access at a path and below it. A path that cannot be opened is not allowed.
fn allow(
    set: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(file) = PathFd::new(path) else { return Ok(set) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    set.add_rule(PathBeneath::new(file, access).set_compatibility(CompatLevel::BestEffort))
}

/// The places that can be read, with links resolved; everything if reading is not limited.
pub(super) fn readable(rules: &BoxRules) -> Vec<PathBuf> {
    let Some(paths) = &rules.readable else { return vec![PathBuf::from("/")] };
    paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
}

/// Everything except secret paths.
fn not_secret(rules: &BoxRules) -> Vec<PathBuf> {
    let mut allowed = Vec::new();
    spread(Path::new("/"), &rules.secret.iter().filter_map(|path| path.canonicalize().ok()).collect(), &mut allowed);
    allowed
}

/// The places that can be written.
pub(super) fn written(rules: &BoxRules) -> Vec<PathBuf> {
    let roots = rules.writable.clone().unwrap_or_else(|| vec![PathBuf::from("/")]);
    let real = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    let whole = real(&rules.whole);
    // Hidden paths are not denied: write access to a socket's folder makes no further sockets reachable.
    let mut denied: BTreeSet<PathBuf> = real(&rules.read_only).into_iter().chain(real(&rules.secret)).collect();
    // The folder of a link protects the link itself.
    denied.extend(rules.read_only.iter().filter(|path| path.is_symlink()).cloned());
    denied.retain(|path| !whole.iter().any(|root| path != root && path.starts_with(root)));
    let mut allowed = whole;
    for root in real(&roots) {
        spread(&root, &denied, &mut allowed);
    }
    allowed
}

/// Adds a folder, or its entries if something in it is denied.
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
        // The target of a link is allowed or denied by its own folder.
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
