//! The surroundings that the process was started with. Nothing else reads the environment, the home or the clock.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use ollm_catalog::{Config, LogSettings, Overrides, Places, Problem, find_projects};
use ollm_net::Network;
use ollm_protocol::{Code, Commands, Remedy};
use ollm_store::{Hidden, Keyring, looks_secret};
use ollm_trust::{Trust, TrustContext};

use crate::approval_key;
use crate::error::AppError;
use crate::port::{Notices, Person};

/// Longer chains of links are not followed.
const MOST_LINKS: usize = 40;

/// The process's surroundings, read once.
#[derive(Clone, Debug)]
pub struct AppContext {
    /// The variables of the environment.
    pub variables: Vec<(OsString, OsString)>,
    /// The working folder.
    pub cwd: PathBuf,
    /// The folders that files are kept in.
    pub places: Places,
    /// The program that helper processes are started from; without one, async hooks run on threads.
    pub program: Option<PathBuf>,
    /// The settings given on the command line.
    pub overrides: Overrides,
    /// The connection to servers over the network.
    pub network: Network,
    /// The secrets that were fetched so far; they are hidden in all output.
    pub hidden: Hidden,
    /// The configured log settings, once the configuration was read.
    log: OnceLock<LogSettings>,
    /// The person who can answer questions, if there is one.
    pub person: Option<Arc<dyn Person>>,
    /// The names of the program's commands, for hints to the person.
    pub commands: Commands,
    /// Oddities of the surroundings, one line each.
    pub(crate) oddities: Vec<String>,
}

impl AppContext {
    /// The surroundings of a process with these variables, in this folder, of the user with this home.
    pub fn new(variables: Vec<(OsString, OsString)>, cwd: PathBuf, user_home: Option<PathBuf>) -> AppContext {
        let user_home = user_home.filter(|home| home.is_absolute());
        let own = user_home.as_ref().map_or_else(nowhere, |home| home.join(".ollm"));
        let moved = variables.iter().find(|(name, value)| name == "OLLM_HOME" && !value.is_empty());
        let moved = moved.map(|(_, value)| cwd.join(value));
        let mut oddities = Vec::new();
        let mut home = own.clone();
        if let Some(moved) = moved {
            // A repository that could name our home could approve itself.
            if find_projects(&cwd, &own).iter().any(|project| lies_in(&moved, project)) {
                oddities.push(format!("OLLM_HOME={} lies inside the project and is ignored", moved.display()));
            } else {
                home = moved;
            }
        }
        let places = Places { home, user_home, ..Places::default() }.standing_in(&cwd);
        let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        AppContext {
            network: Network::from_variables(value),
            variables,
            cwd,
            places,
            program: None,
            overrides: Overrides::default(),
            hidden: Hidden::default(),
            log: OnceLock::new(),
            person: None,
            commands: Commands::default(),
            oddities,
        }
    }

    /// The same surroundings, with settings from the command line.
    pub fn with(self, overrides: Overrides) -> AppContext {
        AppContext { overrides, ..self }
    }

    /// The same surroundings in a project that appeared since. `None` if our own folder now lies in that project: the
    /// project could then change our settings.
    pub fn in_project(&self, project: &Path) -> Option<AppContext> {
        let usual = self.places.user_home.as_ref().map(|home| home.join(".ollm"));
        if usual.as_ref() != Some(&self.places.home) && lies_in(&self.places.home, project) {
            return None;
        }
        Some(AppContext { places: self.places.standing_in(project), ..self.clone() })
    }

