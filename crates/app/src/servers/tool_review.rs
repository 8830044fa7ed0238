//! The tools of servers that came with a project or an extension, as they were when a person last knew them. A tool that is new
//! or different is not offered before a person has looked at it: its description is what a model obeys.
//!
//! The first list of a server that a person has just approved is taken at its word; it is remembered under the digest of
//! exactly that declaration.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ollm_mcp::{Offers, Remark};
use ollm_protocol::Remedy;
use ollm_store::versioned::{self, Loaded};
use ollm_store::{Digest, Hasher, UpdateError, digest_bytes};
use serde_json::{Map, Value, json};

use super::{now, reason};
use crate::app_context::AppContext;

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 64 << 20;
/// What it may hold, so that it never becomes too large to be read.
const MOST_BYTES: usize = 32 << 20;
/// A longer definition is remembered by its digest alone.
const LONGEST_TEXT: usize = 32 << 10;
/// What says nothing to a model.
const SILENT: &[&str] = &["_meta", "icons"];

/// What is known of the tools of one server.
#[derive(Clone, Debug)]
pub struct ToolReview {
    file: PathBuf,
    server: String,
    key: Digest,
    /// What a person can do about tools that wait.
    way_out: String,
}

/// A tool that is not offered before a person has looked at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTool {
    /// The server's own name for it.
    pub name: String,
    /// How it was when it was last looked at; nothing for a new one, an empty text for one that was too long to keep.
    pub before: Option<String>,
    /// How it is now.
    pub now: String,
}

impl WaitingTool {
    fn why(&self) -> &'static str {
        if self.before.is_some() {
            "it changed since you last saw its tools"
        } else {
            "it is new since you last saw its tools"
        }
    }
}

impl ToolReview {
    /// What is known of the tools of a server under this key; nothing where nothing can be remembered.
    pub(super) fn new(server: &str, key: Digest, context: &AppContext) -> Option<ToolReview> {
        let (file, server) = (file(context), server.to_owned());
        let way_out = context.tell(&Remedy::ReviewTools(server.clone()));
        context.own_home().map(|_| ToolReview { file, server, key, way_out })
    }

    /// The tools of a list that wait. The list of a server that is met for the first time is remembered, and none waits.
    pub fn waiting(&self, listed: &[Value]) -> Result<Vec<WaitingTool>, String> {
        let document = match versioned::load(&self.file, VERSION, LARGEST_FILE) {
            Loaded::Missing => Value::Null,
            Loaded::Current(document) => document,
            Loaded::Refused(trouble) => return Err(trouble.to_string()),
        };
        let Some(seen) = document.get("servers").and_then(|servers| servers.get(self.key.to_string())) else {
            if !listed.is_empty() {
                self.remember(listed, Known::Nothing).map_err(|error| reason(&error))?;
            }
            return Ok(Vec::new());
        };
        let seen = |name: &str| seen.get("tools").and_then(|tools| tools.get(name));
        let is_same = |before: &Value, now: &str| before.get("digest") == Some(&digest(now).into());
        let waiting = definitions(listed).filter_map(|(name, now)| match seen(name) {
            Some(before) if is_same(before, &now) => None,
            before => {
                let text = |before: &Value| before.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
                Some(WaitingTool { name: name.to_owned(), before: before.map(text), now })
            }
        });
        Ok(waiting.collect())
    }

    /// Offers all tools of this list from now on, as they are in it.
    pub fn approve(&self, listed: &[Value]) -> Result<(), UpdateError> {
        self.remember(listed, Known::Something)
    }

    /// Takes back what waits, and says why.
    pub(super) fn withhold(&self, offers: &mut Offers, listed: &[Value]) {
        match self.waiting(listed) {
            Ok(waiting) => {
                offers.tools.retain(|offer| !waiting.iter().any(|tool| tool.name == offer.raw));
                offers.remarks.extend(waiting.into_iter().map(|tool| {
                    let why = format!("{}; {}", tool.why(), self.way_out);
                    Remark { tool: tool.name, why }
                }));
            }
            Err(why) => {
                offers.tools.clear();
                let why = format!("none of its tools is offered, because those you know cannot be read: {why}");
                offers.remarks.push(Remark { tool: String::new(), why });
            }
        }
    }

