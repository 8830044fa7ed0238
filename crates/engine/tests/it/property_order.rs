//! Properties of the registry and of the order of execution.

use ollm_engine::Registry;
use ollm_protocol::{EventKind, Hook, HookSpec, Layer, Priority, Rules, Source, Verdict};
use proptest::prelude::*;

use crate::support::{World, builtin, cases, event, logs, ran};

/// Few enough for hooks to meet.
const KINDS: [EventKind; 4] =
    [EventKind::SessionStart, EventKind::BeforeTool, EventKind::AfterTool, EventKind::Notification];

#[derive(Clone, Debug)]
enum Change {
    Register(u8, Vec<EventKind>),
    Unregister(u8),
    ClearEvent(EventKind),
    Clear,
}

fn change() -> impl Strategy<Value = Change> {
    let kind = || prop::sample::select(&KINDS[..]);
    prop_oneof![
        8 => (0..8_u8, prop::collection::vec(kind(), 1..4)).prop_map(|(id, kinds)| Change::Register(id, kinds)),
        2 => (0..8_u8).prop_map(Change::Unregister),
        2 => kind().prop_map(Change::ClearEvent),
        1 => Just(Change::Clear),
    ]
}

/// What is registered, as a plain list of ids and the events each is still in.
#[derive(Default)]
struct Model(Vec<(String, Vec<EventKind>)>);

impl Model {
    fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(known, _)| known == id)
    }

    fn of(&self, kind: EventKind) -> Vec<String> {
        self.0.iter().filter(|(_, kinds)| kinds.contains(&kind)).map(|(id, _)| id.clone()).collect()
    }

    fn apply(&mut self, registry: &mut Registry, change: Change) {
        match change {
            Change::Register(id, kinds) => {
                let id = format!("hook-{id}");
                let events = kinds.iter().map(|kind| kind.name().to_owned()).collect();
                let spec = HookSpec { events, ..builtin(&id, |_| Verdict::default()) };
                let registered = registry.register(Hook::new(spec, &Rules::default()).unwrap());
                assert_eq!(registered.is_err(), self.has(&id));
                if !self.has(&id) {
                    self.0.push((id, kinds));
                }
            }
            Change::Unregister(id) => {
                let id = format!("hook-{id}");
                assert_eq!(registry.unregister(&id), self.has(&id));
                self.0.retain(|(known, _)| *known != id);
            }
            Change::ClearEvent(kind) => {
                registry.clear_event(kind);
                self.0.iter_mut().for_each(|(_, kinds)| kinds.retain(|known| *known != kind));
                self.0.retain(|(_, kinds)| !kinds.is_empty());
            }
            Change::Clear => {
                registry.clear();
                self.0.clear();
            }
        }
    }
}

/// A source, whose folder it was found in, and how urgent it is.
fn place() -> impl Strategy<Value = (Source, Layer, Priority)> {
    let sources: Vec<_> = Source::NAMES.iter().map(|(source, _)| *source).collect();
    let priorities: Vec<_> = Priority::NAMES.iter().map(|(priority, _)| *priority).collect();
    (
        prop::sample::select(sources),
        prop::sample::select(&[Layer::User, Layer::Workspace][..]),
        prop::sample::select(priorities),
    )
}

/// The order, said in the slowest way: rank by rank, priority by priority, hook by hook.
fn expected_order(places: &[(Source, Layer, Priority)]) -> Vec<String> {
    let is_extension = |source| matches!(source, Source::Extension | Source::Downloaded);
    let ranks: [&dyn Fn(Source, Layer) -> bool; 6] = [
        &|source, _| source == Source::Builtin,
        &|source, _| source == Source::Policy,
        &|source, _| source == Source::User,
        &|source, layer| is_extension(source) && layer == Layer::User,
        &|source, _| source == Source::Workspace,
        &|source, layer| is_extension(source) && layer == Layer::Workspace,
    ];
    let mut order = Vec::new();
    for rank in ranks {
        for wanted in [Priority::Critical, Priority::High, Priority::Normal, Priority::Low] {
            for (index, (source, layer, priority)) in places.iter().enumerate() {
                if rank(*source, *layer) && *priority == wanted {
                    order.push(format!("hook-{index}"));
                }
            }
        }
    }
    order
}

proptest! {
    #![proptest_config(cases())]

    /// A registered hook is found at each of its events, in order of registration, until it is taken away again.
    #[test]
    fn property_01_hook_registration_and_retrieval(changes in prop::collection::vec(change(), 0..24)) {
        let mut registry = Registry::new();
        let mut model = Model::default();
        for change in changes {
            model.apply(&mut registry, change);
            for kind in KINDS {
                let found: Vec<_> = registry.for_event(kind).iter().map(|hook| hook.id().to_owned()).collect();
                prop_assert_eq!(found, model.of(kind));
            }
            prop_assert_eq!(registry.count(), model.0.len());
            for id in (0..8).map(|id| format!("hook-{id}")) {
                prop_assert_eq!(registry.has(&id), model.has(&id));
                prop_assert_eq!(registry.get(&id).map(|hook| hook.id()), model.has(&id).then_some(id.as_str()));
            }
            let all: usize = registry.all().iter().map(|(_, hooks)| hooks.len()).sum();
            prop_assert_eq!(all, KINDS.iter().map(|kind| model.of(*kind).len()).sum::<usize>());
        }
    }

    /// Hooks run by rank, then by priority, then in the order of registration; the plan, the reports and the programs
    /// themselves agree about it.
    #[test]
    fn property_02_hook_execution_order(places in prop::collection::vec(place(), 0..7)) {
        let mut world = World::new();
        for (index, (source, layer, priority)) in places.iter().enumerate() {
            let spec = logs(&format!("hook-{index}"));
            world.add(HookSpec { source: *source, layer: *layer, priority: *priority, ..spec });
        }
        let hooks = world.engine.registry.for_event(event().kind);
        world.approve_all(hooks.iter().map(AsRef::as_ref));
        let plan = world.engine.plan(&event());
        let outcome = world.engine.dispatch(&event());

        let expected = expected_order(&places);
        let planned: Vec<_> = plan.stages.iter().flatten().map(|hook| hook.id().to_owned()).collect();
        prop_assert_eq!(&planned, &expected);
        prop_assert_eq!(ran(&outcome), expected.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(world.log(), expected);

        let layers = outcome.reports.iter().map(|report| &report.hook.spec);
        let layers = layers.filter(|spec| matches!(spec.source, Source::Extension | Source::Downloaded));
        prop_assert!(layers.map(|spec| spec.layer).is_sorted(), "user extensions come before workspace extensions");
    }
}
