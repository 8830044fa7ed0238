//! What may run: nothing that a person has not approved in its present state.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use ollm_engine::Skip;
use ollm_protocol::hook::action::{CommandSpec, ShellSpec};
use ollm_protocol::{ActionSpec, Flow, Hook, HookSpec, OnFailure, Origin, Priority, Source, Timeout};
use ollm_trust::{Approvable, Standing, UntrustedPolicy};

use crate::support::{World, builtin, event, file, go_on, logs, prints, ran, sh, skipped, spoken};

/// A field, and a change of it.
type Change<'a> = (&'a str, &'a dyn Fn(&mut HookSpec));

const NEED_APPROVAL: [Source; 3] = [Source::Workspace, Source::Extension, Source::Downloaded];

/// A hook that leaves a mark, from somewhere that needs approval.
fn marks(world: &World, source: Source) -> HookSpec {
    let script = world.script("guard.sh", "#!/bin/sh\n: >marked\necho '{\"continue\":true}'\n");
    let input = world.file("rules.json", "{}");
    HookSpec { source, inputs: vec![input], ..file("guard", &script) }
}

/// Why a hook may not run, if it may not.
fn why(world: &World, hook: &Arc<Hook>) -> Option<&'static str> {
    world.engine.trusted(hook).err().map(|skip| skip.reason.name())
}

fn args(spec: &mut HookSpec) -> &mut Vec<String> {
    match &mut spec.action {
        ActionSpec::Command(CommandSpec { args, .. }) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unapproved_hook_is_skipped_visibly_and_never_started() {
    for source in NEED_APPROVAL {
        let mut world = World::new();
        world.add(marks(&world, source));
        world.add(logs("mine"));
        let outcome = world.engine.dispatch(&event());
        assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["mine"], vec![("guard", "untrusted")]));
        assert_eq!(outcome.skipped[0].detail, "not approved; review and approve it");
        assert!(outcome.continues() && !world.path("marked").exists());
    }
}

#[test]
fn an_unapproved_hook_can_be_made_to_block() {
    let mut world = World::new();
    world.engine.trust.untrusted = UntrustedPolicy::Block;
    let hook = world.add(marks(&world, Source::Workspace));
    world.add(logs("mine"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(outcome.verdict.flow, Flow::Block);
    let reason = "hook `guard` is not approved; review and approve it";
    assert_eq!(outcome.verdict.reasons, [reason]);
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["mine"], vec![("guard", "untrusted")]));
    assert!(!world.path("marked").exists());

    world.approve(&hook);
    assert!(world.engine.dispatch(&event()).continues() && world.path("marked").exists());
    world.file("guard.sh", "#!/bin/sh\n");
    assert_eq!(world.engine.dispatch(&event()).verdict.flow, Flow::Block);
}

#[test]
fn a_hook_that_cannot_be_checked_blocks_like_one_that_is_not_approved() {
    let mut world = World::new();
    world.engine.trust.untrusted = UntrustedPolicy::Block;
    let hook = world.add(marks(&world, Source::Workspace));
    world.approve(&hook);
    fs::remove_file(world.path("guard.sh")).unwrap();
    fs::create_dir(world.path("guard.sh")).unwrap();
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("guard", "unsafe")]);
    assert_eq!(outcome.verdict.flow, Flow::Block);
}

#[test]
fn hooks_of_the_user_and_of_the_program_need_no_approval() {
    for source in [Source::Builtin, Source::Policy, Source::User] {
        let mut world = World::new();
        world.add(marks(&world, source));
        assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"]);
        assert!(world.path("marked").exists());
    }
}

#[test]
fn trusting_the_workspace_covers_its_hooks_and_no_others() {
    for (source, runs) in [(Source::Workspace, true), (Source::Extension, false), (Source::Downloaded, false)] {
        let mut world = World::new();
        world.engine.trust.workspace = true;
        world.add(marks(&world, source));
        world.engine.dispatch(&event());
        assert_eq!(world.path("marked").exists(), runs, "{source:?}");
    }
}

#[test]
fn an_approved_hook_runs_and_carries_the_digest_that_was_approved() {
    for source in NEED_APPROVAL {
        let mut world = World::new();
        let hook = world.add(marks(&world, source));
        world.approve(&hook);
        assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"]);
        assert!(world.path("marked").exists());
        let identity = world.engine.trust.identity(&*hook, &world.engine.environment().trust_context()).unwrap();
        assert_eq!(world.engine.trusted(&hook).unwrap().digest(), Some(&identity.digest));
        assert_eq!(world.engine.trust.standing(&*hook, Some(&identity)), Standing::Approved);
        assert_eq!(world.engine.trust.standing(&*hook, None), Standing::Unknown);
    }
}

