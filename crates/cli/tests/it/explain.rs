//! `ollm explain`: why hooks do or do not run, and how a verdict came about.

use regex_lite::Regex;
use serde_json::{Value, json};

use crate::lab::{Lab, Ran, shell_event};
use crate::trace::{GO_ON, REFUSE, id};

/// Hooks of every standing: one runs, one is for other tools, one is off, one is unapproved, one is for another event.
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
fn a_hook_that_would_run_but_for_its_limit_or_its_twin_says_so_with_the_place() {
    let lab = Lab::new();
    let limited = "{\"hooks\": {\"before_tool\": [\n  {\n    \"name\": \"limited\", \"command\": \"/bin/true\",\n    \"rateLimit\": {\"perMinute\": 1}\n  }\n]}}";
    lab.user("limited.json", limited);
    let twin = |name: &str| json!({"name": name, "action": {"type": "askAgent", "prompt": "hm"}});
    lab.user("twins.json", json!({"hooks": {"before_tool": [twin("one"), twin("two")]}}).to_string());
    lab.event(shell_event("ls"));
    let now = |hook: &str| lab.run(&["explain", hook, "--json"]).answer()["now"][0].clone();
    let limited = now("limited");
    let place = &limited["reasonAt"];
    assert_eq!((&limited["reason"], &place["line"], &place["column"]), (&json!("rate_limited"), &json!(4), &json!(5)));
    assert_eq!(now("two")["reason"], "duplicate");
    let shown = lab.run(&["explain", "limited"]).stdout;
    assert!(shown.contains("limited.json:4:5") && shown.contains("4 | \"rateLimit\""), "{shown}");
    assert!(shown.contains("2 | {\n") && shown.contains("3 | \"name\""), "the line of the place comes first: {shown}");
    // A limit of all hooks.
    lab.user("limited.json", limited_by_all());
    lab.write("home/.ollm/config.yaml", "hooks:\n  rateLimit:\n    perMinute: 1\n");
    lab.event(shell_event("ls"));
    let limited = now("limited");
    assert_eq!((&limited["reason"], &limited["reasonAt"]["line"]), (&json!("rate_limited"), &json!(3)), "{limited}");
    let data = json!({"tool_name": "read_file"}).to_string();
    let ran = lab.run(&["explain", "limited", "--data", &data, "--json"]);
    assert_eq!(ran.answer()["now"][0]["reason"], "matcher", "{ran:?}");
    let trace = id(&lab.event(shell_event("ls")));
    let verdict = lab.run(&["explain", &trace]).stdout;
    assert!(verdict.contains("config.yaml:3:16") && verdict.contains("3 | perMinute: 1"), "{verdict}");
}

#[test]
fn a_gate_that_fails_now_by_its_limit_says_so() {
    let lab = Lab::new();
    let gate = |name: &str, matcher: &str| {
        let limit = json!({"perMinute": 1});
        json!({"name": name, "command": "/bin/true", "args": [name], "matcher": matcher, "rateLimit": limit, "onFailure": "block"})
    };
    lab.user("gates.json", json!({"hooks": {"before_tool": [gate("any", "*"), gate("some", "shell")]}}).to_string());
    let before = lab.run(&["explain", "any", "--json"]).answer();
    assert_eq!(before["now"][0]["failure"], Value::Null);
    lab.event(shell_event("ls"));
    for name in ["any", "some"] {
        let now = lab.run(&["explain", name, "--json"]).answer()["now"][0].clone();
        assert!(now["failure"].as_str().is_some_and(|why| why.contains("rate limit")), "{now}");
        let shown = lab.run(&["explain", name]).stdout;
        assert!(
            shown.contains("fails now for before_tool, without running: its rate limit of 1 per minute"),
            "{shown}"
        );
    }
}

fn limited_by_all() -> String {
    json!({"hooks": {"before_tool": [{"name": "limited", "command": "/bin/true", "matcher": "shell"}]}}).to_string()
}

