//! The keys of a server, one row each. The reader, the JSON Schema, the settings `mcp.servers.*`, the reference, the
//! approved definition and the review all derive from these rows.

use std::path::PathBuf;
use std::time::Duration;

use ollm_protocol::hook::key::Unknown;
use ollm_protocol::{LimitsSpec, Oauth, PermissionsSpec};
use ollm_store::Hasher;
use ollm_trust::Row;

use super::{Pairs, ServerSpec};
use crate::config::camel;

mod oauth;
mod table;

pub use table::SERVER_KEYS;

/// A key of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerKey {
    /// Its spelling; the one in snake case is read as well.
    pub name: &'static str,
    /// The words of other programs for it.
    pub aliases: &'static [&'static str],
    /// What it says, in a sentence or two.
    pub about: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it holds, and where that goes.
    pub kind: ServerKeyKind,
    /// The key without which it has no effect.
    pub needs: Option<&'static str>,
    /// Whether what it holds may be a secret, which no message repeats.
    pub secret: bool,
    /// Why this version ignores it, if it does.
    pub unhonoured: Option<UnsupportedKey>,
    /// The treatment of an unknown key that is similar to this one, or is in its section.
    pub unknown: Unknown,
    /// Whether an approval is bound to it.
    pub approved: ApprovedPart,
    /// What a person sees of it before approving the server.
    pub(super) review: fn(&ServerSpec) -> Vec<Row>,
}

/// Where a value goes.
type Set<T> = fn(&mut ServerDraft, T);

