//! The box for shell commands: one table lists the files that no command can change.
//!
//! The kernel protects existing files (`ollm_process::ProcessBox`). Other paths are compared after each command
//! (`compare`): missing files, files that ordinary work has to change, and files that this kernel cannot protect.

mod compare;
mod compared_path;
mod content;
mod gitlinks;
mod inner_repositories;
mod links;
mod listing;
mod modes;
mod path_tree;
mod places;
mod undone;

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_agent::ShellBox;
use ollm_catalog::Config;
use ollm_guard::{Lock, Protected};
use ollm_process::{BoxError, BoxMeans, BoxRules, Children, Job, Outcome, ProcessBox};
use ollm_protocol::protected::{named_for_git, named_repositories, protected as table};
use ollm_store::current_uid;
use serde_json::{Value, json};

use crate::app_context::AppContext;
use crate::guards::shelter;
use compare::{Baseline, Hold};
use content::KnownContents;
use inner_repositories::{InnerRepositories, RepositoryPlaces};
use links::{LinkedWay, linked_way};
use listing::{ListedFolders, ListedStates, Listing};
use path_tree::{BoxStamp, FileState, FoundPaths, KnownFolders, NodeId, PathTree, WatchedPath};
use places::Caches;
pub(crate) use places::account_home;
use undone::UndoneChanges;

/// How much a box forbids to commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxPolicy {
    /// There is no box.
    Off,
    /// Protected paths cannot be changed.
    #[default]
    On,
    /// Also, only the project, temporary folders and caches can be written, and secrets cannot be read.
    Strict,
}

impl BoxPolicy {
    /// Every policy by its name.
    pub const ALL: [(&'static str, BoxPolicy); 3] =
        [("on", BoxPolicy::On), ("strict", BoxPolicy::Strict), ("off", BoxPolicy::Off)];

    /// The configured policy.
    pub fn of(config: &Config) -> BoxPolicy {
        let setting = config.get("agent.box");
        let name = setting.as_ref().and_then(|setting| setting.value.as_str()).unwrap_or_default();
        BoxPolicy::ALL.iter().find(|(known, _)| *known == name).map_or(BoxPolicy::On, |(_, policy)| *policy)
    }
}

/// The state of a box on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoxStatus {
    /// The kernel enforces everything.
    On,
    /// The kernel enforces only a part, for this reason.
    Partial(String),
    /// The kernel enforces nothing, for this reason.
    Unavailable(String),
    /// The configuration switches it off.
    Off,
}

impl BoxStatus {
    /// The state of the boxes of hooks and servers on this machine.
    pub fn of_programs() -> BoxStatus {
        // The strictest rules that any of them has.
        let rules = BoxRules { readable: Some(Vec::new()), writable: Some(Vec::new()), ..BoxRules::default() };
        match ProcessBox::new(BoxMeans::Landlock, &rules) {
            Ok(made) if made.notes().is_empty() => BoxStatus::On,
            Ok(made) => BoxStatus::Partial(made.notes().join("; ")),
            Err(error) => BoxStatus::Unavailable(error.reason),
        }
    }

    /// The word for people.
    pub fn name(&self) -> &'static str {
        match self {
            BoxStatus::On => "on",
            BoxStatus::Partial(_) => "partial",
            BoxStatus::Unavailable(_) => "unavailable",
            BoxStatus::Off => "off",
        }
    }

    /// The state as JSON.
    pub fn to_json(&self) -> Value {
        json!({"state": self.name(), "reason": self.reason()})
    }

    /// A warning for the person before commands run; `None` if the box is fully on.
    pub fn note(&self) -> Option<String> {
        match self {
            BoxStatus::On => None,
            BoxStatus::Partial(reason) => Some(format!("shell commands run in a partial box: {reason}")),
            BoxStatus::Unavailable(reason) => Some(format!("shell commands run without a box: {reason}")),
            BoxStatus::Off => Some("shell commands run without a box: `agent.box` is off".to_owned()),
        }
    }

    /// The reason why the box is partial or unavailable.
    pub fn reason(&self) -> Option<&str> {
        match self {
            BoxStatus::Partial(reason) | BoxStatus::Unavailable(reason) => Some(reason),
            BoxStatus::On | BoxStatus::Off => None,
        }
    }
}

