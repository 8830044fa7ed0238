//! The index of a registry: a static JSON file that any web server can serve.
//!
//! ```json
//! {"version": 1, "extensions": [
//!   {"name": "git-guard", "version": "1.0.0", "description": "…", "downloadUrl": "git-guard-1.0.0.tar.gz",
//!    "checksum": "sha256:…", "size": 2048, "author": "…", "repository": "…", "signature": "…", "tags": ["git"],
//!    "updatedAt": "2026-01-02T03:04:05Z"}]}
//! ```

use std::collections::{BTreeMap, HashSet};

use semver::Version;
use serde_json::{Map, Value, json};

mod search;

pub use search::rank;

/// The newest version of the index format that this program reads.
const VERSION: u64 = 1;
/// The most entries that are read; no real index has more.
const MOST_ENTRIES: usize = 20_000;

/// Why an index cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It is not JSON, or truncated.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// It is JSON, but not an index.
    #[error("it is no index: {0}")]
    Form(String),
    /// It has a newer version.
    #[error("it has version {0}, and this program knows up to {VERSION}; update the program")]
    Newer(u64),
}

/// The list of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Its entries, in the order of the file. One name may have several, of different versions.
    pub entries: Vec<IndexEntry>,
    /// Entries that were left out, and why.
    pub problems: Vec<String>,
}

/// One package in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The name of the extension.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// A description of its purpose.
    pub description: String,
    /// Its author.
    pub author: Option<String>,
    /// The address of its source code.
    pub repository: Option<String>,
    /// The address of its archive, relative to the index.
    pub download_url: String,
    /// The SHA-256 digest of the archive: `sha256:` and 64 hexadecimal digits.
    pub checksum: String,
    /// The size of the archive in bytes.
    pub size: Option<u64>,
    /// A minisign signature of the archive, as minisign writes it.
    pub signature: Option<String>,
    /// Words to find it by in a search.
    pub tags: Vec<String>,
    /// When it was last changed, for people.
    pub updated_at: Option<String>,
}

impl Index {
    /// Reads an index. An unusable entry is skipped and reported; all other entries are kept.
    ///
    /// ```
    /// use ollm_package::{Index, IndexError};
    /// assert_eq!(Index::parse(b"{\"version\": 1, \"extensions\": []}"), Ok(Index::default()));
    /// assert_eq!(Index::parse(b"{\"version\": 2}"), Err(IndexError::Newer(2)));
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Index, IndexError> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| IndexError::Json(error.to_string()))?;
        match document.get("version").map(Value::as_u64) {
            Some(Some(1..=VERSION)) => {}
            Some(Some(newer)) if newer > VERSION => return Err(IndexError::Newer(newer)),
            _ => return Err(IndexError::Form(format!("`version` must be {VERSION}"))),
        }
        let Some(list) = document.get("extensions").and_then(Value::as_array) else {
            return Err(IndexError::Form("`extensions` must be a list".to_owned()));
        };
        if list.len() > MOST_ENTRIES {
            return Err(IndexError::Form(format!("it has more than {MOST_ENTRIES} entries")));
        }
        let (mut index, mut seen) = (Index::default(), HashSet::new());
        for (number, item) in list.iter().enumerate() {
            match IndexEntry::read(item) {
                // All clients must agree which of two archives is this version, so the first entry counts.
                Ok(IndexEntry { name, version, .. }) if !seen.insert((name.clone(), version.clone())) => {
                    let name = one_line(&name);
                    index
                        .problems
                        .push(format!("entry {} is `{name}` {version} once more; it is left out", number + 1));
                }
                Ok(entry) => index.entries.push(entry),
                Err(why) => index.problems.push(format!("entry {} {why}; it is left out", number + 1)),
            }
        }
        Ok(index)
    }

    /// The index as JSON for a file.
    pub fn to_json(&self) -> Value {
        json!({"version": VERSION, "extensions": self.entries.iter().map(IndexEntry::to_json).collect::<Vec<_>>()})
    }

    /// One entry for each name: its highest version that is no pre-release, else its highest pre-release.
    pub fn latest(&self) -> impl Iterator<Item = &IndexEntry> {
        let mut best: BTreeMap<&str, &IndexEntry> = BTreeMap::new();
        for entry in &self.entries {
            let known = best.entry(&entry.name).or_insert(entry);
            if entry.order() > known.order() {
                *known = entry;
            }
        }
        best.into_values()
    }

    /// The versions of a package, newest first.
    pub fn versions<'a>(&'a self, name: &str) -> Vec<&'a IndexEntry> {
        let mut found: Vec<&IndexEntry> = self.entries.iter().filter(|entry| entry.name == name).collect();
        found.sort_by(|one, other| other.version.cmp(&one.version));
        found
    }
}

