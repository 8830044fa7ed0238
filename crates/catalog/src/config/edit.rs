//! Changes a `config.yaml`: one value at a time, without touching anything else.
//!
//! A change is checked before it is written. The value must be valid for its key, a project's file must be allowed to
//! set it, and the file must not get a new problem. The file is read again under its lock, so that no writer undoes
//! another's change. It is replaced in one step, so that a full disk leaves the old file intact.

use std::path::{Path, PathBuf};

use ollm_protocol::{Code, Layer, nearest};
use ollm_store::{FileError, check_owner, current_uid};
use serde_json::Value;

use super::key::{Key, KeyPlace, in_map, maps, names, place};
use super::kind::ConfigKind;
use super::written;
use super::{LARGEST_FILE, layer, older};
use crate::file::{self, Document, Syntax, parse_yaml};
use crate::node::{Cursor, Node, Part};
use crate::place::Places;
use crate::problem::{Problem, Severity};
use crate::text_edit::{Draft, Refusal};
use crate::value::ReadValue;
use crate::yaml_edit;

mod entry;
mod migrate;

use entry::at;
pub use migrate::{Migration, migrate};

/// The change of an entry.
#[derive(Clone, Copy, Debug)]
pub enum Edit<'a> {
    /// Set it to this typed text.
    Set(&'a str),
    /// Set it to exactly this value: a text stays a text, even if it looks like a number.
    Value(&'a Value),
    /// Remove it.
    Unset,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigEdit {
    /// The file.
    pub file: PathBuf,
    /// The line of the value, counted from one; zero for a removed value.
    pub line: usize,
    /// The column of the value in characters, counted from one; zero for a removed value.
    pub column: usize,
    /// The value in its canonical form; `None` for a removed value.
    pub value: Option<Value>,
    /// Whether the file differs from before.
    pub changed: bool,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// There is no such setting.
    #[error("there is no setting `{path}`")]
    Unknown {
        /// The path that was given.
        path: String,
        /// A similar setting.
        near: Option<String>,
    },
    /// The value is not valid for the setting.
    #[error("`{path}` must be {expected}, not `{typed}`")]
    Value {
        /// The setting.
        path: String,
        /// The valid values.
        expected: String,
        /// The text that was typed.
        typed: String,
    },
    /// A project may not set this.
    #[error("`{path}` would be ignored in a project: {why}")]
    Ignored {
        /// The setting.
        path: String,
        /// Why.
        why: String,
    },
    /// The machine's policy overrides it, or it may not be set from here.
    #[error("`{path}` cannot be set: {why}")]
    Held {
        /// The setting.
        path: String,
        /// Why.
        why: String,
    },
    /// There is no project here.
    #[error("there is no project here, and so no configuration of one")]
    NoProject,
    /// The file is invalid.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// The change would add a problem to the file.
    #[error("`{path}` cannot be set so: {message}")]
    Worse {
        /// The setting.
        path: String,
        /// The problem.
        message: String,
    },
    /// The file has the setting under an older name.
    #[error("`{path}` is in {} under an older name", file.display())]
    Older {
        /// The setting.
        path: String,
        /// The file.
        file: PathBuf,
    },
    /// Another user could have written the file.
    #[error("it is not changed: {0}")]
    Unsafe(String),
    /// The text's form does not allow a safe change.
    #[error("{}:{line} has a form that cannot be changed safely from here", file.display())]
    ByHand {
        /// The file.
        file: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// What to do instead.
        way: String,
    },
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The row of the table for a path with names in it.
pub(crate) fn find(path: &str) -> Result<(&'static Key, Vec<&str>), EditError> {
    let mut parts: Vec<&str> = path.split('.').collect();
    if let Some(setting) = in_map(&parts) {
        parts = setting.split('.').collect();
    }
    match place(&parts) {
        KeyPlace::Leaf(key) | KeyPlace::Open(key) => Ok((key, parts)),
        KeyPlace::Section | KeyPlace::Nowhere => Err(EditError::Unknown { path: path.to_owned(), near: near(&parts) }),
    }
}

/// The setting that is similar to an unknown path.
fn near(parts: &[&str]) -> Option<String> {
    if let Some((today, _)) = older::today(parts) {
        return Some(today.join("."));
    }
    let known = (0..parts.len()).find(|depth| matches!(parts.get(..=*depth).map(place), Some(KeyPlace::Nowhere)))?;
    let (above, rest) = parts.split_at(known);
    let below = names(above);
    // A path without settings below it is set as a whole.
    if below.is_empty() && matches!(place(above), KeyPlace::Leaf(_)) {
        return Some(above.join("."));
    }
    let name = nearest(rest.first()?, below)?;
    let path = above.iter().copied().chain([name]).chain(rest.iter().skip(1).copied());
    Some(path.collect::<Vec<_>>().join("."))
}

/// Changes one setting in the user's or the project's file.
pub fn change(places: &Places, layer: Layer, path: &str, edit: Edit<'_>) -> Result<ConfigEdit, EditError> {
    let (key, parts) = find(path)?;
    let path = parts.join(".");
    let path = path.as_str();
    let (file, top) = target(places, layer)?;
    let value = match edit {
        Edit::Set(typed) => Some(meant(path, key.kind, typed)?),
        Edit::Value(value) => Some(Node::from_json(value)),
        Edit::Unset => None,
    };
    if let Some(why) = value.as_ref().and_then(|value| layer::refusal(places, layer, key, path, value)) {
        let path = path.to_owned();
        return Err(match layer {
            Layer::User => EditError::Held { path, why },
            Layer::Workspace => EditError::Ignored { path, why },
        });
    }
    let mut edited = None;
    update(&file, &top, |old| {
        if stands_under_older_name(&old, path) {
            return Err(EditError::Older { path: path.to_owned(), file: file.clone() });
        }
        let new = spliced(&file, &old, &parts_in(&old, &parts), value.as_ref())?;
        check(&file, &old, &new, path)?;
        edited = Some(found(&file, &new, path, new != old)?);
        Ok((new != old).then_some(new))
    })?;
    edited.ok_or(EditError::NoProject)
}

/// Removes all settings of an extension from the user's file; returns whether there were any.
pub fn forget_extension(places: &Places, name: &str) -> Result<bool, EditError> {
    let (file, top) = target(places, Layer::User)?;
    let without = |old: &str| {
        let new = spliced(&file, old, &["extensions", "settings", name], None)?;
        Ok::<_, EditError>(if new == old { new } else { without_empty(&file, new) })
    };
    let is_there = |old: String| without(&old).map_or(true, |new| new != old);
    // If there is nothing to change, no lock file is left beside it.
    if !file.exists() || std::fs::read_to_string(&file).is_ok_and(|old| !is_there(old)) {
        return Ok(false);
    }
    let mut changed = false;
    update(&file, &top, |old| {
        let new = without(&old)?;
        check(&file, &old, &new, "extensions.settings")?;
        changed = new != old;
        Ok(changed.then_some(new))
    })?;
    Ok(changed)
}

/// The text without empty sections of extensions; a section with a comment is not empty.
fn without_empty(file: &Path, mut text: String) -> String {
    for parts in [&["extensions", "settings"][..], &["extensions"]] {
        let node = parse_yaml(&text).unwrap_or(Node::Null);
        let is_empty =
            parts.iter().try_fold(&node, |node, part| inside(node, part)).is_some_and(|section| match section {
                Node::Map(entries) => entries.is_empty(),
                other => *other == Node::Null,
            });
        let comments = |text: &str| text.matches('#').count();
        match spliced(file, &text, parts, None) {
            Ok(shorter) if is_empty && comments(&shorter) == comments(&text) => text = shorter,
            _ => break,
        }
    }
    if text.trim().is_empty() { String::new() } else { text }
}

/// The file of a layer, and the folder from which on it must belong to the user alone.
fn target(places: &Places, layer: Layer) -> Result<(PathBuf, PathBuf), EditError> {
    match layer {
        Layer::User => Ok((places.config(), places.top().to_owned())),
        Layer::Workspace => {
            let (file, project) = (places.project_config(), places.project.clone());
            let (file, project) = file.zip(project).ok_or(EditError::NoProject)?;
            if leads_out(&file, &project) {
                return Err(EditError::Unsafe(format!("{} leads out of the project", file.display())));
            }
            Ok((file, project))
        }
    }
}

/// Whether the folder of a file is a link out of the project: a repository can have a link to any folder of its user.
fn leads_out(file: &Path, project: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (file.parent().and_then(real), real(project)) {
        (Some(folder), Some(project)) => !folder.starts_with(project),
        _ => false,
    }
}

/// Whether a file of this layer can be changed, without changing it.
pub fn check_target(places: &Places, layer: Layer) -> Result<(), EditError> {
    let (file, top) = target(places, layer)?;
    check_place(&file, &top)
}

/// Refuses a file that the reader would refuse later, even if it does not exist yet.
fn check_place(file: &Path, top: &Path) -> Result<(), EditError> {
    let Some(there) = file.ancestors().find(|path| path.exists()) else { return Ok(()) };
    // Other users may add files above the top folder.
    if !there.starts_with(top) {
        return Ok(());
    }
    check_owner(there, top, current_uid()).map_err(|why| EditError::Unsafe(why.to_string()))
}

/// Changes the text of a file under its lock, and keeps a byte order mark.
fn update(
    file: &Path,
    top: &Path,
    change: impl FnOnce(String) -> Result<Option<String>, EditError>,
) -> Result<(), EditError> {
    const MARK: char = '\u{feff}';
    check_place(file, top)?;
    // The rewritten file keeps its mode, such as read-only or readable for others.
    ollm_store::rewrite(file, LARGEST_FILE, |bytes| {
        let bytes = bytes.unwrap_or_default();
        file::open(file, Syntax::Yaml, bytes.clone()).map_err(EditError::Problem)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (mark, body) = text.strip_prefix(MARK).map_or(("", text.as_str()), |body| ("\u{feff}", body));
        Ok(change(body.to_owned())?.map(|new| format!("{mark}{new}").into_bytes()))
    })
}

/// The place of a setting in a file: inside the map form of a setting, if the file has one.
fn parts_in<'p>(text: &str, parts: &[&'p str]) -> Vec<&'p str> {
    let node = parse_yaml(text).unwrap_or(Node::Null);
    let setting = parts.join(".");
    let mut written = parts.to_vec();
    for (map, names) in maps() {
        let name = names.iter().find(|(_, known)| *known == setting).map(|(name, _)| *name);
        let found = map.split('.').try_fold(&node, inside);
        if let (Some(name), Some(Node::Map(_))) = (name, found) {
            written = map.split('.').chain([name]).collect();
        }
    }
    written
}

