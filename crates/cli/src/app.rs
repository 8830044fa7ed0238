//! The wiring: what the catalog found goes into the engine, with the world's values.

use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{Overrides, Positions, Problem, Severity};
use ollm_engine::{DuplicateId, Engine, Environment, Trust, Untrusted};
use ollm_protocol::{Hook, Origin};

use crate::error::{Failure, Kind};
use crate::guards::guards;
use crate::output::Output;
use crate::world::World;

/// An engine with all hooks that were found, and what was wrong with the rest.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) problems: Vec<Problem>,
}

impl App {
    /// Loads everything; a security setting that cannot be read stops us here.
    pub(crate) fn load(world: &World, positions: Positions) -> Result<App, Failure> {
        App::load_with(world, positions, |hook| hook)
    }

    /// Like [`App::load`], with a last look at every hook that was found.
    pub(crate) fn load_with(world: &World, positions: Positions, adapt: fn(Hook) -> Hook) -> Result<App, Failure> {
        let env = |name: &str| world.variable(name);
        let (catalog, mut problems) = ollm_catalog::load(&world.places, &env, &Overrides::default(), positions);
        if let Some(fatal) = problems.iter().find(|problem| problem.severity == Severity::Fatal) {
            return Err(Failure::new(Kind::Configuration, fatal.to_string()).hint("correct the value or remove it"));
        }
        let settings = catalog.settings;
        let mut trust = Trust::new(world.approvals(), SystemTime::now);
        trust.workspace = settings.trust_workspace;
        trust.untrusted = if settings.untrusted_blocks { Untrusted::Block } else { Untrusted::Skip };
        let environment = Environment {
            variables: world.variables.clone(),
            cwd: world.cwd.clone(),
            project: world.places.project.clone(),
            home: world.places.user_home.clone(),
        };
        let mut engine = Engine::new(trust, environment);
        engine.switched_off =
            (!settings.enabled).then(|| format!("hooks.enabled is false ({})", settings.enabled_from));
        for guard in guards(&settings.guards, world).into_iter().flatten() {
            // The ids of the guards are our own: no other hook can have them yet.
            let _ = engine.registry.register(guard);
        }
        for hook in catalog.hooks {
            let origin = hook.spec.origin.clone();
            if let Err(duplicate) = engine.registry.register(adapt(hook)) {
                problems.push(taken(&origin, &duplicate));
            }
        }
        Ok(App { engine, problems })
    }

    /// Tells the person what is wrong with the files, one line each.
    pub(crate) fn tell_problems(&self, output: &mut Output) {
        for problem in &self.problems {
            output.tell(&problem.to_string());
        }
    }

    /// Every hook, each once, in the order of the event table and of registration.
    pub(crate) fn hooks(&self) -> Vec<Arc<Hook>> {
        let mut hooks: Vec<Arc<Hook>> = Vec::new();
        for (_, of_event) in self.engine.registry.all() {
            for hook in of_event {
                if !hooks.iter().any(|known| Arc::ptr_eq(known, &hook)) {
                    hooks.push(hook);
                }
            }
        }
        hooks
    }

    /// The hook with this id, or the only one with this name.
    pub(crate) fn hook(&self, id: &str) -> Result<Arc<Hook>, Failure> {
        if let Some(hook) = self.engine.registry.get(id) {
            return Ok(Arc::clone(hook));
        }
        let hooks = self.hooks();
        let named: Vec<&Arc<Hook>> = hooks.iter().filter(|hook| hook.spec.name == id).collect();
        match named.as_slice() {
            [hook] => Ok(Arc::clone(hook)),
            [] => Err(unknown(id, &hooks)),
            many => {
                let ids: Vec<&str> = many.iter().map(|hook| hook.id()).collect();
                Err(Failure::new(Kind::Usage, format!("{} hooks are named `{id}`", many.len()))
                    .hint(format!("use one of their ids: {}", ids.join(", "))))
            }
        }
    }
}

fn taken(origin: &Origin, duplicate: &DuplicateId) -> Problem {
    Problem {
        severity: Severity::Error,
        file: origin.file.clone(),
        line: origin.line,
        column: origin.column,
        field: "id".to_owned(),
        value: Some(duplicate.id.clone()),
        message: duplicate.to_string(),
        help: None,
        snippet: None,
    }
}

fn unknown(id: &str, hooks: &[Arc<Hook>]) -> Failure {
    let ids = hooks.iter().flat_map(|hook| [hook.id(), hook.spec.name.as_str()]);
    let nearest = ids.map(|known| (strsim::damerau_levenshtein(id, known), known)).min();
    let failure = Failure::new(Kind::Usage, format!("there is no hook `{id}`"));
    match nearest.filter(|(distance, known)| *distance <= known.len() / 3) {
        Some((_, known)) => failure.hint(format!("did you mean `{known}`?")),
        None => failure.hint("`ollm hook list` shows the hooks there are"),
    }
}
