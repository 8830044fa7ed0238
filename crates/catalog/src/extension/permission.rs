//! The permissions of an extension, and whether its declarations stay within them.
//!
//! Only declarations can be checked: the servers that hooks and servers reach, the variables they get, the folders they
//! start in. Whether a program itself may act is up to the person who approves it.

use std::net::Ipv6Addr;
use std::path::Path;

use ollm_protocol::hook::{Runs, runs};
use ollm_protocol::pattern::fits_name;
use ollm_protocol::{Endpoint, Hook, Needs};
use ollm_shell::is_shell;
use ollm_store::{is_shared_variable, plain_path};

use super::check::Check;
use super::key::{ManifestPart, RowKind, optional};
use super::manifest::{Manifest, name};
use super::setting::SettingSpec;
use crate::mcp::{is_address, variables_in};
use crate::node::{Cursor, Node};

/// The permissions that an extension asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the keys")]
pub struct Permissions {
    /// Whether the manifest declares any.
    pub given: bool,
    pub filesystem: Vec<String>,
    pub network: Vec<String>,
    pub env: Vec<String>,
    pub shell: Option<bool>,
    pub mcp: Option<bool>,
}

/// The permissions that exist.
pub(super) const PERMISSIONS: ManifestPart<Permissions> = ManifestPart {
    name: "permissions",
    what: "`permissions`",
    example: r#"{"network": ["api.example.com"], "shell": true}"#,
    refusal: Some("is no permission"),
    promise: None,
    rows: &[
        optional(
            "filesystem",
            "The folders that it is started in by an absolute `cwd`, and what lies below them.",
            "none",
            RowKind::Texts(|permissions, folders| permissions.filesystem = folders),
        ),
        optional(
            "network",
            "The servers that `http` hooks and `mcpServers` reach; `*.example.com` is every name below that domain, `*` every host, \
             with a port only that one. An address whose host cannot be told beforehand, with a user, a backslash or a variable \
             before its path, is refused unless `*` is named.",
            "none",
            RowKind::Texts(|permissions, hosts| permissions.network = hosts),
        ),
        optional(
            "env",
            "The variables of yours that hooks and servers are handed and settings read (`passEnv`, `${NAME}` and `envVar`).",
            "none",
            RowKind::Texts(|permissions, variables| permissions.env = variables),
        ),
        optional(
            "shell",
            "Whether its hooks may be lines of shell; a script is none.",
            "true",
            RowKind::Flag(|permissions, flag| permissions.shell = Some(flag)),
        ),
        optional(
            "mcp",
            "Whether it may have MCP servers and call their tools.",
            "true",
            RowKind::Flag(|permissions, flag| permissions.mcp = Some(flag)),
        ),
    ],
};

impl Permissions {
    /// One line per permission, for people.
    pub fn lines(&self) -> Vec<String> {
        let lists = [("filesystem", &self.filesystem), ("network", &self.network), ("env", &self.env)];
        let listed = lists.into_iter().flat_map(|(what, list)| list.iter().map(move |one| format!("{what}: {one}")));
        let flags = [("shell", self.shell), ("mcp", self.mcp)];
        let flags = flags.into_iter().filter_map(|(what, on)| Some((what, on?)));
        listed.chain(flags.map(|(what, on)| if on { what.to_owned() } else { format!("{what}: none") })).collect()
    }

    /// What these permit in addition to the earlier ones without naming anything new, for people: one line each.
    pub fn widened(&self, before: &Permissions) -> Vec<String> {
        if before.given && !self.given {
            return vec!["permissions: it names none any more, so what it declares is held to nothing".to_owned()];
        }
        let flags = [("shell", before.shell, self.shell), ("mcp", before.mcp, self.mcp)];
        let is_wider = |was: Option<bool>, is: Option<bool>| was == Some(false) && is != Some(false);
        flags.iter().filter(|(_, was, is)| is_wider(*was, *is)).map(|(what, ..)| format!("permission {what}")).collect()
    }