/// The value in a map under a name.
fn inside<'n>(node: &'n Node, part: &str) -> Option<&'n Node> {
    let Node::Map(entries) = node else { return None };
    entries.iter().find(|(name, _)| name == part).map(|(_, value)| value)
}

fn stands_under_older_name(text: &str, path: &str) -> bool {
    let node = parse_yaml(text).unwrap_or(Node::Null);
    let (said, _) = written::read(&Cursor::root(&node), Severity::Fatal);
    said.iter().any(|said| said.older && said.path == path)
}

fn spliced(file: &Path, old: &str, parts: &[&str], value: Option<&Node>) -> Result<String, EditError> {
    let way = || match value {
        Some(value) => {
            let line = yaml_edit::inline(&entry::nested(parts, value));
            let line = line.strip_prefix('{').and_then(|line| line.strip_suffix('}')).unwrap_or(&line);
            format!("write `{line}` into it")
        }
        None => format!("remove `{}` from it", parts.join(".")),
    };
    let mut draft = draft(file, old)?;
    let done = match value {
        Some(value) => entry::set(&mut draft, parts, value),
        None => entry::unset(&mut draft, parts),
    };
    done.map_err(|refusal| by_hand(file, &refusal, way()))?;
    let new = draft.into_text();
    if new.len() as u64 > LARGEST_FILE {
        return Err(by_hand(file, &Refusal::NoSuch, way()));
    }
    Ok(new)
}

