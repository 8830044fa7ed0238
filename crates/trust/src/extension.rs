//! An extension as a whole: one folder, one digest, one approval for everything in it.
//!
//! Each of its hooks has an entry of its own beside the one of the whole, because each also depends on the program that
//! runs it; all of them are written in one step.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use ollm_protocol::{Layer, Remedy, Source};
use ollm_store::Digest;

use crate::approvable::{Approvable, Definition, Row};
use crate::approvals::{Approval, Standing};
use crate::content_store::ContentStoreError;
use crate::context::TrustContext;
use crate::coverage::CommandLine;
use crate::identity::{Unready, of_tree};
use crate::proposal::Proposal;
use crate::trust::Trust;

/// The folder of an extension, as something that can be approved.
#[derive(Clone, Debug)]
pub struct ExtensionFolder {
    /// The name of the extension.
    pub name: String,
    /// The folder.
    pub root: PathBuf,
    /// What a person should see of what it brings, line by line.
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

    fn program(&self, _: &TrustContext<'_>) -> Result<PathBuf, Unready> {
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
    /// The digest of an extension's folder with everything in it; of one that is held, the one that was approved.
    pub fn tree_digest(&self, root: &Path) -> Result<Digest, Unready> {
        if let Some(approved) = self.held(root) {
            return Ok(approved);
        }
        of_tree(root, &self.memory.digests).map(|(_, digest)| digest)
    }

    /// Whether an extension was approved as it is now.
    pub fn extension_standing(&self, name: &str, root: &Path, digest: &Digest) -> Standing {
        let (approvals, _) = &*self.approvals.current();
        approvals.check(&root.display().to_string(), &extension_id(name), digest, digest)
    }

    /// From now on takes the folders of these extensions, and of no others, for what they were when they were approved:
    /// what can no longer be understood goes on as the copy that was approved. One that nobody approved stays as it is.
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

    /// The copy of an extension as it was when it was last approved.
    pub fn approved_extension(&self, name: &str, root: &Path) -> Option<PathBuf> {
        let (approvals, _) = &*self.approvals.current();
        let approval = approvals.find(&root.display().to_string(), &extension_id(name))?;
        self.copies.folder(approval.copy.as_deref()?)
    }

    /// The copy of the extension in a folder as it was when it was last approved, whatever its name is.
    pub fn approved_folder(&self, root: &Path) -> Option<PathBuf> {
        let (approvals, _) = &*self.approvals.current();
        let source = root.display().to_string();
        let is_whole = |approval: &&&Approval| approval.source == source && approval.id.starts_with(EXTENSION);
        let list = approvals.list();
        let approval = list.iter().find(is_whole)?;
        self.copies.folder(approval.copy.as_deref()?)
    }

    /// Removes the copies that no approval has and that `is_meant` says are wanted no more, at its best effort.
    pub fn drop_copies(&self, is_meant: &dyn Fn(&Path) -> bool) {
        let (approvals, _) = &*self.approvals.current();
        let list = approvals.list();
        let is_kept = |name: &str| list.iter().any(|approval| approval.copy.as_deref() == Some(name));
        let is_meant = |name: &str| self.copies.folder(name).is_some_and(|folder| is_meant(&folder));
        self.copies.sweep(&|name| is_kept(name) || !is_meant(name));
    }

    /// What an approval of a part of an extension would be bound to; refused if the folder is by now another one than the
    /// copy of the whole, because then nobody has seen what would be approved.
    pub fn propose_part<T: Approvable>(
        &self,
        whole: &Proposal,
        part: &T,
        context: &TrustContext<'_>,
    ) -> Result<Proposal, Unready> {
        let proposal = self.propose(part, context)?;
        if proposal.copy_folder().is_some() && proposal.copy_folder() == whole.copy_folder() {
            return Ok(proposal);
        }
        Err(ContentStoreError::Changed { path: PathBuf::from(&whole.identity.source) }.into())
    }
}

/// What the approvals of an extension and of its parts are filed under, for [`Trust::withdraw`]: in one step, so that
/// killed in between either all of it is approved or nothing.
pub fn extension_keys<'a, T: Approvable + 'a>(
    name: &str,
    root: &Path,
    parts: impl IntoIterator<Item = &'a T>,
) -> Vec<(String, String)> {
    let whole = (root.display().to_string(), extension_id(name));
    let parts = parts.into_iter().map(|part| (part.source(), part.id().into_owned()));
    std::iter::once(whole).chain(parts).collect()
}

/// How the id of a whole extension begins.
const EXTENSION: &str = "extension:";

/// What the approval of an extension is filed under, beside its folder.
pub fn extension_id(name: &str) -> String {
    format!("{EXTENSION}{name}")
}
