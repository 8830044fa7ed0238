//! What conditions, limits and requirements cost hooks that have none: nothing.

use std::hint::black_box;
use std::time::{Duration, SystemTime};

use ollm_engine::{Engine, Environment, Facts, Registry};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::hook::{RateLimit, Requires};
use ollm_protocol::{ActionSpec, Event, EventKind, Hook, HookSpec, Rules, Source};
use ollm_trust::Trust;

use crate::lab::Lab;
use crate::measure::Case;
use crate::planning::{crowd, planned_for, spec};

/// One plan is too short to be timed alone.
const PLANS: usize = 50;

impl Lab {
    pub(crate) fn features(&self) -> Vec<Case> {
        let (plain, beside) = (crowd(), with(crowd(), "tool_0"));
        let (bare, mixed) = (self.plain("bare"), self.plain("mixed"));
        let mut mixed = mixed;
        mixed.registry.register(Hook::new(demanding("other_tool"), &Rules::default()).unwrap()).unwrap();
        let (one, other) = (shell(), shell());
        vec![
            Case {
                name: "plan, 100 of 10,000 fit, another has if, limit, requires",
                target: 1.10,
                floor: plans(plain),
                run: plans(beside),
            },
            Case {
                name: "dispatch of a plain hook, another has all of them",
                target: 1.02,
                floor: Box::new(move || assert!(bare.dispatch(&one).continues())),
                run: Box::new(move || assert!(mixed.dispatch(&other).continues())),
            },
        ]
    }

    /// An engine with one hook of the user that asks for nothing.
    fn plain(&self, name: &str) -> Engine {
        let trust = Trust::new(self.root.join(name).join("trusted-hooks.json"), SystemTime::now);
        let mut engine = Engine::new(trust, Environment::default());
        let command = self.no_op.display().to_string();
        let action = ActionSpec::Command(CommandSpec { command, args: Vec::new(), script: None });
        let spec = HookSpec { source: Source::User, ..HookSpec::new("plain", "before_tool", action) };
        engine.registry.register(Hook::new(spec, &Rules::default()).unwrap()).unwrap();
        engine
    }
}

fn shell() -> Event {
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())])
}

/// A hook of the same event that does not fit, and has everything that planning can look at.
fn demanding(matcher: &str) -> HookSpec {
    HookSpec {
        condition: Some("data.args.command.contains('push')".to_owned()),
        file_patterns: vec!["*.rs".to_owned()],
        rate_limit: RateLimit { per_minute: Some(60), cooldown: Some(Duration::from_secs(1)) },
        requires: Requires { commands: vec!["git".to_owned()], ..Requires::default() },
        ..spec(10_000, matcher)
    }
}

fn with(mut registry: Registry, matcher: &str) -> Registry {
    registry.register(Hook::new(demanding(matcher), &Rules::default()).unwrap()).unwrap();
    registry
}

fn plans(registry: Registry) -> Box<dyn FnMut()> {
    let (event, facts) = (shell(), Facts::default());
    assert_eq!(planned_for(&registry, &event, &facts).stages.len(), 100);
    Box::new(move || (0..PLANS).for_each(|_| drop(black_box(planned_for(&registry, black_box(&event), &facts)))))
}
