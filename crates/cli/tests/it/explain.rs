//! `ollm explain`: why hooks do or do not run, and how a verdict came about.

use regex_lite::Regex;
use serde_json::{Value, json};

use crate::lab::{Lab, Ran, shell_event};
use crate::trace::{GO_ON, REFUSE, id};

/// Hooks of every standing: one that runs, one for other tools, one that is off, one nobody approved, one of another event.
fn furnished() -> Lab {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    lab.user_hook("before_tool", "reader", GO_ON, r#", "matcher": "read_*", "timeout": "5s", "onFailure": "block""#);
    lab.user_hook("before_tool", "off", GO_ON, r#", "enabled": false"#);
    lab.user_hook("before_tool", "choosy", GO_ON, r#", "if": "data.args.command == 'never'""#);
    lab.user_hook("session_start", "greet", GO_ON, "");
    lab.workspace_hook("before_tool", "stranger", GO_ON, "");
    lab
}

fn screen(lab: &Lab, ran: &Ran) -> String {
    let rules = [(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"), (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME")];
    rules.iter().fold(lab.screen(ran), |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

#[test]
fn an_event_with_every_hook_and_the_first_reason_it_does_not_run() {
    let lab = furnished();
    let data = json!({"tool_name": "shell", "args": {"command": "ls"}}).to_string();
    insta::assert_snapshot!(screen(&lab, &lab.run(&["explain", "PreToolUse", "--data", &data])));
}

#[test]
fn an_event_that_names_no_tool_says_for_which_tools_hooks_run() {
    let lab = furnished();
    let hooks = lab.run(&["explain", "before_tool", "--json"]).answer()["hooks"].as_array().unwrap().clone();
    let state = |name: &str| {
        let found = hooks.iter().find(|hook| hook["name"] == name).unwrap();
        (found["state"].as_str().unwrap().to_owned(), found["matcher"].clone(), found["reason"].clone())
    };
    assert_eq!(state("guard"), ("runs".to_owned(), Value::Null, Value::Null));
    assert_eq!(state("reader"), ("depends".to_owned(), json!("read_*"), Value::Null));
    assert_eq!(state("off"), ("skipped".to_owned(), Value::Null, json!("disabled")));
    assert_eq!(state("stranger"), ("skipped".to_owned(), Value::Null, json!("untrusted")));
}

#[test]
fn what_is_named_is_what_then_runs_or_is_skipped() {
    let lab = furnished();
    let data = json!({"tool_name": "shell", "args": {"command": "ls"}}).to_string();
    let explained = lab.run(&["explain", "before_tool", "--data", &data, "--json"]).answer();
    let ran = lab.run(&["hook", "run", "before_tool", "--data", &data, "--explain"]).answer();
    let ids = |list: &Value, state: &str| -> Vec<String> {
        let chosen = list.as_array().unwrap().iter().filter(|hook| state.is_empty() || hook["state"] == state);
        let mut ids: Vec<String> = chosen.map(|hook| hook["id"].as_str().unwrap().to_owned()).collect();
        ids.retain(|id| !id.starts_with("builtin:"));
        ids.sort();
        ids
    };
    assert_eq!(ids(&explained["hooks"], "runs"), ids(&ran["hooks"], ""));
    assert_eq!(ids(&explained["hooks"], "skipped"), ids(&ran["skipped"], ""));
}

#[test]
fn a_hook_with_what_stands_in_its_way_and_what_was_seen_of_it() {
    let lab = furnished();
    lab.event(shell_event("ls"));
    insta::assert_snapshot!(
        ["guard", "stranger", "reader"].map(|hook| screen(&lab, &lab.run(&["explain", hook]))).join("\n")
    );
}

#[test]
fn a_verdict_step_by_step() {
    let lab = furnished();
    let trace = id(&lab.event(shell_event("ls")));
    insta::assert_snapshot!(screen(&lab, &lab.run(&["explain", &trace])));
    let steps = lab.run(&["explain", &trace, "--json"]).answer()["steps"].clone();
    let decided: Vec<&Value> = steps.as_array().unwrap().iter().filter(|step| step["decided"] == true).collect();
    assert_eq!((decided.len(), &decided[0]["verdict"]), (1, &json!("block")));
}

#[test]
fn a_name_that_stands_for_nothing_is_refused_with_where_to_look() {
    let lab = furnished();
    let ran = lab.run(&["explain", "nobody"]);
    assert!(ran.code == 64 && ran.stderr.contains("neither an event nor a hook nor a trace"), "{ran:?}");
    let ran = lab.run(&["explain", "befor_tool", "--data", "{}"]);
    assert!(ran.code == 3 && ran.stderr.contains("did you mean `before_tool`?"), "{ran:?}");
}

#[test]
fn a_broken_file_is_among_the_reasons() {
    let lab = furnished();
    lab.user("broken.json", r#"{"hooks": {"before_tool": [{"name": "x", "comand": "sh"}]}}"#);
    let ran = lab.run(&["explain", "before_tool"]);
    assert!(ran.stdout.contains("not loaded, or not as written") && ran.stdout.contains("comand"), "{}", ran.stdout);
}
