//! Properties of trust, as random histories of edits, approvals and restarts checked against a simple model.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use ollm_engine::Engine;
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Event, EventKind, Flow, HookSpec, Source};
use ollm_trust::{Term, Trust, UntrustedPolicy};
use proptest::prelude::*;

use crate::support::{World, cases, command, event, ran, skipped};

/// What a hook is made of: a byte of its script, one of its arguments, a byte of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    script: u8,
    argument: u8,
    input: u8,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Script,
    Argument,
    Input,
}

/// How a file is changed: in place, which keeps its inode and its size, or by another one in its place.
#[derive(Clone, Copy, Debug)]
enum Way {
    InPlace,
    Renamed,
}

#[derive(Clone, Debug)]
enum Step {
    Edit(Part, u8, Way),
    Undo(Way),
    /// In this process, or in another one.
    Approve(Term, bool),
    Revoke(bool),
    Restart,
    Dispatch(Option<&'static str>),
}

fn terms() -> impl Strategy<Value = Term> {
    prop_oneof![3 => Just(Term::Always), 2 => Just(Term::Once), 2 => Just(Term::Session(None))]
}

fn dispatches() -> impl Strategy<Value = Step> {
    prop::sample::select(vec![Some("A"), Some("B"), None]).prop_map(Step::Dispatch)
}

fn ways() -> impl Strategy<Value = Way> {
    prop::sample::select(vec![Way::InPlace, Way::Renamed])
}

/// What happens to a hook whose content does not change.
fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (terms(), any::<bool>()).prop_map(|(term, elsewhere)| Step::Approve(term, elsewhere)),
        1 => any::<bool>().prop_map(Step::Revoke),
        1 => Just(Step::Restart),
        5 => dispatches(),
    ]
}

fn edits() -> impl Strategy<Value = Step> {
    let part = prop::sample::select(vec![Part::Script, Part::Argument, Part::Input]);
    prop_oneof![
        2 => (part, 0..3_u8, ways()).prop_map(|(part, value, way)| Step::Edit(part, value, way)),
        1 => ways().prop_map(Step::Undo),
    ]
}

/// A hook that writes down the very bytes it was made of, and what should be true of it.
struct Machine {
    world: World,
    content: Content,
    before: Vec<Content>,
    approved: Option<(Content, Term)>,
}

impl Machine {
    fn new() -> Machine {
        let content = Content { script: 0, argument: 0, input: 0 };
        let machine = Machine { world: World::new(), content, before: Vec::new(), approved: None };
        machine.write(Way::InPlace);
        machine
    }

    fn spec(&self) -> HookSpec {
        let (script, input) = (self.world.path("guard.sh"), self.world.path("rules"));
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let args = vec![text(&script), self.content.argument.to_string(), text(&input)];
        let action = ActionSpec::Command(CommandSpec { command: "/bin/sh".to_owned(), args, script: Some(script) });
        HookSpec { action, source: Source::Workspace, inputs: vec![input], ..command("guard", "/bin/sh", &[]) }
    }

    fn write(&self, way: Way) {
        let script = format!("printf '%s %s %s' {} \"$1\" \"$(cat \"$2\")\" >log\n", self.content.script);
        for (name, text) in [("guard.sh", script), ("rules", self.content.input.to_string())] {
            match way {
                Way::InPlace => drop(self.world.file(name, text)),
                Way::Renamed => fs::rename(self.world.file("new", text), self.world.path(name)).unwrap(),
            }
        }
    }

    /// An engine of another process, on the same files.
    fn engine(&self) -> Engine {
        let trust = Trust::new(self.world.path("approvals.json"), SystemTime::now);
        Engine::new(trust, self.world.engine.environment().clone())
    }

    /// Does something with this engine, or with that of another process.
    fn with<T>(&self, elsewhere: bool, act: impl FnOnce(&Engine) -> T) -> T {
        if elsewhere { act(&self.engine()) } else { act(&self.world.engine) }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Edit(part, value, way) => {
                self.before.push(self.content);
                match part {
                    Part::Script => self.content.script = value,
                    Part::Argument => self.content.argument = value,
                    Part::Input => self.content.input = value,
                }
                self.write(way);
            }
            Step::Undo(way) => {
                self.content = self.before.pop().unwrap_or(self.content);
                self.write(way);
            }
            Step::Approve(term, elsewhere) => {
                let hook = self.world.hook(self.spec());
                self.with(elsewhere, |engine| {
                    let proposal = engine.trust.propose(&*hook, &engine.environment().trust_context()).unwrap();
                    engine
                        .trust
                        .approve(&*hook, &proposal, term.clone(), &engine.environment().trust_context())
                        .unwrap();
                });
                self.approved = Some((self.content, term));
            }
            Step::Revoke(elsewhere) => {
                let hook = self.world.hook(self.spec());
                let had = self.with(elsewhere, |engine| engine.trust.revoke(&*hook).unwrap());
                assert_eq!(had, self.approved.take().is_some());
            }
            Step::Restart => self.world.engine = self.engine(),
            Step::Dispatch(session) => self.dispatch(session),
        }
    }

    /// What ran is exactly what was approved, or nothing ran for the right reason.
    fn dispatch(&mut self, session: Option<&'static str>) {
        // What is approved for a session only cannot be foretold without one.
        let foreseeable = !matches!(&self.approved, Some((_, Term::Session(_))));
        let expected = self.expect(session);
        self.world.engine.registry.clear();
        let hook = self.world.add(self.spec());
        let forecast = self.world.engine.trust.forecast(&hook, &self.world.engine.environment().trust_context());
        if foreseeable {
            assert_eq!(
                forecast.map(|refusal| format!("{:?}", refusal.reason).to_lowercase()).as_deref(),
                expected.err()
            );
        }
        let outcome = self.world.engine.dispatch(&in_session(session));
        let wrote = fs::read_to_string(self.world.path("log")).ok();
        fs::remove_file(self.world.path("log")).ok();
        let Content { script, argument, input } = self.content;
        match expected {
            Ok(()) => {
                assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["guard"], vec![]));
                assert_eq!(wrote, Some(format!("{script} {argument} {input}")));
            }
            Err(reason) => {
                assert_eq!((ran(&outcome), skipped(&outcome)), (vec![], vec![("guard", reason)]));
                assert_eq!(wrote, None);
            }
        }
    }

    /// Whether the hook may run now, by the rules alone; an approval that does not last is used.
    fn expect(&mut self, session: Option<&'static str>) -> Result<(), &'static str> {
        let Some((content, term)) = &mut self.approved else { return Err("untrusted") };
        if *content != self.content {
            return Err("modified");
        }
        match (term, session) {
            (Term::Always, _) => Ok(()),
            (Term::Once, _) => {
                self.approved = None;
                Ok(())
            }
            (term @ Term::Session(None), Some(session)) => {
                *term = Term::Session(Some(session.to_owned()));
                Ok(())
            }
            (Term::Session(Some(named)), Some(session)) if named == session => Ok(()),
            (Term::Session(_), _) => Err("untrusted"),
        }
    }
}

