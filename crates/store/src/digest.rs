//! SHA-256 over bytes: of values, files and folders. Nothing is decoded as text, so every byte counts.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::file::{FileError, failed, open_regular};

mod cache;
mod memory;
mod state;
pub mod tree;

pub use cache::FileDigests;
pub use state::StatKey;
pub use tree::{TreeLimits, digest_tree};

/// A SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a digest; expected sha256: and 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits alone.
    pub fn hex(&self) -> String {
        let nibble = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
        self.0.iter().flat_map(|&byte| [nibble(byte >> 4), nibble(byte & 15)]).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix("sha256:").ok_or(DigestError)?.as_bytes();
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(DigestError);
        };
        if pairs.len() != 32 {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(high)? << 4 | nibble(low)?;
        }
        Ok(Self(bytes))
    }
}

/// The digest of some bytes.
pub fn digest_bytes(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Builds one digest over a list of labelled fields.
///
/// Every field carries its kind and the lengths of label and content. So two different lists never feed the same bytes
/// into the hash.
///
/// ```
/// use ollm_store::Hasher;
/// let one = Hasher::new().field("a", b"bc").field("d", b"").finish();
/// let other = Hasher::new().field("a", b"b").field("cd", b"").finish();
/// assert_ne!(one, other);
/// ```
#[derive(Debug, Clone)]
pub struct Hasher(Sha256);

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher {
    /// An empty list.
    pub fn new() -> Self {
        Self(Sha256::new_with_prefix(b"ollm digest 1\n"))
    }

    /// Adds bytes.
    pub fn field(self, label: &str, bytes: &[u8]) -> Self {
        self.record(b'b', label.as_bytes(), bytes)
    }

    /// Adds content by its digest; the same as [`Hasher::file`] on a file with that digest.
    pub fn digest(self, label: &str, digest: &Digest) -> Self {
        self.record(b'f', label.as_bytes(), &digest.0)
    }

    /// Adds the bytes of a file of at most `max` bytes.
    pub fn file(self, label: &str, path: &Path, max: u64) -> Result<Self, FileError> {
        let digest = digest_file(path, OFlags::empty(), max)?.0;
        Ok(self.digest(label, &digest))
    }

    /// Adds a whole folder: the relative path of every entry, the bytes and the executable bit of every file, the text
    /// of every symbolic link.
    ///
    /// Independent of where the folder stands and of the order in which it is listed. A link that may lead out of the
    /// folder and a special file are errors. Links are safe when they are relative and step up (`..`) only at their
    /// beginning. This holds through any other links on the way.
    pub fn tree(self, label: &str, root: &Path, limits: TreeLimits) -> Result<Self, FileError> {
        let digest = digest_tree(root, limits)?;
        Ok(self.tree_digest(label, &digest))
    }

    /// Adds a folder by its digest; the same as [`Hasher::tree`] on a folder with that digest.
    pub fn tree_digest(self, label: &str, digest: &Digest) -> Self {
        self.record(b't', label.as_bytes(), &digest.0)
    }

    /// The digest of everything added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }

    fn record(mut self, kind: u8, label: &[u8], content: &[u8]) -> Self {
        self.0.update([kind]);
        for part in [label, content] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }
}

/// Hashes one open file, and makes sure that it did not change meanwhile.
fn digest_file(path: &Path, flags: OFlags, max: u64) -> Result<(Digest, StatKey), FileError> {
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        let Some((mut file, meta)) = open_regular(path, flags)? else {
            return Err(failed("open", path, io::ErrorKind::NotFound.into()));
        };
        if meta.len() > max {
            return Err(FileError::TooLarge { path: path.to_owned(), size: meta.len(), max });
        }
        let before = StatKey::of(&meta);
        let (digest, size) = digest_reader(path, &mut file, max, |_| Ok(()))?;
        let after = file.metadata().map_err(|source| failed("inspect", path, source))?;
        if before == StatKey::of(&after) && size == before.size {
            return Ok((digest, before));
        }
    }
    Err(FileError::Changed { path: path.to_owned() })
}

/// Reads at most one byte past `max`, so that a file that grows during the reading counts as changed. `also` gets the
/// bytes that are hashed.
pub fn digest_reader(
    path: &Path,
    file: &mut File,
    max: u64,
    mut also: impl FnMut(&[u8]) -> Result<(), FileError>,
) -> Result<(Digest, u64), FileError> {
    let mut hash = Sha256::new();
    let mut buffer = [0; 16 * 1024];
    let mut size = 0;
    let mut bounded = file.take(max.saturating_add(1));
    loop {
        let read = match bounded.read(&mut buffer) {
            Ok(0) => return Ok((Digest(hash.finalize().into()), size)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(failed("read", path, source)),
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        hash.update(bytes);
        also(bytes)?;
        size += read as u64;
    }
}

fn nibble(digit: u8) -> Result<u8, DigestError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(DigestError),
    }
}

#[cfg(test)]
mod tests;
