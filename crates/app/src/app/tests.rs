//! Property: after any change of files, an event gets the same verdict with and without a snapshot.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use ollm_catalog::Snapshots;
use ollm_store::Switch;
use ollm_trust::{Approver, Choice, Question};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const FILES: &[&str] = &[
    "home/.ollm/hooks/x.json",
    "home/.config/agent/settings.json",
    "project/.ollm/hooks/y.json",
    MANIFESTS[0],
    MANIFESTS[1],
    SCRIPTS[0],
    SCRIPTS[1],
    SCRIPTS[2],
];

const MANIFESTS: &[&str] = &["home/.ollm/extensions/a/manifest.json", "project/.ollm/extensions/b/manifest.json"];

const SCRIPTS: &[&str] =
    &["home/.ollm/hooks/run.sh", "home/.ollm/extensions/a/run.sh", "project/.ollm/extensions/b/run.sh"];

/// Something that happens between two events.
#[derive(Clone, Debug)]
enum Change {
    Write(&'static str, String),
    Replace(&'static str, String),
    Remove(&'static str),
    Rename(&'static str, &'static str),
    Mode(&'static str, u32),
    Config(&'static str),
    Switch(&'static str, bool),
    Event(&'static str),
}

/// The effect of a program: it goes on, refuses, or fails.
fn script() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("exit 0".to_owned()),
        (0..9_u32).prop_map(|number| format!("echo reason {number} >&2; exit 2")),
        (0..9_u32).prop_map(|number| format!("echo broken {number} >&2; exit 3")),
        Just("echo level $LEVEL >&2; exit 2".to_owned()),
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    let matcher = prop::sample::select(vec!["*", "shell", "read_*"]);
    let args = prop_oneof![Just(vec!["run.sh".to_owned()]), script().prop_map(|line| vec!["-c".to_owned(), line])];
    let on_failure = prop::sample::select(vec!["allow", "block"]);
    (matcher, args, on_failure).prop_map(|(matcher, args, on_failure)| {
        json!({"matcher": matcher, "command": "sh", "args": args, "onFailure": on_failure})
    })
}

fn entries() -> impl Strategy<Value = Value> {
    let event = prop::sample::select(vec!["PreToolUse", "before_tool", "after_tool"]);
    prop::collection::vec((event, entry()), 0..3).prop_map(|entries| {
        let mut events = BTreeMap::<&str, Vec<Value>>::new();
        for (event, entry) in entries {
            events.entry(event).or_default().push(entry);
        }
        json!(events)
    })
}

fn manifest() -> impl Strategy<Value = String> {
    let settings = prop::sample::select(vec![
        json!([]),
        json!([{"name": "level", "description": "d", "envVar": "LEVEL"}]),
        json!([{"name": "other", "description": "d", "required": true}]),
    ]);
    let needs = prop::sample::select(vec![json!({}), json!({"a": "^1"}), json!({"b": "*"})]);
    let name = prop::sample::select(vec!["a", "b"]);
    (name, entries(), settings, needs).prop_map(|(name, hooks, settings, needs)| {
        let whole = json!({"name": name, "version": "1.0.0", "description": "d", "hooks": hooks, "settings": settings,
            "dependencies": needs});
        whole.to_string()
    })
}

fn text(file: &'static str) -> BoxedStrategy<String> {
    match file {
        _ if MANIFESTS.contains(&file) => manifest().boxed(),
        _ if SCRIPTS.contains(&file) => script().boxed(),
        "home/.config/agent/settings.json" => script()
            .prop_map(|line| {
                json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": line}]}]}}).to_string()
            })
            .boxed(),
        _ => entries().prop_map(|hooks| json!({ "hooks": hooks }).to_string()).boxed(),
    }
}

fn change() -> impl Strategy<Value = Change> {
    let file = || prop::sample::select(FILES);
    let written = || file().prop_flat_map(|file| (Just(file), text(file)));
    let config =
        prop::sample::select(vec!["{}", "{enabled: false}", "{timeout: 9s}", "{untrusted: block}", "{guards: []}"]);
    prop_oneof![
        4 => written().prop_map(|(file, text)| Change::Write(file, text)),
        2 => written().prop_map(|(file, text)| Change::Replace(file, text)),
        1 => file().prop_map(Change::Remove),
        1 => (file(), file()).prop_map(|(from, to)| Change::Rename(from, to)),
        1 => (file(), prop::sample::select(vec![0o600, 0o644, 0o666, 0o755])).prop_map(|(file, mode)| Change::Mode(file, mode)),
        1 => config.prop_map(Change::Config),
        1 => (prop::sample::select(vec!["a", "b"]), any::<bool>()).prop_map(|(name, on)| Change::Switch(name, on)),
        4 => prop::sample::select(vec!["ls", "rm -rf ~"]).prop_map(Change::Event),
    ]
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn happen(base: &Path, change: Change) {
    let path = |file: &str| base.join(file);
    match change {
        Change::Write(file, text) => write(&path(file), &text),
        Change::Replace(file, text) => {
            write(&path("aside"), &text);
            fs::create_dir_all(path(file).parent().unwrap()).unwrap();
            fs::rename(path("aside"), path(file)).unwrap();
        }
        Change::Remove(file) => drop(fs::remove_file(path(file))),
        Change::Rename(from, to) => drop(fs::rename(path(from), path(to))),
        Change::Mode(file, mode) => drop(fs::set_permissions(path(file), Permissions::from_mode(mode))),
        // A box would not change the result, but take longer.
        Change::Config(hooks) => {
            let hooks = hooks.trim_end_matches('}').to_owned()
                + if hooks == "{}" { "box: declared}" } else { ", box: declared}" };
            write(&path("home/.ollm/config.yaml"), &format!("hooks: {hooks}\n"));
        }
        Change::Switch(name, on) => {
            let change = [(format!("extension:{name}"), Some(Switch { on, until: None }))];
            ollm_store::set_switches(&path("home/.ollm/state/switches.json"), &change, SystemTime::UNIX_EPOCH).unwrap();
        }
        Change::Event(_) => {}
    }
    // The times of files are only as fine as the kernel's clock ticks.
    thread::sleep(Duration::from_millis(12));
}

/// A person who approves everything once.
#[derive(Debug)]
struct Willing;

impl Approver for Willing {
    fn ask(&self, _: &Question<'_>) -> Choice {
        Choice::Once
    }
}

/// The verdict about an event, and the notices for the person.
fn verdict(context: &AppContext, line: &str, snapshots: Option<Snapshots<'_>>) -> String {
    let event = Event::before_tool("shell", [("command", line.into())]);
    let mut app = match App::load_kept(context, &event, None, snapshots) {
        Ok(app) => app,
        Err(error) => return format!("{error:?}"),
    };
    app.engine.trust.approver = Some(Box::new(Willing));
    let Outcome { verdict, reports, skipped, .. } = app.dispatch(&event);
    let ran: Vec<_> =
        reports.iter().map(|one| (one.hook.id(), one.status, &one.verdict, &one.error, &one.warnings)).collect();
    let skipped: Vec<_> = skipped.iter().map(|one| (one.hook.id(), one.reason, &one.detail)).collect();
    format!("{verdict:?}\n{ran:#?}\n{skipped:#?}\n{:#?}\n{:?}", app.problems, app.what_is_off())
}

fn context(base: &Path) -> AppContext {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let variables = vec![("PATH".into(), path), ("LEVEL".into(), "high".into())];
    let (home, project) = (base.join("home"), base.join("project"));
    fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
    fs::create_dir_all(project.join(".ollm")).unwrap();
    AppContext::new(variables, project, Some(home))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn every_verdict_is_the_same_with_a_snapshot_and_without(changes in prop::collection::vec(change(), 1..24)) {
        let folder = tempfile::tempdir().unwrap();
        let base: PathBuf = folder.path().canonicalize().unwrap();
        let context = context(&base);
        happen(&base, Change::Config("{}"));
        let kept = context.snapshots().unwrap();
        for change in changes {
            let Change::Event(line) = change else {
                happen(&base, change);
                continue;
            };
            let expected = verdict(&context, line, None);
            // The first run stores the snapshot; the second one reads it.
            for _ in 0..2 {
                let now = SystemTime::now() + Duration::from_hours(1);
                prop_assert_eq!(verdict(&context, line, Some(Snapshots { folder: &kept, now })), expected.clone());
            }
        }
    }
}
