//! Ratios to a floor measured in the same run: `cargo bench -p ollm --bench ratios`.
//!
//! Every round measures each case and its floor side by side, in turn, so that a noisy machine disturbs both alike. The
//! ratio of a case is the median over the rounds of (median of the case / median of its floor). The programs under test
//! are a static no-op hook and a static hello world, compiled with the system's C compiler.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints its table"
)]

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ollm_engine::{Engine, Environment, Facts, Registry, Trust, plan, trace};
use ollm_protocol::{ActionSpec, Event, EventKind, Hook, HookSpec, Rules, Source};
use serde_json::json;

const ROUNDS: usize = 15;
const SAMPLES: usize = 40;
const NO_OP: &str = r#"
#include <unistd.h>
int main(void) { char b[65536]; while (read(0, b, sizeof b) > 0); return write(1, "{\"continue\":true}", 17) != 17; }
"#;
const HELLO: &str = r#"
#include <unistd.h>
int main(void) { return write(1, "hello\n", 6) != 6; }
"#;

/// One measured thing and the floor it stands on.
struct Case {
    name: &'static str,
    target: f64,
    floor: Box<dyn FnMut()>,
    run: Box<dyn FnMut()>,
}

fn main() {
    let lab = Lab::new();
    let mut cases = lab.cases();
    println!("{ROUNDS} rounds of {SAMPLES} samples; ratio = median over rounds of p50(case) / p50(floor)\n");
    println!("{:<56} {:>7} {:>7}   spread over rounds", "case", "ratio", "target");
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, ratios) in cases.iter_mut().zip(&mut ratios) {
            ratios.push(round(case));
        }
    }
    for (case, ratios) in cases.iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        let mark = if median <= case.target { " " } else { "!" };
        let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
        println!("{:<56} {median:>7.2} {:>7.2} {mark} {low:.2} to {high:.2}", case.name, case.target);
    }
    planning();
}

/// Case and floor alternate, so that a disturbance hits both.
fn round(case: &mut Case) -> f64 {
    let (mut floor, mut run) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        floor.push(timed(&mut case.floor));
        run.push(timed(&mut case.run));
    }
    median(&mut run).as_secs_f64() / median(&mut floor).as_secs_f64()
}

fn timed(action: &mut dyn FnMut()) -> Duration {
    let started = Instant::now();
    action();
    started.elapsed()
}

fn median(samples: &mut [Duration]) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

/// Planning is compared with copying the matches, which any planner must do.
fn planning() {
    let mut registry = Registry::new();
    for index in 0..10_000 {
        let matcher = if index % 100 == 0 { "shell".to_owned() } else { format!("tool_{index}") };
        let action = ActionSpec::Command { command: "npx".into(), args: vec![index.to_string()], script: None };
        let spec = HookSpec { matcher: Some(matcher), ..HookSpec::new(format!("hook-{index}"), "before_tool", action) };
        registry.register(Hook::new(spec, &Rules::default()).unwrap()).unwrap();
    }
    let event = Event::new(EventKind::BeforeTool, [("tool_name", "shell".into())]);
    let facts = Facts::default();
    let planned = plan(&registry, &event, &facts);
    assert_eq!(planned.stages.len(), 100);
    let (mut copies, mut plans) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        copies.push(timed(&mut || drop(black_box(planned.stages.clone()))));
        plans.push(timed(&mut || drop(black_box(plan(&registry, black_box(&event), &facts)))));
    }
    let (copy, whole) = (median(&mut copies), median(&mut plans));
    let beyond = whole.saturating_sub(copy).as_secs_f64() * 1e6;
    let ratio = whole.as_secs_f64() / copy.as_secs_f64();
    println!("\nplanning one event among 10,000 hooks of which 100 match: {ratio:.2} x copying the matches,");
    println!("{beyond:.1} µs beyond it (target 5)");
}

/// The folder everything happens in.
struct Lab {
    root: PathBuf,
    no_op: PathBuf,
    hello: PathBuf,
}

impl Lab {
    fn new() -> Lab {
        let root = std::env::temp_dir().join(format!("ollm-bench-{}", std::process::id()));
        fs::create_dir_all(root.join("project/.ollm/hooks")).unwrap();
        let no_op = compile(&root, "no-op", NO_OP);
        let hello = compile(&root, "hello", HELLO);
        // Digests are remembered only of files that have been quiet for a while.
        std::thread::sleep(Duration::from_millis(2_500));
        Lab { root, no_op, hello }
    }

