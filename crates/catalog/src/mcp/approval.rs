//! Servers as things that can be approved.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use ollm_protocol::{Layer, LimitsSpec, Remedy, Source};
use ollm_shell::shell_word;
use ollm_store::{Hasher, looks_secret};
use ollm_trust::{Approvable, CommandLine, Definition, Mentioned, Row, TrustContext, Unready};

use super::{Address, Oauth, Pairs, ServerSpec, expand};

impl Approvable for ServerSpec {
    fn source(&self) -> String {
        format!("{}#{}", self.origin.file.display(), self.id())
    }

    fn id(&self) -> Cow<'_, str> {
        format!("mcp:{}", self.name).into()
    }

    fn origin(&self) -> Source {
        self.source
    }

    fn layer(&self) -> Layer {
        if self.source == Source::Workspace { Layer::Workspace } else { Layer::User }
    }

    /// Reading a declaration checks whose its file is.
    fn declared_in(&self) -> Option<&Path> {
        None
    }

    fn definition(&self) -> Option<Definition> {
        Some(Definition::of_fields(fields(self)))
    }

    fn program(&self, context: &TrustContext<'_>) -> Result<PathBuf, Unready> {
        let Address::Command { command, .. } = &self.address else { return Ok(PathBuf::new()) };
        let path = Path::new(command);
        if path.is_absolute() {
            let what = if path.is_dir() { "is a folder, not a program" } else { "does not exist" };
            let why = || Unready::NotProgram(format!("{command} {what}; restore it, or change the declaration"));
            return path.is_file().then(|| path.to_owned()).ok_or_else(why);
        }
        let why = || Unready::NotProgram(format!("`{command}` is not on PATH; install it, or give its absolute path"));
        context.find_program(command).ok_or_else(why)
    }

    fn command_line(&self, context: &TrustContext<'_>) -> Option<CommandLine> {
        // As it will be started: `${NONE:-server.py}` is a file of the project as well.
        let (server, _) = expand(self, &|name| variable(context, name));
        let Address::Command { command, args, env, cwd, .. } = server.address else { return None };
        let folders = context.home.map(|home| ("HOME", home.to_owned())).into_iter().collect();
        Some(CommandLine { program: command, args, env: env.0, cwd, folders, shell: None, mentioned: Mentioned::Any })
    }

    /// The user's own came with nothing, and all files of an extension are approved together.
    fn folder<'a>(&'a self, context: &TrustContext<'a>) -> Option<&'a Path> {
        match self.source {
            Source::Workspace => context.project,
            Source::Extension | Source::Downloaded => self.origin.file.parent(),
            Source::User | Source::Policy | Source::Builtin => None,
        }
    }

    /// Servers of projects are often built among the packages they need.
    fn may_keep_its_place(&self) -> bool {
        true
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = vec![("server", self.name.clone()), ("declared", declared(self))];
        rows.extend(address(self));
        rows.extend(self.oauth.as_ref().map(login).unwrap_or_default());
        rows.extend(terms(self));
        rows
    }

    fn title(&self) -> String {
        format!("{} server `{}`", self.source.name(), self.name)
    }

    fn remedy(&self) -> Remedy {
        match &self.extension {
            Some(extension) => Remedy::ApproveExtension(extension.clone()),
            None => Remedy::ApproveServer(self.name.clone()),
        }
    }
}

/// What fills in a name in a declaration: a variable, or another program's name for a place.
fn variable(context: &TrustContext<'_>, name: &str) -> Option<String> {
    let place = || match name {
        "workspaceFolder" => context.project.or(context.folder),
        "userHome" => context.home,
        _ => None,
    };
    let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
    context.get(name).and_then(text).or_else(|| place().and_then(|path| text(path.as_os_str())))
}

