//! The engine: takes one event in, and gives one outcome back.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ollm_condition::SeenValue;
use ollm_process::Children;
use ollm_protocol::{Event, Hook, Verdict};
use ollm_trust::{Trust, Trusted, UntrustedPolicy};
use serde_json::Value;
use uuid::Uuid;

use crate::action::ToolCaller;
use crate::background::{Background, LateResult};
use crate::bus::{Bus, Wire};
use crate::clear::{self, ClearedStage, Step};
use crate::environment::Environment;
use crate::facts::{Facts, Sources};
use crate::merge::{DispatchStart, Progress};
use crate::narrow::condition_values;
use crate::plan::{ForecastStep, Plan, PlannedHook, plan};
use crate::present::{leaving, redactor};
use crate::rate::Rates;
use crate::registry::Registry;
use crate::report::{Outcome, Reason, Report, Skip};
use crate::run::{self, RunContext, Stop};
use crate::select::{self, select};
use crate::twin;

/// The hook engine. It gets all its surroundings as values.
#[derive(Debug)]
pub struct Engine {
    /// The hooks.
    pub registry: Registry,
    /// Decides which hooks may run.
    pub trust: Trust,
    /// Why all hooks are switched off, if they are.
    pub switched_off: Option<String>,
    /// Sends events and hook runs to listeners.
    pub bus: Bus,
    /// Limits how often hooks may run.
    pub rates: Rates,
    /// Calls the tools of MCP servers.
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

    /// Replaces the hooks and rules by those of a fresh engine. This engine keeps its own state: session approvals,
    /// processes and listeners.
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

    /// Runs the hooks of an event. Every failure is part of the outcome.
    pub fn dispatch(&self, event: &Event) -> Outcome {
        self.dispatch_with(event, Listing::Fitting, Stop::NEVER)
    }

    /// Like [`Engine::dispatch`], but polls `stop`. Once `stop` returns true, running hooks and everything they started
    /// are ended, and no other hook starts. Each ended hook has failed, and its failure policy decides.
    pub fn dispatch_until(&self, event: &Event, stop: &(dyn Fn() -> bool + Sync)) -> Outcome {
        self.dispatch_with(event, Listing::Fitting, Stop::when(stop))
    }

    /// Like [`Engine::dispatch_until`], up to a deadline. `why` becomes the error of the hooks that were not done by
    /// then.
    pub fn dispatch_by(&self, event: &Event, deadline: Instant, why: &str) -> Outcome {
        let is_over = || Instant::now() >= deadline;
        self.dispatch_with(event, Listing::Fitting, Stop::when(&is_over).because(why))
    }

    /// Like [`Engine::dispatch`], but the outcome also lists the hooks whose matcher does not fit.
    pub fn dispatch_explained(&self, event: &Event) -> Outcome {
        self.dispatch_with(event, Listing::All, Stop::NEVER)
    }

    /// Like [`Engine::dispatch_explained`], until `stop` returns true, as in [`Engine::dispatch_until`].
    pub fn dispatch_explained_until(&self, event: &Event, stop: &(dyn Fn() -> bool + Sync)) -> Outcome {
        self.dispatch_with(event, Listing::All, Stop::when(stop))
    }

    /// The plan for an event; runs nothing.
    pub fn plan(&self, event: &Event) -> Plan {
        self.planned(event, Listing::All).0
    }

    /// The parts of an event that a hook's condition reads, each with its value as JSON without secrets. A part that
    /// the event lacks has no value.
    pub fn condition_values(&self, hook: &Hook, event: &Event) -> Vec<(String, Option<String>)> {
        let redactor = redactor(std::iter::once(hook), &self.environment);
        let shown = |value: Value| redactor.redact_str(&value.to_string()).into_owned();
        let seen = condition_values(hook, event, &self.environment.surroundings());
        seen.into_iter().map(|SeenValue { name, value }| (name, value.map(shown))).collect()
    }

    /// Which hook would run at this place of the plan now, and why the others would not. Asks no person and uses up no
    /// quota.
    pub fn forecast(&self, planned: &PlannedHook) -> (Option<ForecastStep>, Vec<Skip>) {
        let mut skipped = Vec::new();
        let mut candidates = planned.candidates();
        let step = candidates.by_ref().find_map(|hook| match self.standing(hook) {
            Ok(failure) => {
                let failure = failure.or_else(|| planned.failure().map(str::to_owned));
                Some(ForecastStep { hook: Arc::clone(hook), failure })
            }
            Err(skip) => {
                skipped.push(skip);
                None
            }
        });
        if let Some(ForecastStep { hook, .. }) = &step {
            skipped.extend(candidates.map(|twin| twin::skip(twin, hook)));
        }
        (step, skipped)
    }

