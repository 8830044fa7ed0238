//! Reads `manifest.json`: the description and the contents of an extension.

use ollm_protocol::Source;
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::check::Check;
use super::key::{ManifestKey, ManifestPart, RowKind, optional, required};
use super::name::{PLAIN, check_extension_name, is_plain};
use super::permission::{PERMISSIONS, Permissions};
use super::schema;
use super::setting::{self, SETTING, SettingSpec};
use super::skill::{self, SKILL, Skill};
use crate::entry::{self, by_event};
use crate::mcp::{self, Context};
use crate::node::{Cursor, Node};
use crate::value::{self, ReadValue};

/// The newest version of the manifest format that we know.
pub(super) const VERSION: u64 = 1;

/// A manifest.
pub(super) const MANIFEST: ManifestPart<Manifest> = ManifestPart {
    name: "",
    what: "a manifest",
    example: r#"{"name": "…", "version": "1.0.0", "description": "…"}"#,
    refusal: None,
    promise: None,
    rows: &[
        optional("$schema", "Where the schema of manifests is, for editors.", "none", RowKind::Elsewhere(|| json!({}))),
        optional(
            "manifestVersion",
            "The form of the manifest; a newer one is refused by name.",
            "1",
            // This key is read before everything else.
            RowKind::Elsewhere(|| json!({"type": "integer", "minimum": 1, "maximum": VERSION, "default": 1})),
        ),
        required(
            "name",
            "Lower-case letters, digits and hyphens, at most 64. Words that mean something else (`all`, `user`, `project` …) and \
             devices of some systems (`con`, `nul`, `aux`, `prn`, `com1`–`com9`, `lpt1`–`lpt9`) are refused.",
            RowKind::Own(|check, at, _| read_name(check, at), schema::name),
        ),
        required(
            "version",
            "A semantic version, also with a pre-release.",
            RowKind::Own(
                |check, at, manifest| manifest.version = read_version(check, at).unwrap_or_default(),
                schema::version,
            ),
        ),
        required(
            "description",
            "What the extension is for.",
            RowKind::Words(|manifest, text| manifest.description = text),
        ),
        optional(
            "author",
            "Who wrote it, for people.",
            "none",
            RowKind::About(&["name", "email", "url"], |manifest, text| manifest.author = Some(text)),
        ),
        optional(
            "license",
            "The licence, as an SPDX expression, for people.",
            "none",
            RowKind::Words(|manifest, text| manifest.license = Some(text)),
        ),
        optional(
            "repository",
            "Where its source is, for people.",
            "none",
            RowKind::About(&["url", "type", "directory"], |manifest, text| manifest.repository = Some(text)),
        ),
        optional(
            "homepage",
            "Where it is described, for people.",
            "none",
            RowKind::Words(|manifest, text| manifest.homepage = Some(text)),
        ),
        optional(
            "keywords",
            "Words to find it by.",
            "none",
            RowKind::Texts(|manifest, words| manifest.keywords = words),
        ),
        optional(
            "mcpServers",
            "Servers by name, each with the keys of a server.",
            "none",
            RowKind::Own(|check, at, manifest| manifest.servers = read_servers(check, at), schema::servers),
        ),
        optional(
            "hooks",
            "Events with their lists, exactly as in a hook file; relative files lie in the extension's folder and may \
             not leave it.",
            "none",
            RowKind::Own(|check, at, _| check_hooks(check, at), by_event),
        ),
        optional(
            "settings",
            "What can be set, a list.",
            "none",
            RowKind::Own(|check, at, manifest| manifest.settings = setting::read(check, at), schema::settings),
        ),
        optional(
            "skills",
            "Prompts with blanks to fill in, a list.",
            "none",
            RowKind::Own(|check, at, manifest| manifest.skills = skill::read(check, at), schema::skills),
        ),
        optional(
            "dependencies",
            "Other extensions and the versions that will do: `\"^1.2\"`, `\">=1 <3\"`, `\"*\"`. A pre-release fits only a range that \
             names one: `\">=1.3.0-beta.1\"`.",
            "none",
            RowKind::Own(
                |check, at, manifest| manifest.dependencies = read_dependencies(check, at),
                schema::dependencies,
            ),
        ),
        optional(
            "permissions",
            "What it wants to do, shown before you approve. Where they are given, what the manifest declares is held to them; what \
             a program does by itself is not.",
            "it is held to nothing",
            RowKind::Own(
                |check, at, manifest| {
                    manifest.permissions.given = !matches!(at.node, Node::Null);
                    PERMISSIONS.read(check, at, &mut manifest.permissions);
                },
                || PERMISSIONS.schema(),
            ),
        ),
    ],
};

