//! The machine's policy: what it says cannot be loosened, and one that cannot be relied on stops everything.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use ollm_catalog::{Config, Edit, EditError, PolicyFile, Problem, Severity, change_config, configuration};
use ollm_protocol::Layer;
use ollm_store::current_uid;
use serde_json::{Value, json};

use crate::world::{World, ids};

const USER: &str = "home/.ollm/config.yaml";
const PROJECT: &str = "project/.ollm/config.yaml";
const POLICY: &str = "etc/ollm/policy.yaml";
const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

/// A machine whose policy says this; the user of the tests stands for root.
fn machine(policy: &str) -> World {
    let mut world = World::new();
    let path = world.write(POLICY, policy);
    world.places.policy = Some(PolicyFile { path, owner: current_uid() });
    world
}

fn read(world: &World) -> (Config, Vec<Problem>) {
    let env = |name: &str| world.env.get(name).cloned();
    configuration(&world.places, &env, &world.overrides)
}

/// The value of a setting, and whose word it is.
fn value(world: &World, path: &str) -> (Value, &'static str) {
    let setting = read(world).0.get(path).unwrap();
    (setting.value.clone(), setting.origin.layer())
}

#[test]
fn what_a_policy_fixes_nobody_changes_and_both_files_are_named() {
    let mut world = machine("hooks:\n  enabled: true\nmodel:\n  temperature: 0.5\nmcp:\n  toolTimeout: 5s\n");
    world.write(USER, "hooks:\n  enabled: false\nmodel:\n  temperature: 1.5\nmcp:\n  toolTimeout: 5000\n");
    world.write(PROJECT, "model:\n  temperature: 1\n");
    world.env.insert("OLLM_MODEL_TEMPERATURE".to_owned(), "2".to_owned());
    world.overrides.set("model.temperature", "0.1").unwrap();
    world.overrides.enabled = Some(false);
    assert_eq!(value(&world, "hooks.enabled"), (json!(true), "policy"));
    assert_eq!(value(&world, "model.temperature"), (json!(0.5), "policy"));
    assert_eq!(value(&world, "mcp.toolTimeout"), (json!(5000), "policy"), "who repeats it changes nothing");
    let (config, problems) = read(&world);
    assert_eq!(config.ignored.len(), 6, "{:?}", config.ignored);
    let policy = world.base().join(POLICY).display().to_string();
    assert_eq!(problems.len(), 6, "{problems:?}");
    for problem in &problems {
        assert_eq!(problem.severity, Severity::Warning);
        assert!(problem.message.contains(&policy), "{problem}");
    }
    let user = world.base().join(USER);
    assert!(problems.iter().any(|problem| problem.file == user && problem.line == 2), "{problems:?}");
}

#[test]
fn what_has_a_strict_side_may_be_made_stricter_and_never_looser() {
    for (policy, user, applies) in [
        ("untrusted: skip", "untrusted: block", "user"),
        ("untrusted: block", "untrusted: skip", "policy"),
        ("timeout: 10s", "timeout: 5s", "user"),
        ("timeout: 10s", "timeout: 20s", "policy"),
        ("approveByDigest: true", "approveByDigest: false", "user"),
        ("approveByDigest: false", "approveByDigest: true", "policy"),
        ("maxContinuations: 4", "maxContinuations: 2", "user"),
        ("maxContinuations: 4", "maxContinuations: 8", "policy"),
        ("guards: [self-protection]", "guards: [self-protection, destructive-commands]", "user"),
        ("guards: [self-protection]", "guards: [destructive-commands]", "policy"),
        ("guards: true", "guards: false", "policy"),
        ("trustWorkspace: [/srv]", "trustWorkspace: false", "user"),
        ("trustWorkspace: [/srv]", "trustWorkspace: true", "policy"),
        ("whitelist: [sh]", "whitelist: [sh, evil]", "policy"),
    ] {
        let world = machine(&format!("hooks:\n  {policy}\n"));
        world.write(USER, format!("hooks:\n  {user}\n"));
        let (name, _) = policy.split_once(':').unwrap();
        assert_eq!(value(&world, &format!("hooks.{name}")).1, applies, "{policy} / {user}");
        // A variable comes after the user's file, and gets no further than that.
        if name == "untrusted" {
            let mut world = machine(&format!("hooks:\n  {policy}\n"));
            world.env.insert("OLLM_HOOKS_UNTRUSTED".to_owned(), "skip".to_owned());
            assert_eq!(value(&world, "hooks.untrusted").1, "policy");
        }
    }
}

