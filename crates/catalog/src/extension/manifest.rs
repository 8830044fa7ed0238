//! `manifest.json`: what an extension is and brings.

use std::path::Path;

use ollm_protocol::Source;
use semver::{Version, VersionReq};
use serde_json::{Map, Value};

use super::check::Check;
use super::name::{PLAIN, check_extension_name, is_plain};
use super::permission::Permissions;
use super::setting::{self, SettingSpec};
use super::skill::{self, Skill};
use crate::entry;
use crate::mcp::{self, Context};
use crate::node::{Cursor, Node};
use crate::value::{self, Reading};

/// The newest form of a manifest that we know.
pub(super) const VERSION: u64 = 1;

/// The least that a manifest says.
const EXAMPLE: &str = r#"{"name": "…", "version": "1.0.0", "description": "…"}"#;

/// The keys of a manifest.
pub(super) const KEYS: &[&str] = &[
    "$schema",
    "manifestVersion",
    "name",
    "version",
    "description",
    "author",
    "license",
    "repository",
    "homepage",
    "keywords",
    "mcpServers",
    "hooks",
    "settings",
    "skills",
    "dependencies",
    "permissions",
];

/// The keys of an author and of a repository, where they are maps; the first stands for the whole.
const AUTHOR: &[&str] = &["name", "email", "url"];
const REPOSITORY: &[&str] = &["url", "type", "directory"];

/// What can be permitted.
const PERMISSIONS: &[&str] = &["filesystem", "network", "env", "shell", "mcp"];

/// The keys that are read in a manifest and in its parts, but for those of its servers.
pub fn keys() -> impl Iterator<Item = (String, Vec<&'static str>)> {
    let own = [
        ("", KEYS),
        ("author", AUTHOR),
        ("repository", REPOSITORY),
        ("settings", setting::KEYS),
        ("skills", skill::KEYS),
        ("permissions", PERMISSIONS),
    ];
    own.into_iter().map(|(part, keys)| (part.to_owned(), keys.to_vec())).chain(entry::keys())
}

/// What an extension says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Its version; empty where it cannot be read.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// Under which licence.
    pub license: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// Where it is described.
    pub homepage: Option<String>,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Its MCP servers, each with its keys as written.
    pub servers: Map<String, Value>,
    /// What can be set.
    pub settings: Vec<SettingSpec>,
    /// The skills that stand in the manifest itself.
    pub skills: Vec<Skill>,
    /// The extensions it needs.
    pub dependencies: Vec<Dependency>,
    /// What it wants to do; what it declares is held to it, what its programs do by themselves is not.
    pub permissions: Permissions,
}

/// Another extension that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// The versions that will do.
    pub range: String,
}

impl Dependency {
    /// Whether a version would do if it were no pre-release.
    pub(super) fn accepts_release_of(&self, version: &str) -> bool {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        release.len() < version.len() && !self.accepts(version) && self.accepts(release)
    }

    /// Whether a version will do.
    pub(super) fn accepts(&self, version: &str) -> bool {
        match (range(&self.range), Version::parse(version)) {
            (Ok(range), Ok(version)) => range.matches(&version),
            _ => false,
        }
    }
}

/// A range, with blanks between its parts where others write them.
fn range(text: &str) -> Result<VersionReq, semver::Error> {
    VersionReq::parse(text).or_else(|error| {
        let parts: Vec<&str> = text.split_whitespace().collect();
        if parts.len() > 1 { VersionReq::parse(&parts.join(", ")) } else { Err(error) }
    })
}

/// The name, if there is one that can be read.
pub(super) fn name(root: &Cursor<'_>) -> Option<String> {
    match root.get("name")?.node {
        Node::Text(name) if check_extension_name(name).is_ok() => Some(name.clone()),
        _ => None,
    }
}

