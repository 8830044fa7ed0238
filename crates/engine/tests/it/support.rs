//! An engine in a folder of its own, hooks for it, and a look at processes from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_engine::{Engine, Environment, Outcome, Report, Status};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{
    ActionSpec, Builtin, DefaultBox, Event, EventKind, Flow, Hook, HookSpec, Rules, Source, Timeout, Verdict,
};
use ollm_trust::Trust;
use ollm_trust::{Approval, approve_all};
use proptest::prelude::ProptestConfig;
use serde_json::{Value, json};
use testkit::Scripts;
pub(crate) use testkit::{PATIENCE, eventually, runs};

/// The names of the dialects, in the order in which [`World::four`] reports.
pub(crate) const DIALECTS: [&str; 4] = ["ollm", "gate", "rpc", "agent"];

/// As many cases as every property gets; what failed is shown and not kept in a file.
pub(crate) fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) }
}

/// An engine whose hooks run in a folder of their own.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) rules: Rules,
    scripts: Scripts,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(&[])
    }

    /// A world with more variables than `PATH`.
    pub(crate) fn with(variables: &[(&str, &str)]) -> World {
        let scripts = Scripts::new().unwrap();
        let path = [("PATH", "/usr/bin:/bin")];
        let variables = path.iter().filter(|(name, _)| !variables.iter().any(|(own, _)| own == name)).chain(variables);
        let environment = Environment {
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: scripts.folder().to_owned(),
            ..Environment::default()
        };
        let trust = Trust::new(scripts.folder().join("approvals.json"), SystemTime::now);
        // Hooks of all sources leave their marks in one folder, so only those that declare permissions have a box here.
        let rules = Rules { default_box: DefaultBox::Declared, ..Rules::default() };
        World { engine: Engine::new(trust, environment), rules, scripts }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scripts.folder().join(name)
    }

    /// A file in the folder.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// An executable file in the folder.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        self.scripts.add(name, text).unwrap()
    }

    pub(crate) fn hook(&self, spec: HookSpec) -> Arc<Hook> {
        Arc::new(Hook::new(spec, &self.rules).unwrap())
    }

    pub(crate) fn add(&mut self, spec: HookSpec) -> Arc<Hook> {
        self.engine.registry.register(Hook::new(spec, &self.rules).unwrap()).unwrap()
    }

    /// A person approves a hook in its present state.
    pub(crate) fn approve(&self, hook: &Hook) {
        self.approve_all([hook]);
    }

    /// A person approves the present hooks, in one step.
    pub(crate) fn approve_all<'a>(&self, hooks: impl IntoIterator<Item = &'a Hook>) {
        let approval = |hook: &Hook| {
            let identity = self.engine.trust.identity(hook, &self.engine.environment().trust_context()).unwrap();
            Approval {
                source: identity.source,
                id: hook.id().to_owned(),
                hash: identity.hash,
                approved_at: "2026-01-15T10:30:00Z".to_owned(),
                approved_by: "user".to_owned(),
                term: ollm_trust::Term::Always,
                copy: None,
                program: identity.program.map(|program| program.display().to_string()),
                digest: identity.digest,
            }
        };
        approve_all(&self.path("approvals.json"), hooks.into_iter().map(approval).collect()).unwrap();
    }

    /// Runs one hook that may run, without registering it.
    pub(crate) fn run(&self, spec: HookSpec, event: &Event) -> Report {
        let trusted = self.engine.trusted(&self.hook(spec)).unwrap();
        self.engine.run_one(&trusted, event).unwrap()
    }

    /// The same hook in every dialect, all at once.
    pub(crate) fn four(&mut self, event: &Event, spec: impl Fn(&'static str) -> HookSpec) -> Vec<Report> {
        for dialect in DIALECTS {
            let spec = HookSpec { id: dialect.to_owned(), parallel: true, ..spoken(dialect, spec(dialect)) };
            self.add(spec);
        }
        let outcome = self.engine.dispatch(event);
        self.engine.registry.clear();
        assert!(outcome.skipped.is_empty(), "{:?}", outcome.skipped);
        outcome.reports
    }

    /// What the hooks that log have logged, in the order of their runs.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// A tool is about to be used.
pub(crate) fn event() -> Event {
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into()), ("args", json!({"command": "ls"}))])
}