    /// Whether a host is listed, or matches a pattern such as `*.example.com`. If the entry has a port, the port must
    /// match.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        let host = usual(host);
        let fits = |entry: &str| match entry {
            "*" => true,
            // The dot is part of the match: `evilexample.com` is not below `example.com`.
            entry => match entry.strip_prefix('*') {
                Some(below) => below.starts_with('.') && host.ends_with(below) && host.len() > below.len(),
                None => entry == host,
            },
        };
        let mut entries = self.network.iter().map(|entry| host_of(entry));
        entries.any(|(entry, only)| fits(&entry) && only.is_none_or(|only| only == port.to_string()))
    }

    fn allows_any_host(&self) -> bool {
        self.network.iter().any(|entry| host_of(entry) == ("*".to_owned(), None))
    }

    /// Whether an absolute path is listed, or lies below a listed one.
    pub fn allows_path(&self, path: &Path) -> bool {
        let path = plain_path(path);
        self.filesystem.iter().any(|entry| {
            let entry = entry.trim_end_matches('*');
            entry.starts_with('/') && path.starts_with(plain_path(Path::new(entry)))
        })
    }

    /// Whether a variable is listed.
    pub fn allows_variable(&self, name: &str) -> bool {
        self.env.iter().any(|entry| fits_name(entry, name))
    }
}

/// Checks hooks and servers against the permissions of a manifest, if it has any.
pub(super) fn check(check: &mut Check<'_>, root: &Cursor<'_>, manifest: &Manifest, hooks: &[Hook]) {
    let Some(at) = root.get("permissions").filter(|at| !matches!(at.node, Node::Null)) else { return };
    let permissions = &manifest.permissions;
    let hosts = if permissions.allows_any_host() { Vec::new() } else { hosts(check, root) };
    let mut beyond = |whose: &str, name: &str, does: &str, what: &str, key: &str| {
        let message = format!("{whose} `{name}` {does} {what}, which `permissions.{key}` does not name");
        check.refuse(&at, message, Some(&format!("add \"{what}\" to `permissions.{key}`, or change the {whose}")));
    };
    for hook in hooks {
        let name = hook.spec.name.as_str();
        if let Needs::Address(url) = hook.spec.action.needs()
            && let Ok(endpoint) = Endpoint::parse(url) // the hook is valid, so its address is
            && !permissions.allows_host(&endpoint.host, endpoint.port)
        {
            beyond("hook", name, "reaches", &place(&endpoint, permissions), "network");
        }
        for variable in hook.spec.pass_env.iter().filter(|variable| !permissions.allows_variable(variable)) {
            beyond("hook", name, "is handed", variable, "env");
        }
        let folder = hook.spec.cwd.as_deref().filter(|folder| folder.is_absolute());
        if let Some(folder) = folder.filter(|folder| !permissions.allows_path(folder)) {
            beyond("hook", name, "runs in", &folder.display().to_string(), "filesystem");
        }
    }
    for (name, endpoint) in hosts.iter().filter(|(_, it)| !permissions.allows_host(&it.host, it.port)) {
        beyond("server", name, "reaches", &place(endpoint, permissions), "network");
    }
    for setting in &manifest.settings {
        if let Some(variable) = setting.env_var.as_deref().filter(|variable| !permissions.allows_variable(variable)) {
            beyond("setting", &setting.name, "is read from", variable, "env");
        }
    }
    for (name, variable) in wanted(root, manifest).iter().filter(|(_, it)| !permissions.allows_variable(it)) {
        beyond("server", name, "is handed", variable, "env");
    }
    ruled_out(check, &at, root, permissions, hooks);
}

