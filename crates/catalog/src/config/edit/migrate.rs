//! Older names of settings replaced by today's, in the file itself.

use std::path::{Path, PathBuf};

use ollm_protocol::Layer;
use ollm_store::write_atomic;

use super::{EditError, at, splice, target, update};
use crate::config::key::{Place, place};
use crate::config::kind::Kind;
use crate::config::older;
use crate::config::written::{self, Said};
use crate::file::parse_yaml;
use crate::node::{Cursor, Node};
use crate::place::Places;
use crate::problem::Severity;
use crate::value::Reading;

/// From here on the last copy of a file is replaced.
const MOST_BACKUPS: usize = 100;

/// A file whose older names were replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The file.
    pub file: PathBuf,
    /// Each older path with today's; none where there was nothing to do.
    pub moves: Vec<(String, String)>,
    /// The file as it was before.
    pub backup: Option<PathBuf>,
}

/// Replaces older names by today's; the file as it was is kept beside it.
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

/// The text with today's names, and what was moved.
fn modern(file: &Path, old: &str) -> Result<(String, Vec<(String, String)>), EditError> {
    let mut text = old.to_owned();
    let mut moves = Vec::new();
    // Each round moves one entry away for good.
    while let Some((from, to, kind)) = parse_yaml(&text).ok().and_then(|node| outdated(&node, &[])) {
        text = shift(&text, &refs(&from), &refs(&to), kind).ok_or_else(|| EditError::ByHand {
            file: file.to_owned(),
            way: format!("write `{}` as `{}`", from.join("."), to.join(".")),
        })?;
        moves.push((from.join("."), to.join(".")));
    }
    let said = |text: &str| {
        let node = parse_yaml(text).unwrap_or(Node::Null);
        let (mut said, _) = written::read(&Cursor::root(&node), Severity::Fatal);
        said.sort_by(|one, other| one.path.cmp(&other.path));
        said.into_iter().map(|Said { path, value, .. }| (path, value)).collect::<Vec<_>>()
    };
    if said(old) == said(&text) {
        return Ok((text, moves));
    }
    let way = "replace the older names by hand; `ollm config validate` names them".to_owned();
    Err(EditError::ByHand { file: file.to_owned(), way })
}

fn refs(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// The first entry under an older name, today's path, and its kind if that was another one.
fn outdated(node: &Node, path: &[&str]) -> Option<(Vec<String>, Vec<String>, Option<Kind>)> {
    let Node::Map(entries) = node else { return None };
    entries.iter().find_map(|(name, below)| {
        let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        let from = || path.iter().map(|&name| name.to_owned()).collect();
        match place(&path) {
            Place::Leaf(_) => None,
            Place::Section => outdated(below, &path),
            Place::Open(_) | Place::Nowhere => older::today(&path).map(|(today, kind)| (from(), today, kind)),
        }
    })
}

/// Moves one entry.
fn shift(text: &str, from: &[&str], to: &[&str], kind: Option<Kind>) -> Option<String> {
    let node = parse_yaml(text).ok()?;
    let value = at(&node, from)?;
    let is_map = matches!(value, Node::Map(entries) if !entries.is_empty());
    let occupied = at(&node, to).is_some_and(|there| !matches!(there, Node::Null));
    if occupied && !is_map || matches!(value, Node::Null) {
        return splice::unset(text, from);
    }
    if occupied {
        return None;
    }
    if from.split_last()?.1 == to.split_last()?.1 && kind.is_none() {
        return splice::rename(text, from, to.last()?);
    }
    if let (true, [name]) = (is_map, from) {
        return splice::nest(text, name, to).or_else(|| carried(text, from, to, value));
    }
    let value = match kind.map(|kind| kind.read(value)) {
        Some(Reading::Exact(value) | Reading::Converted(value)) => Node::from_json(&value),
        _ => value.clone(),
    };
    carried(text, from, to, &value)
}

/// Takes an entry out and puts it in again, with the comment behind it; other comments inside it would be lost, so it
/// must have none.
fn carried(text: &str, from: &[&str], to: &[&str], value: &Node) -> Option<String> {
    let remark = splice::remark(text, from);
    let moved = splice::set(&splice::unset(text, from)?, to, value)?;
    let moved = remark.map_or(Some(moved.clone()), |remark| splice::remarked(&moved, to, remark))?;
    let comments = |text: &str| text.matches('#').count();
    (comments(&moved) == comments(text)).then_some(moved)
}

/// A name for the file as it was.
fn spare(file: &Path) -> PathBuf {
    let name = |number: usize| {
        let suffix = if number == 1 { String::new() } else { format!(".{number}") };
        file.with_file_name(format!("config.yaml.bak{suffix}"))
    };
    (1..MOST_BACKUPS).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(MOST_BACKUPS))
}
