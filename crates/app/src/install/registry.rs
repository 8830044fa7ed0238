//! The indexes for search and installation: fetched, cached, and usable without a network.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use ollm_catalog::{Dependency, DownloadSettings};
use ollm_package::{Index, IndexEntry, rank};
use ollm_protocol::{Code, Remedy, did_you_mean};
use ollm_store::versioned::{self, Loaded};
use ollm_store::{Digest, digest_bytes, read_bounded, write_atomic};
use semver::Version;
use serde_json::{Value, json};

use super::builtin::{self, BUILTIN};
use super::fetch::{FetchRequest, FetchResult, Progress, Redirects, Validators, fetch, joined};
use super::source::{check_address, shown};
use crate::app_context::AppContext;
use crate::error::AppError;

const VERSION: u32 = 1;
/// Larger indexes are not read.
const LARGEST_INDEX: u64 = 8 << 20;
const LARGEST_CACHE: u64 = 16 << 20;
/// How many removed names are named in a note.
const MOST_TOLD: usize = 5;

/// Whether to ask servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Ask for each index whether it changed.
    Network,
    /// Use the cached indexes.
    Offline,
}

/// All indexes, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Registry {
    indexes: Vec<LoadedIndex>,
    /// Notes for the person: indexes that were not reached, and entries that were left out.
    pub notes: Vec<String>,
}

#[derive(Debug)]
struct LoadedIndex {
    /// Its address in the configuration.
    address: String,
    /// Its content, or the reason why it cannot be read.
    index: Result<Index, String>,
}

/// A query for a package in the indexes.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexQuery<'a> {
    pub(super) name: &'a str,
    pub(super) version: Option<&'a Version>,
    /// The digest of the archive.
    pub(super) checksum: Option<Digest>,
    /// The only index to search, in the form for people.
    pub(super) index: Option<&'a str>,
}

/// An entry and the index that has it.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The entry.
    pub entry: IndexEntry,
    /// The index, by its address in the configuration.
    pub index: String,
}

/// The location of an entry's archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArchivePlace {
    Embedded(String),
    Server(String),
    File(PathBuf),
}

impl Hit {
    /// The index as text for people: without a password.
    pub fn shown_index(&self) -> String {
        shown(&self.index)
    }

    /// The location of its archive.
    pub(super) fn place(&self, context: &AppContext) -> ArchivePlace {
        let url = &self.entry.download_url;
        if self.index == BUILTIN {
            ArchivePlace::Embedded(self.entry.name.clone())
        } else if self.index.contains("://") || url.contains("://") {
            ArchivePlace::Server(joined(&self.index, url))
        } else {
            ArchivePlace::File(in_home(&self.index, context).with_file_name(url))
        }
    }
}

impl Registry {
    /// Reads all indexes. If one cannot be read, there is a note about it, and the others are still used.
    pub fn load(settings: &DownloadSettings, reach: Reach, context: &AppContext, progress: Progress<'_>) -> Registry {
        let mut registry = Registry::default();
        for address in &settings.indexes {
            let index = load_one(address, reach, context, progress, &mut registry.notes).map_err(|error| error.message);
            let problems = match &index {
                Ok(index) => index.problems.as_slice(),
                Err(why) => std::slice::from_ref(why),
            };
            registry.notes.extend(problems.iter().map(|problem| format!("index {}: {problem}", shown(address))));
            registry.indexes.push(LoadedIndex { address: address.clone(), index });
        }
        registry
    }

