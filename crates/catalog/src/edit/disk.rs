//! Changes a hook file on disk: locks it, reads it again, and writes it in one step.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::action::ActionType;
use ollm_protocol::hook::key::{HOOK_KEYS, HookKey};
use ollm_protocol::{Code, Hook, HookSpec, Layer, Origin, Rules, Source};
use ollm_store::FileError;
use serde_json::{Map, Value};

use super::{EditError, LARGEST_FILE, add, remove, set, unset};
use crate::entry::{canonical, meant};
use crate::file::{Finding, Syntax};
use crate::format::{Context, Form, HookCollector, Ids, agent, take};
use crate::node::{Cursor, Node, Spot};
use crate::path::PathCache;
use crate::problem::{Problem, Severity};

/// A change of one hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<'a> {
    /// Removes the hook.
    Remove,
    /// Sets a key.
    Set(&'a str, &'a Value),
    /// Removes a key.
    Unset(&'a str),
}

/// What a change did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Whether the file was written or removed.
    pub is_changed: bool,
    /// Whether the file was removed, because it held nothing else.
    pub is_removed: bool,
    /// The keys to remove that the hook did not set.
    pub missing: Vec<String>,
}

/// The owner of a file, and the rules for its hooks.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Where its hooks come from.
    pub source: Source,
    /// The layer of its folder.
    pub layer: Layer,
    /// The rules for all hooks.
    pub rules: &'a Rules,
}

