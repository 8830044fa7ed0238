//! The settings as the parts of the program use them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::{DefaultBox, Layer, RateLimit, Rules};
use ollm_trust::ApprovalKey;
use serde_json::{Map, Value};

use super::kind::duration;
use super::workspace::{covered_by_all, covers, is_own_work};
use super::{Config, Origin, Setting};
use crate::place::Places;

/// What applies as `hooks.timeout` where nobody says anything.
pub(crate) const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The names of the built-in guards.
pub const GUARDS: &[&str] = &["destructive-commands", "self-protection"];

/// The programs whose sockets a box can leave open.
pub const BOX_SOCKETS: &[&str] = &[
    "docker",
    "podman",
    "containerd",
    "systemd",
    "bus",
    "tmux",
    "screen",
    "zellij",
    "emacs",
    "libvirt",
    "lxd",
    "snapd",
];

/// What applies to all hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSettings {
    /// Whether hooks run at all.
    pub enabled: bool,
    /// Who says so: `FILE:LINE:COLUMN`, the name of a variable, `the command line` or `default`.
    pub enabled_from: String,
    /// A timeout for hooks that have none of their own.
    pub timeout: Option<Duration>,
    /// A shorter one for the project's own hooks, which is all a project can ask for: a shorter one for the user's hooks
    /// would let a project switch guards off by never letting them finish.
    pub workspace_timeout: Option<Duration>,
    /// Whether hooks that came with a project need no approval.
    pub trust_workspace: bool,
    /// The projects we are in whose hooks need it all the same.
    pub untrusted_projects: Vec<PathBuf>,
    /// Whether an unapproved hook that fits blocks the operation.
    pub untrusted_blocks: bool,
    /// The programs a hook may name without a path.
    pub whitelist: Vec<String>,
    /// The built-in guards that are on, out of [`GUARDS`].
    pub guards: Vec<String>,
    /// How often hooks may run, all together.
    pub rate_limit: RateLimit,
    /// The hosts and addresses that an `http` hook may reach although they are loopback or private.
    pub http_allow: Vec<String>,
    /// The minisign keys whose signature makes a downloaded hook verified.
    pub signature_keys: Vec<String>,
    /// The digests that make a downloaded hook verified.
    pub pins: Vec<String>,
    /// The agents whose own hooks are read where they are.
    pub read: Vec<String>,
    /// Whether hooks that declare no permissions are held to the least.
    pub default_box: DefaultBox,
}

/// What applies to extensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionSettings {
    /// Whether they are loaded at all.
    pub enabled: bool,
    /// The folders in which they are looked for, absolute.
    pub directories: Vec<PathBuf>,
    /// Whether a new one is on without being switched on.
    pub auto_enable: bool,
    /// What the user set for them: `extensions.settings.NAME.KEY`.
    pub settings: Vec<Setting>,
}

/// Where extensions are downloaded from, and what makes one verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownloadSettings {
    /// The indexes, the first that has a name counts.
    pub indexes: Vec<String>,
    /// The minisign keys whose signature counts.
    pub keys: Vec<String>,
    /// The digests that are known to be good.
    pub pins: Vec<String>,
}

/// What applies to MCP servers.
#[derive(Clone, Debug, PartialEq)]
pub struct McpSettings {
    /// Whether they are started at all.
    pub enabled: bool,
    /// How long one may take to answer for the first time.
    pub connection_timeout: Duration,
    /// How long a call of a tool may take.
    pub tool_timeout: Duration,
    /// How long one that starts with its first call may be unused; for ever when absent.
    pub idle_timeout: Option<Duration>,
    /// Whether one that crashed is started again.
    pub auto_restart: bool,
    /// Whether one may ask the model: `ask`, `allow` or `deny`.
    pub sampling: String,
    /// Whether those that declare no permissions are held to the least.
    pub default_box: DefaultBox,
}

/// What applies to the records of dispatches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Whether there are any.
    pub enabled: bool,
    /// How they are shown: `json`, `pretty` or `compact`.
    pub format: String,
    /// How large a file of them may grow, in bytes.
    pub max_size: u64,
    /// How many files are kept.
    pub max_files: u64,
    /// Whether the data of events is kept as a whole.
    pub whole_payload: bool,
}

