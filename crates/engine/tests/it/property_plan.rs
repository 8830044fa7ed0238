//! The plan against a slow and obvious model of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ollm_engine::{Facts, Reason, Registry, Requirement, Skip, Surroundings, plan, select};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{
    ActionSpec, Event, EventKind, Hook, HookSpec, Layer, OnFailure, Priority, Reach, Requires, Rules, Source,
};
use proptest::prelude::*;
use serde_json::{Map, json};

use crate::support::cases;

/// What a hook says, in few enough words for hooks to meet.
#[derive(Clone, Debug)]
struct Says {
    events: Vec<&'static str>,
    matcher: Option<&'static str>,
    command: &'static str,
    source: Source,
    layer: Layer,
    priority: Priority,
    parallel: bool,
    enabled: bool,
    reach: Option<Reach>,
    dialect: &'static str,
    pattern: Option<&'static str>,
    condition: Option<&'static str>,
    requires: Option<&'static str>,
    on_failure: Option<OnFailure>,
}

/// What happens.
#[derive(Clone, Debug)]
struct Happens {
    kind: EventKind,
    tool: &'static str,
    path: Option<&'static str>,
    agent: Option<&'static str>,
}

/// What is true of the world.
#[derive(Clone, Debug)]
struct World {
    absent: Vec<&'static str>,
    exhausted: Vec<usize>,
    switched_off: bool,
    list_unfitting: bool,
}

fn pick<T: Clone + std::fmt::Debug + 'static>(from: &[T]) -> impl Strategy<Value = T> + use<T> {
    prop::sample::select(from.to_vec())
}

fn says() -> impl Strategy<Value = Says> {
    let events = prop::sample::subsequence(vec!["before_tool", "after_tool", "session_start"], 1..=3);
    let what = (
        events,
        pick(&[None, Some("*"), Some("shell"), Some("paint|mcp__*"), Some("re:^s")]),
        pick(&["a", "b"]),
        pick(&[Source::Policy, Source::User, Source::Workspace, Source::Extension, Source::Downloaded]),
        pick(&[Layer::User, Layer::Workspace]),
        pick(&[Priority::Critical, Priority::High, Priority::Normal, Priority::Low]),
    );
    let when = (
        any::<bool>(),
        prop::bool::weighted(0.9),
        pick(&[None, None, Some(Reach::Main), Some(Reach::Subagents), Some(Reach::All)]),
        pick(&["ollm", "agent"]),
        pick(&[None, None, Some("*.rs")]),
        pick(&[None, None, Some("data.tool_name == 'shell'"), Some("data.gone.x"), Some("true")]),
        pick(&[None, None, Some("git"), Some("node")]),
        pick(&[None, Some(OnFailure::Allow), Some(OnFailure::Block)]),
    );
    (what, when).prop_map(|(what, when)| {
        let (events, matcher, command, source, layer, priority) = what;
        // Where nothing can match, there is no such hook.
        let matcher = matcher.filter(|matcher| *matcher == "*" || events != ["session_start"]);
        let (parallel, enabled, reach, dialect, pattern, condition, requires, on_failure) = when;
        Says {
            events,
            matcher,
            command,
            source,
            layer,
            priority,
            parallel,
            enabled,
            reach,
            dialect,
            pattern,
            condition,
            requires,
            on_failure,
        }
    })
}

fn happens() -> impl Strategy<Value = Happens> {
    (
        pick(&[EventKind::BeforeTool, EventKind::AfterTool, EventKind::SessionStart]),
        pick(&["shell", "paint", "mcp__x", "other"]),
        pick(&[None, Some("a.rs"), Some("b.md")]),
        pick(&[None, Some("a1")]),
    )
        .prop_map(|(kind, tool, path, agent)| Happens { kind, tool, path, agent })
}

