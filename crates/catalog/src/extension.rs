//! Extensions: folders with a manifest that bring hooks, MCP servers, settings and skills.
//!
//! [`extensions`] looks into the configured folders, reads every manifest, and says of each extension whether it is on,
//! off, or cannot be, and why. One that cannot be loaded stays in the list under its folder's name and hides no other.
//! What it brings is taken all together or not at all: an extension whose manifest has an error brings nothing.
//!
//! Not its duty: whether anything of it may run. That is decided by approval, at run time, over the whole folder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_protocol::{Commands, Held, Hook, HookSpec, Layer, Remedy, Source, Variable};
use ollm_store::{Digest, Secrets, StatKey, Switches};
use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::config::{Config, ExtensionSettings, Origin, Setting, find_key};
use crate::load::{Looked, Stamp};
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
pub use foreign::{Foreign, foreign_manifest, is_package, is_package_manifest};
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

/// Tells where the copy of a folder is, if there is one.
pub type CopyOf<'a> = dyn Fn(&Path) -> Option<PathBuf> + 'a;

/// What is needed to find extensions, and to say which are on.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where things are kept.
    pub places: &'a Places,
    /// The configuration.
    pub config: &'a Config,
    /// The variables of the process.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What a person switched on or off.
    pub switches: &'a Switches,
    /// The secrets a person entrusted to us.
    pub secrets: &'a Secrets,
    /// The time.
    pub now: SystemTime,
    /// Where the copy of a folder is as it was when it was last approved. An extension whose manifest can no longer be
    /// understood then goes on as that; without, it is not loaded.
    pub approved: Option<&'a CopyOf<'a>>,
    /// The same, to know whose manifest is what was approved: only such a one has the variables read that it names. Without,
    /// all have.
    pub vouched: Option<&'a CopyOf<'a>>,
    /// The commands of the program, for what a person is told to do.
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
    /// Its name; that of its folder where it has none that can be read.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
    /// Whose folder it was found in; this decides the order.
    pub layer: Layer,
    /// The project it came with, where that is one around ours.
    pub enclosing: Option<PathBuf>,
    /// Whether we installed it or it was found in place.
    source: Source,
    /// What it says about itself, as far as that can be read.
    pub manifest: Manifest,
    /// Its hooks as declared, with its settings in them; they count only while it is on.
    pub hooks: Vec<Hook>,
    /// What applies for each of its settings.
    pub values: Vec<SettingValue>,
    /// Whether it is on.
    pub state: State,
    /// The digest of the manifest as it was read; none where it cannot be.
    pub digest: Option<Digest>,
    /// By which a changed manifest is noticed; none where it cannot be read.
    fingerprint: Option<u64>,
    /// What the file system says of the manifest, if it had been left alone for a while when it was read: while that is
    /// so, it need not be read again.
    quiet: Option<StatKey>,
    /// What was looked at to understand it; none where that cannot be said in full.
    stamps: Option<Vec<(PathBuf, Stamp)>>,
    /// What became of the manifest alone, for those who read it again: on, or failed. Off where nobody read it.
    verdict: State,
    /// Why it is what was approved and not what is in its folder.
    held: Option<Problem>,
    /// What keeps it off although its manifest is fine, until its place was looked up.
    fault: Option<Fault>,
    /// The same with its place.
    misfit: Option<Problem>,
    /// The form of its package, where it was made for another agent and was not installed yet.
    pub form: Option<&'static str>,
    /// The problems of the manifest.
    problems: Vec<Problem>,
}

/// Whether an extension is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is, and everything it brings is there.
    On,
    /// A person wants it so, or has not been asked yet.
    Off(String),
    /// It cannot be, for this reason.
    Failed(String),
}

/// What applies for a setting.
#[derive(Clone, PartialEq)]
pub struct SettingValue {
    /// Its declaration.
    pub spec: SettingSpec,
    /// The value; none where nobody gives one, where it is kept elsewhere, or where nobody approved that it is read.
    pub value: Option<Value>,
    /// Where the value is to be had from when a hook or a server needs it.
    pub kept: Option<Held>,
    /// Who says so.
    pub origin: Origin,
}

