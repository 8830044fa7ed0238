//! Changes a hook file in its own form and syntax, and keeps its comments and order.
//!
//! This module decides which place of the file changes. If a change would touch anything else, it is refused, and the
//! error names the line to change by hand.
//!
//! [`add`], [`remove`], [`set`], [`unset`] and [`convert`] work on text. [`append`] and [`change`] work on files, under
//! a lock and in one step.

use ollm_protocol::{Hook, Origin};
use serde_json::{Map, Value};

use crate::entry::canonical;
use crate::file::{self, Syntax};
use crate::format::Form;
use crate::node::{Cursor, Node, Part, Spot};
use crate::problem::Problem;
use crate::text_edit::{Draft, EmptiedMap, Op, Refusal};

/// The largest file, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

mod convert;
mod disk;
mod place;

pub use convert::convert;
pub use disk::{Change, Changed, Owner, append, change, rewrite};
use place::HookPlace;

/// Why a hook file was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The text has a syntax error.
    #[error("{}{message}; mend it first", place_of(*line, *column))]
    Broken {
        /// The line, counted from one; zero when unknown.
        line: usize,
        /// The column, counted from one.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The text is not a hook file.
    #[error("it fits no form of hook file; mend it first")]
    Formless,
    /// The text is a hook file of another form than the one asked for.
    #[error("it is {}; use a file of its own", found.what())]
    Other {
        /// The form it is in.
        found: Form,
    },
    /// A file of this form holds one hook.
    #[error("a file of this form holds one hook; use a file of its own")]
    Single,
    /// There is no such hook in the text.
    #[error("there is no such hook in it")]
    NoSuch,
    /// The key belongs to several hooks.
    #[error("`{key}` belongs to a group of {hooks} hooks; change the group by hand")]
    Shared {
        /// The key.
        key: String,
        /// How many hooks the group has.
        hooks: usize,
    },
    /// The key cannot be changed in this form.
    #[error("`{key}` cannot be changed in a file of this form; {help}")]
    Fixed {
        /// The key.
        key: String,
        /// The remedy.
        help: &'static str,
    },
    /// The change would touch something else.
    #[error("this cannot be changed safely: {what}; change line {line} by hand")]
    ByHand {
        /// The line, counted from one.
        line: usize,
        /// The obstacle.
        what: &'static str,
    },
    /// The loaded hook has changed or is gone.
    #[error("it has changed since it was read; look at it again")]
    Changed,
    /// No hook has such a key.
    #[error("a hook has no key `{key}`")]
    Unknown {
        /// The key.
        key: String,
        /// The text about a similar key.
        help: Option<String>,
    },
    /// The hook would no longer load.
    #[error("the changed file would not load: {0}")]
    Refused(Box<Problem>),
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] ollm_store::FileError),
}

impl From<Refusal> for EditError {
    fn from(refusal: Refusal) -> EditError {
        match refusal {
            Refusal::NoSuch => EditError::NoSuch,
            Refusal::ByHand { line, what } => EditError::ByHand { line, what },
        }
    }
}

fn place_of(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}, column {column}: ") }
}

/// Adds a hook for an event. An empty text becomes a file of this form.
///
/// ```
/// use ollm_catalog::{Form, Syntax, edit};
/// let text = "hooks:\n  before_tool: # guards\n    - name: a\n      command: /bin/true\n";
/// let entry = serde_json::json!({"name": "b", "command": "/bin/false"}).as_object().cloned().unwrap();
/// let text = edit::add(text, Syntax::Yaml, Form::Events, "before_tool", &entry).unwrap();
/// assert!(text.contains("before_tool: # guards") && text.ends_with("    - name: b\n      command: /bin/false\n"));
/// ```
pub fn add(
    text: &str,
    syntax: Syntax,
    form: Form,
    event: &str,
    entry: &Map<String, Value>,
) -> Result<String, EditError> {
    let draft = read(text, syntax)?;
    let root = draft.root();
    if matches!(root, Node::Null) {
        return performed(draft, &Op::Fill { value: &Node::from_json(&place::fresh(form, event, entry)) });
    }
    let cursor = Cursor::root(root);
    match (Form::of(&cursor), root) {
        // This is another tool's settings file without hooks.
        (None, Node::Map(_)) if form == Form::Agent => {
            let events = Node::from_json(&place::events(form, event, entry));
            return performed(draft, &Op::Set { at: &[], key: "hooks", value: &events });
        }
        (None, _) => return Err(EditError::Formless),
        (Some(Form::Modern | Form::WhenThen), _) => return Err(EditError::Single),
        (Some(found), _) if found != form && !HookPlace::all(&cursor).is_empty() => {
            return Err(EditError::Other { found });
        }
        (Some(_), _) => {}
    }
    let (at, key, value) = place::slot(&cursor, form, event, entry);
    let value = &Node::from_json(&value);
    match key {
        Some(key) => performed(draft, &Op::Set { at: &at, key: &key, value }),
        None => performed(draft, &Op::Push { at: &at, value }),
    }
}

