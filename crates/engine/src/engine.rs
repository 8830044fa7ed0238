//! One event in, one outcome out.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ollm_process::Children;
use ollm_protocol::{Event, Hook, Verdict};
use uuid::Uuid;

use crate::bus::{Bus, Wire};
use crate::environment::Environment;
use crate::merge::{Begun, Progress};
use crate::plan::{Facts, Plan, plan};
use crate::present::leaving;
use crate::registry::Registry;
use crate::report::{Outcome, Reason, Report, Skip};
use crate::run;
use crate::trust::{Step, Trust, Trusted, Untrusted, clear};

/// The hook engine. Everything it knows of the world came in as a value.
#[derive(Debug)]
pub struct Engine {
    /// The hooks.
    pub registry: Registry,
    /// Who is trusted.
    pub trust: Trust,
    /// Why no hook at all may run, if that is so.
    pub switched_off: Option<String>,
    /// Where listeners are told of events and hooks.
    pub bus: Bus,
    environment: Environment,
    children: Children,
}

impl Engine {
    /// An engine without hooks.
    pub fn new(trust: Trust, environment: Environment) -> Engine {
        Engine {
            registry: Registry::new(),
            trust,
            switched_off: None,
            bus: Bus::new(),
            environment,
            children: Children::new(),
        }
    }

    /// Passes an event through its hooks. Whatever goes wrong is part of the outcome.
    pub fn dispatch(&self, event: &Event) -> Outcome {
        self.dispatch_with(event, &Facts { switched_off: self.switched_off.clone(), list_unfitting: false })
    }

    /// Like [`Engine::dispatch`], and the outcome lists also the hooks whose matcher does not fit.
    pub fn dispatch_explained(&self, event: &Event) -> Outcome {
        self.dispatch_with(event, &Facts { switched_off: self.switched_off.clone(), list_unfitting: true })
    }

    /// What would happen for an event.
    pub fn plan(&self, event: &Event) -> Plan {
        plan(&self.registry, event, &Facts { switched_off: self.switched_off.clone(), list_unfitting: true })
    }

    /// Makes sure that a hook may run.
    pub fn trusted(&self, hook: &Arc<Hook>) -> Result<Trusted, Skip> {
        self.trust.trust(hook, &self.environment, None)
    }

    /// Runs one hook.
    pub fn run_one(&self, hook: &Trusted, event: &Event) -> Option<Report> {
        self.run_many(std::slice::from_ref(hook), event).pop()
    }

    /// Runs hooks one after the other, each seeing what the earlier ones passed on; a refusal ends the chain.
    pub fn run_many(&self, hooks: &[Trusted], event: &Event) -> Vec<Report> {
        let stages = hooks.iter().map(|hook| vec![Step::Run(hook.clone())]).collect();
        let trace_id = trace_id(self.trust.now());
        self.walk(stages, Progress::new(event.clone(), Vec::new()), &self.wire(&trace_id)).reports
    }

    /// The surroundings hooks run in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The processes of this engine.
    pub fn children(&self) -> &Children {
        &self.children
    }

    fn dispatch_with(&self, event: &Event, facts: &Facts) -> Outcome {
        let begun = Begun { started: Instant::now(), time: self.trust.now() };
        let trace_id = trace_id(begun.time);
        let wire = self.wire(&trace_id);
        wire.event(event);
        let planned = plan(&self.registry, event, facts);
        let cleared = clear(planned, &self.trust, &self.environment, event.session_id());
        let stages = cleared.stages.iter().map(|steps| steps.iter().map(|step| Arc::clone(step.hook())).collect());
        let stages = stages.collect();
        let mut progress = Progress::new(event.clone(), cleared.skipped);
        if self.trust.untrusted == Untrusted::Block {
            progress.verdict = unapproved(&progress.skipped);
        }
        let outcome = self.walk(cleared.stages, progress, &wire).finish(event, stages, begun, &trace_id);
        leaving(outcome, &self.environment)
    }

    fn walk(&self, stages: Vec<Vec<Step>>, mut progress: Progress, wire: &Wire<'_>) -> Progress {
        for steps in stages {
            if let Some(refuser) = progress.stopped_by.clone() {
                let detail = format!("hook `{refuser}` refused before its turn");
                let hooks = steps.iter().map(Step::hook);
                progress.skipped.extend(hooks.map(|hook| Skip::new(hook, Reason::AfterBlock, detail.clone())));
                continue;
            }
            let reports = run::stage(&steps, &progress.event(), &self.children, &self.environment, wire);
            progress.take(reports);
        }
        progress
    }

    fn wire<'a>(&'a self, trace_id: &'a str) -> Wire<'a> {
        Wire { bus: &self.bus, clock: &self.trust, trace_id }
    }
}

/// A name that is unique and ordered by time.
fn trace_id(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
    Uuid::new_v7(timestamp).to_string()
}

/// The refusal that stands for hooks nobody approved.
fn unapproved(skipped: &[Skip]) -> Verdict {
    skipped.iter().fold(Verdict::default(), |verdict, skip| {
        let name = &skip.hook.spec.name;
        match skip.reason {
            reason if reason.needs_approval() => {
                verdict.then(Verdict::block(format!("hook `{name}` is {}", skip.detail)))
            }
            // What cannot be read cannot be the content that was approved.
            Reason::Unsafe => verdict.then(Verdict::block(format!("hook `{name}` cannot be checked: {}", skip.detail))),
            _ => verdict,
        }
    })
}