impl fmt::Debug for SettingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={:?} ({})", self.spec.name, self.shown(), self.origin)
    }
}

impl SettingValue {
    /// The value as it may be shown.
    pub fn shown(&self) -> Option<Value> {
        match &self.kept {
            _ if self.spec.sensitive => self.is_set().then(|| "(hidden)".into()),
            Some(_) => Some("(not read before it is approved)".into()),
            None => self.value.clone(),
        }
    }

    /// Whether somebody gives a value.
    pub fn is_set(&self) -> bool {
        self.value.is_some() || self.kept.is_some()
    }
}

/// All extensions, in the order in which their hooks run: the user's before the project's, and each after those it
/// needs.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    all: Vec<Extension>,
    /// The rules their hooks were read under.
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

/// Extensions as their manifests say, before anybody was asked which are on.
#[derive(Debug, Default)]
pub struct ReadExtensions {
    all: Vec<Extension>,
    terms: Option<Terms>,
    /// What is wrong with the folders they are in.
    problems: Vec<Problem>,
    /// What was looked at for all that.
    looked: Looked,
}

/// Reads all extensions for one event.
pub(crate) fn read(search: &Search<'_>, budget: Option<&mut Budget>) -> ReadExtensions {
    find::read_all(search, &Extensions::default(), budget)
}

/// Finds all extensions; a manifest that is still what it was is not understood anew.
fn load(surroundings: &Surroundings<'_>, previous: &Extensions) -> (Extensions, Vec<Problem>) {
    let Surroundings { places, config, now, .. } = *surroundings;
    settle_extensions(find::read_all(&Search { places, config, now }, previous, None), surroundings)
}

/// Says of the extensions that were read which are on, and what applies for their settings.
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

/// Which of these are on: names, switches, settings, and what they need of one another.
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