fn draft(file: &Path, text: &str) -> Result<Draft, EditError> {
    let broken = |broken| Document::new(file, Syntax::Yaml, text.to_owned()).broken(broken);
    Draft::read(text, Syntax::Yaml).map_err(|error| EditError::Problem(Box::new(broken(error))))
}

fn by_hand(file: &Path, refusal: &Refusal, way: String) -> EditError {
    let line = if let Refusal::ByHand { line, .. } = refusal { *line } else { 1 };
    EditError::ByHand { file: file.to_owned(), line, way }
}

/// Refuses a change that would add a problem.
fn check(file: &Path, old: &str, new: &str, path: &str) -> Result<(), EditError> {
    let before = problems(file, old)?;
    let known = |problem: &Problem| {
        before.iter().any(|before| before.field == problem.field && before.message == problem.message)
    };
    let fresh = problems(file, new)?.into_iter().find(|problem| !known(problem));
    let Some(Problem { code, message, help, .. }) = fresh else { return Ok(()) };
    let help = help.filter(|_| code == Code::UnknownKey).map(|help| format!("; {help}")).unwrap_or_default();
    Err(EditError::Worse { path: path.to_owned(), message: message + &help })
}

fn problems(file: &Path, text: &str) -> Result<Vec<Problem>, EditError> {
    let (document, node) = file::open(file, Syntax::Yaml, text.to_owned().into()).map_err(EditError::Problem)?;
    let (_, findings) = written::read(&Cursor::root(&node), Severity::Fatal);
    Ok(document.problems(findings).into_iter().map(layer::discreet).collect())
}

