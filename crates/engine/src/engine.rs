//! One event in, one outcome out.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ollm_condition::SeenValue;
use ollm_process::Children;
use ollm_protocol::{Event, Hook, Verdict};
use ollm_trust::{Trust, Trusted, Untrusted};
use serde_json::Value;
use uuid::Uuid;

use crate::action::ToolCaller;
use crate::background::{Background, Late};
use crate::bus::{Bus, Wire};
use crate::clear::{self, Cleared, Step};
use crate::environment::Environment;
use crate::facts::{Facts, Sources};
use crate::merge::{Begun, Progress};
use crate::narrow::condition_values;
use crate::plan::{Plan, Planned, plan};
use crate::present::{leaving, redactor};
use crate::rate::Rates;
use crate::registry::Registry;
use crate::report::{Outcome, Reason, Report, Skip};
use crate::run::{self, RunContext, Stop};
use crate::select::{self, select};
use crate::twin;

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
    /// How often hooks may run.
    pub rates: Rates,
    /// Who calls tools of MCP servers.
    pub tools: Option<Arc<dyn ToolCaller>>,
    environment: Environment,
    children: Arc<Children>,
    background: Background,
}

impl Engine {
    /// An engine without hooks.
    pub fn new(trust: Trust, environment: Environment) -> Engine {
        let rates = Rates::new(trust.state().join("rates"), trust.clock());
        let children = Arc::new(Children::new());
        Engine {
            registry: Registry::new(),
            trust,
            switched_off: None,
            bus: Bus::new(),
            rates,
            tools: None,
            environment,
            background: Background::new(Arc::clone(&children)),
            children,
        }
    }

    /// Takes on the hooks and the rules of an engine that was made anew, and keeps what this one has lived through: what
    /// was approved for a session, its processes, its listeners.
    pub fn renew(&mut self, fresh: Engine) {
        self.registry = fresh.registry;
        self.switched_off = fresh.switched_off;
        self.rates.global = fresh.rates.global;
        self.environment = fresh.environment;
        self.trust.demand_signature(fresh.trust.key().cloned());
        self.trust.signer = fresh.trust.signer;
        self.trust.workspace = fresh.trust.workspace;
        self.trust.untrusted_projects = fresh.trust.untrusted_projects;
        self.trust.untrusted = fresh.trust.untrusted;
    }

    /// Passes an event through its hooks. Whatever goes wrong is part of the outcome.
    pub fn dispatch(&self, event: &Event) -> Outcome {
        self.dispatch_with(event, Listing::Fitting, Stop::NEVER)
    }

    /// Like [`Engine::dispatch`], but `stop` is asked again and again: once it says so, the hooks that run are ended with
    /// everything they started, and no other begins. Each of them has failed, and its failure policy decides.
    pub fn dispatch_until(&self, event: &Event, stop: &(dyn Fn() -> bool + Sync)) -> Outcome {
        self.dispatch_with(event, Listing::Fitting, Stop::when(stop))
    }

    /// Like [`Engine::dispatch_until`], up to a deadline; `why` is said of the hooks that were not done by then.
    pub fn dispatch_by(&self, event: &Event, deadline: Instant, why: &str) -> Outcome {
        let is_over = || Instant::now() >= deadline;
        self.dispatch_with(event, Listing::Fitting, Stop::when(&is_over).because(why))
    }

    /// Like [`Engine::dispatch`], and the outcome lists also the hooks whose matcher does not fit.
    pub fn dispatch_explained(&self, event: &Event) -> Outcome {
        self.dispatch_with(event, Listing::All, Stop::NEVER)
    }

    /// Like [`Engine::dispatch_explained`], until `stop` says so as in [`Engine::dispatch_until`].
    pub fn dispatch_explained_until(&self, event: &Event, stop: &(dyn Fn() -> bool + Sync)) -> Outcome {
        self.dispatch_with(event, Listing::All, Stop::when(stop))
    }

    /// What would happen for an event.
    pub fn plan(&self, event: &Event) -> Plan {
        self.planned(event, Listing::All).0
    }