/// Takes out those of the projects around ours, outermost first. Each project is settled as if we stood in it: what is
/// within it takes neither a name nor a dependency from it.
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
        // What is wrong with the settings of the user's is told once.
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

    /// The one with this name; of two, the one that counts.
    pub fn get(&self, name: &str) -> Option<&Extension> {
        let named = || self.all.iter().filter(|extension| extension.name == name);
        let near = || named().filter(|extension| extension.enclosing.is_none());
        near().find(|extension| extension.is_on()).or_else(|| near().chain(named()).next())
    }

    /// The one that a hook belongs to.
    pub fn of_hook(&self, hook: &HookSpec) -> Option<&Extension> {
        let root = hook.tree.as_ref().filter(|_| hook.extension.is_some())?;
        self.all.iter().find(|extension| extension.root == *root)
    }

    /// The hooks of those that are on.
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.all.iter().filter(|extension| extension.is_on()).flat_map(|extension| &extension.hooks)
    }

    /// The MCP servers of those that are on, without those of projects around ours: the extension and its servers, each with its keys as written.
    pub fn servers(&self) -> impl Iterator<Item = (&Extension, &Map<String, Value>)> {
        let on = self.all.iter().filter(|extension| extension.is_on() && extension.enclosing.is_none());
        on.map(|extension| (extension, &extension.manifest.servers)).filter(|(_, servers)| !servers.is_empty())
    }

    /// What the configuration says about settings of extensions and what cannot be; nothing where none is loaded.
    pub fn misset(&self, config: &Config, places: &Places) -> Vec<Problem> {
        let settings = config.extensions(places);
        if settings.enabled { resolve::misset(self, &settings) } else { Vec::new() }
    }

    /// What an extension that is none of these would miss here, each with its place in its manifest.
    pub fn lacking(&self, extension: &Extension) -> Vec<Problem> {
        let faults = depend::lacking(&self.all, extension);
        let locate = |fault: Fault| fault.locate(&extension.file(), extension.fingerprint, Severity::Warning);
        faults.into_iter().map(locate).collect()
    }

    /// What applies for the settings of all extensions, as a part of the configuration; secrets are not in it.
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
        self.state == State::On
    }

    /// Why it cannot be loaded.
    pub fn error(&self) -> Option<&str> {
        match &self.state {
            State::Failed(why) => Some(why),
            State::On | State::Off(_) => None,
        }
    }

    /// What keeps it off although its manifest is fine: a name that is taken, a dependency or a setting that is missing.
    pub fn misfit(&self) -> Option<&Problem> {
        self.misfit.as_ref()
    }

    /// Whether its manifest cannot be understood; one that only lacks something can.
    pub fn is_broken(&self) -> bool {
        matches!(self.verdict, State::Failed(_))
    }

    /// Whether nothing is known of it but its name.
    fn is_sketch(&self) -> bool {
        matches!(self.verdict, State::Off(_))
    }

    /// Why it goes on as it was when it was approved, if it does: its manifest can no longer be understood.
    pub fn held(&self) -> Option<&Problem> {
        self.held.as_ref()
    }

    /// Where it comes from, which decides how it is approved.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Its manifest.
    pub fn file(&self) -> PathBuf {
        self.root.join(find::MANIFEST)
    }

    /// What its switch is called. A project's has its folder in the name: it is not that of another project.
    pub fn switch_name(&self) -> String {
        match self.layer {
            Layer::User => format!("extension:{}", self.name),
            Layer::Workspace => format!("extension:{}@{}", self.name, self.root.display()),
        }
    }

    /// What a secret of it is called.
    pub fn secret_name(&self, setting: &str) -> String {
        format!("{}:{setting}", self.switch_name())
    }

    /// The declaration of a setting.
    pub fn setting(&self, name: &str) -> Option<&SettingSpec> {
        self.manifest.settings.iter().find(|setting| setting.name == name)
    }

    /// Its skills: those in its manifest, and those with files of their own, which are read now.
    pub fn skills(&self) -> (Vec<Skill>, Vec<Problem>) {
        let mut skills = self.manifest.skills.clone();
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

    /// A problem with a file that one of its hooks names, at the place where that stands.
    pub fn at_hook(&self, hook: &str, file: &Path, problem: Problem) -> Problem {
        self.at_file("hooks", hook, file, problem)
    }

    /// A problem with a file that one of its servers names, at the place where that stands.
    pub fn at_server(&self, server: &str, file: &Path, problem: Problem) -> Problem {
        self.at_file("mcpServers", server, file, problem)
    }

    fn at_file(&self, part: &'static str, owner: &str, file: &Path, problem: Problem) -> Problem {
        let naming = Naming { part, owner: owner.to_owned(), folder: self.root.clone(), file: file.to_owned() };
        let Problem { code, message, help, remedy, .. } = problem;
        let fault = Fault { code, at: Field::File(Box::new(naming)), message, help, remedy: remedy.map(Box::new) };
        fault.locate(&self.file(), self.fingerprint, problem.severity)
    }

    /// Takes back everything it brings, for a reason.
    fn fail(&mut self, fault: Fault) {
        if self.error().is_none() {
            self.state = State::Failed(fault.message.clone());
            self.fault = Some(fault);
        }
    }

    /// Looks up the place of what keeps it off.
    fn point(&mut self, commands: Commands) {
        let Some(fault) = self.fault.take() else { return };
        let found = fault.locate(&self.file(), self.fingerprint, Severity::Error);
        self.state = State::Failed(found.clone().told(commands).to_string());
        let message = format!("extension `{}` is not loaded: {}", self.name, found.message);
        self.misfit = Some(Problem { message, ..found });
    }

    /// The variables in which its hooks and servers get its settings.
    pub fn variables(&self) -> Vec<Variable> {
        resolve::variables(&self.name, &self.values)
    }

    /// The variables in which its hooks get settings that nobody here set: these values, else the defaults.
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

    /// Gives its settings to its hooks.
    fn hand_over(&mut self) {
        let variables = self.variables();
        for hook in &mut self.hooks {
            hook.settings.clone_from(&variables);
        }
    }

    /// How a person switches it on.
    fn enabling(&self) -> Remedy {
        Remedy::EnableExtension(self.name.clone())
    }
}