    /// The value of a variable that is text.
    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(variable, _)| variable == name);
        found.and_then(|(_, value)| value.to_str()).map(str::to_owned)
    }

    /// The values that must not be written down: of variables that look like secrets, and fetched ones.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let texts = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let secret = texts.filter(|(name, _)| looks_secret(name));
        secret.map(|(name, value)| (name.to_owned(), value.to_owned())).chain(self.hidden.list()).collect()
    }

    /// A remedy as text, with the name of the program's command.
    pub fn tell(&self, remedy: &Remedy) -> String {
        self.commands.tell(remedy)
    }

    /// Problems, each with its whole remedy in its help.
    pub fn told(&self, problems: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
        problems.into_iter().map(|problem| problem.told(self.commands)).collect()
    }

    /// Trust by the stored approvals, which are signed if the configuration demands it.
    pub fn trust(&self, config: &Config) -> Trust {
        let mut trust = Trust::new(self.approvals(), SystemTime::now);
        trust.commands = self.commands;
        if let Some(key) = config.approval_key(&self.places) {
            trust.demand_signature(Some(key));
            trust.signer = approval_key::signer(self);
        }
        trust
    }

    /// The person's key that signs approvals, locked with a passphrase.
    pub fn secret_key(&self) -> PathBuf {
        self.places.home.join("approval.key")
    }

    /// The person's public key.
    pub fn public_key(&self) -> PathBuf {
        self.places.home.join("approval.pub")
    }

    /// The inputs of an approval.
    pub fn trust_context(&self) -> TrustContext<'_> {
        TrustContext {
            variables: &self.variables,
            project: self.places.project.as_deref(),
            home: self.places.user_home.as_deref(),
            folder: None,
        }
    }

    /// The folders that are searched for programs.
    pub fn search_path(&self) -> Option<&OsStr> {
        self.variables.iter().find(|(variable, _)| variable == "PATH").map(|(_, value)| value.as_os_str())
    }

    /// Remembers the configured log settings.
    pub fn keep_log_settings(&self, settings: LogSettings) {
        // A second reading would give the same settings.
        let _ = self.log.set(settings);
    }

    /// The configured log settings; `None` before the configuration was read.
    pub fn log_settings(&self) -> Option<&LogSettings> {
        self.log.get()
    }

    /// Tells the person the oddities of the surroundings.
    pub fn tell_notices(&self, notices: &mut dyn Notices) {
        self.oddities.iter().for_each(|oddity| notices.tell(oddity));
    }

    /// The system's keyring, if this session has one and `OLLM_KEYRING` does not switch it off.
    pub fn keyring(&self) -> Option<Keyring> {
        let is_off = self.variable("OLLM_KEYRING").is_some_and(|word| word == "off");
        if is_off || cfg!(target_os = "macos") {
            return (!is_off).then(|| Keyring::at(""));
        }
        let usual = || {
            let bus = Path::new(&self.variable("XDG_RUNTIME_DIR")?).join("bus");
            bus.exists().then(|| format!("unix:path={}", bus.display()))
        };
        let named = self.variable("DBUS_SESSION_BUS_ADDRESS").filter(|address| !address.is_empty());
        named.or_else(usual).map(Keyring::at)
    }

    /// The file that records which parts a person switched on or off.
    pub fn switches(&self) -> PathBuf {
        self.places.home.join("state/switches.json")
    }

    /// The file that records the names of extensions.
    pub fn extension_names(&self) -> PathBuf {
        self.state().join("extension-names.json")
    }

    /// Our own folder; `None` if the home is unknown.
    pub fn own_home(&self) -> Option<&Path> {
        let named = self.places.user_home.is_some() || self.places.home != nowhere();
        Some(self.places.home.as_path()).filter(|_| named)
    }

    /// Fails if the home is unknown, because nothing can be saved then.
    pub fn need_home(&self) -> Result<(), AppError> {
        let missing = || AppError::new(Code::NoFolder, "there is no home to write to").hint("set HOME or OLLM_HOME");
        self.own_home().map(|_| ()).ok_or_else(missing)
    }

    /// The folder for our own records.
    pub fn state(&self) -> PathBuf {
        self.places.home.join("state")
    }

    /// The folder that keeps the contents of files for the next event.
    pub fn snapshots(&self) -> Option<PathBuf> {
        self.own_home().map(|home| home.join("state/snapshots"))
    }

    /// The file that approvals are kept in.
    pub fn approvals(&self) -> PathBuf {
        self.places.home.join("trusted-hooks.json")
    }
}

/// The placeholder for our folder if there is no home.
fn nowhere() -> PathBuf {
    PathBuf::from("/nonexistent/.ollm")
}

/// Whether a path leads into a folder, even if neither exists yet.
fn lies_in(path: &Path, folder: &Path) -> bool {
    resolved(path, MOST_LINKS).starts_with(resolved(folder, MOST_LINKS))
}

/// The path with links resolved; parts that do not exist stay as written.
fn resolved(path: &Path, links: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    match path.read_link() {
        Ok(target) if links > 0 => resolved(&parent.join(target), links - 1),
        _ => resolved(parent, links).join(name),
    }
}