#[test]
fn a_policy_that_others_could_have_written_stops_everything() {
    let cases: &[(&str, &dyn Fn(&World))] = &[
        ("a file that others can write", &|world| mode(world, POLICY, 0o646)),
        ("a file that a group can write", &|world| mode(world, POLICY, 0o664)),
        ("a folder that others can write", &|world| mode(world, "etc/ollm", 0o757)),
        ("a sticky folder", &|world| mode(world, "etc/ollm", 0o1777)),
        ("a folder that a group can write", &|world| mode(world, "etc/ollm", 0o775)),
        ("no YAML", &|world| drop(world.write(POLICY, "hooks: [\n"))),
        ("a senseless guard", &|world| drop(world.write(POLICY, "hooks:\n  enabled: perhaps\n"))),
        ("another form", &|world| drop(world.write(POLICY, "version: 9\n"))),
        ("a folder in its place", &|world| {
            fs::remove_file(world.base().join(POLICY)).unwrap();
            fs::create_dir(world.base().join(POLICY)).unwrap();
        }),
        ("a link to nothing", &|world| {
            fs::remove_file(world.base().join(POLICY)).unwrap();
            symlink("nowhere", world.base().join(POLICY)).unwrap();
        }),
        ("a file in the place of its folder", &|world| {
            fs::remove_dir_all(world.base().join("etc/ollm")).unwrap();
            world.write("etc/ollm", "");
        }),
    ];
    for (what, spoil) in cases {
        let world = machine("hooks:\n  enabled: true\n");
        spoil(&world);
        let (_, problems) = read(&world);
        assert!(problems.iter().any(|problem| problem.severity == Severity::Fatal), "{what}: {problems:?}");
    }
    let mut strange = machine("hooks:\n  enabled: true\n");
    let owner = current_uid();
    if let Some(policy) = &mut strange.places.policy {
        policy.owner = owner + 1;
    }
    // A file of root's is fine for every user.
    assert_eq!(read(&strange).1.is_empty(), owner == 0);
}