fn world() -> impl Strategy<Value = World> {
    (
        prop::sample::subsequence(vec!["git", "node"], 0..=2),
        prop::collection::vec(0..10_usize, 0..3),
        prop::bool::weighted(0.1),
        any::<bool>(),
    )
        .prop_map(|(absent, exhausted, switched_off, list_unfitting)| World {
            absent,
            exhausted,
            switched_off,
            list_unfitting,
        })
}

impl Says {
    fn spec(&self, index: usize) -> HookSpec {
        let action = ActionSpec::Command(CommandSpec {
            command: "npx".to_owned(),
            args: vec![self.command.to_owned()],
            script: None,
        });
        let text = |text: Option<&str>| text.map(str::to_owned);
        HookSpec {
            events: self.events.iter().map(|&event| event.to_owned()).collect(),
            matcher: text(self.matcher),
            source: self.source,
            layer: self.layer,
            priority: self.priority,
            parallel: self.parallel,
            enabled: self.enabled,
            reach: self.reach,
            dialect: Some(self.dialect.to_owned()),
            file_patterns: self.pattern.into_iter().map(str::to_owned).collect(),
            condition: text(self.condition),
            requires: Requires {
                commands: self.requires.into_iter().map(str::to_owned).collect(),
                ..Requires::default()
            },
            on_failure: self.on_failure,
            ..HookSpec::new(index.to_string(), "x", action)
        }
    }

    fn matches(&self, event: &Happens) -> bool {
        let subject = (event.kind != EventKind::SessionStart).then_some(event.tool);
        match (self.matcher, subject) {
            (None | Some("*"), _) => true,
            (_, None) => false,
            (Some("shell"), Some(tool)) => tool == "shell",
            (Some("re:^s"), Some(tool)) => tool.starts_with('s'),
            (Some(_), Some(tool)) => tool == "paint" || tool.starts_with("mcp__"),
        }
    }

    fn rank(&self) -> usize {
        match (self.source, self.layer) {
            (Source::Policy, _) => 0,
            (Source::User, _) => 1,
            (Source::Workspace, _) => 3,
            (_, Layer::User) => 2,
            (_, Layer::Workspace) => 4,
        }
    }

    /// Why it does not run; a gate whose condition cannot be answered does.
    fn skip(&self, index: usize, event: &Happens, world: &World) -> Option<&'static str> {
        let reach = self.reach.unwrap_or(if self.dialect == "agent" { Reach::Main } else { Reach::All });
        let wrong_agent = match reach {
            Reach::All => false,
            Reach::Main => event.agent.is_some(),
            Reach::Subagents => event.agent.is_none(),
        };
        let is_gate = self.on_failure == Some(OnFailure::Block);
        let condition = match self.condition {
            None | Some("true") => true,
            Some("data.gone.x") => is_gate,
            Some(_) => event.tool == "shell",
        };
        let unanswered = self.condition == Some("data.gone.x");
        let lacks = self.lacks(index, world);
        match () {
            () if world.switched_off || !self.enabled => Some("disabled"),
            () if wrong_agent => Some("scope"),
            () if self.pattern.is_some() && event.path != Some("a.rs") => Some("pattern"),
            () if !condition => Some("condition"),
            () if unanswered => None,
            () if is_gate => None,
            () => lacks,
        }
    }

    fn lacks(&self, index: usize, world: &World) -> Option<&'static str> {
        match () {
            () if self.requires.is_some_and(|command| world.absent.contains(&command)) => Some("requires"),
            () if world.exhausted.contains(&index) => Some("rate_limited"),
            () => None,
        }
    }

    fn same(&self, other: &Says) -> bool {
        let gate = |says: &Says| says.on_failure == Some(OnFailure::Block);
        let matcher = |says: &Says| says.matcher.unwrap_or("*");
        self.command == other.command
            && matcher(self) == matcher(other)
            && self.dialect == other.dialect
            && gate(self) == gate(other)
    }
}

/// Stages of hooks, each hook with those that do the same behind it.
type Stages = Vec<Vec<Vec<usize>>>;