#[test]
fn an_approval_in_another_process_is_noticed_and_so_is_its_end() {
    let mut world = World::new();
    let hook = world.add(marks(&world, Source::Workspace));
    assert_eq!(why(&world, &hook), Some("untrusted"));
    world.approve(&hook);
    assert_eq!(why(&world, &hook), None);
    assert!(ollm_trust::revoke(&world.path("approvals.json"), &hook.source(), hook.id()).unwrap());
    assert_eq!(why(&world, &hook), Some("untrusted"));
}

#[test]
fn a_change_of_anything_that_decides_what_happens_ends_the_approval() {
    let world = World::new();
    let base = marks(&world, Source::Workspace);
    world.approve(&world.hook(base.clone()));
    assert_eq!(why(&world, &world.hook(base.clone())), None);

    let other = world.file("other.json", "{}");
    let changes: [Change<'_>; 21] = [
        ("args", &|spec| args(spec).push("--force".to_owned())),
        ("command", &|spec| match &mut spec.action {
            ActionSpec::Command(CommandSpec { command, .. }) => *command = "/bin/true".to_owned(),
            _ => panic!(),
        }),
        ("event", &|spec| spec.events = vec!["after_tool".to_owned()]),
        ("events", &|spec| spec.events.push("after_tool".to_owned())),
        ("matcher", &|spec| spec.matcher = Some("shell".to_owned())),
        ("dialect", &|spec| spec.dialect = Some("agent".to_owned())),
        ("env", &|spec| spec.env.push(("LD_PRELOAD".to_owned(), "evil.so".to_owned()))),
        ("passEnv", &|spec| spec.pass_env.push("GITHUB_TOKEN".to_owned())),
        ("timeout", &|spec| spec.timeout = Some(Timeout::Bare(1.0))),
        ("no timeout", &|spec| spec.timeout = None),
        ("onFailure", &|spec| spec.on_failure = Some(OnFailure::Allow)),
        ("priority", &|spec| spec.priority = Priority::Low),
        ("parallel", &|spec| spec.parallel = true),
        ("cwd", &|spec| spec.cwd = Some("/".into())),
        ("inputs", &|spec| spec.inputs.push(other.clone())),
        ("no inputs", &|spec| spec.inputs.clear()),
        ("limits", &|spec| spec.limits.memory = Some(1 << 30)),
        ("output", &|spec| spec.limits.output = Some(1 << 30)),
        ("version", &|spec| spec.version = "2.0.0".to_owned()),
        ("name", &|spec| spec.name = "other".to_owned()),
        ("source", &|spec| spec.source = Source::Downloaded),
    ];
    for (name, change) in changes {
        let mut spec = base.clone();
        change(&mut spec);
        assert_eq!(why(&world, &world.hook(spec)), Some("modified"), "{name}");
    }
}

#[test]
fn a_changed_byte_of_a_script_or_an_input_ends_the_approval_until_it_is_undone() {
    let mut world = World::new();
    let hook = world.add(marks(&world, Source::Workspace));
    world.approve(&hook);
    for name in ["guard.sh", "rules.json"] {
        let before = fs::read(world.path(name)).unwrap();
        let mut after = before.clone();
        *after.last_mut().unwrap() ^= 1;
        fs::write(world.path(name), after).unwrap();
        let outcome = world.engine.dispatch(&event());
        assert_eq!(skipped(&outcome), [("guard", "modified")], "{name}");
        assert_eq!(outcome.skipped[0].detail, "changed since it was approved; review and approve it");
        fs::write(world.path(name), before).unwrap();
        assert_eq!(why(&world, &hook), None);
    }
    fs::remove_file(world.path("marked")).ok();
    world.file("guard.sh", "#!/bin/sh\n: >evil\n");
    world.engine.dispatch(&event());
    assert!(!world.path("marked").exists() && !world.path("evil").exists());
}

#[test]
fn another_interpreter_earlier_on_the_path_ends_the_approval() {
    let early = tempfile::tempdir().unwrap();
    let path = format!("{}:/usr/bin:/bin", early.path().display());
    let world = World::with(&[("PATH", &path)]);
    let mut spec = HookSpec { source: Source::Workspace, ..sh("x", "echo '{\"continue\":true}'") };
    if let ActionSpec::Command(CommandSpec { command, .. }) = &mut spec.action {
        *command = "sh".to_owned();
    }
    let hook = world.hook(spec);
    world.approve(&hook);
    assert_eq!(why(&world, &hook), None);
    let evil = early.path().join("sh");
    fs::write(&evil, "#!/bin/true\n").unwrap();
    assert_eq!(why(&world, &hook), None, "what cannot be executed is not found");
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(why(&world, &hook), Some("modified"));
}

