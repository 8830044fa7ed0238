//! Gathers what planning must know of the machine: missing requirements, used-up limits, names of the same program.
//! Facts are gathered before planning, and only those that a candidate needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ollm_process::find_program;
use ollm_protocol::hook::Requires;
use ollm_protocol::{Hook, Needs};

use crate::environment::Environment;
use crate::rate::Rates;
use crate::report::{Reason, Skip};

mod service;

/// What planning must know in addition to the registry and the event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Requirements that are not met, each with the reason and the remedy.
    pub absent: BTreeMap<Requirement, String>,
    /// Requirements that were checked.
    pub looked_for: BTreeSet<Requirement>,
    /// The hooks whose limits are used up, by id, with the details.
    pub exhausted: BTreeMap<String, String>,
    /// Whether two hooks may be identical in what they do.
    pub twins: bool,
    /// Bare names of programs, each with the absolute path of the same program.
    pub found: BTreeSet<(String, String)>,
}

/// Something that must be there for a hook to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// A program on the search path.
    Command(String),
    /// A file.
    File(String),
    /// A service that takes connections.
    Service(String),
}

/// The sources of facts.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) rates: &'a Rates,
}

pub(crate) fn requires(hook: &Hook) -> impl Iterator<Item = Requirement> {
    let requires = &hook.spec.requires;
    let commands = requires.commands.iter().cloned().map(Requirement::Command);
    // The same file name means different files in different projects.
    let in_project = |file: &String| match &hook.spec.project {
        Some(project) => project.join(file).display().to_string(),
        None => file.clone(),
    };
    let files = requires.files.iter().map(in_project).map(Requirement::File);
    commands.chain(files).chain(requires.services.iter().cloned().map(Requirement::Service))
}

/// Whether a hook requires anything.
pub(crate) fn is_demanding(hook: &Hook) -> bool {
    hook.spec.requires != Requires::default()
}

impl Facts {
    /// Gathers facts for candidates. Requirements are checked only for hooks that `may_run`: an unapproved project
    /// cannot make us open a connection or touch a file.
    pub(crate) fn gather(
        candidates: &[&Arc<Hook>],
        sources: &Sources<'_>,
        may_run: impl Fn(&Arc<Hook>) -> bool,
    ) -> Facts {
        let mut facts = Facts::default();
        let limited = candidates.iter().filter(|hook| sources.rates.limits(hook));
        facts.exhausted = sources.rates.exhausted(limited.copied());
        let demanding: Vec<&Arc<Hook>> =
            candidates.iter().copied().filter(|hook| is_demanding(hook) && may_run(hook)).collect();
        facts.look_for(&demanding, sources.environment);
        facts
    }

    /// Checks the requirements of hooks, each requirement once.
    pub(crate) fn look_for(&mut self, hooks: &[&Arc<Hook>], environment: &Environment) {
        let mut services = BTreeSet::new();
        for requirement in hooks.iter().flat_map(|hook| requires(hook)) {
            if !self.looked_for.insert(requirement.clone()) {
                continue;
            }
            let why = match &requirement {
                Requirement::Command(name) => missing_command(name, environment),
                Requirement::File(path) => missing_file(path, environment),
                Requirement::Service(address) => {
                    services.insert(address.clone());
                    None
                }
            };
            self.absent.extend(why.map(|why| (requirement, why)));
        }
        for (service, why) in service::unreachable(&services) {
            self.absent.insert(Requirement::Service(service), why);
        }
    }

    /// Searches `PATH` for a program only if one hook names it bare and another hook gives a path to it.
    pub(crate) fn find(&mut self, hooks: &[&Arc<Hook>], environment: &Environment) {
        let programs = hooks.iter().filter_map(|hook| match hook.spec.action.needs() {
            Needs::Program { program, .. } => Some(program),
            _ => None,
        });
        let (placed, bare): (BTreeSet<&str>, BTreeSet<&str>) = programs.partition(|program| program.contains('/'));
        for name in bare {
            let mut rivals = placed.iter().filter(|path| path.rsplit('/').next() == Some(name)).peekable();
            let Some(found) = rivals.peek().and_then(|_| find_program(name, environment.path())) else { continue };
            let same = rivals.filter(|path| is_same_file(&found, Path::new(path)));
            self.found.extend(same.map(|path| (name.to_owned(), (*path).to_owned())));
        }
    }

