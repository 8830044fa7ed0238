//! One server as declared: its keys, checked one by one.

use std::path::Path;

use ollm_protocol::hook::holds_shell_characters;
use ollm_protocol::hook::key::Unknown;
use ollm_protocol::{Code, Origin, Source, did_you_mean, nearest};
use ollm_store::escape_for_people;

use super::expand::foreign;
use super::key::{SERVER_KEYS, ServerDraft, ServerKey, is_secret};
use super::{Address, Pairs, ServerSpec, Transport, resolve};
use crate::file::Finding;
use crate::node::{Cursor, Node, Part, Spot};
use crate::path::PathCache;
use crate::problem::Severity;

mod row;

pub use row::{OTHER_TRANSPORTS, TRANSPORTS};

/// Keys with which other programs let servers do things unasked.
const VOUCHING: &[&str] = &["trust", "trusted", "alwaysAllow", "autoApprove"];
/// Far more than a person reads.
const LONGEST_NAME: usize = 128;
/// Where servers are declared, and whose they are.
pub(crate) struct Context<'a> {
    pub(crate) file: &'a Path,
    pub(crate) source: Source,
    pub(crate) extension: Option<&'a str>,
    /// Where the files are that came with the declaration, if relative paths mean those.
    pub(crate) folder: Option<(&'a Path, &'a PathCache)>,
}

/// The servers of a map from names to declarations, each with its spot.
pub(crate) fn read(
    servers: &Cursor<'_>,
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> (Vec<ServerSpec>, Vec<Spot>) {
    let mut read: (Vec<ServerSpec>, Vec<Spot>) = Default::default();
    if !matches!(servers.node, Node::Map(_) | Node::Null) {
        let message = format!("servers must be a map from names to declarations, not {}", servers.node.kind());
        let found = Finding::at(Code::WrongForm, Severity::Error, servers, Part::Value, message, None);
        findings.push(discreet(found, servers));
    }
    for (name, at) in servers.entries() {
        let mut reader = ServerReader { context, findings, sound: true };
        let server = reader.server(name, &at);
        if reader.sound
            && let Some(server) = server
        {
            read.0.push(server);
            read.1.push(at.spot(Part::Key));
        }
    }
    read
}

/// Whether a declaration makes a server, wherever its files are.
pub(crate) fn is_sound(name: &str, at: &Cursor<'_>, source: Source, findings: &mut Vec<Finding>) -> bool {
    let context = Context { file: Path::new(""), source, extension: None, folder: None };
    let mut reader = ServerReader { context: &context, findings, sound: true };
    reader.server(name, at).is_some() && reader.sound
}

/// A finding without the value where that may be a secret, which it is below some keys as often as not.
fn discreet(finding: Finding, at: &Cursor<'_>) -> Finding {
    let is_below = |spot: &Spot| spot.field.split('.').any(is_secret);
    let value = (!finding.spot.as_ref().is_some_and(is_below)).then(|| shown(at));
    Finding { value, ..finding }
}

/// A value without what a declaration keeps secret.
fn shown(at: &Cursor<'_>) -> String {
    match at.node {
        Node::Map(_) => "{…}".to_owned(),
        node => node.shown(),
    }
}

struct ServerReader<'a> {
    context: &'a Context<'a>,
    findings: &'a mut Vec<Finding>,
    sound: bool,
}