/// What a key holds, and the field it goes into.
#[derive(Clone, Copy, Debug)]
pub enum ServerKeyKind {
    /// It is no key: the place of the declaration says it.
    Place,
    /// Anything: only people look at it.
    Remark,
    /// Text, in these words.
    Text(&'static str, TextForm, Set<String>),
    /// A list of texts, in these words.
    Texts(&'static str, Set<Vec<String>>),
    /// Words, as a list or in one text with blanks between.
    Words(Set<Vec<String>>),
    /// Variables and their values.
    Variables(Set<Pairs>),
    /// Headers and their values.
    Headers(Set<Pairs>),
    /// How a server is spoken to.
    Transport(Set<&'static str>),
    /// True or false.
    Flag(Set<bool>),
    /// Whether it may be started: this value says so.
    Switch(bool),
    /// A positive time.
    Time(Set<Duration>),
    /// A time that may be nothing.
    Pause(Set<Duration>),
    /// Text with a unit of time.
    Span(Set<Duration>),
    /// A number of bytes, or text with a unit.
    Size(Set<u64>),
    /// A whole number.
    Count(Set<u64>),
    /// A port.
    Port(Set<u16>),
    /// A map with keys of its own, and what its presence alone says.
    Section(&'static [ServerKey], fn(&mut ServerDraft)),
}

/// How a text may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// The program; what it may be depends on where the declaration stands.
    Program,
    /// Text with something in it.
    Word,
    /// An address on the web.
    Address,
    /// The https address of a document.
    Document,
    /// An address of this machine.
    Redirect,
}

/// What this version cannot do.
#[derive(Clone, Copy, Debug)]
pub struct UnsupportedKey {
    /// Why not, and what does it instead.
    pub why: &'static str,
    /// The only value that says what holds anyway.
    pub unless: Option<bool>,
    /// Whether the server is not loaded then: the key promises a bound that would not be kept.
    pub refused: bool,
}

/// Whether an approval is bound to a key.
#[derive(Clone, Copy, Debug)]
pub enum ApprovedPart {
    /// It is. An unset key must add nothing, so that approvals from before this key stay valid.
    Part(fn(Hasher, &ServerSpec) -> Hasher),
    /// It is, behind all others.
    Last(fn(Hasher, &ServerSpec) -> Hasher),
    /// It is, as a piece of the part of this key.
    Within(&'static str),
    /// It changes nothing about what the server does.
    No,
}

/// What a declaration says, before it is known what that makes.
#[derive(Debug)]
pub struct ServerDraft {
    /// All but where the server is.
    pub(super) spec: ServerSpec,
    pub(super) command: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) env: Pairs,
    pub(super) cwd: Option<PathBuf>,
    pub(super) limits: LimitsSpec,
    pub(super) url: Option<String>,
    pub(super) headers: Pairs,
    pub(super) transport: Option<&'static str>,
}

impl UnsupportedKey {
    /// What comes of writing the key, as a sentence.
    pub fn sentence(&self) -> String {
        format!("{}: {}.", if self.refused { "It is refused" } else { "It has no effect" }, self.why)
    }
}

impl ServerDraft {
    pub(super) fn new(spec: ServerSpec) -> ServerDraft {
        ServerDraft {
            spec,
            command: None,
            args: Vec::new(),
            env: Pairs::default(),
            cwd: None,
            limits: LimitsSpec::default(),
            url: None,
            headers: Pairs::default(),
            transport: None,
        }
    }

    fn permissions(&mut self) -> &mut PermissionsSpec {
        self.spec.permissions.get_or_insert_default()
    }

    fn oauth(&mut self) -> &mut Oauth {
        self.spec.oauth.get_or_insert_default()
    }
}

impl PartialEq for ServerKey {
    fn eq(&self, other: &ServerKey) -> bool {
        self.name == other.name
    }
}

impl ServerKey {
    /// The key with this name, or with this other word for it; lines may stand between its words.
    pub(crate) fn find(keys: &'static [ServerKey], written: &str) -> Option<&'static ServerKey> {
        let spelled = camel(written);
        let is = |word: &str| word == written || spelled.as_deref() == Some(word);
        let mut keys = keys.iter().filter(|row| !matches!(row.kind, ServerKeyKind::Place));
        keys.find(|row| is(row.name) || row.aliases.iter().any(|word| is(word)))
    }

    /// The names of keys that have an effect.
    pub(crate) fn names(keys: &'static [ServerKey]) -> Vec<&'static str> {
        let named = |row: &&ServerKey| !matches!(row.kind, ServerKeyKind::Place) && row.unhonoured.is_none();
        keys.iter().filter(named).map(|row| row.name).collect()
    }

    /// The keys of what it holds, if that is a map with keys.
    pub fn inner(&self) -> &'static [ServerKey] {
        match self.kind {
            ServerKeyKind::Section(keys, _) => keys,
            _ => &[],
        }
    }
}

/// Whether a key of a server, or of a part of it, is its address.
pub(crate) fn is_address(written: &str) -> bool {
    let row = ServerKey::find(SERVER_KEYS, written);
    row.is_some_and(|row| matches!(row.kind, ServerKeyKind::Text(_, TextForm::Address, _)))
}

/// Whether what stands under a key of a server, or of a part of it, may be a secret.
pub(super) fn is_secret(written: &str) -> bool {
    let lists = SERVER_KEYS.iter().map(ServerKey::inner).chain([SERVER_KEYS]);
    lists.filter_map(|keys| ServerKey::find(keys, written)).any(|row| row.secret)
}

/// What an approval of a server is bound to, beside its files.
pub(super) fn definition(server: &ServerSpec) -> Hasher {
    let part = |hasher: Hasher, row: &ServerKey| match row.approved {
        ApprovedPart::Part(part) => part(hasher, server),
        _ => hasher,
    };
    let last = |hasher: Hasher, row: &ServerKey| match row.approved {
        ApprovedPart::Last(part) => part(hasher, server),
        _ => hasher,
    };
    SERVER_KEYS.iter().fold(SERVER_KEYS.iter().fold(Hasher::new(), part), last)
}

/// What a person sees of these keys.
pub(super) fn review(keys: &[ServerKey], server: &ServerSpec) -> Vec<Row> {
    keys.iter().flat_map(|row| (row.review)(server)).collect()
}