/// Everything but the hooks; what is wrong with it is a finding. Nothing at all of a form that is newer than we are.
pub(super) fn read(check: &mut Check<'_>, root: &Cursor<'_>, folder: &Path) -> Option<Manifest> {
    if !is_known_version(check, root) {
        return None;
    }
    let mut manifest = Manifest::default();
    let mut named = false;
    let is_map = check.map(root, "a manifest", EXAMPLE, |check, key, at| match key {
        "name" => named = read_name(check, at),
        "version" => manifest.version = read_version(check, at).unwrap_or_default(),
        "description" => manifest.description = check.words(at).unwrap_or_default(),
        "author" => manifest.author = read_about(check, at, AUTHOR),
        "license" => manifest.license = check.words(at),
        "repository" => manifest.repository = read_about(check, at, REPOSITORY),
        "homepage" => manifest.homepage = check.words(at),
        "keywords" => manifest.keywords = check.texts(at),
        "mcpServers" => manifest.servers = read_servers(check, at, folder),
        "settings" => manifest.settings = setting::read(check, at),
        "skills" => manifest.skills = skill::read(check, at),
        "dependencies" => manifest.dependencies = read_dependencies(check, at),
        "permissions" => manifest.permissions = read_permissions(check, at),
        "hooks" if !matches!(at.node, Node::Map(_)) => {
            let help = "write {\"hooks\": {\"before_tool\": [{\"name\": …, \"command\": …}]}}";
            check.refuse(at, format!("`hooks` must be a map of events, not {}", at.node.kind()), Some(help));
        }
        "$schema" | "manifestVersion" | "hooks" => {}
        _ => check.unknown(at, KEYS),
    });
    if is_map {
        check.demand(root, "the manifest", "name", named);
        check.demand(root, "the manifest", "version", !manifest.version.is_empty());
        check.demand(root, "the manifest", "description", !manifest.description.is_empty());
    }
    Some(manifest)
}

fn is_known_version(check: &mut Check<'_>, root: &Cursor<'_>) -> bool {
    let Some(at) = root.get("manifestVersion") else { return true };
    match value::whole(at.node) {
        Reading::Exact(1..=VERSION) => return true,
        Reading::Exact(newer) if newer > VERSION => {
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

fn read_name(check: &mut Check<'_>, at: &Cursor<'_>) -> bool {
    let Some(name) = check.words(at) else { return false };
    if let Err(why) = check_extension_name(&name) {
        check.refuse(at, format!("`{name}` cannot be the name of an extension"), Some(&why));
    }
    true
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

/// Text, or a map that other tools write in its place.
fn read_about(check: &mut Check<'_>, at: &Cursor<'_>, keys: &[&str]) -> Option<String> {
    if !matches!(at.node, Node::Map(_)) {
        return check.words(at);
    }
    let texts: Vec<(String, String)> = at
        .entries()
        .filter(|(key, _)| keys.contains(key))
        .filter_map(|(key, value)| Some((key.to_owned(), check.words(&value)?)))
        .collect();
    keys.first().and_then(|main| texts.into_iter().find(|(key, _)| key == main)).map(|(_, text)| text)
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

fn read_permissions(check: &mut Check<'_>, at: &Cursor<'_>) -> Permissions {
    let mut permissions = Permissions::default();
    check.map(at, "`permissions`", r#"{"network": ["api.example.com"], "shell": true}"#, |check, key, at| match key {
        "filesystem" => permissions.filesystem = check.texts(at),
        "network" => permissions.network = check.texts(at),
        "env" => permissions.env = check.texts(at),
        "shell" => permissions.shell = Some(check.flag(at)),
        "mcp" => permissions.mcp = Some(check.flag(at)),
        _ => check.refuse(
            at,
            format!("`{key}` is no permission"),
            Some(&format!("there are {}", PERMISSIONS.join(", "))),
        ),
    });
    permissions
}

/// The servers, each checked as it will be read when it is wanted.
fn read_servers(check: &mut Check<'_>, at: &Cursor<'_>, folder: &Path) -> Map<String, Value> {
    let mut servers = Map::new();
    check.map(at, "`mcpServers`", r#"{"time": {"command": "uvx", "args": ["mcp-server-time"]}}"#, |check, name, at| {
        if !is_plain(name) {
            check.refuse(at, format!("`{name}` cannot be the name of a server"), Some(PLAIN));
        }
        servers.insert(name.to_owned(), at.node.to_json());
    });
    if matches!(at.node, Node::Map(_)) {
        let context = Context { file: folder, source: Source::Extension, extension: None, folder: Some(folder) };
        mcp::read(at, &context, check.findings);
    }
    servers
}