impl IndexEntry {
    /// The sort key for the offered version of a name: releases come before pre-releases, higher versions before lower
    /// ones.
    pub fn order(&self) -> impl Ord + '_ {
        (self.version.pre.is_empty(), &self.version)
    }

    fn read(item: &Value) -> Result<IndexEntry, String> {
        let Value::Object(item) = item else { return Err("is no object".to_owned()) };
        let name = needed(item, "name")?;
        let of = |why: String| format!("(`{}`) {why}", one_line(&name));
        let version = needed(item, "version").map_err(of)?;
        let version = Version::parse(&version).map_err(|_| of(format!("has the version `{}`", one_line(&version))))?;
        let checksum = needed(item, "checksum").map_err(of)?;
        if !is_checksum(&checksum) {
            return Err(of("has a `checksum` that is not `sha256:` and 64 hexadecimal digits".to_owned()));
        }
        Ok(IndexEntry {
            version,
            checksum,
            description: text(item, "description").map_err(of)?.unwrap_or_default(),
            author: text(item, "author").map_err(of)?,
            repository: text(item, "repository").map_err(of)?,
            download_url: needed(item, "downloadUrl").map_err(of)?,
            size: size(item).map_err(of)?,
            signature: text(item, "signature").map_err(of)?,
            tags: tags(item).map_err(of)?,
            updated_at: text(item, "updatedAt").map_err(of)?,
            name,
        })
    }

    /// The entry as JSON for a file.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut set = |key: &str, value: Option<Value>| map.extend(value.map(|value| (key.to_owned(), value)));
        let some = |text: &Option<String>| text.clone().map(Value::from);
        set("name", Some(self.name.clone().into()));
        set("version", Some(self.version.to_string().into()));
        set("description", Some(self.description.clone().into()));
        set("author", some(&self.author));
        set("repository", some(&self.repository));
        set("downloadUrl", Some(self.download_url.clone().into()));
        set("checksum", Some(self.checksum.clone().into()));
        set("size", self.size.map(Value::from));
        set("signature", some(&self.signature));
        set("tags", (!self.tags.is_empty()).then(|| self.tags.clone().into()));
        set("updatedAt", some(&self.updated_at));
        Value::Object(map)
    }
}

fn needed(item: &Map<String, Value>, key: &str) -> Result<String, String> {
    text(item, key)?.filter(|text| !text.is_empty()).ok_or_else(|| format!("has no `{key}`"))
}

fn text(item: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match item.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a `{key}` that is no text")),
    }
}

fn size(item: &Map<String, Value>) -> Result<Option<u64>, String> {
    match item.get("size") {
        None | Some(Value::Null) => Ok(None),
        Some(size) => size.as_u64().map(Some).ok_or_else(|| "has a `size` that is no number of bytes".to_owned()),
    }
}

fn tags(item: &Map<String, Value>) -> Result<Vec<String>, String> {
    let list = match item.get("tags") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(list) => list.as_array().ok_or("has `tags` that are no list")?,
    };
    let words = list.iter().map(|tag| tag.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    words.ok_or_else(|| "has `tags` that are no texts".to_owned())
}

