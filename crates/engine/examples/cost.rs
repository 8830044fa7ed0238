//! The parts of a dispatch, for tools that count instructions and system calls: `cost check|dispatch|record PROGRAM ROUNDS`.
//!
//! The program is approved by digest and runs from its copy. Count with two numbers of rounds and take the difference.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ollm_engine::trace::{Payload, Recorder};
use ollm_engine::{Engine, Environment};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Event, EventKind, Hook, HookSpec, Rules, Source};
use ollm_store::{Bounds, RotatingLog};
use ollm_trust::{Approval, Term, Trust};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(part), Some(program), Some(rounds)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: cost check|dispatch|record PROGRAM ROUNDS".into());
    };
    let (program, rounds): (PathBuf, usize) = (program.into(), rounds.parse()?);
    let folder = tempfile::tempdir()?;
    let approvals = folder.path().join("trusted-hooks.json");
    let cwd = program.parent().map(PathBuf::from).unwrap_or_default();
    let environment = Environment { variables: std::env::vars_os().collect(), cwd, ..Environment::default() };
    let mut engine = Engine::new(Trust::new(approvals.clone(), SystemTime::now), environment);
    let action = ActionSpec::Command(CommandSpec {
        command: program.display().to_string(),
        args: Vec::new(),
        script: Some(program),
    });
    let spec = HookSpec { source: Source::Workspace, ..HookSpec::new("no-op", "before_tool", action) };
    let hook = engine.registry.register(Hook::new(spec, &Rules::default())?)?;
    let identity = engine.trust.identity(&*hook, &engine.environment().trust_context())?;
    let approval = Approval {
        id: hook.id().to_owned(),
        source: identity.source,
        hash: identity.hash,
        digest: identity.digest,
        approved_at: String::new(),
        approved_by: String::new(),
        term: Term::Always,
        copy: None,
        program: None,
    };
    ollm_trust::approve(&approvals, approval)?;
    let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
    let outcome = engine.dispatch(&event);
    // What has just been written is not remembered.
    std::thread::sleep(Duration::from_millis(2_500));
    engine.dispatch(&event);
    let recorder = Recorder { environment: engine.environment(), binary: "1.0.0", off: None, payload: Payload::Short };
    let log = RotatingLog::new(folder.path().join("trace"), "trace.jsonl", Bounds { file: 4 << 20, files: 4 });
    for _ in 0..rounds {
        match part.as_str() {
            "check" => drop(engine.trusted(&hook).map_err(|refusal| format!("{refusal:?}"))?),
            "dispatch" if engine.dispatch(&event).continues() => {}
            "record" => log.append(&recorder.record(&event, &outcome))?,
            other => return Err(format!("`{other}` cannot be done").into()),
        }
    }
    Ok(())
}