/// Refuses declarations that a false permission excludes. A missing permission excludes nothing.
fn ruled_out(check: &mut Check<'_>, at: &Cursor<'_>, root: &Cursor<'_>, permissions: &Permissions, hooks: &[Hook]) {
    let mut refuse = |whose: &str, name: &str, does: &str, key: &str| {
        let message = format!("{whose} `{name}` {does}, which `permissions.{key}` rules out");
        check.refuse(at, message, Some(&format!("write `\"{key}\": true`, or do without the {whose}")));
    };
    for hook in hooks {
        let name = hook.spec.name.as_str();
        if permissions.shell == Some(false) && needs_shell(hook.spec.action.needs()) {
            refuse("hook", name, "runs a line of shell", "shell");
        }
        if permissions.mcp == Some(false) && matches!(hook.spec.action.needs(), Needs::Tool { .. }) {
            refuse("hook", name, "calls a tool of an MCP server", "mcp");
        }
    }
    let servers = root.get("mcpServers");
    for (name, server) in servers.iter().flat_map(Cursor::entries) {
        if permissions.mcp == Some(false) {
            refuse("server", name, "is an MCP server", "mcp");
        }
        let words = ["command", "args"].into_iter().filter_map(|key| server.get(key)).flat_map(|at| texts_in(&at));
        if permissions.shell == Some(false) && is_inline(&words.collect::<Vec<_>>()) {
            refuse("server", name, "runs a line of shell", "shell");
        }
    }
}

fn needs_shell(needs: Needs<'_>) -> bool {
    match needs {
        Needs::Shell(_) => true,
        Needs::Program { program, args } => is_inline(&[&[program.to_owned()], args].concat()),
        Needs::Nothing | Needs::Address(_) | Needs::Tool { .. } => false,
    }
}

/// Whether a command line gives code to a shell as an argument; a script counts as a file.
fn is_inline(words: &[String]) -> bool {
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    match words {
        [first, rest @ ..] if name(first) == "env" => is_inline(rest),
        [first, rest @ ..] => is_shell(first) && runs(first, rest) == Runs::Code,
        [] => false,
    }
}

/// The servers, each with a variable of ours that it uses by name. Settings are checked against the permissions
/// separately.
fn wanted(root: &Cursor<'_>, manifest: &Manifest) -> Vec<(String, String)> {
    let extension = name(root).unwrap_or_default();
    let is_own = |variable: &str| {
        let is_meant = |setting: &SettingSpec| {
            setting.env_var.as_deref() == Some(variable) || setting.variable(&extension) == variable
        };
        is_shared_variable(variable) || PLACES.contains(&variable) || manifest.settings.iter().any(is_meant)
    };
    let servers = root.get("mcpServers");
    let mut wanted = Vec::new();
    for (name, server) in servers.iter().flat_map(Cursor::entries) {
        let texts = texts_in(&server);
        for variable in texts.iter().flat_map(|text| variables_in(text)).filter(|variable| !is_own(variable)) {
            let one = (name.to_owned(), variable.to_owned());
            if !wanted.contains(&one) {
                wanted.push(one);
            }
        }
    }
    wanted
}

/// Names of places that we fill in.
const PLACES: &[&str] = &["workspaceFolder", "userHome"];

/// All texts in a part of a manifest.
fn texts_in(at: &Cursor<'_>) -> Vec<String> {
    match at.node {
        Node::Text(text) => vec![text.clone()],
        _ => at.entries().map(|(_, below)| below).chain(at.items()).flat_map(|below| texts_in(&below)).collect(),
    }
}

/// A host as permissions would list it, with its port if only the port is missing.
fn place(endpoint: &Endpoint, permissions: &Permissions) -> String {
    let Endpoint { host, port, .. } = endpoint;
    let other_port = permissions.network.iter().any(|entry| host_of(entry).0 == usual(host));
    match (other_port, host.contains(':')) {
        (false, _) => host.clone(),
        (true, false) => format!("{host}:{port}"),
        (true, true) => format!("[{host}]:{port}"),
    }
}

const IN_FULL: &str = "write it as https://host/path with the host in full: no user, backslash or variable before the path; \
    where any host will do, `permissions.network` is [\"*\"]";

/// The name and address of each server with an address. A server with an unknown host is refused.
fn hosts(check: &mut Check<'_>, root: &Cursor<'_>) -> Vec<(String, Endpoint)> {
    let mut hosts = Vec::new();
    let Some(servers) = root.get("mcpServers") else { return hosts };
    for (name, server) in servers.entries() {
        for (_, at) in server.entries().filter(|(key, _)| is_address(key)) {
            let Node::Text(url) = at.node else { continue };
            match Endpoint::parse(url) {
                Ok(endpoint) => hosts.push((name.to_owned(), endpoint)),
                Err(_) => check.refuse(
                    &at,
                    format!("server `{name}` has an address whose host cannot be held against `permissions.network`"),
                    Some(IN_FULL),
                ),
            }
        }
    }
    hosts
}