/// A box for any number of commands. It is made anew when the protected paths have changed.
#[derive(Debug)]
pub struct CommandBox {
    policy: BoxPolicy,
    rules: BoxRules,
    /// The protected paths of the table.
    watched: Vec<WatchedPath>,
    /// Folders whose entries decide which other paths are protected.
    listed: ListedFolders,
    projects: Vec<PathBuf>,
    /// The folders of the repositories that `git` finds in the projects and around them and the home, if they exist.
    repositories: BTreeSet<PathBuf>,
    /// Our own folder.
    own: PathBuf,
    /// Caches still to be made, for commands that cannot make them.
    caches: Mutex<Option<Caches>>,
    /// The protected paths, at the last look.
    plan: Mutex<Option<CurrentPlan>>,
    /// The last kernel box, and the files that it was made for.
    current: Mutex<Option<(BoxStamp, KernelBox)>>,
    /// The contents of protected files at the last comparison.
    known: Mutex<KnownContents>,
}

/// A plan, and the folders and links that it was made for.
#[derive(Debug)]
struct CurrentPlan {
    states: ListedStates,
    links: Vec<(NodeId, FileState)>,
    plan: Arc<BoxPlan>,
}

/// The rules of a box with all listed paths, and the paths that the rules are about.
#[derive(Debug)]
struct BoxPlan {
    rules: BoxRules,
    tree: PathTree,
    listing: Listing,
}

/// A kernel box, and the paths that it does not protect.
#[derive(Clone, Debug)]
struct KernelBox {
    process_box: Option<Arc<ProcessBox>>,
    status: BoxStatus,
}

/// The result of a command in a box.
#[derive(Debug)]
pub struct BoxedOutcome {
    /// How it ended and what it wrote.
    pub outcome: Outcome,
    /// Changes that were undone, and the meaning of a refusal: one line each, for the model and the person.
    pub notes: Vec<String>,
}

impl CommandBox {
    /// The box that the configuration demands.
    pub fn new(context: &AppContext, config: &Config) -> CommandBox {
        CommandBox::by_policy(BoxPolicy::of(config), context, config)
    }

    /// A box with this policy in place of the configured one.
    pub fn by_policy(policy: BoxPolicy, context: &AppContext, config: &Config) -> CommandBox {
        let mut projects: Vec<PathBuf> = context.places.projects().map(Path::to_owned).collect();
        if projects.is_empty() {
            projects.push(context.cwd.clone());
        }
        let variable = |name: &str| context.variable(name);
        let mut protected = shelter(context).protected();
        protected.extend(places::own_programs(&projects, context));
        protected.extend(named_for_git(&variable, &context.cwd));
        let is_locked = |one: &&Protected| one.lock == Lock::Locked;
        let open = places::open_sockets(config);
        let decide = protected.iter().filter(|one| one.path.ends_with("commondir"));
        let repositories: BTreeSet<PathBuf> = decide.filter_map(|one| one.path.parent().map(Path::to_owned)).collect();
        let named = named_repositories(&variable, &context.cwd);
        let has_own_place = |path: &&PathBuf| path.ends_with(".git") || named.contains(path);
        // A `.git` file in place of the folder names another repository.
        let (leads, pinned): (Vec<PathBuf>, Vec<PathBuf>) =
            repositories.iter().filter(has_own_place).cloned().partition(|path| path.is_file());
        // What is below a folder that is writable as a whole is not held: that would be the home.
        let homes = || context.places.user_home.iter().chain([&context.places.home]);
        let holds_home = |project: &Path| homes().any(|home| home.starts_with(project));
        // Every commit writes there. What is not compared under this very name stays locked.
        let linked = places::linked_repositories(&projects).into_iter().chain(named.iter().cloned());
        let linked = linked.filter(|repository| repositories.contains(repository) && !holds_home(repository));
        let worked_in: Vec<PathBuf> = projects.iter().cloned().chain(linked).collect();
        let mut rules = BoxRules {
            read_only: protected.iter().filter(is_locked).map(|one| one.path.clone()).chain(leads).collect(),
            pinned,
            hidden: places::hidden_sockets(&open, context),
            whole: worked_in.iter().filter(|folder| !holds_home(folder)).cloned().collect(),
            ..BoxRules::default()
        };
        rules.read_only.extend(places::kernel_settings());
        let account = places::account_home(context);
        // These are held and not compared: another session works there.
        let of_account = account.iter().flat_map(|home| table(Some(home), &[])).filter(|one| one.lock == Lock::Locked);
        rules.read_only.extend(of_account.map(|one| one.path));
        let homes: Vec<PathBuf> = context.places.user_home.iter().chain(&account).cloned().collect();
        if policy == BoxPolicy::Strict {
            rules.secret = places::secrets(&homes, context);
            rules.writable = Some(places::writable(&worked_in, context));
        }
        let own = context.places.home.clone();
        let mut watched: Vec<WatchedPath> = protected
            .into_iter()
            .map(|one| WatchedPath { whole: one.path != own, path: one.path, lock: one.lock })
            .collect();
        watched.extend(places::declared(&own).map(|path| WatchedPath { path, lock: Lock::Locked, whole: true }));
        let ssh = homes.iter().map(|home| home.join(".ssh")).collect();
        let listed = ListedFolders { ssh, patterns: places::socket_patterns(&open, context) };
        let caches = Mutex::new(Caches::new(context));
        let (plan, current, known) = (Mutex::default(), Mutex::default(), Mutex::default());
        CommandBox { policy, rules, watched, listed, projects, repositories, own, caches, plan, current, known }
    }