/// The plan, said in the slowest way.
fn model(hooks: &[Says], event: &Happens, world: &World) -> (Stages, BTreeMap<usize, &'static str>) {
    let mut order: Vec<usize> = (0..hooks.len()).collect();
    order.retain(|index| hooks[*index].events.contains(&event.kind.name()));
    order.sort_by_key(|index| (hooks[*index].rank(), hooks[*index].priority, *index));
    let mut skipped = BTreeMap::new();
    let mut stages: Stages = Vec::new();
    for index in order {
        let hook = &hooks[index];
        if !hook.matches(event) {
            if world.list_unfitting {
                skipped.insert(index, "matcher");
            }
            continue;
        }
        if let Some(reason) = hook.skip(index, event, world) {
            skipped.insert(index, reason);
            continue;
        }
        let twin = stages.iter_mut().flatten().find(|group| hooks[group[0]].same(hook));
        if let Some(group) = twin {
            group.push(index);
            continue;
        }
        match stages.last_mut() {
            Some(stage) if hook.parallel && stage.iter().all(|group| hooks[group[0]].parallel) => {
                stage.push(vec![index]);
            }
            _ => stages.push(vec![vec![index]]),
        }
    }
    (stages, skipped)
}

fn facts(world: &World) -> Facts {
    let absent = world.absent.iter().map(|&name| (Requirement::Command(name.to_owned()), "gone".to_owned()));
    Facts {
        absent: absent.collect(),
        exhausted: world.exhausted.iter().map(|index| (index.to_string(), "used up".to_owned())).collect(),
        twins: true,
        ..Facts::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..cases() })]

    #[test]
    fn the_plan_is_what_the_slow_model_says(
        hooks in prop::collection::vec(says(), 0..10),
        event in happens(),
        world in world(),
    ) {
        let mut registry = Registry::new();
        for (index, says) in hooks.iter().enumerate() {
            registry.register(Hook::new(says.spec(index), &Rules::default()).unwrap()).unwrap();
        }
        let mut data = vec![("tool_name", event.tool.into())];
        data.extend(event.path.map(|path| ("args", json!({"path": path}))));
        data.extend(event.agent.map(|agent| ("agent_id", agent.into())));
        let happened = Event::unchecked(event.kind, data);
        let subject = happened.subject();
        let off = |hook: &Arc<Hook>| world.switched_off.then(|| Skip::new(hook, Reason::Disabled, "off"));
        let surroundings = || Surroundings { cwd: "/p".to_owned(), root: "/p".to_owned(), variables: Map::new() };
        let found = registry.candidates(event.kind, subject);
        let selection = select(found, &happened, off, surroundings);
        let mut planned = plan(event.kind, selection, &facts(&world));
        if world.list_unfitting {
            planned.skipped.extend(registry.unfitting(event.kind, subject));
        }

        let index = |hook: &Hook| hook.id().parse::<usize>().unwrap();
        let stages: Stages = planned
            .stages
            .iter()
            .map(|stage| stage.iter().map(|one| one.candidates().map(|hook| index(hook)).collect()).collect())
            .collect();
        let skipped: Vec<_> = planned.skipped.iter().map(|skip| (index(&skip.hook), skip.reason.name())).collect();
        let (expected, reasons) = model(&hooks, &event, &world);
        prop_assert_eq!(stages, expected);
        prop_assert_eq!(skipped.len(), reasons.len(), "no hook is skipped twice");
        prop_assert_eq!(skipped.into_iter().collect::<BTreeMap<_, _>>(), reasons);
        for one in planned.stages.iter().flatten() {
            let unanswered = one.spec.condition.as_deref() == Some("data.gone.x");
            let lacks = hooks[index(one)].lacks(index(one), &world).is_some();
            prop_assert_eq!(one.failure().is_some(), unanswered || lacks);
        }
        prop_assert!(planned.skipped.iter().all(|skip| !skip.detail.is_empty()));
    }
}