/// What programs that watch long-running commands are told; nothing unless it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The collector that takes spans, by OTLP over HTTP.
    pub otlp_endpoint: Option<String>,
    /// The variable that holds headers for the collector.
    pub otlp_headers: Option<String>,
    /// The address at which Prometheus can ask.
    pub prometheus_listen: Option<String>,
}

/// What applies to the log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// What it holds: `off`, `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// How large it may grow, in bytes.
    pub max_size: u64,
}

impl Default for HookSettings {
    fn default() -> HookSettings {
        Config::default().hooks(&Places::default())
    }
}

impl HookSettings {
    /// What the user's hooks are checked against.
    pub fn rules(&self) -> Rules {
        Rules { whitelist: self.whitelist.clone(), timeout: self.timeout, default_box: self.default_box }
    }
}

impl Config {
    /// What applies to all hooks.
    pub fn hooks(&self, places: &Places) -> HookSettings {
        let enabled = self.said("hooks.enabled");
        let origin = enabled.map_or(&Origin::Default, |setting| &setting.origin);
        let own = self.own.iter().find(|own| own.path == "hooks.timeout");
        let (trusted, untrusted): (Vec<PathBuf>, Vec<PathBuf>) =
            places.projects().map(Path::to_owned).partition(|project| self.trusts(project, places));
        let trust_workspace = !trusted.is_empty() || self.trusts_all();
        HookSettings {
            enabled: self.flag("hooks.enabled"),
            enabled_from: origin.shown(places.user_home.as_deref()),
            timeout: duration(&self.value("hooks.timeout")),
            workspace_timeout: own.and_then(|own| duration(&own.value)),
            trust_workspace,
            untrusted_projects: if trust_workspace { untrusted } else { Vec::new() },
            untrusted_blocks: self.value("hooks.untrusted") == "block",
            whitelist: self.texts("hooks.whitelist"),
            guards: self.texts("hooks.guards"),
            rate_limit: RateLimit {
                per_minute: self
                    .value("hooks.rateLimit.perMinute")
                    .as_u64()
                    .map(|count| count.try_into().unwrap_or(u32::MAX)),
                cooldown: duration(&self.value("hooks.rateLimit.cooldownMs")).filter(|time| !time.is_zero()),
            },
            http_allow: self.texts("hooks.http.allow"),
            signature_keys: self.texts("hooks.signatureKeys"),
            pins: self.texts("hooks.pins"),
            read: self.texts("hooks.read"),
            default_box: self.default_box("hooks.box"),
        }
    }

    /// The key that must have signed the approvals, if one must.
    pub fn approval_key(&self, places: &Places) -> Option<ApprovalKey> {
        let setting = self.said("hooks.approvalKey")?;
        Some(ApprovalKey {
            line: setting.value.as_str()?.to_owned(),
            origin: setting.origin.shown(places.user_home.as_deref()),
            by_policy: matches!(setting.origin, Origin::Policy { .. }),
            floor: self.value("hooks.approvalSerial").as_u64().unwrap_or_default(),
        })
    }

    /// What applies to extensions.
    pub fn extensions(&self, places: &Places) -> ExtensionSettings {
        let directories = self.texts("extensions.directories");
        ExtensionSettings {
            enabled: self.flag("extensions.enabled"),
            directories: directories.iter().flat_map(|folder| places.folders(folder)).collect(),
            auto_enable: self.flag("extensions.autoEnable"),
            settings: self.below("extensions.settings.*.*").cloned().collect(),
        }
    }

    /// Where extensions are downloaded from, and what makes one verified.
    pub fn downloads(&self) -> DownloadSettings {
        DownloadSettings {
            indexes: self.texts("extensions.indexes"),
            keys: self.texts("hooks.signatureKeys"),
            pins: self.texts("hooks.pins"),
        }
    }

    /// The folders in which extensions are looked for, and whose they are, the user's first, then those of projects, outermost
    /// first. Only the user says which they are, so all are the user's but those that lie in every project: it makes no
    /// difference where one stands. None where no extension is loaded.
    pub(crate) fn extension_folders(&self, places: &Places) -> Option<Vec<(PathBuf, Layer)>> {
        if !self.flag("extensions.enabled") {
            return None;
        }
        let layer = |written: &str| {
            let fixed = written.starts_with('~') || Path::new(written).is_absolute();
            if fixed { Layer::User } else { Layer::Workspace }
        };
        let written = self.texts("extensions.directories");
        let mut folders: Vec<(PathBuf, Layer)> =
            written.iter().flat_map(|one| places.folders(one).into_iter().map(|folder| (folder, layer(one)))).collect();
        folders.sort_by_key(|(folder, layer)| (*layer, !folder.starts_with(&places.home)));
        Some(folders)
    }

