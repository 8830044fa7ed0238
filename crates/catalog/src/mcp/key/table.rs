//! The rows themselves.

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::Duration;

use ollm_protocol::LimitsSpec;
use ollm_protocol::hook::key::Unknown;
use ollm_shell::shell_word;
use ollm_store::{Hasher, looks_secret};
use ollm_trust::Row;

use super::oauth::{self, OAUTH_KEYS};
use super::{ApprovedPart, ServerKey, ServerKeyKind, TextForm, UnsupportedKey, review};
use crate::mcp::{Address, Pairs, ServerSpec};

/// A row of which only people make anything.
pub(super) const ROW: ServerKey = ServerKey {
    name: "",
    aliases: &[],
    about: "",
    default: "none",
    kind: ServerKeyKind::Place,
    needs: None,
    secret: false,
    unhonoured: None,
    unknown: Unknown::Warned,
    approved: ApprovedPart::No,
    review: |_| Vec::new(),
};

const UNBOUNDED: Option<UnsupportedKey> = Some(UnsupportedKey {
    why: "a server stays and says as much as it likes; `toolTimeout` bounds a call",
    unless: None,
    refused: true,
});

/// Every key of a server, in the order in which people should meet them.
pub const SERVER_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "name",
        about: "What it is called.",
        approved: ApprovedPart::Part(|hasher, server| hasher.field("mcp server", server.name.as_bytes())),
        review: |server| vec![("server", server.name.clone())],
        ..ROW
    },
    ServerKey {
        name: "origin",
        about: "Where it is declared.",
        review: |server| {
            let origin = &server.origin;
            let place = format!("{}:{}:{}", origin.file.display(), origin.line, origin.column);
            vec![("declared", format!("{place} ({})", server.source.name()))]
        },
        ..ROW
    },
    ServerKey {
        name: "command",
        about: "The program that is the server: its absolute path or its name on `PATH`. No shell reads it. With `transport` `http` or `sse` it may be an address instead of `url`.",
        default: "required, or a `url`",
        kind: ServerKeyKind::Text("text", TextForm::Program, |draft, command| draft.command = Some(command)),
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Command { command, .. } => hasher.field("command", command.as_bytes()),
            Address::Url { .. } => hasher,
        }),
        review: |server| match &server.address {
            Address::Command { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(|word| shell_word(word)).collect::<Vec<_>>();
                vec![("runs", words.join(" "))]
            }
            Address::Url { .. } => Vec::new(),
        },
        ..ROW
    },
    ServerKey {
        name: "args",
        about: "Its arguments.",
        kind: ServerKeyKind::Texts("a list of texts", |draft, args| draft.args = args),
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Command { args, .. } => {
                args.iter().fold(hasher, |hasher, arg| hasher.field("argument", arg.as_bytes()))
            }
            Address::Url { .. } => hasher,
        }),
        ..ROW
    },
    ServerKey {
        name: "cwd",
        aliases: &["workingDirectory"],
        about: "The folder it runs in.",
        default: "the project for a project's server, else the current folder",
        kind: ServerKeyKind::Text("a path", TextForm::Word, |draft, folder| draft.cwd = Some(folder.into())),
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Command { cwd, .. } => shown(hasher, "cwd", cwd),
            Address::Url { .. } => hasher,
        }),
        review: |server| match &server.address {
            Address::Command { cwd: Some(cwd), .. } => vec![("folder", cwd.display().to_string())],
            _ => Vec::new(),
        },
        ..ROW
    },
    ServerKey {
        name: "limits",
        about: "What its program may use.",
        kind: ServerKeyKind::Section(LIMIT_KEYS, |_| ()),
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Command { limits, .. } => shown(hasher, "limits", limits),
            Address::Url { .. } => hasher,
        }),
        review: |server| {
            let said: Vec<String> =
                review(LIMIT_KEYS, server).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
            if said.is_empty() { Vec::new() } else { vec![("limits", said.join(", "))] }
        },
        unknown: Unknown::Refused,
        ..ROW
    },
    ServerKey {
        name: "permissions",
        about: "What its program may do: it then runs in a box, and reads only system folders, its own files and the project, \
            writes only a temporary folder of its own, and has no network, but for what is named here.",
        default: "nothing beyond that for servers of a project or an extension (`mcp.box`), everything for your own",
        needs: Some("command"),
        kind: ServerKeyKind::Section(PERMISSION_KEYS, |draft| _ = draft.permissions()),
        approved: ApprovedPart::Part(|hasher, server| match &server.permissions {
            Some(permissions) => shown(hasher, "permissions", permissions),
            None => hasher,
        }),
        review: |server| {
            let held = server.held_to();
            held.map(|held| ("box", held.describe_as(server.permissions.is_some()))).into_iter().collect()
        },
        unknown: Unknown::Refused,
        ..ROW
    },
    ServerKey {
        name: "env",
        about: "Its variables, beside the usual ones; `${NAME}` stands for one of yours.",
        kind: ServerKeyKind::Variables(|draft, variables| draft.env = variables),
        secret: true,
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Command { env, .. } => pairs(hasher, "variable", env),
            Address::Url { .. } => hasher,
        }),
        review: |server| match &server.address {
            Address::Command { env, .. } => {
                let line = |name: &str, value: &str| format!("{name}={}", shell_word(&visible(name, value)));
                env.0.iter().map(|(name, value)| ("variable", line(name, value))).collect()
            }
            Address::Url { .. } => Vec::new(),
        },
        ..ROW
    },
    ServerKey {
        name: "url",
        aliases: &["httpUrl", "serverUrl"],
        about: "Where it is, if it is not started by us.",
        default: "required, or a `command`",
        kind: ServerKeyKind::Text("text", TextForm::Address, |draft, url| draft.url = Some(url)),
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Url { url, .. } => hasher.field("url", url.as_bytes()),
            Address::Command { .. } => hasher,
        }),
        review: |server| match &server.address {
            Address::Url { url, .. } => vec![("address", url.clone())],
            Address::Command { .. } => Vec::new(),
        },
        ..ROW
    },
    ServerKey {
        name: "transport",
        aliases: &["type"],
        about: "How it is spoken to: `stdio`, `http`, or `sse`, to which `http` falls back by itself.",
        default: "`stdio` for a command, `http` for a URL",
        kind: ServerKeyKind::Transport(|draft, word| draft.transport = Some(word)),
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Url { transport, .. } => shown(hasher, "transport", transport),
            Address::Command { .. } => hasher,
        }),
        review: |server| match &server.address {
            Address::Url { .. } => vec![("transport", server.address.transport().to_owned())],
            Address::Command { .. } => Vec::new(),
        },
        ..ROW
    },
    ServerKey {
        name: "headers",
        about: "The headers it is sent.",
        kind: ServerKeyKind::Headers(|draft, headers| draft.headers = headers),
        secret: true,
        approved: ApprovedPart::Last(|hasher, server| match &server.address {
            Address::Url { headers, .. } => pairs(hasher, "header", headers),
            Address::Command { .. } => hasher,
        }),
        review: |server| match &server.address {
            Address::Url { headers, .. } => {
                let line = |name: &str, value: &str| format!("{name}: {}", visible(name, value));
                headers.0.iter().map(|(name, value)| ("header", line(name, value))).collect()
            }
            Address::Command { .. } => Vec::new(),
        },
        ..ROW
    },
    ServerKey {
        name: "timeout",
        about: "How long it may take to answer for the first time.",
        default: "`mcp.connectionTimeout`",
        kind: ServerKeyKind::Time(|draft, time| draft.spec.timeout = Some(time)),
        approved: ApprovedPart::Part(|hasher, server| {
            shown(hasher, "limits of time", &(server.timeout, server.tool_timeout))
        }),
        review: |server| time("timeout", server.timeout),
        ..ROW
    },
    ServerKey {
        name: "toolTimeout",
        about: "How long a call of one of its tools may take without a sign of progress.",
        default: "`mcp.toolTimeout`",
        kind: ServerKeyKind::Time(|draft, time| draft.spec.tool_timeout = Some(time)),
        approved: ApprovedPart::Within("timeout"),
        review: |server| time("toolTimeout", server.tool_timeout),
        ..ROW
    },
    ServerKey {
        name: "enabled",
        about: "Whether it is started at all.",
        default: "true",
        kind: ServerKeyKind::Switch(true),
        approved: ApprovedPart::Part(|hasher, server| {
            shown(hasher, "switches", &(server.enabled, server.lazy, server.auto_restart))
        }),
        review: |server| flag("enabled", (!server.enabled).then_some(false)),
        ..ROW
    },
    ServerKey {
        name: "disabled",
        about: "The opposite of `enabled`, as other programs write it. Of the two, the one that switches off counts.",
        default: "false",
        kind: ServerKeyKind::Switch(false),
        approved: ApprovedPart::Within("enabled"),
        ..ROW
    },
    ServerKey {
        name: "lazy",
        about: "Whether it is started by the first call, once its tools are known.",
        default: "true",
        kind: ServerKeyKind::Flag(|draft, flag| draft.spec.lazy = Some(flag)),
        approved: ApprovedPart::Within("enabled"),
        review: |server| flag("lazy", server.lazy),
        ..ROW
    },
    ServerKey {
        name: "autoRestart",
        about: "Whether it is started again after a crash.",
        default: "`mcp.autoRestart`",
        kind: ServerKeyKind::Flag(|draft, flag| draft.spec.auto_restart = Some(flag)),
        approved: ApprovedPart::Within("enabled"),
        review: |server| flag("autoRestart", server.auto_restart),
        ..ROW
    },
    ServerKey {
        name: "allowTools",
        aliases: &["includeTools", "enabledTools"],
        about: "The only tools it may offer, by its own names for them, in which `*` stands for any characters: `[\"read_*\"]`. \
            An entry that no tool fits is told.",
        default: "all",
        kind: ServerKeyKind::Texts("a list of names", |draft, names| draft.spec.tools.allow = Some(names)),
        approved: ApprovedPart::Part(|hasher, server| {
            shown(hasher, "tools", &(&server.tools.allow, &server.tools.deny))
        }),
        review: |server| match server.tools.allow.as_deref() {
            Some([]) => vec![("allowTools", "none".to_owned())],
            Some(names) => vec![("allowTools", list(names))],
            None => Vec::new(),
        },
        unknown: Unknown::Refused,
        ..ROW
    },
    ServerKey {
        name: "denyTools",
        aliases: &["excludeTools", "disabledTools"],
        about: "Tools it may not offer, likewise.",
        kind: ServerKeyKind::Texts("a list of names", |draft, names| draft.spec.tools.deny = names),
        approved: ApprovedPart::Within("allowTools"),
        review: |server| match server.tools.deny.as_slice() {
            [] => Vec::new(),
            names => vec![("denyTools", list(names))],
        },
        unknown: Unknown::Refused,
        ..ROW
    },
    ServerKey {
        name: "extension",
        about: "The extension it came with.",
        approved: ApprovedPart::Part(|hasher, server| shown(hasher, "extension", &server.extension)),
        ..ROW
    },
    ServerKey {
        name: "idleTimeout",
        about: "How long it may be unused before it is ended until the next call; 0 for ever.",
        default: "`mcp.idleTimeout`, unless `lazy` is false",
        kind: ServerKeyKind::Pause(|draft, pause| draft.spec.idle_timeout = Some(pause)),
        approved: ApprovedPart::Part(|hasher, server| match &server.idle_timeout {
            Some(idle) => shown(hasher, "idle timeout", idle),
            None => hasher,
        }),
        review: |server| time("idleTimeout", server.idle_timeout),
        ..ROW
    },
    ServerKey {
        name: "oauth",
        about: "How to log in, where that needs more than the server says.",
        kind: ServerKeyKind::Section(OAUTH_KEYS, |draft| _ = draft.oauth()),
        approved: ApprovedPart::Part(|hasher, server| {
            let Some(oauth) = &server.oauth else { return hasher };
            let hasher = hasher.field("oauth", oauth::definition(oauth).as_bytes());
            match &oauth.client_secret {
                Some(secret) => hasher.field("client secret", secret.as_bytes()),
                None => hasher,
            }
        }),
        review: |server| review(OAUTH_KEYS, server),
        ..ROW
    },
    ServerKey { name: "description", about: "What it is, for people.", kind: ServerKeyKind::Remark, ..ROW },
];

