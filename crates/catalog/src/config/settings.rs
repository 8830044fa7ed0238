//! The settings in the types that the parts of the program use.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::{DefaultBox, Layer, RateLimit, Rules, Source};
use ollm_trust::ApprovalKey;
use serde_json::{Map, Value};

use super::kind::duration;
use super::workspace::{covered_by_all, covers, is_own_work};
use super::{Config, Origin, Setting};
use crate::place::Places;

/// The default of `hooks.timeout`.
pub(crate) const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The names of the built-in guards.
pub const GUARDS: &[&str] = &["destructive-commands", "self-protection"];

/// The programs whose sockets a box can allow.
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
    "nvim",
    "sway",
    "i3",
    "hyprland",
    "kitty",
    "wezterm",
    "vscode",
    "libvirt",
    "lxd",
    "snapd",
];

/// The settings for all hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSettings {
    /// Whether hooks run at all.
    pub enabled: bool,
    /// Its origin: `FILE:LINE:COLUMN`, the name of a variable, `the command line` or `default`.
    pub enabled_from: String,
    /// The timeout of hooks that declare none.
    pub timeout: Option<Duration>,
    /// A shorter timeout for the project's own hooks. A project cannot shorten the timeout of the user's hooks: that
    /// would switch guards off by never letting them finish.
    pub workspace_timeout: Option<Duration>,
    /// Whether hooks that came with a project need no approval.
    pub trust_workspace: bool,
    /// The projects we are in whose hooks need approval in any case.
    pub untrusted_projects: Vec<PathBuf>,
    /// Whether an unapproved hook that fits blocks the operation.
    pub untrusted_blocks: bool,
    /// The programs a hook may name without a path.
    pub whitelist: Vec<String>,
    /// The built-in guards that are on, out of [`GUARDS`].
    pub guards: Vec<String>,
    /// How often all hooks together may run.
    pub rate_limit: RateLimit,
    /// The hosts and addresses that an `http` hook may reach although they are loopback or private.
    pub http_allow: Vec<String>,
    /// The minisign keys whose signature makes a downloaded hook verified.
    pub signature_keys: Vec<String>,
    /// The digests that make a downloaded hook verified.
    pub pins: Vec<String>,
    /// The agents whose own hooks are read where they are.
    pub read: Vec<String>,
    /// Whether hooks without declared permissions run in a box with the minimum.
    pub default_box: DefaultBox,
}

/// The settings for extensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionSettings {
    /// Whether they are loaded at all.
    pub enabled: bool,
    /// The folders with extensions, absolute.
    pub directories: Vec<PathBuf>,
    /// Whether a new extension is on by default.
    pub auto_enable: bool,
    /// The user's settings for them: `extensions.settings.NAME.KEY`.
    pub settings: Vec<Setting>,
}

/// The sources of downloads, and the rules for verifying them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownloadSettings {
    /// The indexes, the first that has a name counts.
    pub indexes: Vec<String>,
    /// The minisign keys whose signature counts.
    pub keys: Vec<String>,
    /// The digests that are known to be good.
    pub pins: Vec<String>,
}

/// The settings for MCP servers.
#[derive(Clone, Debug, PartialEq)]
pub struct McpSettings {
    /// Whether they are started at all.
    pub enabled: bool,
    /// The time limit for a server's first answer.
    pub connection_timeout: Duration,
    /// How long a call of a tool may take.
    pub tool_timeout: Duration,
    /// The idle time after which a server that starts with its first call is ended; without it, never.
    pub idle_timeout: Option<Duration>,
    /// Whether one that crashed is started again.
    pub auto_restart: bool,
    /// Whether one may ask the model: `ask`, `allow` or `deny`.
    pub sampling: String,
    /// Whether servers without declared permissions run in a box with the minimum.
    pub default_box: DefaultBox,
}

/// The settings for the records of dispatches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Whether records are written.
    pub enabled: bool,
    /// How they are shown: `json`, `pretty` or `compact`.
    pub format: String,
    /// The largest size of a record file, in bytes.
    pub max_size: u64,
    /// How many files are kept.
    pub max_files: u64,
    /// Whether the data of events is kept as a whole.
    pub whole_payload: bool,
}

/// The settings for programs that monitor long-running commands; without them, nothing is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The collector that takes spans, by OTLP over HTTP.
    pub otlp_endpoint: Option<String>,
    /// The variable that holds headers for the collector.
    pub otlp_headers: Option<String>,
    /// Whether spans have the data of their events.
    pub otlp_data: bool,
    /// The address that Prometheus can query.
    pub prometheus_listen: Option<String>,
}