/// The present place of the value.
fn found(file: &Path, text: &str, path: &str, changed: bool) -> Result<ConfigEdit, EditError> {
    let (document, node) = file::open(file, Syntax::Yaml, text.to_owned().into()).map_err(EditError::Problem)?;
    let parts: Vec<&str> = path.split('.').collect();
    let spot = spot(&Cursor::root(&node), &parts);
    let place = spot.as_ref().map(|spot| document.locate(spot));
    let place = place.unwrap_or_default();
    let value = at(&node, &parts).map(|node| {
        let reading = find(path).map(|(key, _)| key.kind.read(node));
        if let Ok(ReadValue::Exact(value) | ReadValue::Converted(value)) = reading { value } else { node.to_json() }
    });
    Ok(ConfigEdit { file: file.to_owned(), line: place.line, column: place.column, value, changed })
}

fn spot(at: &Cursor<'_>, parts: &[&str]) -> Option<crate::node::Spot> {
    match parts.split_first() {
        None => Some(at.spot(Part::Value)),
        Some((name, rest)) => spot(&at.get(name)?, rest),
    }
}

/// The value that was typed: as YAML, as a list with commas, or as plain text. Text that is meant as text is never
/// converted.
fn meant(path: &str, kind: ConfigKind, typed: &str) -> Result<Node, EditError> {
    let text = Node::Text(typed.to_owned());
    let yaml = parse_yaml(typed).ok().filter(|node| !matches!(node, Node::Text(_) | Node::Null));
    let yaml = yaml.filter(|node| match kind {
        ConfigKind::Text(_) | ConfigKind::Choice(_) => false,
        // If a number or flag would read back differently, it may be meant as text.
        ConfigKind::Setting => says(&node.to_json(), typed),
        _ => true,
    });
    let list = Node::List(typed.split(',').map(|item| Node::Text(item.trim().to_owned())).collect());
    let list = Some(list).filter(|_| matches!(kind, ConfigKind::List(_) | ConfigKind::Trust | ConfigKind::Guards));
    let mut converted = None;
    for node in yaml.into_iter().chain([text]).chain(list) {
        match kind.read(&node) {
            ReadValue::Exact(_) => return Ok(node),
            ReadValue::Converted(value) => converted = converted.or(Some(value)),
            ReadValue::Wrong => {}
        }
    }
    converted.map(|value| Node::from_json(&value)).ok_or_else(|| EditError::Value {
        path: path.to_owned(),
        expected: kind.expected(),
        typed: typed.to_owned(),
    })
}

/// Whether a reader of texts gets this text from a value.
pub(super) fn says(value: &Value, text: &str) -> bool {
    let letters = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    letters == text
}

/// The canonical value for a setting's typed text.
pub(super) fn typed_value(path: &str, typed: &str) -> Result<Value, EditError> {
    let (key, _) = find(path)?;
    let node = meant(path, key.kind, typed)?;
    let (ReadValue::Exact(value) | ReadValue::Converted(value)) = key.kind.read(&node) else {
        return Ok(node.to_json());
    };
    Ok(value)
}
