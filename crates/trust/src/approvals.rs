//! Which exact content a person has approved.
//!
//! ```json
//! {"version": 1, "approvals": [{"source": "guard.py", "id": "guard", "hash": "sha256:…", "approvedAt": "2026-01-15T10:30:00Z",
//!   "approvedBy": "user", "digest": "sha256:…"}]}
//! ```
//!
//! `hash` covers the script (or the definition where there is none), `digest` everything that was approved; both must
//! match. Entries of other programs, which lack our `digest`, approve nothing and are kept. A file that cannot be relied
//! on approves nothing and is never overwritten.

use std::collections::HashMap;
use std::path::Path;

use ollm_store::versioned::{self, Loaded, broken};
use ollm_store::{Digest, Trouble, UpdateError};
use serde_json::{Map, Value, json};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The script's path, or `file#id` where there is no script.
    pub source: String,
    /// Which of the things that share this source.
    pub id: String,
    /// The digest of the script's bytes, or of the definition where there is no script.
    pub hash: Digest,
    /// When, in ISO 8601.
    pub approved_at: String,
    /// By whom, usually `user`.
    pub approved_by: String,
    /// The digest of everything that was approved.
    pub digest: Digest,
    /// For how long.
    pub term: Term,
    /// The name of the copy of what was approved, if there is one.
    pub copy: Option<String>,
    /// What ran it then, by its path, where that is part of what was approved.
    pub program: Option<String>,
}

/// For how long something is approved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Term {
    /// As long as nothing of it changes.
    #[default]
    Always,
    /// For one use.
    Once,
    /// For one session: the named one, or the first that uses it.
    Session(Option<String>),
}

/// What the approvals say about some content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Exactly this content was approved.
    Approved,
    /// Exactly this content was approved, but not for ever: it must be [`claim`]ed.
    Limited,
    /// The source was approved with other content.
    Modified,
    /// The source was never approved.
    Unknown,
}

/// The approvals of one file, as they were when it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    known: HashMap<(String, String), Approval>,
}

impl Approvals {
    /// Reads an approvals file. When it is of no use, nothing is approved and the trouble says why.
    pub fn load(path: &Path) -> (Self, Option<Trouble>) {
        let read = match versioned::load(path, VERSION, MAX_BYTES) {
            Loaded::Missing => return (Self::default(), None),
            Loaded::Current(document) => read_entries(path, &document),
            Loaded::Refused(trouble) => Err(trouble),
        };
        match read {
            Ok(known) => (Self { known }, None),
            Err(trouble) => (Self::default(), Some(trouble)),
        }
    }

    /// The approval of one thing of a source, whatever its content is now.
    pub fn find(&self, source: &str, id: &str) -> Option<&Approval> {
        self.known.get(&(source.to_owned(), id.to_owned()))
    }

    /// Whether exactly this content is approved.
    pub fn check(&self, source: &str, id: &str, hash: &Digest, digest: &Digest) -> Standing {
        match self.find(source, id) {
            None => Standing::Unknown,
            Some(known) if known.hash != *hash || known.digest != *digest => Standing::Modified,
            Some(known) if known.term == Term::Always => Standing::Approved,
            Some(_) => Standing::Limited,
        }
    }

    /// All approvals, ordered by source and id.
    pub fn list(&self) -> Vec<&Approval> {
        let mut all: Vec<_> = self.known.values().collect();
        all.sort_unstable_by_key(|approval| (&approval.source, &approval.id));
        all
    }
}

/// Records one approval; it replaces an earlier one of the same source and id.
pub fn approve(path: &Path, approval: Approval) -> Result<(), UpdateError> {
    approve_all(path, vec![approval])
}

/// Records several approvals in one step: all of them or none.
pub fn approve_all(path: &Path, approvals: Vec<Approval>) -> Result<(), UpdateError> {
    edit(path, |entries| {
        for approval in approvals {
            entries.retain(|entry| key_of(entry) != (Some(&approval.source), Some(&approval.id)));
            entries.push(write_entry(approval));
        }
        entries.sort_by(|a, b| key_of(a).cmp(&key_of(b)));
    })
    .map(drop)
}

/// Uses an approval that does not last: true when it covers this use.
///
/// One for a single use is gone afterwards, also when two claim it at once; one for a session that is not named yet
/// becomes that session's.
pub fn claim(path: &Path, approval: &Approval, session: Option<&str>) -> Result<bool, UpdateError> {
    edit(path, |entries| {
        let same = |entry: &Value| {
            read_entry(entry).is_some_and(|known| {
                known.source == approval.source
                    && known.id == approval.id
                    && known.hash == approval.hash
                    && known.digest == approval.digest
            })
        };
        let Some(at) = entries.iter().position(same) else { return false };
        let term = entries.get(at).and_then(read_entry).map(|known| known.term);
        match (term, session) {
            (Some(Term::Always), _) => true,
            (Some(Term::Once), _) => {
                entries.remove(at);
                true
            }
            (Some(Term::Session(Some(named))), Some(session)) => named == session,
            (Some(Term::Session(None)), Some(session)) => {
                if let Some(entry) = entries.get_mut(at).and_then(Value::as_object_mut) {
                    entry.insert("term".to_owned(), term_text(&Term::Session(Some(session.to_owned()))).into());
                }
                true
            }
            (Some(Term::Session(_)) | None, _) => false,
        }
    })
}

