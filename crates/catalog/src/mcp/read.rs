//! One server as declared: its keys, checked one by one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::hook::holds_shell_characters;
use ollm_protocol::{LimitsSpec, Origin, Source, nearest};
use ollm_store::escape_for_people;

use super::expand::foreign;
use super::{Address, Oauth, Pairs, ServerSpec, Transport, resolve};
use crate::config::camel;
use crate::file::Finding;
use crate::node::{Cursor, Node, Part, Spot};
use crate::problem::Severity;
use crate::value::{self, Reading};

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

/// Keys, each with the words of other programs for it.
pub type Keys = &'static [(&'static str, &'static [&'static str])];

/// The keys of a server.
pub const SERVER_KEYS: Keys = &[
    ("command", &[]),
    ("args", &[]),
    ("env", &[]),
    ("cwd", &["working_directory", "workingDirectory"]),
    ("limits", &[]),
    ("url", &["httpUrl", "http_url", "serverUrl", "server_url"]),
    ("headers", &[]),
    ("transport", &["type"]),
    ("timeout", &[]),
    ("toolTimeout", &["tool_timeout"]),
    ("idleTimeout", &["idle_timeout"]),
    ("enabled", &[]),
    ("disabled", &[]),
    ("lazy", &[]),
    ("autoRestart", &["auto_restart"]),
    ("allowTools", &["allow_tools", "includeTools", "include_tools", "enabledTools", "enabled_tools"]),
    ("denyTools", &["deny_tools", "excludeTools", "exclude_tools", "disabledTools", "disabled_tools"]),
    ("oauth", &[]),
    ("description", &[]),
];

/// The keys of its `oauth`. Whether logging in is `enabled` is found out by asking.
pub const OAUTH_KEYS: Keys = &[
    ("clientId", &["client_id"]),
    ("clientSecret", &["client_secret"]),
    ("clientMetadataUrl", &["clientIdMetadataUrl"]),
    ("scopes", &["scope"]),
    ("callbackPort", &["callback_port", "redirectPort"]),
    ("redirectUri", &["redirect_uri"]),
    ("enabled", &[]),
];

/// The keys of its `limits`.
pub const LIMIT_KEYS: Keys =
    &[("cpu", &[]), ("memory", &[]), ("processes", &[]), ("files", &[]), ("fileSize", &["file_size"])];

/// Keys with which other programs let servers do things unasked.
const VOUCHING: &[&str] = &["trust", "trusted", "alwaysAllow", "autoApprove"];
/// Far more than anybody reads.
const LONGEST_NAME: usize = 128;
const MILLISECOND: Duration = Duration::from_millis(1);
const FLAG: &str = "true or false";
const TIME: &str = "a positive number of milliseconds, or text with a unit such as \"5s\"";
const PAUSE: &str = "a number of milliseconds, or text with a unit such as \"5s\"";
const SIZE: &str = "a number of bytes, or text with a unit such as \"256MiB\"";

/// Where servers are declared, and whose they are.
pub(crate) struct Context<'a> {
    pub(crate) file: &'a Path,
    pub(crate) source: Source,
    pub(crate) extension: Option<&'a str>,
    /// Where the files are that came with the declaration, if relative paths mean those.
    pub(crate) folder: Option<&'a Path>,
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
        findings.push(finding(Severity::Error, servers, Part::Value, message, None));
    }
    for (name, at) in servers.entries() {
        let mut reader = Reader { context, findings, sound: true };
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
    let mut reader = Reader { context: &context, findings, sound: true };
    reader.server(name, at).is_some() && reader.sound
}

fn finding(severity: Severity, at: &Cursor<'_>, part: Part, message: String, help: Option<String>) -> Finding {
    // Below these keys stand secrets as often as not.
    let secret = at.spot(part).field.split('.').any(|key| key == "env" || key == "headers");
    let value = (!secret).then(|| shown(at));
    Finding { severity, spot: Some(at.spot(part)), value, message, help, remedy: None }
}

/// A value without what a declaration keeps secret.
fn shown(at: &Cursor<'_>) -> String {
    match at.node {
        Node::Map(_) => "{…}".to_owned(),
        node => node.shown(),
    }
}

/// What a declaration says, before it is known what that makes.
#[derive(Default)]
struct Draft {
    command: Option<String>,
    args: Vec<String>,
    env: Pairs,
    cwd: Option<PathBuf>,
    limits: LimitsSpec,
    url: Option<String>,
    headers: Pairs,
    transport: Option<&'static str>,
    timeout: Option<Duration>,
    tool_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    enabled: Option<bool>,
    lazy: Option<bool>,
    auto_restart: Option<bool>,
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    oauth: Option<Oauth>,
}

