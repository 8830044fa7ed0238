//! The trait of everything that a person can approve.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ollm_protocol::{Layer, Remedy, Source};
use ollm_store::{Digest, Hasher, digest_bytes};

use crate::context::TrustContext;
use crate::coverage::CommandLine;
use crate::identity::StartRefusal;

/// A line of a review: its name and its text.
pub type Row = (&'static str, String);

/// Something that runs only if a person approved exactly its content: a hook, an extension, a server.
pub trait Approvable {
    /// What its approval is filed under, beside its id.
    fn source(&self) -> String;

    /// Its id among the things of one source.
    fn id(&self) -> Cow<'_, str>;

    /// Its author; this decides whether it needs approval at all.
    fn origin(&self) -> Source;

    /// The layer of its folder; this decides which user its files must belong to.
    fn layer(&self) -> Layer;

    /// The project it belongs to: its own, which may be one around ours, or the one at hand.
    fn project<'a>(&'a self, context: &TrustContext<'a>) -> Option<&'a Path> {
        context.project
    }

    /// The file that declares it.
    fn declared_in(&self) -> Option<&Path>;

    /// Everything that decides what happens, except files. None where the content of a folder is all there is.
    fn definition(&self) -> Option<Definition>;

    /// The program that runs it, by absolute path; an empty path where no program does.
    fn program(&self, context: &TrustContext<'_>) -> Result<PathBuf, StartRefusal>;

    /// What it starts, with everything filled in.
    fn command_line(&self, context: &TrustContext<'_>) -> Option<CommandLine>;

    /// The folder whose files it may name.
    fn folder<'a>(&'a self, context: &TrustContext<'a>) -> Option<&'a Path>;

    /// The file whose content decides what happens, if its declaration names one.
    fn script(&self) -> Option<&Path> {
        None
    }

    /// Further files that its declaration says it depends on.
    fn inputs(&self) -> &[PathBuf] {
        &[]
    }

    /// The folder whose whole content decides what happens.
    fn tree(&self) -> Option<&Path> {
        None
    }

    /// Whether it needs no approval where the user trusts a whole project.
    fn trusts_with_workspace(&self) -> bool {
        false
    }

    /// Whether it runs from its own place if its code looks for files beside itself, or for packages. Its files are then
    /// compared right before it starts.
    fn may_keep_its_place(&self) -> bool {
        false
    }

    /// What a person should see of its declaration, line by line.
    fn rows(&self) -> Vec<Row>;

    /// What it is, in a few words.
    fn title(&self) -> String;

    /// How a person approves it for good.
    fn remedy(&self) -> Remedy;
}

/// How something is defined.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Of the definition alone, where an approval names it apart from the rest.
    pub digest: Option<Digest>,
    /// What follows is added to the definition.
    pub hasher: Hasher,
}

impl Definition {
    /// A definition that is one text.
    pub fn of_text(text: &str) -> Definition {
        let hasher = Hasher::new().field("definition", text.as_bytes());
        Definition { digest: Some(digest_bytes(text.as_bytes())), hasher }
    }

    /// A definition that was hashed field by field.
    pub fn of_fields(hasher: Hasher) -> Definition {
        Definition { digest: None, hasher }
    }
}
