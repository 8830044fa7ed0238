//! Loads the hooks of all folders.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_protocol::{Code, EventKind, Hook, Layer, Matcher, Rules, Source, Subject};
use ollm_store::{check_owner, current_uid};
use rustix::fs::{Dir, FileType};

use crate::budget::Budget;
use crate::config::{Config, HookSettings, Overrides, owned_files, read_files, said_around};
use crate::extension::{self, ReadExtensions, Search};
use crate::file::{Syntax, whole_file};
use crate::format::{Context, HookCollector, Ids};
use crate::node::{Cursor, Node};
use crate::path::PathCache;
use crate::place::{MOST_PROJECTS, Places, same_place};
use crate::problem::{Problem, Severity};
use crate::value;

mod file_form;
mod in_place;
mod named;
mod required;
mod scripts;
mod snapshot;
mod stamp;

use file_form::FileForm;
pub use in_place::files_in_place;
pub use named::load_named;
pub use scripts::UndeclaredScript;
pub use snapshot::drop_snapshots;
use snapshot::{Basis, Findings, Snapshot};
pub(crate) use stamp::{Stamp, StampSet, is_absent};

/// The largest hook file, in bytes.
const LARGEST_FILE: u64 = 4 << 20;
/// The most files of one folder.
const MOST_FILES: usize = 1000;

pub(crate) const USER_SETTINGS: &[&str] = &[".config/agent/settings.json", ".config/cli-agent/settings.json"];
pub(crate) const PROJECT_SETTINGS: &[&str] = &[".config/agent/settings.local.json", ".config/agent/settings.json"];

/// What is declared.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The valid hooks, in order of registration: those that the policy requires, the user's files, the user's agent settings, the project's files, the
    /// project's agent settings.
    pub hooks: Vec<Hook>,
    /// What applies to all of them.
    pub settings: HookSettings,
    /// Scripts in the hook folders that no hook file names; not looked for where it is about one event.
    pub undeclared: Vec<UndeclaredScript>,
    /// The whole configuration.
    pub config: Config,
    /// The extensions as their manifests say, where it is about one event.
    pub extensions: Option<ReadExtensions>,
}

/// One event as matchers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The event.
    pub kind: EventKind,
    /// What a matcher looks at.
    pub subject: Option<String>,
}

impl Moment {
    /// Whether hooks for this event with this matcher may be for the moment; what only an expression can tell may.
    pub(crate) fn may_fit(&self, event: &str, matcher: &str) -> bool {
        let subject = self.subject.as_deref().map(|name| Subject::new(self.kind, name));
        // An event without its subject may fit every matcher.
        let unsaid = self.subject.is_none() && self.kind.subject_field().is_some();
        event == self.kind.name()
            && (unsaid
                || matcher.starts_with("re:")
                || Matcher::parse(matcher).map_or(true, |matcher| matcher.matches(subject)))
    }
}

/// Where the declarations of files are stored.
#[derive(Clone, Copy, Debug)]
pub struct Snapshots<'a> {
    /// The folder; it is made if need be.
    pub folder: &'a Path,
    /// The time: what changed just now is not kept.
    pub now: SystemTime,
}