fn mode(world: &World, path: &str, mode: u32) {
    fs::set_permissions(world.base().join(path), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn without_a_policy_nothing_is_said_about_it() {
    let world = machine("");
    fs::remove_dir_all(world.base().join("etc")).unwrap();
    let (config, problems) = read(&world);
    assert_eq!((problems, config.policy().len()), (Vec::new(), 0));
}

#[test]
fn a_policy_declares_no_servers_and_says_so() {
    let world = machine("mcp:\n  servers:\n    s:\n      command: sh\n");
    let (config, problems) = read(&world);
    assert_eq!(config.policy(), []);
    assert_eq!(problems[0].severity, Severity::Error);
    assert!(problems[0].message.contains("a policy declares no servers"), "{problems:?}");
}

#[test]
fn the_key_for_approvals_counts_in_the_users_file_and_in_the_policy_only() {
    let other = KEY.replace("GFO3", "GFO4");
    let key = |world: &World| read(world).0.approval_key(&world.places).map(|key| (key.line, key.by_policy, key.floor));
    let mut world = World::new();
    world.write(PROJECT, format!("hooks:\n  approvalKey: {KEY}\n"));
    world.env.insert("OLLM_HOOKS_APPROVAL_KEY".to_owned(), KEY.to_owned());
    assert_eq!(key(&world), None);
    assert!(matches!(world.overrides.set("hooks.approvalKey", KEY), Err(EditError::Held { .. })));
    world.write(USER, format!("hooks:\n  approvalKey: {KEY}\n  approvalSerial: 7\n"));
    assert_eq!(key(&world), Some((KEY.to_owned(), false, 0)), "only the policy knows a floor");

    let world = machine(&format!("hooks:\n  approvalKey: {KEY}\n  approvalSerial: 7\n"));
    world.write(USER, format!("hooks:\n  approvalKey: {other}\n  approvalSerial: 1\n"));
    assert_eq!(key(&world), Some((KEY.to_owned(), true, 7)));

    let floor = machine("hooks:\n  approvalSerial: 7\n");
    floor.write(USER, format!("hooks:\n  approvalKey: {KEY}\n"));
    assert_eq!(key(&floor), Some((KEY.to_owned(), false, 7)));

    let broken = World::new();
    broken.write(USER, "hooks:\n  approvalKey: RWnot-a-key\n");
    assert_eq!(read(&broken).1[0].severity, Severity::Fatal);
}

#[test]
fn trust_in_a_workspace_does_not_replace_signatures_that_the_policy_demands() {
    let world = machine(&format!("hooks:\n  approvalKey: {KEY}\n"));
    world.write(USER, "hooks:\n  trustWorkspace: true\n");
    let (config, problems) = read(&world);
    assert!(!config.hooks(&world.places).trust_workspace);
    assert!(problems[0].message.contains("demands signed approvals"), "{problems:?}");

    let allowed = machine(&format!("hooks:\n  approvalKey: {KEY}\n  trustWorkspace: true\n"));
    assert!(read(&allowed).0.hooks(&allowed.places).trust_workspace);
    let own = World::new();
    own.write(USER, format!("hooks:\n  approvalKey: {KEY}\n  trustWorkspace: true\n"));
    assert!(read(&own).0.hooks(&own.places).trust_workspace, "who has the key in their own file decides on both");
}

#[test]
fn what_the_policy_fixes_is_not_written_into_a_file_in_vain() {
    let world = machine("hooks:\n  untrusted: block\n");
    let set = |layer, key: &str, value| change_config(&world.places, layer, key, Edit::Set(value));
    assert!(matches!(set(Layer::User, "hooks.untrusted", "skip"), Err(EditError::Held { .. })));
    assert!(matches!(set(Layer::User, "hooks.approvalSerial", "3"), Err(EditError::Held { .. })));
    assert!(matches!(set(Layer::Workspace, "hooks.untrusted", "skip"), Err(EditError::Ignored { .. })));
    assert!(!world.base().join(USER).exists());
    assert!(set(Layer::User, "hooks.approvalKey", KEY).unwrap().changed);
}

const REQUIRED: &str = r#"{"hooks": {"before_tool": [{"name": "audit", "command": "sh", "args": ["audit.sh"]}]}}"#;

/// A machine whose policy says this and requires one hook.
fn requiring(policy: &str) -> World {
    let world = machine(policy);
    world.write("etc/ollm/hooks/audit.json", REQUIRED);
    world.write("etc/ollm/hooks/audit.sh", "exit 0\n");
    world
}

#[test]
fn a_required_hook_comes_first_and_only_the_policy_sets_its_rules() {
    let world = requiring("hooks:\n  timeout: 7s\n");
    world.write(USER, "hooks:\n  timeout: 1\n  whitelist: [node]\n");
    world.write("home/.ollm/hooks/mine.json", REQUIRED.replace("sh\"", "node\""));
    let (catalog, problems) = world.load();
    assert_eq!(problems, []);
    assert_eq!(ids(&catalog.hooks), ["policy:audit.json:before_tool:audit", "user:mine.json:before_tool:audit"]);
    assert_eq!(catalog.hooks[0].spec.source, ollm_protocol::Source::Policy);
    assert_eq!(catalog.hooks[0].timeout.value, std::time::Duration::from_secs(7));
}

#[test]
fn a_required_hook_that_cannot_be_relied_on_or_understood_stops_everything() {
    let cases: &[(&str, &dyn Fn(&World))] = &[
        ("its file", &|world| mode(world, "etc/ollm/hooks/audit.json", 0o666)),
        ("a file in which nothing is left", &|world| {
            world.write("etc/ollm/hooks/audit.json", "{}");
            mode(world, "etc/ollm/hooks/audit.json", 0o666);
        }),
        ("its script", &|world| mode(world, "etc/ollm/hooks/audit.sh", 0o666)),
        ("its folder", &|world| mode(world, "etc/ollm/hooks", 0o777)),
        ("no JSON", &|world| drop(world.write("etc/ollm/hooks/audit.json", "{"))),
        ("no such event", &|world| {
            drop(world.write("etc/ollm/hooks/audit.json", REQUIRED.replace("before_tool", "nonsense")));
        }),
        ("a file in the place of the folder", &|world| {
            fs::remove_dir_all(world.base().join("etc/ollm/hooks")).unwrap();
            world.write("etc/ollm/hooks", "");
        }),
    ];
    for (what, spoil) in cases {
        let world = requiring("");
        assert_eq!(world.load().1, []);
        spoil(&world);
        let (_, problems) = world.load();
        assert!(problems.iter().any(|problem| problem.severity == Severity::Fatal), "{what}: {problems:?}");
    }
}

#[test]
fn hooks_are_required_also_without_a_file_of_settings() {
    let world = requiring("");
    fs::remove_file(world.base().join(POLICY)).unwrap();
    assert_eq!(world.load().0.hooks.len(), 1);
}