    /// Whether a bare name and a path are known to be the same program.
    pub(crate) fn same_program(&self, one: &str, other: &str) -> bool {
        !self.found.is_empty()
            && [(one, other), (other, one)].iter().any(|(name, path)| {
                self.found.iter().any(|(known, place)| (known.as_str(), place.as_str()) == (*name, *path))
            })
    }

    /// Whether a hook's requirements are met and its limits allow a run. For a gate, the result is why it has failed.
    pub(crate) fn admit(&self, hook: &Arc<Hook>) -> Result<Option<String>, Skip> {
        let exhausted = || self.exhausted.get(hook.id()).map(|why| Skip::new(hook, Reason::RateLimited, why));
        self.equipped(hook).err().or_else(exhausted).map(Skip::failure_of_gate).transpose()
    }

    /// Whether a hook's requirements are met.
    pub(crate) fn equipped(&self, hook: &Arc<Hook>) -> Result<(), Skip> {
        match requires(hook).find_map(|requirement| self.absent.get(&requirement)) {
            Some(why) => Err(Skip::new(hook, Reason::Requires, why)),
            None => Ok(()),
        }
    }
}

/// Whether two paths with the same last part lead to one file. A link in that part is not followed, because a program
/// may behave by the name and folder it is started under.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| path.parent().and_then(|folder| folder.canonicalize().ok());
    one == other || (folder(one).is_some() && folder(one) == folder(other))
}

fn missing_command(name: &str, environment: &Environment) -> Option<String> {
    let found = if Path::new(name).is_absolute() {
        Path::new(name).is_file()
    } else {
        find_program(name, environment.path()).is_some()
    };
    (!found)
        .then(|| format!("it requires the command `{name}`, which is not on PATH; install it, or change `requires`"))
}

fn missing_file(path: &str, environment: &Environment) -> Option<String> {
    let root = environment.project.as_deref().unwrap_or(&environment.cwd);
    let file = root.join(path);
    (!file.exists())
        .then(|| format!("it requires {}, which does not exist; create it, or change `requires`", file.display()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::SystemTime;

    use ollm_protocol::hook::action::AskAgentSpec;
    use ollm_protocol::{ActionSpec, HookSpec, RateLimit, Rules};

    use super::*;

    fn asks(id: &str, matcher: &str) -> HookSpec {
        let action = ActionSpec::AskAgent(AskAgentSpec { prompt: "hm".to_owned() });
        HookSpec { matcher: Some(matcher.to_owned()), ..HookSpec::new(id, "before_tool", action) }
    }

    fn demanding(matcher: &str) -> HookSpec {
        HookSpec {
            condition: Some("cwd == '/'".to_owned()),
            rate_limit: RateLimit { per_minute: Some(1), cooldown: None },
            requires: Requires { commands: vec!["no-such-program".to_owned()], ..Requires::default() },
            ..asks("demanding", matcher)
        }
    }

    #[test]
    fn only_what_candidates_ask_for_is_looked_at() {
        let environment = Environment { cwd: "/".into(), ..Environment::default() };
        let rates = Rates::new(Path::new("/nonexistent/rates").to_owned(), SystemTime::now);
        let sources = Sources { environment: &environment, rates: &rates };
        let hook = |spec| Arc::new(Hook::new(spec, &Rules::default()).unwrap());
        let (plain, demanding) = (hook(asks("plain", "shell")), hook(demanding("shell")));
        assert_eq!(Facts::gather(&[&plain], &sources, |_| true), Facts::default());
        assert_eq!(Facts::gather(&[&plain, &demanding], &sources, |_| false), Facts::default());
        assert_eq!(Facts::gather(&[&plain, &demanding], &sources, |_| true).absent.len(), 1);
    }
}