/// The settings for the log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Its level: `off`, `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// Its largest size, in bytes.
    pub max_size: u64,
}

impl Default for HookSettings {
    fn default() -> HookSettings {
        Config::default().hooks(&Places::default())
    }
}

impl HookSettings {
    /// The rules that the user's hooks are checked against.
    pub fn rules(&self) -> Rules {
        Rules { whitelist: self.whitelist.clone(), timeout: self.timeout, default_box: self.default_box }
    }
}

impl Config {
    /// The settings for all hooks.
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

    /// The setting with a default for hooks of this source and layer, if there is one.
    pub fn default_for(&self, path: &str, source: Source, layer: Layer) -> Option<&Setting> {
        let own = || self.own.iter().find(|own| own.path == path && layer == Layer::Workspace);
        match source {
            Source::Policy => self.policy().iter().find(|setting| setting.path == path),
            _ => own().or_else(|| self.said(path)),
        }
    }

    /// The key that must have signed the approvals, if a signature is required.
    pub fn approval_key(&self, places: &Places) -> Option<ApprovalKey> {
        let setting = self.said("hooks.approvalKey")?;
        Some(ApprovalKey {
            line: setting.value.as_str()?.to_owned(),
            origin: setting.origin.shown(places.user_home.as_deref()),
            by_policy: matches!(setting.origin, Origin::Policy { .. }),
            floor: self.value("hooks.approvalSerial").as_u64().unwrap_or_default(),
        })
    }

    /// The settings for extensions.
    pub fn extensions(&self, places: &Places) -> ExtensionSettings {
        let directories = self.texts("extensions.directories");
        ExtensionSettings {
            enabled: self.flag("extensions.enabled"),
            directories: directories.iter().flat_map(|folder| places.folders(folder)).collect(),
            auto_enable: self.flag("extensions.autoEnable"),
            settings: self.below("extensions.settings.*.*").cloned().collect(),
        }
    }

    /// The sources of downloads, and the rules for verifying them.
    pub fn downloads(&self) -> DownloadSettings {
        DownloadSettings {
            indexes: self.texts("extensions.indexes"),
            keys: self.texts("hooks.signatureKeys"),
            pins: self.texts("hooks.pins"),
        }
    }

    /// The folders with extensions, each with its layer. The user's come first, then those of projects, outermost
    /// first. Only the user configures them, so all are the user's except those relative to each project. `None` if
    /// extensions are off.
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

    /// The settings for MCP servers.
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

    /// The settings of the model, by name: `provider`, `name`, `baseUrl`, `temperature` and all others that are passed
    /// on.
    pub fn model(&self) -> Vec<(String, Setting)> {
        let named = |setting: &Setting| Some((setting.path.strip_prefix("model.")?.to_owned(), setting.clone()));
        self.said.iter().filter_map(named).collect()
    }

    /// The entries below `user.preferences` or `user.settings` that hooks get, by name.
    pub fn user(&self, section: &str) -> Map<String, Value> {
        let start = format!("user.{section}.");
        let named = |setting: &Setting| Some((setting.path.strip_prefix(&start)?.to_owned(), setting.value.clone()));
        self.said.iter().filter_map(named).filter(|(_, value)| !value.is_null()).collect()
    }

    /// The settings for the records of dispatches.
    pub fn trace(&self) -> TraceSettings {
        TraceSettings {
            enabled: self.flag("trace.enabled"),
            format: self.text("trace.format"),
            max_size: self.value("trace.maxSize").as_u64().unwrap_or_default(),
            max_files: self.value("trace.maxFiles").as_u64().unwrap_or_default(),
            whole_payload: self.text("trace.payload") == "full",
        }
    }

    /// The settings for the log file.
    pub fn log(&self) -> LogSettings {
        LogSettings { level: self.text("log.level"), max_size: self.value("log.maxSize").as_u64().unwrap_or_default() }
    }

    /// The settings for programs that monitor long-running commands.
    pub fn telemetry(&self) -> TelemetrySettings {
        let text = |path: &str| Some(self.text(path)).filter(|text| !text.is_empty());
        TelemetrySettings {
            otlp_endpoint: text("telemetry.otlp.endpoint"),
            otlp_headers: text("telemetry.otlp.headersEnv"),
            otlp_data: self.flag("telemetry.otlp.data"),
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

    /// Whether a project needs no approval: because all projects are trusted, or because the list has it or a folder
    /// above it, with links resolved. The project must not contain other people's work.
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
