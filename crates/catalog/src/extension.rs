//! Extensions: folders with a manifest that bring hooks, MCP servers, settings and skills.
//!
//! [`extensions`] looks into the configured folders, reads every manifest, and determines for each extension whether it
//! is on, off, or failed, and why. A failed extension stays in the list under its folder's name, and hides no other. An
//! extension applies as a whole: if its manifest has an error, it brings nothing.
//!
//! This module does not decide whether any part of it may run. At run time, an approval of the whole folder decides
//! that.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_protocol::{Commands, HeldText, Hook, HookSpec, Layer, Remedy, Source, Variable};
use ollm_store::{Digest, Secrets, StatKey, Switches};
use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::config::{Config, ExtensionSettings, Origin, Setting, find_key};
use crate::load::{Stamp, StampSet};
use crate::place::Places;
use crate::problem::{Problem, Severity};

mod check;
mod depend;
mod fault;
mod find;
mod foreign;
mod index;
mod install_change;
mod kept;
mod key;
mod manifest;
mod name;
mod permission;
mod read;
mod reload;
mod resolve;
mod schema;
mod server;
mod setting;
mod skill;

use fault::{Fault, Field, Naming};

pub use find::INSTALL_RECORD;
pub(crate) use find::{Search, Terms};
pub use foreign::{TranslatedPackage, foreign_manifest, is_package, is_package_manifest};
pub use index::{Index, named as named_extensions};
pub use install_change::{InstallChange, NewFolder};
pub(crate) use kept::KeptExtension;
pub use key::ManifestKey;
pub use manifest::{Dependency, Manifest, manifest_key_names, manifest_keys};
pub use name::check_extension_name;
pub use permission::Permissions;
pub use read::validate as validate_extension;
pub use reload::{Changes, reload as reload_extensions};
pub use schema::{manifest_schema, settings_schema};
pub use setting::{SettingKind, SettingSpec};
pub use skill::Skill;

/// Gives the folder of an extension's copy, if there is one.
pub type CopyOf<'a> = dyn Fn(&Path) -> Option<PathBuf> + 'a;

/// The data for finding extensions and deciding which are on.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The folders of our files.
    pub places: &'a Places,
    /// The configuration.
    pub config: &'a Config,
    /// The variables of the process.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The extensions that a person switched on or off.
    pub switches: &'a Switches,
    /// The secrets that a person stored with us.
    pub secrets: &'a Secrets,
    /// The time.
    pub now: SystemTime,
    /// Gives the folder of an extension's last approved copy. A broken extension then continues as that copy; without a
    /// copy, it is not loaded.
    pub approved: Option<&'a CopyOf<'a>>,
    /// The same, to decide whose manifest is approved. Only an approved manifest may have the variables read that it
    /// names. If this is `None`, every manifest may.
    pub vouched: Option<&'a CopyOf<'a>>,
    /// The program's commands, for the remedies in messages.
    pub commands: Commands,
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Surroundings").field("places", self.places).finish_non_exhaustive()
    }
}

/// One extension.
#[derive(Clone, Debug)]
pub struct Extension {
    /// Its name; the folder's name if the manifest has no readable one.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
    /// The layer of the folder it was found in; this decides the order.
    pub layer: Layer,
    /// The project it came with, if that is a project around ours.
    pub enclosing: Option<PathBuf>,
    /// Whether we installed it, or it was found in its place.
    source: Source,
    /// Its manifest, as far as it is readable.
    pub manifest: Manifest,
    /// Its declared hooks, with its settings filled in. They only count while it is on.
    pub hooks: Vec<Hook>,
    /// The value of each of its settings.
    pub values: Vec<SettingValue>,
    /// Whether it is on.
    pub state: ExtensionState,
    /// The digest of the manifest when it was read; `None` if it is unreadable.
    pub digest: Option<Digest>,
    /// A value that changes with the manifest; `None` if it is unreadable.
    fingerprint: Option<u64>,
    /// The file system's state of the manifest, if it had not changed for a while when it was read. While the state
    /// stays the same, the manifest need not be read again.
    quiet: Option<StatKey>,
    /// The files it depends on; `None` if they cannot be listed completely.
    stamps: Option<Vec<(PathBuf, Stamp)>>,
    /// The state by the manifest alone, for reading it again: on, or failed. Off if it was not read.
    verdict: ExtensionState,
    /// Why its approved copy is used instead of its folder.
    held: Option<Problem>,
    /// Why it is off although its manifest is valid, until the place of the fault is located.
    fault: Option<Fault>,
    /// The same fault with its place.
    misfit: Option<Problem>,
    /// The format of its package, if it was made for another agent and is not installed yet.
    pub form: Option<&'static str>,
    /// The problems of the manifest.
    problems: Vec<Problem>,
}

