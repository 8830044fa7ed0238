//! The tools of servers that came with a project or an extension, in the state that a person last knew. A new or
//! changed tool is not offered until a person has reviewed it, because models obey its description.
//!
//! The first list of a server that a person has just approved counts as known. It is remembered under the digest of
//! exactly that declaration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ollm_mcp::{Offers, Remark};
use ollm_protocol::Remedy;
use ollm_store::versioned::{self, Loaded};
use ollm_store::{Digest, Hasher, UpdateError, digest_bytes};
use serde_json::{Map, Value, json};

use super::forget::forget_entries;
use super::{now, reason};
use crate::app_context::AppContext;

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 64 << 20;
/// The limit of the file, so that it always stays readable.
const MOST_BYTES: usize = 32 << 20;
/// Of a longer definition only the digest is saved.
const LONGEST_TEXT: usize = 32 << 10;
/// The fields that models do not see.
const SILENT: &[&str] = &["_meta", "icons"];

/// The review of the tools of one server.
#[derive(Clone, Debug)]
pub struct ToolReview {
    file: PathBuf,
    server: String,
    /// The file that declares it.
    declared_in: PathBuf,
    key: Digest,
    /// What a person can do about waiting tools.
    way_out: String,
}

/// A tool that is not offered until a person has reviewed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTool {
    /// The server's own name for it.
    pub name: String,
    /// Its reviewed state; `None` for a new tool, empty for one that was too long to save.
    pub before: Option<String>,
    /// Its present state.
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
    /// The review of the tools of a server with this key; `None` if nothing can be saved.
    pub(super) fn new(server: &str, declared_in: &Path, key: Digest, context: &AppContext) -> Option<ToolReview> {
        let (file, server, declared_in) = (file(context), server.to_owned(), declared_in.to_owned());
        let way_out = context.tell(&Remedy::ReviewTools(server.clone()));
        context.own_home().map(|_| ToolReview { file, server, declared_in, key, way_out })
    }

    /// The waiting tools in a list. The first list of a server is saved, and no tool in it waits.
    pub fn waiting(&self, listed: &[Value]) -> Result<Vec<WaitingTool>, String> {
        let document = match versioned::load(&self.file, VERSION, LARGEST_FILE) {
            Loaded::Missing => Value::Null,
            Loaded::Current(document) => document,
            Loaded::Refused(trouble) => return Err(trouble.to_string()),
        };
        let Some(seen) = document.get("servers").and_then(|servers| servers.get(self.key.to_string())) else {
            if !listed.is_empty() {
                self.remember(listed, ReviewMemory::Nothing).map_err(|error| reason(&error))?;
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

    /// Approves all tools of this list in their present state.
    pub fn approve(&self, listed: &[Value]) -> Result<(), UpdateError> {
        self.remember(listed, ReviewMemory::Something)
    }

    /// Removes the waiting tools from the offers, and says why.
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

    /// Fails if a tool of this list may not be called. Otherwise returns whether all other tools may be called too.
    pub(super) fn refusal(&self, tool: &str, listed: &[Value]) -> Result<bool, String> {
        let waiting = self.waiting(listed).map_err(|why| format!("the tools you know cannot be read: {why}"))?;
        match waiting.iter().find(|waiting| waiting.name == tool) {
            Some(waiting) => Err(format!("{}; {}", waiting.why(), self.way_out)),
            None => Ok(waiting.is_empty()),
        }
    }

    fn remember(&self, listed: &[Value], known: ReviewMemory) -> Result<(), UpdateError> {
        versioned::update(&self.file, VERSION, LARGEST_FILE, |document| {
            let mut servers = match document.and_then(|mut document| document.get_mut("servers").map(Value::take)) {
                Some(Value::Object(servers)) => servers,
                _ => Map::new(),
            };
            let key = self.key.to_string();
            let mut tools = match servers.get_mut(&key).and_then(|server| server.get_mut("tools")).map(Value::take) {
                // Another process was faster, and its list counts.
                Some(_) if known == ReviewMemory::Nothing => return Ok((None, ())),
                Some(Value::Object(tools)) => tools,
                _ => Map::new(),
            };
            for (name, text) in definitions(listed) {
                let digest = digest(&text);
                let text = if text.len() <= LONGEST_TEXT { text } else { String::new() };
                tools.insert(name.to_owned(), json!({"digest": digest, "text": text}));
            }
            let declared_in = self.declared_in.display().to_string();
            servers.insert(key, json!({"server": self.server, "file": declared_in, "at": now(), "tools": tools}));
            forget_oldest(&mut servers);
            Ok((Some(json!({"version": VERSION, "servers": servers})), ()))
        })
    }
}

/// The saved review of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReviewMemory {
    Nothing,
    Something,
}

/// The digest by which a person approves without a terminal: of exactly these tools in their present state.
pub fn waiting_digest(waiting: &[WaitingTool]) -> Digest {
    waiting.iter().fold(Hasher::new(), |hasher, tool| hasher.field(&tool.name, tool.now.as_bytes())).finish()
}

/// The file with the reviews.
pub(crate) fn file(context: &AppContext) -> PathBuf {
    context.state().join("mcp-reviewed-tools.json")
}

/// Deletes the reviews of all servers that a file has declared.
pub(super) fn forget_file(context: &AppContext, declared_in: &Path) -> Result<(), UpdateError> {
    forget_entries(&file(context), LARGEST_FILE, declared_in)
}

/// Deletes the oldest servers until the rest is small enough.
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

/// The tools of a list by name, each as text. Of tools with the same name the first counts, as for models.
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

/// The value with sorted keys, because a server may change their order each time.
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
