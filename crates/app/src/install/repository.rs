//! Gets packages from repositories.
//!
//! Nothing of a repository is checked out. Its commit is fetched into an empty repository of our own, and files are
//! read as git objects. So none of its hooks, filters, attributes or submodules has an effect.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use ollm_package::{Bounds, Collector, LinkBase, Package};
use ollm_protocol::Code;

use super::Progress;
use super::source::shown;
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::git::GitJob;

const PATIENCE: Duration = Duration::from_mins(5);
/// The space that a list of files may take besides the files.
const ROOM: usize = 16 << 20;

/// The variables of git that say how to reach servers; all other variables could redirect git.
const KEPT: &[&str] = &[
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

/// Settings that override every configuration.
const CALM: &[&str] = &[
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
    "-c",
    // Only the address that a person named: no redirect may lead from an encrypted one to it.
    "protocol.http.allow=user",
    "-c",
    "protocol.ssh.allow=always",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "submodule.recurse=false",
    "-c",
    "fetch.recurseSubmodules=false",
    "-c",
    "fetch.fsckObjects=true",
    "-c",
    "fetch.writeCommitGraph=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "credential.interactive=never",
];

/// The result of reading a repository.
#[derive(Debug)]
pub(super) struct Checkout {
    pub(super) package: Package,
    pub(super) commit: String,
    /// The parts that were left out, and why.
    pub(super) left: Vec<String>,
}

/// Fetches a branch, tag or commit into `folder`, which belongs to us and is empty.
pub(super) fn checkout(
    url: &str,
    reference: Option<&str>,
    folder: &Path,
    context: &AppContext,
    progress: Progress<'_>,
) -> Result<Checkout, AppError> {
    let what = format!("fetching {}", shown(url));
    let progress = RefCell::new(progress);
    let stop = || progress.borrow_mut()(&what, 0, 0).is_break();
    let repository = Repository { folder, context, stop: &stop };
    repository.run(&["init", "--quiet", "--bare", "--template=", "."], Vec::new(), ROOM)?;
    repository.fetch(url, reference).map_err(|error| {
        let wanted = reference.map(|reference| format!(" at `{reference}`")).unwrap_or_default();
        let error = AppError { message: format!("{}{wanted} was not fetched: {}", shown(url), error.message), ..error };
        match reference.filter(|reference| is_short_commit(reference)) {
            Some(_) => error.hint("a commit is named by all of its digits; a server finds none by its first ones"),
            None => error,
        }
    })?;
    let commit = repository.run(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"], Vec::new(), ROOM)?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let (package, left) = repository.files(&commit)?;
    Ok(Checkout { package, commit, left })
}

struct Repository<'a> {
    folder: &'a Path,
    context: &'a AppContext,
    stop: &'a dyn Fn() -> bool,
}

/// One object of a commit.
struct CommitEntry<'a> {
    mode: &'a str,
    id: &'a str,
    path: &'a [u8],
}

impl Repository<'_> {
    fn fetch(&self, url: &str, reference: Option<&str>) -> Result<(), AppError> {
        let reference = reference.unwrap_or("HEAD");
        let fetch = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-commit-graph",
            "--",
            url,
            reference,
        ];
        self.run(&fetch, Vec::new(), ROOM).map(drop)
    }

    /// The files of a commit.
    fn files(&self, commit: &str) -> Result<(Package, Vec<String>), AppError> {
        let bounds = Bounds::default();
        let tree = self.run(&["ls-tree", "-r", "-z", "--full-tree", commit], Vec::new(), ROOM)?;
        let listed: Vec<CommitEntry<'_>> = tree.split(|byte| *byte == 0).filter_map(CommitEntry::read).collect();
        let submodules = listed.iter().filter(|one| one.mode == "160000");
        let name = |one: &CommitEntry<'_>| format!("{} (a submodule)", String::from_utf8_lossy(one.path));
        let left: Vec<String> = submodules.map(name).collect();
        let objects: Vec<&CommitEntry<'_>> = listed.iter().filter(|one| one.mode != "160000").collect();
        let ids: String = objects.iter().flat_map(|one| [one.id, "\n"]).collect();
        let most = usize::try_from(bounds.bytes).unwrap_or(usize::MAX).saturating_add(ROOM);
        let contents = self.run(&["cat-file", "--batch", "--buffer"], ids.into_bytes(), most)?;
        let mut collector = Collector::new(bounds);
        let mut rest = contents.as_slice();
        for one in objects {
            let (content, after) = next_object(rest, one.id).ok_or_else(|| broken("an object is missing or cut"))?;
            rest = after;
            let taken = match one.mode {
                "100644" | "100664" => collector.file(one.path, 0o644, None, content),
                "100755" => collector.file(one.path, 0o755, None, content),
                "120000" => collector.link(one.path, content, LinkBase::Folder),
                _ => collector.other(one.path, "of an unknown kind"),
            };
            taken.map_err(|refusal| super::refused(&refusal.to_string()))?;
        }
        let package = collector.finish().map_err(|refusal| super::refused(&refusal.to_string()))?;
        Ok((package, left))
    }

    fn run(&self, args: &[&str], stdin: Vec<u8>, most_output: usize) -> Result<Vec<u8>, AppError> {
        let args = [CALM, args].concat();
        let job = GitJob::new(self.context, self.folder, &args);
        let env = environment(self.context);
        let largest_file = Some(Bounds::default().bytes + ROOM as u64);
        GitJob { stdin, env, timeout: PATIENCE, most_output, largest_file, ..job }.run_until(self.context, self.stop)
    }
}

impl<'a> CommitEntry<'a> {
    /// `MODE TYPE ID<tab>PATH`.
    fn read(line: &'a [u8]) -> Option<CommitEntry<'a>> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let head = std::str::from_utf8(line.get(..tab)?).ok()?;
        let mut words = head.split(' ');
        let (mode, _, id) = (words.next()?, words.next()?, words.next()?);
        Some(CommitEntry { mode, id, path: line.get(tab + 1..)? })
    }
}

/// The next object in the output of `cat-file --batch`, and the rest of the output.
fn next_object<'b>(bytes: &'b [u8], id: &str) -> Option<(&'b [u8], &'b [u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let size: usize = head.strip_prefix(id)?.strip_prefix(" blob ")?.parse().ok()?;
    let content = bytes.get(end + 1..)?.get(..size)?;
    Some((content, bytes.get(end + 2 + size..)?))
}

/// Whether a text may be an abbreviated commit.
fn is_short_commit(reference: &str) -> bool {
    (4..40).contains(&reference.len()) && reference.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The environment of git: no variable leads git to another repository, and git asks nothing on the terminal.
fn environment(context: &AppContext) -> Vec<(OsString, OsString)> {
    let is_gits = |name: &OsStr| name.as_encoded_bytes().starts_with(b"GIT_");
    let is_kept = |name: &OsStr| KEPT.iter().any(|kept| name == *kept);
    let kept = context.variables.iter().filter(|(name, _)| !is_gits(name) || is_kept(name)).cloned();
    kept.chain([("GIT_TERMINAL_PROMPT".into(), "0".into())]).collect()
}

fn broken(why: &str) -> AppError {
    AppError::new(Code::GitFailed, format!("the repository cannot be read: {why}"))
}
