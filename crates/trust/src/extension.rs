//! Approves an extension as a whole: one folder, one digest, one approval for everything in it.
//!
//! In addition, each of its hooks has an entry of its own, because each also depends on the program that runs it. All
//! entries are written in one step.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use ollm_protocol::{Layer, Remedy, Source};
use ollm_store::Digest;

use crate::approvable::{Approvable, Definition, Row};
use crate::approvals::{Approval, Standing};
use crate::content_store::ContentStoreError;
use crate::context::TrustContext;
use crate::coverage::CommandLine;
use crate::identity::{StartRefusal, of_tree};
use crate::proposal::Proposal;
use crate::trust::{DIGESTS, Trust};

/// The folder of an extension, which a person can approve.
#[derive(Clone, Debug)]
pub struct ExtensionFolder {
    /// The name of the extension.
    pub name: String,
    /// The folder.
    pub root: PathBuf,
    /// The contents of the extension for a person, line by line.
    pub rows: Vec<Row>,
}

impl ExtensionFolder {
    /// The folder of an extension.
    pub fn new(name: impl Into<String>, root: impl Into<PathBuf>) -> ExtensionFolder {
        ExtensionFolder { name: name.into(), root: root.into(), rows: Vec::new() }
    }
}

impl Approvable for ExtensionFolder {
    fn source(&self) -> String {
        self.root.display().to_string()
    }

    fn id(&self) -> Cow<'_, str> {
        extension_id(&self.name).into()
    }

    fn origin(&self) -> Source {
        Source::Extension
    }

    fn layer(&self) -> Layer {
        Layer::User
    }

    fn declared_in(&self) -> Option<&Path> {
        None
    }

    fn definition(&self) -> Option<Definition> {
        None
    }

    fn program(&self, _: &TrustContext<'_>) -> Result<PathBuf, StartRefusal> {
        Ok(PathBuf::new())
    }

    fn command_line(&self, _: &TrustContext<'_>) -> Option<CommandLine> {
        None
    }

    fn folder<'a>(&'a self, _: &TrustContext<'a>) -> Option<&'a Path> {
        Some(&self.root)
    }

    fn tree(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }

    fn title(&self) -> String {
        format!("extension `{}`", self.name)
    }

    fn remedy(&self) -> Remedy {
        Remedy::ApproveExtension(self.name.clone())
    }
}

impl Trust {
    /// The digest of an extension's folder with everything in it. For a held extension, the approved digest.
    pub fn tree_digest(&self, root: &Path) -> Result<Digest, StartRefusal> {
        if let Some(approved) = self.held(root) {
            return Ok(approved);
        }
        of_tree(root, &self.memory.digests).map(|(_, digest)| digest)
    }

    /// Whether the present state of an extension is approved.
    pub fn extension_standing(&self, name: &str, root: &Path, digest: &Digest) -> Standing {
        let (approvals, _) = &*self.approvals.current();
        approvals.check(&root.display().to_string(), &extension_id(name), digest, digest)
    }

    /// From now on, treats the folders of exactly these extensions as they were at their approval. A changed extension
    /// still runs from its approved copy. An unapproved one keeps its present state.
    pub fn hold<'a>(&self, extensions: impl IntoIterator<Item = (&'a str, &'a Path)>) {
        let (approvals, _) = &*self.approvals.current();
        let approved = |(name, root): (&str, &Path)| {
            let approval = approvals.find(&root.display().to_string(), &extension_id(name))?;
            Some((root.to_owned(), approval.digest))
        };
        let held = extensions.into_iter().filter_map(approved).collect();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    pub(crate) fn held(&self, root: &Path) -> Option<Digest> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get(root).copied()
    }

    /// The copy from the last approval of an extension.
    pub fn approved_extension(&self, name: &str, root: &Path) -> Option<PathBuf> {
        let (approvals, _) = &*self.approvals.current();
        let approval = approvals.find(&root.display().to_string(), &extension_id(name))?;
        self.copies.folder(approval.copy.as_deref()?)
    }

    /// The copy from the last approval of the extension in a folder, under any name.
    pub fn approved_folder(&self, root: &Path) -> Option<PathBuf> {
        let (approvals, _) = &*self.approvals.current();
        let source = root.display().to_string();
        let is_whole = |approval: &&&Approval| approval.source == source && approval.id.starts_with(EXTENSION);
        let list = approvals.list();
        let approval = list.iter().find(is_whole)?;
        self.copies.folder(approval.copy.as_deref()?)
    }

    /// Removes copies that no approval names and that `is_meant` selects. Also removes the file digests; best effort.
    pub fn drop_copies(&self, is_meant: &dyn Fn(&Path) -> bool) {
        let (approvals, _) = &*self.approvals.current();
        let list = approvals.list();
        let is_kept = |name: &str| list.iter().any(|approval| approval.copy.as_deref() == Some(name));
        let is_meant = |name: &str| self.copies.folder(name).is_some_and(|folder| is_meant(&folder));
        self.copies.sweep(&|name| is_kept(name) || !is_meant(name));
        self.copies.remove_if_empty();
        // The next process computes the digests again.
        let _ = fs::remove_file(self.state().join(DIGESTS));
    }

    /// What an approval for a part of an extension would be bound to. The part is refused if the folder now differs
    /// from the copy of the whole: the person did not see the new content.
    pub fn propose_part<T: Approvable>(
        &self,
        whole: &Proposal,
        part: &T,
        context: &TrustContext<'_>,
    ) -> Result<Proposal, StartRefusal> {
        let proposal = self.propose(part, context)?;
        if proposal.copy_folder().is_some() && proposal.copy_folder() == whole.copy_folder() {
            return Ok(proposal);
        }
        Err(ContentStoreError::Changed { path: PathBuf::from(&whole.identity.source) }.into())
    }
}

/// The sources and ids of the approvals of an extension and its parts, for [`Trust::withdraw`]. They are withdrawn in
/// one step, so that an interruption leaves either all of them or none.
pub fn extension_keys<'a, T: Approvable + 'a>(
    name: &str,
    root: &Path,
    parts: impl IntoIterator<Item = &'a T>,
) -> Vec<(String, String)> {
    let whole = (root.display().to_string(), extension_id(name));
    let parts = parts.into_iter().map(|part| (part.source(), part.id().into_owned()));
    std::iter::once(whole).chain(parts).collect()
}

/// The prefix of the id of a whole extension.
const EXTENSION: &str = "extension:";

/// The id under which an extension's approval is stored, in addition to its folder.
pub fn extension_id(name: &str) -> String {
    format!("{EXTENSION}{name}")
}
