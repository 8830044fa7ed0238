//! Declared MCP servers. They stand in `mcp.servers` of `config.yaml`, under `mcpServers` in `settings/mcp.json`, and
//! in the manifests of extensions. The first two exist for the user and for the project.
//!
//! If several servers have the same name, the approvals decide which one has it. That happens elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::{Code, DefaultBox, LimitsSpec, Oauth, Origin, PermissionsSpec, Source, ToolFilter};
use ollm_store::{check_owner, current_uid};
use serde_json::Value;

use crate::config::today;
use crate::file::{self, Finding, Syntax};
use crate::node::{Cursor, Node, Part};
use crate::place::{Places, same_place};
use crate::problem::{Problem, Severity};

mod approval;
mod edit;
mod expand;
mod key;
mod read;
mod resolve;
mod schema;
mod snippet;

pub use edit::{EditError, add_server, remove_server};
pub(crate) use expand::variables_in;
pub use expand::{expand, expand_with};
pub(crate) use key::is_address;
pub use key::{ApprovedPart, SERVER_KEYS, ServerKey, ServerKeyKind, TextForm, UnsupportedKey};
pub(crate) use read::{Context, is_sound, read};
pub use read::{OTHER_TRANSPORTS, TRANSPORTS};
pub(crate) use schema::{or_null, schema};
pub use snippet::{
    ServerSnippet, SnippetError, is_toml_snippet, servers_from_json, servers_from_toml, servers_from_yaml, unfenced,
};

/// Larger files are not read.
const LARGEST_FILE: u64 = 4 << 20;
/// The shortest value that is hidden. Shorter values are switches, and occur on many lines by chance.
const SHORTEST_SECRET: usize = 4;
/// Where servers stand in a project and in the user's folder.
const SETTINGS: &str = "settings/mcp.json";

/// The declaration of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// How long connecting may take.
    pub timeout: Option<Duration>,
    /// How long a call may take.
    pub tool_timeout: Option<Duration>,
    /// The idle time after which it is ended; `None` means never.
    pub idle_timeout: Option<Duration>,
    /// Whether it may be started.
    pub enabled: bool,
    /// Whether it starts with the first call only.
    pub lazy: Option<bool>,
    /// Whether it is started anew after a crash.
    pub auto_restart: Option<bool>,
    /// Which of its tools are offered.
    pub tools: ToolFilter,
    /// What its program may do, as declared.
    pub permissions: Option<PermissionsSpec>,
    /// Whether it runs in a box with the minimum if it declares no permissions.
    pub default_box: DefaultBox,
    /// How to log in, where that needs more than the server says.
    pub oauth: Option<Oauth>,
    /// The source of the declaration.
    pub source: Source,
    /// The extension it is part of.
    pub extension: Option<String>,
    /// Where it is declared.
    pub origin: Origin,
}

impl ServerSpec {
    /// A user's server with only a name and an address.
    pub fn new(name: impl Into<String>, address: Address) -> ServerSpec {
        ServerSpec {
            name: name.into(),
            address,
            timeout: None,
            tool_timeout: None,
            idle_timeout: None,
            enabled: true,
            lazy: None,
            auto_restart: None,
            tools: ToolFilter::default(),
            permissions: None,
            default_box: DefaultBox::default(),
            oauth: None,
            source: Source::User,
            extension: None,
            origin: Origin::default(),
        }
    }

    /// The permissions of its program, declared or not. `None` if it runs without a box, or elsewhere.
    pub fn held_to(&self) -> Option<PermissionsSpec> {
        let held = self.default_box.applies_to(self.permissions.as_ref(), self.source);
        held.filter(|_| matches!(self.address, Address::Command { .. }))
    }

    /// The server in a message, with the extension it is part of.
    pub fn label(&self) -> String {
        let name = &self.name;
        match &self.extension {
            Some(extension) => format!("server `{name}` of extension `{extension}`"),
            None => format!("server `{name}`"),
        }
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// A program that we start.
    Command {
        /// Its absolute path, or its name on the search path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// The variables it gets beside the usual ones.
        env: Pairs,
        /// Where it runs.
        cwd: Option<PathBuf>,
        /// What it may use.
        limits: LimitsSpec,
    },
    /// A program that runs somewhere.
    Url {
        /// Its address.
        url: String,
        /// The headers it is sent.
        headers: Pairs,
        /// How it is spoken to.
        transport: Transport,
    },
}

/// How a server that runs somewhere is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP, with the older way as a fallback.
    Http,
    /// The older way with events.
    Sse,
}