#[test]
fn what_a_hook_says_of_itself_is_shown_where_it_says_so() {
    let lab = Lab::new();
    let text = "hooks:\n  before_tool:\n    - name: own\n      command: /bin/true\n      timeout: 5s\n      onFailure: block\n    - name: off\n      command: /bin/true\n      enabled: false\n";
    lab.user("own.yaml", text);
    let rules = lab.run(&["explain", "own", "--json"]).answer()["fromHook"].clone();
    let places: Vec<_> =
        rules.as_array().unwrap().iter().map(|rule| (rule["rule"].clone(), rule["line"].clone())).collect();
    assert_eq!(places, [(json!("timeout"), json!(5)), (json!("failure"), json!(6))]);
    let shown = lab.run(&["explain", "before_tool"]).stdout;
    for part in ["own.yaml:5:7", "5 | timeout: 5s", "own.yaml:6:7", "own.yaml:9:7", "9 | enabled: false"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
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

#[test]
fn a_gate_whose_program_is_gone_is_said_to_fail_as_it_then_does() {
    let lab = Lab::new();
    let gone = |name: &str, more: &str| {
        let text = format!(
            r#"{{"hooks": {{"before_tool": [{{"name": "{name}", "command": "/nowhere/{name}", "args": []{more}}}]}}}}"#
        );
        lab.user(&format!("{name}.json"), text);
    };
    gone("gate", r#", "onFailure": "block""#);
    gone("narrow", r#", "onFailure": "block", "matcher": "shell""#);
    gone("open", "");
    let found = |arguments: &[&str]| {
        let hooks = lab.run(arguments).answer()["hooks"].as_array().unwrap().clone();
        let own = hooks
            .into_iter()
            .filter(|hook| hook["name"] != "destructive-commands" && hook["name"] != "self-protection");
        own.map(|hook| {
            let text = |field: &str| hook[field].as_str().unwrap_or_default().to_owned();
            let fails = text("failure").contains("/nowhere/");
            (text("name"), text("state"), fails, text("reason"))
        })
        .collect::<Vec<_>>()
    };
    let row =
        |name: &str, state: &str, fails, reason: &str| (name.to_owned(), state.to_owned(), fails, reason.to_owned());
    let data = json!({"tool_name": "shell", "args": {"command": "ls"}}).to_string();
    let all =
        [row("gate", "runs", true, ""), row("narrow", "runs", true, ""), row("open", "skipped", false, "missing")];
    assert_eq!(found(&["explain", "before_tool", "--data", &data, "--json"]), all);
    let some =
        [row("gate", "runs", true, ""), row("narrow", "depends", true, ""), row("open", "skipped", false, "missing")];
    assert_eq!(found(&["explain", "before_tool", "--json"]), some);
    assert!(lab.run(&["explain", "gate"]).stdout.contains("fails     without running: "));
    assert!(lab.run(&["hook", "plan", "before_tool"]).stdout.contains("fails: "));
    assert_eq!(lab.event(shell_event("ls")).answer()["continue"], false);
}

#[test]
fn a_default_of_the_configuration_is_shown_with_its_line() {
    let lab = furnished();
    lab.write("home/.ollm/config.yaml", "hooks:\n  timeout: 7s\n  box: declared\n");
    let file = lab.home.join(".ollm/config.yaml").display().to_string();
    let guard = lab.run(&["explain", "guard"]).stdout;
    assert!(guard.contains("timeout   7s (from the config)"), "{guard}");
    assert!(guard.contains("`hooks.timeout` of ~/.ollm/config.yaml:2:12"), "{guard}");
    assert!(guard.contains("2 | timeout: 7s"), "{guard}");
    let stranger = lab.run(&["explain", "stranger"]).stdout;
    assert!(
        stranger.contains("box       none (from the config)") && stranger.contains("3 | box: declared"),
        "{stranger}"
    );
    assert!(guard.contains("box       none (from the default)"), "{guard}");
    let event = lab.run(&["explain", "before_tool"]).stdout;
    assert!(event.contains("2 | timeout: 7s") && event.contains("timeout 7s (from the config)"), "{event}");
    let from = lab.run(&["explain", "guard", "--json"]).answer()["fromConfiguration"].clone();
    let timeout = from.as_array().unwrap().iter().find(|rule| rule["rule"] == "timeout").unwrap().clone();
    assert_eq!(timeout["file"], file, "{timeout}");
    assert_eq!((&timeout["line"], &timeout["column"]), (&json!(2), &json!(12)));
}

#[test]
fn dialect_priority_and_limits_are_told_with_who_decided_them() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks:\n  rateLimit:\n    perMinute: 9\n");
    lab.user_hook("PreToolUse", "spelled", GO_ON, "");
    lab.user_hook(
        "before_tool",
        "own",
        GO_ON,
        r#", "dialect": "gate", "priority": "high", "rateLimit": {"cooldownMs": 5}"#,
    );
    let told = |hook: &str, parts: &[&str]| {
        let shown = lab.run(&["explain", hook]).stdout;
        for part in parts {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    };
    let of_all = "limit     9 per minute for all hooks (from the config)";
    told(
        "spelled",
        &["dialect   agent (from the event)", "priority  normal (from the default)", of_all, "config.yaml:3:16"],
    );
    let own = [
        "dialect   gate (from the hook)",
        "priority  high (from the hook)",
        "limit     once in 5ms (from the hook)",
        "own.json:1:81",
    ];
    told("own", &own);
}

#[test]
fn a_hook_that_is_not_loaded_is_explained_by_its_file() {
    let lab = Lab::new();
    let file = lab.user("typo.json", r#"{"hooks": {"before_tol": [{"name": "guard", "command": "true"}]}}"#);
    for what in ["guard", "typo", "typo.json"] {
        let ran = lab.run(&["explain", what]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stdout.starts_with(&format!("{what} is not loaded\n")), "{ran:?}");
        assert!(ran.stdout.contains(&format!("{}:1:12", file.display())), "{ran:?}");
    }
    for command in ["show", "test", "trust", "disable", "edit"] {
        let ran = lab.run(&["hook", command, "guard"]);
        let place = format!("it may be in a file that cannot be read: {}:1:12: unknown event", file.display());
        assert_eq!((ran.code, ran.stderr.contains(&place)), (64, true), "{command}: {ran:?}");
    }
    let answer = lab.run(&["explain", "guard", "--json"]).answer();
    assert_eq!((&answer["state"], &answer["problems"][0]["line"]), (&json!("not_loaded"), &json!(1)));
    let near = lab.run(&["explain", "before_tolo"]);
    assert_eq!((near.code, near.stderr.contains("did you mean `before_tool`?")), (64, true), "{near:?}");
}

#[test]
fn without_data_a_hook_depends_on_what_it_looks_at_and_is_not_said_to_be_skipped() {
    let lab = Lab::new();
    lab.user_hook("before_agent", "asked", GO_ON, r#", "if": "data.prompt == 'x'", "onFailure": "block""#);
    lab.user_hook("before_agent", "files", GO_ON, r#", "filePatterns": ["*.rs"]"#);
    lab.user_hook("before_agent", "helpers", GO_ON, r#", "scope": "subagents""#);
    lab.user_hook("before_agent", "wrong", GO_ON, r#", "if": "data.prompt ==""#);
    let states = |arguments: &[&str]| {
        let hooks = lab.run(arguments).answer()["hooks"].as_array().unwrap().clone();
        let text = |hook: &Value, field: &str| hook[field].as_str().unwrap_or_default().to_owned();
        hooks.iter().map(|hook| (text(hook, "name"), text(hook, "state"))).collect::<Vec<_>>()
    };
    let row = |name: &str, state: &str| (name.to_owned(), state.to_owned());
    let mut without = states(&["explain", "before_agent", "--json"]);
    without.sort();
    let depends = ["asked", "files", "helpers"].map(|name| row(name, "depends"));
    assert_eq!(without, [&depends[..], &[row("wrong", "skipped")]].concat());
    let mut with = states(&["explain", "before_agent", "--data", r#"{"prompt": "x"}"#, "--json"]);
    with.sort();
    assert_eq!(with[..2], [row("asked", "runs"), row("files", "skipped")]);
    let plan = lab.run(&["hook", "plan", "before_agent"]).stdout;
    assert!(
        plan.contains("asked  for *; if data.prompt == 'x'") && plan.contains("files  for *; files *.rs"),
        "{plan}"
    );
}

#[test]
fn a_verdict_names_what_each_hook_gave_beside_its_decision() {
    let lab = Lab::new();
    let answer = r#"{"decision": "modify", "modified_args": {"command": "ls"}, "hookSpecificOutput": {"additionalContext": "c"}}"#;
    lab.user_hook("before_tool", "rewriter", &format!("echo '{answer}'\n"), r#", "dialect": "agent""#);
    let trace = id(&lab.event(shell_event("ls -l")));
    let explained = lab.run(&["explain", &trace]).stdout;
    assert!(explained.contains("; it gives context, modifiedArgs"), "{explained}");
}

#[test]
fn where_all_hooks_are_off_each_says_who_switched_them_off() {
    let lab = furnished();
    lab.write("home/.ollm/config.yaml", "hooks:\n  enabled: false\n");
    let guard = lab.run(&["explain", "guard"]).stdout;
    assert!(guard.contains("never     disabled: hooks.enabled is false (~/.ollm/config.yaml:2:12)"), "{guard}");
    let answer = lab.run(&["doctor", "--json"]).answer();
    let off =
        answer["findings"].as_array().unwrap().iter().filter(|one| one["what"].to_string().contains("hooks.enabled"));
    assert_eq!(off.count(), 1, "told once: {answer}");
}
