//! Changing a hook file on disk: under a lock, read again, written in one step.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::{Hook, HookSpec, Layer, Origin, Rules, Source};
use ollm_store::FileError;
use serde_json::{Map, Value};

use super::{EditError, add, remove, set, unset};
use crate::file::{Document, Syntax};
use crate::format::{Context, Form, HookCollector, Ids, agent, take};
use crate::node::{Cursor, Spot};
use crate::path::Walked;
use crate::problem::{Problem, Severity};

/// Larger files are not edited.
const LARGEST_FILE: u64 = 4 << 20;

/// A change of one hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<'a> {
    /// It goes.
    Remove,
    /// A key gets a value.
    Set(&'a str, &'a Value),
    /// A key goes.
    Unset(&'a str),
}

/// Whose file it is, and what its hooks are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Where its hooks come from.
    pub source: Source,
    /// Whose folder it is in.
    pub layer: Layer,
    /// What applies to all hooks.
    pub rules: &'a Rules,
}

/// Changes a loaded hook in the file that declares it.
///
/// The file is read again under the lock. The hook must be there as it was loaded, and the changed file must load: if
/// not, the file stays as it is. The only hook of a file of its own goes with the file.
pub fn change(hook: &Hook, rules: &Rules, changes: &[Change<'_>]) -> Result<(), EditError> {
    let spec = &hook.spec;
    let path = &spec.origin.file;
    let file = Declared::of(hook, rules);
    rewrite(path, |text| {
        let before = file.read(text)?;
        let which = before.which(hook).ok_or(EditError::Changed)?;
        if changes.contains(&Change::Remove) && before.single {
            fs::remove_file(path).map_err(|source| FileError::Io { doing: "remove", path: path.clone(), source })?;
            return Ok(None);
        }
        let text = changes.iter().try_fold(text.to_owned(), |text, change| match change {
            Change::Remove => remove(&text, file.syntax, which),
            Change::Set(key, value) => set(&text, file.syntax, which, key, value),
            Change::Unset(key) => unset(&text, file.syntax, which, key),
        })?;
        file.check(&text, before.errors)?;
        Ok(Some(text))
    })
}

/// Adds a hook to a file, which is made if it is missing; what the file would make of it is checked first.
pub fn append(
    path: &Path,
    form: Form,
    event: &str,
    entry: &Map<String, Value>,
    owner: Owner<'_>,
) -> Result<(), EditError> {
    let label = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let syntax = Syntax::of(path);
    let file = Declared { path: path.to_owned(), label, owner, syntax, settings: form == Form::Agent };
    rewrite(path, |text| {
        let before = if text.trim().is_empty() { 0 } else { file.read(text)?.errors };
        let text = add(text, file.syntax, form, event, entry)?;
        file.check(&text, before)?;
        Ok(Some(text))
    })
}

/// Reads, changes and replaces a text file under its lock.
pub fn rewrite(path: &Path, with: impl FnOnce(&str) -> Result<Option<String>, EditError>) -> Result<(), EditError> {
    ollm_store::rewrite(path, LARGEST_FILE, |bytes| {
        let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|_| EditError::Broken {
            line: 0,
            column: 0,
            message: "it is not UTF-8 text".to_owned(),
        })?;
        Ok(with(&text)?.map(String::into_bytes))
    })
}

/// A file and what it means for the hooks in it.
struct Declared<'a> {
    path: PathBuf,
    label: String,
    owner: Owner<'a>,
    syntax: Syntax,
    /// Whether it is another tool's, whatever its keys.
    settings: bool,
}

/// What a text declares.
struct Reading {
    hooks: Vec<(Hook, Spot)>,
    errors: usize,
    /// Whether the file is one hook.
    single: bool,
    places: Vec<Vec<usize>>,
}

impl<'a> Declared<'a> {
    fn of(hook: &Hook, rules: &'a Rules) -> Declared<'a> {
        let HookSpec { source, layer, origin, .. } = &hook.spec;
        let path = origin.file.clone();
        let (label, owner) = (label(hook), Owner { source: *source, layer: *layer, rules });
        Declared { settings: label.starts_with(".config/"), label, owner, syntax: Syntax::of(&path), path }
    }

    fn read(&self, text: &str) -> Result<Reading, EditError> {
        let draft = super::read(text, self.syntax)?;
        let (hooks, findings) = self.take(draft.root());
        let errors = findings.iter().filter(|finding| finding.severity <= Severity::Error).count();
        let cursor = Cursor::root(draft.root());
        let single = matches!(Form::of(&cursor), Some(Form::Modern | Form::WhenThen));
        let places = super::Place::all(&cursor).into_iter().map(|place| place.entry).collect();
        Ok(Reading { hooks, errors, single, places })
    }

    /// Whether a text has no error that was not there before.
    fn check(&self, text: &str, before: usize) -> Result<(), EditError> {
        let draft = super::read(text, self.syntax)?;
        let (_, findings) = self.take(draft.root());
        let errors: Vec<_> = findings.into_iter().filter(|finding| finding.severity <= Severity::Error).collect();
        if errors.len() <= before {
            return Ok(());
        }
        let problems: Vec<Problem> = Document::new(&self.path, self.syntax, draft.text().to_owned()).problems(errors);
        problems.into_iter().next().map_or(Ok(()), |problem| Err(EditError::Refused(Box::new(problem))))
    }

    fn take(&self, root: &crate::node::Node) -> (Vec<(Hook, Spot)>, Vec<crate::file::Finding>) {
        let folder = self.path.parent().unwrap_or(&self.path);
        let context = Context {
            path: &self.path,
            folder,
            label: &self.label,
            source: self.owner.source,
            layer: self.owner.layer,
            group: None,
            agent: None,
            extension: None,
            project: None,
            encloses: false,
            rules: self.owner.rules,
            walked: &Walked::default(),
        };
        let mut ids = Ids::default();
        let mut intake = HookCollector::new(&context, &mut ids);
        let cursor = Cursor::root(root);
        let take = if self.settings { agent::take } else { take };
        take(&cursor, &mut intake);
        let HookCollector { hooks, spots, findings, .. } = intake;
        (hooks.into_iter().zip(spots).collect(), findings)
    }
}

impl Reading {
    /// Which of the hooks is this one, unchanged.
    fn which(&self, hook: &Hook) -> Option<usize> {
        let same = |found: &Hook| {
            let bare = |spec: &HookSpec| HookSpec {
                id: spec.own_id().to_owned(),
                origin: Origin::default(),
                project: None,
                group: None,
                ..spec.clone()
            };
            bare(&found.spec) == bare(&hook.spec)
        };
        let (_, spot) = self.hooks.iter().find(|(found, _)| same(found))?;
        self.places.iter().position(|place| *place == spot.steps)
    }
}

/// The file's part of the hook's id.
fn label(hook: &Hook) -> String {
    let path = &hook.spec.origin.file;
    let parts: Vec<_> = path.components().rev().take(3).map(|part| part.as_os_str().to_string_lossy()).collect();
    let tail = |count: usize| parts.iter().take(count).rev().map(|part| &**part).collect::<Vec<_>>().join("/");
    // The longest that the id speaks of; a chosen id speaks of none, and then none is needed.
    let known = [3, 2].into_iter().map(&tail).find(|label| hook.id().contains(&format!(":{label}:")));
    known.unwrap_or_else(|| {
        let settings = tail(3);
        if settings.starts_with(".config/") { settings } else { tail(1) }
    })
}
