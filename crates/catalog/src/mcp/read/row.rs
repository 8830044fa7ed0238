//! Reads the value of one key of a server, according to its row.

use std::time::Duration;

use ollm_protocol::{Code, did_you_mean};

use super::ServerReader;
use crate::mcp::Pairs;
use crate::mcp::key::{ServerDraft, ServerKey, ServerKeyKind, TextForm};
use crate::node::{Cursor, Node, Part};
use crate::value::{self, ReadValue};

/// The words for how a server is spoken to.
pub const TRANSPORTS: &[&str] = &["stdio", "http", "sse"];

/// The words of other programs for these.
pub const OTHER_TRANSPORTS: &[(&str, &str)] = &[
    ("local", "stdio"),
    ("remote", "http"),
    ("streamable-http", "http"),
    ("streamable_http", "http"),
    ("streamablehttp", "http"),
];

const MILLISECOND: Duration = Duration::from_millis(1);
const FLAG: &str = "true or false";
const TIME: &str = "a positive number of milliseconds, or text with a unit such as \"5s\"";
const PAUSE: &str = "a number of milliseconds, or text with a unit such as \"5s\"";
const SPAN: &str = "a time with its unit such as \"5s\"";
const SIZE: &str = "a number of bytes, or text with a unit such as \"256MiB\"";
const COUNT: &str = "a whole number";

