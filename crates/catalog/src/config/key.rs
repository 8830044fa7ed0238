//! The table of all settings. Validation, layers, `config show`, the JSON Schema and the reference derive from it.

use std::sync::LazyLock;
use std::time::Duration;

use super::kind::{ConfigKind, Item};
use crate::mcp::{SERVER_KEYS, ServerKey, ServerKeyKind, TRANSPORTS, TextForm};

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its path, such as `hooks.timeout`; `*` means any name.
    pub path: &'static str,
    /// The kind of its values.
    pub kind: ConfigKind,
    /// The default, in JSON.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// How far a project may change it.
    pub project: Project,
    /// How much safety depends on it.
    pub safety: Safety,
    /// The variable that sets it.
    pub variable: Option<&'static str>,
    /// An older variable that also sets it, and the kind of that variable's values.
    pub older_variable: Option<(&'static str, ConfigKind)>,
    /// The only value, in JSON, that a variable may set. So the program that starts us cannot loosen it.
    pub variable_only: Option<&'static str>,
    /// The sources that may set it.
    pub set_by: SetBy,
}

/// The sources that may set a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// Files, a variable, the command line.
    Anyone,
    /// The user's file and the machine's policy.
    Files,
    /// The machine's policy alone.
    Policy,
}

/// How far a project's own configuration may change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Project {
    /// Not at all, for this reason.
    Never(&'static str),
    /// Only to this value, in JSON; the reason why not to others.
    Only(&'static str, &'static str),
    /// A smaller value.
    Lower,
    /// A smaller value, which applies to the project's own declarations.
    OwnLower,
    /// More entries, but not fewer.
    More(&'static str),
    /// Names that the user has not used.
    New(&'static str),
    /// Any value, because it guards nothing.
    Any,
}

/// How much safety depends on a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Nothing, only comfort.
    Plain,
    /// It could weaken a guard, so agents may not change it.
    Guarded,
    /// It is a guard. Agents may not change it, and an invalid value stops the program.
    Critical,
}

const MS: ConfigKind = ConfigKind::Time(Duration::from_millis(1));
const SECONDS: ConfigKind = ConfigKind::Time(Duration::from_secs(1));
const WHOLE: ConfigKind = ConfigKind::Count(1, u64::MAX);
const WORDS: ConfigKind = ConfigKind::Text(Item::Words);
const LEVEL: ConfigKind = ConfigKind::Choice(&["off", "error", "warn"]);

const SWITCH: Project = Project::Never("a project cannot switch parts of the user's program on or off");
const ELSEWHERE: Project = Project::Never("a project cannot decide where the user's data goes");
const USERS: Project = Project::Never("only the user decides about this");
const VOUCH: Project = Project::Never("a project cannot vouch for itself");

/// All settings except the keys of a server, in the order for people.
pub const KEYS: &[Key] = &[
    key("version", ConfigKind::Count(1, 1), "1", "The version of the file's form.").project(Project::Any),
    key("hooks.enabled", ConfigKind::Flag, "true", "Whether hooks run at all. The built-in guards do in any case: `hooks.guards`.")
        .variable("OLLM_HOOKS_ENABLED")
        .variable_only("true")
        .project(Project::Never("a project cannot switch the user's hooks on or off"))
        .critical(),
    key("hooks.timeout", MS, "null", "How long a hook without a timeout of its own may take. Unset, its dialect decides: 30 s, in `gate` 5 s.")
        .variable("OLLM_HOOKS_TIMEOUT")
        .older_variable("HOOKS_TIMEOUT", SECONDS)
        .project(Project::OwnLower)
        .guarded(),
    key("hooks.trustWorkspace", ConfigKind::Trust, "false", "Whether hooks that came with a project need no approval: in all projects, in none, or in those at or below the listed paths; never in vendored folders (`node_modules`, `vendor`, …) nor in a repository within a project.")
        .project(Project::Only("false", "a project cannot vouch for itself"))
        .critical(),
    key("hooks.untrusted", ConfigKind::Choice(&["skip", "block"]), "\"skip\"", "What an unapproved hook that fits means: it is skipped, visibly, or the operation is blocked.")
        .variable("OLLM_HOOKS_UNTRUSTED")
        .variable_only("\"block\"")
        .project(Project::Only("\"block\"", "a project cannot decide that unapproved hooks do not matter"))
        .critical(),
    key("hooks.approveByDigest", ConfigKind::Flag, "true", "Whether a script may approve something by naming its digest. Otherwise only a person on a terminal can.")
        .variable("OLLM_HOOKS_APPROVE_BY_DIGEST")
        .variable_only("false")
        .project(Project::Only("false", "a project cannot decide how it is approved"))
        .critical(),
    key("hooks.approvalKey", ConfigKind::Text(Item::PublicKey), "null", "The minisign key that must have signed the list of approvals: an approval counts only with its signature, for which a person's passphrase is asked.")
        .set_by(SetBy::Files)
        .project(VOUCH)
        .critical(),
    key("hooks.approvalSerial", WHOLE, "null", "The lowest serial of a signed list of approvals that counts, so that no older list can be put back.")
        .set_by(SetBy::Policy)
        .project(VOUCH)
        .critical(),
    key("hooks.whitelist", ConfigKind::List(Item::Program), r#"["node","python","python3","bash","sh","npx","uvx"]"#, "The programs a hook may name without a path.")
        .project(Project::Never("only the user decides which programs need no path"))
        .critical(),
    key("hooks.box", ConfigKind::Choice(&["on", "declared"]), "\"on\"", "Which hooks of projects and extensions run in a box. `on`: all, and one without `permissions` has the least. `declared`: only those that declare `permissions`.")
        .set_by(SetBy::Files)
        .project(Project::Only("\"on\"", "a project cannot open the box of its hooks"))
        .critical(),
    key("hooks.guards", ConfigKind::Guards, r#"["destructive-commands","self-protection"]"#, "The built-in guards that are on.")
        .project(Project::More("a project cannot switch guards off"))
        .critical(),
    key("hooks.rateLimit.perMinute", ConfigKind::Count(1, 0xffff_ffff), "null", "How many hooks may run in any sixty seconds, all together. Unset, there is no limit.")
        .variable("OLLM_HOOKS_RATE_LIMIT_PER_MINUTE")
        .guarded(),
    key("hooks.rateLimit.cooldownMs", ConfigKind::Pause, "0", "How long to wait after a hook has run before the same one runs again.")
        .variable("OLLM_HOOKS_RATE_LIMIT_COOLDOWN_MS")
        .guarded(),
    key("hooks.maxContinuations", ConfigKind::Count(1, 1000), "8", "How often hooks of after_agent may keep one turn of the agent going.")
        .variable("OLLM_HOOKS_MAX_CONTINUATIONS")
        .project(Project::Lower),
    key("hooks.http.allow", ConfigKind::List(Item::Host), "[]", "The hosts and addresses that an `http` hook may reach although they are loopback or private.")
        .project(ELSEWHERE)
        .critical(),
    key("hooks.signatureKeys", ConfigKind::List(Item::PublicKey), "[]", "The minisign keys whose signature makes a downloaded extension verified: it needs no further approval.")
        .project(VOUCH)
        .critical(),
    key("hooks.pins", ConfigKind::List(Item::Digest), "[]", "The digests that make a downloaded extension verified, of its archive or of its folder: it needs no further approval.")
        .project(VOUCH)
        .critical(),
    key("hooks.read", ConfigKind::List(Item::Agent), "[]", "The agents whose own hooks are read where they are, in your settings of those agents and in a project's. They run under every other agent, too; those of a project need approval.")
        .project(Project::Never("only the user decides whose hooks are read"))
        .guarded(),
    key("extensions.enabled", ConfigKind::Flag, "true", "Whether extensions are loaded at all.")
        .variable("OLLM_EXTENSIONS_ENABLED")
        .project(SWITCH)
        .guarded(),
    key("extensions.directories", ConfigKind::List(Item::Folder), r#"["~/.ollm/extensions",".ollm/extensions"]"#, "The folders in which extensions are looked for; relative ones lie in the project.")
        .guarded(),
    key("extensions.autoEnable", ConfigKind::Flag, "true", "Whether a new extension is on without being switched on. Its hooks need approval in any case.")
        .variable("OLLM_EXTENSIONS_AUTO_ENABLE")
        .guarded(),
    key("extensions.indexes", ConfigKind::List(Item::Words), r#"["builtin"]"#, "The indexes that extensions are searched and installed from, the first that has a name counts: `https` addresses, files, and `builtin` for those that are part of the program.")
        .project(ELSEWHERE)
        .guarded(),
    key("extensions.settings.*.*", ConfigKind::Setting, "null", "A setting of an extension, by the extension's name and the setting's. Sensitive ones are kept apart.")
        .guarded(),
    key("mcp.enabled", ConfigKind::Flag, "true", "Whether MCP servers are started at all.")
        .variable("OLLM_MCP_ENABLED")
        .project(SWITCH)
        .guarded(),
    key("mcp.connectionTimeout", MS, "10000", "How long a server may take to answer for the first time.")
        .variable("OLLM_MCP_CONNECTION_TIMEOUT"),
    key("mcp.toolTimeout", MS, "60000", "How long a call of a tool may take.").variable("OLLM_MCP_TOOL_TIMEOUT"),
    key("mcp.idleTimeout", ConfigKind::Pause, "600000", "How long a server that starts with its first call may be unused before it is ended until the next one; 0 for ever.")
        .variable("OLLM_MCP_IDLE_TIMEOUT"),
    key("mcp.autoRestart", ConfigKind::Flag, "false", "Whether a server that crashed is started again.")
        .variable("OLLM_MCP_AUTO_RESTART"),
    key("mcp.box", ConfigKind::Choice(&["on", "declared"]), "\"on\"", "Which servers of projects and extensions run in a box. `on`: all, and one without `permissions` has the least. `declared`: only those that declare `permissions`.")
        .set_by(SetBy::Files)
        .project(Project::Only("\"on\"", "a project cannot open the box of its servers"))
        .critical(),
    key("mcp.sampling", ConfigKind::Choice(&["ask", "allow", "deny"]), "\"ask\"", "Whether a server may ask the model: after the person was asked, always, or never.")
        .variable("OLLM_MCP_SAMPLING")
        .project(Project::Only("\"deny\"", "a project cannot lend the user's model to servers"))
        .guarded(),
    key("mcp.servers.*", ConfigKind::Server, "null", "An MCP server, by its name. One that a project declares needs approval.")
        .project(Project::New("a project cannot replace a server of the user"))
        .guarded(),
    key("model.provider", WORDS, "null", "Who runs the model.").variable("OLLM_MODEL_PROVIDER").project(ELSEWHERE).guarded(),
    key("model.name", WORDS, "null", "The model.").variable("OLLM_MODEL_NAME").project(ELSEWHERE).guarded(),
    key("model.baseUrl", ConfigKind::Text(Item::Url), "null", "Where the model is reached.")
        .variable("OLLM_MODEL_BASE_URL")
        .project(ELSEWHERE)
        .critical(),
    key("model.apiKeyEnv", ConfigKind::Text(Item::Variable), "null", "The variable that holds the key for the model.")
        .variable("OLLM_MODEL_API_KEY_ENV")
        .project(ELSEWHERE)
        .guarded(),
    key("model.temperature", ConfigKind::Number(0.0, 2.0), "null", "How free the model's answers are.")
        .variable("OLLM_MODEL_TEMPERATURE")
        .project(Project::Any),
    key("model.maxTokens", WHOLE, "null", "The longest answer, in tokens.")
        .variable("OLLM_MODEL_MAX_TOKENS")
        .project(Project::Lower),
    key("model.contextWindow", WHOLE, "null", "How many tokens the model can look at.")
        .variable("OLLM_MODEL_CONTEXT_WINDOW")
        .project(Project::Lower),
    key("model.maxRepeats", ConfigKind::Count(1, 1000), "3", "How often the model may repeat a call, or a cycle of calls, with the same results, before it is stopped.")
        .variable("OLLM_MODEL_MAX_REPEATS")
        .project(Project::Lower),
    key("model.timeout", MS, "300000", "How long the model's server may be silent, before and between the words of an answer.")
        .variable("OLLM_MODEL_TIMEOUT")
        .project(Project::Lower),
    key("model.*", ConfigKind::Any, "null", "Anything else goes to the provider unchanged.").project(ELSEWHERE).guarded(),
    key("agent.box", ConfigKind::Choice(&["on", "strict", "off"]), "\"on\"", "The box that shell commands of our own agent run in. `on`: protected files cannot be changed. `strict`: beyond that, only the project, temporary folders and caches can be written, and secrets cannot be read. `off`: there is none. It can be a map, too: `{policy: strict, sockets: [docker]}`.")
        .set_by(SetBy::Files)
        .project(Project::Only("\"strict\"", "a project cannot open the box of the user"))
        .critical(),
    key("agent.boxSockets", ConfigKind::List(Item::Socket), "[]", "The programs whose sockets can be reached from the box although they run commands outside of it; also `agent.box.sockets`: `docker`, `podman`, `containerd`, `systemd`, `bus`, `tmux`, `screen`, `zellij`, `emacs`, `nvim`, `sway`, `i3`, `hyprland`, `kitty`, `wezterm`, `vscode`, `libvirt`, `lxd`, `snapd`.")
        .set_by(SetBy::Files)
        .critical(),
    key("user.preferences.*", ConfigKind::Any, "null", "What hooks are told about you under `user.preferences`; the names are your own."),
    key("user.settings.*", ConfigKind::Any, "null", "What hooks are told about you under `user.settings`; the names are your own."),
    key("trace.enabled", ConfigKind::Flag, "true", "Whether every dispatch leaves a record.")
        .variable("OLLM_TRACE_ENABLED")
        .older_variable("OLLM_TRACE", ConfigKind::Flag)
        .project(SWITCH)
        .guarded(),
    key("trace.format", ConfigKind::Choice(&["json", "pretty", "compact"]), "\"pretty\"", "How the records of the trace are shown.")
        .variable("OLLM_TRACE_FORMAT")
        .project(Project::Any),
    key("trace.maxSize", ConfigKind::Size, "4194304", "How large a file of records may grow, in bytes or as \"16MiB\".")
        .variable("OLLM_TRACE_MAX_SIZE")
        .guarded(),
    key("trace.maxFiles", ConfigKind::Count(1, 1000), "4", "How many files of records are kept.")
        .variable("OLLM_TRACE_MAX_FILES")
        .guarded(),
    key("trace.payload", ConfigKind::Choice(&["short", "full"]), "\"short\"", "How much of an event's data its record has. `short`: as much as people read. `full`: all of it up to 60 KiB, without secrets, so that the event can be replayed.")
        .variable("OLLM_TRACE_PAYLOAD")
        .project(Project::Only("\"short\"", "a project cannot have more kept of what you do")),
    key("telemetry.otlp.endpoint", ConfigKind::Text(Item::Words), "null", "The collector of OpenTelemetry that gets a span for every event and every hook of long-running commands, by OTLP over HTTP, as in `http://127.0.0.1:4318`. The data of events only with `telemetry.otlp.data`.")
        .variable("OLLM_TELEMETRY_OTLP_ENDPOINT")
        .project(ELSEWHERE),
    key("telemetry.otlp.headersEnv", ConfigKind::Text(Item::Variable), "\"OTEL_EXPORTER_OTLP_HEADERS\"", "The variable that holds headers for the collector, such as a key, as OpenTelemetry writes them: `name=value,name=value`.")
        .variable("OLLM_TELEMETRY_OTLP_HEADERS_ENV")
        .project(ELSEWHERE),
    key("telemetry.otlp.data", ConfigKind::Flag, "false", "Whether spans have the data of their events, as the trace has it: shortened, and without secrets.")
        .variable("OLLM_TELEMETRY_OTLP_DATA")
        .project(ELSEWHERE),
    key("telemetry.prometheus.listen", ConfigKind::Text(Item::Words), "null", "The address at which Prometheus can ask long-running commands for numbers, as in `127.0.0.1:9464`; everybody who reaches it can read the names of your hooks.")
        .variable("OLLM_TELEMETRY_PROMETHEUS_LISTEN")
        .project(ELSEWHERE),
    key("log.level", LEVEL, "\"warn\"", "What the log file holds: nothing, failures, or all that was told.")
        .variable("OLLM_LOG_LEVEL")
        .older_variable("OLLM_LOG", LEVEL)
        .guarded(),
    key("log.maxSize", ConfigKind::Size, "1048576", "How large the log file may grow, in bytes or as \"16MiB\".")
        .variable("OLLM_LOG_MAX_SIZE"),
];

const fn key(path: &'static str, kind: ConfigKind, default: &'static str, about: &'static str) -> Key {
    Key {
        path,
        kind,
        default,
        about,
        project: USERS,
        safety: Safety::Plain,
        variable: None,
        older_variable: None,
        variable_only: None,
        set_by: SetBy::Anyone,
    }
}

/// The keys of a server as settings. A server's entry applies as a whole or not at all.
static SERVER: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let setting = |row: &'static ServerKey| {
        // This runs once, and the text must live as long as the table.
        let path = format!("mcp.servers.*.{}", row.name).leak();
        let key = key(path, kind(row)?, "null", row.about);
        Some(key.project(Project::New("a project cannot replace a server of the user")).guarded())
    };
    SERVER_KEYS.iter().filter_map(setting).collect()
});

/// The kind of a server key's values; `None` if the key is not a setting.
fn kind(row: &'static ServerKey) -> Option<ConfigKind> {
    Some(match row.kind {
        ServerKeyKind::Place => return None,
        ServerKeyKind::Remark => ConfigKind::Text(Item::Free),
        ServerKeyKind::Text(_, TextForm::Address, _) => ConfigKind::Text(Item::Url),
        ServerKeyKind::Text(..) | ServerKeyKind::Span(_) => WORDS,
        ServerKeyKind::Texts(..) | ServerKeyKind::Words(_) => ConfigKind::List(Item::Free),
        ServerKeyKind::Variables(_) | ServerKeyKind::Headers(_) => ConfigKind::Pairs,
        ServerKeyKind::Transport(_) => ConfigKind::Choice(TRANSPORTS),
        ServerKeyKind::Flag(_) | ServerKeyKind::Switch(_) => ConfigKind::Flag,
        ServerKeyKind::Time(_) => MS,
        ServerKeyKind::Pause(_) => ConfigKind::Pause,
        ServerKeyKind::Size(_) => ConfigKind::Size,
        ServerKeyKind::Count(_) => ConfigKind::Count(0, u64::MAX),
        ServerKeyKind::Port(_) => ConfigKind::Count(1, 0xffff),
        ServerKeyKind::Section(keys, _) => ConfigKind::Parts(keys),
    })
}

/// All settings, including the keys of a server.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().flat_map(|key| {
        std::iter::once(key).chain(if key.kind == ConfigKind::Server { SERVER.iter() } else { [].iter() })
    })
}

