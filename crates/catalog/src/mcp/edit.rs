//! Writing servers down in `settings/mcp.json`, and taking them out again; everything else in the file stays.

use std::path::{Path, PathBuf};

use ollm_store::{FileError, update};
use serde_json::Value;

use super::LARGEST_FILE;
use crate::file::Syntax;
use crate::node::Node;
use crate::text_edit::{Draft, EmptiedMap, Op, Refusal};

/// The key that the servers stand under.
const SERVERS: &str = "mcpServers";

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not what it should be.
    #[error("{}: {reason}; it was not changed", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is a server of that name.
    #[error("{} has a server `{name}` already", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

/// Writes a server down under a name that is free in the file.
pub fn add_server(path: &Path, name: &str, declaration: &Value) -> Result<(), EditError> {
    let server = Node::from_json(declaration);
    let servers = Node::Map(vec![(name.to_owned(), server.clone())]);
    edit(path, |draft, at| match (at, draft.root()) {
        (Some(at), root) if position(root.at(&[at]), name).is_some() => {
            Err(EditError::Taken { path: path.to_owned(), name: name.to_owned() })
        }
        (Some(at), _) => perform(path, draft, &Op::Set { at: &[at], key: name, value: &server }),
        (None, Node::Null) => {
            perform(path, draft, &Op::Fill { value: &Node::Map(vec![(SERVERS.to_owned(), servers.clone())]) })
        }
        (None, _) => perform(path, draft, &Op::Set { at: &[], key: SERVERS, value: &servers }),
    })
    .map(drop)
}

/// Takes a server out; false when there is none of that name.
pub fn remove_server(path: &Path, name: &str) -> Result<bool, EditError> {
    if !path.exists() {
        return Ok(false);
    }
    edit(path, |draft, at| {
        let found = at.and_then(|at| Some((at, position(draft.root().at(&[at]), name)?)));
        let Some((at, index)) = found else { return Ok(false) };
        perform(path, draft, &Op::Unset { at: &[at], index, emptied: EmptiedMap::Map })
    })
}

/// Changes the servers of a file, which stand at an index if there are any; it is written if the change says so.
fn edit(
    path: &Path,
    change: impl FnOnce(&mut Draft, Option<usize>) -> Result<bool, EditError>,
) -> Result<bool, EditError> {
    let mut changed = false;
    update(path, LARGEST_FILE, |bytes| {
        let broken = |reason: String| EditError::Broken { path: path.to_owned(), reason };
        let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|error| broken(error.to_string()))?;
        let mut draft = Draft::read(&text, Syntax::Json).map_err(|error| broken(error.placed()))?;
        if !matches!(draft.root(), Node::Map(_) | Node::Null) {
            return Err(broken("it is not a JSON object".to_owned()));
        }
        let at = position(Some(draft.root()), SERVERS);
        if at.is_some_and(|at| !matches!(draft.root().at(&[at]), Some(Node::Map(_)))) {
            return Err(broken(format!("`{SERVERS}` is not an object")));
        }
        changed = change(&mut draft, at)?;
        Ok::<_, EditError>(changed.then(|| draft.into_text().into_bytes()))
    })?;
    Ok(changed)
}

fn perform(path: &Path, draft: &mut Draft, op: &Op<'_>) -> Result<bool, EditError> {
    let broken = |reason| EditError::Broken { path: path.to_owned(), reason };
    match draft.perform(op) {
        Ok(()) => Ok(true),
        Err(Refusal::ByHand { line, what }) => Err(broken(format!("{what}; change line {line} by hand"))),
        Err(Refusal::NoSuch) => Err(broken("there is no such server in it".to_owned())),
    }
}

fn position(map: Option<&Node>, key: &str) -> Option<usize> {
    let Some(Node::Map(entries)) = map else { return None };
    entries.iter().position(|(name, _)| name == key)
}