/// Withdraws the approval of one thing of a source; false when there was none.
pub fn revoke(path: &Path, source: &str, id: &str) -> Result<bool, UpdateError> {
    remove(path, |entry| key_of(entry) == (Some(source), Some(id))).map(|removed| removed > 0)
}

/// Withdraws approvals, each named by its source and id, in one step, and returns how many there were.
pub fn revoke_many(path: &Path, keys: &[(String, String)]) -> Result<usize, UpdateError> {
    let goes = |entry: &Value| {
        let (source, id) = key_of(entry);
        keys.iter().any(|key| (Some(key.0.as_str()), Some(key.1.as_str())) == (source, id))
    };
    remove(path, goes)
}

/// Withdraws every approval, also those of other programs, and returns how many there were.
pub fn revoke_all(path: &Path) -> Result<usize, UpdateError> {
    remove(path, |_| true)
}

fn remove(path: &Path, goes: impl Fn(&Value) -> bool) -> Result<usize, UpdateError> {
    edit(path, |entries| {
        let before = entries.len();
        entries.retain(|entry| !goes(entry));
        before - entries.len()
    })
}

/// Changes the list of entries under the lock; a list that stays as it was is not written.
fn edit<T>(path: &Path, change: impl FnOnce(&mut Vec<Value>) -> T) -> Result<T, UpdateError> {
    versioned::update(path, VERSION, MAX_BYTES, |document| {
        let mut document = document.unwrap_or_else(|| json!({ "version": VERSION, "approvals": [] }));
        let entries = document.get_mut("approvals").and_then(Value::as_array_mut);
        let entries = entries.ok_or_else(|| no_list(path))?;
        let before = entries.clone();
        let answer = change(entries);
        let changed = *entries != before;
        Ok((changed.then_some(document), answer))
    })
}

fn read_entries(path: &Path, document: &Value) -> Result<HashMap<(String, String), Approval>, Trouble> {
    let entries = document.get("approvals").and_then(Value::as_array);
    let entries = entries.ok_or_else(|| no_list(path))?;
    let ours = entries.iter().filter_map(read_entry);
    Ok(ours.map(|approval| ((approval.source.clone(), approval.id.clone()), approval)).collect())
}

fn no_list(path: &Path) -> Trouble {
    broken(path, format!("{} has no list \"approvals\"", path.display()))
}

fn read_entry(entry: &Value) -> Option<Approval> {
    let text = |key| entry.get(key).and_then(Value::as_str);
    Some(Approval {
        source: text("source")?.to_owned(),
        id: text("id")?.to_owned(),
        hash: text("hash")?.parse().ok()?,
        approved_at: text("approvedAt").unwrap_or_default().to_owned(),
        approved_by: text("approvedBy").unwrap_or_default().to_owned(),
        digest: text("digest")?.parse().ok()?,
        term: read_term(entry.get("term"))?,
        copy: text("copy").map(str::to_owned),
        program: text("program").map(str::to_owned),
    })
}

/// A term that cannot be read approves nothing.
fn read_term(term: Option<&Value>) -> Option<Term> {
    match term {
        None => Some(Term::Always),
        Some(term) => match term.as_str()? {
            "once" => Some(Term::Once),
            "session" => Some(Term::Session(None)),
            other => Some(Term::Session(Some(other.strip_prefix("session:")?.to_owned()))),
        },
    }
}

fn term_text(term: &Term) -> String {
    match term {
        Term::Always => "always".to_owned(),
        Term::Once => "once".to_owned(),
        Term::Session(None) => "session".to_owned(),
        Term::Session(Some(session)) => format!("session:{session}"),
    }
}

fn write_entry(approval: Approval) -> Value {
    let mut entry = Map::new();
    entry.insert("source".to_owned(), approval.source.into());
    entry.insert("id".to_owned(), approval.id.into());
    entry.insert("hash".to_owned(), approval.hash.to_string().into());
    entry.insert("approvedAt".to_owned(), approval.approved_at.into());
    entry.insert("approvedBy".to_owned(), approval.approved_by.into());
    entry.insert("digest".to_owned(), approval.digest.to_string().into());
    if let Some(copy) = approval.copy {
        entry.insert("copy".to_owned(), copy.into());
    }
    if let Some(program) = approval.program {
        entry.insert("program".to_owned(), program.into());
    }
    if approval.term != Term::Always {
        entry.insert("term".to_owned(), term_text(&approval.term).into());
    }
    Value::Object(entry)
}

fn key_of(entry: &Value) -> (Option<&str>, Option<&str>) {
    (entry.get("source").and_then(Value::as_str), entry.get("id").and_then(Value::as_str))
}

#[cfg(test)]
mod tests;
