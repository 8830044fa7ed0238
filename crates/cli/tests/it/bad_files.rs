//! Hook files that cannot be understood: the message names file, line, column, field, value and the way out, and
//! everything else keeps working.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::lab::{Lab, Ran, finish, shell_event};

/// Files and what is wrong with them.
const TEXTS: &[(&str, &str)] = &[
    ("broken", "{\n  \"hooks\": {\n    \"before_tool\": [{\"name\": \"x\", \"command\": }]\n  }\n}\n"),
    ("half", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\""),
    ("empty", ""),
    ("list", "[1, 2]"),
    ("text", "\"hooks\""),
    ("no-hooks", "{\"hook\": {}}"),
    ("comma", "{\"hooks\": {\"before_tool\": [],}}"),
    ("comment", "{\n  /* guards\n  \"hooks\": {}\n}"),
    ("not-a-list", "{\"hooks\": {\"before_tool\": {\"name\": \"x\", \"command\": \"sh\"}}}"),
    ("unknown-event", "{\"hooks\": {\n  \"before_tol\": [{\"name\": \"x\", \"command\": \"sh\"}]\n}}"),
    (
        "unknown-dialect",
        "{\"hooks\": {\"before_tool\": [\n  {\"name\": \"x\", \"command\": \"sh\", \"dialect\": \"klingon\"}]}}",
    ),
    (
        "wrong-types",
        "{\"hooks\": {\"before_tool\": [\n  {\"name\": [], \"command\": \"sh\", \"args\": {}, \"timeout\": \"soon\", \"parallel\": 3}]}}",
    ),
    ("no-command", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\"}]}}"),
    ("shell-word", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\", \"command\": \"node;x\"}]}}"),
    ("shell-line", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\", \"command\": \"rm -rf /\"}]}}"),
    ("not-listed", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\", \"command\": \"ruby\"}]}}"),
    (
        "outside",
        "{\"hooks\": {\"before_tool\": [{\"name\": \"x\", \"command\": \"sh\", \"args\": [\"../../evil.sh\"]}]}}",
    ),
    ("bad-matcher", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\", \"command\": \"sh\", \"matcher\": \"re:(\"}]}}"),
    ("zero-timeout", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\", \"command\": \"npx\", \"timeout\": 0}]}}"),
    (
        "unknown-key",
        "{\"hooks\": {\"before_tool\": [{\"name\": \"fine\", \"command\": \"sh\", \"args\": [\"good.sh\", \"a\"], \"timout\": 5}]}}",
    ),
    (
        "coerced",
        "{\"hooks\": {\"before_tool\": [{\"name\": \"fine-too\", \"command\": \"sh\", \"args\": [\"good.sh\", \"b\"], \"timeout\": \"25000\"}]}}",
    ),
    ("nul", "{\"hooks\": \u{0}}"),
    ("escapes", "{\"hooks\": {\"\\u001b[31mbefore_tool\u{202e}\": []}}"),
];

