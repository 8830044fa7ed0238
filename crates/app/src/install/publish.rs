//! Makes an index and its archives from folders, for any web server to serve.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ollm_catalog::{Severity, validate_extension};
use ollm_package::{Index, IndexEntry, pack};
use ollm_protocol::Code;
use ollm_store::{digest_bytes, read_bounded, replace_through_links};
use ollm_trust::is_signature;
use semver::Version;
use serde_json::{Map, Value};

use super::staging::check_valid;
use super::{folder, refused};
use crate::app::App;
use crate::error::AppError;

/// The file that the index is written to.
const INDEX: &str = "index.json";
const LARGEST_INDEX: u64 = 8 << 20;
const LARGEST_ARCHIVE: u64 = 64 << 20;
const LARGEST_SIGNATURE: u64 = 4 << 10;

/// The result of publishing.
#[derive(Clone, Debug)]
pub struct PublishedIndex {
    /// The index.
    pub index: PathBuf,
    /// The new and changed entries, each with its archive.
    pub entries: Vec<(IndexEntry, PathBuf)>,
    /// Notes for the person.
    pub notes: Vec<String>,
}

/// Packs extensions into a folder and lists them in its index, beside the existing entries. The same folders always
/// give the same archives. A listed version with other content is refused: users of the earlier content would never
/// hear of the new one.
pub fn build_index(folders: &[PathBuf], out: &Path, now: Timestamp, app: &App) -> Result<PublishedIndex, AppError> {
    let file = out.join(INDEX);
    let mut known = KnownIndex::read(&file)?;
    let mut published = PublishedIndex { index: file.clone(), entries: Vec::new(), notes: Vec::new() };
    let mut archives = Vec::new();
    for folder in folders {
        let (mut entry, archive) = pack_folder(folder, &mut published.notes, app)?;
        let path = out.join(&entry.download_url);
        entry.signature = signature(&path)?;
        entry.updated_at = Some(now.to_string());
        known.list(&mut entry)?;
        archives.push((path.clone(), archive));
        published.entries.push((entry, path));
    }
    // The index comes last, so that everything it lists exists.
    for (path, archive) in archives {
        write(&path, &archive)?;
    }
    write(&file, format!("{:#}\n", known.document()).as_bytes())?;
    Ok(published)
}

/// The existing index, including the fields that we do not know.
struct KnownIndex {
    /// The document without its entries.
    rest: Map<String, Value>,
    entries: Vec<(IndexEntry, Map<String, Value>)>,
}

impl KnownIndex {
    /// Reads it. If one entry cannot be read, this fails, so that no entry is lost.
    fn read(file: &Path) -> Result<KnownIndex, AppError> {
        let unusable = |why: &dyn std::fmt::Display| {
            AppError::new(Code::WrongForm, format!("{} cannot be used: {why}", file.display()))
        };
        let bytes = read_bounded(file, LARGEST_INDEX).map_err(|error| unusable(&error))?;
        let bytes = bytes.unwrap_or_else(|| Index::default().to_json().to_string().into_bytes());
        let index = Index::parse(&bytes).map_err(|error| unusable(&error))?;
        if let Some(problem) = index.problems.first() {
            let problem = problem.trim_end_matches("; it is left out");
            return Err(unusable(&problem).hint("mend that entry, or take it out"));
        }
        let mut rest: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|error| unusable(&error))?;
        let listed = match rest.remove("extensions") {
            Some(Value::Array(listed)) => listed,
            _ => Vec::new(),
        };
        let maps = listed.into_iter().map(|entry| match entry {
            Value::Object(map) => map,
            _ => Map::new(),
        });
        Ok(KnownIndex { rest, entries: index.entries.into_iter().zip(maps).collect() })
    }

    /// Lists an entry. It replaces the same version if that has the same content.
    fn list(&mut self, entry: &mut IndexEntry) -> Result<(), AppError> {
        let same = |(one, _): &&mut (IndexEntry, _)| one.name == entry.name && one.version == entry.version;
        match self.entries.iter_mut().find(same) {
            Some((listed, _)) if listed.checksum != entry.checksum => {
                let message = format!("{} {} is listed already with another content", entry.name, entry.version);
                Err(AppError::new(Code::AlreadyThere, message).hint("give it a higher version"))
            }
            Some((listed, _)) => {
                entry.updated_at.clone_from(&listed.updated_at);
                *listed = entry.clone();
                Ok(())
            }
            None => {
                self.entries.push((entry.clone(), Map::new()));
                Ok(())
            }
        }
    }

    /// The whole document: names in order, and of each the newest version first.
    fn document(mut self) -> Value {
        self.entries.sort_by(|(one, _), (other, _)| (&one.name, &other.version).cmp(&(&other.name, &one.version)));
        let entries = self.entries.into_iter().map(|(entry, unknown)| match entry.to_json() {
            Value::Object(mut map) => {
                let more: Vec<_> = unknown.into_iter().filter(|(key, _)| !map.contains_key(key)).collect();
                map.extend(more);
                Value::Object(map)
            }
            other => other,
        });
        let mut document = self.rest;
        document.insert("extensions".to_owned(), entries.collect());
        Value::Object(document)
    }
}

