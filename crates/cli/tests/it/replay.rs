//! Recorded events passed through hooks once more.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, hook_file, shell_event};

/// Refuses what the event's text says.
const GUARD: &str = "case $(cat) in *forbidden*) echo '{\"continue\": false, \"systemMessage\": \"no\"}' ;; *ask*) \
                     echo '{\"decision\": \"ask\", \"reason\": \"hm\"}' ;; *) echo '{\"continue\": true}' ;; esac\n";

fn recording() -> Lab {
    let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", "full");
    lab.user_hook("before_tool", "guard", GUARD, "");
    lab
}

/// The result and the reason of each event; nothing where this kernel has no box.
fn results(ran: &Ran) -> Option<Vec<(String, String)>> {
    let answer = ran.answer();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = answer["events"].as_array().unwrap().iter();
    let found: Vec<(String, String)> = events.map(|event| (text(&event["result"]), text(&event["why"]))).collect();
    (!found.iter().any(|(_, why)| why.contains("Landlock"))).then_some(found)
}

fn words(ran: &Ran) -> Option<Vec<String>> {
    Some(results(ran)?.into_iter().map(|(word, _)| word).collect())
}

#[test]
fn what_changed_in_the_hooks_is_told_and_nothing_is_touched() {
    let lab = recording();
    for command in ["ls", "forbidden thing", "ask me"] {
        lab.event(shell_event(command));
    }
    let same = lab.run(&["replay", "--json"]);
    let Some(found) = words(&same) else { return };
    assert_eq!((same.code, found), (0, vec!["same".to_owned(); 3]), "{same:?}");
    let before = fs::read(lab.home.join(".ollm/trace/trace.jsonl")).unwrap();
    lab.user("guard.sh", GUARD.replace("*forbidden*", "*never*"));
    let ran = lab.run(&["replay"]);
    let times = regex_lite::Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}").unwrap();
    insta::assert_snapshot!(times.replace_all(&lab.screen(&ran), "…"));
    assert!(!lab.project.join("touched").exists());
    assert_eq!(fs::read(lab.home.join(".ollm/trace/trace.jsonl")).unwrap(), before, "a replay is no event");
    // What a hook would have said that the box hindered is not known.
    let guard = GUARD.replace("*forbidden*", "*never*").replace("case", "echo x > touched; case");
    lab.user("guard.sh", guard);
    let ran = lab.run(&["replay", "--json"]);
    let found = results(&ran).unwrap();
    let (word, why) = &found[1];
    assert_eq!((ran.code, word.as_str()), (0, "not_replayed"), "{found:?}");
    assert!(why.contains("wanted to write") && why.contains("touched"), "{why}");
    assert_eq!(found[0].0, "same");
    assert!(!lab.project.join("touched").exists());
}

