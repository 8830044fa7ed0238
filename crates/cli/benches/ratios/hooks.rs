//! Hooks: through the library, and through the program that other agents start.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_engine::trace::{Payload, Recorder};
use ollm_engine::{Engine, Environment};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, DefaultBox, Event, EventKind, Hook, HookSpec, Rules, Source};
use ollm_trust::Trust;
use serde_json::json;

use crate::lab::{Lab, cli, cli_in, finish, start};
use crate::measure::Case;

impl Lab {
    pub(crate) fn hooks(&self) -> Vec<Case> {
        let ollm = self.ollm.clone();
        let (one, eight, at_once) = (self.engine(1, false), self.engine(8, false), self.engine(8, true));
        let (checked, traced, recorded) = (self.engine(1, false), self.engine(1, false), self.engine(1, false));
        let (single, forty) = (self.home("one", 1, "*"), self.home("forty", 40, "other_tool"));
        let (none, thousand) = (self.home("none", 0, "*"), self.thousand());
        let (bare, layered) = (self.layers("bare", 0), self.layers("layered", 50));
        // What was just made is quiet from now on: the copies of the engines, and the files that snapshots are made of.
        std::thread::sleep(Duration::from_millis(2_500));
        let hook = Arc::clone(checked.registry.get("no-op-0").unwrap());
        let event = event();
        let [first, second, third, fourth, fifth] = std::array::from_fn(|_| event.clone());
        let outcome = recorded.dispatch(&event);
        let bounds = ollm_store::Bounds { file: 4 << 20, files: 4 };
        let log = ollm_store::RotatingLog::new(self.root.join("trace"), "trace.jsonl", bounds);
        let input =
            json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}}}).to_string();
        let (no_op, hello) = (self.no_op.clone(), self.hello.clone());
        let spawn = |program: &Path, input: &str| {
            let (program, input) = (program.to_owned(), input.to_owned());
            Box::new(move || finish(start(&program, &[], None), &input)) as Box<dyn FnMut()>
        };
        vec![
            Case {
                name: "one no-op hook, library / bare spawn",
                target: 1.15,
                floor: spawn(&no_op, &input),
                run: Box::new(move || assert!(one.dispatch(&first).continues())),
            },
            Case {
                name: "trust check of an unchanged approved hook / bare spawn",
                target: 0.10,
                floor: spawn(&no_op, &input),
                run: Box::new(move || assert!(checked.trusted(&hook).is_ok())),
            },
            Case {
                name: "trace record, built and written / no-op dispatch",
                target: 0.05,
                floor: Box::new(move || assert!(traced.dispatch(&fourth).continues())),
                run: Box::new(move || {
                    let environment = recorded.environment();
                    let writes = Recorder { environment, binary: "1.0.0", off: None, payload: Payload::Short };
                    log.append(&writes.record(&fifth, &outcome)).unwrap();
                }),
            },
            Case {
                name: "8 hooks in order, library / 8 bare spawns in order",
                target: 1.10,
                floor: {
                    let (no_op, input) = (no_op.clone(), input.clone());
                    Box::new(move || (0..8).for_each(|_| finish(start(&no_op, &[], None), &input)))
                },
                run: Box::new(move || assert!(eight.dispatch(&second).continues())),
            },
            Case {
                name: "8 hooks at once, library / 8 bare spawns at once",
                target: 1.15,
                floor: {
                    let (no_op, input) = (no_op.clone(), input.clone());
                    Box::new(move || {
                        let children: Vec<_> = (0..8).map(|_| start(&no_op, &[], None)).collect();
                        for child in children {
                            finish(child, &input);
                        }
                    })
                },
                run: Box::new(move || assert!(at_once.dispatch(&third).continues())),
            },
            Case {
                name: "ollm --version / static hello world",
                target: 3.0,
                floor: spawn(&hello, ""),
                run: cli(&ollm, &["--version"], &self.root.join("empty"), ""),
            },
            Case {
                name: "ollm hook run, one no-op hook / bare spawn of it",
                target: 4.0,
                floor: spawn(&no_op, &input),
                run: cli(&ollm, &["hook", "run"], &single, &input),
            },
            Case {
                name: "ollm hook run, 40 hooks, none fits / hello world",
                target: 2.2,
                floor: spawn(&hello, ""),
                run: cli(&ollm, &["hook", "run"], &forty, &input),
            },
            Case {
                // Half a hello world more, where the run itself costs about three and a half.
                name: "ollm hook run, 100 hooks in two layers / without any",
                target: 1.15,
                floor: cli_in(&ollm, &["hook", "run"], &bare, &input),
                run: cli_in(&ollm, &["hook", "run"], &layered, &input),
            },
            Case {
                name: "ollm hook run, 1,000 hooks in 20 files / without any",
                target: 1.10,
                floor: cli(&ollm, &["hook", "run"], &none, &input),
                run: cli(&ollm, &["hook", "run"], &thousand, &input),
            },
        ]
    }

    /// An engine with no-op hooks that came with a project and were approved by digest.
    fn engine(&self, hooks: usize, parallel: bool) -> Engine {
        let approvals = self.root.join(format!("approvals-{hooks}-{parallel}.json"));
        let environment =
            Environment { variables: std::env::vars_os().collect(), cwd: self.root.clone(), ..Environment::default() };
        let mut engine = Engine::new(Trust::new(approvals.clone(), SystemTime::now), environment);
        for index in 0..hooks {
            let action = ActionSpec::Command(CommandSpec {
                command: self.no_op.display().to_string(),
                // Hooks that do the very same thing would run once.
                args: vec![index.to_string()],
                script: Some(self.no_op.clone()),
            });
            // What a box costs is a row of its own.
            let rules = Rules { default_box: DefaultBox::Declared, ..Rules::default() };
            let spec = HookSpec {
                parallel,
                source: Source::Workspace,
                ..HookSpec::new(format!("no-op-{index}"), "before_tool", action)
            };
            let hook = engine.registry.register(Hook::new(spec, &rules).unwrap()).unwrap();
            let identity = engine.trust.identity(&*hook, &engine.environment().trust_context()).unwrap();
            let approval = ollm_trust::Approval {
                id: hook.id().to_owned(),
                source: identity.source,
                hash: identity.hash,
                digest: identity.digest,
                approved_at: String::new(),
                approved_by: "bench".to_owned(),
                term: ollm_trust::Term::Always,
                copy: None,
                program: None,
            };
            ollm_trust::approve(&approvals, approval).unwrap();
        }
        let outcome = engine.dispatch(&event());
        assert_eq!(outcome.reports.len(), hooks, "{outcome:?}");
        engine
    }

    /// A home and a project in it, each with a configuration and as many hooks that do not fit; the project.
    fn layers(&self, name: &str, hooks: usize) -> (PathBuf, PathBuf) {
        let home = self.home(name, hooks, "other_tool");
        let project = self.home(&format!("{name}/project"), hooks, "other_tool");
        fs::write(home.join(".ollm/config.yaml"), "hooks:\n  enabled: true\n  timeout: 20000\n").unwrap();
        fs::write(project.join(".ollm/config.yaml"), "hooks:\n  timeout: 10000\n").unwrap();
        (home, project)
    }

    /// A home with a thousand hooks in twenty files, of which none fits.
    fn thousand(&self) -> PathBuf {
        let home = self.home("thousand", 50, "other_tool");
        let hooks = home.join(".ollm/hooks");
        for file in 1..20 {
            fs::copy(hooks.join("bench.json"), hooks.join(format!("bench-{file}.json"))).unwrap();
        }
        home
    }

    /// A home whose hook file declares a number of no-op hooks.
    pub(crate) fn home(&self, name: &str, hooks: usize, matcher: &str) -> PathBuf {
        let home = self.root.join(name);
        fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
        let entry = |index| json!({"name": format!("no-op-{index}"), "command": self.no_op, "matcher": matcher});
        let entries: Vec<_> = (0..hooks).map(entry).collect();
        let file = json!({"hooks": {"before_tool": entries}}).to_string();
        fs::write(home.join(".ollm/hooks/bench.json"), file).unwrap();
        home
    }
}

fn event() -> Event {
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into()), ("args", json!({"command": "ls"}))])
}
