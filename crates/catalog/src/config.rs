//! The configuration: from the machine's policy, `config.yaml` of the user and of the project, the environment, and the
//! command line.
//!
//! Later sources override earlier ones, except that a project may only tighten. If a project switches a guard off or
//! sends data elsewhere, that is ignored, and a problem reports it. No source can loosen the policy. One table,
//! [`KEYS`], has all settings.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::Layer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::load::StampSet;
use crate::place::Places;
use crate::problem::Problem;

pub(crate) mod edit;
mod key;
mod kind;
mod layer;
mod older;
mod policy;
mod reference;
mod settings;
mod variables;
mod workspace;
mod written;

pub use edit::{ConfigEdit, Edit, EditError, Migration, change, check_target, forget_extension, migrate};
pub use key::{KEYS, Key, Project, Safety, SetBy};
pub use kind::{ConfigKind, Item};
pub(crate) use layer::{owned_files, read_files, said_around};
pub(crate) use older::{camel, today};
pub(crate) use policy::unsafe_place;
pub use reference::{key_table, schema};
pub use settings::{
    BOX_SOCKETS, DownloadSettings, ExtensionSettings, GUARDS, HookSettings, LogSettings, McpSettings,
    TelemetrySettings, TraceSettings,
};
pub use variables::mistyped_variables;

/// The largest configuration file, in bytes.
pub(crate) const LARGEST_FILE: u64 = 1 << 20;

/// The settings from the command line; they override everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Whether hooks run at all.
    pub enabled: Option<bool>,
    /// The timeout of hooks that declare none.
    pub timeout: Option<Duration>,
    /// Whether guards may only be made stricter. That is so if no person wrote the command line.
    pub tightening: bool,
    /// Any other settings: paths and values in their canonical form.
    settings: Vec<(String, Value)>,
}

impl Overrides {
    /// Adds a setting from its typed text.
    pub fn set(&mut self, path: &str, typed: &str) -> Result<(), EditError> {
        if find_key(path).is_ok_and(|key| key.set_by != SetBy::Anyone) {
            let why = "it counts only in config.yaml of the user, or in the machine's policy".to_owned();
            return Err(EditError::Held { path: path.to_owned(), why });
        }
        let value = edit::typed_value(path, typed)?;
        self.settings.push((path.to_owned(), value));
        Ok(())
    }

    /// Whether any of them is a guard.
    pub fn touch_guards(&self) -> bool {
        self.settings.iter().any(|(path, _)| find_key(path).is_ok_and(|key| key.safety == Safety::Critical))
    }
}

/// The origin of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// No file, variable or option sets it: the default applies.
    Default,
    /// The machine's policy.
    Policy {
        /// The file.
        file: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// The column in characters, counted from one.
        column: usize,
    },
    /// A file.
    File {
        /// The layer of the file.
        layer: Layer,
        /// The file.
        file: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// The column in characters, counted from one.
        column: usize,
    },
    /// An environment variable.
    Variable(Cow<'static, str>),
    /// The system's keyring.
    Keyring,
    /// The command line.
    Flag,
}

/// A value that applies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its path, such as `hooks.timeout`, with the names people chose.
    pub path: String,
    /// Its row in the table.
    #[serde(with = "key::by_path")]
    pub key: &'static Key,
    /// The value in its canonical form: times in milliseconds, sizes in bytes.
    pub value: Value,
    /// Where the value comes from.
    pub origin: Origin,
}

/// A value that was set but does not apply.
#[derive(Clone, Debug, PartialEq)]
pub struct IgnoredValue {
    /// The value, and its origin.
    pub setting: Setting,
    /// Why it does not apply.
    pub why: String,
}

/// The whole configuration: all values that were set, and which of them apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The values that apply, without the defaults.
    said: Vec<Setting>,
    /// The values of a project that only apply to its own declarations.
    own: Vec<Setting>,
    /// The values of the machine's policy.
    #[serde(skip)]
    policy: Vec<Setting>,
    /// The values that do not apply, with the reasons.
    #[serde(skip)]
    pub ignored: Vec<IgnoredValue>,
}

/// The row of the table for a path. The error is a similar path, if there is one.
pub fn find_key(path: &str) -> Result<&'static Key, Option<String>> {
    edit::find(path).map(|(key, _)| key).map_err(|error| match error {
        EditError::Unknown { near, .. } => near,
        _ => None,
    })
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.path == other.path
    }
}

