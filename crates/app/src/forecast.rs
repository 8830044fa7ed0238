//! What would happen for an event, hook by hook, as things are. Nothing runs, nobody is asked, nothing is used up.

use std::sync::Arc;

use ollm_engine::{Plan, Planned, Reason, Skip};
use ollm_protocol::{Event, EventKind, Hook, Matcher};

use crate::app::App;

/// What would come of the hooks of one event.
#[derive(Debug)]
pub struct Forecast {
    /// The event.
    pub event: EventKind,
    /// What would run: stages one after the other, the hooks of a stage at once.
    pub stages: Vec<Vec<Step>>,
    /// Hooks that run for some tools, types or names, where the event does not say which it is about.
    pub depends: Vec<Arc<Hook>>,
    /// What would not run, and why.
    pub skipped: Vec<Skip>,
}

/// A hook that would run, or fail without running.
#[derive(Clone, Debug)]
pub struct Step {
    /// The hook.
    pub hook: Arc<Hook>,
    /// Why it would fail.
    pub failure: Option<String>,
}

impl Forecast {
    /// Looks ahead for an event.
    pub fn of(event: &Event, app: &App) -> Forecast {
        let Plan { event: kind, stages, mut skipped } = app.engine.plan(event);
        let mut stages: Vec<Vec<Step>> = stages.iter().map(|stage| runnable(stage, app, &mut skipped)).collect();
        let mut depends = Vec::new();
        if event.missing_subject().is_some() {
            for skip in skipped.extract_if(.., |skip| skip.reason == Reason::Matcher).collect::<Vec<_>>() {
                match app.engine.obstacle(&skip.hook) {
                    None => depends.push(skip.hook),
                    Some(obstacle) => skipped.push(obstacle),
                }
            }
            // A gate would refuse this very event; whoever looks ahead asks about events that say what they are about.
            for stage in &mut stages {
                let gates = stage.extract_if(.., |step| !matches!(step.hook.matcher, Matcher::Any));
                depends.extend(gates.map(|step| step.hook));
            }
        }
        stages.retain(|stage| !stage.is_empty());
        Forecast { event: kind, stages, depends, skipped }
    }
}

/// The hooks of a stage that would run; the others are skipped with the reason.
fn runnable(stage: &[Planned], app: &App, skipped: &mut Vec<Skip>) -> Vec<Step> {
    let steps = stage.iter().map(|planned| {
        let (hook, others) = app.engine.forecast(planned);
        skipped.extend(others);
        Some(Step { hook: hook?, failure: planned.failure().map(str::to_owned) })
    });
    steps.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ollm_protocol::hook::ActionSpec;
    use ollm_protocol::{Builtin, HookSpec, Rules, Source, Verdict};
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    struct Drawn {
        event: &'static str,
        matcher: &'static str,
        condition: Option<&'static str>,
        enabled: bool,
        source: Source,
        parallel: bool,
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let events = prop::sample::select(vec!["before_tool", "after_tool", "before_agent"]);
        let matchers = prop::sample::select(vec!["*", "shell", "read_*", "shell|edit_file", "Bash"]);
        let conditions =
            prop::option::of(prop::sample::select(vec!["true", "data.tool_name == 'shell'", "data.nothing > 3"]));
        let sources = prop::sample::select(vec![Source::User, Source::Workspace]);
        (events, matchers, conditions, any::<bool>(), sources, any::<bool>()).prop_map(
            |(event, matcher, condition, enabled, source, parallel)| Drawn {
                event,
                matcher,
                condition,
                enabled,
                source,
                parallel,
            },
        )
    }

    fn hook(at: usize, drawn: &Drawn) -> Hook {
        let action = ActionSpec::Builtin(Builtin::new(|_| Verdict::default()));
        let spec = HookSpec {
            id: format!("h{at}"),
            matcher: Some(drawn.matcher.to_owned()),
            condition: drawn.condition.map(str::to_owned),
            enabled: drawn.enabled,
            source: drawn.source,
            parallel: drawn.parallel,
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
            let forecast = Forecast::of(&event, &app);
            let outcome = app.engine.dispatch_explained(&event);
            let run = ids(outcome.reports.iter().map(|report| &report.hook));
            prop_assert_eq!(ids(forecast.stages.iter().flatten().map(|step| &step.hook)), run);
            let skipped = ids(forecast.skipped.iter().map(|skip| &skip.hook).chain(&forecast.depends));
            prop_assert_eq!(&skipped, &ids(outcome.skipped.iter().map(|skip| &skip.hook)));
            for skip in forecast.skipped.iter().filter(|_| tool.is_some()) {
                let seen = outcome.skipped.iter().find(|seen| seen.hook.id() == skip.hook.id());
                prop_assert_eq!(seen.map(|seen| seen.reason), Some(skip.reason));
            }
        }
    }
}
