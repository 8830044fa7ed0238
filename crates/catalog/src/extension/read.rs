//! Reads the folder of one extension: its manifest and its hooks.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::time::{Duration, SystemTime};

use ollm_protocol::{Code, Layer, Remedy, Rules, Source};
use ollm_store::{StatKey, digest_bytes};

use super::check::Check;
use super::find::{Candidate, MANIFEST};
use super::foreign::foreign_manifest;
use super::manifest::{self, Manifest};
use super::{Extension, ExtensionState, permission, setting};
use crate::file::{self, Document, Syntax, whole_file};
use crate::format::{Context, HookCollector, Ids, events};
use crate::load::StampSet;
use crate::node::{Cursor, Node};
use crate::path::{self, PathCache};
use crate::problem::{Problem, Severity};

/// The largest manifest, in bytes.
pub(super) const LARGEST_FILE: u64 = 1 << 20;

/// The byte order mark that some editors write before a text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads the extension in a folder at any place, with all its problems.
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

/// Reads the extension in a folder; `None` if it has no manifest. A known extension is taken from memory if its
/// manifest has the same state or the same content.
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
    let meta = path.symlink_metadata();
    let mut looked = StampSet::default();
    looked.saw(&path, meta.as_ref());
    if meta.as_ref().is_ok_and(Metadata::is_symlink)
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
    // The state is taken before reading, so that a change during reading is noticed next time.
    let quiet = meta.ok().filter(|meta| !meta.is_symlink()).and_then(|meta| quiet(&meta, now));
    if let Some(known) = known.filter(|known| quiet.is_some() && known.quiet == quiet) {
        return Some(as_it_was(known));
    }
    let (bytes, state) = match file::stamped(&path, LARGEST_FILE) {
        Ok(read) => read?,
        Err(problem) => return Some(Extension { stamps: looked.stamps(), ..failed(candidate, *problem) }),
    };
    looked.read(&path, Some(state));
    let fingerprint = Some(fingerprint(&bytes));
    if let Some(known) = known.filter(|known| known.fingerprint == fingerprint) {
        return Some(Extension { quiet, ..as_it_was(known) });
    }
    // A person must approve exactly the content that was shown.
    let digest = Some(digest_bytes(&bytes));
    if bytes.strip_prefix(MARK).unwrap_or(&bytes).trim_ascii().is_empty() {
        let problem = file::problem_at(Code::InvalidSyntax, &path, "", 1, "it is empty".to_owned());
        let problem = Problem { remedy: Some(Remedy::NewExtension), ..problem };
        return Some(Extension { quiet, stamps: looked.stamps(), ..failed(candidate, problem) });
    }
    let (document, node) = match file::open(&path, Syntax::Json, bytes) {
        Ok(opened) => opened,
        Err(problem) => return Some(Extension { quiet, stamps: looked.stamps(), ..failed(candidate, *problem) }),
    };
    let extension = understand(candidate, &document, &node, rules, &mut looked);
    Some(Extension { digest, fingerprint, quiet, stamps: looked.stamps(), ..extension })
}

/// Reads a package of another agent in the form that it would have after installation.
fn read_foreign(candidate: &Candidate, rules: &Rules) -> Option<Extension> {
    let broken = |why| failed(candidate, whole_file(Code::UnreadableFile, Severity::Error, &candidate.root, why));
    let foreign = match foreign_manifest(&candidate.root, rules) {
        Ok(found) => found?,
        Err(why) => return Some(broken(why)),
    };
    let mut extension = Extension { form: Some(foreign.form), ..read_bytes(candidate, foreign.to_bytes(), rules) };
    extension.problems.extend(foreign.left.iter().map(|left| {
        let message = format!("a part of this {} is not loaded: {left}", foreign.form);
        whole_file(Code::Ignored, Severity::Warning, &candidate.root, message)
    }));
    Some(extension)
}

/// The problems of a manifest that is not in its folder yet.
pub(super) fn problems_of(root: &Path, manifest: Vec<u8>, rules: &Rules) -> Vec<Problem> {
    read_bytes(&Candidate::new(root.to_owned(), Layer::User), manifest, rules).problems
}

fn read_bytes(candidate: &Candidate, manifest: Vec<u8>, rules: &Rules) -> Extension {
    match file::open(&candidate.root.join(MANIFEST), Syntax::Json, manifest) {
        Ok((document, node)) => understand(candidate, &document, &node, rules, &mut StampSet::default()),
        Err(problem) => failed(candidate, *problem),
    }
}

