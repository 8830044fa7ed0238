//! The configuration: the machine's policy, `config.yaml` of the user and of the project, the environment, the command
//! line.
//!
//! Later ones win, except that a project may only tighten: whatever it says that could switch a guard off or send data
//! elsewhere is ignored, visibly. What the policy says nobody loosens. All settings there are stand in one table, [`KEYS`].

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::Layer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::load::Looked;
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

pub use edit::{Edit, EditError, Edited, Migration, change, check_target, forget_extension, migrate};
pub use key::{KEYS, Key, Project, Safety, SetBy};
pub use kind::{Item, Kind};
pub(crate) use layer::{owned_files, read_files, said_around};
pub(crate) use older::camel;
pub(crate) use policy::unsafe_place;
pub use reference::{key_table, schema};
pub use settings::{
    BOX_SOCKETS, DownloadSettings, ExtensionSettings, GUARDS, HookSettings, LogSettings, McpSettings,
    TelemetrySettings, TraceSettings,
};
pub use variables::mistyped_variables;

/// Larger configuration files are not read.
pub(crate) const LARGEST_FILE: u64 = 1 << 20;

/// What the command line says; it wins over everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Whether hooks run at all.
    pub enabled: Option<bool>,
    /// A timeout for hooks that have none of their own.
    pub timeout: Option<Duration>,
    /// Whether what is a guard may only be made stricter: so it is where no person wrote the command line.
    pub tightening: bool,
    /// Any other settings: paths and values in their canonical form.
    settings: Vec<(String, Value)>,
}

impl Overrides {
    /// Adds a setting, as somebody types it.
    pub fn set(&mut self, path: &str, typed: &str) -> Result<(), EditError> {
        if find_key(path).is_ok_and(|key| key.set_by != SetBy::Anyone) {
            let why = "it counts only in config.yaml of the user, or in the machine's policy".to_owned();
            return Err(EditError::Held { path: path.to_owned(), why });
        }
        let value = edit::typed_value(path, typed)?;
        self.settings.push((path.to_owned(), value));
        Ok(())
    }

    /// Whether there is something among them that is a guard.
    pub fn touch_guards(&self) -> bool {
        self.settings.iter().any(|(path, _)| find_key(path).is_ok_and(|key| key.safety == Safety::Critical))
    }
}

/// Who says what a setting is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Nobody: the default applies.
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
        /// Whose file.
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
    /// Who says so.
    pub origin: Origin,
}

/// A value that does not apply although somebody says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ignored {
    /// What was said, and by whom.
    pub setting: Setting,
    /// Why it does not apply.
    pub why: String,
}

/// Everything that was said, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// What applies, without the defaults.
    said: Vec<Setting>,
    /// What a project says for what it declares itself.
    own: Vec<Setting>,
    /// What the machine's policy says.
    #[serde(skip)]
    policy: Vec<Setting>,
    /// What does not apply, and why.
    #[serde(skip)]
    pub ignored: Vec<Ignored>,
}

/// The row of the table for a path; `Err` with the path that may be meant, if there is one.
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
    let files = read_files(places, &mut None, &mut Looked::default(), &mut problems);
    let config = said_around(files, env, overrides, &mut problems);
    (config, problems)
}

impl Config {
    /// What applies at this path and who says so; nothing for a path that is not known.
    pub fn get(&self, path: &str) -> Option<Setting> {
        self.said(path).cloned().or_else(|| {
            let key = KEYS.iter().find(|key| key.path == path && !key.is_open())?;
            Some(unsaid(key))
        })
    }

    /// Everything that applies, the defaults too, in the order of the table; a version only where it is written.
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

    /// What a project says for what it declares itself.
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

    /// Takes somebody's word; what only repeats the policy stays the policy's.
    fn hear(&mut self, setting: Setting) {
        if self.fixed(&setting.path).is_none_or(|fixed| fixed.value != setting.value) {
            self.put(setting);
        } else if let Some(fixed) = self.fixed(&setting.path).cloned() {
            self.put(fixed);
        }
    }

    /// Puts a value in the place of what was said before.
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
    /// The word for the layer.
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