/// Reads the configuration alone, without the hooks.
///
/// ```
/// use ollm_catalog::{Overrides, Places, configuration};
/// # let folder = tempfile::tempdir().unwrap();
/// # let home = folder.path().canonicalize().unwrap().join(".ollm");
/// std::fs::create_dir_all(&home).unwrap();
/// std::fs::write(home.join("config.yaml"), "mcp:\n  connectionTimeout: 5s\n").unwrap();
/// let places = Places { home: home.clone(), ..Places::default() };
/// let (config, problems) = configuration(&places, &|_| None, &Overrides::default());
/// assert_eq!(problems, []);
/// let setting = config.get("mcp.connectionTimeout").unwrap();
/// assert_eq!(setting.value, 5000);
/// assert_eq!(setting.origin.to_string(), format!("{}:2:22", home.join("config.yaml").display()));
/// ```
pub fn configuration(
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
) -> (Config, Vec<Problem>) {
    let mut problems = Vec::new();
    let files = read_files(places, &mut None, &mut StampSet::default(), &mut problems);
    let config = said_around(files, env, overrides, &mut problems);
    (config, problems)
}

impl Config {
    /// The value that applies at this path, with its origin; `None` for an unknown path.
    pub fn get(&self, path: &str) -> Option<Setting> {
        let parts: Vec<&str> = path.split('.').collect();
        let path = key::in_map(&parts).unwrap_or(path);
        self.said(path).cloned().or_else(|| {
            let key = KEYS.iter().find(|key| key.path == path && !key.is_open())?;
            Some(unsaid(key))
        })
    }

    /// All values that apply, including defaults, in the order of the table. A version is only listed if it is set.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for key in KEYS {
            let before = settings.len();
            settings.extend(self.said.iter().filter(|setting| setting.key == key).cloned());
            if settings.len() == before && !key.is_open() && key.path != "version" {
                settings.push(unsaid(key));
            }
        }
        settings
    }

    /// The values of a project that only apply to its own declarations.
    pub fn own(&self) -> &[Setting] {
        &self.own
    }

    fn said(&self, path: &str) -> Option<&Setting> {
        self.said.iter().find(|setting| setting.path == path)
    }

    /// The value at a path of the table.
    fn value(&self, path: &str) -> Value {
        match self.said(path) {
            Some(setting) => setting.value.clone(),
            None => KEYS.iter().find(|key| key.path == path).map(Key::default_value).unwrap_or_default(),
        }
    }

    /// Takes a setting. If it only repeats the policy, it counts as the policy's.
    fn hear(&mut self, setting: Setting) {
        if self.fixed(&setting.path).is_none_or(|fixed| fixed.value != setting.value) {
            self.put(setting);
        } else if let Some(fixed) = self.fixed(&setting.path).cloned() {
            self.put(fixed);
        }
    }

    /// Replaces an earlier value.
    fn put(&mut self, setting: Setting) {
        match self.said.iter_mut().find(|known| known.path == setting.path) {
            Some(known) => *known = setting,
            None => self.said.push(setting),
        }
    }
}

/// The default of a setting.
fn unsaid(key: &'static Key) -> Setting {
    Setting { path: key.path.to_owned(), key, value: key.default_value(), origin: Origin::Default }
}

impl Origin {
    /// The name of the layer.
    pub fn layer(&self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Policy { .. } => "policy",
            Origin::File { layer: Layer::User, .. } => "user",
            Origin::File { layer: Layer::Workspace, .. } => "project",
            Origin::Variable(_) => "environment",
            Origin::Keyring => "keyring",
            Origin::Flag => "command line",
        }
    }

    /// The place for people, with `~` for their home.
    pub fn shown(&self, user_home: Option<&Path>) -> String {
        let below = |file: &Path| user_home.and_then(|home| file.strip_prefix(home).ok().map(Path::to_owned));
        match self {
            Origin::Policy { file, line, column } | Origin::File { file, line, column, .. } => {
                let file = match below(file) {
                    Some(below) => format!("~/{}", below.display()),
                    None => file.display().to_string(),
                };
                if *line > 0 { format!("{file}:{line}:{column}") } else { file }
            }
            Origin::Default => "default".to_owned(),
            Origin::Variable(name) => name.clone().into_owned(),
            Origin::Keyring => "the system keyring".to_owned(),
            Origin::Flag => "the command line".to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown(None))
    }
}