impl ServerReader<'_> {
    fn server(&mut self, name: &str, at: &Cursor<'_>) -> Option<ServerSpec> {
        if name.len() > LONGEST_NAME {
            let message = format!("the name of a server has {} bytes, at most {LONGEST_NAME} are taken", name.len());
            self.refuse(at, Part::Key, &message, Some("give it a shorter one".to_owned()));
        } else if name.trim().is_empty() || escape_for_people(name) != name || name.contains('\n') {
            let message = "the name of a server must be text that can be shown";
            self.refuse(at, Part::Key, message, Some("use letters, digits, - and _".to_owned()));
        }
        if !matches!(at.node, Node::Map(_)) {
            let message = format!("a server must be a map of its keys, not {}", at.node.kind());
            self.refuse(
                at,
                Part::Value,
                &message,
                Some("write {\"command\": …, \"args\": […]} or {\"url\": …}".to_owned()),
            );
            return None;
        }
        let address = Address::Url { url: String::new(), headers: Pairs::default(), transport: Transport::Http };
        let spec = ServerSpec {
            source: self.context.source,
            extension: self.context.extension.map(str::to_owned),
            origin: Origin { file: self.context.file.to_owned(), ..Origin::default() },
            ..ServerSpec::new(name, address)
        };
        let mut draft = ServerDraft::new(spec);
        self.keys(SERVER_KEYS, Unknown::Warned, &mut draft, at);
        at.entries().filter(|(_, value)| !matches!(value.node, Node::Null)).for_each(|(_, value)| self.foreign(&value));
        let address = self.address(&mut draft, at)?;
        Some(ServerSpec { address, ..draft.spec })
    }

    /// Reads the keys of a map.
    fn keys(&mut self, known: &'static [ServerKey], unknown: Unknown, draft: &mut ServerDraft, at: &Cursor<'_>) {
        let mut seen: Vec<&str> = Vec::new();
        let mut set: Vec<&ServerKey> = Vec::new();
        for (written, value) in at.entries() {
            let row = ServerKey::find(known, written);
            let name = row.map_or(written, |row| row.name);
            if seen.contains(&name) {
                let help = Some("keep one of them".to_owned());
                self.refuse(&value, Part::Key, &format!("`{name}` is written twice"), help);
            }
            seen.push(name);
            match row {
                _ if matches!(value.node, Node::Null) => {}
                Some(row) => {
                    self.row(row, draft, &value);
                    set.push(row);
                }
                None if known == SERVER_KEYS && VOUCHING.contains(&written) => self.vouching(&value, written),
                None => self.unknown(&value, written, known, unknown),
            }
        }
        for (row, needs) in set.iter().filter_map(|row| Some((row, row.needs?))) {
            if !set.iter().any(|other| other.name == needs) {
                let part = at.key().unwrap_or_default();
                let message = format!("`{part}` has a `{}` without a `{needs}`", row.name);
                self.refuse(at, Part::Value, &message, Some(format!("write `{needs}` beside it")));
            }
        }
    }

    /// Tells of what only another program can fill in.
    fn foreign(&mut self, at: &Cursor<'_>) {
        at.entries().for_each(|(_, value)| self.foreign(&value));
        at.items().for_each(|item| self.foreign(&item));
        let Node::Text(text) = at.node else { return };
        if let Some(inside) = foreign(text) {
            let id = inside.split_once(':').map_or(inside, |(_, id)| id);
            let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
            let name: String = id.chars().map(letter).collect();
            let field = at.spot(Part::Value).field;
            let message = format!("`{field}` holds ${{{inside}}}, which only another program can fill in; it is empty");
            self.warn(
                Code::WrongValue,
                at,
                Part::Value,
                message,
                Some(format!("write ${{{name}}} and set the variable {name}")),
            );
        }
    }

    /// What a declaration may not say about itself.
    fn vouching(&mut self, at: &Cursor<'_>, key: &str) {
        let message = match (at.node, self.context.source) {
            (Node::Bool(false), source) if source != Source::User => return,
            (Node::Bool(true), Source::User) => return,
            (_, Source::User) => format!("`{key}` is ignored: the user's own servers need no approval"),
            (_, Source::Extension | Source::Downloaded) => {
                format!("`{key}` is ignored: an extension cannot vouch for itself")
            }
            _ => format!("`{key}` is ignored: a project cannot vouch for itself"),
        };
        self.warn(Code::Ignored, at, Part::Key, message, Some("remove it".to_owned()));
    }

    /// What the keys make together.
    fn address(&mut self, draft: &mut ServerDraft, at: &Cursor<'_>) -> Option<Address> {
        self.address_as_command(draft, at);
        match (draft.command.take(), draft.url.take()) {
            (Some(_), Some(_)) => {
                let help = "keep `command` for a program that is started, `url` for one that runs elsewhere";
                self.refuse(at, Part::Value, "a server has either a `command` or a `url`", Some(help.to_owned()));
                None
            }
            (None, None) => {
                if self.sound {
                    let help = "name the program to start as `command`, or an address as `url`";
                    self.refuse(at, Part::Value, "the server has neither `command` nor `url`", Some(help.to_owned()));
                }
                None
            }
            (Some(command), None) => {
                self.check_command(at, &command);
                self.refuse_transport(at, draft, draft.transport.is_some_and(|word| word != "stdio"), "url");
                let (args, env, cwd) =
                    (std::mem::take(&mut draft.args), std::mem::take(&mut draft.env), draft.cwd.take());
                let (command, args, cwd) = self.resolve(at, (command, args, cwd))?;
                Some(Address::Command { command, args, env, cwd, limits: draft.limits })
            }
            (None, Some(url)) => {
                self.refuse_transport(at, draft, draft.transport == Some("stdio"), "command");
                let transport = if draft.transport == Some("sse") { Transport::Sse } else { Transport::Http };
                Some(Address::Url { url, headers: std::mem::take(&mut draft.headers), transport })
            }
        }
    }

    /// A server may say its address where others name a program, if it says how it is spoken to.
    fn address_as_command(&mut self, draft: &mut ServerDraft, at: &Cursor<'_>) {
        let remote = draft.transport.is_some_and(|word| word != "stdio") && draft.url.is_none();
        if !remote || !draft.command.as_deref().is_some_and(row::is_url) {
            return;
        }
        draft.url = draft.command.take();
        let args = at.get("args").filter(|_| !draft.args.is_empty());
        if let Some(given) = args.or_else(|| at.get("env").filter(|_| !draft.env.0.is_empty())) {
            let key = given.key().unwrap_or_default().to_owned();
            let help = "remove it; what a server on the web needs to know goes into `headers`".to_owned();
            self.refuse(&given, Part::Key, &format!("`{key}` has no meaning beside an address"), Some(help));
        }
    }

    fn refuse_transport(&mut self, at: &Cursor<'_>, draft: &ServerDraft, wrong: bool, needs: &str) {
        if let (true, Some(word)) = (wrong, draft.transport) {
            let key = at.get("transport").or_else(|| at.get("type"));
            let help = Some("remove it; it follows from the rest".to_owned());
            self.refuse(&key.unwrap_or(*at), Part::Value, &format!("`{word}` needs a `{needs}`"), help);
        }
    }

    /// One program, by its absolute path or by its name on the search path.
    fn check_command(&mut self, server: &Cursor<'_>, command: &str) {
        let at = server.get("command").unwrap_or(*server);
        let absolute = Path::new(command).is_absolute();
        let a_path = absolute || self.context.folder.is_some();
        let word = if a_path { command.rsplit('/').next().unwrap_or(command) } else { command };
        if command.trim().is_empty() {
            self.refuse(&at, Part::Value, "`command` is empty", Some("name the program to start".to_owned()));
        } else if word.contains(char::is_whitespace) || holds_shell_characters(word) || command.contains('\0') {
            let help = "no shell reads it: name the program alone, and put the rest into `args`";
            self.refuse(&at, Part::Value, "`command` is more than the name of a program", Some(help.to_owned()));
        } else if command.contains("://") && self.context.folder.is_none() {
            let help = "an address goes into `url`; beside a `command` that is one, say which `transport` it speaks: http or sse";
            self.refuse(&at, Part::Value, "`command` is an address and no program", Some(help.to_owned()));
        } else if !absolute && command.contains('/') && self.context.folder.is_none() {
            let help = "give its absolute path, or the name of a program on PATH with the file in `args`";
            self.refuse(&at, Part::Value, "`command` is a path that depends on where we are", Some(help.to_owned()));
        }
    }

    /// Files that came with the declaration, by absolute paths.
    fn resolve(&mut self, server: &Cursor<'_>, line: resolve::Line) -> Option<resolve::Line> {
        let Some((folder, walked)) = self.context.folder else { return Some(line) };
        let resolved = resolve::resolve(folder, walked, line);
        let wrong = |resolve::CommandFault { key, index, why, help }| {
            let named = server.get(key).unwrap_or(*server);
            let item = index.and_then(|index| named.items().nth(index)).unwrap_or(named);
            self.refuse(&item, Part::Value, &why, Some(help.to_owned()));
        };
        resolved.map_err(wrong).ok()
    }

    fn unknown(&mut self, at: &Cursor<'_>, key: &str, known: &'static [ServerKey], unknown: Unknown) {
        let help = did_you_mean(key, ServerKey::names(known));
        let near = nearest(key, ServerKey::names(known)).and_then(|name| ServerKey::find(known, name));
        if unknown == Unknown::Refused || near.is_some_and(|row| row.unknown == Unknown::Refused) {
            return self.refuse(at, Part::Key, &format!("unknown key `{key}`"), help);
        }
        self.warn(Code::UnknownKey, at, Part::Key, format!("unknown key `{key}` is ignored"), help);
    }

    fn refuse(&mut self, at: &Cursor<'_>, part: Part, message: &str, help: Option<String>) {
        self.sound = false;
        let message = format!("{message}; the server is not loaded");
        let found = Finding::at(Code::WrongValue, Severity::Error, at, part, message, help);
        self.findings.push(discreet(found, at));
    }

    fn warn(&mut self, code: Code, at: &Cursor<'_>, part: Part, message: String, help: Option<String>) {
        let found = Finding::at(code, Severity::Warning, at, part, message, help);
        self.findings.push(discreet(found, at));
    }
}
