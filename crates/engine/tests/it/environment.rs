//! What hooks see of the world around them, and what of it is never shown.

use std::collections::BTreeMap;
use std::fs;

use ollm_engine::Status;
use ollm_protocol::{HookSpec, Origin, Verdict};
use serde_json::json;

use crate::support::{World, builtin, command, event, prints, sh, spoken};

const SECRET: &str = "correct-horse-battery";

/// The variables a program was given.
fn seen(world: &World, spec: HookSpec) -> BTreeMap<String, String> {
    let probe = spoken("agent", command("x", "/bin/cp", &["/proc/self/environ", "environ"]));
    let report = world.run(HookSpec { action: probe.action, dialect: probe.dialect, ..spec }, &event());
    assert_eq!(report.status, Status::Ok, "{report:?}");
    let text = fs::read_to_string(world.path("environ")).unwrap();
    let entries: Vec<_> = text.split_terminator('\0').map(|entry| entry.split_once('=').unwrap()).collect();
    let mut map: BTreeMap<_, _> =
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(map.len(), entries.len(), "no variable is given twice");
    assert!(map.remove("OLLM_LIFELINE").is_some(), "what a hook starts is found by this");
    map
}

fn own(id: &str) -> Vec<(&str, &str)> {
    vec![
        ("OLLM_AGENT", "ollm"),
        ("OLLM_EVENT", "before_tool"),
        ("OLLM_EVENT_DEPTH", "1"),
        ("OLLM_HOOK_ID", id),
        ("PATH", "/usr/bin:/bin"),
    ]
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_hook_sees_the_allowed_variables_and_nothing_else() {
    let allowed = [
        ("HOME", "/home/u"),
        ("USER", "u"),
        ("LOGNAME", "u"),
        ("SHELL", "/bin/sh"),
        ("LANG", "C"),
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("DISPLAY", ":0"),
        ("WAYLAND_DISPLAY", "w"),
        ("DBUS_SESSION_BUS_ADDRESS", "d"),
        ("XDG_RUNTIME_DIR", "/run"),
        ("OLLM_HOME", "/home/u/.ollm"),
    ];
    let denied = [
        ("GITHUB_TOKEN", SECRET),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("LD_PRELOAD", "/evil.so"),
        ("BASH_ENV", "/evil.sh"),
        ("PYTHONSTARTUP", "/evil.py"),
        ("NODE_OPTIONS", "--require /evil.js"),
        ("path", "/evil"),
        ("PATHX", "/evil"),
        ("LCX", "x"),
        ("SSH_AUTH_SOCK", "/run/agent"),
    ];
    let world = World::with(&[&allowed[..], &denied[..]].concat());
    assert_eq!(seen(&world, sh("x", "")), map(&[&own("x")[..], &allowed[..]].concat()));
}

#[test]
fn two_hundred_secrets_stay_outside() {
    let names: Vec<_> = (0..200).map(|index| format!("SERVICE_{index}_API_KEY")).collect();
    let variables: Vec<_> = names.iter().map(|name| (name.as_str(), SECRET)).collect();
    assert_eq!(seen(&World::with(&variables), sh("x", "")), map(&own("x")));
}

#[test]
fn a_hook_gets_what_it_declares() {
    let world = World::with(&[("GITHUB_TOKEN", SECRET), ("OTHER_TOKEN", SECRET)]);
    let spec = HookSpec {
        env: vec![("MODE".to_owned(), "strict".to_owned()), ("OLLM_AGENT".to_owned(), "mine".to_owned())],
        pass_env: vec!["GITHUB_TOKEN".to_owned(), "NOT_SET".to_owned()],
        ..sh("x", "")
    };
    let mut expected = map(&own("x"));
    expected.extend(map(&[("GITHUB_TOKEN", SECRET), ("MODE", "strict"), ("OLLM_AGENT", "mine")]));
    assert_eq!(seen(&world, spec), expected);
}

#[test]
fn a_hook_is_told_where_it_was_declared() {
    let world = World::new();
    let origin = Origin { file: "/home/u/.ollm/hooks/guard.json".into(), line: 1, column: 1 };
    let seen = seen(&world, HookSpec { origin, ..sh("x", "") });
    assert_eq!(seen.get("OLLM_HOOK_DIR").map(String::as_str), Some("/home/u/.ollm/hooks"));
}

#[test]
fn what_is_told_about_the_event_cannot_come_from_outside() {
    let forged = ["OLLM_HOOK_ID", "OLLM_EVENT", "OLLM_AGENT", "OLLM_EXTENSION"].map(|name| (name, "forged"));
    assert_eq!(seen(&World::with(&forged), sh("x", "")), map(&own("x")));
}

#[test]
fn a_hook_is_told_its_extension_and_how_deep_it_is_and_cannot_say_otherwise() {
    let env = ["OLLM_EVENT_DEPTH", "OLLM_EXTENSION"].map(|name| (name.to_owned(), "0".to_owned())).to_vec();
    let spec = HookSpec { extension: Some("tools".to_owned()), env, ..sh("x", "") };
    let seen = seen(&World::with(&[("OLLM_EVENT_DEPTH", "2")]), spec);
    let told = ["OLLM_EVENT_DEPTH", "OLLM_EXTENSION"].map(|name| seen[name].as_str());
    assert_eq!(told, ["3", "tools"]);
}

#[test]
fn secrets_are_hidden_in_every_text_a_hook_leaves() {
    let world = World::with(&[("GITHUB_TOKEN", SECRET), ("DEPLOYMENT", "blue-green-secret")]);
    let with = |script: &str| HookSpec {
        env: vec![("OWN_PASSWORD".to_owned(), "hunter2-hunter2".to_owned())],
        pass_env: vec!["GITHUB_TOKEN".to_owned(), "DEPLOYMENT".to_owned()],
        ..sh("x", script)
    };
    let leak = "$GITHUB_TOKEN $OWN_PASSWORD $DEPLOYMENT";
    let hidden = "[redacted:GITHUB_TOKEN] [redacted:OWN_PASSWORD] [redacted:DEPLOYMENT]";

    let refusal =
        world.run(with(&format!("echo \"{{\\\"continue\\\":false,\\\"systemMessage\\\":\\\"{leak}\\\"}}\"")), &event());
    assert_eq!(refusal.verdict.reasons, [hidden]);
    assert_eq!(refusal.verdict.system_messages, [hidden]);
    let failure = world.run(with(&format!("echo \"{leak}\" >&2; exit 1")), &event());
    assert_eq!(failure.error, Some(format!("exited with status 1: {hidden}")));
    let message = world.run(
        spoken("gate", with(&format!("echo \"{{\\\"allow\\\":true,\\\"message\\\":\\\"{leak}\\\"}}\""))),
        &event(),
    );
    assert_eq!(message.verdict.messages, [hidden]);
    let blocked = world.run(spoken("agent", with(&format!("echo \"{leak}\" >&2; exit 2"))), &event());
    assert_eq!(blocked.verdict.reasons, [hidden]);
}

#[test]
fn secrets_are_hidden_in_the_data_a_hook_leaves_also_as_numbers_and_keys() {
    let mut world = World::with(&[("GITHUB_TOKEN", SECRET), ("MY_PIN_SECRET", "987654321")]);
    let answer = json!({"data": {"n": 987_654_321, "list": [{SECRET: 7}], "half": 98_765}});
    world.add(sh("x", &prints(&answer)));
    let hidden = json!({"n": "[redacted:MY_PIN_SECRET]", "list": [{"[redacted:GITHUB_TOKEN]": 7}], "half": 98_765});
    assert_eq!(json!(world.engine.dispatch(&event()).verdict.data), hidden);
}

#[test]
fn secrets_a_hook_found_by_itself_are_hidden_too() {
    let world = World::with(&[("GITHUB_TOKEN", SECRET)]);
    let answer = json!({"continue": false, "systemMessage": format!("found {SECRET} in .env")});
    let report = world.run(sh("x", &prints(&answer)), &event());
    assert_eq!(report.verdict.reasons, ["found [redacted:GITHUB_TOKEN] in .env"]);
}

#[test]
fn secrets_are_hidden_in_the_reason_of_the_failure_policy() {
    let mut world = World::with(&[("GITHUB_TOKEN", SECRET)]);
    world.add(spoken("gate", sh("x", &format!("echo {SECRET} >&2; exit 1"))));
    let outcome = world.engine.dispatch(&event());
    let reason = outcome.verdict.reason().unwrap();
    assert!(reason.contains("[redacted:GITHUB_TOKEN]") && !reason.contains(SECRET), "{reason}");
}

#[test]
fn long_texts_are_cut_with_a_note() {
    let world = World::new();
    let long = "x".repeat(20_000);
    let cut = format!("{}… [cut: 9760 bytes]", "x".repeat(10_240));
    let answer = world.file("answer", json!({"continue": false, "systemMessage": long}).to_string());
    let report = world.run(crate::support::cat("x", &answer), &event());
    assert_eq!([report.verdict.reasons, report.verdict.system_messages], [[cut.clone()], [cut.clone()]]);
    let error = world.file("error", json!({"continue": true, "error": long}).to_string());
    let report = world.run(crate::support::cat("x", &error), &event());
    assert_eq!(report.error, Some(cut.clone()));
    let verdict = Verdict {
        context: vec![long.clone()],
        messages: vec![long.clone()],
        prompts: vec![long],
        ..Verdict::default()
    };
    let report = world.run(builtin("x", move |_| verdict.clone()), &event());
    let verdict = report.verdict;
    assert_eq!([verdict.context, verdict.messages, verdict.prompts], [[cut.clone()], [cut.clone()], [cut]]);
}

#[test]
fn a_secret_is_hidden_before_the_cut() {
    let world = World::with(&[("GITHUB_TOKEN", SECRET)]);
    let text = format!("{}{SECRET}", "x".repeat(10_240 - 5));
    let answer = world.file("answer", json!({"continue": false, "systemMessage": text}).to_string());
    let report = world.run(crate::support::cat("x", &answer), &event());
    assert!(!report.verdict.reasons[0].contains("corre"), "{}", report.verdict.reasons[0]);
}

#[test]
fn an_engine_that_was_told_no_folder_runs_hooks_where_the_process_is() {
    let trust = ollm_trust::Trust::new("approvals.json".into(), std::time::SystemTime::now);
    let engine = ollm_engine::Engine::new(trust, ollm_engine::Environment::default());
    let world = World::new();
    let trusted = engine.trusted(&world.hook(sh("x", "echo '{\"continue\":true}'"))).unwrap();
    let report = engine.run_one(&trusted, &event()).unwrap();
    assert_eq!((report.status, report.error), (Status::Ok, None));
}