    /// The same for commands that share a person's terminal.
    #[must_use]
    pub fn on_terminal(mut self) -> CommandBox {
        self.rules.terminal = true;
        self
    }

    /// The state of the box on this machine.
    pub fn status(&self) -> BoxStatus {
        match self.policy {
            BoxPolicy::Off => BoxStatus::Off,
            BoxPolicy::On | BoxPolicy::Strict => {
                let (plan, found) = self.look();
                self.made(&plan, &found).status
            }
        }
    }

    /// Runs a job in the box; `run` starts it. All processes that the job leaves end with it.
    pub fn run(&self, children: &Children, mut job: Job, run: impl FnOnce(Job) -> Outcome) -> BoxedOutcome {
        if self.policy == BoxPolicy::Off {
            return BoxedOutcome { outcome: run(job), notes: Vec::new() };
        }
        // Looked at before the box is made: a change in between makes the box outdated, not unsafe.
        let (mut plan, mut found) = self.look();
        if plan.tree.found(&found, &self.own).is_none() {
            // We could not tell a folder that the command made from our own. If the folder cannot be made, it is
            // compared.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.own);
            (plan, found) = self.look();
        }
        let mut made = self.made(&plan, &found);
        if self.makes_caches(&made) {
            *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
            made = self.made(&plan, &found);
        }
        let means = made.process_box.as_ref().map(|made| made.means());
        let held = |path: &Path| match means {
            Some(BoxMeans::Namespaces) => Hold::Everything,
            Some(BoxMeans::Landlock) if self.rules.whole.iter().any(|project| path.starts_with(project)) => {
                Hold::Nothing
            }
            Some(BoxMeans::Landlock) => Hold::Content,
            None => Hold::Nothing,
        };
        // Where nothing keeps commands from our own folder, nothing in it counts.
        let undone = means.map(|_| UndoneChanges::from_now(&self.own)).unwrap_or_default();
        let (baseline, inner) = {
            let known = &mut self.known();
            let inner = InnerRepositories::take(&self.inner(&plan, &found), known);
            (Baseline::take(&plan.tree, &found, &held, known), inner)
        };
        job.process_box = made.process_box;
        let outcome = run(job);
        // Processes that still run could change files after the comparison.
        children.kill_adopted();
        let known = &mut self.known();
        let found = baseline.look_again(&plan.tree, known);
        let mut notes = inner.restore(&self.inner(&plan, &found), known, &undone);
        notes.extend(baseline.restore(&plan.tree, found, known, &undone));
        notes.extend(explanation(&outcome, means, || self.names(&plan)));
        BoxedOutcome { outcome, notes }
    }

