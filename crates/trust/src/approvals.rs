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
//!
//! Where an [`ApprovalKey`] is demanded, the file has also a `serial` and a `signature`, and what is not for ever does not
//! count: using it up would change the list without a person.

use std::collections::HashMap;
use std::path::Path;

use ollm_store::versioned::{self, Loaded, broken};
use ollm_store::{Digest, Trouble};
use serde_json::{Map, Value, json};

use crate::signature::{ApprovalKey, ChangeError, ListTrouble, Seal, check, remember, serial_of};

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
    /// The approver, usually `user`.
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

/// The approvals of one file, as they were loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    known: HashMap<(String, String), Approval>,
    serial: u64,
}

impl Approvals {
    /// Reads an approvals file. If there is a key, it must have signed the file. If the file is unusable, nothing is
    /// approved, and the second value says why.
    pub fn load(path: &Path, key: Option<&ApprovalKey>) -> (Self, Option<ListTrouble>) {
        match Self::read(path, key) {
            Ok(approvals) => (approvals, None),
            Err(trouble) => (Self::default(), Some(trouble)),
        }
    }

    fn read(path: &Path, key: Option<&ApprovalKey>) -> Result<Self, ListTrouble> {
        let document = match versioned::load(path, VERSION, MAX_BYTES) {
            Loaded::Missing => return Ok(Self::default()),
            Loaded::Current(document) => document,
            Loaded::Refused(trouble) => return Err(trouble.into()),
        };
        let approvals = Self::of(path, &document, key)?;
        if let Some(key) = key {
            check(path, &document, &approvals.list(), key)?;
        }
        Ok(approvals)
    }

    /// The approvals of a document that count, provided that its signature is valid where one is required.
    fn of(path: &Path, document: &Value, key: Option<&ApprovalKey>) -> Result<Self, Trouble> {
        let counts = |approval: &Approval| key.is_none() || approval.term == Term::Always;
        let ours = entries_of(path, document)?.iter().filter_map(read_entry).filter(counts);
        let known = ours.map(|approval| ((approval.source.clone(), approval.id.clone()), approval)).collect();
        Ok(Self { known, serial: serial_of(document) })
    }

    /// The approvals without those for one use or one session.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.known.retain(|_, approval| approval.term == Term::Always);
        self
    }

    /// How often a signed list was changed.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The approval of one thing of a source, whatever its present content.
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
pub fn approve(path: &Path, approval: Approval) -> Result<(), ChangeError> {
    approve_all(path, vec![approval])
}

/// Records several approvals in one step: all of them or none. They do not count where a signature is required.
pub fn approve_all(path: &Path, approvals: Vec<Approval>) -> Result<(), ChangeError> {
    edit(path, None, |entries| put(entries, approvals))
}

/// Withdraws the approval of one thing of a source; false when there was none.
pub fn revoke(path: &Path, source: &str, id: &str) -> Result<bool, ChangeError> {
    let removed = edit(path, None, |entries| remove(entries, &[(source.to_owned(), id.to_owned())]))?;
    Ok(removed > 0)
}

