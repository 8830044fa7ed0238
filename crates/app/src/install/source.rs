//! The source of a package: parsed from a person's text, and stored in the record.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ollm_catalog::check_extension_name;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use semver::Version;
use serde_json::{Value, json};

use crate::app_context::AppContext;
use crate::error::AppError;

/// The source of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageSource {
    /// A folder on this machine.
    Folder(PathBuf),
    /// An archive on this machine.
    Archive(PathBuf),
    /// An archive on a server.
    Url(String),
    /// A repository.
    Git {
        /// Its address.
        url: String,
        /// The branch, tag or commit; the default branch if `None`.
        reference: Option<String>,
    },
    /// A name in an index.
    Named {
        /// The name.
        name: String,
        /// The version; the highest one if `None`.
        version: Option<Version>,
    },
}

/// Characters in an address's path that git would read differently.
const IN_PATHS: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

const FORMS: &str = "give a folder or an archive (./x, ./x.tar.gz, ./x.zip), an https address of an archive, \
                     a git address (https, ssh or file), or a name that an index has";

impl PackageSource {
    /// Parses a person's text; `reference` makes it a repository.
    pub fn parse(text: &str, reference: Option<&str>, context: &AppContext) -> Result<PackageSource, AppError> {
        let refused = |why: &str| AppError::usage(format!("`{text}` {why}")).hint(FORMS);
        if text.starts_with('-') {
            return Err(refused("looks like an option"));
        }
        if text.trim().is_empty() {
            return Err(refused("names nothing"));
        }
        // In such references, git reads more than a name, such as the destination of a fetch.
        let is_odd = |name: &&str| name.is_empty() || name.starts_with(['-', '+', '^']) || name.contains([':', '*']);
        if let Some(reference) = reference.filter(is_odd) {
            return Err(AppError::usage(format!("`{reference}` cannot be the name of a branch, a tag or a commit")));
        }
        if text.chars().any(char::is_control) {
            return Err(refused("has control characters"));
        }
        if has_secret(text) {
            return Err(refused("has a user or a password in it, which would be kept in a file"));
        }
        let git = |url: &str| Ok(PackageSource::Git { url: url.to_owned(), reference: reference.map(str::to_owned) });
        if let Some(url) = text.strip_prefix("git+") {
            check_git(url).map_err(|why| refused(&why))?;
            return git(url);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let path = text.split(['?', '#']).next().unwrap_or(text);
            let is_archive = [".tar.gz", ".tgz", ".zip"].iter().any(|end| path.ends_with(end)) && reference.is_none();
            if is_archive && matches!(scheme, "https" | "http") {
                check_address(text).map_err(|why| refused(&why))?;
                return Ok(PackageSource::Url(text.to_owned()));
            }
            check_git(text).map_err(|why| refused(&why))?;
            return git(text);
        }
        if text.contains("::") {
            return Err(refused("names a way of git that could run programs"));
        }
        if is_scp(text) {
            return git(text);
        }
        let source = match named(text) {
            Some(named) => named.map_err(|why| refused(&why))?,
            None => local(text, reference, context).ok_or_else(|| refused("does not exist"))?,
        };
        match (&source, reference) {
            (PackageSource::Git { .. }, _) | (_, None) => Ok(source),
            (_, Some(reference)) => {
                Err(AppError::usage(format!("`{text}` is no repository, so there is no `{reference}` of it")))
            }
        }
    }

    /// The source as JSON, for the record.
    pub(super) fn to_json(&self) -> Value {
        match self {
            PackageSource::Folder(path) => json!({"type": "folder", "path": path.to_string_lossy()}),
            PackageSource::Archive(path) => json!({"type": "archive", "path": path.to_string_lossy()}),
            PackageSource::Url(url) => json!({"type": "url", "url": url}),
            PackageSource::Git { url, reference } => json!({"type": "git", "url": url, "reference": reference}),
            PackageSource::Named { name, .. } => json!({"type": "index", "name": name}),
        }
    }