fn in_session(session: Option<&str>) -> Event {
    let id = session.map(|id| ("session_id", id.into()));
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())].into_iter().chain(id))
}

/// A hook from somewhere, and what a person did about it.
#[derive(Clone, Debug)]
struct Declared {
    source: Source,
    approved: bool,
    changed: bool,
}

fn declared() -> impl Strategy<Value = Declared> {
    let sources =
        [Source::Builtin, Source::Policy, Source::User, Source::Workspace, Source::Extension, Source::Downloaded];
    (prop::sample::select(sources.to_vec()), any::<bool>(), any::<bool>())
        .prop_map(|(source, approved, changed)| Declared { source, approved, changed })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn property_09_hook_trust_rules(
        hooks in prop::collection::vec(declared(), 1..5),
        workspace in any::<bool>(),
        block in any::<bool>(),
    ) {
        let mut world = World::new();
        world.engine.trust.workspace = workspace;
        world.engine.trust.untrusted = if block { UntrustedPolicy::Block } else { UntrustedPolicy::Skip };
        let (mut may, mut may_not) = (Vec::new(), Vec::new());
        for (number, hook) in hooks.iter().enumerate() {
            let id = format!("hook-{number}");
            let script = world.file(&format!("{id}.sh"), format!("echo {id} >>log\n"));
            let path = script.to_str().unwrap().to_owned();
            let action = ActionSpec::Command(CommandSpec { command: "/bin/sh".to_owned(), args: vec![path], script: Some(script) });
            let added = world.add(HookSpec { action, source: hook.source, ..command(&id, "/bin/sh", &[]) });
            if hook.approved {
                world.approve(&added);
            }
            if hook.changed {
                world.file(&format!("{id}.sh"), format!("echo {id} >>log #\n"));
            }
            let by_source = match hook.source {
                Source::Builtin | Source::Policy | Source::User => true,
                Source::Workspace => workspace,
                Source::Extension | Source::Downloaded => false,
            };
            match (by_source, hook.approved, hook.changed) {
                (true, ..) | (_, true, false) => may.push(id),
                (false, true, true) => may_not.push((id, "modified")),
                (false, false, _) => may_not.push((id, "untrusted")),
            }
        }
        let outcome = world.engine.dispatch(&event());
        let mut wrote = world.log();
        wrote.sort_unstable();
        let mut did_not: Vec<_> = skipped(&outcome).iter().map(|(id, why)| ((*id).to_owned(), *why)).collect();
        did_not.sort_unstable();
        prop_assert_eq!(&wrote, &may);
        prop_assert_eq!(&did_not, &may_not);
        let refused = block && !may_not.is_empty();
        prop_assert_eq!(outcome.verdict.flow, if refused { Flow::Block } else { Flow::NoOpinion });
    }

    #[test]
    fn property_10_hook_approval_persistence(steps in prop::collection::vec(steps(), 1..12)) {
        let mut machine = Machine::new();
        for step in steps {
            machine.apply(step);
        }
        machine.apply(Step::Approve(Term::Always, false));
        machine.apply(Step::Restart);
        machine.apply(Step::Dispatch(None));
    }

    #[test]
    fn property_11_hook_hash_change_detection(
        history in prop::collection::vec(prop_oneof![2 => steps(), 1 => edits()], 1..14),
        (part, way) in (prop::sample::select(vec![Part::Script, Part::Argument, Part::Input]), ways()),
    ) {
        let mut machine = Machine::new();
        for step in history {
            machine.apply(step);
        }
        machine.apply(Step::Approve(Term::Always, false));
        machine.apply(Step::Dispatch(Some("A")));
        machine.apply(Step::Edit(part, 9, way));
        machine.apply(Step::Dispatch(Some("A")));
        machine.apply(Step::Undo(way));
        machine.apply(Step::Dispatch(Some("B")));
    }
}