/// The host of an entry, which may be an address, and the port if there is one.
fn host_of(entry: &str) -> (String, Option<String>) {
    let rest = entry.split_once("://").map_or(entry, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let bracketed = host.strip_prefix('[').and_then(|host| host.split_once(']'));
    // More than one colon means an IPv6 address.
    let plain = || host.split_once(':').filter(|(_, port)| !port.contains(':'));
    let (host, port) = bracketed.or_else(plain).unwrap_or((host, ""));
    let port = port.trim_start_matches(':');
    (usual(host), Some(port.to_owned()).filter(|port| !port.is_empty() && port != "*"))
}

/// A host in its normalised form.
fn usual(host: &str) -> String {
    let address = host.parse::<Ipv6Addr>().map(|address| address.to_string());
    address.unwrap_or_else(|_| host.trim_end_matches('.').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn e6_absolute_paths_are_allowed_below_what_is_named_and_nowhere_else() {
        let permissions = Permissions { filesystem: texts(&["/srv/data", "/var/log/*", "src"]), ..Default::default() };
        for (path, allowed) in [
            ("/srv/data", true),
            ("/srv/data/a/b", true),
            ("/var/log/x", true),
            ("/srv/database", false),
            ("/srv/data/../secret", false),
            ("/", false),
            ("/src", false),
        ] {
            assert_eq!(permissions.allows_path(Path::new(path)), allowed, "{path}");
        }
        let everything = Permissions { filesystem: texts(&["/"]), ..Default::default() };
        assert!(everything.allows_path(Path::new("/etc")));
    }

    #[test]
    fn e7_a_star_stands_for_names_below_a_domain_and_for_no_other_domain() {
        let network = texts(&["*.example.com", "api.github.com", "https://h.org:8443/x", "*wild.net"]);
        let permissions = Permissions { network, ..Default::default() };
        for (host, allowed) in [
            ("a.example.com", true),
            ("A.B.Example.com.", true),
            ("example.com", false),
            ("evilexample.com", false),
            (".example.com", false),
            ("a.example.com.evil.org", false),
            ("api.github.com", true),
            ("xapi.github.com", false),
            ("h.org", true),
            ("notwild.net", false),
        ] {
            assert_eq!(permissions.allows_host(host, 8443), allowed, "{host}");
        }
        assert!(Permissions { network: texts(&["*"]), ..Default::default() }.allows_host("x", 1));
    }

    #[test]
    fn a_port_that_is_named_is_the_only_one() {
        let permissions =
            Permissions { network: texts(&["a.com:443", "*.b.com:443", "c.com", "[::1]:8080"]), ..Default::default() };
        for (host, port, allowed) in [
            ("a.com", 443, true),
            ("a.com", 8443, false),
            ("x.b.com", 443, true),
            ("x.b.com", 80, false),
            ("c.com", 9, true),
            ("::1", 8080, true),
            ("::1", 80, false),
        ] {
            assert_eq!(permissions.allows_host(host, port), allowed, "{host}:{port}");
        }
        assert!(!Permissions { network: texts(&["*:443"]), ..Default::default() }.allows_any_host());
    }

    #[test]
    fn an_address_of_ipv6_is_the_same_with_and_without_brackets() {
        for entry in ["[::1]", "::1", "[::1]:8080", "http://[::1]/", "https://[0:0::1]:443/x"] {
            let permissions = Permissions { network: texts(&[entry]), ..Default::default() };
            let port = if entry.contains("443") { 443 } else { 8080 };
            let allows = |host: &str| permissions.allows_host(host, port);
            assert!(allows("::1") && allows("0:0:0:0:0:0:0:1"), "{entry}");
            assert!(!allows("::2") && !allows("1"), "{entry}");
        }
    }
}