    /// Makes, once, the caches that commands in such a box could not make; returns whether any were made.
    fn makes_caches(&self, made: &KernelBox) -> bool {
        let is_narrow = self.policy == BoxPolicy::Strict || made.status != BoxStatus::On;
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        is_narrow && caches.take().is_some_and(|caches| caches.make())
    }

    fn known(&self) -> MutexGuard<'_, KnownContents> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The protected paths, and which of them exist now.
    fn look(&self) -> (Arc<BoxPlan>, FoundPaths) {
        let mut current = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let known = &mut self.known();
        if let Some(CurrentPlan { states: before, links, plan }) = current.as_mut() {
            let found = plan.tree.look(&mut known.folders);
            // States are taken before listing, so a change in between shows as another state.
            let states = self.listed.states(|path| plan.tree.found(&found, path));
            let is_same = *before == states && states.iter().all(Option::is_some);
            if *links == path_tree::links(&found) && (is_same || self.listed.list() == plan.listing) {
                *before = states;
                return (Arc::clone(plan), found);
            }
        }
        let plan = Arc::new(self.plan_for(self.listed.list()));
        known.folders = KnownFolders::default();
        let found = plan.tree.look(&mut known.folders);
        let links = path_tree::links(&found);
        *current = Some(CurrentPlan { states: Vec::new(), links, plan: Arc::clone(&plan) });
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        (plan, found)
    }

    /// The rules for the paths of the table and the listed ones.
    fn plan_for(&self, listing: Listing) -> BoxPlan {
        let mut rules = self.rules.clone();
        rules.read_only.extend(listing.keys.iter().cloned());
        rules.hidden.extend(listing.sockets.iter().cloned());
        let keys = listing.keys.iter().map(|path| WatchedPath { path: path.clone(), lock: Lock::Locked, whole: true });
        let mut watched: Vec<WatchedPath> = self.watched.iter().cloned().chain(keys).collect();
        let tree = self.tree(&watched, &rules);
        if path_tree::links(&tree.look(&mut KnownFolders::default())).is_empty() {
            return BoxPlan { rules, tree, listing };
        }
        for WatchedPath { path, lock, whole } in watched.clone() {
            let Some(LinkedWay { links, target }) = linked_way(&path) else { continue };
            rules.pinned.extend(links.iter().cloned());
            rules.read_only.extend((lock == Lock::Locked).then(|| target.clone()));
            watched.extend(links.into_iter().map(|path| WatchedPath { path, lock: Lock::Locked, whole: true }));
            watched.push(WatchedPath { path: target, lock, whole });
        }
        let tree = self.tree(&watched, &rules);
        BoxPlan { rules, tree, listing }
    }

    fn tree(&self, watched: &[WatchedPath], rules: &BoxRules) -> PathTree {
        let boxed = [&rules.read_only, &rules.hidden, &rules.secret, &rules.pinned].into_iter().flatten().cloned();
        let others = self.listed.paths().map(Path::to_owned).chain(self.inner_folders());
        PathTree::new(watched.to_vec(), boxed, others)
    }

    /// The names by which a program may mention protected paths: relative to the home or the project, else absolute.
    fn names(&self, plan: &BoxPlan) -> Vec<String> {
        let roots: Vec<&Path> = self.projects.iter().map(PathBuf::as_path).chain(self.own.parent()).collect();
        // The explanation is about files of the person.
        let is_of_kernel = |path: &&PathBuf| places::kernel_settings().any(|setting| setting == **path);
        let locked = plan.rules.read_only.iter().filter(|path| !is_of_kernel(path));
        let below = locked.map(|path| roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path));
        below.map(|path| path.display().to_string()).filter(|name| !name.is_empty()).collect()
    }

    /// The folders that hold the repositories of submodules and of other working trees.
    fn inner_folders(&self) -> impl Iterator<Item = PathBuf> {
        self.repositories.iter().flat_map(|repository| ["modules", "worktrees"].map(|name| repository.join(name)))
    }

    /// The places of inner repositories that exist.
    fn inner(&self, plan: &BoxPlan, found: &FoundPaths) -> RepositoryPlaces {
        let exists = |path: &Path| plan.tree.found(found, path).is_some();
        let folders = self.inner_folders().filter(|folder| exists(folder)).collect();
        let trees = self.repositories.iter().filter(|path| path.ends_with(".git") && exists(path));
        let trees = trees.filter_map(|path| path.parent().map(Path::to_owned)).collect();
        RepositoryPlaces { folders, trees }
    }

    /// The kernel box for the paths that were found.
    fn made(&self, plan: &BoxPlan, found: &FoundPaths) -> KernelBox {
        let stamp = plan.tree.stamp(found);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = current.as_ref().filter(|(before, _)| *before == stamp) {
            return made.clone();
        }
        let mut rules = plan.rules.clone();
        rules.read_only.retain(|path| plan.tree.has(&stamp, path));
        let made = make(&rules);
        *current = Some((stamp, made.clone()));
        made
    }
}

