//! A user's hook that must not fail refuses also while its definition is broken; hooks of others do not.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, finish, shell_event};

/// A lab whose user has one hook file with this entry under this key.
fn lab(event: &str, entry: &Value) -> Lab {
    let lab = Lab::new();
    lab.user("gate.json", json!({"hooks": {event: [entry]}}).to_string());
    lab.user("gate.sh", "cat > /dev/null\n");
    lab
}

fn entry(more: &Value) -> Value {
    let mut entry = json!({"name": "gate", "command": "sh", "args": ["gate.sh"], "onFailure": "block"});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

#[test]
fn a_gate_that_lacks_what_it_requires_or_has_no_runs_left_refuses_and_the_forecast_says_so() {
    for (more, why) in [
        (json!({"requires": {"commands": ["no-such-command"]}}), "it requires the command `no-such-command`"),
        (json!({"rateLimit": {"perMinute": 1}}), "its rate limit of 1 per minute is used up"),
    ] {
        let lab = lab("before_tool", &entry(&more));
        lab.event(shell_event("ls"));
        let ran = lab.event(shell_event("ls"));
        let answer = ran.answer();
        let reason = answer["reason"].as_str().unwrap_or_default();
        assert!(
            reason.starts_with(&format!("user hook `gate` (user:gate.json:before_tool:gate) failed: {why}")),
            "{ran:?}"
        );
        assert_eq!((ran.code, &answer["skipped"]), (2, &json!([])), "{ran:?}");
        for command in [["hook", "plan"].as_slice(), &["explain"]] {
            let told = lab.run(&[command, &["before_tool", "--data", r#"{"tool_name": "shell"}"#]].concat());
            assert!(told.stdout.contains(why) && !told.stdout.contains("skipped"), "{told:?}");
        }
    }
}

#[test]
fn a_hook_whose_failure_was_meant_to_block_under_a_misspelt_key_refuses() {
    for key in ["onFailur", "on_failur", "onFailures"] {
        let lab = lab("before_tool", &json!({"name": "gate", "command": "sh", "args": ["gate.sh"], key: "block"}));
        let ran = lab.event(shell_event("ls"));
        let answer = ran.answer();
        let reason = answer["reason"].as_str().unwrap_or_default();
        assert!(ran.code == 2 && reason.contains("unknown key") && reason.contains(key), "{ran:?}");
    }
}

#[test]
fn a_gate_with_any_broken_field_refuses_what_it_is_for_and_says_why() {
    assert_eq!(lab("before_tool", &entry(&json!({}))).event(shell_event("ls")).code, 0, "a whole one lets it pass");
    for (key, value) in [
        ("command", json!(1)),
        ("command", json!("rm -rf")),
        ("args", json!(5)),
        ("args", json!(["../../elsewhere.sh"])),
        ("name", json!([])),
        ("id", json!({})),
        ("dialect", json!("klingon")),
        ("matcher", json!(7)),
        ("matcher", json!("re:(")),
        ("filePatterns", json!([])),
        ("if", json!(true)),
        ("timeout", json!("soon")),
        ("timeout", json!(-1)),
        ("onFailure", json!("blok")),
        ("onFailure", json!(2)),
        ("priority", json!("urgent")),
        ("parallel", json!("perhaps")),
        ("persistent", json!(3)),
        ("async", json!("perhaps")),
        ("async", json!(true)),
        ("enabled", json!("perhaps")),
        ("rateLimit", json!({"perMinute": 0})),
        ("requires", json!({"moons": 2})),
        ("requires", json!({"services": ["nowhere"]})),
        ("scope", json!("galaxy")),
        ("env", json!([])),
        ("passEnv", json!(1)),
        ("cwd", json!({})),
        ("inputs", json!(["../../secret"])),
        ("limits", json!({"memory": "much"})),
        ("limits", json!({"memroy": "1MB"})),
        ("rateLimit", json!({"perMinut": 3})),
        ("matchr", json!("shell")),
        ("permissions", json!({"net": "perhaps"})),
        ("action", json!({"type": "dance"})),
    ] {
        let lab = lab("before_tool", &entry(&json!({key: value})));
        let ran = lab.event(shell_event("ls"));
        let reason = ran.answer()["reason"].as_str().unwrap_or_default().to_owned();
        assert_eq!(ran.code, 2, "{key}: {value}: {ran:?}");
        assert!(reason.contains("it cannot be loaded: "), "{key}: {reason}");
        assert!(reason.contains("hooks.before_tool[0]"), "{key}: {reason}");
        assert!(ran.stderr.contains("until that is mended it refuses whatever it is for"), "{key}: {}", ran.stderr);
        assert!(!ran.stderr.contains("is not loaded"), "{key}: {}", ran.stderr);
    }
}

#[test]
fn a_broken_gate_stands_only_where_it_was_meant_to() {
    let lab = lab("before_tool", &entry(&json!({"matcher": "write_file", "timeout": "soon"})));
    assert_eq!(lab.event(shell_event("ls")).code, 0);
    let write = json!({"event": "before_tool", "data": {"tool_name": "write_file", "args": {"path": "a.rs"}}});
    let ran = lab.event(write.to_string());
    assert_eq!((ran.code, &ran.hook("gate")["status"]), (2, &json!("failed")), "{ran:?}");
    assert_eq!(lab.event(json!({"event": "session_start", "data": {}}).to_string()).code, 0);
    for (more, code) in [
        (json!({"filePatterns": ["*.rs"]}), 2),
        (json!({"filePatterns": ["*.py"]}), 0),
        (json!({"if": "data.tool_name == 'write_file'"}), 2),
        (json!({"if": "data.tool_name == 'shell'"}), 0),
        (json!({"scope": "subagents"}), 0),
        (json!({"enabled": false}), 0),
        (json!({"async": true}), 2),
        (json!({"async": true, "onFailure": "allow"}), 0),
        (json!({"onFailure": "allow"}), 0),
        (json!({"onFailure": "ask"}), 2),
        (json!({"onFailure": null}), 0),
    ] {
        let mut entry = entry(&json!({"timeout": "soon"}));
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        lab.user("gate.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
        assert_eq!(lab.event(write.to_string()).code, code, "{more}");
    }
}

#[test]
fn a_gate_of_every_form_stands_in_the_way_when_it_is_broken() {
    let prompt = json!({"event": "before_agent", "data": {"prompt": "hello"}}).to_string();
    let command = json!({"type": "runCommand", "command": "sh gate.sh"});
    let single = json!({"name": "gate", "onFailure": "block", "timeout": "soon"});
    let with = |more: Value| {
        let mut file = single.clone();
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        file
    };
    for file in [
        json!({"pre-execution": [{"name": "gate", "command": "sh", "args": ["gate.sh"], "timeout": "soon"}]}),
        json!({"pre-execution": ["gate.sh"]}),
        json!({"hooks": {"before_agent": {"name": "gate", "command": "sh", "onFailure": "block"}}}),
        with(json!({"eventType": "promptSubmit", "action": command})),
        with(json!({"when": {"type": "promptSubmit"}, "then": command})),
        with(json!({"when": {"type": ["promptSubmit", "nonsense"]}, "then": command})),
    ] {
        let lab = Lab::new();
        lab.user("gate.json", file.to_string());
        let ran = lab.event(&prompt);
        assert_eq!(ran.code, 2, "{file}: {ran:?}");
        assert!(ran.answer()["reason"].as_str().unwrap().contains("it cannot be loaded"), "{file}: {ran:?}");
    }
    let group = |matcher: Value| json!({"matcher": matcher, "hooks": [{"command": "true", "onFailure": "block", "timeout": []}]});
    for (group, code) in [(group(json!("*")), 2), (group(json!(1)), 2), (group(json!("write_file")), 0)] {
        let lab = Lab::new();
        lab.write("home/.config/agent/settings.json", json!({"hooks": {"PreToolUse": [group]}}).to_string());
        assert_eq!(lab.event(shell_event("ls")).code, code, "{group}");
    }
}

#[test]
fn an_event_that_nobody_knows_is_told_at_every_event() {
    let lab = lab("before_tol", &entry(&json!({})));
    for event in [shell_event("ls"), json!({"event": "session_start", "data": {}}).to_string()] {
        let ran = lab.event(event);
        assert_eq!(ran.code, 0);
        assert!(ran.stderr.contains("before_tol") && ran.stderr.contains("before_tool"), "{}", ran.stderr);
    }
}

#[test]
fn nobody_elses_mistake_refuses_anything() {
    let lab = Lab::new();
    let broken = json!({"hooks": {"before_tool": [entry(&json!({"timeout": "soon"}))]}}).to_string();
    lab.workspace("gate.json", &broken);
    lab.workspace("trusted/gate.json", &broken);
    lab.write(
        "project/.config/agent/settings.json",
        json!({"hooks": {"PreToolUse": [
            {"hooks": [{"command": "true", "onFailure": "block", "timeout": []}]}
        ]}})
        .to_string(),
    );
    for whose in ["home", "project"] {
        let manifest = json!({"name": whose, "version": "1.0.0", "description": "d", "hooks": {
            "before_tool": [entry(&json!({"timeout": "soon"}))]
        }});
        lab.write(&format!("{whose}/.ollm/extensions/{whose}/manifest.json"), manifest.to_string());
    }
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, ran.hook_count()), (0, 0), "{ran:?}");
    assert_eq!(ran.answer()["skipped"], json!([]));
    assert!(ran.stderr.contains("the hook is not loaded"), "{}", ran.stderr);
    lab.write("home/.ollm/config.yaml", "hooks:\n  trustWorkspace: true\n");
    assert_eq!(lab.event(shell_event("ls")).code, 0);
}

#[test]
fn a_broken_gate_is_seen_switched_off_and_mended_under_its_own_id() {
    let lab = lab("before_tool", &entry(&json!({"timeout": "soon"})));
    let id = "user:gate.json:before_tool:gate";
    let listed = lab.run(&["hook", "list", "--json"]).answer();
    let row = listed.as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
    assert_eq!((&row["action"], &row["line"]), (&json!("none"), &json!(1)));
    assert!(lab.run(&["hook", "list"]).stdout.contains("cannot run: it cannot be loaded"));
    let shown = lab.run(&["hook", "show", id]).stdout;
    assert!(shown.contains("runs        nothing") && shown.contains("`timeout` must be"), "{shown}");
    assert!(lab.run(&["hook", "plan", "before_tool", "--json"]).stdout.contains(id));
    assert_eq!(lab.run(&["hook", "test", id]).code, 1);
    assert_eq!(lab.run(&["hook", "disable", id]).code, 0);
    assert_eq!(lab.event(shell_event("ls")).skip("gate")["reason"], "disabled");
    assert_eq!(lab.run(&["hook", "enable", id]).code, 0);
    assert_eq!(lab.event(shell_event("ls")).code, 2);
    // Also where the mistake is found late: no other hook of that name gets another id by it.
    let two = [entry(&json!({"command": "rm"})), entry(&json!({}))];
    lab.user("gate.json", json!({"hooks": {"before_tool": two}}).to_string());
    let ran = lab.event(shell_event("ls")).answer();
    let ids: Vec<&str> = ran["hooks"].as_array().unwrap().iter().map(|hook| hook["id"].as_str().unwrap()).collect();
    assert_eq!(ids.first(), Some(&id), "{ran}");
    fs::write(
        lab.home.join(".ollm/hooks/gate.json"),
        json!({"hooks": {"before_tool": [entry(&json!({}))]}}).to_string(),
    )
    .unwrap();
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, &ran.hook("gate")["id"]), (0, &json!(id)), "{ran:?}");
}

#[test]
fn after_the_refusal_of_a_guard_nothing_of_the_project_is_read() {
    let lab = Lab::new();
    lab.workspace("broken.json", "{ not JSON");
    lab.workspace_hook("before_tool", "theirs", "cat > /dev/null", "");
    lab.workspace("stray.sh", "true");
    lab.user_hook("before_tool", "mine", "cat > /dev/null", "");
    let refused = lab.event(shell_event("rm -rf ~"));
    let explained = finish(lab.ollm(&["hook", "run", "--explain"]), shell_event("rm -rf ~").as_bytes());
    for ran in [&refused, &explained] {
        assert_eq!((ran.code, ran.hook("mine")["status"].as_str()), (2, Some("ok")), "{ran:?}");
        assert!(!ran.stderr.contains("broken.json") && !ran.stderr.contains("stray.sh"), "{ran:?}");
        assert!(!ran.stdout.contains("theirs"), "{ran:?}");
    }
    let ordinary = lab.event(shell_event("ls"));
    assert!(ordinary.stderr.contains("broken.json") && ordinary.stderr.contains("stray.sh"), "{ordinary:?}");
    assert_eq!(ordinary.skip("theirs")["reason"], "untrusted");
    let skipped = &refused.answer()["skipped"];
    assert_eq!(skipped.as_array().map(Vec::len), Some(1), "{skipped}");
    assert_eq!((&skipped[0]["id"], &skipped[0]["reason"]), (&json!("workspace"), &json!("after_block")), "{skipped}");
    assert!(skipped[0]["detail"].as_str().unwrap().contains("were not loaded"), "{skipped}");
}