fn is_checksum(text: &str) -> bool {
    let hex = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
    text.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64 && hex(digits))
}

/// Text from an index, short enough for a message.
fn one_line(text: &str) -> String {
    text.chars().take(80).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn what_is_written_is_read_again() {
        let entry = json!({
            "name": "a", "version": "1.0.0-beta.1", "description": "d", "author": "Ann", "repository": "https://e.org",
            "downloadUrl": "a.tar.gz", "checksum": SUM, "size": 3, "signature": "s", "tags": ["x"], "updatedAt": "2026",
        });
        let text = json!({"version": 1, "extensions": [entry, {"name": "b", "version": "1.0.0", "description": "",
            "downloadUrl": "b.zip", "checksum": SUM}]});
        let index = Index::parse(text.to_string().as_bytes()).unwrap();
        assert!(index.problems.is_empty());
        assert_eq!(index.to_json(), text);
    }

    #[test]
    fn a_bad_entry_is_told_and_hides_no_other() {
        let good = json!({"name": "b", "version": "1.0.0", "downloadUrl": "b.zip", "checksum": SUM});
        let with = |key: &str, value: Value| {
            let mut bad = good.clone();
            bad[key] = value;
            bad
        };
        for (bad, word) in [
            (json!(3), "no object"),
            (with("name", Value::Null), "no `name`"),
            (with("version", json!("one")), "version `one`"),
            (with("checksum", json!("sha256:AB")), "checksum"),
            (with("downloadUrl", json!("")), "downloadUrl"),
            (with("tags", json!([1])), "tags"),
            (with("author", json!(1)), "author"),
            (with("signature", json!(["s"])), "signature"),
            (with("size", json!(-1)), "size"),
            (with("size", json!("3")), "size"),
        ] {
            let text = json!({"version": 1, "extensions": [bad, good]}).to_string();
            let index = Index::parse(text.as_bytes()).unwrap();
            assert_eq!(index.entries.len(), 1, "{text}");
            assert!(index.problems.concat().contains(word), "{:?}", index.problems);
        }
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for text in
            ["", "{", "[]", "{}", "{\"version\": 1}", "{\"version\": 1, \"extensions\": {}}", "{\"version\": 0}"]
        {
            assert!(Index::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn of_a_version_that_is_listed_twice_the_first_counts_and_the_other_is_told() {
        let entry = |version: &str, place: &str| json!({"name": "a", "version": version, "downloadUrl": place, "checksum": SUM});
        let list =
            json!({"version": 1, "extensions": [entry("1.0.0", "x"), entry("1.0.0", "y"), entry("1.0.0+b", "z")]});
        let index = Index::parse(list.to_string().as_bytes()).unwrap();
        let places: Vec<&str> = index.entries.iter().map(|one| one.download_url.as_str()).collect();
        assert_eq!(places, ["x", "z"]);
        assert_eq!(index.problems, ["entry 2 is `a` 1.0.0 once more; it is left out"]);
    }

    #[test]
    fn versions_come_newest_first() {
        let entry = |version: &str| json!({"name": "a", "version": version, "downloadUrl": "x", "checksum": SUM});
        let list = json!({"version": 1, "extensions": [entry("1.9.0"), entry("1.10.0"), entry("1.10.0-rc.1")]});
        let index = Index::parse(list.to_string().as_bytes()).unwrap();
        let versions: Vec<String> = index.versions("a").iter().map(|one| one.version.to_string()).collect();
        assert_eq!(versions, ["1.10.0", "1.10.0-rc.1", "1.9.0"]);
        let list = json!({"version": 1, "extensions": [entry("1.9.0"), entry("2.0.0-rc.1"), entry("1.10.0")]});
        let index = Index::parse(list.to_string().as_bytes()).unwrap();
        assert_eq!(index.latest().map(|one| one.version.to_string()).collect::<Vec<_>>(), ["1.10.0"]);
    }
}
