//! Descriptions of endpoints for people: the command line or the address, without secrets.

use std::borrow::Cow;

use ollm_shell::shell_word;
use ollm_store::looks_secret;
use reqwest::Url;

use crate::ready::Endpoint;

const HIDDEN: &str = "[redacted]";

/// Whether a server is reached over the network.
pub(crate) fn is_remote(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Http { .. } | Endpoint::Sse { .. })
}

/// The command line or the address.
pub(crate) fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Stdio { program, args, .. } => {
            let program = program.to_string_lossy();
            let words = std::iter::once(Cow::Borrowed(&*program)).chain(redacted_args(args));
            let line: Vec<_> = words.map(|word| shell_word(&word).into_owned()).collect();
            format!("command: {}", line.join(" "))
        }
        Endpoint::Http { url, .. } | Endpoint::Sse { url, .. } => format!("address: {}", without_secrets(url)),
    }
}

/// Arguments, with the values of options that sound secret hidden.
fn redacted_args(args: &[String]) -> impl Iterator<Item = Cow<'_, str>> {
    read(args).map(|arg| match arg {
        ArgText::Plain(arg) => Cow::Borrowed(arg),
        ArgText::Secret(_, _) => Cow::Borrowed(HIDDEN),
        ArgText::Assigned(name, _) => Cow::Owned(format!("{name}={HIDDEN}")),
    })
}

/// The values of options that sound secret, each with the option's name.
pub(crate) fn secret_args(args: &[String]) -> impl Iterator<Item = (&str, &str)> {
    read(args).filter_map(|arg| match arg {
        ArgText::Plain(_) => None,
        ArgText::Secret(name, value) | ArgText::Assigned(name, value) => Some((name.trim_start_matches('-'), value)),
    })
}

enum ArgText<'a> {
    Plain(&'a str),
    /// The value of the preceding option.
    Secret(&'a str, &'a str),
    /// An option and its value in one argument.
    Assigned(&'a str, &'a str),
}

fn read(args: &[String]) -> impl Iterator<Item = ArgText<'_>> {
    let mut option = None;
    args.iter().map(move |arg| {
        let before: Option<&str> = option.take();
        if let Some(name) = before.filter(|_| !arg.starts_with('-')) {
            return ArgText::Secret(name, arg);
        }
        let (name, value) = arg.split_once('=').map_or((&**arg, None), |(name, value)| (name, Some(value)));
        let sounds_secret = looks_secret(name.trim_start_matches('-'));
        match value {
            Some(value) if sounds_secret => ArgText::Assigned(name, value),
            _ => {
                option = (sounds_secret && arg.starts_with('-')).then_some(name);
                ArgText::Plain(arg)
            }
        }
    })
}

/// An address without user, password, query and fragment, which often hold secrets.
fn without_secrets(url: &str) -> String {
    let Ok(url) = Url::parse(url) else {
        return "not an address".to_owned();
    };
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// An address that a browser may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    /// The whole address; everything that other programs than a browser could misread is escaped.
    pub url: String,
    /// The host; names in other scripts are in Punycode.
    pub host: String,
}

/// Reads an untrusted address: http or https, without user and password, and not too long.
///
/// ```
/// let address = ollm_mcp::web_address("https://example.org/a b?x=$(id)").unwrap();
/// assert_eq!(address.url, "https://example.org/a%20b?x=%24%28id%29");
/// assert_eq!(ollm_mcp::web_address("https://example.org@evil.example/"), None);
/// assert_eq!(ollm_mcp::web_address("file:///etc/passwd"), None);
/// ```
pub fn web_address(text: &str) -> Option<WebAddress> {
    const LONGEST: usize = 8 << 10;
    let url = Url::parse(text).ok().filter(|_| text.len() <= LONGEST)?;
    let host = url.host_str()?.to_owned();
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!&+,;=%".contains(&byte);
    let escaped = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    Some(WebAddress { url: url.as_str().bytes().map(escaped).collect(), host })
}

#[cfg(test)]
mod tests {
    use ollm_process::Limits;

    use super::*;

    fn command(args: &[&str]) -> String {
        describe(&Endpoint::Stdio {
            program: "/bin/x".into(),
            args: args.iter().map(ToString::to_string).collect(),
            env: vec![("TOKEN".into(), "never-shown".into())],
            cwd: None,
            limits: Limits::default(),
            program_box: None,
        })
    }

    #[test]
    fn a_command_line_is_shown_without_what_sounds_secret() {
        assert_eq!(
            command(&["--api-key", "s3cret", "--token=s3cret", "API_KEY=s3cret", "--port", "80", "a b"]),
            "command: /bin/x --api-key '[redacted]' '--token=[redacted]' 'API_KEY=[redacted]' --port 80 'a b'"
        );
        assert_eq!(command(&["--token", "--verbose", "x"]), "command: /bin/x --token --verbose x");
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        let url = "https://user:pass@example.org:8443/mcp?key=s3cret#x".to_owned();
        let shown = describe(&Endpoint::Http { url, headers: Vec::new() });
        assert_eq!(shown, "address: https://example.org:8443/mcp");
    }
}
