//! The record of an installation. It is in the extension's folder, so that both appear and disappear in one step.

use std::path::Path;

use ollm_catalog::INSTALL_RECORD;
use ollm_store::{Digest, read_bounded};
use serde_json::{Value, json};

use super::source::PackageSource;

const VERSION: u64 = 1;
const LARGEST_FILE: u64 = 256 << 10;

/// The record of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallRecord {
    /// The source of the package.
    pub source: PackageSource,
    /// The digest of its archive, if it came in one.
    pub checksum: Option<Digest>,
    /// The commit, if it came from a repository.
    pub commit: Option<String>,
    /// The index that listed it.
    pub index: Option<String>,
    /// The key that signed it, if it is one of the user's keys.
    pub signed_by: Option<String>,
    /// The format of the package, if it was made for another agent.
    pub form: Option<String>,
    /// The parts of it that are not loaded, and why.
    pub left: Vec<String>,
}

impl InstallRecord {
    /// A record with only the source.
    pub(super) fn new(source: PackageSource) -> InstallRecord {
        InstallRecord {
            source,
            checksum: None,
            commit: None,
            index: None,
            signed_by: None,
            form: None,
            left: Vec::new(),
        }
    }

    /// The record of the extension in a folder; `None` if we did not install it.
    pub fn read(folder: &Path) -> Option<InstallRecord> {
        let bytes = read_bounded(&folder.join(INSTALL_RECORD), LARGEST_FILE).ok()??;
        InstallRecord::from_json(&serde_json::from_slice(&bytes).ok()?)
    }

    /// The reason why the record in a folder cannot be read, if there is one.
    pub(super) fn unreadable(folder: &Path) -> Option<String> {
        let path = folder.join(INSTALL_RECORD);
        if InstallRecord::read(folder).is_some() || path.symlink_metadata().is_err() {
            return None;
        }
        let bytes = read_bounded(&path, LARGEST_FILE).ok().flatten().unwrap_or_default();
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        Some(match document.get("version").and_then(Value::as_u64) {
            Some(version) if version > VERSION => format!(
                "{} has version {version}, and this program knows up to {VERSION}; update the program",
                path.display()
            ),
            _ => format!("{} cannot be read, so nothing is known of what is installed there", path.display()),
        })
    }

    /// The content of the record's file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", self.to_json()).into_bytes()
    }

    /// Whether a pin names exactly this installation.
    pub(super) fn is_pinned_by(&self, pin: &str, version: &str) -> bool {
        let checksum = self.checksum.map(|digest| digest.to_string());
        pin == version || [&self.commit, &checksum].into_iter().flatten().any(|known| known == pin)
    }

    fn to_json(&self) -> Value {
        json!({
            "version": VERSION,
            "source": self.source.to_json(),
            "checksum": self.checksum.map(|digest| digest.to_string()),
            "commit": self.commit,
            "index": self.index,
            "signedBy": self.signed_by,
            "form": self.form,
            "left": self.left,
        })
    }

    fn from_json(value: &Value) -> Option<InstallRecord> {
        if value.get("version")?.as_u64()? != VERSION {
            return None;
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let left = value.get("left").and_then(Value::as_array).into_iter().flatten();
        Some(InstallRecord {
            source: PackageSource::from_json(value.get("source")?)?,
            checksum: text("checksum").and_then(|digest| digest.parse().ok()),
            commit: text("commit"),
            index: text("index"),
            signed_by: text("signedBy"),
            form: text("form"),
            left: left.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let source = PackageSource::Git { url: "https://e.org/x".to_owned(), reference: None };
        let record = InstallRecord {
            checksum: Some(ollm_store::digest_bytes(b"x")),
            commit: Some("abc".to_owned()),
            left: vec!["agents".to_owned()],
            ..InstallRecord::new(source)
        };
        std::fs::write(folder.path().join(INSTALL_RECORD), record.to_bytes()).unwrap();
        assert_eq!(InstallRecord::read(folder.path()), Some(record));
    }
}
