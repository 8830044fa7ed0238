//! Replaces older names of settings in a file by the present names.

use std::path::{Path, PathBuf};

use ollm_protocol::Layer;
use ollm_store::write_atomic;

use super::entry::{at, nested, set, steps, unset};
use super::{EditError, by_hand, draft, target, update};
use crate::config::key::{KeyPlace, place};
use crate::config::kind::ConfigKind;
use crate::config::older;
use crate::config::written::{self, WrittenValue};
use crate::file::parse_yaml;
use crate::node::{Cursor, Node};
use crate::place::Places;
use crate::problem::Severity;
use crate::text_edit::{Draft, Op, Refusal};
use crate::value::ReadValue;
use crate::yaml_edit;

/// After this many backups of a file, the last one is overwritten.
const MOST_BACKUPS: usize = 100;

/// A file whose older names were replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The file.
    pub file: PathBuf,
    /// Each older path with the present one; empty if there was nothing to do.
    pub moves: Vec<(String, String)>,
    /// The backup of the earlier file.
    pub backup: Option<PathBuf>,
}

/// Replaces older names by the present ones, and keeps a backup beside the file.
pub fn migrate(places: &Places, layer: Layer) -> Result<Migration, EditError> {
    let (file, top) = target(places, layer)?;
    let mut migration = Migration { file: file.clone(), moves: Vec::new(), backup: None };
    if !file.exists() {
        return Ok(migration);
    }
    update(&file, &top, |old| {
        let (new, moves) = modern(&file, &old)?;
        if moves.is_empty() {
            return Ok(None);
        }
        let backup = spare(&file);
        write_atomic(&backup, old.as_bytes())?;
        (migration.moves, migration.backup) = (moves, Some(backup));
        Ok(Some(new))
    })?;
    Ok(migration)
}

/// The text with present names, and the moved paths.
fn modern(file: &Path, old: &str) -> Result<(String, Vec<(String, String)>), EditError> {
    let mut draft = draft(file, old)?;
    let mut moves = Vec::new();
    // Each round moves one entry and never moves it back.
    while let Some((from, to, kind)) = outdated(draft.root(), &[]) {
        shift(&mut draft, &refs(&from), &refs(&to), kind)
            .map_err(|refusal| by_hand(file, &refusal, format!("write `{}` as `{}`", from.join("."), to.join("."))))?;
        moves.push((from.join("."), to.join(".")));
    }
    let text = draft.into_text();
    let said = |text: &str| {
        let node = parse_yaml(text).unwrap_or(Node::Null);
        let (mut said, _) = written::read(&Cursor::root(&node), Severity::Fatal);
        said.sort_by(|one, other| one.path.cmp(&other.path));
        said.into_iter().map(|WrittenValue { path, value, .. }| (path, value)).collect::<Vec<_>>()
    };
    if said(old) == said(&text) {
        return Ok((text, moves));
    }
    let way = "replace the older names by hand".to_owned();
    Err(EditError::ByHand { file: file.to_owned(), line: 1, way })
}

fn refs(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// The first entry under an older name, the present path, and the older kind if it differs.
fn outdated(node: &Node, path: &[&str]) -> Option<(Vec<String>, Vec<String>, Option<ConfigKind>)> {
    let Node::Map(entries) = node else { return None };
    entries.iter().find_map(|(name, below)| {
        let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        let from = || path.iter().map(|&name| name.to_owned()).collect();
        match place(&path) {
            KeyPlace::Leaf(_) => None,
            KeyPlace::Section => outdated(below, &path),
            KeyPlace::Open(_) | KeyPlace::Nowhere => older::today(&path).map(|(today, kind)| (from(), today, kind)),
        }
    })
}

/// Moves one entry.
fn shift(draft: &mut Draft, from: &[&str], to: &[&str], kind: Option<ConfigKind>) -> Result<(), Refusal> {
    let root = draft.root();
    let value = at(root, from).ok_or(Refusal::NoSuch)?.clone();
    let is_map = matches!(&value, Node::Map(entries) if !entries.is_empty());
    let occupied = at(root, to).is_some_and(|there| !matches!(there, Node::Null));
    if occupied && !is_map || matches!(value, Node::Null) {
        return unset(draft, from);
    }
    let steps = steps(root, from);
    let (Some((index, section)), Some((name, above))) = (steps.split_last(), to.split_last()) else {
        return Err(Refusal::NoSuch);
    };
    if occupied {
        return Err(draft.by_hand(&steps));
    }
    if from.get(..section.len()) == Some(above) && kind.is_none() {
        return draft.perform(&Op::Rename { at: section, index: *index, key: name });
    }
    if is_map && section.is_empty() {
        return nest(draft, *index, to, &value).or_else(|_| carry(draft, from, to, &value));
    }
    let value = match kind.map(|kind| kind.read(&value)) {
        Some(ReadValue::Exact(value) | ReadValue::Converted(value)) => Node::from_json(&value),
        _ => value,
    };
    carry(draft, from, to, &value)
}

/// Moves a map at the top below a path, with the comments in it.
fn nest(draft: &mut Draft, index: usize, path: &[&str], value: &Node) -> Result<(), Refusal> {
    let mut wanted = draft.root().clone();
    let (Node::Map(entries), Node::Map(moved)) = (&mut wanted, nested(path, value)) else {
        return Err(Refusal::NoSuch);
    };
    entries.splice(index..=index, moved);
    let text = yaml_edit::nested(draft.text(), index, path).ok_or(Refusal::NoSuch)?;
    draft.accept(text, &wanted, &[index])
}

/// Removes an entry and adds it elsewhere, with the comment after it. Other comments inside it would be lost, so it
/// must have none.
fn carry(draft: &mut Draft, from: &[&str], to: &[&str], value: &Node) -> Result<(), Refusal> {
    let comments = |draft: &Draft| draft.text().matches('#').count();
    let (before, there) = (comments(draft), steps(draft.root(), from));
    let lost = draft.by_hand(&there);
    let comment = yaml_edit::comment_behind(draft.text(), &there);
    unset(draft, from)?;
    set(draft, to, value)?;
    if let Some(comment) = comment {
        let (wanted, here) = (draft.root().clone(), steps(draft.root(), to));
        let text = yaml_edit::with_comment(draft.text(), &here, &comment);
        draft.accept(text.ok_or(Refusal::NoSuch)?, &wanted, &here)?;
    }
    if comments(draft) == before { Ok(()) } else { Err(lost) }
}

/// A name for the earlier file.
fn spare(file: &Path) -> PathBuf {
    let name = |number: usize| {
        let suffix = if number == 1 { String::new() } else { format!(".{number}") };
        file.with_file_name(format!("config.yaml.bak{suffix}"))
    };
    (1..MOST_BACKUPS).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(MOST_BACKUPS))
}