/// Reads the extension in a copy of its folder, if it is valid.
pub(super) fn read_copy(copy: &Path, candidate: &Candidate, rules: &Rules) -> Option<Extension> {
    let bytes = file::bytes(&copy.join(MANIFEST), LARGEST_FILE).ok()??;
    // Its hooks keep the paths of the original folder, because their approvals name these.
    let path = candidate.root.join(MANIFEST);
    let (document, node) = file::open(&path, Syntax::Json, bytes).ok()?;
    let extension = understand(candidate, &document, &node, rules, &mut StampSet::default());
    Some(extension).filter(|extension| !extension.is_broken())
}

/// The state of a file that has not changed for a while. A change right after another one may not show in the state.
fn quiet(meta: &Metadata, now: SystemTime) -> Option<StatKey> {
    const WHILE: Duration = Duration::from_secs(2);
    let key = StatKey::of(meta);
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.checked_sub(WHILE)?;
    (u128::try_from(key.ctime_ns).ok()? < now.as_nanos()).then_some(key)
}

/// A value that distinguishes contents, but not against deliberate collisions.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The problem of a manifest that is a link and does not lead to a file of the extension.
fn astray(root: &Path) -> Option<Problem> {
    let (message, help) = path::inside(root, MANIFEST, &PathCache::default()).err()?.of_extension();
    Some(Problem {
        help: Some(help.to_owned()),
        ..whole_file(Code::UnsafePath, Severity::Error, &root.join(MANIFEST), message)
    })
}

fn understand(
    candidate: &Candidate,
    document: &Document<'_>,
    node: &Node,
    rules: &Rules,
    looked: &mut StampSet,
) -> Extension {
    let (source, walked) = (candidate.source(looked), PathCache::default());
    let root = Cursor::root(node);
    let name = manifest::name(&root).unwrap_or_else(|| folder_name(&candidate.root));
    let mut findings = Vec::new();
    let folder = candidate.root.as_path();
    let manifest = manifest::read(&mut Check { folder, walked: &walked, findings: &mut findings }, &root);
    let mut hooks = Vec::new();
    if manifest.is_some()
        && let Some(events) = root.get("hooks").filter(|hooks| matches!(hooks.node, Node::Map(_)))
    {
        let context = Context {
            path: document.path,
            folder,
            label: &name,
            source,
            layer: candidate.layer,
            group: None,
            agent: None,
            extension: Some(&name),
            project: candidate.enclosing.as_deref(),
            encloses: candidate.enclosing.is_some(),
            rules,
            walked: &walked,
        };
        let mut ids = Ids::default();
        let mut intake = HookCollector::new(&context, &mut ids);
        events::take_events(&events, &mut intake);
        let (taken, found) = intake.located(document);
        hooks = taken;
        findings.extend(found);
    }
    if let Some(manifest) = &manifest {
        permission::check(&mut Check { folder, walked: &walked, findings: &mut findings }, &root, manifest, &hooks);
    }
    looked.extend(walked.stamps());
    setting::hide_whole(&root, &mut findings);
    let problems = document.problems(findings);
    let state = error_of(&problems).map_or(ExtensionState::On, ExtensionState::Failed);
    let manifest = manifest.unwrap_or_default();
    Extension { name, manifest, hooks, ..unread(candidate, source, state, problems) }
}

/// Why an extension cannot be loaded, in one line.
fn error_of(problems: &[Problem]) -> Option<String> {
    let mut errors = problems.iter().filter(|problem| problem.severity <= Severity::Error);
    let first = errors.next()?;
    Some(match errors.count() {
        0 => first.to_string(),
        more => format!("{first} (and {more} more)"),
    })
}

fn failed(candidate: &Candidate, problem: Problem) -> Extension {
    let source = candidate.source(&mut StampSet::default());
    unread(candidate, source, ExtensionState::Failed(problem.to_string()), vec![problem])
}

/// An extension of which only the name and the fault are known.
pub(super) fn unread(
    candidate: &Candidate,
    source: Source,
    state: ExtensionState,
    problems: Vec<Problem>,
) -> Extension {
    Extension {
        name: folder_name(&candidate.root),
        root: candidate.root.clone(),
        layer: candidate.layer,
        enclosing: candidate.enclosing.clone(),
        source,
        manifest: Manifest::default(),
        hooks: Vec::new(),
        values: Vec::new(),
        verdict: state.clone(),
        state,
        digest: None,
        fingerprint: None,
        quiet: None,
        stamps: None,
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