    /// What applies to MCP servers.
    pub fn mcp(&self) -> McpSettings {
        McpSettings {
            enabled: self.flag("mcp.enabled"),
            connection_timeout: duration(&self.value("mcp.connectionTimeout")).unwrap_or_default(),
            tool_timeout: duration(&self.value("mcp.toolTimeout")).unwrap_or_default(),
            idle_timeout: duration(&self.value("mcp.idleTimeout")).filter(|time| !time.is_zero()),
            auto_restart: self.flag("mcp.autoRestart"),
            sampling: self.text("mcp.sampling"),
            default_box: self.default_box("mcp.box"),
        }
    }

    /// What is said about the model, by name: `provider`, `name`, `baseUrl`, `temperature` and whatever else is handed on.
    pub fn model(&self) -> Vec<(String, Setting)> {
        let named = |setting: &Setting| Some((setting.path.strip_prefix("model.")?.to_owned(), setting.clone()));
        self.said.iter().filter_map(named).collect()
    }

    /// What hooks are told about the person below `user.preferences` or `user.settings`, by name.
    pub fn user(&self, section: &str) -> Map<String, Value> {
        let start = format!("user.{section}.");
        let named = |setting: &Setting| Some((setting.path.strip_prefix(&start)?.to_owned(), setting.value.clone()));
        self.said.iter().filter_map(named).filter(|(_, value)| !value.is_null()).collect()
    }

    /// What applies to the records of dispatches.
    pub fn trace(&self) -> TraceSettings {
        TraceSettings {
            enabled: self.flag("trace.enabled"),
            format: self.text("trace.format"),
            max_size: self.value("trace.maxSize").as_u64().unwrap_or_default(),
            max_files: self.value("trace.maxFiles").as_u64().unwrap_or_default(),
            whole_payload: self.text("trace.payload") == "full",
        }
    }

    /// What applies to the log file.
    pub fn log(&self) -> LogSettings {
        LogSettings { level: self.text("log.level"), max_size: self.value("log.maxSize").as_u64().unwrap_or_default() }
    }

    /// What programs that watch long-running commands are told.
    pub fn telemetry(&self) -> TelemetrySettings {
        let text = |path: &str| Some(self.text(path)).filter(|text| !text.is_empty());
        TelemetrySettings {
            otlp_endpoint: text("telemetry.otlp.endpoint"),
            otlp_headers: text("telemetry.otlp.headersEnv"),
            prometheus_listen: text("telemetry.prometheus.listen"),
        }
    }

    fn flag(&self, path: &str) -> bool {
        self.value(path).as_bool().unwrap_or_default()
    }

    fn text(&self, path: &str) -> String {
        self.value(path).as_str().unwrap_or_default().to_owned()
    }

    fn default_box(&self, path: &str) -> DefaultBox {
        DefaultBox::from_name(&self.text(path))
    }

    fn texts(&self, path: &str) -> Vec<String> {
        let value = self.value(path);
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn below(&self, pattern: &'static str) -> impl Iterator<Item = &Setting> {
        self.said.iter().filter(move |setting| setting.key.path == pattern)
    }

    fn trusts_all(&self) -> bool {
        self.value("hooks.trustWorkspace") == true
    }

    /// Whether a project needs no approval: all projects, or it is one of the paths or below one of them, with links
    /// resolved, and nobody else's within it.
    fn trusts(&self, project: &Path, places: &Places) -> bool {
        let Ok(project) = project.canonicalize() else { return false };
        let Value::Array(_) = self.value("hooks.trustWorkspace") else {
            let is_covered = |folder: &Path| covered_by_all(folder, &places.home);
            return self.trusts_all() && is_covered(&project) && is_own_work(&project, is_covered);
        };
        let paths = self.texts("hooks.trustWorkspace");
        let real: Vec<PathBuf> = paths.iter().filter_map(|path| places.folder(path)?.canonicalize().ok()).collect();
        let is_covered = |folder: &Path| real.iter().any(|path| covers(path, folder, &places.home));
        is_covered(&project) && is_own_work(&project, is_covered)
    }
}