    /// Why a hook runs for no event at the moment: it is switched off, or may not run. For a hook that would run: why
    /// it would still fail, such as a missing program of a gate, or a missing interpreter.
    pub fn obstacle(&self, hook: &Arc<Hook>) -> Result<Option<String>, Skip> {
        if let Some(why) = self.why_off(hook) {
            return Err(Skip::new(hook, Reason::Disabled, why));
        }
        select::disabled(hook).map_or_else(|| self.standing(hook), Err)
    }

    /// The present decision of trust about a hook. `Ok(None)`: it runs; `Ok(Some)`: it would fail without running;
    /// `Err`: it would be skipped.
    fn standing(&self, hook: &Arc<Hook>) -> Result<Option<String>, Skip> {
        match self.trust.forecast(hook, &self.environment.trust_context()) {
            None => Ok(self.missing_interpreter(hook)),
            Some(refusal) if clear::fails(&refusal, hook) => Ok(Some(refusal.detail)),
            Some(refusal) => Err(clear::skip(hook, refusal)),
        }
    }

    /// The interpreter that a hook's script needs and that is missing now: the hook would start and fail. A hook with a
    /// `PATH` of its own is not checked.
    pub fn missing_interpreter(&self, hook: &Hook) -> Option<String> {
        let has_own_path = hook.spec.env.iter().any(|(name, _)| name == "PATH");
        let found = self.trust.has_interpreter(hook, &self.environment.trust_context());
        found.err().filter(|_| !has_own_path).map(|why| why.to_string())
    }

    /// The requirement of a hook that is not met now.
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

    /// Runs hooks one after the other. Each sees the data that earlier ones passed on, and a refusal ends the chain.
    pub fn run_many(&self, hooks: &[Trusted<Hook>], event: &Event) -> Vec<Report> {
        let stages = hooks.iter().map(|hook| Stage::Cleared(vec![Step::Run(hook.clone())])).collect();
        let trace_id = trace_id(self.trust.now());
        let progress = Progress::new(event, Vec::new());
        self.walk(stages, progress, Facts::default(), &self.means(self.wire(&trace_id), Stop::NEVER)).reports
    }

    /// Sets the listener for results of background hooks. The thread that ran the hook calls it. It gets no results of
    /// hooks that another process runs.
    pub fn on_late(&mut self, told: impl Fn(LateResult) + Send + Sync + 'static) {
        self.background.told = Some(Arc::new(told));
    }

    /// The surroundings that hooks run in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// From now on, the programs of hooks change nothing and have no network. Each runs in a box that only reads. If
    /// the kernel cannot provide that box, the hook fails.
    pub fn only_read(&mut self) {
        self.environment.read_only = true;
    }

    /// From now on, reports list everything that hooks do in their boxes.
    pub fn watch_boxes(&mut self) {
        self.environment.watch_boxes = true;
    }

    /// The processes of this engine.
    pub fn children(&self) -> &Children {
        &self.children
    }