#[test]
fn a_text_that_changed_is_told_and_one_that_is_never_the_same_is_not() {
    let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", "full");
    let says = |reason: &str, context: &str| {
        format!(
            "echo '{{\"decision\": \"block\", \"reason\": \"'\"{reason}\"'\", \"additionalContext\": \"{context}\"}}'\n"
        )
    };
    lab.user_hook("before_tool", "guard", &says("no", "old"), r#", "dialect": "agent""#);
    lab.event(shell_event("ls"));
    let Some(same) = words(&lab.run(&["replay", "--json"])) else { return };
    assert_eq!(same, ["same"]);
    lab.user("guard.sh", says("never", "old"));
    let ran = lab.run(&["replay", "--json"]);
    let reason = json!([{"hook": null, "before": "reason \"no\"", "now": "reason \"never\""}]);
    assert_eq!((ran.code, &ran.answer()["events"][0]["differences"]), (1, &reason), "{ran:?}");
    lab.user("guard.sh", says("$(date +%N)", "old"));
    let ran = lab.run(&["replay", "--json"]);
    assert_eq!((ran.code, words(&ran).unwrap()), (0, vec!["same".to_owned()]), "{ran:?}");
}

#[test]
fn every_part_of_an_answer_that_changed_is_told() {
    let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", "full");
    for (event, data, name, dialect, answer, part) in [
        (
            "before_agent",
            json!({"prompt": "hi"}),
            "adds",
            "agent",
            r#"{"hookSpecificOutput": {"additionalContext": "OLD"}}"#,
            "context",
        ),
        (
            "before_agent",
            json!({"prompt": "hi"}),
            "tells",
            "ollm",
            r#"{"continue": true, "systemMessage": "OLD"}"#,
            "systemMessage",
        ),
        (
            "before_tool",
            json!({"tool_name": "shell", "args": {"command": "ls"}}),
            "changes",
            "agent",
            r#"{"decision": "modify", "modified_args": {"command": "OLD"}}"#,
            "modifiedArgs",
        ),
    ] {
        let says = |text: &str| format!("echo '{}'\n", answer.replace("OLD", text));
        lab.user_hook(event, name, &says("old"), &format!(r#", "dialect": "{dialect}""#));
        let id = lab.event(json!({"event": event, "data": data}).to_string()).answer()["traceId"]
            .as_str()
            .unwrap()
            .to_owned();
        let Some(same) = words(&lab.run(&["replay", &id, "--json"])) else { return };
        assert_eq!(same, ["same"], "{part}");
        lab.user(&format!("{name}.sh"), says("new"));
        let ran = lab.run(&["replay", &id, "--json"]);
        let found = &ran.answer()["events"][0]["differences"];
        let told = |side: &str| found[0][side].as_str().unwrap().to_owned();
        assert_eq!((ran.code, found.as_array().unwrap().len()), (1, 1), "{part}: {ran:?}");
        assert!(told("before").starts_with(part) && told("before").contains("\"old\""), "{part}: {found}");
        assert!(told("now").starts_with(part) && told("now").contains("\"new\""), "{part}: {found}");
        fs::remove_file(lab.home.join(format!(".ollm/hooks/{name}.json"))).unwrap();
    }
}

#[test]
fn a_hook_whose_limit_was_used_up_then_does_not_run_now_either() {
    let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", "full");
    lab.user_hook("before_tool", "guard", GUARD, r#", "rateLimit": {"perMinute": 1}"#);
    for _ in 0..2 {
        lab.event(shell_event("forbidden thing"));
    }
    let used = fs::read(lab.home.join(".ollm/state/rates")).unwrap();
    let same = lab.run(&["replay", "--json"]);
    let Some(found) = words(&same) else { return };
    assert_eq!((same.code, found), (0, vec!["same".to_owned(); 2]), "{same:?}");
    assert_eq!(fs::read(lab.home.join(".ollm/state/rates")).unwrap(), used, "a replay is no run");
    lab.write("elsewhere/guard.sh", GUARD);
    let elsewhere = |more: &str| {
        lab.write("elsewhere/guard.json", hook_file("before_tool", "guard", more));
        let ran = lab.run(&["replay", "--hooks", "../elsewhere", "--json"]);
        (ran.code, words(&ran).unwrap())
    };
    let both = |second: &str| vec!["same".to_owned(), second.to_owned()];
    assert_eq!(elsewhere(r#", "rateLimit": {"perMinute": 1}"#), (0, both("same")));
    assert_eq!(elsewhere(r#", "rateLimit": {"perMinute": 9}"#), (0, both("not_replayed")), "nobody knows");
    assert_eq!(elsewhere(""), (1, both("different")), "without a limit it would have run");
}

#[test]
fn what_hooks_decided_by_a_secret_is_not_replayed() {
    let lab = recording().set("OLLM_TRACE_PAYLOAD", "full");
    let token = format!("ghp_{}", "0123456789abcdefghij".repeat(2).get(..36).unwrap());
    lab.user_hook("before_tool", "secrets", &GUARD.replace("*forbidden*", &format!("*{token}*")), "");
    assert_eq!(lab.event(shell_event(&format!("echo {token}"))).code, 2);
    let ran = lab.run(&["replay", "--json"]);
    let Some(found) = words(&ran) else { return };
    assert_eq!((ran.code, found), (0, vec!["not_replayed".to_owned()]), "{ran:?}");
    assert!(ran.stdout.contains("secrets were taken out") && !ran.stdout.contains(&token), "{ran:?}");
}

#[test]
fn a_gate_whose_limit_was_used_up_then_fails_now_too() {
    let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", "full");
    lab.user_hook("before_tool", "guard", GUARD, r#", "rateLimit": {"perMinute": 1}, "onFailure": "block""#);
    assert_eq!([lab.event(shell_event("ls")).code, lab.event(shell_event("ls")).code], [0, 2]);
    let same = lab.run(&["replay", "--json"]);
    let Some(found) = words(&same) else { return };
    assert_eq!((same.code, found), (0, vec!["same".to_owned(); 2]), "{same:?}");
}

#[test]
fn one_event_and_a_time_and_a_changed_file_can_be_asked_for() {
    let lab = recording();
    let refused = lab.event(shell_event("forbidden thing")).answer()["traceId"].as_str().unwrap().to_owned();
    lab.event(shell_event("ls"));
    let Some(one) = words(&lab.run(&["replay", &refused, "--json"])) else { return };
    assert_eq!(one, ["same"]);
    assert_eq!(words(&lab.run(&["replay", "--since", "1d", "--json"])).unwrap().len(), 2);
    assert_eq!(words(&lab.run(&["replay", "--until", "1d", "--json"])).unwrap().len(), 0);
    lab.write("elsewhere/guard.sh", "echo '{\"continue\": true}'\n");
    lab.write("elsewhere/guard.json", hook_file("before_tool", "guard", ""));
    for changed in ["../elsewhere", "../elsewhere/guard.json"] {
        let ran = lab.run(&["replay", "--hooks", changed, "--json"]);
        assert_eq!((ran.code, words(&ran).unwrap()), (1, vec!["different".to_owned(), "same".to_owned()]), "{ran:?}");
        let differences = ran.answer()["events"][0]["differences"].clone();
        let decision = json!({"hook": null, "before": "block", "now": "no_opinion"});
        assert_eq!(differences[1], decision, "{differences}");
    }
    let wrong = lab.run(&["replay", "--hooks", "../nowhere"]);
    assert_eq!((wrong.code, wrong.stderr.contains("it does not exist")), (3, true), "{wrong:?}");
    let agent = Lab::new().set("OLLM_AGENT", "1");
    let refused = agent.run(&["replay", "--hooks", "x.json"]);
    assert!(refused.stderr.contains("an agent may not "), "{refused:?}");
}

#[test]
fn what_cannot_be_replayed_is_listed_and_is_no_difference() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "guard", GUARD, "");
    lab.event(shell_event("forbidden thing"));
    let lab = lab.set("OLLM_TRACE_PAYLOAD", "full");
    lab.user_hook("before_tool", "writer", "echo x > written || exit 1; echo '{\"continue\": true}'", "");
    let hook = json!({"name": "asks", "action": {"type": "http", "url": "https://127.0.0.1:1/x"}});
    lab.user("asks.json", json!({"hooks": {"before_tool": [hook]}}).to_string());
    lab.event(shell_event("ls"));
    fs::remove_file(lab.project.join("written")).unwrap();
    lab.event(json!({"event": "before_tool", "data": {"tool_name": "x", "cwd": lab.home, "args": {}}}).to_string());
    let ran = lab.run(&["replay", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let whys: Vec<String> = ran.answer()["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["why"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(whys[0].contains("`trace.payload: full` keeps it"), "{whys:?}");
    assert!(whys[1].contains("writer` failed in the box"), "{whys:?}");
    assert!(whys[2].contains("replay it from there"), "{whys:?}");
    let not_run = &ran.answer()["hooksNotRun"];
    assert_eq!(not_run[0]["why"], "it asks another server", "{not_run}");
    assert!(!lab.project.join("written").exists());
}

#[test]
fn an_event_is_replayed_in_the_folder_where_it_happened_whoever_asks_from_where() {
    let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", "full");
    let where_it_runs = "case $PWD in */deep) echo '{\"continue\": false, \"systemMessage\": \"deep\"}' ;; *) echo '{\"continue\": true}' ;; esac\n";
    lab.user_hook("before_tool", "folder", where_it_runs, "");
    let narrow =
        json!({"name": "narrow", "action": {"type": "askAgent", "prompt": "hm"}, "if": "cwd.endsWith('deep')"});
    lab.user("narrow.json", json!({"hooks": {"before_tool": [narrow]}}).to_string());
    let deep = lab.project.join("deep");
    fs::create_dir(&deep).unwrap();
    let from = |folder: &Path, arguments: &[&str]| {
        let mut command = lab.ollm(arguments);
        command.current_dir(folder);
        finish(command, b"")
    };
    let event = json!({"tool_name": "shell", "args": {"command": "ls"}}).to_string();
    let recorded: Vec<i32> = [&lab.project, &deep, &lab.project]
        .map(|folder| from(folder, &["hook", "run", "before_tool", "--data", &event]).code)
        .to_vec();
    assert_eq!(recorded, [0, 2, 0]);
    for folder in [&lab.project, &deep] {
        let ran = from(folder, &["replay", "--json"]);
        let Some(found) = words(&ran) else { return };
        assert_eq!((ran.code, found), (0, vec!["same".to_owned(); 3]), "{}: {ran:?}", folder.display());
    }
    let trace = lab.run(&["trace", "list", "--blocked", "--json"]).answer()[0]["traceId"].clone();
    let tried = lab.run(&["hook", "test", "folder", "--from-trace", trace.as_str().unwrap(), "--json"]).answer();
    assert_eq!(tried["verdict"]["flow"], "block", "{tried}");
    fs::remove_dir(&deep).unwrap();
    let ran = from(&lab.project, &["replay", "--json"]);
    let found = results(&ran).unwrap();
    assert!(found[1].0 == "not_replayed" && found[1].1.contains("is not there any more"), "{found:?}");
}

#[test]
fn a_hook_is_tried_on_a_recorded_event() {
    let lab = recording();
    let id = lab.event(shell_event("forbidden thing")).answer()["traceId"].as_str().unwrap().to_owned();
    let ran = lab.run(&["hook", "test", "guard", "--from-trace", &id, "--json"]);
    assert_eq!(ran.answer()["verdict"]["flow"], "block", "{ran:?}");
    assert!(ran.answer()["stdin"].as_str().unwrap().contains("forbidden thing"), "{ran:?}");
    let lab = lab.set("OLLM_TRACE_PAYLOAD", "short");
    let id = lab.event(shell_event("ls")).answer()["traceId"].as_str().unwrap().to_owned();
    let ran = lab.run(&["hook", "test", "guard", "--from-trace", &id]);
    assert_eq!((ran.code, ran.stderr.contains("was not kept as a whole")), (3, true), "{ran:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    /// Hooks that answer by what they read answer the same when the same is read again.
    #[test]
    fn a_recorded_session_against_the_same_hooks_has_the_same_verdicts(
        commands in proptest::collection::vec("(ls|ask|forbidden|[a-z\"'$ \\\\é\n]{0,12})", 1..5),
        more in proptest::collection::vec(prop_oneof![Just("*a*"), Just("*b*"), Just("*ls*")], 0..3),
    ) {
        let lab = recording();
        for (at, pattern) in more.iter().enumerate() {
            let script = GUARD.replace("*forbidden*", pattern);
            lab.user_hook("before_tool", &format!("more{at}"), &script, r#", "onFailure": "block""#);
        }
        for command in &commands {
            lab.event(shell_event(command));
        }
        let ran = lab.run(&["replay", "--json"]);
        if let Some(found) = words(&ran) {
            prop_assert_eq!(found, vec!["same".to_owned(); commands.len()], "{:?}", ran);
        }
    }
}
