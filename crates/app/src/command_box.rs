//! The box for shell commands: which files no command can change, by the one table of what is protected.
//!
//! The kernel holds what exists (`ollm_process::ProcessBox`). What does not exist yet, what ordinary work has to change,
//! and what this kernel cannot hold is compared after each command (`compare`).

mod compare;
mod path_tree;
mod places;

use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_agent::ShellBox;
use ollm_catalog::Config;
use ollm_guard::{Lock, Protected};
use ollm_process::{BoxError, BoxMeans, BoxRules, Children, Job, Outcome, ProcessBox};
use serde_json::{Value, json};

use crate::app_context::AppContext;
use crate::guards::shelter;
use compare::{Baseline, Known};
use path_tree::{BoxStamp, FoundPaths, PathTree, WatchedPath};

/// How much a box keeps from commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxPolicy {
    /// Nothing: there is no box.
    Off,
    /// What is protected cannot be changed.
    #[default]
    On,
    /// Beyond that, only the project, temporary folders and caches can be written, and secrets cannot be read.
    Strict,
}

impl BoxPolicy {
    /// Every policy by its name.
    pub const ALL: [(&'static str, BoxPolicy); 3] =
        [("on", BoxPolicy::On), ("strict", BoxPolicy::Strict), ("off", BoxPolicy::Off)];

    /// What the configuration says.
    pub fn of(config: &Config) -> BoxPolicy {
        let setting = config.get("agent.box");
        let name = setting.as_ref().and_then(|setting| setting.value.as_str()).unwrap_or_default();
        BoxPolicy::ALL.iter().find(|(known, _)| *known == name).map_or(BoxPolicy::On, |(_, policy)| *policy)
    }
}

/// What became of a box on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoxStatus {
    /// Everything is held by the kernel.
    On,
    /// Some of it is not, for this reason.
    Partial(String),
    /// Nothing is, for this reason.
    Unavailable(String),
    /// The configuration switches it off.
    Off,
}

impl BoxStatus {
    /// What becomes of the boxes of hooks and servers.
    pub fn of_programs() -> BoxStatus {
        // As much as any of them has.
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

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        json!({"state": self.name(), "reason": self.reason()})
    }

    /// What a person should know before commands run, unless it is simply on.
    pub fn note(&self) -> Option<String> {
        match self {
            BoxStatus::On => None,
            BoxStatus::Partial(reason) => Some(format!("shell commands run in a partial box: {reason}")),
            BoxStatus::Unavailable(reason) => Some(format!("shell commands run without a box: {reason}")),
            BoxStatus::Off => Some("shell commands run without a box: `agent.box` is off".to_owned()),
        }
    }

    /// Why it is not simply on.
    pub fn reason(&self) -> Option<&str> {
        match self {
            BoxStatus::Partial(reason) | BoxStatus::Unavailable(reason) => Some(reason),
            BoxStatus::On | BoxStatus::Off => None,
        }
    }
}

/// A box for any number of commands. It is made anew when what it protects has changed meanwhile.
#[derive(Debug)]
pub struct CommandBox {
    policy: BoxPolicy,
    rules: BoxRules,
    /// What is protected.
    tree: PathTree,
    projects: Vec<PathBuf>,
    /// Our own folder.
    own: PathBuf,
    /// The last box, and the files that it was made for.
    current: Mutex<Option<(BoxStamp, Made)>>,
    /// What protected files held when they were compared last.
    known: Mutex<Known>,
}

/// A box of the kernel, and what it does not hold.
#[derive(Clone, Debug)]
struct Made {
    process_box: Option<Arc<ProcessBox>>,
    status: BoxStatus,
}

/// What came of a command in a box.
#[derive(Debug)]
pub struct BoxedOutcome {
    /// How it ended and what it wrote.
    pub outcome: Outcome,
    /// What was changed and put back, and what a refusal means: one line each, for the model and the person.
    pub notes: Vec<String>,
}

impl CommandBox {
    /// The box that the configuration asks for.
    pub fn new(context: &AppContext, config: &Config) -> CommandBox {
        CommandBox::by_policy(BoxPolicy::of(config), context, config)
    }