/// A key of a server as a setting.
pub(crate) fn of_server(name: &str) -> Option<&'static Key> {
    SERVER.iter().find(|key| key.path.rsplit('.').next() == Some(name))
}

impl Key {
    const fn project(mut self, project: Project) -> Key {
        self.project = project;
        self
    }

    const fn guarded(mut self) -> Key {
        self.safety = Safety::Guarded;
        self
    }

    const fn critical(mut self) -> Key {
        self.safety = Safety::Critical;
        self
    }

    const fn variable(mut self, name: &'static str) -> Key {
        self.variable = Some(name);
        self
    }

    const fn variable_only(mut self, value: &'static str) -> Key {
        self.variable_only = Some(value);
        self
    }

    const fn set_by(mut self, set_by: SetBy) -> Key {
        self.set_by = set_by;
        self
    }

    const fn older_variable(mut self, name: &'static str, kind: ConfigKind) -> Key {
        self.older_variable = Some((name, kind));
        self
    }

    /// Whether the path contains names that people choose.
    pub fn is_open(&self) -> bool {
        self.path.contains('*')
    }

    /// The default as a value.
    pub fn default_value(&self) -> serde_json::Value {
        serde_json::from_str(self.default).unwrap_or_default()
    }

    /// The rest of this key's path below a section: empty for the section itself, `None` if the key is not below it.
    fn rest(&self, section: &[&str]) -> Option<&'static str> {
        section.iter().try_fold(self.path, |rest, name| {
            // Most keys differ in their first letters.
            if rest.is_empty() || !(rest.starts_with(name) || rest.starts_with('*')) {
                return None;
            }
            let (part, after) = rest.split_once('.').unwrap_or((rest, ""));
            (part == *name || part == "*").then_some(after)
        })
    }

    /// The next part of this key's path below a section; `None` if the key is not below it.
    fn below(&self, section: &[&str]) -> Option<&'static str> {
        self.rest(section).filter(|rest| !rest.is_empty()).and_then(|rest| rest.split('.').next())
    }
}