/// The keys of a manifest and of its parts, except those of its hooks and servers.
pub fn manifest_keys() -> [(&'static str, Vec<ManifestKey>); 4] {
    [MANIFEST.keys(), SETTING.keys(), SKILL.keys(), PERMISSIONS.keys()]
}

/// The names of the keys that are read in a manifest and in its parts, except those of its servers.
pub fn manifest_key_names() -> impl Iterator<Item = (String, Vec<&'static str>)> {
    let names = |keys: Vec<ManifestKey>| keys.iter().map(|key| key.name).collect();
    let own = manifest_keys().into_iter().map(move |(part, keys)| (part.to_owned(), names(keys)));
    let people = MANIFEST.rows.iter().filter_map(|row| match row.kind {
        RowKind::About(keys, _) => Some((row.key.name.to_owned(), keys.to_vec())),
        _ => None,
    });
    own.chain(people).chain(entry::keys())
}

/// The content of a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Its version; empty if it is unreadable.
    pub version: String,
    /// Its description.
    pub description: String,
    /// Its author.
    pub author: Option<String>,
    /// Its licence.
    pub license: Option<String>,
    /// The address of its source code.
    pub repository: Option<String>,
    /// The address of its web page.
    pub homepage: Option<String>,
    /// Search terms for it.
    pub keywords: Vec<String>,
    /// Its MCP servers, each with its keys as written.
    pub servers: Map<String, Value>,
    /// The settings that a person can set.
    pub settings: Vec<SettingSpec>,
    /// The skills in the manifest itself.
    pub skills: Vec<Skill>,
    /// The extensions it needs.
    pub dependencies: Vec<Dependency>,
    /// The permissions it asks for. Its declarations are checked against them; its programs' own actions are not.
    pub permissions: Permissions,
}

/// A dependency on another extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// The accepted versions.
    pub range: String,
}

impl Dependency {
    /// Whether a version would be accepted if it were not a pre-release.
    pub(super) fn accepts_release_of(&self, version: &str) -> bool {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        release.len() < version.len() && !self.accepts(version) && self.accepts(release)
    }

    /// Whether a version is accepted.
    pub fn accepts(&self, version: &str) -> bool {
        match (range(&self.range), Version::parse(version)) {
            (Ok(range), Ok(version)) => range.matches(&version),
            _ => false,
        }
    }
}

/// A version range, with spaces between its parts as others write it.
fn range(text: &str) -> Result<VersionReq, semver::Error> {
    VersionReq::parse(text).or_else(|error| {
        let parts: Vec<&str> = text.split_whitespace().collect();
        if parts.len() > 1 { VersionReq::parse(&parts.join(", ")) } else { Err(error) }
    })
}

/// The name, if it is readable.
pub(super) fn name(root: &Cursor<'_>) -> Option<String> {
    match root.get("name")?.node {
        Node::Text(name) if check_extension_name(name).is_ok() => Some(name.clone()),
        _ => None,
    }
}