impl Address {
    /// The word for how the server is spoken to.
    pub fn transport(&self) -> &'static str {
        match self {
            Address::Command { .. } => "stdio",
            Address::Url { transport: Transport::Http, .. } => "http",
            Address::Url { transport: Transport::Sse, .. } => "sse",
        }
    }
}

/// Names and values, of which the values may be secret and are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Where the user, or the project, keeps the servers that `ollm mcp add` writes down.
pub fn settings_file(places: &Places, project: bool) -> Option<PathBuf> {
    let folder = if project { places.project.as_ref()?.join(".ollm") } else { places.home.clone() };
    Some(folder.join(SETTINGS))
}

/// Reads all declared servers, the user's first. An invalid declaration becomes a problem, and hides nothing else.
/// Several servers may have the same name.
///
/// ```
/// use ollm_catalog::{Places, load_servers};
/// # let folder = tempfile::tempdir().unwrap();
/// # let home = folder.path().join(".ollm");
/// std::fs::create_dir_all(home.join("settings")).unwrap();
/// std::fs::write(
///     home.join("settings/mcp.json"),
///     r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#,
/// )
/// .unwrap();
/// let (servers, problems) = load_servers(&Places { home, ..Places::default() });
/// assert!(problems.is_empty());
/// assert_eq!(servers[0].name, "time");
/// ```
pub fn load_servers(places: &Places) -> (Vec<ServerSpec>, Vec<Problem>) {
    let mut loader = ServerLoader::default();
    let top = places.user_home.as_deref().filter(|home| places.home.starts_with(home)).unwrap_or(&places.home);
    loader.folder(&places.home, top, Source::User);
    if let Some(project) = &places.project {
        let own = project.join(".ollm");
        if !same_place(&own, &places.home) {
            loader.folder(&own, project, Source::Workspace);
        }
    }
    (loader.servers, loader.problems)
}

/// Reads the servers of one file in the form of `settings/mcp.json`, wherever it is.
pub fn load_servers_from(path: &Path) -> (Vec<ServerSpec>, Vec<Problem>) {
    let mut loader = ServerLoader::default();
    let folder = path.parent().unwrap_or(path);
    loader.file(path, folder, Source::User, Syntax::Json, &["mcpServers"]);
    (loader.servers, loader.problems)
}

/// Reads one declaration on its own, such as one that is about to be written down.
pub fn check_server(name: &str, declaration: &Value) -> (Option<ServerSpec>, Vec<Problem>) {
    let file = Path::new("the declaration");
    let node = Node::Map(vec![(name.to_owned(), Node::from_json(declaration))]);
    let mut findings = Vec::new();
    let context = Context { file, source: Source::User, extension: None, folder: None };
    let (mut servers, _) = read(&Cursor::root(&node), &context, &mut findings);
    let problems = findings.into_iter().map(|finding| Problem {
        field: finding.spot.map(|spot| spot.field).unwrap_or_default(),
        value: finding.value,
        help: finding.help,
        ..file::whole_file(finding.code, finding.severity, file, finding.message)
    });
    (servers.pop(), problems.collect())
}

/// A text in YAML as a value; nothing where it is none.
pub fn yaml_value(text: &str) -> Option<Value> {
    file::parse(text, Syntax::Yaml).ok().map(|node| node.to_json())
}

#[derive(Default)]
struct ServerLoader {
    servers: Vec<ServerSpec>,
    problems: Vec<Problem>,
}

impl ServerLoader {
    fn folder(&mut self, folder: &Path, top: &Path, source: Source) {
        self.file(&folder.join("config.yaml"), top, source, Syntax::Yaml, &["mcp", "servers"]);
        self.file(&folder.join(SETTINGS), top, source, Syntax::Json, &["mcpServers"]);
    }