/// What a path means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyPlace {
    /// A setting.
    Leaf(&'static Key),
    /// A map of settings.
    Section,
    /// A value that is passed on unchecked.
    Open(&'static Key),
    /// An unknown path.
    Nowhere,
}

pub(crate) fn place(path: &[&str]) -> KeyPlace {
    if let ["mcp", "servers", _, name] = path {
        return of_server(name).map_or(KeyPlace::Nowhere, KeyPlace::Leaf);
    }
    let mut place = KeyPlace::Nowhere;
    for key in KEYS {
        match key.rest(path) {
            Some("") if key.kind != ConfigKind::Any => return KeyPlace::Leaf(key),
            Some("") => place = KeyPlace::Open(key),
            Some(_) => place = KeyPlace::Section,
            None => {}
        }
    }
    place
}

/// A setting that can also be a map: its names, and the setting for each.
type SettingMap = (&'static str, &'static [(&'static str, &'static str)]);

/// The settings that can be maps.
const MAPS: &[SettingMap] = &[("agent.box", &[("policy", "agent.box"), ("sockets", "agent.boxSockets")])];

/// All settings that can be maps.
pub(crate) fn maps() -> impl Iterator<Item = SettingMap> {
    MAPS.iter().copied()
}

/// The names in the map form of a setting.
pub(crate) fn map_of(path: &[&str]) -> Option<&'static [(&'static str, &'static str)]> {
    MAPS.iter().find(|(map, _)| map.split('.').eq(path.iter().copied())).map(|(_, names)| *names)
}