/// Every key as written. Values of variables and headers go in as they are declared, and cannot be read back.
fn fields(server: &ServerSpec) -> Hasher {
    let mut hasher = Hasher::new().field("mcp server", server.name.as_bytes());
    hasher = shown(hasher, "limits of time", &(server.timeout, server.tool_timeout));
    hasher = shown(hasher, "switches", &(server.enabled, server.lazy, server.auto_restart));
    hasher = shown(hasher, "tools", &(&server.allow, &server.deny));
    hasher = shown(hasher, "extension", &server.extension);
    if let Some(idle) = &server.idle_timeout {
        hasher = shown(hasher, "idle timeout", idle);
    }
    if let Some(oauth) = &server.oauth {
        hasher = shown(hasher, "oauth", oauth);
        if let Some(secret) = &oauth.client_secret {
            hasher = hasher.field("client secret", secret.as_bytes());
        }
    }
    match &server.address {
        Address::Url { url, headers, transport } => {
            hasher = shown(hasher.field("url", url.as_bytes()), "transport", transport);
            pairs(hasher, "header", headers)
        }
        Address::Command { command, args, env, cwd, limits } => {
            hasher = hasher.field("command", command.as_bytes());
            for arg in args {
                hasher = hasher.field("argument", arg.as_bytes());
            }
            pairs(shown(shown(hasher, "cwd", cwd), "limits", limits), "variable", env)
        }
    }
}

fn shown(hasher: Hasher, label: &str, value: &dyn Debug) -> Hasher {
    hasher.field(label, format!("{value:?}").as_bytes())
}

fn pairs(mut hasher: Hasher, label: &str, pairs: &Pairs) -> Hasher {
    for (name, value) in &pairs.0 {
        hasher = hasher.field(label, name.as_bytes()).field("value", value.as_bytes());
    }
    hasher
}

fn declared(server: &ServerSpec) -> String {
    let origin = &server.origin;
    format!("{}:{}:{} ({})", origin.file.display(), origin.line, origin.column, server.source.name())
}

fn address(server: &ServerSpec) -> Vec<Row> {
    let mut rows = Vec::new();
    match &server.address {
        Address::Command { command, args, env, cwd, limits } => {
            let words = std::iter::once(command).chain(args).map(|word| shell_word(word)).collect::<Vec<_>>();
            rows.push(("runs", words.join(" ")));
            rows.extend(cwd.as_ref().map(|cwd| ("folder", cwd.display().to_string())));
            let variable = |(name, value): &(String, String)| format!("{name}={}", shell_word(&visible(name, value)));
            rows.extend(env.0.iter().map(|pair| ("variable", variable(pair))));
            rows.extend(bounds(limits).map(|limits| ("limits", limits)));
        }
        Address::Url { url, headers, .. } => {
            rows.push(("address", url.clone()));
            rows.push(("transport", server.address.transport().to_owned()));
            rows.extend(headers.0.iter().map(|(name, value)| ("header", format!("{name}: {}", visible(name, value)))));
        }
    }
    rows
}

fn bounds(limits: &LimitsSpec) -> Option<String> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let said = [
        ("cpu", limits.cpu.map(|time| format!("{time:?}"))),
        ("memory", number(limits.memory)),
        ("processes", number(limits.processes)),
        ("files", number(limits.files)),
        ("fileSize", number(limits.file_size)),
    ];
    let said: Vec<String> = said.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn login(oauth: &Oauth) -> Vec<Row> {
    let secret = oauth.client_secret.as_deref().map(|secret| visible("clientSecret", secret).into_owned());
    let scopes = (!oauth.scopes.is_empty()).then(|| oauth.scopes.join(" "));
    let rows = [
        ("logs in as", oauth.client_id.clone()),
        ("proved by", secret),
        ("described at", oauth.metadata_url.clone()),
        ("asks for", scopes),
        ("comes back to", oauth.redirect.clone()),
        ("callbackPort", oauth.port.map(|port| port.to_string())),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// What else is declared, by the keys it is declared with.
fn terms(spec: &ServerSpec) -> Vec<Row> {
    let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
    let list = |names: &[String]| names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" ");
    let rows = [
        ("enabled", (!spec.enabled).then(|| "false".to_owned())),
        ("timeout", spec.timeout.map(|time| format!("{time:?}"))),
        ("toolTimeout", spec.tool_timeout.map(|time| format!("{time:?}"))),
        ("idleTimeout", spec.idle_timeout.map(|time| format!("{time:?}"))),
        ("lazy", flag(spec.lazy)),
        ("autoRestart", flag(spec.auto_restart)),
        (
            "allowTools",
            spec.allow.as_deref().map(|names| if names.is_empty() { "none".to_owned() } else { list(names) }),
        ),
        ("denyTools", (!spec.deny.is_empty()).then(|| list(&spec.deny))),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A value for review. What sounds secret is only counted, unless it names a variable: who is sent that must be seen.
fn visible<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if looks_secret(name) && !value.contains("${") {
        return format!("[hidden, {} characters]", value.chars().count()).into();
    }
    Cow::Borrowed(value)
}