    /// The entries that fit a query, best first: each name once, with its highest version.
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let (mut hits, mut seen) = (Vec::new(), HashSet::new());
        for (address, index) in self.readable() {
            for entry in index.latest().filter(|entry| seen.insert(entry.name.as_str())) {
                if let Some(rank) = rank(query, entry) {
                    hits.push((rank, Hit { entry: entry.clone(), index: address.to_owned() }));
                }
            }
        }
        hits.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.entry.name.cmp(&b.entry.name)));
        hits.into_iter().map(|(_, hit)| hit).collect()
    }

    /// The package with a name, from the first index that lists it: the requested version or the highest. Without a
    /// requested version, a pre-release is used only if there is no other.
    pub(super) fn find(&self, asked: &IndexQuery<'_>, context: &AppContext) -> Result<Hit, AppError> {
        let (address, versions) = self.first_with(asked, context)?;
        let entry = match (asked.checksum, asked.version) {
            (Some(checksum), _) => {
                let checksum = checksum.to_string();
                versions.iter().find(|entry| entry.checksum == checksum)
            }
            (None, Some(version)) => versions.iter().find(|entry| entry.version == *version),
            (None, None) => versions.iter().max_by(|one, other| one.order().cmp(&other.order())),
        };
        let entry = entry.ok_or_else(|| {
            let there: Vec<String> = versions.iter().take(10).map(|entry| entry.version.to_string()).collect();
            let wanted = match (asked.checksum, asked.version) {
                (Some(checksum), _) => format!("archive {checksum}"),
                (None, version) => format!("version {}", version.map(ToString::to_string).unwrap_or_default()),
            };
            let message = format!("index {} has no {wanted} of `{}`", shown(address), asked.name);
            AppError::new(Code::UnknownExtension, message).hint(format!("it has {}", there.join(", ")))
        })?;
        Ok(Hit { entry: (*entry).clone(), index: address.to_owned() })
    }

    /// The first index that lists a name. An unreadable index may list it too, so no later index takes its place.
    fn first_with(&self, asked: &IndexQuery<'_>, context: &AppContext) -> Result<(&str, Vec<&IndexEntry>), AppError> {
        let name = asked.name;
        let counts = |one: &&LoadedIndex| asked.index.is_none_or(|held| held == shown(&one.address));
        for LoadedIndex { address, index } in self.indexes.iter().filter(counts) {
            match index {
                Ok(index) => {
                    let versions = index.versions(name);
                    if !versions.is_empty() {
                        return Ok((address, versions));
                    }
                }
                Err(why) => {
                    let message = format!("index {} may have `{name}`, and cannot be read: {why}", shown(address));
                    return Err(AppError::new(Code::NotFetched, message)
                        .hint("try it again later, or take that index out of extensions.indexes"));
                }
            }
        }
        let Some(held) = asked.index else { return Err(self.unknown(name, context)) };
        let message = format!("`{name}` came from index {held}, which is not asked any more or no longer has it");
        Err(AppError::new(Code::UnknownExtension, message)
            .hint("remove it and install it again to have it from another index"))
    }

    /// The highest accepted version of a needed extension in this index.
    pub(super) fn accepted(&self, needed: &Dependency, index: &str) -> Option<Version> {
        let (_, index) = self.readable().find(|(address, _)| shown(address) == index)?;
        let versions = index.versions(&needed.name).into_iter();
        let fitting = versions.filter(|entry| needed.accepts(&entry.version.to_string()));
        fitting.max_by(|one, other| one.order().cmp(&other.order())).map(|best| best.version.clone())
    }

    fn unknown(&self, name: &str, context: &AppContext) -> AppError {
        let error = AppError::new(Code::UnknownExtension, format!("no index has an extension `{name}`"));
        let error = self.notes.iter().fold(error, AppError::hint);
        let names = self.readable().flat_map(|(_, index)| &index.entries).map(|entry| entry.name.as_str());
        error.hint(did_you_mean(name, names).unwrap_or_else(|| context.tell(&Remedy::SearchExtensions)))
    }

    fn readable(&self) -> impl Iterator<Item = (&str, &Index)> {
        self.indexes.iter().filter_map(|one| Some((one.address.as_str(), one.index.as_ref().ok()?)))
    }
}

fn load_one(
    address: &str,
    reach: Reach,
    context: &AppContext,
    progress: Progress<'_>,
    notes: &mut Vec<String>,
) -> Result<Index, AppError> {
    if address == BUILTIN {
        return Ok(builtin::index());
    }
    if address.contains("://") {
        check_address(address).map_err(AppError::usage)?;
        return Remote { address, context }.load(reach, progress, notes);
    }
    let path = in_home(address, context);
    let bytes = read_bounded(&path, LARGEST_INDEX).map_err(|error| unusable(&error))?;
    let bytes = bytes.ok_or_else(|| unusable(&"there is no such file"))?;
    Index::parse(&bytes).map_err(|error| unusable(&error))
}

