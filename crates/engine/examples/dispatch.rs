//! Gives one event to one hook and acts on the verdict.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::time::SystemTime;

use ollm_engine::{Engine, Environment};
use ollm_protocol::{ActionSpec, Builtin, Event, Hook, HookSpec, Rules, Source, Verdict};
use ollm_trust::Trust;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let trust = Trust::new(folder.path().join("trusted-hooks.json"), SystemTime::now);
    let mut engine = Engine::new(trust, Environment::default());
    let guard = Builtin::new(|event| match event.text("tool_name") {
        Some("shell") => Verdict::block("no shell today"),
        _ => Verdict::default(),
    });
    let action = ActionSpec::Builtin(guard);
    let spec = HookSpec { source: Source::Builtin, ..HookSpec::new("guard", "before_tool", action) };
    engine.registry.register(Hook::new(spec, &Rules::default())?)?;

    let outcome = engine.dispatch(&Event::before_tool("shell", [("command", "ls".into())]));
    println!("{:?}", outcome.verdict);
    assert!(!outcome.continues());
    Ok(())
}