/// Uses an approval for one use or one session; true if it covers this use.
///
/// An approval for a single use is then removed, so of two simultaneous claims only one succeeds. A session approval
/// without a name gets the name of this session.
pub fn claim(path: &Path, approval: &Approval, session: Option<&str>) -> Result<bool, ChangeError> {
    edit(path, None, |entries| {
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

/// Adds approvals; each replaces an earlier one of the same source and id.
pub(crate) fn put(entries: &mut Vec<Value>, approvals: Vec<Approval>) {
    for approval in approvals {
        entries.retain(|entry| key_of(entry) != (Some(&approval.source), Some(&approval.id)));
        entries.push(write_entry(approval));
    }
    entries.sort_by(|a, b| key_of(a).cmp(&key_of(b)));
}

/// Removes approvals, each named by its source and id, and returns how many there were.
pub(crate) fn remove(entries: &mut Vec<Value>, keys: &[(String, String)]) -> usize {
    let before = entries.len();
    entries.retain(|entry| {
        let (source, id) = key_of(entry);
        !keys.iter().any(|key| (Some(key.0.as_str()), Some(key.1.as_str())) == (source, id))
    });
    before - entries.len()
}

/// Removes our entries that are not among these approvals.
pub(crate) fn keep(entries: &mut Vec<Value>, approvals: &Approvals) {
    let is_kept = |one: Approval| approvals.find(&one.source, &one.id) == Some(&one);
    entries.retain(|entry| read_entry(entry).is_none_or(is_kept));
}

/// Changes the list of entries under the lock; an unchanged list is not written. With a seal, the list must have a
/// valid signature, and is signed again.
pub(crate) fn edit<T>(
    path: &Path,
    seal: Option<&Seal<'_>>,
    change: impl FnOnce(&mut Vec<Value>) -> T,
) -> Result<T, ChangeError> {
    rewrite(path, seal, |document| {
        if let Some(seal) = seal {
            let counting = Approvals::of(path, document, Some(seal.key))?;
            check(path, document, &counting.list(), seal.key)?;
        }
        Ok(changed(entries_mut(path, document)?, change))
    })
}

/// Changes a list from any writer, and signs the result.
pub(crate) fn sign_anew<T>(
    path: &Path,
    seal: Option<&Seal<'_>>,
    change: impl FnOnce(&mut Vec<Value>) -> T,
) -> Result<T, ChangeError> {
    rewrite(path, seal, |document| {
        let (is_other, answer) = changed(entries_mut(path, document)?, change);
        Ok((is_other || seal.is_some(), answer))
    })
}

/// Changes entries, and returns whether they differ now.
fn changed<T>(entries: &mut Vec<Value>, change: impl FnOnce(&mut Vec<Value>) -> T) -> (bool, T) {
    let before = entries.clone();
    let answer = change(entries);
    (*entries != before, answer)
}

/// Changes the document under the lock, and signs it if there is a seal. `change` also returns whether the document
/// must be written.
fn rewrite<T>(
    path: &Path,
    seal: Option<&Seal<'_>>,
    change: impl FnOnce(&mut Value) -> Result<(bool, T), ChangeError>,
) -> Result<T, ChangeError> {
    let (serial, answer) = versioned::update(path, VERSION, MAX_BYTES, |document| {
        let mut document = document.unwrap_or_else(|| json!({ "version": VERSION, "approvals": [] }));
        let done = change(&mut document).and_then(|(changed, answer)| {
            let Some(seal) = seal.filter(|_| changed) else { return Ok((changed, None, answer)) };
            let counting = Approvals::of(path, &document, Some(seal.key))?;
            let serial = seal.put_on(path, &mut document, &counting.list())?;
            Ok((true, Some(serial), answer))
        });
        Ok(match done {
            Ok((changed, serial, answer)) => (changed.then_some(document), Ok((serial, answer))),
            Err(error) => (None, Err(error)),
        })
    })??;
    // The list is written first. If the process is killed in between, the list is newer than the remembered serial,
    // never older.
    if let Some(serial) = serial {
        remember(path, &serial)?;
    }
    Ok(answer)
}

fn entries_of<'a>(path: &Path, document: &'a Value) -> Result<&'a [Value], Trouble> {
    let entries = document.get("approvals").and_then(Value::as_array);
    entries.map(Vec::as_slice).ok_or_else(|| no_list(path))
}

fn entries_mut<'a>(path: &Path, document: &'a mut Value) -> Result<&'a mut Vec<Value>, Trouble> {
    let entries = document.get_mut("approvals").and_then(Value::as_array_mut);
    entries.ok_or_else(|| no_list(path))
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

/// An approval with an unreadable term counts for nothing.
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

pub(crate) fn term_text(term: &Term) -> String {
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
