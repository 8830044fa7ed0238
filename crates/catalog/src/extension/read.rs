//! One extension's folder: its manifest, and the hooks in it.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::time::{Duration, SystemTime};

use ollm_protocol::{Code, Hook, Layer, Remedy, Rules};
use ollm_store::{StatKey, digest_bytes};

use super::check::Check;
use super::find::{Candidate, MANIFEST};
use super::foreign::foreign_manifest;
use super::manifest::{self, Manifest};
use super::{Extension, State, permission, setting};
use crate::file::{self, Document, Finding, Syntax, whole_file};
use crate::format::{Context, HookCollector, Ids, events};
use crate::node::{Cursor, Node};
use crate::path::{self, Walked};
use crate::problem::{Problem, Severity};

/// Larger manifests are not read.
pub(super) const LARGEST_FILE: u64 = 1 << 20;

/// What some editors put before a text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads the extension in one folder, wherever that is, with every problem there is with it.
pub fn validate(root: &Path, rules: &Rules) -> (Extension, Vec<Problem>) {
    let candidate = Candidate::new(root.to_owned(), Layer::User);
    let own = read(&candidate, rules, None, SystemTime::UNIX_EPOCH);
    let extension = own.or_else(|| read_foreign(&candidate, rules)).unwrap_or_else(|| {
        let message = format!("it has no {MANIFEST}");
        let remedy = Some(Remedy::NewExtension);
        failed(&candidate, Problem { remedy, ..whole_file(Code::UnreadableFile, Severity::Error, root, message) })
    });
    let problems = extension.problems.iter().cloned().chain(extension.skills().1).collect();
    (extension, problems)
}

/// Reads the extension in one folder; nothing where there is no manifest. One that is known is taken as it was if nobody
/// touched its manifest, or if that still has the same content.
pub(super) fn read(
    candidate: &Candidate,
    rules: &Rules,
    known: Option<&Extension>,
    now: SystemTime,
) -> Option<Extension> {
    let path = candidate.root.join(MANIFEST);
    if let Some(why) = &candidate.trouble {
        return Some(failed(candidate, whole_file(Code::UnsafePath, Severity::Error, &candidate.root, why.clone())));
    }
    let meta = path.symlink_metadata().ok();
    if meta.as_ref().is_some_and(Metadata::is_symlink)
        && let Some(why) = astray(&candidate.root)
    {
        return Some(failed(candidate, why));
    }
    let as_it_was = |known: &Extension| Extension {
        layer: candidate.layer,
        enclosing: candidate.enclosing.clone(),
        state: known.verdict.clone(),
        values: Vec::new(),
        misfit: None,
        ..known.clone()
    };
    // Before it is read: what changes while we read is noticed the next time.
    let quiet = meta.filter(|meta| !meta.is_symlink()).and_then(|meta| quiet(&meta, now));
    if let Some(known) = known.filter(|known| quiet.is_some() && known.quiet == quiet) {
        return Some(as_it_was(known));
    }
    let bytes = match file::bytes(&path, LARGEST_FILE) {
        Ok(bytes) => bytes?,
        Err(problem) => return Some(failed(candidate, *problem)),
    };
    let fingerprint = Some(fingerprint(&bytes));
    if let Some(known) = known.filter(|known| known.fingerprint == fingerprint) {
        return Some(Extension { quiet, ..as_it_was(known) });
    }
    let broken = |problem| Some(Extension { quiet, ..failed(candidate, problem) });
    // What is shown before an approval must be what is approved.
    let digest = Some(digest_bytes(&bytes));
    if bytes.strip_prefix(MARK).unwrap_or(&bytes).trim_ascii().is_empty() {
        let remedy = Some(Remedy::NewExtension);
        return broken(Problem {
            remedy,
            ..file::problem_at(Code::InvalidSyntax, &path, "", 1, "it is empty".to_owned())
        });
    }
    let (document, node) = match file::open(&path, Syntax::Json, bytes) {
        Ok(opened) => opened,
        Err(problem) => return broken(*problem),
    };
    let extension = understand(candidate, &document, &node, rules);
    Some(Extension { digest, fingerprint, quiet, ..extension })
}

/// A package of another agent, as it would be read once it is installed.
fn read_foreign(candidate: &Candidate, rules: &Rules) -> Option<Extension> {
    let broken = |why| failed(candidate, whole_file(Code::UnreadableFile, Severity::Error, &candidate.root, why));
    let foreign = match foreign_manifest(&candidate.root) {
        Ok(found) => found?,
        Err(why) => return Some(broken(why)),
    };
    let path = candidate.root.join(MANIFEST);
    let (document, node) = match file::open(&path, Syntax::Json, foreign.to_bytes()) {
        Ok(opened) => opened,
        Err(problem) => return Some(failed(candidate, *problem)),
    };
    let mut extension = Extension { form: Some(foreign.form), ..understand(candidate, &document, &node, rules) };
    extension.problems.extend(foreign.left.iter().map(|left| {
        let message = format!("a part of this {} is not loaded: {left}", foreign.form);
        whole_file(Code::Ignored, Severity::Warning, &candidate.root, message)
    }));
    Some(extension)
}