/// Whether an extension is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionState {
    /// It is on, and everything it brings is available.
    On,
    /// A person switched it off, or was not asked yet.
    Off(String),
    /// It failed, for this reason.
    Failed(String),
}

/// The value of a setting.
#[derive(Clone, PartialEq)]
pub struct SettingValue {
    /// Its declaration.
    pub spec: SettingSpec,
    /// The value. `None` if it is not set, is stored elsewhere, or may not be read without an approval.
    pub value: Option<Value>,
    /// The source of the value when a hook or server needs it.
    pub kept: Option<HeldText>,
    /// The origin of the value.
    pub origin: Origin,
}

impl fmt::Debug for SettingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={:?} ({})", self.spec.name, self.shown(), self.origin)
    }
}

impl SettingValue {
    /// The value for display.
    pub fn shown(&self) -> Option<Value> {
        match &self.kept {
            _ if self.spec.sensitive => self.is_set().then(|| "(hidden)".into()),
            Some(_) => Some("(not read before it is approved)".into()),
            None => self.value.clone(),
        }
    }

    /// Whether a value is set.
    pub fn is_set(&self) -> bool {
        self.value.is_some() || self.kept.is_some()
    }
}

/// All extensions, in the order in which their hooks run: the user's before the project's, and each after those it
/// needs.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    all: Vec<Extension>,
    /// The rules under which their hooks were read.
    terms: Option<Terms>,
}

/// Finds all extensions.
///
/// ```
/// use std::time::SystemTime;
/// use ollm_catalog::{Overrides, Places, Surroundings, configuration, extensions};
/// # let folder = tempfile::tempdir().unwrap();
/// # let home = folder.path().join(".ollm");
/// # std::fs::create_dir_all(home.join("extensions/hello")).unwrap();
/// std::fs::write(
///     home.join("extensions/hello/manifest.json"),
///     r#"{"name": "hello", "version": "1.0.0", "description": "Says hello",
///         "hooks": {"session_start": [{"name": "greet", "command": "sh", "args": ["greet.sh"]}]}}"#,
/// )
/// .unwrap();
/// let places = Places { home, ..Places::default() };
/// let (config, _) = configuration(&places, &|_| None, &Overrides::default());
/// let (switches, secrets) = Default::default();
/// let surroundings = Surroundings {
///     places: &places,
///     config: &config,
///     env: &|_| None,
///     switches: &switches,
///     secrets: &secrets,
///     now: SystemTime::UNIX_EPOCH,
///     approved: None,
///     vouched: None,
///     commands: Default::default(),
/// };
/// let (found, problems) = extensions(&surroundings);
/// assert!(problems.is_empty());
/// assert_eq!(found.get("hello").unwrap().hooks[0].id(), "user:hello:session_start:greet");
/// ```
pub fn extensions(surroundings: &Surroundings<'_>) -> (Extensions, Vec<Problem>) {
    load(surroundings, &Extensions::default())
}

/// Extensions as read from their manifests, before it is decided which are on.
#[derive(Debug, Default)]
pub struct ReadExtensions {
    all: Vec<Extension>,
    terms: Option<Terms>,
    /// The problems with their folders.
    problems: Vec<Problem>,
    /// The files and folders that were checked.
    looked: StampSet,
}

/// Reads all extensions for one event.
pub(crate) fn read(search: &Search<'_>, budget: Option<&mut Budget>) -> ReadExtensions {
    find::read_all(search, &Extensions::default(), budget)
}

/// Finds all extensions. An unchanged manifest is not parsed again.
fn load(surroundings: &Surroundings<'_>, previous: &Extensions) -> (Extensions, Vec<Problem>) {
    let Surroundings { places, config, now, .. } = *surroundings;
    settle_extensions(find::read_all(&Search { places, config, now }, previous, None), surroundings)
}

/// Determines which of the read extensions are on, and the values of their settings.
pub fn settle_extensions(read: ReadExtensions, surroundings: &Surroundings<'_>) -> (Extensions, Vec<Problem>) {
    let ReadExtensions { mut all, terms, mut problems, .. } = read;
    if all.is_empty() {
        return (Extensions { all, terms }, problems);
    }
    if let (Some(approved), Some(terms)) = (surroundings.approved, &terms) {
        all.iter_mut().filter(|extension| extension.is_broken()).for_each(|broken| terms.restore(broken, approved));
    }
    let settings = surroundings.config.extensions(surroundings.places);
    problems.extend(all.iter().flat_map(|extension| extension.problems.iter().cloned()));
    let around = enclosing(&mut all, surroundings, &settings);
    settle(&mut all, surroundings, &settings, &mut problems);
    let place = all.iter().position(|one| one.layer == Layer::Workspace).unwrap_or(all.len());
    all.splice(place..place, around);
    for extension in &mut all {
        extension.hand_over();
        extension.point(surroundings.commands);
        problems.extend(extension.misfit.clone());
    }
    (Extensions { all, terms }, problems)
}