/// Removes the nth hook, counted from zero. A file of one hook cannot lose it.
pub fn remove(text: &str, syntax: Syntax, which: usize) -> Result<String, EditError> {
    let draft = read(text, syntax)?;
    let place = HookPlace::find(&Cursor::root(draft.root()), which)?;
    let steps = match &place.group {
        // The hook's group would be empty, so it is removed.
        Some(group) if group.hooks == 1 => &group.steps,
        _ => &place.entry,
    };
    match steps.split_last() {
        Some((index, at)) => performed(draft, &Op::Remove { at, index: *index }),
        None => Err(EditError::Fixed { key: "the only hook".to_owned(), help: "remove the file" }),
    }
}

/// Sets a key of the nth hook, counted from zero. The key may be a path such as `limits.time`, with the names of an
/// entry. It is written in the place that the form has for it.
pub fn set(text: &str, syntax: Syntax, which: usize, key: &str, value: &Value) -> Result<String, EditError> {
    let draft = read(text, syntax)?;
    let cursor = Cursor::root(draft.root());
    let path = HookPlace::find(&cursor, which)?.path(&cursor, key)?;
    let (value, at) = path.nested(&cursor, value.clone());
    performed(draft, &Op::Set { at: &at.steps, key: &at.key, value: &Node::from_json(&value) })
}

/// Removes a key of the nth hook, counted from zero. A missing key is not an error.
pub fn unset(text: &str, syntax: Syntax, which: usize, key: &str) -> Result<String, EditError> {
    let draft = read(text, syntax)?;
    let cursor = Cursor::root(draft.root());
    let path = HookPlace::find(&cursor, which)?.path(&cursor, key)?;
    match path.found(&cursor) {
        Some((at, index)) => performed(draft, &Op::Unset { at: &at, index, emptied: EmptiedMap::Map }),
        None => Ok(text.to_owned()),
    }
}

fn read(text: &str, syntax: Syntax) -> Result<Draft, EditError> {
    Draft::read(text, syntax).map_err(|broken| {
        let at = broken.at.unwrap_or_default();
        EditError::Broken { line: at.line, column: at.column, message: broken.message }
    })
}

/// The place of a key in the file that declares a hook. `None` if the hook does not set the key, or if the file has
/// changed since it was loaded.
pub fn key_place(hook: &Hook, key: &str) -> Option<Origin> {
    let declared = &hook.spec.origin;
    let text = file::text(&declared.file, LARGEST_FILE).ok()??;
    let parsed = file::parse_marked(&text, Syntax::of(&declared.file)).ok()?;
    let root = Cursor::root(&parsed.node);
    let locate = |steps: Vec<usize>, part| parsed.locate(&Spot { steps, part, field: String::new() });
    let is_declared_at = |place: &HookPlace| {
        let at = locate(place.entry.clone(), Part::Value);
        (at.line, at.column) == (declared.line, declared.column)
    };
    let place = HookPlace::all(&root).into_iter().find(is_declared_at)?;
    let (mut steps, index) = place.path(&root, key).ok()?.found(&root)?;
    steps.push(index);
    let at = locate(steps, Part::Key);
    Some(Origin { file: declared.file.clone(), line: at.line, column: at.column })
}

fn performed(mut draft: Draft, op: &Op<'_>) -> Result<String, EditError> {
    draft.perform(op)?;
    Ok(draft.into_text())
}

/// The index of a key in a map, in any spelling.
fn index_of(node: &Node, key: &str) -> Option<usize> {
    let Node::Map(entries) = node else { return None };
    entries.iter().position(|(written, _)| written == key || canonical(written) == key)
}
