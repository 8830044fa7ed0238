//! The index that is part of the program. Its few small extensions make search and installation work without a network.

use ollm_package::{Index, IndexEntry, Package, pack};
use ollm_protocol::Code;
use ollm_store::digest_bytes;
use semver::Version;
use serde_json::Value;

use crate::error::AppError;

/// The name of this index in the configuration, and the scheme of its addresses.
pub(super) const BUILTIN: &str = "builtin";

/// The files of one extension.
struct EmbeddedExtension {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! embedded {
    ($name:literal: $($file:literal),+ $(,)?) => {
        EmbeddedExtension {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../extensions/", $name, "/", $file)))),+],
        }
    };
}

#[rustfmt::skip]
const EXTENSIONS: &[EmbeddedExtension] = &[
    embedded!("format-on-save":
        "cases/format-edited/a-file-that-is-gone-does-no-harm.json",
        "cases/format-new/a-file-that-is-gone-does-no-harm.json",
        "hooks/format.py",
        "manifest.json",
    ),
    embedded!("git-guard":
        "README.md",
        "cases/git-guard/lets-a-lease-pass.json",
        "cases/git-guard/lets-a-message-about-a-push-pass.json",
        "cases/git-guard/lets-a-message-that-looks-like-an-option-pass.json",
        "cases/git-guard/lets-a-plain-push-pass.json",
        "cases/git-guard/lets-words-about-git-pass.json",
        "cases/git-guard/refuses-a-forced-push-in-another-shell.json",
        "cases/git-guard/refuses-a-forced-push-in-parentheses.json",
        "cases/git-guard/refuses-a-forced-push-in-short.json",
        "cases/git-guard/refuses-a-forced-push-of-another-user.json",
        "cases/git-guard/refuses-a-forced-push-with-a-deadline.json",
        "cases/git-guard/refuses-a-forced-push-with-variables.json",
        "cases/git-guard/refuses-a-forced-push.json",
        "cases/git-guard/refuses-a-hard-reset.json",
        "cases/git-guard/refuses-a-push-to-main.json",
        "cases/git-guard/refuses-skipped-hooks.json",
        "hooks/guard.py",
        "manifest.json",
    ),
    embedded!("secrets-guard":
        "cases/no-secrets-in-prompts/says-nothing-otherwise.json",
        "cases/no-secrets-in-prompts/warns-about-a-token.json",
        "cases/no-secrets-in-tools/lets-a-variable-pass.json",
        "cases/no-secrets-in-tools/refuses-a-key-in-a-file.json",
        "cases/no-secrets-in-tools/refuses-a-private-key-in-a-command.json",
        "hooks/prompt.py",
        "hooks/secrets_guard.py",
        "hooks/tools.py",
        "manifest.json",
    ),
];

/// The index of the embedded extensions.
pub(super) fn index() -> Index {
    Index { entries: EXTENSIONS.iter().filter_map(EmbeddedExtension::entry).collect(), problems: Vec::new() }
}

/// The archive of an embedded extension.
pub(super) fn archive(name: &str) -> Result<Vec<u8>, AppError> {
    let missing = || AppError::new(Code::NotFetched, format!("the program has no extension `{name}` in it"));
    let embedded = EXTENSIONS.iter().find(|one| one.name == name).ok_or_else(missing)?;
    pack(&embedded.package()).map_err(|error| AppError::new(Code::NotFetched, error.to_string()))
}

impl EmbeddedExtension {
    fn package(&self) -> Package {
        self.files.iter().map(|(path, text)| (*path, text.as_bytes().to_vec(), false)).collect()
    }

    /// The entry in the index, from the manifest.
    fn entry(&self) -> Option<IndexEntry> {
        let package = self.package();
        let manifest: Value = serde_json::from_slice(package.get("manifest.json")?).ok()?;
        let text = |key: &str| manifest.get(key).and_then(Value::as_str).map(str::to_owned);
        let tags = manifest.get("keywords").and_then(Value::as_array).into_iter().flatten();
        let archive = pack(&package).ok()?;
        Some(IndexEntry {
            name: self.name.to_owned(),
            version: Version::parse(&text("version")?).ok()?,
            description: text("description").unwrap_or_default(),
            author: text("author").or_else(|| Some("the ollm developers".to_owned())),
            repository: text("repository"),
            download_url: format!("{BUILTIN}:{}", self.name),
            checksum: digest_bytes(&archive).to_string(),
            size: Some(archive.len() as u64),
            signature: None,
            tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
            updated_at: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn everything_in_the_folders_of_the_examples_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("extensions");
        let folders = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let mut seen = BTreeSet::new();
        for folder in folders {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let embedded = EXTENSIONS.iter().find(|one| one.name == name).unwrap();
            assert_eq!(super::super::folder::read(&folder).unwrap(), embedded.package(), "{name}");
            seen.insert(name);
        }
        assert_eq!(seen.len(), EXTENSIONS.len());
        assert_eq!(index().entries.len(), EXTENSIONS.len());
    }
}