#[test]
fn where_a_hook_stands_how_it_is_described_and_whether_it_is_on_do_not_matter() {
    let mut world = World::new();
    let base = marks(&world, Source::Workspace);
    world.approve(&world.hook(base.clone()));
    world.add(logs("before"));
    let moved = HookSpec {
        description: Some("guards".to_owned()),
        origin: Origin { file: base.origin.file.clone(), line: 99, column: 7 },
        ..base.clone()
    };
    world.add(moved);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["before", "guard"]);
    assert_eq!(why(&world, &world.hook(HookSpec { enabled: false, ..base })), None);
    world.rules.timeout = Some(std::time::Duration::from_secs(1));
    let hook = world.engine.registry.get("guard").unwrap().spec.clone();
    assert_eq!(why(&world, &world.hook(hook)), None);
}

#[test]
fn an_approval_is_for_one_id() {
    let world = World::new();
    let base = marks(&world, Source::Workspace);
    world.approve(&world.hook(base.clone()));
    assert_eq!(why(&world, &world.hook(HookSpec { id: "twin".to_owned(), ..base })), Some("untrusted"));
}

#[test]
fn hooks_without_a_script_are_approved_by_their_text() {
    let world = World::new();
    let origin = Origin { file: world.path("hooks.json"), line: 1, column: 1 };
    let base = HookSpec { source: Source::Workspace, origin, ..spoken("agent", sh("x", "exit 0")) };
    for (action, other) in [
        (base.action.clone(), sh("x", "exit 1").action),
        (
            ActionSpec::Shell(ShellSpec { script: "exit 0".to_owned() }),
            ActionSpec::Shell(ShellSpec { script: "exit 1".to_owned() }),
        ),
    ] {
        let hook = world.hook(HookSpec { action, ..base.clone() });
        world.approve(&hook);
        assert_eq!(hook.source(), format!("{}#x", world.path("hooks.json").display()));
        assert_eq!(why(&world, &hook), None);
        assert_eq!(why(&world, &world.hook(HookSpec { action: other, ..base.clone() })), Some("modified"));
    }
}

/// Every state in which an approvals file is of no use.
#[test]
fn an_approvals_file_that_cannot_be_relied_on_approves_nothing() {
    let mut world = World::new();
    let hook = world.add(marks(&world, Source::Workspace));
    world.add(logs("mine"));
    world.approve(&hook);
    let path = world.path("approvals.json");
    let good = fs::read_to_string(&path).unwrap();
    let refused = |world: &World| -> Vec<Skip> {
        let outcome = world.engine.dispatch(&event());
        assert_eq!(ran(&outcome), ["mine"], "the other hooks run");
        outcome.skipped
    };
    for (broken, part) in [
        (good.get(..good.len() / 2).unwrap().to_owned(), "repair the file"),
        ("not json".to_owned(), "repair the file"),
        (good.replace("\"version\": 1", "\"version\": 9"), "has version 9"),
        (r#"{"version": 1, "approvals": {}}"#.to_owned(), "has no list"),
    ] {
        fs::write(&path, &broken).unwrap();
        let skips = refused(&world);
        assert_eq!(skips[0].reason.name(), "untrusted");
        assert!(skips[0].detail.contains(part), "{}", skips[0].detail);
        assert!(world.engine.trust.trouble().is_some());
        assert_eq!(fs::read_to_string(&path).unwrap(), broken, "it is never overwritten");
    }
    fs::write(&path, &good).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(refused(&world)[0].reason.name(), "untrusted");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(world.engine.trust.trouble().is_none());
    assert_eq!(ran(&world.engine.dispatch(&event())).len(), 2);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(refused(&world)[0].reason.name(), "untrusted");
}

#[test]
fn entries_of_other_programs_approve_nothing() {
    let mut world = World::new();
    let hook = world.add(marks(&world, Source::Workspace));
    let identity = world.engine.trust.identity(&*hook, &world.engine.environment().trust_context()).unwrap();
    let entry = serde_json::json!({"version": 1, "approvals": [
        {"source": identity.source, "hash": identity.hash.to_string(), "approvedAt": "", "approvedBy": "user"},
    ]});
    world.file("approvals.json", entry.to_string());
    fs::set_permissions(world.path("approvals.json"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(why(&world, &hook), Some("untrusted"));
}

#[test]
fn a_builtin_runs_beside_unapproved_hooks() {
    let mut world = World::new();
    world.add(builtin("guard-b", |_| ollm_protocol::Verdict::block("no")));
    let spec = sh("guard-w", &prints(&go_on("ollm")));
    world.add(HookSpec { source: Source::Workspace, ..spec });
    let outcome = world.engine.dispatch(&event());
    assert_eq!((outcome.continues(), skipped(&outcome)), (false, vec![("guard-w", "untrusted")]));
}
