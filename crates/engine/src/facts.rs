//! What planning must know of the world. It is gathered before, and only what some hook of the event asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ollm_process::find_program;
use ollm_protocol::{Event, Hook, RateLimit, Reach};
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::plan::{Narrowed, narrow};
use crate::rate::Rates;
use crate::registry::Registry;
use crate::report::{Reason, Skip};

mod service;

/// What planning must know beside the registry and the event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Why no hook at all may run, if that is so.
    pub switched_off: Option<String>,
    /// Whether to list also the hooks of the event whose matcher does not fit.
    pub list_unfitting: bool,
    /// What hooks require and is not there, with the way out.
    pub absent: BTreeMap<Requirement, String>,
    /// The services that were looked for.
    pub probed: BTreeSet<String>,
    /// The hooks whose limits are used up, by id, and the particulars.
    pub exhausted: BTreeMap<String, String>,
    /// What patterns and conditions see beside the event.
    pub surroundings: Surroundings,
}

/// What patterns and conditions see beside the event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The folder we are in.
    pub cwd: String,
    /// The root of the project, or else that folder.
    pub root: String,
    /// The variables that any hook may see.
    pub variables: Map<String, Value>,
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

/// Where facts come from.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) rates: &'a Rates,
}

/// Whether a hook runs only under conditions that the registry does not tell.
pub(crate) fn asked_by(hook: &Hook) -> bool {
    let spec = &hook.spec;
    hook.reach.value != Reach::All
        || !spec.file_patterns.is_empty()
        || spec.condition.is_some()
        || spec.rate_limit != RateLimit::default()
        || requires(hook).next().is_some()
}

fn requires(hook: &Hook) -> impl Iterator<Item = Requirement> {
    let requires = &hook.spec.requires;
    let commands = requires.commands.iter().cloned().map(Requirement::Command);
    let files = requires.files.iter().cloned().map(Requirement::File);
    commands.chain(files).chain(requires.services.iter().cloned().map(Requirement::Service))
}

impl Facts {
    /// Looks at what the hooks of an event ask for. Services are asked for only by hooks that `may_run`: a project that
    /// nobody approved does not get us to open a connection.
    pub(crate) fn gather(
        &mut self,
        registry: &Registry,
        event: &Event,
        sources: &Sources<'_>,
        may_run: impl Fn(&Arc<Hook>) -> bool,
    ) {
        let asks = registry.asks(event.kind) || sources.rates.limits_all();
        if self.switched_off.is_some() || !asks {
            return;
        }
        self.surroundings = sources.environment.surroundings();
        let asking: Vec<&Arc<Hook>> = registry
            .fitting(event.kind, event.subject())
            .into_iter()
            .filter(|hook| hook.spec.enabled && (requires(hook).next().is_some() || sources.rates.limits(hook)))
            .filter(|hook| matches!(narrow(hook, event, self), Ok(Narrowed::Fits)))
            .collect();
        for hook in &asking {
            self.look(hook, sources);
        }
        let services = asking.iter().filter(|hook| !hook.spec.requires.services.is_empty() && may_run(hook));
        self.probe(services.flat_map(|hook| hook.spec.requires.services.iter().cloned()));
    }

    /// The folder an event happened in.
    pub(crate) fn cwd(&self, event: &Event) -> String {
        let here = Path::new(&self.surroundings.cwd);
        event.text("cwd").map_or_else(|| self.surroundings.cwd.clone(), |cwd| here.join(cwd).display().to_string())
    }

    /// Whether any hook may be held back, also one that asks for nothing itself.
    pub(crate) fn everybody_asks(&self) -> bool {
        !self.exhausted.is_empty()
    }

    /// Whether a hook has what it needs, and runs left.
    pub(crate) fn admit(&self, hook: &Arc<Hook>) -> Result<(), Skip> {
        self.equipped(hook)?;
        match self.exhausted.get(hook.id()) {
            Some(why) => Err(Skip::new(hook, Reason::RateLimited, why)),
            None => Ok(()),
        }
    }

    /// Whether a hook has what it needs.
    pub(crate) fn equipped(&self, hook: &Arc<Hook>) -> Result<(), Skip> {
        match requires(hook).find_map(|requirement| self.absent.get(&requirement)) {
            Some(why) => Err(Skip::new(hook, Reason::Requires, why)),
            None => Ok(()),
        }
    }

    /// Looks for the services of a hook that nobody has looked for yet.
    pub(crate) fn probe_for(&mut self, hook: &Hook) {
        self.probe(hook.spec.requires.services.iter().cloned());
    }

    fn look(&mut self, hook: &Hook, sources: &Sources<'_>) {
        for requirement in requires(hook) {
            let why = match &requirement {
                Requirement::Command(name) => missing_command(name, sources.environment),
                Requirement::File(path) => missing_file(path, sources.environment),
                Requirement::Service(_) => None,
            };
            self.absent.extend(why.map(|why| (requirement, why)));
        }
        if let Some(why) = sources.rates.exhausted(hook) {
            self.exhausted.insert(hook.id().to_owned(), why);
        }
    }

    fn probe(&mut self, services: impl Iterator<Item = String>) {
        let new: BTreeSet<String> = services.filter(|service| !self.probed.contains(service)).collect();
        if new.is_empty() {
            return;
        }
        for (service, why) in service::unreachable(&new) {
            self.absent.insert(Requirement::Service(service), why);
        }
        self.probed.extend(new);
    }
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