    fn cases(&self) -> Vec<Case> {
        let ollm = PathBuf::from(env!("CARGO_BIN_EXE_ollm"));
        let (one, eight, at_once) = (self.engine(1, false), self.engine(8, false), self.engine(8, true));
        let (checked, traced, recorded) = (self.engine(1, false), self.engine(1, false), self.engine(1, false));
        // The copies that the engines have just made are quiet from now on.
        std::thread::sleep(Duration::from_millis(2_500));
        let hook = Arc::clone(checked.registry.get("no-op-0").unwrap());
        let event = event();
        let [first, second, third, fourth, fifth] = std::array::from_fn(|_| event.clone());
        let outcome = recorded.dispatch(&event);
        let bounds = ollm_store::Bounds { file: 4 << 20, files: 4 };
        let trail = ollm_store::Trail::new(self.root.join("trace"), "trace.jsonl", bounds);
        let input =
            json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}}}).to_string();
        let (no_op, hello) = (self.no_op.clone(), self.hello.clone());
        let spawn = |program: &Path, input: &str| {
            let (program, input) = (program.to_owned(), input.to_owned());
            Box::new(move || finish(start(&program, &[], None), &input)) as Box<dyn FnMut()>
        };
        let home = |name: &str, hooks: usize, matcher: &str| self.home(name, hooks, matcher);
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
                    trail.append(&trace::record(&fifth, &outcome, recorded.environment(), "1.0.0")).unwrap();
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
                target: 5.0,
                floor: spawn(&no_op, &input),
                run: cli(&ollm, &["hook", "run"], &home("one", 1, "*"), &input),
            },
            Case {
                name: "ollm hook run, 40 hooks, none fits / hello world",
                target: 3.0,
                floor: spawn(&hello, ""),
                run: cli(&ollm, &["hook", "run"], &home("forty", 40, "other_tool"), &input),
            },
            Case {
                // Half a hello world more, where the run itself costs about three and a half.
                name: "ollm hook run, 100 hooks in two layers / without any",
                target: 1.15,
                floor: cli_in(&ollm, &["hook", "run"], &self.layers("bare", 0), &input),
                run: cli_in(&ollm, &["hook", "run"], &self.layers("layered", 50), &input),
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
            let action = ActionSpec::Command {
                command: self.no_op.display().to_string(),
                // Hooks that do the very same thing would run once.
                args: vec![index.to_string()],
                script: Some(self.no_op.clone()),
            };
            let spec = HookSpec {
                parallel,
                source: Source::Workspace,
                ..HookSpec::new(format!("no-op-{index}"), "before_tool", action)
            };
            let hook = engine.registry.register(Hook::new(spec, &Rules::default()).unwrap()).unwrap();
            let identity = engine.trust.identity(&hook, engine.environment()).unwrap();
            let approval = ollm_store::Approval {
                id: hook.id().to_owned(),
                source: identity.source,
                hash: identity.hash,
                digest: identity.digest,
                approved_at: String::new(),
                approved_by: "bench".to_owned(),
                term: ollm_store::Term::Always,
                copy: None,
            };
            ollm_store::approve(&approvals, approval).unwrap();
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

    /// A home whose hook file declares a number of no-op hooks.
    fn home(&self, name: &str, hooks: usize, matcher: &str) -> PathBuf {
        let home = self.root.join(name);
        fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
        let entry = |index| json!({"name": format!("no-op-{index}"), "command": self.no_op, "matcher": matcher});
        let entries: Vec<_> = (0..hooks).map(entry).collect();
        let file = json!({"hooks": {"before_tool": entries}}).to_string();
        fs::write(home.join(".ollm/hooks/bench.json"), file).unwrap();
        home
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn event() -> Event {
    Event::new(EventKind::BeforeTool, [("tool_name", "shell".into()), ("args", json!({"command": "ls"}))])
}

fn compile(root: &Path, name: &str, source: &str) -> PathBuf {
    let (file, program) = (root.join(format!("{name}.c")), root.join(name));
    fs::write(&file, source).unwrap();
    let status = Command::new("cc").args(["-O2", "-static", "-o"]).arg(&program).arg(&file).status().unwrap();
    assert!(status.success(), "the C compiler cannot link statically");
    program
}

fn cli(program: &Path, args: &[&'static str], home: &Path, input: &str) -> Box<dyn FnMut()> {
    fs::create_dir_all(home).unwrap();
    let (program, args, home, input) = (program.to_owned(), args.to_vec(), home.to_owned(), input.to_owned());
    Box::new(move || finish(start(&program, &args, Some(&home)), &input))
}

fn cli_in(program: &Path, args: &[&'static str], (home, folder): &(PathBuf, PathBuf), input: &str) -> Box<dyn FnMut()> {
    let (program, args, input) = (program.to_owned(), args.to_vec(), input.to_owned());
    let (home, folder) = (home.clone(), folder.clone());
    Box::new(move || {
        let mut command = Command::new(&program);
        command.args(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(&folder).env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
        finish(command.spawn().unwrap(), &input);
    })
}

fn start(program: &Path, args: &[&str], home: Option<&Path>) -> std::process::Child {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(home) = home {
        command.current_dir(home).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    }
    command.spawn().unwrap()
}

fn finish(mut child: std::process::Child, input: &str) {
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let mut text = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&text));
}