impl ServerReader<'_> {
    /// Reads the value of a key as its row says.
    pub(super) fn row(&mut self, row: &ServerKey, draft: &mut ServerDraft, at: &Cursor<'_>) {
        self.unhonoured(row, at);
        match row.kind {
            ServerKeyKind::Place | ServerKeyKind::Remark => {}
            ServerKeyKind::Text(expected, form, set) => {
                self.text(row, expected, form, at).into_iter().for_each(|text| set(draft, text));
            }
            ServerKeyKind::Texts(expected, set) => {
                self.need(at, value::texts(at.node), expected).into_iter().for_each(|texts| set(draft, texts));
            }
            ServerKeyKind::Words(set) => {
                let listed = self.need(at, value::texts(at.node), "a list of names").unwrap_or_default();
                set(draft, listed.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect());
            }
            ServerKeyKind::Variables(set) => set(draft, self.env(at)),
            ServerKeyKind::Headers(set) => set(draft, self.headers(at)),
            ServerKeyKind::Transport(set) => self.transport(at).into_iter().for_each(|word| set(draft, word)),
            ServerKeyKind::Flag(set) => {
                self.wish(at, value::flag(at.node), FLAG).into_iter().for_each(|flag| set(draft, flag));
            }
            // Of two words about it, the one that switches off counts.
            ServerKeyKind::Switch(meaning) => {
                let said = self.need(at, value::flag(at.node), FLAG);
                draft.spec.enabled &= said.is_none_or(|said| said == meaning);
            }
            ServerKeyKind::Time(set) => {
                self.wish(at, value::time(at.node, MILLISECOND), TIME).into_iter().for_each(|time| set(draft, time));
            }
            ServerKeyKind::Pause(set) => {
                let pause = value::pause(at.node, MILLISECOND);
                self.wish(at, pause, PAUSE).into_iter().for_each(|pause| set(draft, pause));
            }
            ServerKeyKind::Span(set) => {
                self.need(at, value::span(at.node), SPAN).into_iter().for_each(|span| set(draft, span));
            }
            ServerKeyKind::Size(set) => {
                self.need(at, value::size(at.node), SIZE).into_iter().for_each(|size| set(draft, size));
            }
            ServerKeyKind::Count(set) => {
                self.need(at, value::whole(at.node), COUNT).into_iter().for_each(|count| set(draft, count));
            }
            ServerKeyKind::Port(set) => self.port(row, at).into_iter().for_each(|port| set(draft, port)),
            ServerKeyKind::Section(keys, open) => {
                open(draft);
                if !matches!(at.node, Node::Map(_)) {
                    let (name, names) = (row.name, ServerKey::names(keys).join(", "));
                    let message = format!("`{name}` must be a map with {names}, not {}", at.node.kind());
                    self.refuse(at, Part::Value, &message, None);
                }
                self.keys(keys, row.unknown, draft, at);
            }
        }
    }

    /// Reports a key that this version ignores.
    fn unhonoured(&mut self, row: &ServerKey, at: &Cursor<'_>) {
        let Some(unhonoured) = row.unhonoured else { return };
        if matches!(at.node, Node::Bool(said) if unhonoured.unless == Some(*said)) {
            return;
        }
        let message = format!("`{}` has no effect: {}", row.name, unhonoured.why);
        let help = "remove it".to_owned();
        if unhonoured.refused {
            self.refuse(at, Part::Key, &message, Some(help));
        } else {
            self.warn(Code::Ignored, at, Part::Key, message, Some(help));
        }
    }

    fn text(&mut self, row: &ServerKey, expected: &str, form: TextForm, at: &Cursor<'_>) -> Option<String> {
        let reading = match form {
            TextForm::Program | TextForm::Address => value::plain(at.node),
            TextForm::Word | TextForm::Document | TextForm::Redirect => value::word(at.node),
        };
        let text = self.need(at, reading, expected)?;
        let wrong = match form {
            TextForm::Address if !is_url(&text) => Some(("an address on the web", "http://… or https://…")),
            TextForm::Document if !is_document(&text) => Some(("the https address of a document", "https://HOST/PATH")),
            TextForm::Redirect if !is_redirect(&text) => {
                Some(("an address of this machine with a port", "http://localhost:PORT/PATH"))
            }
            _ => None,
        };
        if let Some((what, example)) = wrong {
            let message = format!("`{}` is not {what}", row.name);
            self.refuse(at, Part::Value, &message, Some(format!("write {example}")));
        }
        Some(text)
    }

    fn port(&mut self, row: &ServerKey, at: &Cursor<'_>) -> Option<u16> {
        let port = at.node.shown().parse().ok().filter(|port| *port > 0);
        if port.is_none() {
            self.refuse(at, Part::Value, &format!("`{}` must be a number from 1 to 65535", row.name), None);
        }
        port
    }

    fn transport(&mut self, at: &Cursor<'_>) -> Option<&'static str> {
        let Node::Text(word) = at.node else {
            self.refuse(at, Part::Value, &format!("the transport must be one of {}", TRANSPORTS.join(", ")), None);
            return None;
        };
        let word = word.to_ascii_lowercase();
        let other = OTHER_TRANSPORTS.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
        let known = other.or_else(|| TRANSPORTS.iter().copied().find(|ours| *ours == word));
        if known.is_none() {
            let help = did_you_mean(&word, TRANSPORTS.iter().copied());
            self.refuse(at, Part::Value, &format!("the transport must be one of {}", TRANSPORTS.join(", ")), help);
        }
        known
    }

    fn env(&mut self, at: &Cursor<'_>) -> Pairs {
        if let Some((path, message)) = value::relative_entries(at) {
            self.warn(Code::WrongValue, &path, Part::Value, message, Some(value::MAKE_ABSOLUTE.to_owned()));
        }
        self.pairs(at, |name| !name.is_empty() && !name.contains(['=', '\0']), |value| !value.contains('\0'))
    }

    fn headers(&mut self, at: &Cursor<'_>) -> Pairs {
        let token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        let visible = |letter: char| letter == '\t' || !letter.is_control();
        self.pairs(at, |name| !name.is_empty() && name.chars().all(token), |value| value.chars().all(visible))
    }

    fn pairs(&mut self, at: &Cursor<'_>, names: impl Fn(&str) -> bool, values: impl Fn(&str) -> bool) -> Pairs {
        let key = at.key().unwrap_or_default().to_owned();
        if !matches!(at.node, Node::Map(_)) {
            self.refuse(
                at,
                Part::Value,
                &format!("`{key}` must be a map of names to text, not {}", at.node.kind()),
                None,
            );
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in at.entries() {
            if !names(name) || pairs.iter().any(|(seen, _)| seen == name) {
                self.refuse(&value, Part::Key, &format!("`{name}` cannot be a name in `{key}`"), None);
            }
            match self.need(&value, value::text(value.node), "text") {
                Some(text) if values(&text) => pairs.push((name.to_owned(), text)),
                Some(_) => {
                    self.refuse(&value, Part::Value, &format!("the value of `{name}` holds control characters"), None);
                }
                None => {}
            }
        }
        Pairs(pairs)
    }

    /// A required value: without it, this would be a different server.
    fn need<T>(&mut self, at: &Cursor<'_>, reading: ReadValue<T>, expected: &str) -> Option<T> {
        let key = at.key().unwrap_or_default();
        match reading {
            ReadValue::Exact(value) => Some(value),
            ReadValue::Converted(value) => {
                let message = format!("`{key}` should be {expected}, not {}; it is read as meant", at.node.kind());
                self.warn(Code::WrongValue, at, Part::Value, message, None);
                Some(value)
            }
            ReadValue::Wrong => {
                let found = value::found(at.node, expected);
                self.refuse(at, Part::Value, &format!("`{key}` must be {expected}, not {found}"), None);
                None
            }
        }
    }

    /// Optional; the server's default applies.
    fn wish<T>(&mut self, at: &Cursor<'_>, reading: ReadValue<T>, expected: &str) -> Option<T> {
        if matches!(reading, ReadValue::Wrong) {
            let key = at.key().unwrap_or_default();
            let message = format!("`{key}` must be {expected}, not {}; the default applies", at.node.kind());
            self.warn(Code::WrongValue, at, Part::Value, message, None);
            return None;
        }
        self.need(at, reading, expected)
    }
}

/// One that begins with a variable is known only once that is filled in.
pub(super) fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    (!host.is_empty() || url.starts_with("${")) && !url.contains(odd)
}

/// Whether issuers can read a document there.
fn is_document(url: &str) -> bool {
    let path = url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map(|(_, path)| path);
    path.is_some_and(|path| !path.is_empty()) && !url.contains(char::is_whitespace)
}

/// Whether a browser comes back to this machine there.
fn is_redirect(url: &str) -> bool {
    let rest = ["http://localhost:", "http://127.0.0.1:"].iter().find_map(|start| url.strip_prefix(start));
    let port = rest.map(|rest| rest.split_once('/').map_or(rest, |(port, _)| port));
    port.is_some_and(|port| port.parse().is_ok_and(|port: u16| port > 0)) && !url.contains(['?', '#', ' '])
}