const PERMISSION_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "read",
        about: "Further files and folders that it may read: absolute, below `~`, or from the project's root.",
        kind: ServerKeyKind::Texts("a list of paths", |draft, paths| draft.permissions().read = paths),
        approved: ApprovedPart::Within("permissions"),
        ..ROW
    },
    ServerKey {
        name: "write",
        about: "Files and folders that it may write, spelled likewise; a folder that ends in `/` is made if it is not there.",
        kind: ServerKeyKind::Texts("a list of paths", |draft, paths| draft.permissions().write = paths),
        approved: ApprovedPart::Within("permissions"),
        ..ROW
    },
    ServerKey {
        name: "net",
        about: "Whether it may use the network and sockets of this machine.",
        default: "false",
        kind: ServerKeyKind::Flag(|draft, flag| draft.permissions().net = flag),
        approved: ApprovedPart::Within("permissions"),
        ..ROW
    },
];

const LIMIT_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "cpu",
        about: "Time on a processor, with its unit.",
        kind: ServerKeyKind::Span(|draft, time| draft.limits.cpu = Some(time)),
        approved: ApprovedPart::Within("limits"),
        review: |server| time("cpu", limits(server).cpu),
        ..ROW
    },
    ServerKey {
        name: "memory",
        about: "Bytes of memory.",
        kind: ServerKeyKind::Size(|draft, size| draft.limits.memory = Some(size)),
        approved: ApprovedPart::Within("limits"),
        review: |server| number("memory", limits(server).memory),
        ..ROW
    },
    ServerKey {
        name: "processes",
        about: "Processes at once.",
        kind: ServerKeyKind::Count(|draft, count| draft.limits.processes = Some(count)),
        approved: ApprovedPart::Within("limits"),
        review: |server| number("processes", limits(server).processes),
        ..ROW
    },
    ServerKey {
        name: "files",
        about: "Open files at once.",
        kind: ServerKeyKind::Count(|draft, count| draft.limits.files = Some(count)),
        approved: ApprovedPart::Within("limits"),
        review: |server| number("files", limits(server).files),
        ..ROW
    },
    ServerKey {
        name: "fileSize",
        about: "Bytes of a file it writes.",
        kind: ServerKeyKind::Size(|draft, size| draft.limits.file_size = Some(size)),
        approved: ApprovedPart::Within("limits"),
        review: |server| number("fileSize", limits(server).file_size),
        ..ROW
    },
    ServerKey { name: "time", about: "A bound for hooks.", kind: ServerKeyKind::Remark, unhonoured: UNBOUNDED, ..ROW },
    ServerKey {
        name: "output",
        about: "A bound for hooks.",
        kind: ServerKeyKind::Remark,
        unhonoured: UNBOUNDED,
        ..ROW
    },
];

