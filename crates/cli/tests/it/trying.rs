//! Hooks tried out: scaffolds that work without a change, events and answers laid open, golden cases.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Lab, shell_event, start};
use crate::screens;

const PURPOSES: [&str; 3] = ["validation", "logging", "context"];

/// Scaffolds one hook of each purpose in a language, and runs the golden cases that came with them.
fn scaffold(language: &str, build: impl Fn(&Lab, &str)) {
    let lab = Lab::new();
    for purpose in PURPOSES {
        let ran = lab.run(&["hook", "new", purpose, "--for", purpose, "--in", language]);
        assert_eq!(ran.code, 0, "{ran:?}");
        build(&lab, purpose);
        let tried = lab.run(&["hook", "test", purpose, "--json"]);
        assert_eq!((tried.code, &tried.answer()["verdict"]["status"]), (0, &json!("ok")), "{tried:?}");
    }
    let ran = lab.run(&["hook", "test", "--all", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let passed = ran.answer().as_array().unwrap().iter().filter(|case| case["passed"] == true).count();
    assert_eq!(passed, 6, "{ran:?}");
}

#[test]
fn scaffolds_in_sh_work_as_they_are() {
    scaffold("sh", |_, _| ());
}

#[test]
fn scaffolds_in_python_work_as_they_are() {
    scaffold("python", |_, _| ());
}

#[test]
fn scaffolds_in_node_work_as_they_are() {
    scaffold("node", |_, _| ());
}

#[test]
fn scaffolds_in_bash_work_as_they_are() {
    scaffold("bash", |_, _| ());
}

#[test]
fn scaffolds_in_rust_work_once_they_are_built() {
    let shared = tempfile::tempdir().unwrap();
    scaffold("rust", |lab, name| build(lab, name, shared.path()));
}

/// Builds a scaffold in Rust; their dependencies are built once.
fn build(lab: &Lab, name: &str, shared: &Path) {
    let folder = lab.home.join(".ollm/hooks").join(name);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--offline", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(shared);
    assert!(cargo.status().unwrap().success());
    let target = folder.join("target/release");
    fs::create_dir_all(&target).unwrap();
    fs::copy(shared.join("release").join(name), target.join(name)).unwrap();
}

/// Hooks by intent in a language: their golden cases pass, and odd calls get the answer they should.
fn by_intent(language: &str, build: impl Fn(&Lab, &str)) {
    let lab = Lab::new();
    lab.write("project/NOTES.md", "say \"hi\" \\ to\tall\nand $(touch pwned) go\n");
    for (name, options) in [
        ("files", &["--deny-files", "*.env", "--deny-files", "~/.ssh/**", "--deny-files", "it's \"odd\".txt"][..]),
        ("commands", &["--deny-commands", "git push --force*", "--deny-commands", "say [it] %d^"]),
        ("ask", &["--ask-before", "npm publish"]),
        ("log", &["--log"]),
        ("notes", &["--context-from", "NOTES.md"]),
    ] {
        let ran = lab.run(&[&["hook", "new", name, "--in", language], options].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        build(&lab, name);
    }
    let ran = lab.run(&["hook", "test", "--all"]);
    assert_eq!((ran.code, ran.stdout.contains("14 passed, 0 failed")), (0, true), "{ran:?}");
    let call = |tool: &str, args: Value| {
        let ran = lab.event(json!({"event": "before_tool", "data": {"tool_name": tool, "args": args}}).to_string());
        ran.answer()["flow"].as_str().unwrap().to_owned()
    };
    let shell = |command: &str| call("shell", json!({ "command": command }));
    for command in [
        "git -C x push origin --force-with-lease",
        "cd x\n/usr/bin/git push \\\n --force",
        "echo $(git push --force)",
        "git push -o 'a;b' \"--force\"",
        "sudo sh -c 'git push --force'",
        "cat sub/.ENV",
        "cp --from=a.env x",
        "say '[it]' \"%d^\"",
        "head ~/.ssh/id_rsa",
        "cat 'it'\\''s \"odd\".txt'",
    ] {
        assert_eq!(shell(command), "block", "{language}: {command}");
    }
    for command in ["git push", "git commit -m 'git push --force'", "cat environment *", "ls .env.example", "say it x"]
    {
        assert_eq!(shell(command), "no_opinion", "{language}: {command}");
    }
    assert_eq!(shell("cd a; npm publish --tag x"), "ask", "{language}");
    let ran = lab.event(shell_event("npm publish"));
    assert!(ran.hook("ask").get("warnings").is_none(), "{language}: {ran:?}");
    assert_eq!(call("Read", json!({"file_path": "a\nb/*.env"})), "block", "{language}");
    assert_eq!(call("edit", json!({"filePath": "x", "newString": ".env"})), "no_opinion", "{language}");
    assert_eq!(
        shell(&format!("echo {}", "x".repeat(200_000))),
        "block",
        "{language}: what cannot be looked at is refused"
    );
    let told = lab.run(&["hook", "run", "before_agent", "--data", r#"{"prompt": "x"}"#]).answer();
    let notes = told["systemMessage"].as_str().unwrap();
    assert_eq!(notes.trim_end(), "say \"hi\" \\ to\tall\nand $(touch pwned) go", "{language}");
    assert!(!lab.project.join("pwned").exists());
    lab.run(&["hook", "run", "after_tool", "--data", r#"{"tool_name": "x\"y"}"#]);
    let log = fs::read_to_string(lab.home.join(".local/state/ollm-hooks/log.log")).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{language}: {log}");
}

#[test]
fn a_hook_by_intent_in_sh_does_what_it_says() {
    by_intent("sh", |_, _| ());
}

#[test]
fn a_hook_by_intent_in_bash_does_what_it_says() {
    by_intent("bash", |_, _| ());
}

#[test]
fn a_hook_by_intent_in_python_does_what_it_says() {
    by_intent("python", |_, _| ());
}

#[test]
fn a_hook_by_intent_in_node_does_what_it_says() {
    by_intent("node", |_, _| ());
}

#[test]
fn a_hook_by_intent_in_rust_does_what_it_says() {
    let shared = tempfile::tempdir().unwrap();
    by_intent("rust", |lab, name| build(lab, name, shared.path()));
}

#[test]
fn a_hook_by_intent_is_shown_with_what_to_do_next() {
    let lab = Lab::new();
    let words = ["hook", "new", "no-env", "--deny-files", "*.env", "--in", "sh"];
    let made = lab.run(&words);
    let script = fs::read_to_string(lab.home.join(".ollm/hooks/no-env.sh")).unwrap();
    let declared = fs::read_to_string(lab.home.join(".ollm/hooks/no-env.json")).unwrap();
    insta::assert_snapshot!(format!("{}{declared}{script}", screens::shown(&lab, &words, &made)));
    let wrong = lab.run(&["hook", "new", "braces", "--deny-files", "*.{env,pem}"]);
    assert_eq!((wrong.code, wrong.stderr.contains("give the option once for each pattern")), (64, true), "{wrong:?}");
    let pipe = lab.run(&["hook", "new", "pipe", "--deny-commands", "curl * | sh*"]);
    assert_eq!((pipe.code, pipe.stderr.contains("is not the words of one command")), (64, true), "{pipe:?}");
    let both = lab.run(&["hook", "new", "both", "--log", "--deny-files", "*.env"]);
    assert_eq!(both.code, 64, "{both:?}");
}

#[test]
fn a_try_is_no_run_for_rate_limits() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks:\n  rateLimit:\n    perMinute: 1\n");
    lab.user_hook("before_tool", "slow", "exit 0", r#", "rateLimit": {"perMinute": 1}"#);
    for case in ["one", "two"] {
        lab.user(&format!("cases/slow/{case}.json"), r#"{"event": "before_tool", "expect": {"skipped": null}}"#);
    }
    let ran = lab.run(&["hook", "test", "slow", "--all"]);
    assert_eq!((ran.code, ran.stdout.contains("2 passed, 0 failed")), (0, true), "{ran:?}");
    assert_eq!(lab.event(shell_event("ls")).hook("slow")["status"], "ok", "what was tried is no run");
    assert_eq!(lab.event(shell_event("ls")).skip("slow")["reason"], "rate_limited");
    assert_eq!(lab.run(&["hook", "test", "slow", "--all"]).code, 0);
}

#[test]
fn a_scaffold_in_a_project_waits_for_approval() {
    let lab = Lab::new();
    let made = lab.run(&["hook", "new", "guard", "--project"]);
    assert!(made.stderr.contains("ollm hook trust guard && ollm hook test guard"), "{made:?}");
    let ran = lab.run(&["hook", "test", "guard"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    lab.approve("guard");
    assert_eq!(lab.run(&["hook", "test", "guard"]).code, 0);
}

#[test]
fn a_scaffold_overwrites_nothing() {
    let lab = Lab::new();
    lab.user("guard.py", "mine");
    let ran = lab.run(&["hook", "new", "guard"]);
    assert_eq!((ran.code, ran.stderr.contains("guard.py is there already")), (64, true), "{ran:?}");
    assert_eq!(fs::read_to_string(lab.home.join(".ollm/hooks/guard.py")).unwrap(), "mine");
    assert!(!lab.home.join(".ollm/hooks/guard.json").exists());
    for name in ["../guard", "", "-guard", "a b"] {
        assert_eq!(lab.run(&["hook", "new", "--", name]).code, 64, "{name}");
    }
}

fn chatty() -> Lab {
    let lab = Lab::new();
    let script = "read event; echo looking >&2; printf '{\"continue\": false, \"systemMessage\": \"not this\"}'";
    lab.user_hook("before_tool", "chatty", script, r#", "matcher": "write_*""#);
    lab
}

#[test]
fn what_passed_between_us_and_a_hook_is_shown() {
    let lab = chatty();
    let shown = lab.screen(&lab.run(&["hook", "test", "chatty", "--data", r#"{"args": {"path": "x"}}"#]));
    insta::assert_snapshot!(regex_lite::Regex::new(r"after [0-9.]+ ms").unwrap().replace(&shown, "after … ms"));
}

#[test]
fn what_passed_between_us_and_a_hook_is_told_as_json() {
    let ran = chatty().run(&["hook", "test", "chatty", "--json"]);
    let answer = ran.answer();
    let stdin: Value = serde_json::from_str(answer["stdin"].as_str().unwrap()).unwrap();
    assert_eq!((&stdin["event"], &stdin["data"]["tool_name"]), (&json!("before_tool"), &json!("write_sample")));
    assert_eq!((&answer["stderr"], &answer["exit"]), (&json!("looking\n"), &json!(0)));
    assert_eq!((&answer["verdict"]["flow"], ran.code), (&json!("block"), 0));
}

#[test]
fn a_hook_that_does_not_fit_the_event_says_why_it_did_not_run() {
    let ran = chatty().run(&["hook", "test", "chatty", "--data", r#"{"tool_name": "shell"}"#]);
    assert!(ran.stdout.contains("did not run  matcher: `write_*` does not match `shell`"), "{ran:?}");
}

#[test]
fn the_sample_fits_the_matcher_and_the_file_patterns_of_the_hook() {
    let kinds = [
        ("fileEdited", "", "src/**/*.{ts,tsx}", "/file/path", "src/sample.ts"),
        ("before_tool", r#", "matcher": "write_*""#, "docs/[a-c]?.md", "/args/path", "docs/aa.md"),
        ("git_commit", "", "*.lock", "/files/0", "sample.lock"),
        ("before_agent", "", "/build.rs", "/path", "build.rs"),
        ("file_created", "", "!*.md", "/file/path", "src/main.rs"),
    ];
    for (event, matcher, pattern, pointer, path) in kinds {
        let lab = Lab::new();
        let more = format!(r#"{matcher}, "filePatterns": ["{pattern}"], "dialect": "ollm""#);
        lab.user_hook(event, "picky", "printf '{\"continue\": true}'", &more);
        let ran = lab.run(&["hook", "test", "picky", "--json"]);
        assert_eq!((ran.code, &ran.answer()["verdict"]["status"]), (0, &json!("ok")), "{pattern}: {ran:?}");
        let stdin: Value = serde_json::from_str(ran.answer()["stdin"].as_str().unwrap()).unwrap();
        assert_eq!(stdin["data"].pointer(pointer), Some(&json!(path)), "{pattern}: {stdin:#}");
        let own = lab.run(&[
            "hook",
            "test",
            "picky",
            "--json",
            "--data",
            r#"{"path": "no/such", "files": [], "args": {}, "file": {}}"#,
        ]);
        assert_eq!(own.code, 0, "what a person gives counts: {own:?}");
    }
}

#[test]
fn a_failed_hook_is_a_finding() {
    let lab = Lab::with_hook("before_tool", "broken", "echo no >&2; exit 3");
    let ran = lab.run(&["hook", "test", "broken"]);
    assert_eq!((ran.code, ran.stdout.contains("exited with status 3: no")), (1, true), "{ran:?}");
}

#[test]
fn a_case_that_differs_or_makes_no_sense_is_a_finding_that_says_what() {
    let lab = chatty();
    let case = |expect: Value| json!({"event": "before_tool", "data": {"tool_name": "write_file"}, "expect": expect});
    for (name, content) in [
        ("a-right", format!("// it says why\n{}", case(json!({"flow": "block", "reason": "not"})))),
        ("b-wrong", case(json!({"flow": "no_opinion"})).to_string()),
        ("c-broken", "{".to_owned()),
        ("d-unknown", case(json!({"flwo": "block"})).to_string()),
        ("e-nothing", r#"{"event": "before_tool"}"#.to_owned()),
        ("f-event", r#"{"event": "before_tol", "expect": {}}"#.to_owned()),
        ("g-skipped", json!({"event": "after_tool", "expect": {"status": null}}).to_string()),
    ] {
        lab.user(&format!("cases/chatty/{name}.json"), content);
    }
    insta::assert_snapshot!(lab.screen(&lab.run(&["hook", "test", "chatty", "--all"])));
}

#[test]
fn a_hook_is_tried_again_when_its_script_changes() {
    let lab = Lab::with_hook("before_tool", "changing", "printf '{\"continue\": true}'");
    let mut child = start(lab.ollm(&["hook", "test", "changing", "--watch", "--json"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let flow = |line: &String| line.contains("\"flow\"");
    assert!(lines.find(flow).unwrap().contains("no_opinion"));
    lab.user("changing.sh", "printf '{\"continue\": false}'; : longer than before");
    assert!(lines.find(flow).unwrap().contains("block"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_hook_is_tried_again_when_its_broken_declaration_is_mended_in_place() {
    let lab = Lab::with_hook("before_tool", "changing", "printf '{\"continue\": true}'");
    let mut child = start(lab.ollm(&["hook", "test", "changing", "--watch", "--json"]));
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut waits = || assert!(told.find(|line| line.contains("waiting for a change")).is_some());
    waits();
    lab.user("changing.json", "{");
    waits();
    lab.user("changing.json", crate::lab::hook_file("before_tool", "changing", ", \"timeout\": 4321"));
    waits();
    assert_eq!(lines.by_ref().filter(|line| line.contains("\"flow\"")).take(2).count(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_hook_tried_on_an_event_it_is_not_for_says_so() {
    let lab = chatty();
    let ran = lab.run(&["hook", "test", "chatty", "--event", "session_end", "--json"]);
    assert_eq!(ran.answer()["skipDetail"], "it is for before_tool, not for session_end");
    let ran = lab.run(&["hook", "test", "chatty", "--event", "session_end"]);
    assert!(ran.stdout.contains("matcher: it is for before_tool, not for session_end"), "{ran:?}");
}

#[test]
fn a_hook_for_it_is_started_by_hand_and_alone() {
    let lab = Lab::new();
    lab.user_hook("userTriggered", "tidy", "cat > tidied", "");
    lab.user_hook("user_triggered", "other", "touch other", "");
    let ran = lab.run(&["hook", "trigger", "tidy", "--data", r#"{"deep": true}"#, "--json"]);
    assert_eq!((ran.code, ran.hook_count(), ran.stderr.contains("guard")), (0, 1, false), "{ran:?}");
    let heard: Value = serde_json::from_slice(&fs::read(lab.project.join("tidied")).unwrap()).unwrap();
    let event = &heard["params"]["event"];
    assert_eq!((&event["type"], &event["data"]["data"]), (&json!("userTriggered"), &json!({"deep": true})));
    assert!(!lab.project.join("other").exists());
}

#[test]
fn a_hook_for_other_events_is_not_started_by_hand() {
    let ran = chatty().run(&["hook", "trigger", "chatty"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("hook `chatty` is for before_tool, not for user_triggered"), "{ran:?}");
}

#[test]
fn a_case_of_a_hook_that_did_not_run_is_a_finding() {
    let lab = Lab::new();
    lab.user("gone.json", crate::lab::hook_file("before_tool", "gone", ""));
    lab.user("cases/gone/passes.json", r#"{"event": "before_tool", "expect": {"flow": "no_opinion"}}"#);
    let ran = lab.run(&["hook", "test", "gone", "--all"]);
    assert_eq!((ran.code, ran.stdout.contains("it did not run: missing")), (1, true), "{ran:?}");
    let ran = lab.run(&["hook", "test", "gone"]);
    assert_eq!((ran.code, ran.stdout.contains("did not run  missing")), (1, true), "{ran:?}");
}

#[test]
fn a_scaffold_for_an_event_without_tools_runs_too() {
    let lab = Lab::new();
    lab.run(&["hook", "new", "greet", "--in", "sh", "--event", "session_start"]);
    assert_eq!(lab.run(&["hook", "run", "session_start"]).hook("greet")["status"], "ok");
}

#[test]
fn a_scaffold_comes_with_an_event_to_pass_through_it() {
    let lab = Lab::new();
    lab.run(&["hook", "new", "no-force", "--in", "sh"]);
    let event = fs::read(lab.home.join(".ollm/hooks/cases/no-force.event.json")).unwrap();
    assert_eq!(lab.event(event).hook("no-force")["status"], "blocked");
    assert_eq!(lab.run(&["hook", "test", "no-force", "--all"]).code, 0, "it is no case");
}

#[test]
fn a_scaffold_for_our_shell_stands_in_the_way_of_every_agents_shell() {
    let lab = Lab::new();
    lab.run(&["hook", "new", "no-force", "--in", "sh"]);
    for tool in ["shell", "Bash", "run_shell_command", "Execute"] {
        let data = json!({"tool_name": tool, "args": {"command": "git push --force"}});
        let ran = lab.event(json!({"event": "before_tool", "data": data}).to_string());
        assert_eq!((ran.code, &ran.hook("no-force")["status"]), (2, &json!("blocked")), "{tool} {ran:?}");
        let data = data.to_string();
        let planned = lab.run(&["hook", "plan", "before_tool", "--data", &data, "--json"]);
        assert!(planned.answer()["stages"].to_string().contains("no-force"), "{tool} {planned:?}");
        let tried = lab.run(&["hook", "test", "no-force", "--data", &data, "--json"]);
        assert_eq!(tried.answer()["verdict"]["status"], "blocked", "{tool} {tried:?}");
    }
    let data = json!({"tool_name": "Write", "args": {"command": "git push --force"}});
    let ran = lab.event(json!({"event": "before_tool", "data": data}).to_string());
    assert_eq!((ran.code, ran.hook_count()), (0, 0), "{ran:?}");
}

#[test]
fn a_plain_command_finds_its_script_beside_the_hook_file() {
    let lab = Lab::new();
    lab.user("tidy.sh", "touch \"$OLLM_PROJECT_DIR/tidied\"");
    let action = json!({"type": "runCommand", "command": "sh tidy.sh"});
    lab.user("tidy.json", json!({"name": "tidy", "eventType": "promptSubmit", "action": action}).to_string());
    let ran = lab.run(&["hook", "run", "before_agent"]);
    assert_eq!(ran.hook("tidy")["status"], "ok", "{ran:?}");
    assert!(lab.project.join("tidied").exists());
}
