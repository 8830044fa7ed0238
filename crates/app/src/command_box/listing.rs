//! Lists folders whose entries decide which paths a box protects: private keys of SSH, and sockets with numbers in
//! their names.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::path_tree::{FileState, file_state, is_settled};

/// How deep the search for keys goes, and how many files it checks.
const DEEPEST: usize = 3;
const MOST_FILES: usize = 500;

/// All names in this folder that begin with this prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamePattern {
    pub(super) folder: PathBuf,
    pub(super) begin: String,
}

/// The paths that were found in the folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Files that hold a private key.
    pub(super) keys: Vec<PathBuf>,
    /// Sockets that match a pattern.
    pub(super) sockets: Vec<PathBuf>,
}

/// The folders to list.
#[derive(Debug, Default)]
pub(super) struct ListedFolders {
    pub(super) ssh: Vec<PathBuf>,
    pub(super) patterns: Vec<NamePattern>,
}

/// The state of each folder when it was listed; `None` for a folder that was not settled.
pub(super) type ListedStates = Vec<Option<FileState>>;

impl ListedFolders {
    /// Each of them.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let mut paths: Vec<&Path> = self.patterns.iter().map(|pattern| pattern.folder.as_path()).collect();
        paths.dedup();
        self.ssh.iter().map(PathBuf::as_path).chain(paths)
    }

    /// The present states of the folders; `found` gives the metadata of a path.
    pub(super) fn states<'f>(&self, found: impl Fn(&Path) -> Option<&'f Metadata>) -> ListedStates {
        // A missing folder has a state too: it contains nothing.
        let state = |path| match found(path) {
            None => Some(FileState::default()),
            Some(data) => is_settled(data).then(|| file_state(data)),
        };
        self.paths().map(state).collect()
    }

    /// Lists the folders.
    pub(super) fn list(&self) -> Listing {
        let mut listing = Listing::default();
        for ssh in &self.ssh {
            let mut left = MOST_FILES;
            keys_in(ssh, DEEPEST, &mut left, &mut listing.keys);
        }
        for NamePattern { folder, begin } in &self.patterns {
            let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(begin.as_str());
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            listing.sockets.extend(entries.filter(named).map(|entry| entry.path()));
        }
        listing.keys.sort();
        listing.sockets.sort();
        listing
    }
}

fn keys_in(folder: &Path, depth: usize, left: &mut usize, keys: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if *left == 0 {
            return;
        }
        *left -= 1;
        let path = entry.path();
        if kind.is_dir() && depth > 1 {
            keys_in(&path, depth - 1, left, keys);
        } else if kind.is_file() && holds_key(&path) {
            keys.push(path);
        }
    }
}

/// Whether a file begins like a private key, or cannot be read.
fn holds_key(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(128).read_to_end(&mut start));
    let start = String::from_utf8_lossy(&start);
    read.is_err() || start.contains("PRIVATE KEY-----") || start.starts_with("PuTTY-User-Key-File")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_one_whatever_its_name_and_sockets_are_found_by_how_their_names_begin() {
        let root = tempfile::tempdir().unwrap();
        let (ssh, run) = (root.path().join(".ssh"), root.path().join("run"));
        for (file, text) in [
            (ssh.join("work"), "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl"),
            (ssh.join("keys/old.pem"), "-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
            (ssh.join("work.pub"), "ssh-ed25519 AAAA"),
            (ssh.join("config"), "Host x\n"),
            (run.join("nvim.1.0"), ""),
            (run.join("bus"), ""),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let patterns = vec![NamePattern { folder: run.clone(), begin: "nvim.".to_owned() }];
        let listing = ListedFolders { ssh: vec![ssh.clone()], patterns }.list();
        assert_eq!(listing.keys, [ssh.join("keys/old.pem"), ssh.join("work")]);
        assert_eq!(listing.sockets, [run.join("nvim.1.0")]);
    }
}