    fn file(&mut self, path: &Path, top: &Path, source: Source, syntax: Syntax, keys: &[&str]) {
        // Only a file has an owner to blame: reading everything else says what it is.
        if path.is_file()
            && let Err(why) = check_owner(path, top, current_uid())
        {
            let message = format!("none of its servers are loaded: {why}");
            return self.problems.push(file::whole_file(Code::UnreadableFile, Severity::Error, path, message));
        }
        let (document, node) = match file::read(path, syntax, LARGEST_FILE) {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(mut problem) => {
                if problem.message == "it is empty" {
                    problem.help = Some("write {\"mcpServers\": {}} or remove it".to_owned());
                }
                problem.message.push_str("; none of its servers are loaded");
                return self.problems.push(*problem);
            }
        };
        let mut findings = Vec::new();
        let root = Cursor::root(&node);
        if syntax == Syntax::Json {
            strange_keys(&root, keys, &mut findings);
        }
        let context = Context { file: path, source, extension: None, folder: None };
        let (mut servers, mut spots) = descend(&root, keys, &context, &mut findings);
        let is_older = |name| today(&[name]).is_some_and(|(today, _)| today == keys);
        for (_, at) in root.entries().filter(|(name, _)| is_older(name)) {
            let (more, more_spots) = read(&at, &context, &mut findings);
            servers.extend(more);
            spots.extend(more_spots);
        }
        for (server, spot) in servers.iter_mut().zip(&spots) {
            let at = document.locate(spot);
            (server.origin.line, server.origin.column) = (at.line, at.column);
        }
        let mut problems = document.problems(findings);
        hide_secrets(&mut problems, &node);
        self.problems.append(&mut problems);
        self.servers.append(&mut servers);
    }
}

/// Takes the lines away that hold a value of a variable or header.
pub(crate) fn hide_secrets(problems: &mut [Problem], node: &Node) {
    if problems.is_empty() {
        return;
    }
    let mut secrets = Vec::new();
    secrets_of(node, false, &mut secrets);
    for problem in problems {
        let holds = |text: &str| secrets.iter().any(|secret| text.contains(secret));
        problem.snippet = problem.snippet.take().filter(|snippet| !holds(&snippet.text));
        problem.value = problem.value.take().filter(|value| !holds(value));
    }
}

fn secrets_of<'a>(node: &'a Node, secret: bool, found: &mut Vec<&'a str>) {
    match node {
        Node::Text(text) if secret && text.len() >= SHORTEST_SECRET => found.push(text),
        Node::List(items) => items.iter().for_each(|item| secrets_of(item, secret, found)),
        Node::Map(entries) => entries.iter().for_each(|(key, value)| {
            secrets_of(value, secret || key::is_secret(key), found);
        }),
        _ => {}
    }
}

/// The servers below a path of keys.
fn descend(
    at: &Cursor<'_>,
    keys: &[&str],
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> (Vec<ServerSpec>, Vec<crate::node::Spot>) {
    match keys.split_first() {
        None => read(at, context, findings),
        Some((key, rest)) => at.get(key).map(|below| descend(&below, rest, context, findings)).unwrap_or_default(),
    }
}

/// In a file of servers, everything else is a slip.
fn strange_keys(root: &Cursor<'_>, keys: &[&str], findings: &mut Vec<Finding>) {
    let mut find = |code, severity, at: &Cursor<'_>, part, message: String, help: &str| {
        let help = Some(help.to_owned());
        findings.push(Finding::at(code, severity, at, part, message, help));
    };
    if !matches!(root.node, Node::Map(_)) {
        let message = format!("an object with `mcpServers` is needed, not {}", root.node.kind());
        return find(Code::WrongForm, Severity::Error, root, Part::Value, message, "write {\"mcpServers\": {…}}");
    }
    let looks_bare = root.get("command").is_some() || root.get("url").is_some();
    for (key, value) in root.entries().filter(|(key, _)| !keys.contains(key) && *key != "$schema" && *key != "inputs") {
        let help =
            if looks_bare { "write {\"mcpServers\": {\"NAME\": {…}}}" } else { "servers stand under `mcpServers`" };
        find(Code::UnknownKey, Severity::Warning, &value, Part::Key, format!("unknown key `{key}` is ignored"), help);
    }
}

/// What is wrong with a declaration whose name another one has.
pub fn taken_server(server: &ServerSpec, known: &ServerSpec) -> Problem {
    let whose = match (&known.extension, known.source) {
        (Some(extension), _) if server.extension.as_ref() != Some(extension) => {
            format!("a server of the extension `{extension}`")
        }
        (None, Source::User) if server.source != Source::User => "one of the user's own servers".to_owned(),
        (None, Source::Workspace) if server.source != Source::Workspace => "one of the project's servers".to_owned(),
        _ => "declared before".to_owned(),
    };
    let place = format!("{}:{}:{}", known.origin.file.display(), known.origin.line, known.origin.column);
    Problem {
        code: Code::Duplicate,
        severity: Severity::Warning,
        file: server.origin.file.clone(),
        line: server.origin.line,
        column: server.origin.column,
        field: server.name.clone(),
        value: None,
        message: format!("server `{}` is {whose} ({place}); this declaration is not used", server.name),
        help: Some("give one of them another name".to_owned()),
        remedy: None,
        snippet: None,
    }
}