    fn dispatch_with(&self, event: &Event, listing: Listing, stop: Stop<'_>) -> Outcome {
        let begun = DispatchStart { started: Instant::now(), time: self.trust.now() };
        let trace_id = trace_id(begun.time);
        let wire = self.wire(&trace_id);
        wire.event(event);
        let (planned, facts) = self.planned(event, listing);
        let order = planned.stages.iter().map(|stage| stage.iter().map(|planned| Arc::clone(planned)).collect());
        let order = order.collect();
        let mut progress = Progress::new(event, planned.skipped);
        let stages = match self.trust.untrusted {
            UntrustedPolicy::Skip => planned.stages.into_iter().map(Stage::Planned).collect(),
            // An unapproved hook refuses the event before any hook runs, so all are checked first.
            UntrustedPolicy::Block => {
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

    /// Selects candidates, drops those without any approval, gathers facts, and makes the plan. Content is hashed only
    /// for hooks that require something.
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
        // If the subject is missing, the selection already lists the other hooks as skipped.
        if listing == Listing::All && event.missing_subject().is_none() {
            planned.skipped.extend(self.registry.unfitting(event.kind, subject));
        }
        (planned, facts)
    }

    /// Why a hook is off, either with all hooks or by itself; `None` if it is on.
    pub fn why_off<'a>(&'a self, hook: &'a Hook) -> Option<&'a str> {
        // Switching hooks off affects neither the guards nor what the machine's policy requires.
        let all = self.switched_off.as_deref().filter(|_| !hook.spec.source.is_required());
        all.or(hook.off.as_deref())
    }

    /// Why a hook does not become a candidate: hooks are switched off, or the hook has no approval and there is no
    /// approver.
    fn refusal(&self, hook: &Arc<Hook>) -> Option<Skip> {
        match &self.switched_off {
            // Switching hooks off affects neither the guards nor what the machine's policy requires.
            Some(why) if !hook.spec.source.is_required() => Some(Skip::new(hook, Reason::Disabled, why)),
            _ if self.trust.approver.is_some() => None,
            _ => self.trust.unapproved(&**hook).map(|refusal| clear::skip(hook, refusal)),
        }
    }

    /// Clears each stage just before it runs. After a refusal, a later hook uses up no approval and no quota, and
    /// nothing is asked about it.
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

    /// Why a hook does not run after a refusal. A missing approval is reported anyway, because a person should know of
    /// it.
    fn left_out(&self, hook: &Arc<Hook>, refuser: &str) -> Skip {
        match self.trust.unapproved(&**hook) {
            Some(refusal) => clear::skip(hook, refusal),
            None => Skip::new(hook, Reason::AfterBlock, format!("hook `{refuser}` refused before its turn")),
        }
    }

    /// Built-in and required hooks check a tool call before all others. If other hooks rewrote its arguments, they
    /// check it again. So no hook bypasses them by rewriting what they have checked.
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

    fn clear(&self, stage: Vec<PlannedHook>, progress: &mut Progress<'_>) -> Vec<Step> {
        let ClearedStage { steps, skipped } = clear::clear(stage, &self.trust, &self.environment, &progress.event());
        progress.skipped.extend(skipped);
        steps
    }

    /// The steps that really run, each with a warning if there is one. Only this function takes a run from a limit.
    fn admit(
        &self,
        steps: Vec<Step>,
        progress: &mut Progress<'_>,
        facts: &mut Facts,
    ) -> (Vec<Step>, Vec<Option<String>>) {
        let mut notes = Vec::with_capacity(steps.len());
        let mut admitted = Vec::with_capacity(steps.len());
        for step in steps {
            let ready = match &step {
                Step::Fail(..) => Ok(None),
                Step::Run(trusted) => self.ready(trusted.hook(), facts),
            };
            let (step, note) = match ready.map_err(Skip::failure_of_gate) {
                Ok(note) => (step, note),
                Err(Ok(why)) => (Step::Fail(Arc::clone(step.hook()), why), None),
                Err(Err(skip)) => {
                    progress.skipped.push(skip);
                    continue;
                }
            };
            notes.push(note);
            admitted.push(step);
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

/// A new trace id: unique, and ordered by time.
pub(crate) fn trace_id(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
    Uuid::new_v7(timestamp).to_string()
}

/// Hooks that run at the same time.
enum Stage {
    Planned(Vec<PlannedHook>),
    Cleared(Vec<Step>),
}

impl Stage {
    fn hooks(&self) -> Vec<&Arc<Hook>> {
        match self {
            Stage::Planned(planned) => planned.iter().flat_map(PlannedHook::candidates).collect(),
            Stage::Cleared(steps) => steps.iter().map(Step::hook).collect(),
        }
    }
}

/// Which of the hooks that do not run are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Hooks whose matcher fits.
    Fitting,
    /// All hooks of the event.
    All,
}

/// The refusal that results from unapproved hooks.
fn unapproved(skipped: &[Skip]) -> Verdict {
    skipped.iter().fold(Verdict::default(), |verdict, skip| {
        let name = &skip.hook.spec.name;
        match skip.reason {
            reason if reason.needs_approval() => {
                verdict.then(Verdict::block(format!("hook `{name}` is {}", skip.detail)))
            }
            // Content that cannot be read cannot be the approved content.
            Reason::Unsafe => verdict.then(Verdict::block(format!("hook `{name}` cannot be checked: {}", skip.detail))),
            _ => verdict,
        }
    })
}