    /// What the condition of a hook looks at, and what that is for an event, as JSON without secrets; nothing where the event
    /// has no such part.
    pub fn condition_values(&self, hook: &Hook, event: &Event) -> Vec<(String, Option<String>)> {
        let redactor = redactor(std::iter::once(hook), &self.environment);
        let shown = |value: Value| redactor.redact_str(&value.to_string()).into_owned();
        let seen = condition_values(hook, event, &self.environment.surroundings());
        seen.into_iter().map(|SeenValue { name, value }| (name, value.map(shown))).collect()
    }

    /// Which hook would run in this place as things are, and why others would not; nobody is asked, nothing is used up.
    pub fn forecast(&self, planned: &Planned) -> (Option<Arc<Hook>>, Vec<Skip>) {
        let mut skipped = Vec::new();
        let mut candidates = planned.candidates();
        let runs =
            candidates.by_ref().find(|hook| match self.trust.forecast(hook, &self.environment.trust_context()) {
                None => true,
                Some(refusal) => {
                    skipped.push(clear::skip(hook, refusal));
                    false
                }
            });
        if let Some(runs) = runs {
            skipped.extend(candidates.map(|twin| twin::skip(twin, runs)));
        }
        (runs.cloned(), skipped)
    }

    /// Why a hook would run for no event at all, as things are: it is switched off, or may not run.
    pub fn obstacle(&self, hook: &Arc<Hook>) -> Option<Skip> {
        let refusal = || self.trust.forecast(hook, &self.environment.trust_context());
        select::disabled(hook).or_else(|| refusal().map(|refusal| clear::skip(hook, refusal)))
    }

    /// What a hook requires and does not have, as things are.
    pub fn unmet(&self, hook: &Arc<Hook>) -> Option<Skip> {
        let mut facts = Facts::default();
        facts.look_for(&[hook], &self.environment);
        facts.equipped(hook).err()
    }

    /// Makes sure that a hook may run.
    pub fn trusted(&self, hook: &Arc<Hook>) -> Result<Trusted<Hook>, Skip> {
        self.trust.trust(hook, &self.environment.trust_context(), None).map_err(|refusal| clear::skip(hook, refusal))
    }

    /// Runs one hook.
    pub fn run_one(&self, hook: &Trusted<Hook>, event: &Event) -> Option<Report> {
        self.run_many(std::slice::from_ref(hook), event).pop()
    }

    /// Runs hooks one after the other, each seeing what the earlier ones passed on; a refusal ends the chain.
    pub fn run_many(&self, hooks: &[Trusted<Hook>], event: &Event) -> Vec<Report> {
        let stages = hooks.iter().map(|hook| Stage::Cleared(vec![Step::Run(hook.clone())])).collect();
        let trace_id = trace_id(self.trust.now());
        let progress = Progress::new(event, Vec::new());
        self.walk(stages, progress, Facts::default(), &self.means(self.wire(&trace_id), Stop::NEVER)).reports
    }

    /// Has somebody told what came of the hooks that nobody waited for, on the thread that ran them. Hooks that were handed
    /// to another process are not among them.
    pub fn on_late(&mut self, told: impl Fn(Late) + Send + Sync + 'static) {
        self.background.told = Some(Arc::new(told));
    }

    /// The surroundings hooks run in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// From now on programs of hooks change nothing and reach nobody: each runs in a box that only reads. Where the kernel has
    /// no such box, the hook fails.
    pub fn only_read(&mut self) {
        self.environment.read_only = true;
    }

    /// Notes from now on all that hooks do in their boxes, for their reports.
    pub fn watch_boxes(&mut self) {
        self.environment.watch_boxes = true;
    }

    /// The processes of this engine.
    pub fn children(&self) -> &Children {
        &self.children
    }