/// Reads everything but the hooks; faults become findings. `None` for a newer format than ours.
pub(super) fn read(check: &mut Check<'_>, root: &Cursor<'_>) -> Option<Manifest> {
    if !is_known_version(check, root) {
        return None;
    }
    let mut manifest = Manifest::default();
    MANIFEST.read(check, root, &mut manifest);
    Some(manifest)
}

/// Checks that hooks can be read. The code with the rules for hooks reads them.
fn check_hooks(check: &mut Check<'_>, at: &Cursor<'_>) {
    if !matches!(at.node, Node::Map(_)) {
        let help = "write {\"hooks\": {\"before_tool\": [{\"name\": …, \"command\": …}]}}";
        check.refuse(at, format!("`hooks` must be a map of events, not {}", at.node.kind()), Some(help));
    }
}

fn is_known_version(check: &mut Check<'_>, root: &Cursor<'_>) -> bool {
    let Some(at) = root.get("manifestVersion").filter(|at| !matches!(at.node, Node::Null)) else { return true };
    match value::whole(at.node) {
        ReadValue::Exact(1..=VERSION) => return true,
        ReadValue::Exact(newer) if newer > VERSION => {
            let message = format!("manifestVersion {newer} is newer than this program, which knows up to {VERSION}");
            check.refuse(&at, message, Some("update ollm, or get a version of the extension for this one"));
        }
        _ => check.refuse(
            &at,
            format!("`manifestVersion` must be {VERSION}, which is all there is"),
            Some(&format!("write {VERSION}, or leave it out")),
        ),
    }
    false
}

/// [`name`] reads this key.
fn read_name(check: &mut Check<'_>, at: &Cursor<'_>) {
    if let Some(name) = check.words(at)
        && let Err(why) = check_extension_name(&name)
    {
        check.refuse(at, format!("`{name}` cannot be the name of an extension"), Some(&why));
    }
}

fn read_version(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<String> {
    let text = check.take(at, value::plain(at.node), "text such as \"1.0.0\"")?;
    if let Err(error) = Version::parse(&text) {
        let help = "write three numbers, such as 1.2.0, with a pre-release if wanted: 1.2.0-beta.1";
        check.refuse(at, format!("`version` is not a semantic version: {error}"), Some(help));
        return None;
    }
    Some(text)
}

fn read_dependencies(check: &mut Check<'_>, at: &Cursor<'_>) -> Vec<Dependency> {
    let mut dependencies = Vec::new();
    check.map(at, "`dependencies`", r#"{"other-extension": "^1.2"}"#, |check, name, at| {
        if let Err(why) = check_extension_name(name) {
            return check.refuse(at, format!("`{name}` cannot be the name of an extension"), Some(&why));
        }
        let Some(written) = check.take(at, value::plain(at.node), "a range of versions such as \"^1.2\"") else {
            return;
        };
        match range(&written) {
            Ok(_) => dependencies.push(Dependency { name: name.to_owned(), range: written }),
            Err(error) => {
                let help = "write one such as \"^1.2\", \">=1.0, <2\" or \"*\"";
                check.refuse(at, format!("`{written}` is no range of versions: {error}"), Some(help));
            }
        }
    });
    dependencies
}

/// The servers. Each is checked in the way it will be read later.
fn read_servers(check: &mut Check<'_>, at: &Cursor<'_>) -> Map<String, Value> {
    let (folder, walked) = (check.folder, check.walked);
    let mut servers = Map::new();
    check.map(at, "`mcpServers`", r#"{"time": {"command": "uvx", "args": ["mcp-server-time"]}}"#, |check, name, at| {
        if !is_plain(name) {
            check.refuse(at, format!("`{name}` cannot be the name of a server"), Some(PLAIN));
        }
        servers.insert(name.to_owned(), at.node.to_json());
    });
    if matches!(at.node, Node::Map(_)) {
        let context =
            Context { file: folder, source: Source::Extension, extension: None, folder: Some((folder, walked)) };
        mcp::read(at, &context, check.findings);
    }
    servers
}
