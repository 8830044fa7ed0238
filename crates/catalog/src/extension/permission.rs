//! What an extension says it wants to do, and whether what it declares stays within that.
//!
//! Only what is declared can be held against it: the servers its hooks and servers reach, the variables they are handed,
//! the folders they are started in. What a program does by itself is up to the person who approves it.

use std::path::{Component, Path, PathBuf};

use ollm_protocol::{Action, Endpoint, Hook};

use super::check::Check;
use super::manifest::Manifest;
use crate::node::Cursor;

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
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.network.iter().any(|entry| match host_of(entry).as_str() {
            "*" => true,
            // The dot is part of what must fit: `evilexample.com` is not below `example.com`.
            entry => match entry.strip_prefix('*') {
                Some(below) => below.starts_with('.') && host.ends_with(below) && host.len() > below.len(),
                None => entry == host,
            },
        })
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

/// Holds hooks and servers against the permissions at `at`.
pub(super) fn check(check: &mut Check<'_>, at: &Cursor<'_>, manifest: &Manifest, hooks: &[Hook]) {
    let permissions = &manifest.permissions;
    let mut beyond = |whose: &str, name: &str, does: &str, what: &str, key: &str| {
        let message = format!("{whose} `{name}` {does} {what}, which `permissions.{key}` does not name");
        check.refuse(at, message, Some(&format!("add \"{what}\" to `permissions.{key}`, or change the {whose}")));
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
    for (name, server) in &manifest.servers {
        let url = server.get("url").and_then(|url| url.as_str());
        let endpoint = url.and_then(|url| Endpoint::parse(url).ok());
        if let Some(endpoint) = endpoint.filter(|endpoint| !permissions.allows_host(&endpoint.host)) {
            beyond("server", name, "reaches", &endpoint.host, "network");
        }
    }
}

/// The host of an entry, which may also be written as an address.
fn host_of(entry: &str) -> String {
    let rest = entry.split_once("://").map_or(entry, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    // With more than one colon it is an address of IPv6.
    let host = host.split_once(':').filter(|(_, port)| !port.contains(':')).map_or(host, |(host, _)| host);
    host.trim_end_matches('.').to_ascii_lowercase()
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
}