    /// Why a tool of this list may not be called; where it may, whether all others may be called as well.
    pub(super) fn refusal(&self, tool: &str, listed: &[Value]) -> Result<bool, String> {
        let waiting = self.waiting(listed).map_err(|why| format!("the tools you know cannot be read: {why}"))?;
        match waiting.iter().find(|waiting| waiting.name == tool) {
            Some(waiting) => Err(format!("{}; {}", waiting.why(), self.way_out)),
            None => Ok(waiting.is_empty()),
        }
    }

    fn remember(&self, listed: &[Value], known: Known) -> Result<(), UpdateError> {
        versioned::update(&self.file, VERSION, LARGEST_FILE, |document| {
            let mut servers = match document.and_then(|mut document| document.get_mut("servers").map(Value::take)) {
                Some(Value::Object(servers)) => servers,
                _ => Map::new(),
            };
            let key = self.key.to_string();
            let mut tools = match servers.get_mut(&key).and_then(|server| server.get_mut("tools")).map(Value::take) {
                // Another process was first: its list is the one that counts.
                Some(_) if known == Known::Nothing => return Ok((None, ())),
                Some(Value::Object(tools)) => tools,
                _ => Map::new(),
            };
            for (name, text) in definitions(listed) {
                let digest = digest(&text);
                let text = if text.len() <= LONGEST_TEXT { text } else { String::new() };
                tools.insert(name.to_owned(), json!({"digest": digest, "text": text}));
            }
            servers.insert(key, json!({"server": self.server, "at": now(), "tools": tools}));
            forget_oldest(&mut servers);
            Ok((Some(json!({"version": VERSION, "servers": servers})), ()))
        })
    }
}

/// Whether something is remembered of a server already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Something,
}

/// What a person names who approves without a terminal: exactly these tools as they are.
pub fn waiting_digest(waiting: &[WaitingTool]) -> Digest {
    waiting.iter().fold(Hasher::new(), |hasher, tool| hasher.field(&tool.name, tool.now.as_bytes())).finish()
}

/// Where it is kept.
pub(crate) fn file(context: &AppContext) -> PathBuf {
    context.state().join("mcp-reviewed-tools.json")
}

/// Forgets the servers that were written down longest ago, as long as it is too much.
fn forget_oldest(servers: &mut Map<String, Value>) {
    let at = |entry: &Value| entry.get("at").and_then(Value::as_u64).unwrap_or_default();
    let length = |entry: &Value| format!("{entry:#}").len();
    let mut size: usize = servers.values().map(length).sum();
    while size > MOST_BYTES {
        let oldest = servers.iter().min_by_key(|(_, entry)| at(entry)).map(|(key, _)| key.clone());
        let gone = oldest.and_then(|key| servers.shift_remove(&key));
        size = size.saturating_sub(gone.as_ref().map_or(usize::MAX, length));
    }
}

/// The tools of a list by name, each as text. Of several with one name the first counts, as it does for models.
fn definitions(listed: &[Value]) -> impl Iterator<Item = (&str, String)> {
    let mut met = BTreeSet::new();
    let named = listed.iter().filter_map(|entry| Some((entry.get("name")?.as_str()?, entry.as_object()?)));
    named.filter(move |(name, _)| met.insert(*name)).map(|(name, entry)| {
        let mut spoken = entry.clone();
        spoken.retain(|field, _| !SILENT.contains(&field.as_str()));
        (name, format!("{:#}", sorted(&Value::Object(spoken))))
    })
}

fn digest(text: &str) -> String {
    digest_bytes(text.as_bytes()).to_string()
}

/// The same value with its keys in order: a server may write them in another one each time.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        plain => plain.clone(),
    }
}