    fn dispatch_with(&self, event: &Event, listing: Listing, stop: Stop<'_>) -> Outcome {
        let begun = Begun { started: Instant::now(), time: self.trust.now() };
        let trace_id = trace_id(begun.time);
        let wire = self.wire(&trace_id);
        wire.event(event);
        let (planned, facts) = self.planned(event, listing);
        let order = planned.stages.iter().map(|stage| stage.iter().map(|planned| Arc::clone(planned)).collect());
        let order = order.collect();
        let mut progress = Progress::new(event, planned.skipped);
        let stages = match self.trust.untrusted {
            Untrusted::Skip => planned.stages.into_iter().map(Stage::Planned).collect(),
            // Who is not approved refuses the event before anybody runs, so all are looked at first.
            Untrusted::Block => {
                let cleared = planned.stages.into_iter().map(|stage| self.clear(stage, &mut progress));
                let cleared = cleared.map(Stage::Cleared).collect();
                progress.verdict = unapproved(&progress.skipped);
                cleared
            }
        };
        let means = self.means(wire, stop);
        let mut progress = self.walk(stages, progress, facts, &means);
        self.look_again(&mut progress, event, &means);
        let outcome = progress.finish(event, order, begun, &trace_id);
        leaving(outcome, &self.environment)
    }

    /// Candidates, is there an approval at all, facts, plan: nothing is hashed but for hooks that require something.
    pub(crate) fn planned(&self, event: &Event, listing: Listing) -> (Plan, Facts) {
        let subject = event.subject();
        let found = match event.missing_subject() {
            Some(_) => self.registry.possible(event.kind),
            None => self.registry.candidates(event.kind, subject),
        };
        let selection = select(found, event, |hook| self.refusal(hook), || self.environment.surroundings());
        let sources = Sources { environment: &self.environment, rates: &self.rates };
        let may_run = |hook: &Arc<Hook>| self.trust.forecast(hook, &self.environment.trust_context()).is_none();
        let able = selection.able();
        let mut facts = Facts::gather(&able, &sources, may_run);
        facts.twins = self.registry.has_twins(event.kind);
        if facts.twins {
            facts.find(&able, &self.environment);
        }
        let mut planned = plan(event.kind, selection, &facts);
        // Without a subject the others are among the skipped already.
        if listing == Listing::All && event.missing_subject().is_none() {
            planned.skipped.extend(self.registry.unfitting(event.kind, subject));
        }
        (planned, facts)
    }

    /// Why a hook is off, whatever it says itself; nothing where nobody switched it off.
    pub fn why_off<'a>(&'a self, hook: &'a Hook) -> Option<&'a str> {
        // Whoever switches hooks off has switched off neither the guards nor what the machine's policy requires.
        let all = self.switched_off.as_deref().filter(|_| !hook.spec.source.is_required());
        all.or(hook.off.as_deref())
    }

    /// Why a hook does not even become a candidate: hooks are off, or it has no approval and nobody can be asked for one.
    fn refusal(&self, hook: &Arc<Hook>) -> Option<Skip> {
        match &self.switched_off {
            // Whoever switches hooks off has switched off neither the guards nor what the machine's policy requires.
            Some(why) if !hook.spec.source.is_required() => Some(Skip::new(hook, Reason::Disabled, why)),
            _ if self.trust.approver.is_some() => None,
            _ => self.trust.unapproved(&**hook).map(|refusal| clear::skip(hook, refusal)),
        }
    }

