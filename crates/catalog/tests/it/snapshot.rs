//! What files said is kept for the next event, and never counts longer than they say it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use ollm_catalog::{
    Catalog, Extension, Extensions, Moment, Overrides, PolicyFile, Problem, Severity, Snapshots, load, load_for,
};
use ollm_protocol::{EventKind, Hook, Subject};
use ollm_store::current_uid;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::World;

fn everything(world: &World) -> (Catalog, Vec<Problem>) {
    load(&world.places, &|name| world.env.get(name).cloned(), &world.overrides)
}

/// Loads for one event at this time; what was left alone until two seconds before it is kept.
fn at(world: &World, moment: &Moment, now: SystemTime) -> (Catalog, Vec<Problem>) {
    let folder = folder(world);
    let snapshots = Snapshots { folder: &folder, now };
    load_for(&world.places, &|name| world.env.get(name).cloned(), &world.overrides, moment, Some(snapshots))
}

/// The same long after everything was written.
fn later(world: &World, moment: &Moment) -> (Catalog, Vec<Problem>) {
    at(world, moment, SystemTime::now() + Duration::from_hours(1))
}

fn folder(world: &World) -> PathBuf {
    world.places.home.join("state/snapshots")
}

fn kept(world: &World) -> Vec<PathBuf> {
    fs::read_dir(folder(world)).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn shell() -> Moment {
    Moment { kind: EventKind::BeforeTool, subject: Some("shell".to_owned()) }
}

/// The hooks that fit, in order, with everything about them.
fn fitting(hooks: &[Hook], moment: &Moment) -> Vec<String> {
    let subject = moment.subject.as_deref().map(|name| Subject::new(moment.kind, name));
    let fits = |hook: &&Hook| hook.events.contains(&moment.kind) && hook.matcher.matches(subject);
    hooks.iter().filter(fits).map(|hook| format!("{hook:?}")).collect()
}

/// What is known of the extensions at a moment, each with everything about its hooks that fit.
fn bundled(extensions: &Extensions, moment: &Moment) -> Vec<String> {
    let of = |one: &Extension| {
        let Extension { name, root, layer, enclosing, state, values, .. } = one;
        let source = one.source();
        format!(
            "{name} {} {layer:?} {enclosing:?} {source:?} {state:?} {values:?} {:?}",
            root.display(),
            fitting(&one.hooks, moment)
        )
    };
    extensions.iter().map(of).collect()
}

fn ids(catalog: &Catalog) -> Vec<&str> {
    catalog.hooks.iter().map(Hook::id).collect()
}

/// Times of files are as fine as the kernel's clock ticks.
fn tick() {
    thread::sleep(Duration::from_millis(12));
}

fn entry() -> impl Strategy<Value = (&'static str, Value)> {
    let event =
        prop::sample::select(vec!["before_tool", "PreToolUse", "after_tool", "custom:deploy", "on-file-change"]);
    let name = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let matcher = prop::option::of(prop::sample::select(vec![
        "shell",
        "write_*",
        "*",
        "re:^sh",
        "shell|read",
        "builtin:*",
        "Bash",
        "Write|re*",
    ]));
    let id = prop::option::weighted(0.2, prop::sample::select(vec!["one", "two"]));
    (event, name, matcher, id, 0..1000_u32).prop_map(|(event, name, matcher, id, number)| {
        let mut entry = json!({"command": "/bin/true", "args": [number.to_string()]});
        for (key, value) in [("name", name), ("matcher", matcher), ("id", id)] {
            if let Some(value) = value {
                entry[key] = value.into();
            }
        }
        (event, entry)
    })
}

fn moment() -> impl Strategy<Value = Moment> {
    let kind = prop::sample::select(vec![
        EventKind::BeforeTool,
        EventKind::AfterTool,
        EventKind::Custom,
        EventKind::FileEdited,
    ]);
    let subject = prop::option::of(prop::sample::select(vec!["shell", "Bash", "write_file", "deploy", "mcp__x__y"]));
    (kind, subject).prop_map(|(kind, subject)| Moment { kind, subject: subject.map(str::to_owned) })
}

/// Something that happens to the files.
#[derive(Clone, Debug)]
enum Change {
    Write(&'static str, String),
    Replace(&'static str, String),
    Remove(&'static str),
    Rename(&'static str, &'static str),
    Mode(&'static str, u32),
    Script(&'static str, bool),
    Timeout(u32),
    Switch(&'static str, bool),
    Lead(&'static str),
    Event(Moment),
}

const FILES: &[&str] = &[
    "home/.ollm/hooks/x.json",
    "home/.ollm/hooks/trusted/y.json",
    "home/.config/agent/settings.json",
    "project/.ollm/hooks/z.json",
    "project/.config/agent/settings.json",
    "home/.ollm/hooks/w.yaml",
    "project/.ollm/hooks/v.yml",
    MANIFESTS[0],
    MANIFESTS[1],
    MANIFESTS[2],
];

const MANIFESTS: &[&str] = &[
    "home/.ollm/extensions/a/manifest.json",
    "home/.ollm/extensions/b/manifest.json",
    "project/.ollm/extensions/c/manifest.json",
];

/// What decides about a hook or an extension by being there.
const SCRIPTS: &[&str] = &[
    "home/.ollm/hooks/7",
    "home/.ollm/extensions/a/7",
    "home/.ollm/extensions/a/.ollm-install.json",
    "project/.ollm/extensions/c/7",
];

/// What can be given other rights.
const PLACES: &[&str] = &[
    "home/.ollm/hooks/x.json",
    "project/.ollm/hooks/z.json",
    "home/.ollm/hooks",
    "home/.ollm/hooks/trusted",
    "project/.ollm",
    "home/.ollm/config.yaml",
    "home/.ollm/extensions",
    "home/.ollm/extensions/a",
    MANIFESTS[0],
    MANIFESTS[2],
];

const MODES: &[u32] = &[0o600, 0o644, 0o666, 0o000, 0o700, 0o755, 0o777];

fn hook_file() -> impl Strategy<Value = String> {
    prop::collection::vec(entry(), 0..6).prop_map(|entries| {
        let mut events = BTreeMap::<&str, Vec<Value>>::new();
        for (event, entry) in entries {
            events.entry(event).or_default().push(entry);
        }
        json!({"hooks": events}).to_string()
    })
}

/// A manifest that brings hooks and one of the other things that extensions bring; sometimes one with a fault.
fn manifest() -> impl Strategy<Value = String> {
    let more = prop_oneof![
        4 => Just(json!({})),
        2 => Just(json!({"settings": [{"name": "level", "description": "x", "envVar": "LEVEL", "default": "low"}]})),
        1 => Just(json!({"settings": [{"name": "level", "description": "x", "required": true}]})),
        1 => Just(json!({"mcpServers": {"srv": {"command": "npx", "args": ["7"]}}})),
        2 => prop::sample::select(vec!["a", "b", "c"]).prop_map(|other| json!({"dependencies": {other: "*"}})),
        1 => Just(json!({"hooks": 1})),
        1 => Just(json!({"unknown": 1})),
    ];
    let name = prop::sample::select(vec!["a", "b", "c"]);
    (name, prop::collection::vec(entry(), 0..4), more).prop_map(|(name, entries, more)| {
        let mut events = BTreeMap::<&str, Vec<Value>>::new();
        for (event, entry) in entries {
            events.entry(event).or_default().push(entry);
        }
        let mut whole = json!({"name": name, "version": "1.0.0", "description": "d", "hooks": events});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        whole.to_string()
    })
}

fn change() -> impl Strategy<Value = Change> {
    let file = || prop::sample::select(FILES);
    prop_oneof![
        3 => (prop::sample::select(MANIFESTS), manifest()).prop_map(|(file, text)| Change::Write(file, text)),
        1 => (prop::sample::select(MANIFESTS), manifest()).prop_map(|(file, text)| Change::Replace(file, text)),
        1 => (prop::sample::select(vec!["a", "b"]), any::<bool>()).prop_map(|(name, on)| Change::Switch(name, on)),
        1 => prop::sample::select(vec!["a", "b"]).prop_map(Change::Lead),
        3 => (file(), hook_file()).prop_map(|(file, text)| Change::Write(file, text)),
        2 => (file(), hook_file()).prop_map(|(file, text)| Change::Replace(file, text)),
        1 => file().prop_map(Change::Remove),
        1 => (file(), file()).prop_map(|(from, to)| Change::Rename(from, to)),
        2 => (prop::sample::select(PLACES), prop::sample::select(MODES)).prop_map(|(place, mode)| Change::Mode(place, mode)),
        2 => (prop::sample::select(SCRIPTS), any::<bool>()).prop_map(|(file, is_there)| Change::Script(file, is_there)),
        1 => (1..9_u32).prop_map(Change::Timeout),
        6 => moment().prop_map(Change::Event),
    ]
}

fn happen(world: &World, change: Change) {
    let path = |file: &str| world.base().join(file);
    match change {
        Change::Write(file, text) => drop(world.write(file, text)),
        Change::Replace(file, text) => {
            let aside = world.write("aside", text);
            fs::create_dir_all(path(file).parent().unwrap()).unwrap();
            fs::rename(aside, path(file)).unwrap();
        }
        Change::Remove(file) | Change::Script(file, false) => drop(fs::remove_file(path(file))),
        Change::Rename(from, to) => drop(fs::rename(path(from), path(to))),
        Change::Mode(place, mode) => {
            // What this test itself still has to change stays writable.
            let path = path(place);
            let mode = if path.is_dir() { mode | 0o700 } else { mode | 0o200 };
            drop(fs::set_permissions(path, Permissions::from_mode(mode)));
        }
        // What a command names is a file of the hook or a word, depending on whether it is there.
        Change::Script(file, true) => drop(world.write(file, "{}")),
        Change::Switch(name, on) => world.switch(name, on),
        // A link among the folders of extensions that leads to another of them, or to none.
        Change::Lead(name) => {
            let link = path("home/.ollm/extensions/link");
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&link);
            symlink(path(&format!("elsewhere/{name}")), link).unwrap();
            world.write("elsewhere/a/manifest.json", r#"{"name": "far", "version": "1.0.0", "description": "d"}"#);
        }
        Change::Timeout(seconds) => {
            world.write("home/.ollm/config.yaml", format!("hooks: {{timeout: {seconds}s}}\n"));
        }
        Change::Event(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn what_fits_is_the_same_whether_all_or_only_that_is_loaded(
        entries in prop::collection::vec(entry(), 0..12),
        moment in moment(),
    ) {
        let world = World::new();
        for (file, part) in [("home/.ollm/hooks/x.json", 0), ("project/.ollm/hooks/y.json", 1)] {
            let mut events = serde_json::Map::new();
            for (event, entry) in entries.iter().skip(part).step_by(2) {
                events.entry(*event).or_insert(json!([])).as_array_mut().unwrap().push(entry.clone());
            }
            world.write(file, json!({"hooks": events}).to_string());
        }
        let all = everything(&world).0;
        for _ in 0..2 {
            let few = later(&world, &moment).0;
            prop_assert_eq!(fitting(&few.hooks, &moment), fitting(&all.hooks, &moment));
        }
    }

    #[test]
    fn a_snapshot_says_what_the_files_say_whatever_happens_to_them(changes in prop::collection::vec(change(), 1..16)) {
        let world = World::new();
        for change in changes {
            let Change::Event(moment) = change else {
                happen(&world, change);
                tick();
                continue;
            };
            let (all, told) = everything(&world);
            let (extensions, told_of_extensions) = world.extensions();
            for _ in 0..2 {
                let (few, problems) = later(&world, &moment);
                prop_assert_eq!(fitting(&few.hooks, &moment), fitting(&all.hooks, &moment));
                prop_assert_eq!((&few.settings, &problems), (&all.settings, &told));
                // Where a file cannot be relied on at all, nothing goes on.
                let Some(found) = few.extensions else {
                    prop_assert!(told.iter().any(|problem| problem.severity == Severity::Fatal), "{told:?}");
                    continue;
                };
                let (settled, problems) = world.settled(found);
                prop_assert_eq!(bundled(&settled, &moment), bundled(&extensions, &moment));
                prop_assert_eq!(&problems, &told_of_extensions);
            }
        }
    }
}

#[test]
fn a_hook_is_the_same_from_its_file_and_from_the_snapshot() {
    let world = World::new();
    world.write("home/.ollm/hooks/guard.py", "");
    let everything_a_hook_can_say = json!({
        "id": "mine", "name": "guard", "version": "2.0.0", "description": "d", "matcher": "shell|write_*",
        "command": "python3", "args": ["guard.py", "--x"], "timeout": "7s", "onFailure": "ask", "priority": "high",
        "parallel": true, "async": false, "filePatterns": ["src/**"], "if": "data.tool_name == \"shell\"",
        "rateLimit": {"perMinute": 3, "cooldownMs": 10}, "requires": {"commands": ["sh"], "files": ["a"]},
        "scope": "all", "env": {"A": "b"}, "passEnv": ["C"], "limits": {"memory": "1GB", "time": "3s"},
    });
    world.write("home/.ollm/hooks/a.json", json!({"hooks": {"before_tool": [everything_a_hook_can_say]}}).to_string());
    let actions = [
        json!({"type": "http", "url": "https://example.com/x", "headers": {"X-A": "1"}}),
        json!({"type": "mcp", "server": "git", "tool": "log", "args": {"n": 1.5, "deep": [null, {"a": "b"}]}}),
        json!({"type": "runCommand", "command": "sh guard.sh"}),
    ];
    for ((number, action), event) in actions.iter().enumerate().zip(["before_tool", "before_tool", "promptSubmit"]) {
        let hook = json!({"eventType": event, "name": number.to_string(), "action": action});
        world.write(&format!("home/.ollm/hooks/{number}.json"), hook.to_string());
    }
    world.write("project/.ollm/config.yaml", "hooks: {timeout: 3s}\n");
    world.write(
        "project/.ollm/hooks/b.yaml",
        "eventType: file_edited\nname: ask\naction: {type: askAgent, prompt: look}\n",
    );
    world.write(
        "project/.config/agent/settings.json",
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 0"}]}]}}"#,
    );
    let (all, problems) = everything(&world);
    assert_eq!((all.hooks.len(), problems), (6, Vec::new()));
    let without = |kind| Moment { kind, subject: None };
    for moment in [shell(), without(EventKind::FileEdited), without(EventKind::BeforeAgent)] {
        for _ in 0..2 {
            assert_eq!(fitting(&later(&world, &moment).0.hooks, &moment), fitting(&all.hooks, &moment));
        }
    }
    assert_eq!(kept(&world).len(), 1);
}

#[test]
fn no_manifest_is_read_while_nothing_changed_but_those_with_something_to_tell() {
    let mut world = World::new();
    world.env.insert("LEVEL".to_owned(), "high".to_owned());
    let hook = |event: &str| json!({event: [{"name": "h", "command": "sh", "args": ["run.sh"]}]});
    let setting = json!([{"name": "level", "description": "d", "envVar": "LEVEL"}]);
    let base = json!({"name": "a", "version": "1.0.0", "description": "d", "hooks": hook("before_tool"), "settings": setting,
        "mcpServers": {"s": {"command": "npx"}}});
    world.manifest("home", "a", base.to_string());
    let of = |name: &str, more: Value| {
        let mut whole = json!({"name": name, "version": "1.0.0", "description": "d", "hooks": hook("after_tool")});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        whole.to_string()
    };
    world.manifest("project", "b", of("b", json!({"dependencies": {"a": "^1"}})));
    let odd = world.manifest("home", "c", of("c", json!({"unknown": 1})));
    let (all, told) = world.extensions();
    later(&world, &shell());
    assert_eq!(kept(&world).len(), 1);
    // Of a manifest that was read there is a digest; a snapshot has none.
    let read = |world: &World| world.settled(later(world, &shell()).0.extensions.unwrap());
    let (settled, problems) = read(&world);
    assert_eq!((bundled(&settled, &shell()), problems), (bundled(&all, &shell()), told));
    let names: Vec<(&str, bool)> = settled.iter().map(|one| (one.name.as_str(), one.digest.is_some())).collect();
    assert_eq!(names, [("a", false), ("c", true), ("b", false)]);
    let hooks: Vec<&str> = settled.hooks().map(Hook::id).collect();
    assert_eq!(hooks, ["user:a:before_tool:h", "user:c:after_tool:h"]);
    fs::write(odd, of("c", json!({}))).unwrap();
    for _ in 0..2 {
        let (settled, problems) = read(&world);
        assert_eq!((bundled(&settled, &shell()), problems), (bundled(&world.extensions().0, &shell()), Vec::new()));
    }
}

#[test]
fn a_snapshot_knows_of_extensions_what_the_configuration_says_now() {
    let mut world = World::new();
    world.write("elsewhere/x/manifest.json", r#"{"name": "x", "version": "1.0.0", "description": "d"}"#);
    let hook = json!({"before_tool": [{"name": "h", "command": "npx"}]});
    let text = json!({"name": "a", "version": "1.0.0", "description": "d", "hooks": hook}).to_string();
    world.manifest("home", "a", text);
    later(&world, &shell());
    let names = |world: &World| {
        let (settled, _) = world.settled(later(world, &shell()).0.extensions.unwrap());
        settled.iter().map(|one| one.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&world), ["a"]);
    world.overrides.set("extensions.directories", &format!("[{}]", world.path("elsewhere").display())).unwrap();
    assert_eq!([names(&world), names(&world)], [["x"], ["x"]]);
    world.overrides = Overrides::default();
    world.overrides.set("extensions.enabled", "false").unwrap();
    assert_eq!([names(&world), names(&world)], [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn hooks_that_cannot_fit_are_not_even_built_from_a_snapshot() {
    let world = World::new();
    let hook = |name: &str, matcher: &str| json!({"name": name, "command": "/bin/true", "matcher": matcher});
    let hooks = json!({"before_tool": [hook("a", "shell"), hook("b", "read_file"), hook("c", "re:^sh")], "after_tool": [hook("d", "*")]});
    world.write("home/.ollm/hooks/x.json", json!({ "hooks": hooks }).to_string());
    assert_eq!(later(&world, &shell()).0.hooks.len(), 4);
    let names = ["user:x.json:before_tool:a", "user:x.json:before_tool:c"];
    assert_eq!(ids(&later(&world, &shell()).0), names);
}

#[test]
fn what_changed_just_now_is_not_kept_nor_is_what_is_of_the_future() {
    let world = World::new();
    let file = world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    at(&world, &shell(), SystemTime::now() + Duration::from_secs(1));
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
    at(&world, &shell(), SystemTime::UNIX_EPOCH);
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
    let years = SystemTime::now() + Duration::from_secs(100_000_000);
    fs::File::options().write(true).open(file).unwrap().set_modified(years).unwrap();
    later(&world, &shell());
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
}

#[test]
fn files_with_a_fault_and_files_behind_links_are_read_each_time() {
    let world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true", "timeout": "soon"}"#);
    assert_eq!(later(&world, &shell()).1.len(), 1);
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
    world.write("home/.ollm/hooks/real.sh", "exit 0");
    symlink("real.sh", world.base().join("home/.ollm/hooks/link.sh")).unwrap();
    world.entry(r#"{"name": "a", "command": "sh", "args": ["link.sh"]}"#);
    assert_eq!(later(&world, &shell()).1, Vec::new());
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
}

#[test]
fn a_machine_with_a_policy_keeps_nothing_and_believes_nothing_that_was_kept() {
    let mut world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    world.write("etc/.keep", "");
    world.places.policy = Some(PolicyFile { path: world.base().join("etc/policy.yaml"), owner: current_uid() });
    later(&world, &shell());
    assert_eq!(kept(&world).len(), 1);
    world.write("etc/policy.yaml", "hooks: {untrusted: block}\n");
    assert!(later(&world, &shell()).0.settings.untrusted_blocks);
    fs::remove_dir_all(folder(&world)).unwrap();
    later(&world, &shell());
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
}

#[test]
fn the_environment_and_the_command_line_count_as_they_are_now() {
    let mut world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    world.write(
        "home/.config/agent/settings.json",
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 0"}]}]}}"#,
    );
    later(&world, &shell());
    world.overrides.timeout = Some(Duration::from_secs(5));
    world.env.insert("HOOKS_ENABLED".to_owned(), "false".to_owned());
    world.env.insert("OLLM_TRACE".to_owned(), "false".to_owned());
    for _ in 0..2 {
        let (all, few) = (everything(&world).0, later(&world, &shell()).0);
        assert_eq!(fitting(&few.hooks, &shell()), fitting(&all.hooks, &shell()));
        assert_eq!(few.config, all.config);
        assert_eq!(few.hooks[0].timeout.value, Duration::from_secs(5));
        assert!(few.hooks[1].off.is_some());
    }
}

#[test]
fn a_snapshot_that_is_cut_or_changed_anywhere_is_ignored() {
    let world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    later(&world, &shell());
    let path = kept(&world).remove(0);
    let whole = fs::read(&path).unwrap();
    // Something that only a snapshot could say: if it were believed, it would show.
    let forged = String::from_utf8(whole.clone()).unwrap().replace("/bin/true", "/bin/evil").into_bytes();
    assert_ne!(forged, whole);
    let cuts = (0..whole.len()).map(|length| whole[..length].to_vec());
    let flips = (0..whole.len()).map(|place| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    });
    let expected = fitting(&everything(&world).0.hooks, &shell());
    for bytes in cuts.chain(flips).chain([forged, [whole.clone(), b"x".to_vec()].concat()]) {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(fitting(&at(&world, &shell(), SystemTime::UNIX_EPOCH).0.hooks, &shell()), expected);
    }
}

#[test]
fn only_a_plain_file_of_ours_that_nobody_else_may_read_counts() {
    let world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    later(&world, &shell());
    let path = kept(&world).remove(0);
    let counts = || {
        let _ = fs::remove_file(world.base().join("home/.ollm/hooks/a.json.aside"));
        let hooks = at(&world, &Moment { kind: EventKind::AfterTool, subject: None }, SystemTime::UNIX_EPOCH).0.hooks;
        // From the file all hooks come, from the snapshot only those that fit.
        hooks.is_empty()
    };
    assert!(counts());
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert!(!counts());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(counts());
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    symlink(&aside, &path).unwrap();
    assert!(!counts());
    fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    assert!(!counts());
    fs::remove_file(&path).unwrap();
    // Only root can give a file away.
    if current_uid() == 0 {
        fs::copy(&aside, &path).unwrap();
        assert!(counts());
        chown(&path, Some(12345), None).unwrap();
        assert!(!counts());
        fs::remove_file(&path).unwrap();
    }
    let text = fs::read_to_string(&aside).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    fs::write(&aside, format!("{first}9\n{rest}")).unwrap();
    fs::rename(&aside, &path).unwrap();
    assert!(!counts());
}

#[test]
fn each_folder_has_its_own_and_only_so_many_are_kept() {
    let mut world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    for number in 0..70 {
        let project = world.base().join(format!("p{number}"));
        fs::create_dir_all(project.join(".ollm")).unwrap();
        world.places.project = Some(project);
        later(&world, &shell());
        assert_eq!(ids(&later(&world, &shell()).0).len(), 1);
    }
    assert_eq!(kept(&world).len(), 64);
}

#[test]
fn a_thousand_events_at_once_while_files_change_never_see_a_file_that_is_gone() {
    let world = World::new();
    let write = |number: u32| {
        let text = format!(r#"{{"hooks": {{"before_tool": [{{"name": "n{number}", "command": "/bin/true"}}]}}}}"#);
        fs::rename(world.write("aside", text), world.base().join("home/.ollm/hooks/a.json")).unwrap();
    };
    let number = |catalog: &Catalog| -> u32 { catalog.hooks[0].spec.name.trim_start_matches('n').parse().unwrap() };
    write(0);
    let newest = std::sync::atomic::AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..125 {
                    let visible = newest.load(std::sync::atomic::Ordering::SeqCst);
                    assert!(number(&later(&world, &shell()).0) >= visible);
                }
            });
        }
        for count in 1..=50 {
            write(count);
            newest.store(count, std::sync::atomic::Ordering::SeqCst);
            thread::sleep(Duration::from_millis(2));
        }
    });
}

/// Writes the first text into a file through memory it has mapped, and the second one where it is told to. It says first
/// whether its file system shows such a write at all.
const MAPPER: &str = r#"
import mmap, os, sys
path, first, second = sys.argv[1], sys.argv[2].encode(), sys.argv[3].encode()
with open(path, "wb") as file:
    file.write(first)
file = os.open(path, os.O_RDWR)
memory = mmap.mmap(file, 0)
memory[:] = first
os.fdatasync(file)
os.utime(path, (1, 1))
memory[:] = first
print("seen" if os.stat(path).st_mtime != 1 else "unseen", flush=True)
sys.stdin.readline()
memory[:] = second
print("written", flush=True)
sys.stdin.readline()
"#;

#[test]
fn what_is_written_through_mapped_memory_counts_as_what_is_written_otherwise() {
    let world = World::new();
    let text = |name: &str| format!(r#"{{"hooks": {{"before_tool": [{{"id": "{name}", "command": "/bin/true"}}]}}}}"#);
    let file = world.write("home/.ollm/hooks/a.json", "");
    let mut mapper = Command::new("python3");
    mapper.args(["-c", MAPPER]).arg(&file).args([text("old"), text("new")]);
    let mut mapper = mapper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut orders, mut said) = (mapper.stdin.take().unwrap(), BufReader::new(mapper.stdout.take().unwrap()).lines());
    let is_seen = said.next().unwrap().unwrap() == "seen";
    assert_eq!((ids(&later(&world, &shell()).0), kept(&world).len()), (vec!["old"], 1));
    writeln!(orders).unwrap();
    assert_eq!(said.next().unwrap().unwrap(), "written");
    // A file system in memory shows nothing.
    if is_seen {
        assert_eq!(ids(&later(&world, &shell()).0), ["new"]);
    }
    drop(orders);
    assert!(mapper.wait().unwrap().success());
}

#[test]
fn a_snapshot_that_is_swapped_or_rewritten_while_it_is_read_is_never_believed() {
    let world = World::new();
    let write = |name: &str| {
        world.entry(&format!(r#"{{"name": "{name}", "command": "/bin/true"}}"#));
        tick();
        later(&world, &shell());
        fs::read(kept(&world).remove(0)).unwrap()
    };
    let (old, new) = (write("old"), write("new"));
    let path = kept(&world).remove(0);
    let over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                // In place, where a reader may meet the beginning of one and the end of the other, and by another file.
                fs::write(&path, &old).unwrap();
                fs::write(&path, &new).unwrap();
                let aside = path.with_extension("aside");
                fs::write(&aside, &old).unwrap();
                fs::set_permissions(&aside, Permissions::from_mode(0o600)).unwrap();
                fs::rename(&aside, &path).unwrap();
            }
        });
        for _ in 0..400 {
            // At this time nothing is kept.
            let (catalog, _) = at(&world, &shell(), SystemTime::UNIX_EPOCH);
            assert_eq!(ids(&catalog), ["user:a.json:before_tool:new"]);
        }
        over.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

#[test]
fn a_file_that_is_made_to_look_as_before_is_read_again_whatever_the_clock_says() {
    let world = World::new();
    let file = world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    let before = fs::metadata(&file).unwrap();
    later(&world, &shell());
    tick();
    // The same length, and the time of a clock that was set back.
    world.entry(r#"{"name": "b", "command": "/bin/true"}"#);
    fs::File::options().write(true).open(&file).unwrap().set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), before.len());
    for now in [SystemTime::UNIX_EPOCH, SystemTime::now(), SystemTime::now() + Duration::from_hours(1)] {
        assert_eq!(ids(&at(&world, &shell(), now).0), ["user:a.json:before_tool:b"]);
    }
}

#[test]
fn what_was_read_is_what_was_stamped_whatever_a_path_led_to_before_and_after() {
    let world = World::new();
    let file =
        |name: &str| format!(r#"{{"hooks": {{"before_tool": [{{"name": "{name}", "command": "/bin/true"}}]}}}}"#);
    for name in ["one", "two"] {
        world.write(&format!("{name}/x.json"), file(name));
    }
    let (hooks, aside) = (world.base().join("home/.ollm/hooks"), world.base().join("link"));
    fs::remove_dir(&hooks).unwrap();
    let lead_to = |name: &str| {
        let _ = fs::remove_file(&aside);
        symlink(world.base().join(name), &aside).unwrap();
        fs::rename(&aside, &hooks).unwrap();
    };
    lead_to("one");
    let over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                lead_to("two");
                lead_to("one");
            }
        });
        for _ in 0..400 {
            later(&world, &shell());
        }
        over.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    for name in ["one", "two"] {
        lead_to(name);
        for _ in 0..2 {
            assert_eq!(ids(&later(&world, &shell()).0), [format!("user:x.json:before_tool:{name}")]);
        }
    }
}

#[test]
fn nothing_but_snapshots_is_tidied_away_and_nothing_behind_a_link() {
    let mut world = World::new();
    world.entry(r#"{"name": "a", "command": "/bin/true"}"#);
    let folder = folder(&world);
    for number in 0..80 {
        world.write(&format!("home/.ollm/state/snapshots/mine-{number}"), "");
        world.write(&format!("elsewhere/{number:016x}"), "");
    }
    for number in 0..3 {
        let project = world.base().join(format!("p{number}"));
        fs::create_dir_all(project.join(".ollm")).unwrap();
        world.places.project = Some(project);
        later(&world, &shell());
    }
    assert_eq!(kept(&world).len(), 83);
    fs::remove_dir_all(&folder).unwrap();
    symlink(world.base().join("elsewhere"), &folder).unwrap();
    later(&world, &shell());
    assert_eq!(kept(&world).len(), 80);
}

#[test]
fn every_hook_with_a_fault_is_told_of_also_where_it_does_not_fit() {
    let world = World::new();
    let broken =
        |matcher: &str| json!({"name": matcher, "command": "/bin/true", "matcher": matcher, "timeout": "soon"});
    world.write(
        "home/.ollm/hooks/x.json",
        json!({"hooks": {"before_tool": [broken("shell"), broken("other")]}}).to_string(),
    );
    let fields: Vec<String> = later(&world, &shell()).1.into_iter().map(|problem| problem.field).collect();
    assert_eq!(fields, ["hooks.before_tool[0].timeout", "hooks.before_tool[1].timeout"]);
}