/// A hook that starts a program.
pub(crate) fn command(id: &str, program: impl AsRef<Path>, args: &[&str]) -> HookSpec {
    let command = program.as_ref().to_str().unwrap().to_owned();
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    let action = ActionSpec::Command(CommandSpec { command, args, script: None });
    HookSpec { timeout: Some(Timeout::Exact(PATIENCE)), ..HookSpec::new(id, "before_tool", action) }
}

/// A hook that starts a script file.
pub(crate) fn file(id: &str, path: &Path) -> HookSpec {
    let action = ActionSpec::Command(CommandSpec {
        command: path.to_str().unwrap().to_owned(),
        args: Vec::new(),
        script: Some(path.to_owned()),
    });
    HookSpec { action, ..command(id, path, &[]) }
}

/// A hook in shell.
pub(crate) fn sh(id: &str, script: &str) -> HookSpec {
    // The id keeps hooks apart that would otherwise do the very same thing.
    command(id, "/bin/sh", &["-c", script, id])
}

/// A hook that prints the content of a file and reads nothing.
pub(crate) fn cat(id: &str, file: &Path) -> HookSpec {
    let env = vec![("ID".to_owned(), id.to_owned())];
    HookSpec { env, ..command(id, "/bin/cat", &[file.to_str().unwrap()]) }
}

/// A hook that notes its id in the log and goes on.
pub(crate) fn logs(id: &str) -> HookSpec {
    sh(id, r#"echo "$OLLM_HOOK_ID" >>log; echo '{"continue":true}'"#)
}

/// A hook in the words of a dialect.
pub(crate) fn spoken(dialect: &str, spec: HookSpec) -> HookSpec {
    HookSpec { dialect: Some(dialect.to_owned()), ..spec }
}

/// A hook of the embedding program.
pub(crate) fn builtin(id: &str, closure: impl Fn(&Event) -> Verdict + Send + Sync + 'static) -> HookSpec {
    let action = ActionSpec::Builtin(Builtin::new(closure));
    HookSpec { source: Source::Builtin, ..HookSpec::new(id, "before_tool", action) }
}

/// A hook with this long to answer.
pub(crate) fn within(timeout: Duration, spec: HookSpec) -> HookSpec {
    HookSpec { timeout: Some(Timeout::Exact(timeout)), ..spec }
}

/// The answer of a dialect that lets the operation go on.
pub(crate) fn go_on(dialect: &str) -> Value {
    match dialect {
        "gate" => json!({"allow": true}),
        "rpc" => json!({"jsonrpc": "2.0", "result": {}, "id": 1}),
        _ => json!({"continue": true}),
    }
}

/// The answer of a dialect that refuses.
pub(crate) fn refuse(dialect: &str, reason: &str) -> Value {
    match dialect {
        "gate" => json!({"allow": false, "message": reason}),
        "rpc" => json!({"jsonrpc": "2.0", "result": {"continue": false, "reason": reason}, "id": 1}),
        "agent" => json!({"decision": "block", "reason": reason}),
        _ => json!({"continue": false, "systemMessage": reason}),
    }
}

/// A shell command that prints a value.
pub(crate) fn prints(value: &Value) -> String {
    let text = value.to_string();
    assert!(!text.contains('\''), "{text} cannot be quoted");
    format!("printf '%s' '{text}'")
}

/// How each hook fared, and where it left the operation.
pub(crate) fn ends(reports: &[Report]) -> Vec<(Status, Flow)> {
    reports.iter().map(|report| (report.status, report.verdict.flow)).collect()
}

/// What a failure of this status means in each dialect: `gate` blocks, the others go on.
pub(crate) fn everywhere(status: Status) -> Vec<(Status, Flow)> {
    DIALECTS.iter().map(|&dialect| (status, if dialect == "gate" { Flow::Block } else { Flow::NoOpinion })).collect()
}

/// The ids of the hooks that ran.
pub(crate) fn ran(outcome: &Outcome) -> Vec<&str> {
    outcome.reports.iter().map(|report| report.hook.id()).collect()
}

/// The ids of the hooks that did not run, and why.
pub(crate) fn skipped(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.skipped.iter().map(|skip| (skip.hook.id(), skip.reason.name())).collect()
}
