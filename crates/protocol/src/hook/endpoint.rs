//! Reads the address and headers of an `http` action. The engine decides which addresses may be reached.

/// The longest address or header, in bytes.
const LONGEST: usize = 8 << 10;

/// Headers that only we set.
const OURS: &[&str] =
    &["host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding", "expect"];

/// A checked `http` or `https` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The whole address.
    pub url: String,
    /// Whether it is `https`.
    pub secure: bool,
    /// The host, an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A header whose value may name variables as `${NAME}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
}

/// Why an address or a header cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The address is invalid.
    #[error("url `{url}` {reason}; write it as https://host/path")]
    Url {
        /// The text as written, without user and password.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The header is invalid.
    #[error("header `{name}` {reason}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl EndpointError {
    /// The action's key with the error.
    pub fn field(&self) -> &'static str {
        match self {
            EndpointError::Url { .. } => "url",
            EndpointError::Header { .. } => "headers",
        }
    }
}

impl Endpoint {
    /// Reads an address.
    pub fn parse(url: &str) -> Result<Endpoint, EndpointError> {
        let wrong = |reason| EndpointError::Url { url: shown(url), reason };
        if url.len() > LONGEST {
            return Err(wrong("is too long"));
        }
        if url.contains(|letter: char| letter.is_whitespace() || letter.is_control() || !letter.is_ascii()) {
            return Err(wrong("holds a space or a character that belongs percent-encoded"));
        }
        let (secure, rest) = match (strip(url, "https://"), strip(url, "http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong("is neither https nor http")),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(wrong("holds a user or password; send it in `headers`, with the secret in `passEnv`"));
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None if secure => 443,
            None => 80,
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("has no valid port"))?,
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        let is_host = match bare {
            Some(address) => address.contains(':') && address.chars().all(|letter| good(letter) || letter == ':'),
            None => !host.is_empty() && host.chars().all(good),
        };
        if !is_host {
            return Err(wrong("has no valid host"));
        }
        Ok(Endpoint { url: url.to_owned(), secure, host: bare.unwrap_or(host).to_ascii_lowercase(), port })
    }
}

impl Header {
    /// Reads a header. It may only name variables that are passed on.
    pub(super) fn parse(name: &str, value: &str, passed: &[String]) -> Result<Header, EndpointError> {
        let wrong = |reason: String| EndpointError::Header { name: shown(name), reason };
        let token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(token) {
            return Err(wrong("is no header name".to_owned()));
        }
        if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(wrong("is set by us; remove it".to_owned()));
        }
        if value.len() > LONGEST || value.contains(|letter: char| letter.is_control() && letter != '\t') {
            return Err(wrong("has a value that is too long or holds control characters".to_owned()));
        }
        let parts = parts(value);
        let unknown = parts.iter().find_map(|part| match part {
            Part::Variable(variable) if !passed.contains(variable) => Some(variable),
            _ => None,
        });
        match unknown {
            Some(variable) => Err(wrong(format!("names ${{{variable}}}; add \"{variable}\" to `passEnv`"))),
            None => Ok(Header { name: name.to_owned(), parts }),
        }
    }

    /// The value with its variables filled in. The error is the name of the first missing variable.
    pub fn value(&self, variable: impl Fn(&str) -> Option<String>) -> Result<String, &str> {
        self.parts.iter().try_fold(String::new(), |mut value, part| {
            match part {
                Part::Text(text) => value.push_str(text),
                Part::Variable(name) => value.push_str(&variable(name).ok_or(name.as_str())?),
            }
            Ok(value)
        })
    }
}

fn parts(value: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        parts.push(Part::Text(before.to_owned()));
        parts.push(Part::Variable(name.to_owned()));
        rest = behind;
    }
    parts.push(Part::Text(rest.to_owned()));
    parts
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn strip<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// A text for messages: short, and without possible passwords.
fn shown(text: &str) -> String {
    let text = match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => text.to_owned(),
    };
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, secure, host, port) in [
            ("https://example.com", true, "example.com", 443),
            ("HTTPS://Example.com:8443/a?b#c", true, "example.com", 8443),
            ("http://127.0.0.1:80/x", false, "127.0.0.1", 80),
            ("http://[::1]:9/x", false, "::1", 9),
            ("https://[fe80::1]", true, "fe80::1", 443),
        ] {
            let expected = Endpoint { url: url.to_owned(), secure, host: host.to_owned(), port };
            assert_eq!(Endpoint::parse(url), Ok(expected));
        }
    }

    #[test]
    fn addresses_that_mean_something_else_are_refused() {
        for url in [
            "",
            "example.com",
            "file:///etc/passwd",
            "ftp://a/b",
            "https://",
            "https://:80",
            "https://a b",
            "https://a:0",
            "https://a:65536",
            "https://a:x",
            "https://user:hunter2@a/b",
            "https://a\r\nHost: b",
            "https://[::1",
            "https://::1",
            "https://exämple.com",
            "https://a{{b}}.com",
        ] {
            assert!(Endpoint::parse(url).is_err(), "{url}");
        }
        let error = Endpoint::parse("https://user:hunter2@a/b").unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("…@a/b"), "{error}");
    }

    #[test]
    fn headers_name_only_variables_that_are_passed_on() {
        let passed = ["TOKEN".to_owned()];
        let header = Header::parse("Authorization", "Bearer ${TOKEN}!", &passed).unwrap();
        assert_eq!(header.value(|name| Some(name.to_lowercase())), Ok("Bearer token!".to_owned()));
        assert_eq!(header.value(|_| None), Err("TOKEN"));
        for (name, value) in [("A", "${OTHER}"), ("A b", "x"), ("Host", "x"), ("A", "x\r\nB: y"), ("", "x")] {
            assert!(Header::parse(name, value, &passed).is_err(), "{name}: {value}");
        }
    }
}
