//! What an extension says it wants to do, and whether what it declares stays within that.
//!
//! Only what is declared can be held against it: the servers its hooks and servers reach, the variables they are handed,
//! the folders they are started in. What a program does by itself is up to the person who approves it.

use std::net::Ipv6Addr;
use std::path::{Component, Path, PathBuf};

use ollm_protocol::{Action, Endpoint, Hook};

use super::check::Check;
use super::manifest::Manifest;
use crate::mcp::is_address;
use crate::node::{Cursor, Node};

/// What an extension wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the keys")]
pub struct Permissions {
    pub filesystem: Vec<String>,
    pub network: Vec<String>,
    pub env: Vec<String>,
    pub shell: bool,
    pub mcp: bool,
}

impl Permissions {
    /// One line for each, for people.
    pub fn lines(&self) -> Vec<String> {
        let lists = [("filesystem", &self.filesystem), ("network", &self.network), ("env", &self.env)];
        let listed = lists.into_iter().flat_map(|(what, list)| list.iter().map(move |one| format!("{what}: {one}")));
        let flags = [("shell", self.shell), ("mcp", self.mcp)];
        listed.chain(flags.into_iter().filter(|(_, on)| *on).map(|(what, _)| what.to_owned())).collect()
    }

    /// Whether a host is named, or lies below a name such as `*.example.com`.
    pub fn allows_host(&self, host: &str) -> bool {
        let host = usual(host);
        self.network.iter().any(|entry| match host_of(entry).as_str() {
            "*" => true,
            // The dot is part of what must fit: `evilexample.com` is not below `example.com`.
            entry => match entry.strip_prefix('*') {
                Some(below) => below.starts_with('.') && host.ends_with(below) && host.len() > below.len(),
                None => entry == host,
            },
        })
    }

    fn allows_any_host(&self) -> bool {
        self.network.iter().any(|entry| host_of(entry) == "*")
    }

    /// Whether an absolute path is named, or lies below one that is.
    pub fn allows_path(&self, path: &Path) -> bool {
        let path = plain(path);
        self.filesystem.iter().any(|entry| {
            let entry = entry.trim_end_matches('*');
            entry.starts_with('/') && path.starts_with(plain(Path::new(entry)))
        })
    }

    /// Whether a variable is named.
    pub fn allows_variable(&self, name: &str) -> bool {
        self.env.iter().any(|entry| match entry.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => entry == name,
        })
    }
}

/// Holds hooks and servers against the permissions of a manifest, if it has any.
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
        if let Action::Http { endpoint, .. } = &hook.action
            && !permissions.allows_host(&endpoint.host)
        {
            beyond("hook", name, "reaches", &endpoint.host, "network");
        }
        for variable in hook.spec.pass_env.iter().filter(|variable| !permissions.allows_variable(variable)) {
            beyond("hook", name, "is handed", variable, "env");
        }
        let folder = hook.spec.cwd.as_deref().filter(|folder| folder.is_absolute());
        if let Some(folder) = folder.filter(|folder| !permissions.allows_path(folder)) {
            beyond("hook", name, "runs in", &folder.display().to_string(), "filesystem");
        }
    }
    for (name, host) in hosts.iter().filter(|(_, host)| !permissions.allows_host(host)) {
        beyond("server", name, "reaches", host, "network");
    }
}

const IN_FULL: &str = "write it as https://host/path with the host in full: no user, backslash or variable before the path; \
    where any host will do, `permissions.network` is [\"*\"]";

/// The name and the host of each server that has an address; one whose host cannot be told is refused.
fn hosts(check: &mut Check<'_>, root: &Cursor<'_>) -> Vec<(String, String)> {
    let mut hosts = Vec::new();
    let Some(servers) = root.get("mcpServers") else { return hosts };
    for (name, server) in servers.entries() {
        for (_, at) in server.entries().filter(|(key, _)| is_address(key)) {
            let Node::Text(url) = at.node else { continue };
            match Endpoint::parse(url) {
                Ok(endpoint) => hosts.push((name.to_owned(), endpoint.host)),
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

/// The host of an entry, which may also be written as an address.
fn host_of(entry: &str) -> String {
    let rest = entry.split_once("://").map_or(entry, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let bracketed = host.strip_prefix('[').and_then(|host| host.split_once(']')).map(|(address, _)| address);
    // With more than one colon it is an address of IPv6.
    let without_port = || host.split_once(':').filter(|(_, port)| !port.contains(':')).map_or(host, |(host, _)| host);
    usual(bracketed.unwrap_or_else(without_port))
}

/// A host in the one way to write it.
fn usual(host: &str) -> String {
    let address = host.parse::<Ipv6Addr>().map(|address| address.to_string());
    address.unwrap_or_else(|_| host.trim_end_matches('.').to_ascii_lowercase())
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    })
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
            assert_eq!(permissions.allows_host(host), allowed, "{host}");
        }
        assert!(Permissions { network: texts(&["*"]), ..Default::default() }.allows_host("x"));
    }

    #[test]
    fn an_address_of_ipv6_is_the_same_with_and_without_brackets() {
        for entry in ["[::1]", "::1", "[::1]:8080", "http://[::1]/", "https://[0:0::1]:443/x"] {
            let permissions = Permissions { network: texts(&[entry]), ..Default::default() };
            assert!(permissions.allows_host("::1") && permissions.allows_host("0:0:0:0:0:0:0:1"), "{entry}");
            assert!(!permissions.allows_host("::2") && !permissions.allows_host("1"), "{entry}");
        }
    }
}