fn pack_folder(root: &Path, notes: &mut Vec<String>, app: &App) -> Result<(IndexEntry, Vec<u8>), AppError> {
    let of_folder = |error: AppError| {
        let why = error.message.trim_start_matches("nothing was installed: ").to_owned();
        AppError { message: format!("{} is not listed: {why}", root.display()), ..error }
    };
    if !root.is_dir() {
        let message = format!("{} is not listed: there is no such folder", root.display());
        return Err(AppError::new(Code::NoFolder, message).hint("name the folder of an extension"));
    }
    let (extension, problems) = validate_extension(root, &app.rules);
    check_valid(&problems, root).map_err(of_folder)?;
    notes.extend(problems.iter().filter(|one| one.severity > Severity::Error).map(ToString::to_string));
    let package = folder::read(root).map_err(|why| of_folder(refused(&why)))?;
    let archive = pack(&package).map_err(|error| of_folder(refused(&error.to_string())))?;
    if archive.len() as u64 > LARGEST_ARCHIVE {
        return Err(of_folder(refused(&format!("its archive has more than {} MiB", LARGEST_ARCHIVE >> 20))));
    }
    let manifest = &extension.manifest;
    let version = Version::parse(&manifest.version).map_err(|error| of_folder(refused(&error.to_string())))?;
    let entry = IndexEntry {
        download_url: format!("{}-{version}.tar.gz", extension.name),
        name: extension.name,
        version,
        description: manifest.description.clone(),
        author: manifest.author.clone(),
        repository: manifest.repository.clone(),
        checksum: digest_bytes(&archive).to_string(),
        size: Some(archive.len() as u64),
        signature: None,
        tags: manifest.keywords.clone(),
        updated_at: None,
    };
    Ok((entry, archive))
}

/// The signature file beside an archive, in minisign's naming.
fn signature(archive: &Path) -> Result<Option<String>, AppError> {
    let mut path = archive.as_os_str().to_owned();
    path.push(".minisig");
    let path = PathBuf::from(path);
    let unusable = |why: String| AppError::new(Code::WrongForm, format!("{}: {why}", path.display()));
    let bytes = read_bounded(&path, LARGEST_SIGNATURE).map_err(|error| unusable(error.to_string()))?;
    let text = bytes.map(String::from_utf8).transpose().map_err(|_| unusable("it is no signature".to_owned()))?;
    match text {
        Some(text) if !is_signature(&text) => Err(unusable("it is no signature as minisign writes it".to_owned())),
        text => Ok(text),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), AppError> {
    replace_through_links(path, bytes, 0o644).map_err(|error| AppError::unwritten(path, &error))
}