    /// Each stage is cleared just before it runs: what a refusal keeps from running uses up no approval and no quota, and
    /// nobody is asked about it.
    fn walk<'e>(
        &self,
        stages: Vec<Stage>,
        mut progress: Progress<'e>,
        mut facts: Facts,
        means: &RunContext<'_>,
    ) -> Progress<'e> {
        for stage in stages {
            if let Some(refuser) = progress.stopped_by.clone() {
                progress.skipped.extend(stage.hooks().into_iter().map(|hook| self.left_out(hook, &refuser)));
                continue;
            }
            let steps = match stage {
                Stage::Cleared(steps) => steps,
                Stage::Planned(planned) => self.clear(planned, &mut progress),
            };
            let (steps, notes) = self.admit(steps, &mut progress, &mut facts);
            let mut reports = run::stage(&steps, &progress.event(), means);
            for (report, note) in reports.iter_mut().zip(notes) {
                report.warnings.extend(note);
            }
            progress.take(reports);
        }
        progress
    }

    /// Why a hook does not run after a refusal. A missing approval is told all the same: a person should know.
    fn left_out(&self, hook: &Arc<Hook>, refuser: &str) -> Skip {
        match self.trust.unapproved(&**hook) {
            Some(refusal) => clear::skip(hook, refusal),
            None => Skip::new(hook, Reason::AfterBlock, format!("hook `{refuser}` refused before its turn")),
        }
    }

    /// What is built in or required looks at a tool call before anybody else, and once more when its arguments were rewritten: nobody
    /// can get past it by rewriting what it has seen.
    fn look_again(&self, progress: &mut Progress<'_>, original: &Event, means: &RunContext<'_>) {
        if progress.verdict.patch.is_empty() || progress.event().args() == original.args() {
            return;
        }
        let required = progress.reports.iter().map(|report| &report.hook);
        let required = required.filter(|hook| hook.spec.source.is_required());
        let steps: Vec<Step> = required.filter_map(|hook| self.trusted(hook).ok()).map(Step::Run).collect();
        let mut reports = run::stage(&steps, &progress.event(), means);
        reports.retain(|report| !report.verdict.flow.continues());
        progress.take(reports);
    }

    fn means<'a>(&'a self, wire: Wire<'a>, stop: Stop<'a>) -> RunContext<'a> {
        RunContext {
            children: &self.children,
            environment: &self.environment,
            tools: self.tools.as_ref(),
            background: &self.background,
            stop,
            wire,
        }
    }

    fn clear(&self, stage: Vec<Planned>, progress: &mut Progress<'_>) -> Vec<Step> {
        let Cleared { steps, skipped } = clear::clear(stage, &self.trust, &self.environment, &progress.event());
        progress.skipped.extend(skipped);
        steps
    }

    /// The steps that really run, and what is odd about each. Only here is a run taken from a limit.
    fn admit(
        &self,
        steps: Vec<Step>,
        progress: &mut Progress<'_>,
        facts: &mut Facts,
    ) -> (Vec<Step>, Vec<Option<String>>) {
        let mut notes = Vec::with_capacity(steps.len());
        let mut admitted = Vec::with_capacity(steps.len());
        for step in steps {
            let note = match &step {
                Step::Fail(..) => Ok(None),
                Step::Run(trusted) => self.ready(trusted.hook(), facts),
            };
            match note {
                Ok(note) => {
                    notes.push(note);
                    admitted.push(step);
                }
                Err(skip) => progress.skipped.push(skip),
            }
        }
        (admitted, notes)
    }

    fn ready(&self, hook: &Arc<Hook>, facts: &mut Facts) -> Result<Option<String>, Skip> {
        // Hooks approved during this event have no facts yet.
        facts.look_for(&[hook], &self.environment);
        facts.equipped(hook)?;
        self.rates.take(hook)
    }

    fn wire<'a>(&'a self, trace_id: &'a str) -> Wire<'a> {
        Wire { bus: &self.bus, clock: &self.trust, trace_id }
    }
}

/// A name that is unique and ordered by time.
pub(crate) fn trace_id(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
    Uuid::new_v7(timestamp).to_string()
}

/// Hooks that run at once.
enum Stage {
    Planned(Vec<Planned>),
    Cleared(Vec<Step>),
}

impl Stage {
    fn hooks(&self) -> Vec<&Arc<Hook>> {
        match self {
            Stage::Planned(planned) => planned.iter().flat_map(Planned::candidates).collect(),
            Stage::Cleared(steps) => steps.iter().map(Step::hook).collect(),
        }
    }
}

/// Which hooks that do not run are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Those whose matcher fits.
    Fitting,
    /// All of the event.
    All,
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
