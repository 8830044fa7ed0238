//! Predicts what would happen for an event, hook by hook. It runs nothing, asks no person and uses up no limit.

use std::sync::Arc;

use ollm_engine::{ForecastStep, Plan, PlannedHook, Reason, Skip};
use ollm_protocol::{Event, EventKind, Hook, Matcher};

use crate::app::App;

/// The prediction for the hooks of one event.
#[derive(Debug)]
pub struct Forecast {
    /// The event.
    pub event: EventKind,
    /// The hooks that would run: stages in order, the hooks of a stage at the same time.
    pub stages: Vec<Vec<ForecastStep>>,
    /// Hooks that run only for some tools, names, files or data, while the event does not say which.
    pub depends: Vec<ForecastStep>,
    /// The hooks that would not run, and why.
    pub skipped: Vec<Skip>,
}

impl Forecast {
    /// Predicts what the hooks would do for an event.
    pub fn of(event: &Event, app: &App) -> Forecast {
        let Plan { event: kind, stages, mut skipped } = app.engine.plan(event);
        let mut stages: Vec<Vec<ForecastStep>> =
            stages.iter().map(|stage| runnable(stage, app, &mut skipped)).collect();
        let mut depends = Vec::new();
        let unsaid = |hook: &Hook, reason: Reason| is_unsaid(hook, reason, event);
        for skip in skipped.extract_if(.., |skip| unsaid(&skip.hook, skip.reason)).collect::<Vec<_>>() {
            match app.engine.obstacle(&skip.hook) {
                Ok(failure) => depends.push(ForecastStep { hook: skip.hook, failure }),
                Err(obstacle) => skipped.push(obstacle),
            }
        }
        // A gate would refuse this very event. A forecast is about events that name their subject.
        for stage in &mut stages {
            let gates = stage.extract_if(.., |step| step.failure.is_some() && fails_as_unsaid(&step.hook, event));
            let of_its_own = |hook: &Arc<Hook>| app.engine.obstacle(hook).unwrap_or_default();
            depends.extend(gates.map(|step| ForecastStep { failure: of_its_own(&step.hook), ..step }));
        }
        stages.retain(|stage| !stage.is_empty());
        Forecast { event: kind, stages, depends, skipped }
    }
}

/// Whether a hook is skipped only because the event does not name its subject, or has no data at all.
fn is_unsaid(hook: &Hook, reason: Reason, event: &Event) -> bool {
    match reason {
        Reason::Matcher => event.missing_subject().is_some(),
        Reason::Condition => event.data.is_empty() && !matches!(hook.condition, Some(Err(_))),
        Reason::Pattern | Reason::Scope => event.data.is_empty(),
        _ => false,
    }
}

/// Whether a gate fails only because the event does not name its subject.
fn fails_as_unsaid(hook: &Hook, event: &Event) -> bool {
    let by_matcher = event.missing_subject().is_some() && !matches!(hook.matcher, Matcher::Any);
    let is_narrow = hook.condition.as_ref().is_some_and(Result::is_ok) || !hook.patterns.is_empty();
    by_matcher || event.data.is_empty() && is_narrow && hook.broken.is_none()
}