    /// The source in a record. A version that was requested once is not requested again.
    pub(super) fn from_json(value: &Value) -> Option<PackageSource> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(match value.get("type")?.as_str()? {
            "folder" => PackageSource::Folder(text("path")?.into()),
            "archive" => PackageSource::Archive(text("path")?.into()),
            "url" => PackageSource::Url(text("url")?),
            "git" => PackageSource::Git { url: text("url")?, reference: text("reference") },
            "index" => PackageSource::Named { name: text("name")?, version: None },
            _ => return None,
        })
    }
}

impl fmt::Display for PackageSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageSource::Folder(path) | PackageSource::Archive(path) => write!(formatter, "{}", path.display()),
            PackageSource::Url(url) | PackageSource::Git { url, reference: None } => formatter.write_str(&shown(url)),
            PackageSource::Git { url, reference: Some(reference) } => {
                write!(formatter, "{} at {reference}", shown(url))
            }
            PackageSource::Named { name, version: None } => formatter.write_str(name),
            PackageSource::Named { name, version: Some(version) } => write!(formatter, "{name}@{version}"),
        }
    }
}

/// An address without a possible password.
pub(super) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Whether an address contains a secret: a password or, over http, any user name, because that is often a token.
fn has_secret(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    authority(rest)
        .rsplit_once('@')
        .is_some_and(|(user, _)| user.contains(':') || scheme.ends_with("http") || scheme.ends_with("https"))
}

/// The part of an address between its scheme and its path.
fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The reason why an address is refused: only `https` is allowed, and `http` from this machine.
pub(super) fn check_address(url: &str) -> Result<(), String> {
    let Some((scheme, rest)) = url.split_once("://") else { return Err("is no address".to_owned()) };
    let authority = authority(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match scheme {
        "https" | "http" if host.is_empty() => Err("names no host".to_owned()),
        "https" => Ok(()),
        "http" if is_own_machine(host) => Ok(()),
        "http" => Err("would be fetched without encryption; use https".to_owned()),
        other => Err(format!("begins with `{other}`, which nothing is fetched by")),
    }
}

fn is_own_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The reason why an address is not passed to git.
fn check_git(url: &str) -> Result<(), String> {
    if is_scp(url) {
        return Ok(());
    }
    let (scheme, rest) = url.split_once("://").ok_or("is no git address")?;
    let host = authority(rest).rsplit_once('@').map_or(rest, |(_, host)| host);
    if rest.starts_with('-') || host.starts_with('-') {
        return Err("has a host that looks like an option".to_owned());
    }
    match scheme {
        "ssh" | "file" => Ok(()),
        "https" | "http" => check_address(url),
        other => Err(format!("begins with `{other}`, which git is not asked by")),
    }
}

/// `git@host:path`, as ssh writes it.
fn is_scp(text: &str) -> bool {
    let Some((who, path)) = text.split_once(':') else { return false };
    let Some((user, host)) = who.split_once('@') else { return false };
    let plain = |part: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !part.is_empty() && !part.starts_with('-') && part.chars().all(letter)
    };
    plain(user) && plain(host) && !path.is_empty() && !path.starts_with(['-', ':'])
}

/// A name with an optional version; `None` if the text is a path.
fn named(text: &str) -> Option<Result<PackageSource, String>> {
    let (name, version) = text.split_once('@').map_or((text, None), |(name, version)| (name, Some(version)));
    if text.contains('/') || check_extension_name(name).is_err() {
        return None;
    }
    let Ok(version) = version.map(Version::parse).transpose() else {
        return Some(Err("has no version such as 1.2.0 after the `@`".to_owned()));
    };
    Some(Ok(PackageSource::Named { name: name.to_owned(), version }))
}