/// Determines which of these are on, by names, switches, settings, and dependencies.
fn settle(
    all: &mut Vec<Extension>,
    surroundings: &Surroundings<'_>,
    settings: &ExtensionSettings,
    problems: &mut Vec<Problem>,
) {
    find::refuse_doubles(all, surroundings);
    resolve::resolve(all, surroundings, settings, problems);
    depend::settle(all);
}

/// Separates the extensions of projects around ours, outermost first. Each of these projects is settled as if we were
/// in it. So inner projects take neither a name nor a dependency from it.
fn enclosing(
    all: &mut Vec<Extension>,
    surroundings: &Surroundings<'_>,
    settings: &ExtensionSettings,
) -> Vec<Extension> {
    let (around, inner): (Vec<_>, Vec<_>) = std::mem::take(all).into_iter().partition(|one| one.enclosing.is_some());
    *all = inner;
    let mut settled = Vec::new();
    for project in surroundings.places.enclosing.iter().filter(|_| !around.is_empty()) {
        let of_user = all.iter().filter(|one| one.layer == Layer::User);
        let own = around.iter().filter(|one| one.enclosing.as_ref() == Some(project));
        let mut group: Vec<Extension> = of_user.chain(own).cloned().collect();
        // Problems with the user's settings are reported only once.
        settle(&mut group, surroundings, settings, &mut Vec::new());
        settled.extend(group.into_iter().filter(|one| one.enclosing.is_some()));
    }
    settled
}

impl<'a> IntoIterator for &'a Extensions {
    type Item = &'a Extension;
    type IntoIter = std::slice::Iter<'a, Extension>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Extensions {
    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Extension> {
        self.all.iter()
    }

    /// The one with this name. If there are two, the one that counts.
    pub fn get(&self, name: &str) -> Option<&Extension> {
        let named = || self.all.iter().filter(|extension| extension.name == name);
        let near = || named().filter(|extension| extension.enclosing.is_none());
        near().find(|extension| extension.is_on()).or_else(|| near().chain(named()).next())
    }

    /// The extension that brings a hook.
    pub fn of_hook(&self, hook: &HookSpec) -> Option<&Extension> {
        let root = hook.tree.as_ref().filter(|_| hook.extension.is_some())?;
        self.all.iter().find(|extension| extension.root == *root)
    }

    /// The hooks of extensions that are on.
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.all.iter().filter(|extension| extension.is_on()).flat_map(|extension| &extension.hooks)
    }

    /// The MCP servers of extensions that are on, except in projects around ours. Each item has the extension, and its
    /// servers with their keys as written.
    pub fn servers(&self) -> impl Iterator<Item = (&Extension, &Map<String, Value>)> {
        let on = self.all.iter().filter(|extension| extension.is_on() && extension.enclosing.is_none());
        on.map(|extension| (extension, &extension.manifest.servers)).filter(|(_, servers)| !servers.is_empty())
    }

    /// Invalid settings of extensions in the configuration. Empty if extensions are off.
    pub fn misset(&self, config: &Config, places: &Places) -> Vec<Problem> {
        let settings = config.extensions(places);
        if settings.enabled { resolve::misset(self, &settings) } else { Vec::new() }
    }

    /// The dependencies that an extension outside of this list would lack here, each with its place in the manifest.
    pub fn lacking(&self, extension: &Extension) -> Vec<Problem> {
        let faults = depend::lacking(&self.all, extension);
        let locate = |fault: Fault| fault.locate(&extension.file(), extension.fingerprint, Severity::Warning);
        faults.into_iter().map(locate).collect()
    }

    /// The settings of all extensions as a part of the configuration, without secrets.
    pub fn settings(&self) -> Vec<Setting> {
        let Ok(key) = find_key("extensions.settings.NAME.KEY") else { return Vec::new() };
        let of = |extension: &Extension, one: &SettingValue| Setting {
            path: format!("extensions.settings.{}.{}", extension.name, one.spec.name),
            key,
            value: one.shown().unwrap_or_default(),
            origin: one.origin.clone(),
        };
        self.all.iter().flat_map(|extension| extension.values.iter().map(move |one| of(extension, one))).collect()
    }
}