/// A path in the configuration, relative to the home.
pub(super) fn in_home(path: &str, context: &AppContext) -> PathBuf {
    match (path.strip_prefix("~/"), &context.places.user_home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// An index on a server.
struct Remote<'a> {
    address: &'a str,
    context: &'a AppContext,
}

/// The index from the last fetch.
struct CachedIndex {
    index: Index,
    validators: Validators,
}

impl Remote<'_> {
    /// The index from the server; the cached one if the server cannot be asked.
    fn load(&self, reach: Reach, progress: Progress<'_>, notes: &mut Vec<String>) -> Result<Index, AppError> {
        let cached = self.cached();
        if reach == Reach::Offline {
            return match cached {
                Some(cached) => Ok(cached.index),
                None => Err(unusable(&"it was never fetched, and no server is asked")),
            };
        }
        match (self.fresh(cached.as_ref(), progress), cached) {
            (Ok(None), Some(cached)) => Ok(cached.index),
            (Ok(Some(index)), cached) => {
                notes.extend(cached.and_then(|cached| self.shrunk(&cached.index, &index)));
                Ok(index)
            }
            (Err(error), Some(cached)) => {
                let index = shown(self.address);
                notes.push(format!("index {index}: {}; what was fetched before is used", error.message));
                Ok(cached.index)
            }
            (Err(error), None) => Err(error),
            (Ok(None), None) => Err(unusable(&"the server says that it did not change, and it was never fetched")),
        }
    }

    /// The new index if it changed; also saved in the cache.
    fn fresh(&self, cached: Option<&CachedIndex>, progress: Progress<'_>) -> Result<Option<Index>, AppError> {
        let known = cached.map(|cached| &cached.validators);
        let wanted = FetchRequest { url: self.address, most: LARGEST_INDEX, redirects: Redirects::Refused, known };
        let FetchResult::File { bytes, validators, .. } = fetch(&wanted, self.context, progress)? else {
            return Ok(None);
        };
        let index = Index::parse(&bytes).map_err(|error| unusable(&error))?;
        let document: Value = serde_json::from_slice(&bytes).map_err(|error| unusable(&error))?;
        let kept = json!({
            "version": VERSION,
            "address": self.address,
            "etag": validators.etag,
            "lastModified": validators.modified,
            "index": document,
        });
        // Without a cached copy, the next call fetches it again.
        let _ = write_atomic(&self.file(), format!("{kept}\n").as_bytes());
        Ok(Some(index))
    }

    fn cached(&self) -> Option<CachedIndex> {
        let Loaded::Current(document) = versioned::load(&self.file(), VERSION, LARGEST_CACHE) else { return None };
        let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
        let validators = Validators { etag: text("etag"), modified: text("lastModified") };
        let index = Index::parse(document.get("index")?.to_string().as_bytes()).ok()?;
        (text("address")? == self.address).then_some(CachedIndex { index, validators })
    }

    fn file(&self) -> PathBuf {
        let name = digest_bytes(self.address.as_bytes()).hex();
        self.context.state().join("indexes").join(format!("{name}.json"))
    }

    /// A note if the index lost names, or the newest version of one.
    fn shrunk(&self, before: &Index, now: &Index) -> Option<String> {
        let now: BTreeMap<&str, &IndexEntry> = now.latest().map(|entry| (entry.name.as_str(), entry)).collect();
        let lost = |entry: &IndexEntry| match now.get(entry.name.as_str()) {
            Some(left) if left.order() >= entry.order() => None,
            Some(_) => Some(format!("`{}` {}", entry.name, entry.version)),
            None => Some(format!("`{}`", entry.name)),
        };
        let mut gone: Vec<String> = before.latest().filter_map(lost).collect();
        let more = gone.len().saturating_sub(MOST_TOLD);
        gone.truncate(MOST_TOLD);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!gone.is_empty()).then(|| format!("index {} no longer has {}{more}", shown(self.address), gone.join(", ")))
    }
}

fn unusable(why: &dyn std::fmt::Display) -> AppError {
    AppError::new(Code::NotFetched, why.to_string())
}