/// Reads everything in these places. An invalid part becomes a problem, and hides nothing else.
///
/// ```
/// use ollm_catalog::{Overrides, Places, load};
/// # let folder = tempfile::tempdir().unwrap();
/// # let home = folder.path().join(".ollm");
/// std::fs::create_dir_all(home.join("hooks")).unwrap();
/// std::fs::write(
///     home.join("hooks/guard.json"),
///     r#"{"hooks": {"before_tool": [{"name": "guard", "command": "python3", "args": ["guard.py"]}]}}"#,
/// )
/// .unwrap();
/// let places = Places { home: home.clone(), ..Places::default() };
/// let (catalog, problems) = load(&places, &|_| None, &Overrides::default());
/// assert!(problems.is_empty());
/// assert_eq!(catalog.hooks[0].id(), "user:guard.json:before_tool:guard");
/// assert_eq!(catalog.hooks[0].spec.script(), Some(&home.join("hooks/guard.py")));
/// ```
pub fn load(places: &Places, env: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> (Catalog, Vec<Problem>) {
    let LoadedFiles { catalog, problems, .. } =
        load_all(places, env, overrides, ReadOptions { undeclared: true, bounded: false });
    (catalog, problems)
}

/// The scripts in the hook folders of these places that no hook file names.
pub fn undeclared(
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
) -> Vec<UndeclaredScript> {
    load_all(places, env, overrides, ReadOptions { undeclared: true, bounded: true }).catalog.undeclared
}

/// The problem of a folder that exists and is unreadable. An unreadable folder of the user may contain guards, so it
/// stops everything. A project's folder cannot do that.
pub(crate) fn unreadable_folder(folder: &Path, error: &io::Error, (content, layer): (&str, Layer)) -> Problem {
    let (severity, then) = match (error.kind(), layer) {
        (io::ErrorKind::PermissionDenied, Layer::User) => {
            (Severity::Fatal, "nothing runs until it can be read".to_owned())
        }
        _ => (Severity::Error, format!("its {content} are not loaded")),
    };
    let message = format!("cannot look into it: {error}; {then}");
    let help = Some("it must be a folder that its owner can read".to_owned());
    Problem { help, ..whole_file(Code::UnreadableFile, severity, folder, message) }
}

/// Like [`load`], for one event, with the extensions. Projects' files are limited by a budget, and hooks that cannot
/// fit may be missing. The declarations are stored for the next event, and used from there while the files are
/// unchanged.
pub fn load_for(
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    moment: &Moment,
    snapshots: Option<Snapshots<'_>>,
) -> (Catalog, Vec<Problem>) {
    if let Some(recalled) = snapshots.and_then(|snapshots| recalled(snapshots, places, env, overrides, moment)) {
        return recalled;
    }
    let options = ReadOptions { undeclared: false, bounded: true };
    let LoadedFiles { mut catalog, mut problems, files, mut budget } = load_all(places, env, overrides, options);
    if problems.iter().any(|problem| problem.severity == Severity::Fatal) {
        return (catalog, problems);
    }
    let now = snapshots.map_or(SystemTime::UNIX_EPOCH, |snapshots| snapshots.now);
    let mut extensions = extension::read(&Search { places, config: &catalog.config, now }, budget.as_mut());
    let is_whole = budget.as_ref().is_none_or(Budget::is_complete);
    if let (Some(snapshots), Some(files), Some(looked), true) = (snapshots, files, extensions.take_looked(), is_whole) {
        let hooks = &catalog.hooks;
        snapshot::keep(snapshots, places, Findings { files, looked, hooks, extensions: &extensions });
    }
    catalog.extensions = Some(extensions);
    problems.extend(budget.and_then(|budget| budget.problem()));
    (catalog, problems)
}

/// Whether the stored declarations of these places are still valid; `None` if nothing is stored.
pub fn is_snapshot_current(
    folder: &Path,
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    moment: &Moment,
) -> Option<bool> {
    let is_kept = Snapshot::is_kept(folder, places);
    let now = SystemTime::UNIX_EPOCH;
    is_kept.then(|| recalled(Snapshots { folder, now }, places, env, overrides, moment).is_some())
}

/// The kept catalog, with what is said around the files now.
fn recalled(
    Snapshots { folder, now }: Snapshots<'_>,
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    moment: &Moment,
) -> Option<(Catalog, Vec<Problem>)> {
    let snapshot = Snapshot::open(folder, places)?;
    let is_safe = |(file, top): (PathBuf, &Path)| !file.exists() || check_owner(&file, top, current_uid()).is_ok();
    if !owned_files(places).all(is_safe) {
        return None;
    }
    let mut problems = Vec::new();
    let config = said_around(snapshot.config().clone(), env, overrides, &mut problems);
    let settings = config.hooks(places);
    let basis = Basis::new(&settings, &config, places, env);
    let (hooks, extensions) = snapshot.declared(moment, &basis, now)?;
    let extensions = Some(extensions);
    Some((Catalog { hooks, settings, undeclared: Vec::new(), config, extensions }, problems))
}

/// Options for reading the files.
#[derive(Clone, Copy)]
struct ReadOptions {
    /// Whether to search for scripts that no hook file names.
    undeclared: bool,
    /// Whether to limit projects' files by a budget, because an agent waits.
    bounded: bool,
}

/// Everything that was read.
struct LoadedFiles {
    catalog: Catalog,
    problems: Vec<Problem>,
    /// The declarations, if no file has a problem.
    files: Option<ReadFiles>,
    /// What files of projects may still cost, where that is bounded.
    budget: Option<Budget>,
}

/// The declarations of valid files, with the stamps of the files.
struct ReadFiles {
    looked: StampSet,
    /// What they say as configuration.
    config: Config,
    basis: Basis,
}

fn load_all(
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    options: ReadOptions,
) -> LoadedFiles {
    let mut budget = options.bounded.then(Budget::new);
    let (mut looked, mut problems) = (StampSet::default(), Vec::new());
    if places.projects().count() > MOST_PROJECTS {
        problems.extend(places.project.as_deref().map(too_deep));
        return LoadedFiles { catalog: Catalog::default(), problems, files: None, budget };
    }
    owned_files(places).for_each(|(file, _)| looked.state(&file));
    let files = read_files(places, &mut budget, &mut looked, &mut problems);
    let mut around = Vec::new();
    let config = said_around(files.clone(), env, overrides, &mut around);
    let settings = config.hooks(places);
    let (settings_off, basis) = (settings_off(env), Basis::new(&settings, &config, places, env));
    let mut loading =
        Loading { seen: Vec::new(), ids: Ids::default(), hooks: Vec::new(), problems, settings_off, budget, looked };
    if let Some(policy) = &places.policy {
        loading.required(policy, config.of_policy().hooks(places).rules());
    }
    let mut folders = Vec::new();
    let rules = settings.rules();
    let user = Owner { source: Source::User, layer: Layer::User, rules, project: None, encloses: false };
    folders.extend(loading.hooks(places.home.join("hooks"), &user));
    if let Some(home) = &places.user_home {
        loading.settings(home, USER_SETTINGS, &user);
    }
    in_place::agents(&settings).for_each(|agent| loading.of_user(agent, places, env, &user));
    for project in places.projects() {
        let rules = Rules { timeout: settings.workspace_timeout.or(settings.timeout), ..settings.rules() };
        let owner = Owner {
            source: Source::Workspace,
            layer: Layer::Workspace,
            rules,
            project: Some(project),
            encloses: places.project.as_deref() != Some(project),
        };
        // Hook ids of different projects never conflict.
        let ids = owner.encloses.then(|| std::mem::take(&mut loading.ids));
        let own = project.join(".ollm");
        loading.looked.place(&own);
        loading.looked.place(&places.home);
        if !same_place(&own, &places.home) {
            folders.extend(loading.hooks(own.join("hooks"), &owner));
        }
        loading.settings(project, PROJECT_SETTINGS, &owner);
        in_place::agents(&settings).for_each(|agent| loading.of_project(agent, project, &owner));
        loading.ids = ids.unwrap_or(loading.ids);
    }
    let undeclared = if options.undeclared { scripts::undeclared(&folders, &loading.hooks) } else { Vec::new() };
    let Loading { hooks, mut problems, budget, looked, .. } = loading;
    // Problems are reported with their places each time, and only the files have these. So declarations with problems
    // are not stored.
    let files = problems.is_empty().then_some(ReadFiles { looked, config: files, basis });
    problems.splice(0..0, around);
    LoadedFiles { catalog: Catalog { hooks, settings, undeclared, config, extensions: None }, problems, files, budget }
}

/// The problem of too many nested projects: guards of all of them could not be loaded in time, and none may be left
/// out.
fn too_deep(project: &Path) -> Problem {
    let message = format!("it lies in more than {MOST_PROJECTS} projects, one within another; nothing runs here");
    let help = Some("work in a folder with fewer folders around it that have a `.ollm` or `.git`".to_owned());
    Problem { help, ..Problem::of_file(Code::TooMuch, Severity::Fatal, project, message) }
}

/// The folder inside a hooks folder whose hooks are approved in one step.
const TRUSTED: &str = "trusted";

/// The owner of the files that are read.
struct Owner<'a> {
    source: Source,
    layer: Layer,
    rules: Rules,
    project: Option<&'a Path>,
    /// Whether that is a project around the one we are in.
    encloses: bool,
}