struct Reader<'a> {
    context: &'a Context<'a>,
    findings: &'a mut Vec<Finding>,
    sound: bool,
}

impl Reader<'_> {
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
        let mut draft = Draft::default();
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in at.entries() {
            let key = canonical(SERVER_KEYS, key);
            if seen.contains(&key) {
                self.refuse(
                    &value,
                    Part::Key,
                    &format!("`{key}` is written twice"),
                    Some("keep one of them".to_owned()),
                );
            }
            seen.push(key);
            if !matches!(value.node, Node::Null) {
                self.key(&mut draft, key, &value);
                self.foreign(&value);
            }
        }
        let address = self.address(&mut draft, at)?;
        Some(ServerSpec {
            name: name.to_owned(),
            address,
            timeout: draft.timeout,
            tool_timeout: draft.tool_timeout,
            idle_timeout: draft.idle_timeout,
            enabled: draft.enabled.unwrap_or(true),
            lazy: draft.lazy,
            auto_restart: draft.auto_restart,
            allow: draft.allow,
            deny: draft.deny,
            oauth: draft.oauth,
            source: self.context.source,
            extension: self.context.extension.map(str::to_owned),
            origin: Origin { file: self.context.file.to_owned(), ..Origin::default() },
        })
    }

    fn key(&mut self, draft: &mut Draft, key: &str, at: &Cursor<'_>) {
        let listed = "a list of names";
        match key {
            "command" => draft.command = self.need(at, value::plain(at.node), "text"),
            "args" => draft.args = self.need(at, value::texts(at.node), "a list of texts").unwrap_or_default(),
            "env" => draft.env = self.env(at),
            "cwd" => draft.cwd = self.need(at, value::word(at.node), "a path").map(PathBuf::from),
            "limits" => draft.limits = self.limits(at),
            "url" => draft.url = self.need(at, value::plain(at.node), "text"),
            "headers" => draft.headers = self.headers(at),
            "transport" => draft.transport = self.transport(at),
            "timeout" => draft.timeout = self.wish(at, value::time(at.node, MILLISECOND), TIME),
            "toolTimeout" => draft.tool_timeout = self.wish(at, value::time(at.node, MILLISECOND), TIME),
            "idleTimeout" => draft.idle_timeout = self.wish(at, value::pause(at.node, MILLISECOND), PAUSE),
            "enabled" => self.switch(draft, at, true),
            "disabled" => self.switch(draft, at, false),
            "lazy" => draft.lazy = self.wish(at, value::flag(at.node), FLAG),
            "autoRestart" => draft.auto_restart = self.wish(at, value::flag(at.node), FLAG),
            "allowTools" => draft.allow = self.need(at, value::texts(at.node), listed),
            "denyTools" => draft.deny = self.need(at, value::texts(at.node), listed).unwrap_or_default(),
            "oauth" => draft.oauth = self.oauth(at),
            "description" => {}
            key if VOUCHING.contains(&key) => self.vouching(at, key),
            key => self.unknown(at, key, SERVER_KEYS),
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
            self.warn(at, Part::Value, message, Some(format!("write ${{{name}}} and set the variable {name}")));
        }
    }

    fn oauth(&mut self, at: &Cursor<'_>) -> Option<Oauth> {
        if !matches!(at.node, Node::Map(_)) {
            self.refuse(at, Part::Value, &format!("`oauth` must be a map with {}", names(OAUTH_KEYS).join(", ")), None);
            return None;
        }
        let mut oauth = Oauth::default();
        for (key, value) in at.entries().filter(|(_, value)| !matches!(value.node, Node::Null)) {
            match canonical(OAUTH_KEYS, key) {
                "clientId" => oauth.client_id = self.need(&value, value::word(value.node), "text"),
                "clientSecret" => {
                    oauth.client_secret = self.need(&value, value::word(value.node), "text");
                }
                "clientMetadataUrl" => oauth.metadata_url = self.document(&value),
                "scopes" => oauth.scopes = self.scopes(&value),
                "callbackPort" => oauth.port = self.port(&value),
                "redirectUri" => oauth.redirect = self.redirect(&value),
                "enabled" => {}
                key => self.unknown(&value, key, OAUTH_KEYS),
            }
        }
        if oauth.client_secret.is_some() && oauth.client_id.is_none() {
            let help = "a secret proves a name: write `clientId` beside it".to_owned();
            self.refuse(at, Part::Value, "`oauth` has a `clientSecret` without a `clientId`", Some(help));
        }
        Some(oauth)
    }

    /// Names as a list, or in one text with spaces between.
    fn scopes(&mut self, at: &Cursor<'_>) -> Vec<String> {
        let listed = self.need(at, value::texts(at.node), "a list of names").unwrap_or_default();
        listed.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    }

    fn port(&mut self, at: &Cursor<'_>) -> Option<u16> {
        let port = at.node.shown().parse().ok().filter(|port| *port > 0);
        if port.is_none() {
            self.refuse(at, Part::Value, "`callbackPort` must be a number from 1 to 65535", None);
        }
        port
    }

    /// The address of a document that issuers read.
    fn document(&mut self, at: &Cursor<'_>) -> Option<String> {
        let url = self.need(at, value::word(at.node), "text")?;
        let path = url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map(|(_, path)| path);
        if path.is_none_or(str::is_empty) || url.contains(char::is_whitespace) {
            let message = "`clientMetadataUrl` is not the https address of a document";
            self.refuse(at, Part::Value, message, Some("write https://HOST/PATH".to_owned()));
        }
        Some(url)
    }

    /// An address of this machine that a browser comes back to.
    fn redirect(&mut self, at: &Cursor<'_>) -> Option<String> {
        let url = self.need(at, value::word(at.node), "text")?;
        let rest = ["http://localhost:", "http://127.0.0.1:"].iter().find_map(|start| url.strip_prefix(start));
        let port = rest.map(|rest| rest.split_once('/').map_or(rest, |(port, _)| port));
        if !port.is_some_and(|port| port.parse().is_ok_and(|port: u16| port > 0)) || url.contains(['?', '#', ' ']) {
            let message = "`redirectUri` is not an address of this machine with a port";
            self.refuse(at, Part::Value, message, Some("write http://localhost:PORT/PATH".to_owned()));
        }
        Some(url)
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
        self.warn(at, Part::Key, message, Some("remove it".to_owned()));
    }

    /// Of two words about it, the one that switches off counts.
    fn switch(&mut self, draft: &mut Draft, at: &Cursor<'_>, meaning: bool) {
        if let Some(said) = self.need(at, value::flag(at.node), FLAG) {
            draft.enabled = Some(draft.enabled.unwrap_or(true) && said == meaning);
        }
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
            let help = nearest(&word, TRANSPORTS.iter().copied()).map(|near| format!("did you mean {near}?"));
            self.refuse(at, Part::Value, &format!("the transport must be one of {}", TRANSPORTS.join(", ")), help);
        }
        known
    }

    /// What the keys make together.
    fn address(&mut self, draft: &mut Draft, at: &Cursor<'_>) -> Option<Address> {
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
                self.check_url(at, &url);
                self.refuse_transport(at, draft, draft.transport == Some("stdio"), "command");
                let transport = if draft.transport == Some("sse") { Transport::Sse } else { Transport::Http };
                Some(Address::Url { url, headers: std::mem::take(&mut draft.headers), transport })
            }
        }
    }

    fn refuse_transport(&mut self, at: &Cursor<'_>, draft: &Draft, wrong: bool, needs: &str) {
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
        } else if !absolute && command.contains('/') && self.context.folder.is_none() {
            let help = "give its absolute path, or the name of a program on PATH with the file in `args`";
            self.refuse(&at, Part::Value, "`command` is a path that depends on where we are", Some(help.to_owned()));
        }
    }

    /// Files that came with the declaration, by absolute paths.
    fn resolve(&mut self, server: &Cursor<'_>, line: resolve::Line) -> Option<resolve::Line> {
        let Some(folder) = self.context.folder else { return Some(line) };
        let resolved = resolve::resolve(folder, line);
        let wrong = |resolve::Wrong { key, index, why, help }| {
            let named = server.get(key).unwrap_or(*server);
            let item = index.and_then(|index| named.items().nth(index)).unwrap_or(named);
            self.refuse(&item, Part::Value, &why, Some(help.to_owned()));
        };
        resolved.map_err(wrong).ok()
    }

    fn check_url(&mut self, server: &Cursor<'_>, url: &str) {
        let at = server.get("url").or_else(|| server.get("httpUrl")).or_else(|| server.get("serverUrl"));
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        let odd = |letter: char| letter.is_whitespace() || letter.is_control();
        // One that begins with a variable is known only once that is filled in.
        if (host.is_empty() && !url.starts_with("${")) || url.contains(odd) {
            let help = Some("write http://… or https://…".to_owned());
            self.refuse(&at.unwrap_or(*server), Part::Value, "`url` is not an address on the web", help);
        }
    }

    fn env(&mut self, at: &Cursor<'_>) -> Pairs {
        if let Some((path, message)) = value::relative_entries(at) {
            self.warn(&path, Part::Value, message, Some(value::MAKE_ABSOLUTE.to_owned()));
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

    fn limits(&mut self, at: &Cursor<'_>) -> LimitsSpec {
        let mut limits = LimitsSpec::default();
        if !matches!(at.node, Node::Map(_)) {
            self.refuse(at, Part::Value, &format!("`limits` must be a map, not {}", at.node.kind()), None);
        }
        for (key, at) in at.entries() {
            match canonical(LIMIT_KEYS, key) {
                "cpu" => limits.cpu = self.need(&at, value::span(at.node), "a time with its unit such as \"5s\""),
                "memory" => limits.memory = self.need(&at, value::size(at.node), SIZE),
                "fileSize" => limits.file_size = self.need(&at, value::size(at.node), SIZE),
                "processes" => limits.processes = self.need(&at, value::whole(at.node), "a whole number"),
                "files" => limits.files = self.need(&at, value::whole(at.node), "a whole number"),
                "time" | "output" => {
                    let message = format!("`{key}` has no meaning for a server that stays, and is ignored");
                    self.warn(&at, Part::Key, message, Some("`toolTimeout` bounds a call".to_owned()));
                }
                key => self.unknown(&at, key, LIMIT_KEYS),
            }
        }
        limits
    }

    /// A value without which the server would be another one.
    fn need<T>(&mut self, at: &Cursor<'_>, reading: Reading<T>, expected: &str) -> Option<T> {
        let key = at.key().unwrap_or_default();
        match reading {
            Reading::Exact(value) => Some(value),
            Reading::Converted(value) => {
                let message = format!("`{key}` should be {expected}, not {}; it is read as meant", at.node.kind());
                self.warn(at, Part::Value, message, None);
                Some(value)
            }
            Reading::Wrong => {
                let found = value::found(at.node, expected);
                self.refuse(at, Part::Value, &format!("`{key}` must be {expected}, not {found}"), None);
                None
            }
        }
    }

    /// A value without which the server does with what is usual.
    fn wish<T>(&mut self, at: &Cursor<'_>, reading: Reading<T>, expected: &str) -> Option<T> {
        if matches!(reading, Reading::Wrong) {
            let key = at.key().unwrap_or_default();
            let message = format!("`{key}` must be {expected}, not {}; the default applies", at.node.kind());
            self.warn(at, Part::Value, message, None);
            return None;
        }
        self.need(at, reading, expected)
    }

    fn unknown(&mut self, at: &Cursor<'_>, key: &str, known: Keys) {
        let help = nearest(key, names(known)).map(|near| format!("did you mean `{near}`?"));
        self.warn(at, Part::Key, format!("unknown key `{key}` is ignored"), help);
    }

    fn refuse(&mut self, at: &Cursor<'_>, part: Part, message: &str, help: Option<String>) {
        self.sound = false;
        let message = format!("{message}; the server is not loaded");
        self.findings.push(finding(Severity::Error, at, part, message, help));
    }

    fn warn(&mut self, at: &Cursor<'_>, part: Part, message: String, help: Option<String>) {
        self.findings.push(finding(Severity::Warning, at, part, message, help));
    }
}

/// Our words for keys.
fn names(keys: Keys) -> Vec<&'static str> {
    keys.iter().map(|(ours, _)| *ours).collect()
}

/// Whether a key of a server is its address.
pub(crate) fn is_address(key: &str) -> bool {
    canonical(SERVER_KEYS, key) == "url"
}

/// Our word for a key that other programs may call otherwise, or that has lines between its words.
fn canonical(keys: Keys, key: &str) -> &str {
    let spelled = camel(key);
    let is = |word: &str| word == key || spelled.as_deref() == Some(word);
    let found = keys.iter().find(|(ours, others)| is(ours) || others.iter().any(|other| is(other)));
    found.map_or(key, |(ours, _)| ours)
}