/// Changes a loaded hook in the file that declares it.
///
/// The file is read again under the lock. The loaded hook must still be there unchanged, and the changed file must
/// load. Otherwise the file stays unchanged. A file that holds nothing more is removed.
pub fn change(hook: &Hook, rules: &Rules, changes: &[Change<'_>]) -> Result<Changed, EditError> {
    let spec = &hook.spec;
    let path = &spec.origin.file;
    let file = DeclaredFile::of(hook, rules);
    let mut done = Changed::default();
    rewrite(path, |before| {
        let reading = file.read(before)?;
        let which = reading.which(hook).ok_or(EditError::Changed)?;
        let removes = changes.contains(&Change::Remove);
        let text = match changes {
            _ if removes && reading.single => String::new(),
            changes => changes.iter().try_fold(before.to_owned(), |text, change| match change {
                Change::Remove => remove(&text, file.syntax, which),
                Change::Set(key, value) => set(&text, file.syntax, which, key, value),
                Change::Unset(key) => {
                    let without = unset(&text, file.syntax, which, key)?;
                    if without == text {
                        done.missing.push(known(key)?);
                    }
                    Ok(without)
                }
            })?,
        };
        done.is_changed = text != before;
        done.is_removed = removes && file.is_empty(&text)?;
        if done.is_removed {
            fs::remove_file(path).map_err(|source| FileError::Io { doing: "remove", path: path.clone(), source })?;
            return Ok(None);
        }
        file.check(&text, &reading.faults)?;
        Ok(Some(text).filter(|_| done.is_changed))
    })?;
    Ok(done)
}

/// A key that a hook may have.
fn known(key: &str) -> Result<String, EditError> {
    let first = key.split('.').next().unwrap_or(key);
    let keys = action_keys();
    if HookKey::find(first).is_some() || keys.contains(&canonical(first).as_ref()) {
        return Ok(key.to_owned());
    }
    let known: Vec<&str> = HOOK_KEYS.iter().map(|row| row.name).chain(keys).collect();
    Err(EditError::Unknown { key: key.to_owned(), help: meant(first, &known) })
}

/// Adds a hook to a file, which is created if it is missing. The resulting text is checked first.
pub fn append(
    path: &Path,
    form: Form,
    event: &str,
    entry: &Map<String, Value>,
    owner: Owner<'_>,
) -> Result<(), EditError> {
    let label = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let syntax = Syntax::of(path);
    let file = DeclaredFile { path: path.to_owned(), label, owner, syntax, settings: form == Form::Agent };
    rewrite(path, |text| {
        let before = if text.trim().is_empty() { Faults::default() } else { file.read(text)?.faults };
        let text = add(text, file.syntax, form, event, entry)?;
        file.check(&text, &before)?;
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

/// A file, with the context for reading its hooks.
struct DeclaredFile<'a> {
    path: PathBuf,
    label: String,
    owner: Owner<'a>,
    syntax: Syntax,
    /// Whether it is another tool's settings file, in which any keys are allowed.
    settings: bool,
}

/// The declarations in a text.
struct Reading {
    hooks: Vec<(Hook, Spot)>,
    faults: Faults,
    /// Whether the file is one hook.
    single: bool,
    places: Vec<Vec<usize>>,
}

/// The faults that a text already has.
#[derive(Default)]
struct Faults {
    errors: usize,
    /// The fields with unknown keys.
    unknown: Vec<String>,
}

impl Faults {
    fn of(findings: &[Finding]) -> Faults {
        let errors = findings.iter().filter(|finding| finding.severity <= Severity::Error).count();
        Faults { errors, unknown: unknown_keys(findings).map(|(field, _)| field.to_owned()).collect() }
    }
}

/// The keys of all actions.
fn action_keys() -> Vec<&'static str> {
    ActionType::of_files().flat_map(|kind| kind.keys).map(|row| row.name).collect()
}

/// The fields with unknown keys, each with the remedy.
fn unknown_keys(findings: &[Finding]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let unknown = findings.iter().filter(|finding| finding.code == Code::UnknownKey);
    unknown.filter_map(|finding| Some((finding.spot.as_ref()?.field.as_str(), finding.help.as_deref())))
}

impl<'a> DeclaredFile<'a> {
    fn of(hook: &Hook, rules: &'a Rules) -> DeclaredFile<'a> {
        let HookSpec { source, layer, origin, .. } = &hook.spec;
        let path = origin.file.clone();
        let (label, owner) = (label(hook), Owner { source: *source, layer: *layer, rules });
        DeclaredFile { settings: label.starts_with(".config/"), label, owner, syntax: Syntax::of(&path), path }
    }

    fn read(&self, text: &str) -> Result<Reading, EditError> {
        let draft = super::read(text, self.syntax)?;
        let (hooks, findings) = self.take(draft.root());
        let cursor = Cursor::root(draft.root());
        let single = matches!(Form::of(&cursor), Some(Form::Modern | Form::WhenThen));
        let places = super::HookPlace::all(&cursor).into_iter().map(|place| place.entry).collect();
        Ok(Reading { hooks, faults: Faults::of(&findings), single, places })
    }

    /// Whether a text without hooks says nothing else. Another tool's settings file is never empty.
    fn is_empty(&self, text: &str) -> Result<bool, EditError> {
        let is_json = serde_json::from_str::<Value>(text).is_ok();
        let may_have_comments = !is_json && ["#", "//", "/*"].iter().any(|mark| text.contains(mark));
        let says_nothing = |node: &Node| match node {
            Node::Map(entries) => entries.iter().all(|(_, value)| value.is_nothing()),
            node => node.is_nothing(),
        };
        let is_empty = match super::read(text, self.syntax)?.root() {
            Node::Map(entries) => {
                entries.iter().all(|(key, value)| matches!(&**key, "$schema" | "version") || says_nothing(value))
            }
            root => root.is_nothing(),
        };
        Ok(is_empty && !may_have_comments && !self.settings)
    }

    /// Refuses a text with an error or an unknown key that was not there before.
    fn check(&self, text: &str, before: &Faults) -> Result<(), EditError> {
        let draft = super::read(text, self.syntax)?;
        let (_, findings) = self.take(draft.root());
        if let Some((field, help)) =
            unknown_keys(&findings).find(|(field, _)| !before.unknown.iter().any(|old| old == field))
        {
            let key = field.rsplit('.').next().unwrap_or(field).to_owned();
            let help = help.map(str::to_owned).or_else(|| meant(&key, &action_keys()));
            return Err(EditError::Unknown { key, help });
        }
        let errors: Vec<_> = findings.into_iter().filter(|finding| finding.severity <= Severity::Error).collect();
        if errors.len() <= before.errors {
            return Ok(());
        }
        let problems: Vec<Problem> = draft.document(&self.path).problems(errors);
        problems.into_iter().next().map_or(Ok(()), |problem| Err(EditError::Refused(Box::new(problem))))
    }

    fn take(&self, root: &Node) -> (Vec<(Hook, Spot)>, Vec<Finding>) {
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
            walked: &PathCache::default(),
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
    /// The index of this hook, if it is unchanged.
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
    // The longest label that the id contains. A chosen id contains none, and needs none.
    let known = [3, 2].into_iter().map(&tail).find(|label| hook.id().contains(&format!(":{label}:")));
    known.unwrap_or_else(|| {
        let settings = tail(3);
        if settings.starts_with(".config/") { settings } else { tail(1) }
    })
}