/// The setting for a name in such a map.
pub(crate) fn in_map(path: &[&str]) -> Option<&'static str> {
    let (name, map) = path.split_last()?;
    map_of(map)?.iter().find(|(known, _)| known == name).map(|(_, setting)| *setting)
}

/// Whether a section contains a guard.
pub(crate) fn guards(section: &[&str]) -> bool {
    KEYS.iter().any(|key| key.safety == Safety::Critical && key.below(section).is_some())
}

/// The known names below a section.
pub(crate) fn names(section: &[&str]) -> Vec<&'static str> {
    let mut names: Vec<&str> = all().filter_map(|key| key.below(section)).filter(|name| *name != "*").collect();
    names.dedup();
    names
}

/// Serializes a row as its path.
pub(super) mod by_path {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{KEYS, Key};

    pub(crate) fn serialize<S: Serializer>(key: &'static Key, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(key.path)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Key, D::Error> {
        let path = String::deserialize(deserializer)?;
        KEYS.iter().find(|key| key.path == path).ok_or_else(|| D::Error::custom("no such setting"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ReadValue;

    #[test]
    fn every_setting_stands_once_and_is_described() {
        for (index, key) in all().enumerate() {
            assert!(all().skip(index + 1).all(|other| other.path != key.path), "{}", key.path);
            assert!(key.about.ends_with('.') && key.about.starts_with(char::is_uppercase), "{}", key.path);
        }
    }

    #[test]
    fn every_default_is_a_value_its_kind_allows() {
        for key in KEYS.iter().filter(|key| key.default != "null") {
            let node = crate::file::parse(key.default, crate::file::Syntax::Json).unwrap();
            assert_eq!(key.kind.read(&node), ReadValue::Exact(key.default_value()), "{}", key.path);
        }
    }

    #[test]
    fn every_scalar_setting_has_the_variable_of_its_path_and_nothing_else_has_one() {
        for key in all() {
            let scalar = matches!(
                key.kind,
                ConfigKind::Flag
                    | ConfigKind::Time(_)
                    | ConfigKind::Pause
                    | ConfigKind::Count(..)
                    | ConfigKind::Number(..)
                    | ConfigKind::Size
                    | ConfigKind::Choice(_)
                    | ConfigKind::Text(_)
            );
            let words = key.path.chars().flat_map(|letter| {
                let line = (letter.is_uppercase() || letter == '.').then_some('_');
                line.into_iter().chain((letter != '.').then(|| letter.to_ascii_uppercase()))
            });
            let name = format!("OLLM_{}", words.collect::<String>());
            let wanted =
                (scalar && !key.is_open() && key.path != "version" && key.set_by == SetBy::Anyone).then_some(name);
            assert_eq!(key.variable.map(str::to_owned), wanted, "{}", key.path);
        }
    }

    #[test]
    fn nothing_that_guards_is_open_to_projects() {
        for key in KEYS.iter().filter(|key| key.safety != Safety::Plain) {
            assert!(!matches!(key.project, Project::Any | Project::Lower), "{}", key.path);
        }
    }
}