/// The hooks of a stage that would run; the others are skipped with the reason.
fn runnable(stage: &[PlannedHook], app: &App, skipped: &mut Vec<Skip>) -> Vec<ForecastStep> {
    let steps = stage.iter().map(|planned| {
        let (step, others) = app.engine.forecast(planned);
        skipped.extend(others);
        step
    });
    steps.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ollm_protocol::hook::action::AskAgentSpec;
    use ollm_protocol::hook::{ActionSpec, Requires};
    use ollm_protocol::{Builtin, HookSpec, OnFailure, RateLimit, Rules, Source, Verdict};
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    #[expect(clippy::struct_excessive_bools, reason = "what a hook file says, drawn at random")]
    struct Drawn {
        event: &'static str,
        matcher: &'static str,
        condition: Option<&'static str>,
        enabled: bool,
        source: Source,
        parallel: bool,
        action: Does,
        limited: bool,
        lacks: bool,
        is_gate: bool,
    }

    #[derive(Clone, Copy, Debug)]
    enum Does {
        Nothing,
        Refuse,
        /// Twice the same is done once.
        Ask,
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let events = prop::sample::select(vec!["before_tool", "before_tool", "after_tool", "before_agent"]);
        let matchers = prop::sample::select(vec!["*", "shell", "read_*", "shell|edit_file", "Bash"]);
        let conditions =
            prop::option::of(prop::sample::select(vec!["true", "data.tool_name == 'shell'", "data.nothing > 3"]));
        let sources = prop::sample::select(vec![Source::User, Source::Workspace]);
        let actions = prop::sample::select(vec![Does::Nothing, Does::Nothing, Does::Ask, Does::Refuse]);
        let rarely = || prop::bool::weighted(0.2);
        let said = (events, matchers, conditions, prop::bool::weighted(0.8), sources, any::<bool>());
        (said, actions, rarely(), rarely(), rarely()).prop_map(
            |((event, matcher, condition, enabled, source, parallel), action, limited, lacks, is_gate)| Drawn {
                event,
                matcher,
                condition,
                enabled,
                source,
                parallel,
                action,
                limited,
                lacks,
                is_gate,
            },
        )
    }

    fn hook(at: usize, drawn: &Drawn) -> Hook {
        let action = match drawn.action {
            Does::Nothing => ActionSpec::Builtin(Builtin::new(|_| Verdict::default())),
            Does::Refuse => ActionSpec::Builtin(Builtin::new(|_| Verdict::block("no"))),
            Does::Ask => ActionSpec::AskAgent(AskAgentSpec { prompt: "hm".to_owned() }),
        };
        let absent = if drawn.lacks { vec!["no-such-program".to_owned()] } else { Vec::new() };
        let matcher = if drawn.event == "before_agent" { "*" } else { drawn.matcher };
        let spec = HookSpec {
            id: format!("h{at}"),
            matcher: Some(matcher.to_owned()),
            condition: drawn.condition.map(str::to_owned),
            enabled: drawn.enabled,
            source: drawn.source,
            parallel: drawn.parallel,
            rate_limit: RateLimit { per_minute: drawn.limited.then_some(1), cooldown: None },
            requires: Requires { commands: absent, ..Requires::default() },
            on_failure: drawn.is_gate.then_some(OnFailure::Block),
            ..HookSpec::new(format!("h{at}"), drawn.event, action)
        };
        Hook::new(spec, &Rules::default()).unwrap()
    }

    fn ids<'h>(hooks: impl IntoIterator<Item = &'h Arc<Hook>>) -> BTreeSet<String> {
        hooks.into_iter().map(|hook| hook.id().to_owned()).filter(|id| !id.starts_with("builtin:")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_forecast_to_run_runs_and_everything_else_is_skipped_for_the_same_reason(
            hooks in prop::collection::vec(drawn(), 0..8),
            tool in prop::option::of(prop::sample::select(vec!["shell", "Bash", "read_file"])),
        ) {
            let home = tempfile::tempdir().unwrap();
            let builder = App::builder(home.path(), home.path());
            let app = hooks.iter().enumerate().fold(builder, |builder, (at, drawn)| builder.hook(hook(at, drawn)));
            let app = app.build().unwrap();
            let event = Event::unchecked(EventKind::BeforeTool, tool.map(|tool| ("tool_name", tool.into())));
            // The second time, limits are used up.
            app.engine.dispatch(&event);
            let forecast = Forecast::of(&event, &app);
            let outcome = app.engine.dispatch_explained(&event);
            let run = ids(outcome.reports.iter().map(|report| &report.hook));
            let skipped = ids(outcome.skipped.iter().map(|skip| &skip.hook));
            let to_run = ids(forecast.stages.iter().flatten().map(|step| &step.hook));
            let not_to_run = ids(forecast.skipped.iter().map(|skip| &skip.hook));
            let depends = ids(forecast.depends.iter().map(|step| &step.hook));
            let union = |sets: &[&BTreeSet<String>]| sets.iter().flat_map(|set| set.iter().cloned()).collect::<BTreeSet<_>>();
            prop_assert_eq!(union(&[&to_run, &not_to_run, &depends]), union(&[&run, &skipped]));
            prop_assert_eq!(to_run.len() + not_to_run.len() + depends.len(), run.len() + skipped.len());
            // Before the run it is not known which hook refuses.
            let is_late = |skip: &&Skip| skip.reason == Reason::AfterBlock;
            let late = ids(outcome.skipped.iter().filter(is_late).map(|skip| &skip.hook));
            let twins = forecast.skipped.iter().filter(|skip| skip.reason == Reason::Duplicate);
            let twins = ids(twins.map(|skip| &skip.hook));
            prop_assert!(to_run.difference(&late).all(|id| run.contains(id)), "{:?} {:?}", to_run, outcome.skipped);
            prop_assert!(run.iter().all(|id| to_run.contains(id) || depends.contains(id)), "{:?} {:?}", run, forecast);
            for skip in forecast.skipped.iter().filter(|skip| !ids([&skip.hook]).is_empty()) {
                let seen = outcome.skipped.iter().find(|seen| seen.hook.id() == skip.hook.id());
                let expected = if late.contains(skip.hook.id()) && twins.contains(skip.hook.id()) { Reason::AfterBlock } else { skip.reason };
                prop_assert_eq!(seen.map(|seen| seen.reason), Some(expected));
            }
        }
    }
}