/// The same in YAML, and in the forms of one hook per file.
const FORMS: &[(&str, &str)] = &[
    ("tab.yaml", "hooks:\n\tbefore_tool: []\n"),
    ("twice.yaml", "hooks:\n  before_tool: []\n  before_tool: []\n"),
    (
        "bomb.yaml",
        "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: [*d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
    ),
    ("two.yml", "hooks: {}\n---\nhooks: {}\n"),
    ("quote.yaml", "hooks:\n  before_tool:\n    - command: \"sh\n"),
    ("empty.yaml", "# nothing but a comment\n"),
    ("list.yaml", "- command: sh\n"),
    ("typo.yaml", "hooks:\n  before_tol:\n    - command: sh\n"),
    ("wrong.yaml", "hooks:\n  before_tool:\n    - command: sh\n      args: {a: b}\n      rateLimit: often\n"),
    ("require.yaml", "before_tool:\n  - command: npx\n    requires:\n      command: [git]\n"),
    ("rate.yaml", "before_tool:\n  - command: npx\n    rateLimit:\n      perMinute: 0\n"),
    ("scope.yaml", "before_tool:\n  - command: npx\n    scope: mian\n"),
    ("address.yaml", "before_tool:\n  - action: {type: http, url: ftp://example.com}\n"),
    ("closest.yaml", "evenType: fileEdited\nactoin:\n  type: askAgent\n"),
    (
        "event.json",
        "{\n  \"eventType\": \"fileEditted\",\n  \"action\": {\"type\": \"askAgent\", \"prompt\": \"x\"}\n}",
    ),
    ("no-event.json", "{\n  \"name\": \"x\",\n  \"action\": {\"type\": \"askAgent\", \"prompt\": \"x\"}\n}"),
    ("no-type.json", "{\n  \"eventType\": \"fileEdited\",\n  \"action\": {\"prompt\": \"x\"}\n}"),
    ("type.json", "{\n  \"eventType\": \"fileEdited\",\n  \"action\": {\"type\": \"askAgnet\", \"prompt\": \"x\"}\n}"),
    (
        "both.json",
        "{\n  \"eventType\": \"fileEdited\",\n  \"command\": \"npx\",\n  \"action\": {\"type\": \"askAgent\", \"prompt\": \"x\"}\n}",
    ),
    (
        "run.kiro.hook",
        "{\n  \"when\": {\"type\": \"fileEdited\"},\n  \"then\": {\"type\": \"runCommand\", \"command\": \"npx eslint src/\"}\n}",
    ),
    (
        "rm.kiro.hook",
        "{\n  \"when\": {\"type\": \"agentStop\"},\n  \"then\": {\"type\": \"runCommand\", \"command\": \"rm -rf /\"}\n}",
    ),
    (
        "then.kiro.hook",
        "{\n  \"when\": {\"type\": \"fileEdited\", \"pattern\": [\"*.ts\"]},\n  \"then\": {\"type\": \"askAgent\", \"prompt\": \"x\"}\n}",
    ),
    ("none.kiro.hook", "when:\n  type: fileEdited\n  patterns: []\nthen: {type: askAgent, prompt: x}\n"),
];

/// A lab with one good hook; `name`.json holds what is bad.
fn lab_with(name: &str, content: impl AsRef<[u8]>) -> Lab {
    let lab = Lab::with_hook("before_tool", "good", "printf '{\"continue\": true, \"systemMessage\": \"still here\"}'");
    lab.user(&format!("{name}.json"), content);
    lab
}

/// The good hook still runs, and both commands speak of the bad file; what `hook list` says of it.
fn listed(lab: &Lab, name: &str) -> String {
    let ran = finish(lab.ollm_in_little_memory(&["hook", "run"]), shell_event("ls").as_bytes());
    assert_eq!(ran.hook("good")["status"], "ok", "{name}");
    let file = format!("/{name}.json");
    assert!(
        ran.stderr.lines().any(|line| line.starts_with("ollm: /") && line.contains(&file)),
        "{name}: {}",
        ran.stderr
    );
    let list = finish(lab.ollm_in_little_memory(&["hook", "list"]), b"");
    // What is only a warning is loaded.
    assert_eq!(list.code, i32::from(list.stderr.contains("error[")), "{list:?}");
    assert!(list.stdout.contains("\ngood  "), "{name}: {}", list.stdout);
    assert!(list.stderr.contains(&file), "{name}: {}", list.stderr);
    lab.neutral(&list.stderr)
}