impl ShellBox for CommandBox {
    fn run(&self, children: &Children, job: Job, stop: &dyn Fn() -> bool) -> (Outcome, Vec<String>) {
        let BoxedOutcome { outcome, notes } = CommandBox::run(self, children, job, |job| children.run_until(job, stop));
        (outcome, notes)
    }
}

/// Makes a box by the best means of this kernel.
fn make(rules: &BoxRules) -> KernelBox {
    let full = match ProcessBox::new(BoxMeans::Namespaces, rules) {
        Ok(made) => return KernelBox { process_box: Some(Arc::new(made)), status: BoxStatus::On },
        Err(error) => error,
    };
    match ProcessBox::new(BoxMeans::Landlock, rules) {
        Ok(made) => {
            let status = BoxStatus::Partial(weaker(&full, made.notes()));
            KernelBox { process_box: Some(Arc::new(made)), status }
        }
        Err(error) => {
            let reason = format!("{full}, and {error}; protected files are compared and restored after each command");
            KernelBox { process_box: None, status: BoxStatus::Unavailable(reason) }
        }
    }
}

fn weaker(full: &BoxError, notes: &[String]) -> String {
    let mut text = format!("{full}; Landlock takes its place");
    if current_uid() == 0 {
        text.push_str("; commands keep the privileges of root");
    }
    for note in notes {
        let _ = write!(text, "; {note}");
    }
    text
}

/// A warning for root in a project of another user: in a box, root has only the rights of an ordinary user.
pub(crate) fn foreign_project(context: &AppContext) -> Option<String> {
    if current_uid() != 0 {
        return None;
    }
    let owner = |project: &Path| fs::metadata(project).ok().map(|data| data.uid()).filter(|owner| *owner != 0);
    let (project, owner) = context.places.projects().find_map(|project| Some((project, owner(project)?)))?;
    let project = project.display();
    Some(format!("{project} belongs to user {owner}: in the box, commands of root write there only what everybody may"))
}

/// A warning for a home or a project that other machines or programs change without passing through this kernel.
pub(crate) fn remote_place(context: &AppContext, is_remote: &dyn Fn(&Path) -> bool) -> Option<String> {
    let places = context.places.user_home.as_deref().into_iter().chain(context.places.projects());
    let place = places.into_iter().find(|place| is_remote(place))?.display();
    Some(format!(
        "{place} is on a file system of another machine or program: what others change there goes around the box"
    ))
}