/// The variable that switches off the hooks of agent settings files, and nothing else.
const SETTINGS_SWITCH: &str = "HOOKS_ENABLED";

fn settings_off(env: &dyn Fn(&str) -> Option<String>) -> bool {
    env(SETTINGS_SWITCH).is_some_and(|text| is_off(&text))
}

fn is_off(text: &str) -> bool {
    let read = value::flag(&Node::Text(text.to_owned()));
    matches!(read, value::ReadValue::Exact(false) | value::ReadValue::Converted(false))
}

/// What has been read so far.
struct Loading {
    /// The files that were taken, by identity: nothing is taken twice, by any way.
    seen: Vec<(u64, u64)>,
    ids: Ids,
    hooks: Vec<Hook>,
    problems: Vec<Problem>,
    /// Whether the hooks of agent settings files are off.
    settings_off: bool,
    budget: Option<Budget>,
    looked: StampSet,
}

/// One file on its way in.
struct Incoming<'a> {
    path: &'a Path,
    /// The file's part of an id.
    label: &'a str,
    folder: &'a Path,
    group: Option<&'static str>,
    syntax: Syntax,
    form: FileForm,
}

impl Loading {
    /// The hook files of a hooks folder and of its `trusted` folder; gives back those folders.
    fn hooks(&mut self, folder: PathBuf, owner: &Owner<'_>) -> [PathBuf; 2] {
        let trusted = folder.join(TRUSTED);
        if self.folder(&folder, None, owner) {
            self.folder(&trusted, Some(TRUSTED), owner);
        }
        [folder, trusted]
    }