fn local(text: &str, reference: Option<&str>, context: &AppContext) -> Option<PackageSource> {
    let path = context.cwd.join(text);
    let path = path.canonicalize().ok()?;
    if path.is_file() {
        return Some(PackageSource::Archive(path));
    }
    if reference.is_some() || is_bare_repository(&path) {
        let path = utf8_percent_encode(path.to_str()?, IN_PATHS);
        let url = format!("file://{path}");
        return Some(PackageSource::Git { url, reference: reference.map(str::to_owned) });
    }
    path.is_dir().then_some(PackageSource::Folder(path))
}

fn is_bare_repository(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PackageSource, AppError> {
        let context = AppContext::new(Vec::new(), std::env::temp_dir(), None);
        PackageSource::parse(text, None, &context)
    }

    #[test]
    fn addresses_that_could_run_something_are_refused() {
        for text in [
            "--upload-pack=touch x",
            "-x",
            "ext::sh -c touch% x",
            "git+ext::sh",
            "fd::17",
            "git://example.com/x.git",
            "ftp://example.com/x.zip",
            "http://example.com/x.tar.gz",
            "http://example.com/x.git",
            "ssh://-oProxyCommand=touch/x",
            "ssh://a@-oProxyCommand=touch/x",
            "ssh://a@-oProxyCommand=touch/x@y",
            "https://token@e.org/x.zip",
            "a@-oProxyCommand=x:y",
            "git@host:-x",
            "https:///x.zip",
            "https://ann:secret@e.org/x.git",
            "https://e.org/\nx.zip",
            "./no-such-folder",
            "guard@latest",
            "",
            " ",
        ] {
            assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn a_reference_is_a_name_and_nothing_else() {
        let context = AppContext::new(Vec::new(), std::env::temp_dir(), None);
        for name in ["", "-x", "+main", "^main", "main:refs/heads/x", "refs/heads/*"] {
            let refused = PackageSource::parse("https://e.org/x.git", Some(name), &context).unwrap_err();
            assert!(refused.message.starts_with(&format!("`{name}` cannot be")), "{refused:?}");
        }
    }

    #[test]
    fn a_text_means_one_source() {
        let git = |url: &str| PackageSource::Git { url: url.to_owned(), reference: None };
        for (text, source) in [
            ("https://e.org/x.tar.gz", PackageSource::Url("https://e.org/x.tar.gz".to_owned())),
            ("http://127.0.0.1:80/x.zip", PackageSource::Url("http://127.0.0.1:80/x.zip".to_owned())),
            ("https://e.org/x.zip?raw=1", PackageSource::Url("https://e.org/x.zip?raw=1".to_owned())),
            ("https://e.org/x.git", git("https://e.org/x.git")),
            ("https://e.org/x", git("https://e.org/x")),
            ("git@e.org:a/b.git", git("git@e.org:a/b.git")),
            ("git+ssh://e.org/x", git("ssh://e.org/x")),
            ("guard", PackageSource::Named { name: "guard".to_owned(), version: None }),
            ("guard@1.2.0", PackageSource::Named { name: "guard".to_owned(), version: Some(Version::new(1, 2, 0)) }),
        ] {
            assert_eq!(parse(text), Ok(source), "{text}");
        }
    }

    #[test]
    fn what_is_remembered_is_read_again_without_the_version() {
        let git = PackageSource::Git { url: "https://e.org/x".to_owned(), reference: Some("v1".to_owned()) };
        for source in [git, PackageSource::Folder("/x".into()), PackageSource::Url("https://e.org/x.zip".to_owned())] {
            assert_eq!(PackageSource::from_json(&source.to_json()), Some(source));
        }
        let named = PackageSource::Named { name: "a".to_owned(), version: Some(Version::new(1, 0, 0)) };
        let again = PackageSource::Named { name: "a".to_owned(), version: None };
        assert_eq!(PackageSource::from_json(&named.to_json()), Some(again));
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        assert_eq!(shown("https://ann:secret@e.org/x"), "https://e.org/x");
    }
}