/// The meaning of a kernel's refusal, in one line. Standard output may contain words of any origin, and Landlock's
/// errors may have other causes. In both cases the line must also name a protected path.
fn explanation(outcome: &Outcome, means: Option<BoxMeans>, names: impl FnOnce() -> Vec<String>) -> Option<String> {
    const BY_MOUNTS: [&str; 4] = ["Read-only file system", "Device or resource busy", "EROFS", "EBUSY"];
    const BY_LANDLOCK: [&str; 5] =
        ["Permission denied", "EACCES", "Operation not permitted", "EPERM", "Invalid cross-device link"];
    let [errors, output] = [&outcome.stderr, &outcome.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    let is_of_sudo =
        |line: &str| line.contains("sudo:") && (line.contains("no new privileges") || line.contains("effective uid"));
    if errors.lines().chain(output.lines()).any(is_of_sudo) {
        return Some(
            "`sudo` cannot work in the box: nothing in it gets more rights. Ask the person to run the command."
                .to_owned(),
        );
    }
    let has = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
    // There are many names, and the kernel refuses nothing to most commands.
    let names = LazyCell::new(names);
    let names_any = |line: &str| names.iter().any(|name| line.contains(name));
    let by_means = |line: &str| match means {
        Some(BoxMeans::Namespaces) => has(line, &BY_MOUNTS),
        Some(BoxMeans::Landlock) => has(line, &BY_LANDLOCK),
        None => false,
    };
    let is_plain = means == Some(BoxMeans::Namespaces) && errors.lines().any(by_means);
    let is_named = || errors.lines().chain(output.lines()).any(|line| by_means(line) && names_any(line));
    (is_plain || is_named()).then(|| {
        let of_root = if current_uid() == 0 { ", and for root `/proc` and `/sys`" } else { "" };
        format!(
            "The box refused a change of a protected file. Protected are settings and hooks of agents, shell start files and \
             keys{of_root}. Ask the person to make the change."
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ollm_process::End;

    use super::*;

    #[test]
    fn a_protected_file_that_appears_between_two_commands_is_held_in_the_second() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let (project, file) = (home.join("project"), home.join(".claude/settings.json"));
        fs::create_dir(&project).unwrap();
        let context = AppContext::new(Vec::new(), project.clone(), Some(home.clone()));
        let command_box = CommandBox::by_policy(BoxPolicy::On, &context, &Config::default());
        if command_box.status() != BoxStatus::On {
            return eprintln!("skipped: this kernel allows no box");
        }
        let children = Children::new();
        let run = || {
            let script = format!("(echo evil > {}) 2>&1", file.display());
            let args = vec!["-c".into(), script.into()];
            let job = Job { args, cwd: Some(project.clone()), ..Job::new("/bin/sh") };
            command_box.run(&children, job, |job| children.run(job))
        };
        assert_eq!(run().notes, Vec::<String>::new(), "there is no folder to write to");
        fs::create_dir(home.join(".claude")).unwrap();
        fs::write(&file, "mine").unwrap();
        let ran = run();
        assert!(String::from_utf8_lossy(&ran.outcome.stdout).contains("Read-only"), "{ran:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        fs::remove_file(&file).unwrap();
        assert_eq!(run().notes.len(), 1, "what was made anew is moved aside");
        assert!(!file.exists());
    }

    #[test]
    fn a_home_or_a_project_of_another_machine_is_told() {
        let home = PathBuf::from("/home/ada");
        let context = AppContext::new(Vec::new(), "/srv/project".into(), Some(home));
        assert_eq!(remote_place(&context, &|_| false), None);
        let told = remote_place(&context, &|place| place == Path::new("/home/ada"));
        assert!(told.is_some_and(|told| told.starts_with("/home/ada is on a file system of another machine")));
    }

    #[test]
    fn a_refusal_is_explained_wherever_it_is_told_and_other_words_are_not() {
        let names = || vec![".bashrc".to_owned(), ".git/hooks".to_owned()];
        let told = |means, stdout: &str, stderr: &str| {
            let [stdout, stderr] = [stdout, stderr].map(|text| text.as_bytes().to_vec());
            let (end, started, elapsed) = (End::Exited(1), Instant::now(), Duration::ZERO);
            let outcome = Outcome { end, stdout, stderr, leaky: false, started, elapsed };
            explanation(&outcome, Some(means), names).map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        };
        let refused = Some("The box".to_owned());
        let (mounts, landlock) = (BoxMeans::Namespaces, BoxMeans::Landlock);
        assert_eq!(told(mounts, "sh: cannot create /home/u/.bashrc: Read-only file system", ""), refused);
        assert_eq!(told(mounts, "", "OSError: [Errno 30] Read-only file system: 'x'"), refused);
        assert_eq!(told(mounts, "#define EROFS 30", ""), None);
        assert_eq!(told(landlock, "", "sh: cannot create .git/hooks/pre-commit: Permission denied"), refused);
        assert_eq!(told(landlock, "", "cat: /etc/shadow: Permission denied"), None);
        assert_eq!(told(landlock, "sudo: The \"no new privileges\" flag is set", ""), Some("`sudo` cannot".to_owned()));
    }
}