/// The extension as it is in a copy of its folder, if that can be understood.
pub(super) fn read_copy(copy: &Path, candidate: &Candidate, rules: &Rules) -> Option<Extension> {
    let bytes = file::bytes(&copy.join(MANIFEST), LARGEST_FILE).ok()??;
    // Its hooks are those of the folder: that is what their approvals name.
    let path = candidate.root.join(MANIFEST);
    let (document, node) = file::open(&path, Syntax::Json, bytes).ok()?;
    Some(understand(candidate, &document, &node, rules)).filter(|extension| !extension.is_broken())
}

/// What the file system says of a file that has been left alone for a while; a change right after another one may leave no
/// trace there.
fn quiet(meta: &Metadata, now: SystemTime) -> Option<StatKey> {
    const WHILE: Duration = Duration::from_secs(2);
    let key = StatKey::of(meta);
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.checked_sub(WHILE)?;
    (u128::try_from(key.ctime_ns).ok()? < now.as_nanos()).then_some(key)
}

/// Tells one content from another, not from one made to look the same.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// What is wrong with a manifest that is a link and does not lead to a file of the extension.
fn astray(root: &Path) -> Option<Problem> {
    let (message, help) = path::inside(root, MANIFEST, &Walked::default()).err()?.of_extension();
    Some(Problem {
        help: Some(help.to_owned()),
        ..whole_file(Code::UnsafePath, Severity::Error, &root.join(MANIFEST), message)
    })
}

fn understand(candidate: &Candidate, document: &Document<'_>, node: &Node, rules: &Rules) -> Extension {
    let root = Cursor::root(node);
    let name = manifest::name(&root).unwrap_or_else(|| folder_name(&candidate.root));
    let mut findings = Vec::new();
    let manifest = manifest::read(&mut Check { folder: &candidate.root, findings: &mut findings }, &root);
    let mut hooks = Vec::new();
    if manifest.is_some()
        && let Some(events) = root.get("hooks").filter(|hooks| matches!(hooks.node, Node::Map(_)))
    {
        hooks = take_hooks(candidate, document, &name, &events, rules, &mut findings);
    }
    if let Some(manifest) = &manifest {
        permission::check(&mut Check { folder: &candidate.root, findings: &mut findings }, &root, manifest, &hooks);
    }
    setting::hide_whole(&root, &mut findings);
    let problems = document.problems(findings);
    let state = error_of(&problems).map_or(State::On, State::Failed);
    let manifest = manifest.unwrap_or_default();
    Extension { name, manifest, hooks, ..unread(candidate, state, problems) }
}

fn take_hooks(
    candidate: &Candidate,
    document: &Document<'_>,
    name: &str,
    events: &Cursor<'_>,
    rules: &Rules,
    findings: &mut Vec<Finding>,
) -> Vec<Hook> {
    let context = Context {
        path: document.path,
        folder: &candidate.root,
        label: name,
        source: candidate.source(),
        layer: candidate.layer,
        group: None,
        agent: None,
        extension: Some(name),
        project: candidate.enclosing.as_deref(),
        encloses: candidate.enclosing.is_some(),
        rules,
        walked: Walked::default(),
    };
    let mut ids = Ids::default();
    let mut intake = HookCollector::new(&context, &mut ids);
    events::take_events(events, &mut intake);
    let (hooks, found) = intake.located(document);
    findings.extend(found);
    hooks
}

/// What keeps an extension from being loaded, in one line.
fn error_of(problems: &[Problem]) -> Option<String> {
    let mut errors = problems.iter().filter(|problem| problem.severity <= Severity::Error);
    let first = errors.next()?;
    Some(match errors.count() {
        0 => first.to_string(),
        more => format!("{first} (and {more} more)"),
    })
}

fn failed(candidate: &Candidate, problem: Problem) -> Extension {
    unread(candidate, State::Failed(problem.to_string()), vec![problem])
}

/// An extension of which nothing is known but what became of it.
pub(super) fn unread(candidate: &Candidate, state: State, problems: Vec<Problem>) -> Extension {
    Extension {
        name: folder_name(&candidate.root),
        root: candidate.root.clone(),
        layer: candidate.layer,
        enclosing: candidate.enclosing.clone(),
        source: candidate.source(),
        manifest: Manifest::default(),
        hooks: Vec::new(),
        values: Vec::new(),
        verdict: state.clone(),
        state,
        digest: None,
        fingerprint: None,
        quiet: None,
        held: None,
        fault: None,
        misfit: None,
        form: None,
        problems,
    }
}

fn folder_name(root: &Path) -> String {
    root.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