impl Extension {
    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.state == ExtensionState::On
    }

    /// Why it cannot be loaded.
    pub fn error(&self) -> Option<&str> {
        match &self.state {
            ExtensionState::Failed(why) => Some(why),
            ExtensionState::On | ExtensionState::Off(_) => None,
        }
    }

    /// Why it is off although its manifest is valid: its name is taken, or a dependency or setting is missing.
    pub fn misfit(&self) -> Option<&Problem> {
        self.misfit.as_ref()
    }

    /// Whether its manifest is invalid. A manifest that only lacks something is valid.
    pub fn is_broken(&self) -> bool {
        matches!(self.verdict, ExtensionState::Failed(_))
    }

    /// Whether only its name is known.
    fn is_sketch(&self) -> bool {
        matches!(self.verdict, ExtensionState::Off(_))
    }

    /// Why its approved copy is used, if it is: the present manifest is invalid.
    pub fn held(&self) -> Option<&Problem> {
        self.held.as_ref()
    }

    /// Its origin, which decides how it is approved.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Its manifest.
    pub fn file(&self) -> PathBuf {
        self.root.join(find::MANIFEST)
    }

    /// The name of its switch. For a project's extension, the name includes the folder, to distinguish projects.
    pub fn switch_name(&self) -> String {
        match self.layer {
            Layer::User => format!("extension:{}", self.name),
            Layer::Workspace => format!("extension:{}@{}", self.name, self.root.display()),
        }
    }

    /// The name of one of its secrets.
    pub fn secret_name(&self, setting: &str) -> String {
        format!("{}:{setting}", self.switch_name())
    }

    /// The declaration of a setting.
    pub fn setting(&self, name: &str) -> Option<&SettingSpec> {
        self.manifest.settings.iter().find(|setting| setting.name == name)
    }

    /// Its skills: those in its manifest, and those in files of their own, which are read now. In a package of another
    /// agent, skill files do not count.
    pub fn skills(&self) -> (Vec<Skill>, Vec<Problem>) {
        let mut skills = self.manifest.skills.clone();
        if self.form.is_some() || find::was_converted(&self.root) {
            return (skills, Vec::new());
        }
        let (more, mut problems) = skill::in_folder(&self.root);
        for (skill, place) in more {
            if skills.iter().any(|known| known.name == skill.name) {
                problems.push(place.taken(&skill));
            } else {
                skills.push(skill);
            }
        }
        (skills, problems)
    }

    /// Moves a problem with a file to the place where a hook names the file.
    pub fn at_hook(&self, hook: &str, file: &Path, problem: Problem) -> Problem {
        self.at_file("hooks", hook, file, problem)
    }

    /// Moves a problem with a file to the place where a server names the file.
    pub fn at_server(&self, server: &str, file: &Path, problem: Problem) -> Problem {
        self.at_file("mcpServers", server, file, problem)
    }

    fn at_file(&self, part: &'static str, owner: &str, file: &Path, problem: Problem) -> Problem {
        let naming = Naming { part, owner: owner.to_owned(), folder: self.root.clone(), file: file.to_owned() };
        let Problem { code, message, help, remedy, .. } = problem;
        let fault = Fault { code, at: Field::File(Box::new(naming)), message, help, remedy: remedy.map(Box::new) };
        fault.locate(&self.file(), self.fingerprint, problem.severity)
    }

    /// Removes everything it brings, for this reason.
    fn fail(&mut self, fault: Fault) {
        if self.error().is_none() {
            self.state = ExtensionState::Failed(fault.message.clone());
            self.fault = Some(fault);
        }
    }

    /// Locates the fault that keeps it off.
    fn point(&mut self, commands: Commands) {
        let Some(fault) = self.fault.take() else { return };
        let found = fault.locate(&self.file(), self.fingerprint, Severity::Error);
        self.state = ExtensionState::Failed(found.clone().told(commands).to_string());
        let message = format!("extension `{}` is not loaded: {}", self.name, found.message);
        self.misfit = Some(Problem { message, ..found });
    }

    /// The variables with its settings for its hooks and servers.
    pub fn variables(&self) -> Vec<Variable> {
        resolve::variables(&self.name, &self.values)
    }

    /// The variables with settings for its hooks, if none are set here: the given values, else the defaults.
    pub fn sample_variables(&self, given: &Map<String, Value>) -> Result<Vec<Variable>, String> {
        if let Some(unknown) = given.keys().find(|name| self.setting(name).is_none()) {
            return Err(format!("extension `{}` has no setting `{unknown}`", self.name));
        }
        let value = |spec: &SettingSpec| {
            let value = given.get(&spec.name).map(|value| spec.check(value.clone())).transpose()?;
            let value = value.or_else(|| spec.default.clone());
            Ok(SettingValue { spec: spec.clone(), value, kept: None, origin: Origin::Default })
        };
        let values = self.manifest.settings.iter().map(value).collect::<Result<Vec<_>, String>>()?;
        Ok(resolve::variables(&self.name, &values))
    }

    /// Adds its settings to its hooks.
    fn hand_over(&mut self) {
        let variables = self.variables();
        for hook in &mut self.hooks {
            hook.settings.clone_from(&variables);
        }
    }

    /// The remedy that switches it on.
    fn enabling(&self) -> Remedy {
        Remedy::EnableExtension(self.name.clone())
    }
}