    /// The hook files of a folder, by name; `false` when it cannot be looked into.
    fn folder(&mut self, folder: &Path, inner: Option<&'static str>, owner: &Owner<'_>) -> bool {
        self.looked.state(folder);
        let names = match names(folder) {
            Ok((names, state)) => {
                self.looked.read(folder, Some(state));
                names
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(error) => {
                self.problems.push(unreadable_folder(folder, &error, ("hooks", owner.layer)));
                return false;
            }
        };
        if names.len() > MOST_FILES {
            let message =
                format!("it has more than {MOST_FILES} hook files; those after the first {MOST_FILES} are not loaded");
            self.problems.push(whole_file(Code::TooMuch, Severity::Error, folder, message));
        }
        // In the user's folder, such hooks belong to the user like all others.
        let group = inner.filter(|_| owner.source == Source::Workspace);
        for name in names.iter().take(MOST_FILES) {
            let path = folder.join(name);
            let name = name.to_string_lossy();
            let label = inner.map_or_else(|| name.to_string(), |inner| format!("{inner}/{name}"));
            let syntax = Syntax::of(&path);
            let incoming = Incoming { path: &path, label: &label, folder, group, syntax, form: FileForm::Hooks };
            if !self.file(&incoming, owner) {
                let message = "it is a link to nothing; nothing is loaded".to_owned();
                self.problems.push(whole_file(Code::UnreadableFile, Severity::Error, &path, message));
            }
        }
        true
    }

    /// The agent settings files under a root.
    fn settings(&mut self, root: &Path, names: &[&str], owner: &Owner<'_>) {
        for name in names {
            let path = root.join(name);
            let folder = path.parent().unwrap_or(root);
            let (syntax, form) = (Syntax::Json, FileForm::Settings);
            let known = self.hooks.len();
            self.file(&Incoming { path: &path, label: name, folder, group: None, syntax, form }, owner);
            for hook in self.hooks.iter_mut().skip(known).filter(|_| self.settings_off) {
                hook.off = Some(format!("{SETTINGS_SWITCH} is false"));
            }
        }
    }

    /// One file; `false` when it does not exist.
    fn file(&mut self, incoming: &Incoming<'_>, owner: &Owner<'_>) -> bool {
        let Incoming { path, label, folder, group, syntax, form } = *incoming;
        self.looked.state(path);
        match fs::metadata(path) {
            Ok(meta) => {
                let identity = identity(&meta);
                if self.seen.contains(&identity) {
                    return true;
                }
                self.seen.push(identity);
                let mut budget = self.budget.as_mut().filter(|_| owner.project.is_some());
                if budget.as_mut().is_some_and(|budget| !budget.allows(path, meta.len())) {
                    return true;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(_) => {}
        }
        let (document, node) = match form.read(path, syntax) {
            Ok(Some((document, node))) => {
                self.looked.read(path, document.state);
                (document, node)
            }
            Ok(None) => return false,
            Err(problem) => {
                self.problems.push(*problem);
                return true;
            }
        };
        let Owner { source, layer, rules, project, encloses } = owner;
        let walked = PathCache::default();
        let context = Context {
            path,
            folder,
            label,
            source: *source,
            layer: *layer,
            group,
            agent: form.agent(),
            extension: None,
            project: *project,
            encloses: *encloses,
            rules,
            walked: &walked,
        };
        let mut intake = HookCollector::new(&context, &mut self.ids);
        form.take(&Cursor::root(&node), &mut intake);
        let (mut hooks, findings) = intake.located(&document);
        self.looked.extend(walked.stamps());
        self.hooks.append(&mut hooks);
        self.problems.append(&mut document.problems(findings));
        true
    }
}

/// The names of the hook files in a folder, in order, with the state of the very folder that was read; hidden ones are editors'
/// and tools' own.
fn names(folder: &Path) -> io::Result<(Vec<PathBuf>, Stamp)> {
    let (entries, state) = entries(folder)?;
    Ok((entries.into_iter().map(|(name, _)| name).filter(|name| is_hook_file(name)).collect(), state))
}

/// What is in a folder and not hidden, in order, with the state of the very folder that was read.
pub(crate) fn entries(folder: &Path) -> io::Result<(Vec<(PathBuf, FileType)>, Stamp)> {
    let opened = File::open(folder)?;
    let state = Stamp::of_state(&opened.metadata()?);
    let mut entries = Vec::new();
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !name.starts_with(b".") {
            entries.push((PathBuf::from(OsStr::from_bytes(name)), entry.file_type()));
        }
    }
    entries.sort_unstable_by(|(one, _), (other, _)| one.as_os_str().cmp(other.as_os_str()));
    Ok((entries, state))
}

fn is_hook_file(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "json" || extension == "yaml" || extension == "yml")
        || name.as_os_str().as_encoded_bytes().ends_with(b".kiro.hook")
}

#[cfg(unix)]
pub(crate) fn identity(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_may_not_be_read_stops_everything_only_where_it_is_the_users() {
        let severity = |kind: io::ErrorKind, layer| {
            unreadable_folder(Path::new("/hooks"), &io::Error::from(kind), ("hooks", layer)).severity
        };
        assert_eq!(severity(io::ErrorKind::PermissionDenied, Layer::User), Severity::Fatal);
        assert_eq!(severity(io::ErrorKind::PermissionDenied, Layer::Workspace), Severity::Error);
        assert_eq!(severity(io::ErrorKind::NotADirectory, Layer::User), Severity::Error);
    }
}