#[test]
fn bad_files_are_explained() {
    let said: Vec<String> = TEXTS
        .iter()
        .map(|(name, content)| {
            let lab = lab_with(name, content);
            format!("{content:?}\n{}", listed(&lab, name))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn one_line_on_standard_error_names_the_place_and_the_way_out() {
    let lab = lab_with("broken", TEXTS[0].1);
    let ran = lab.event(shell_event("ls"));
    let expected =
        format!("ollm: {}/.ollm/hooks/broken.json:3:46: it is not valid JSON: expected a value", lab.home.display());
    assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[test]
fn a_file_that_is_not_text_is_refused_with_its_place() {
    let lab = lab_with("latin", b"{\n \"hooks\": {\"caf\xe9\": []}}");
    let said = listed(&lab, "latin");
    assert!(said.contains("it is not UTF-8 text\n  --> LAB/home/.ollm/hooks/latin.json:2:16\n"), "{said}");
    assert!(said.contains("save it as UTF-8"), "{said}");
}

#[test]
fn a15_a_huge_file_is_not_read() {
    let lab = lab_with("huge", "");
    File::options().write(true).open(lab.home.join(".ollm/hooks/huge.json")).unwrap().set_len(200 << 20).unwrap();
    let said = listed(&lab, "huge");
    assert!(said.contains("it has 209715200 bytes, at most 4194304 are read"), "{said}");
}

#[test]
fn a15_a_file_nested_ten_thousand_deep_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{{\"hooks\": {}1{}}}", open.repeat(10_000), close.repeat(10_000));
        let said = listed(&lab_with("deep", deep), "deep");
        assert!(said.contains("values are nested too deeply") && said.contains("nest less deeply"), "{said}");
        assert!(said.len() < 2000, "{} bytes", said.len());
    }
}

#[test]
fn links_that_lead_nowhere_or_in_circles_are_named() {
    let lab = lab_with("x", "{\"hooks\": {}}");
    let folder = lab.home.join(".ollm/hooks");
    std::fs::remove_file(folder.join("x.json")).unwrap();
    symlink("circle.json", folder.join("circle.json")).unwrap();
    symlink("nothing", folder.join("dangling.json")).unwrap();
    let said = format!("{}{}", listed(&lab, "circle"), listed(&lab, "dangling"));
    assert!(said.contains("it is a link to nothing"), "{said}");
    assert!(said.contains("circle.json"), "{said}");
}

#[test]
fn a_folder_or_pipe_in_place_of_a_file_is_named_and_not_waited_for() {
    let lab = lab_with("x", "{\"hooks\": {}}");
    std::fs::create_dir(lab.home.join(".ollm/hooks/folder.json")).unwrap();
    lab.fifo("home/.ollm/hooks/pipe.json");
    assert!(listed(&lab, "folder").contains("not a regular file"));
    assert!(listed(&lab, "pipe").contains("not a regular file"));
}

#[test]
fn a_script_behind_links_in_circles_is_a_hook_that_does_not_run() {
    let lab = lab_with("loop", crate::lab::hook_file("before_tool", "loop", ""));
    symlink("loop.sh", lab.home.join(".ollm/hooks/loop.sh")).unwrap();
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("good")["status"], "ok");
    assert!(ran.stderr.contains("loop"), "{}", ran.stderr);
}

#[test]
fn an_id_that_is_taken_is_refused_and_both_places_named() {
    let lab = Lab::new();
    lab.user("good.sh", "printf '{\"continue\": true}'");
    let entry = |name: &str| json!({"id": "same", "name": name, "command": "sh", "args": ["good.sh"]});
    lab.user("a.json", json!({"hooks": {"before_tool": [entry("first")]}}).to_string());
    lab.user("b.json", json!({"hooks": {"before_tool": [entry("second")]}}).to_string());
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("first")["id"], "same");
    assert_eq!(ran.answer()["hooks"].as_array().unwrap().len(), 1);
    let expected = format!(
        "{0}/b.json:1:32: id `same` is taken by hooks.before_tool[0] in {0}/a.json",
        lab.home.join(".ollm/hooks").display()
    );
    assert!(ran.stderr.contains(&expected), "{expected}\n{}", ran.stderr);
    let list = lab.run(&["hook", "list"]);
    assert!(list.stderr.contains("id `same` is taken by"), "{}", list.stderr);
}

#[test]
fn the_same_name_twice_gets_an_id_of_its_own() {
    let lab = Lab::new();
    lab.user("good.sh", "printf '{\"continue\": true}'");
    let entry = |word: &str| json!({"name": "twin", "command": "sh", "args": ["good.sh", word]});
    lab.user("a.json", json!({"hooks": {"before_tool": [entry("a"), entry("b"), entry("b")]}}).to_string());
    let answer = lab.event(shell_event("ls")).answer();
    let ids: Vec<_> = answer["hooks"].as_array().unwrap().iter().map(|hook| hook["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["user:a.json:before_tool:twin", "user:a.json:before_tool:twin#2"]);
    let skip = &answer["skipped"][0];
    assert_eq!((&skip["id"], &skip["reason"]), (&json!("user:a.json:before_tool:twin#3"), &json!("duplicate")));
    assert!(skip["detail"].as_str().unwrap().contains("hook `user:a.json:before_tool:twin#2`, declared in "), "{skip}");
    let ran = lab.run(&["hook", "show", "twin"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("3 hooks are named `twin`"), "{}", ran.stderr);
}

#[test]
fn a_hook_whose_interpreter_would_run_the_event_as_code_is_refused() {
    for command in [
        r#""sh""#,
        r#""/bin/sh""#,
        r#""sh", "args": ["-s"]"#,
        r#""bash", "args": ["-"]"#,
        r#""sh", "args": ["-x"]"#,
        r#""python3""#,
        r#""node", "args": ["-"]"#,
    ] {
        let lab =
            lab_with("code", format!(r#"{{"hooks": {{"before_tool": [{{"name": "code", "command": {command}}}]}}}}"#));
        let ran = lab.event(shell_event("$(touch pwned)"));
        assert!(!lab.project.join("pwned").exists(), "{command}");
        assert!(ran.stderr.contains("code.json:1:"), "{command}: {}", ran.stderr);
    }
}

#[test]
fn bad_files_of_every_form_are_explained() {
    let said: Vec<String> = FORMS
        .iter()
        .map(|(name, content)| {
            let lab = Lab::with_hook("before_tool", "good", "printf '{\"continue\": true}'");
            lab.user(name, content);
            let ran = lab.event(shell_event("ls"));
            assert_eq!(ran.hook("good")["status"], "ok", "{name}");
            assert!(ran.stderr.contains(&format!("/{name}")), "{name}: {}", ran.stderr);
            let list = finish(lab.ollm_in_little_memory(&["hook", "list"]), b"");
            assert!(list.stdout.contains("\ngood  "), "{name}: {}", list.stdout);
            format!("=== {name}\n{}", lab.neutral(&list.stderr))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn yaml_of_any_size_and_depth_is_refused_in_time() {
    let deep = format!("hooks: {}", "[".repeat(100_000));
    let wide = format!("hooks:\n  before_tool:\n{}", "    - command: npx\n".repeat(100_000));
    for (name, content) in
        [("deep.yaml", deep.into_bytes()), ("wide.yaml", wide.into_bytes()), ("bytes.yml", b"a: \xff".to_vec())]
    {
        let lab = Lab::with_hook("before_tool", "good", "printf '{\"continue\": true}'");
        lab.user(name, content);
        let ran = finish(lab.ollm_in_little_memory(&["hook", "run"]), shell_event("ls").as_bytes());
        assert_eq!(ran.hook("good")["status"], "ok", "{name}");
        assert!(ran.stderr.contains(&format!("/{name}")), "{name}: {}", ran.stderr);
    }
    let lab = Lab::with_hook("before_tool", "good", "printf '{\"continue\": true}'");
    File::options().write(true).open(lab.user("large.yaml", "")).unwrap().set_len(200_000_000).unwrap();
    let ran = finish(lab.ollm_in_little_memory(&["hook", "run"]), shell_event("ls").as_bytes());
    assert!(ran.stderr.contains("large.yaml: it has 200000000 bytes"), "{}", ran.stderr);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_read_whole_or_refused() {
    let lab = Lab::with_hook("before_tool", "steady", "printf '{\"continue\": true}'");
    let (file, stop) = (lab.home.join(".ollm/hooks/restless.json"), AtomicBool::new(false));
    // One is much longer than the other, so that half of one would be seen.
    let version = |name: &str, filling: usize| {
        let (filling, action) = ("x".repeat(filling), json!({"type": "askAgent", "prompt": name}));
        json!({"hooks": {"before_tool": [{"description": filling, "name": name, "action": action}]}}).to_string()
    };
    let versions = [version("short", 1), version("long", 300_000)];
    std::fs::write(&file, &versions[0]).unwrap();
    let readings: Vec<Ran> = std::thread::scope(|scope| {
        scope.spawn(|| {
            for text in versions.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                std::fs::write(&file, text).unwrap();
            }
        });
        let readings = (0..40).map(|_| lab.event(shell_event("ls"))).collect();
        stop.store(true, Ordering::Relaxed);
        readings
    });
    for ran in readings {
        assert_eq!((ran.code, &ran.hook("steady")["status"]), (0, &json!("ok")), "{ran:?}");
        let answer = ran.answer();
        let mut names = answer["hooks"].as_array().unwrap().iter().map(|hook| &hook["name"]);
        let whole = names.any(|name| name == "short" || name == "long");
        assert!(whole || ran.stderr.contains("restless.json"), "neither read nor refused: {ran:?}");
    }
}

#[test]
fn every_bad_file_at_once_hides_nothing() {
    let lab = lab_with("latin", b"\xff");
    for (name, content) in TEXTS {
        lab.user(&format!("{name}.json"), content);
    }
    let list = lab.run(&["hook", "list"]);
    for (name, _) in TEXTS {
        assert!(list.stderr.contains(&format!("/{name}.json")), "{name}");
    }
    assert!(list.stdout.contains("\ngood  "), "{list:?}");
    assert!(!list.stdout.contains("no hooks of your own"), "{list:?}");
    let json = lab.run(&["hook", "list", "--json"]);
    assert_eq!(json.answer().as_array().unwrap().iter().filter(|hook| hook["source"] == "user").count(), 3);
}

#[test]
fn bad_agent_settings_are_explained_and_hide_nothing() {
    let lab = Lab::with_hook("before_tool", "good", "printf '{\"continue\": true}'");
    lab.write(
        "home/.config/agent/settings.json",
        "{\"hooks\": {\"PreToolUse\": [{\"command\": \"true\"}], \"Nonsense\": []}, \"model\": 5}",
    );
    lab.write(
        "home/.config/cli-agent/settings.json",
        "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"echo {{tool_name\"}]}]}}",
    );
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("good")["status"], "ok");
    let list = lab.run(&["hook", "list"]);
    insta::assert_snapshot!(lab.screen(&list));
}

#[test]
fn the_password_of_a_refused_address_is_shown_nowhere() {
    let lab = Lab::new();
    let long = format!("https://u:{}hunter2pw@example.com/x", "x".repeat(100));
    for (file, url) in [("short", "https://u:hunter2pw@example.com/x"), ("long", &long)] {
        let hook = json!({"name": file, "action": {"type": "http", "url": url}});
        lab.user(&format!("{file}.json"), json!({"hooks": {"before_tool": [hook]}}).to_string());
    }
    for arguments in [&["hook", "list"][..], &["hook", "list", "--json"], &["hook", "run", "before_tool"]] {
        let ran = lab.run(arguments);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("holds a user or password"), "{said}");
        assert!(!said.contains("hunter2pw") && !said.contains("u:xxx"), "{said}");
    }
}

#[test]
fn a_project_with_thousands_of_bad_files_costs_an_event_a_few_lines() {
    let lab = Lab::with_hook("before_tool", "good", "printf '{\"continue\": true}'");
    for at in 0..300 {
        lab.workspace(&format!("bad-{at}.json"), "{");
    }
    let ran = lab.event(shell_event("ls"));
    assert!(ran.stderr.lines().filter(|line| line.contains("bad-")).count() <= 10, "{}", ran.stderr);
    assert!(ran.stderr.contains("290 more problems") && ran.stderr.contains("`ollm hook list`"), "{}", ran.stderr);
    let list = lab.run(&["hook", "list"]);
    assert!((0..300).all(|at| list.stderr.contains(&format!("/bad-{at}.json"))));
}