fn shown(hasher: Hasher, label: &str, value: &dyn Debug) -> Hasher {
    hasher.field(label, format!("{value:?}").as_bytes())
}

/// The declared values go in unchanged, and cannot be read back.
fn pairs(hasher: Hasher, label: &str, pairs: &Pairs) -> Hasher {
    pairs
        .0
        .iter()
        .fold(hasher, |hasher, (name, value)| hasher.field(label, name.as_bytes()).field("value", value.as_bytes()))
}

fn limits(server: &ServerSpec) -> LimitsSpec {
    match server.address {
        Address::Command { limits, .. } => limits,
        Address::Url { .. } => LimitsSpec::default(),
    }
}

pub(super) fn line(label: &'static str, value: Option<String>) -> Vec<Row> {
    value.map(|value| (label, value)).into_iter().collect()
}

fn time(label: &'static str, time: Option<Duration>) -> Vec<Row> {
    line(label, time.map(|time| format!("{time:?}")))
}

fn number(label: &'static str, number: Option<u64>) -> Vec<Row> {
    line(label, number.map(|number| number.to_string()))
}

fn flag(label: &'static str, flag: Option<bool>) -> Vec<Row> {
    line(label, flag.map(|flag| flag.to_string()))
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" ")
}

/// A value for review. What sounds secret is only counted, unless it names a variable: a person must see which variable
/// is sent.
pub(super) fn visible<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if looks_secret(name) && !value.contains("${") {
        return format!("[hidden, {} characters]", value.chars().count()).into();
    }
    Cow::Borrowed(value)
}