    /// A box by this policy, whatever the configuration says about that.
    pub fn by_policy(policy: BoxPolicy, context: &AppContext, config: &Config) -> CommandBox {
        let protected = shelter(context).protected();
        let mut projects: Vec<PathBuf> = context.places.projects().map(Path::to_owned).collect();
        if projects.is_empty() {
            projects.push(context.cwd.clone());
        }
        let is_locked = |one: &&Protected| one.lock == Lock::Locked;
        let mut rules = BoxRules {
            read_only: protected.iter().filter(is_locked).map(|one| one.path.clone()).collect(),
            hidden: places::hidden_sockets(&places::open_sockets(config), context),
            whole: projects.clone(),
            ..BoxRules::default()
        };
        rules.read_only.extend(places::kernel_settings());
        if policy == BoxPolicy::Strict {
            rules.hidden.extend(places::secrets(context));
            rules.writable = Some(places::writable(&projects, context));
        }
        let own = &context.places.home;
        let mut watched: Vec<WatchedPath> = protected
            .into_iter()
            .map(|one| WatchedPath { whole: one.path != *own, path: one.path, lock: one.lock })
            .collect();
        watched.extend(places::declared(own).map(|path| WatchedPath { path, lock: Lock::Locked, whole: true }));
        let tree = PathTree::new(watched, rules.read_only.iter().chain(&rules.hidden).cloned());
        let own = own.clone();
        CommandBox { policy, rules, tree, projects, own, current: Mutex::default(), known: Mutex::default() }
    }

    /// The same for commands that share a person's terminal.
    #[must_use]
    pub fn on_terminal(mut self) -> CommandBox {
        self.rules.terminal = true;
        self
    }

    /// What became of it on this machine.
    pub fn status(&self) -> BoxStatus {
        match self.policy {
            BoxPolicy::Off => BoxStatus::Off,
            BoxPolicy::On | BoxPolicy::Strict => self.made(&self.look()).status,
        }
    }

    /// Runs a job in the box; `run` starts it. Whatever it leaves running ends with it.
    pub fn run(&self, children: &Children, mut job: Job, run: impl FnOnce(Job) -> Outcome) -> BoxedOutcome {
        if self.policy == BoxPolicy::Off {
            return BoxedOutcome { outcome: run(job), notes: Vec::new() };
        }
        // A folder of ours that the command made could not be told from our own. Where it cannot be made, it is compared.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.own);
        // Before the box is made: what changes in between makes it outdated, and not unsafe.
        let found = self.look();
        let made = self.made(&found);
        let means = made.process_box.as_ref().map(|made| made.means());
        let held = |path: &Path| match means {
            Some(BoxMeans::Namespaces) => true,
            Some(BoxMeans::Landlock) => !self.projects.iter().any(|project| path.starts_with(project)),
            None => false,
        };
        let baseline = Baseline::take(&self.tree, &found, &held, &mut self.known());
        job.process_box = made.process_box;
        let outcome = run(job);
        // What still runs could change files after they were compared.
        children.kill_adopted();
        let mut notes = baseline.restore(&self.tree, &mut self.known());
        notes.extend(explanation(&outcome));
        BoxedOutcome { outcome, notes }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there now of what is protected.
    fn look(&self) -> FoundPaths {
        self.tree.look(&mut self.known().folders)
    }

    /// The box of the kernel for what was found.
    fn made(&self, found: &FoundPaths) -> Made {
        let stamp = self.tree.stamp(found);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = current.as_ref().filter(|(before, _)| *before == stamp) {
            return made.clone();
        }
        let mut rules = self.rules.clone();
        rules.read_only.retain(|path| self.tree.has(&stamp, path));
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

/// By the best means that this kernel has.
fn make(rules: &BoxRules) -> Made {
    let full = match ProcessBox::new(BoxMeans::Namespaces, rules) {
        Ok(made) => return Made { process_box: Some(Arc::new(made)), status: BoxStatus::On },
        Err(error) => error,
    };
    match ProcessBox::new(BoxMeans::Landlock, rules) {
        Ok(made) => {
            let status = BoxStatus::Partial(weaker(&full, made.notes()));
            Made { process_box: Some(Arc::new(made)), status }
        }
        Err(error) => {
            let reason = format!("{full}, and {error}; protected files are compared and restored after each command");
            Made { process_box: None, status: BoxStatus::Unavailable(reason) }
        }
    }
}

fn weaker(full: &BoxError, notes: &[String]) -> String {
    let mut text = format!("{full}; Landlock takes its place");
    for note in notes {
        let _ = write!(text, "; {note}");
    }
    text
}

/// What a refusal of the kernel means, in one line.
fn explanation(outcome: &Outcome) -> Option<String> {
    const REFUSALS: [&str; 4] = ["Read-only file system", "Device or resource busy", "EROFS", "EBUSY"];
    let text = String::from_utf8_lossy(&outcome.stderr);
    if text.contains("sudo:") && (text.contains("no new privileges") || text.contains("effective uid")) {
        return Some(
            "`sudo` cannot work in the box: nothing in it gets more rights. Ask the person to run the command."
                .to_owned(),
        );
    }
    REFUSALS.iter().any(|refusal| text.contains(refusal)).then(|| {
        "The box refused a change of a protected file. Protected are settings and hooks of agents, shell start files and \
         keys. Ask the person to make the change."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

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
}
