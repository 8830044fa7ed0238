//! Collects entries into a package. Each entry is checked when it is added; one refused entry refuses the whole
//! package.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};

use crate::name::{checked, folded, joined, shown};
use crate::package::{Bounds, Package, PackedFile};

/// Why a package is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A path that cannot be written safely on every system.
    #[error("the path `{path}` {why}")]
    Path {
        /// The path, escaped.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Neither a file nor a folder.
    #[error("`{path}` is {kind}, and a package holds files and folders only")]
    Kind {
        /// The path.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// A link that does not lead to a file of the package.
    #[error("`{path}` is a link to `{target}`, which is no file of the package")]
    Link {
        /// The path.
        path: String,
        /// Its target, escaped.
        target: String,
    },
    /// Bits that give a program another user's rights.
    #[error("`{path}` has the setuid, setgid or sticky bit (mode {mode:o})")]
    Mode {
        /// The path.
        path: String,
        /// Its mode.
        mode: u32,
    },
    /// Two entries for the same path.
    #[error("`{path}` and `{other}` are one file on some systems")]
    Collision {
        /// The path.
        path: String,
        /// The entry that was there before.
        other: String,
    },
    /// More entries than a package may hold.
    #[error("it holds more than {0} entries")]
    TooMany(usize),
    /// More bytes than a package may hold.
    #[error("it holds more than {} MiB", .0 >> 20)]
    TooLarge(u64),
    /// A file that is shorter or longer than its entry says.
    #[error("`{path}` should have {said} bytes and has {found}")]
    Size {
        /// The path.
        path: String,
        /// The size in the entry.
        said: u64,
        /// The bytes that were found.
        found: u64,
    },
    /// The package holds no file.
    #[error("it holds no file")]
    Empty,
    /// A file that cannot be read.
    #[error("`{path}` cannot be read: {why}")]
    Unread {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
}

/// What a link's target is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkBase {
    /// The folder of the link, as for symbolic links.
    Folder,
    /// The root of the package, as for hard links in archives.
    Root,
}

/// Takes entries one by one.
#[derive(Debug)]
pub struct Collector {
    bounds: Bounds,
    entries: usize,
    left: u64,
    files: BTreeMap<String, PackedFile>,
    /// The paths in use, by their folded form, which is equal on every system: the path as written, and whether it is a
    /// folder.
    places: HashMap<String, (String, bool)>,
    /// Links: their paths and targets.
    links: Vec<(String, String)>,
}

impl Collector {
    /// An empty collector with these bounds.
    pub fn new(bounds: Bounds) -> Collector {
        let (files, places) = (BTreeMap::new(), HashMap::new());
        Collector { bounds, entries: 0, left: bounds.bytes, files, places, links: Vec::new() }
    }

    /// Adds a folder; a folder without files is left out of the package.
    pub fn folder(&mut self, path: &[u8]) -> Result<(), Refusal> {
        self.count()?;
        checked(path)?.map_or(Ok(()), |path| self.occupy(&path, true))
    }

    /// Adds a file with its mode. `said` is the size in the entry, if it has one.
    pub fn file(&mut self, path: &[u8], mode: u32, said: Option<u64>, content: impl Read) -> Result<(), Refusal> {
        self.count()?;
        let path = self.new_place(path)?;
        if mode & 0o7000 != 0 {
            return Err(Refusal::Mode { path, mode: mode & 0o7777 });
        }
        if said.is_some_and(|said| said > self.left) {
            return Err(Refusal::TooLarge(self.bounds.bytes));
        }
        let mut bytes = Vec::new();
        let read = content.take(self.left.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error: io::Error| Refusal::Unread { path: path.clone(), why: error.to_string() })?;
        let found = bytes.len() as u64;
        self.left = self.left.checked_sub(found).ok_or(Refusal::TooLarge(self.bounds.bytes))?;
        if let Some(said) = said.filter(|said| *said != found) {
            return Err(Refusal::Size { path, said, found });
        }
        self.files.insert(path, PackedFile { bytes, executable: mode & 0o111 != 0 });
        Ok(())
    }

    /// Adds a link; in the package it becomes a copy of the file that it leads to.
    pub fn link(&mut self, path: &[u8], target: &[u8], base: LinkBase) -> Result<(), Refusal> {
        self.count()?;
        let path = self.new_place(path)?;
        let astray = || Refusal::Link { path: path.clone(), target: shown(target) };
        let text = std::str::from_utf8(target).map_err(|_| astray())?;
        let from = match base {
            LinkBase::Folder => path.rsplit_once('/').map_or("", |(folder, _)| folder),
            LinkBase::Root => "",
        };
        let leads = joined(from, text).filter(|leads| *leads != path).ok_or_else(astray)?;
        self.links.push((path, leads));
        Ok(())
    }

    /// Refuses an entry that is neither file, folder nor link.
    pub fn other(&mut self, path: &[u8], kind: &'static str) -> Result<(), Refusal> {
        Err(Refusal::Kind { path: shown(path), kind })
    }

    /// The finished package, if everything fits together.
    pub fn finish(mut self) -> Result<Package, Refusal> {
        self.resolve_links()?;
        if self.files.is_empty() {
            return Err(Refusal::Empty);
        }
        Ok(Package::new(self.files))
    }

    /// Replaces each link by a copy of its target; a link may lead to another link.
    fn resolve_links(&mut self) -> Result<(), Refusal> {
        let mut open: HashMap<String, String> = std::mem::take(&mut self.links).into_iter().collect();
        while let Some(first) = open.keys().next().cloned() {
            // Follows link after link up to a file; each link is followed once.
            let mut chain = vec![first];
            let found = loop {
                let Some(path) = chain.last() else { return Ok(()) };
                match (self.files.get(path), open.remove(path)) {
                    (Some(file), _) => break file.clone(),
                    (None, Some(leads)) => chain.push(leads),
                    (None, None) => {
                        let path = chain.first().cloned().unwrap_or_default();
                        let target = chain.get(1).cloned().unwrap_or_default();
                        return Err(Refusal::Link { path, target });
                    }
                }
            };
            chain.pop();
            for path in chain {
                let size = found.bytes.len() as u64;
                self.left = self.left.checked_sub(size).ok_or(Refusal::TooLarge(self.bounds.bytes))?;
                self.files.insert(path, found.clone());
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), Refusal> {
        self.entries += 1;
        if self.entries > self.bounds.entries { Err(Refusal::TooMany(self.bounds.entries)) } else { Ok(()) }
    }

    /// Checks and occupies the path of an entry that is no folder.
    fn new_place(&mut self, raw: &[u8]) -> Result<String, Refusal> {
        let path = checked(raw)?.ok_or(Refusal::Path { path: shown(raw), why: "is the package itself" })?;
        self.occupy(&path, false)?;
        Ok(path)
    }

    /// Occupies a path and the folders above it.
    fn occupy(&mut self, path: &str, is_folder: bool) -> Result<(), Refusal> {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            let (part, whole) = (path.get(..end).unwrap_or(path), end == path.len());
            let kind = is_folder || !whole;
            match self.places.get(&folded(part)) {
                // A folder may come up several times, always as a folder.
                Some((known, true)) if kind && known == part => {}
                Some((known, _)) => {
                    return Err(Refusal::Collision { path: path.to_owned(), other: known.clone() });
                }
                None => {
                    // A folder without its own entry must be created as well, so it counts.
                    if !whole {
                        self.count()?;
                    }
                    self.places.insert(folded(part), (part.to_owned(), kind));
                }
            }
        }
        Ok(())
    }
}
