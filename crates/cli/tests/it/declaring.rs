//! Hook files changed from the command line, in the form they are written in.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, shell_event};
use crate::terminal::on_a_terminal;

const REFUSE: &str = "printf '{\"continue\": false, \"systemMessage\": \"no\"}'\n";

fn read(lab: &Lab, file: &str) -> String {
    fs::read_to_string(lab.home.join(".ollm/hooks").join(file)).unwrap()
}

#[test]
fn a_script_is_declared_and_runs() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    let arguments = ["hook", "add", "before_tool", "guard.sh", "--matcher", "shell", "--on-failure", "block"];
    let ran = lab.run(&arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "ollm: next: ollm hook test guard\n"), "{ran:?}");
    let file: Value = serde_json::from_str(&read(&lab, "guard.json")).unwrap();
    let entry =
        json!({"name": "guard", "command": "sh", "args": ["guard.sh"], "matcher": "shell", "onFailure": "block"});
    assert_eq!(file, json!({"hooks": {"before_tool": [entry]}}));
    assert_eq!(lab.event(shell_event("ls")).code, 2);
}

#[test]
fn the_command_that_the_list_gives_for_an_undeclared_script_declares_it() {
    let lab = Lab::new();
    lab.user("forgotten.py", "print('{\"continue\": true}')");
    let listed = lab.run(&["hook", "list"]);
    let text = format!("{}{}", listed.stdout, listed.stderr);
    let command = text.lines().find_map(|line| line.split_once("ollm hook add ")).map(|(_, rest)| rest.to_owned());
    let command = command.unwrap_or_else(|| panic!("{text}")).replace("EVENT", "before_tool");
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('`')).take(2).collect();
    assert_eq!(lab.run(&[&["hook", "add"], words.as_slice()].concat()).code, 0, "{command}");
    assert_eq!(lab.event(shell_event("ls")).hook("forgotten")["status"], "ok");
}

#[test]
fn a_program_from_elsewhere_is_declared_by_its_path_with_its_arguments() {
    let lab = Lab::new();
    let program = lab.write_executable("project/tools/check", "#!/bin/sh\ntest \"$1\" = --strict || exit 1\n");
    let ran = lab.run(&["hook", "add", "PreToolUse", "tools/check", "--file", "mine.yaml", "--", "--strict"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let yaml = read(&lab, "mine.yaml");
    assert!(yaml.contains(&program.display().to_string()) && yaml.contains("--strict"), "{yaml}");
    assert_eq!(lab.event(shell_event("ls")).hook("check")["status"], "ok");
}

#[test]
fn a_hook_is_added_beside_others_with_comments_and_order_kept() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    let before = "# mine\nhooks:\n  after_tool: # later\n    - name: log\n      command: sh\n      args: [guard.sh]\n";
    lab.user("all.yaml", before);
    assert_eq!(lab.run(&["hook", "add", "after_tool", "guard.sh", "--file", "all.yaml"]).code, 0);
    let after = read(&lab, "all.yaml");
    assert!(after.starts_with(before) && after.contains("name: guard"), "{after}");
}

#[test]
fn what_makes_no_sense_is_not_declared() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    for arguments in [
        &["before_tol", "guard.sh"][..],
        &["before_tool", "gone.sh"],
        &["before_tool", "guard.sh", "--timeout", "soon"],
        &["before_tool", "guard.sh", "--if", "data.("],
    ] {
        let ran = lab.run(&[&["hook", "add"], arguments].concat());
        assert!(ran.code == 64 || ran.code == 3, "{ran:?}");
        assert!(!lab.home.join(".ollm/hooks/guard.json").exists(), "{arguments:?}");
    }
}

#[test]
fn an_event_that_nobody_knows_is_the_same_mistake_everywhere() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    lab.user_hook("before_tool", "hook", REFUSE, "");
    for arguments in [
        &["hook", "run", "befor_tool"][..],
        &["hook", "plan", "befor_tool"],
        &["hook", "test", "hook", "--event", "befor_tool"],
        &["hook", "add", "befor_tool", "guard.sh"],
        &["hook", "new", "mine", "--event", "befor_tool"],
        &["trace", "list", "--event", "befor_tool"],
    ] {
        let ran = lab.run(arguments);
        assert_eq!(ran.code, 3, "{arguments:?}: {ran:?}");
        assert!(
            ran.stderr.starts_with("error[C006]: unknown event `befor_tool`; did you mean `before_tool`?"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_mistyped_event_is_sent_as_ones_own_and_said_to_look_like_another() {
    let lab = Lab::new();
    let hook = json!({"hooks": {"custom:befor_tool": [{"name": "own", "command": "sh", "args": ["guard.sh"]}]}});
    lab.user("guard.sh", REFUSE);
    lab.user("own.json", hook.to_string());
    let ran = lab.run(&["emit", "befor_tool", "--json"]);
    assert_eq!((ran.code, ran.hook_count()), (2, 1), "{ran:?}");
    assert!(ran.stderr.contains("did you mean `before_tool`? (`custom:befor_tool` is always your own)"), "{ran:?}");
    for unlike in ["custom:befor_tool", "deploy-to-staging", "session_start"] {
        assert_eq!(lab.run(&["emit", unlike, "--json"]).stderr, "", "{unlike}");
    }
}

#[test]
fn nothing_is_removed_where_nobody_can_be_asked() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    let ran = lab.run(&["hook", "remove", "guard"]);
    assert_eq!(ran.code, 64);
    let told = "error[U017]: user:guard.json:before_tool:guard stays: there is no terminal to ask on\n  \
                hint: `--yes` removes it without asking\n  hint: `--with-files` removes its own files, too\n";
    assert_eq!(ran.stderr, told);
    assert!(lab.home.join(".ollm/hooks/guard.json").exists());
}

#[test]
fn keys_are_set_and_taken_away_all_or_none() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    let text = "{\n  // what others rely on\n  \"hooks\": {\"before_tool\": [{\"name\": \"guard\", \"command\": \"sh\", \"args\": [\"guard.sh\"], \"priority\": \"low\"}]}\n}\n";
    lab.user("guard.json", text);
    let refused = lab.run(&["hook", "edit", "guard", "timeout=5000", "onFailure=perhaps"]);
    assert_eq!((refused.code, read(&lab, "guard.json")), (3, text.to_owned()), "{refused:?}");
    let ran = lab.run(&["hook", "edit", "guard", "timeout=5000", "matcher=shell|write_*", "--unset", "priority"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let after = read(&lab, "guard.json");
    assert!(after.contains("// what others rely on") && !after.contains("priority"), "{after}");
    let shown = lab.run(&["hook", "show", "guard", "--json"]).answer();
    assert_eq!((&shown["timeoutMs"], &shown["matcher"]), (&json!(5000.0), &json!("shell|write_*")));
    let ran = lab.run(&["hook", "edit", "guard", "--unset", "priority"]);
    assert!(ran.code == 0 && ran.stdout.ends_with("guard.json stays as it was\n"), "{ran:?}");
    assert_eq!(ran.stderr, "ollm: `user:guard.json:before_tool:guard` does not set `priority`\n");
    let told = lab.run(&["hook", "edit", "guard", "--unset", "priority", "--json"]).answer();
    assert_eq!((&told["changed"], read(&lab, "guard.json")), (&json!([]), after));
}

#[test]
fn without_keys_the_editor_opens_and_what_is_wrong_then_is_told() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    assert_eq!(lab.run(&["hook", "edit", "guard"]).code, 64, "no editor is named");
    let editor = lab.write_executable("breaks", "#!/bin/sh\necho '{' > \"$1\"\n");
    let lab = lab.set("EDITOR", editor.to_str().unwrap());
    let ran = lab.run(&["hook", "edit", "guard"]);
    assert_eq!((ran.code, ran.stderr.contains("guard.json")), (1, true), "{ran:?}");
}

#[test]
fn a_hook_is_removed_from_its_file_and_the_others_stay() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    let entry = |name: &str| format!("    - name: {name} # {name}\n      command: sh\n      args: [guard.sh]\n");
    lab.user("all.yaml", format!("hooks:\n  before_tool:\n{}{}", entry("one"), entry("two")));
    let asked = lab.run(&["hook", "remove", "one"]);
    assert_eq!((asked.code, asked.stderr.contains("--yes")), (64, true), "{asked:?}");
    assert_eq!(lab.run(&["hook", "remove", "one", "--yes"]).code, 0);
    let after = read(&lab, "all.yaml");
    assert!(!after.contains("one") && after.contains("name: two # two"), "{after}");
    assert!(lab.home.join(".ollm/hooks/guard.sh").exists());
    assert_eq!(lab.run(&["hook", "remove", "builtin:self-protection", "--yes"]).code, 64);
}

#[test]
fn an_agent_declares_nothing() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE).set("CLAUDECODE", "1");
    for arguments in [
        &["hook", "add", "before_tool", "guard.sh", "--name", "x"][..],
        &["hook", "edit", "guard", "timeout=1"],
        &["hook", "remove", "guard", "--yes"],
    ] {
        assert_eq!(lab.run(arguments).code, 4, "{arguments:?}");
    }
}

#[test]
fn a_file_of_one_hook_is_converted_there_and_back() {
    let lab = Lab::new();
    let old = json!({
        "name": "tests", "version": "1.0.0", "when": {"type": "fileEdited", "patterns": ["*.rs"]},
        "then": {"type": "askAgent", "prompt": "Run the tests"},
    });
    let file = lab.write("project/tests.kiro.hook", format!("{old:#}"));
    let modern = lab.run(&["hook", "convert", "tests.kiro.hook"]);
    assert_eq!(modern.code, 0, "{modern:?}");
    let converted: Value = serde_json::from_str(&modern.stdout).unwrap();
    assert_eq!((&converted["eventType"], &converted["action"]["type"]), (&json!("fileEdited"), &json!("askAgent")));
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{old:#}"), "printing changes nothing");
    assert_eq!(lab.run(&["hook", "convert", "tests.kiro.hook", "--write"]).code, 0);
    assert_eq!(lab.run(&["hook", "convert", "tests.kiro.hook", "--to", "when-then", "--write"]).code, 0);
    let back: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(back, old);
}

#[test]
fn a_name_that_is_taken_is_not_declared_again() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    let ran = lab.run(&["hook", "add", "before_tool", "guard.sh"]);
    assert_eq!((ran.code, ran.stderr.contains("there is a hook `guard` already")), (64, true), "{ran:?}");
    assert_eq!(lab.run(&["hook", "add", "before_tool", "guard.sh", "--name", "other"]).code, 0);
}

#[test]
fn a_condition_of_any_length_is_answered_or_refused_in_time() {
    let long = format!("data.x == '{}'", "x".repeat(100 << 10));
    let deep = format!("{}true{}", "(".repeat(50_000), ")".repeat(50_000));
    let wide = vec!["data.tool_name == 'shell'"; 4_000].join(" || ");
    for condition in [long, deep, wide] {
        for (policy, code) in [("allow", 0), ("block", 2)] {
            let lab = Lab::new();
            let entry =
                json!({"name": "hook", "command": "sh", "args": ["x.sh"], "if": condition, "onFailure": policy});
            lab.user("x.sh", "touch ../ran");
            lab.user("hook.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
            let ran = lab.event(crate::lab::shell_event("ls"));
            assert_eq!(ran.code, code, "{policy}: {}", &ran.stdout[..ran.stdout.len().min(2000)]);
            assert!(!lab.root.join("ran").exists() && ran.stdout.len() < 20_000 && ran.stderr.len() < 20_000);
            let said = if code == 0 { ran.skip("hook")["reason"].clone() } else { ran.hook("hook")["status"].clone() };
            assert!(said == "condition" || said == "failed", "{said}");
        }
    }
}

#[test]
fn a_condition_that_cannot_be_read_skips_a_hook_and_blocks_where_the_hook_is_a_gate() {
    let long = format!("event == '{}'", "x".repeat(100_000));
    for (on_failure, condition, code) in [("allow", "data.(", 0), ("block", "data.(", 2), ("block", long.as_str(), 2)] {
        let lab = Lab::new();
        let entry = json!({"name": "gate", "command": "/bin/true", "if": condition, "onFailure": on_failure});
        lab.user("gate.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
        let ran = lab.event(shell_event("ls"));
        assert_eq!((ran.code, ran.stderr.contains("gate.json:1:")), (code, true), "{ran:?}");
        if code == 2 {
            assert_eq!(ran.hook("gate")["status"], "failed");
        } else {
            assert_eq!(ran.skip("gate")["reason"], "condition");
        }
    }
}

#[test]
fn a_mistyped_key_is_refused_as_a_mistyped_setting_is_and_the_nearest_one_is_named() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    let file = lab.home.join(".ollm/hooks/guard.json");
    let before = fs::read_to_string(&file).unwrap();
    for (assignment, key, meant) in [
        ("tmeout=5", "tmeout", "did you mean `timeout`?"),
        ("onfailure=block", "onfailure", "did you mean `onFailure`?"),
        ("limits.tiem=5s", "tiem", "did you mean `time`?"),
        ("permissions.nett=true", "nett", "did you mean `net`?"),
        ("requires.command=[]", "command", "did you mean `commands`?"),
        ("wobble=1", "wobble", "`ollm schema hooks` prints every key"),
    ] {
        let ran = lab.run(&["hook", "edit", "guard", "timeout=5000", assignment]);
        let told =
            format!("error[U010]: {} was not changed: a hook has no key `{key}`\n  hint: {meant}\n", file.display());
        assert_eq!((ran.code, ran.stderr), (64, told), "{assignment}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
    assert_eq!(lab.run(&["config", "set", "hooks.tmeout", "5s"]).code, 64, "as it is for settings");
    assert_eq!(lab.run(&["hook", "edit", "guard", "timeout=5000"]).stderr, "");
}

#[test]
fn every_key_of_an_action_is_changed_inside_it() {
    let lab = Lab::new();
    let entry = json!({"name": "ask", "action": {"type": "askAgent", "prompt": "one"}});
    lab.user("ask.json", json!({"hooks": {"before_agent": [entry]}}).to_string());
    assert_eq!(lab.run(&["hook", "edit", "ask", "prompt=2"]).code, 0);
    let after: Value = serde_json::from_str(&read(&lab, "ask.json")).unwrap();
    let entry = json!({"name": "ask", "action": {"type": "askAgent", "prompt": "2"}});
    assert_eq!(after["hooks"]["before_agent"][0], entry);
    let ran = lab.run(&["hook", "edit", "ask", "promt=3"]);
    assert!(ran.code == 64 && ran.stderr.ends_with("hint: did you mean `prompt`?\n"), "{ran:?}");
}

#[test]
fn an_unknown_key_that_is_there_hinders_no_change_and_can_be_taken_away() {
    let lab = Lab::new();
    lab.user("guard.sh", REFUSE);
    lab.user("guard.yaml", "before_tool:\n  - name: guard\n    command: sh\n    args: [guard.sh]\n    tmeout: 5\n");
    assert_eq!(lab.run(&["hook", "edit", "guard", "timeout=5000"]).code, 0);
    let ran = lab.run(&["hook", "edit", "guard", "--unset", "tmeout"]);
    assert_eq!((ran.code, read(&lab, "guard.yaml").contains("tmeout")), (0, false), "{ran:?}");
    let ran = lab.run(&["hook", "edit", "guard", "--unset", "tmeout"]);
    assert!(ran.code == 64 && ran.stderr.ends_with("hint: did you mean `timeout`?\n"), "{ran:?}");
}

#[test]
fn what_an_editor_breaks_does_not_take_the_place_of_what_was_there() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    let editor = lab.write_executable("editor", "#!/bin/sh\nfor file; do :; done\nprintf '{broken' > \"$file\"\n");
    let lab = lab.set("EDITOR", editor.to_str().unwrap());
    let file = lab.home.join(".ollm/hooks/guard.json");
    let before = fs::read(&file).unwrap();
    let ran = lab.run(&["hook", "edit", "guard"]);
    assert_eq!((ran.code, ran.stderr.contains("guard.json.rejected")), (1, true), "{ran:?}");
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::read(lab.home.join(".ollm/hooks/guard.json.rejected")).unwrap(), b"{broken");
    assert_eq!(lab.event(shell_event("ls")).code, 2, "the guard still stands");
}

#[test]
fn a_hook_in_a_file_that_cannot_be_read_is_looked_for_there() {
    let lab = Lab::new();
    lab.user("guard.json", "{broken");
    for arguments in [&["hook", "edit", "guard", "timeout=5"][..], &["hook", "remove", "guard", "--yes"]] {
        let ran = lab.run(arguments);
        assert!(ran.code != 0 && ran.stderr.contains("hooks/guard.json:1:"), "{ran:?}");
    }
}

#[test]
fn a_file_that_is_not_there_cannot_be_converted() {
    for more in [&[][..], &["--write"]] {
        let ran = Lab::new().run(&[&["hook", "convert", "missing.yaml"], more].concat());
        assert_eq!((ran.code, ran.stderr.contains("No such file")), (5, true), "{ran:?}");
    }
}

#[test]
fn a_script_keeps_the_interpreter_that_its_first_line_names() {
    for (file, first, command, args) in [
        ("a.sh", "#!/bin/bash -e\n", "/bin/bash", json!(["-e", "a.sh"])),
        ("b.py", "#!/usr/bin/env -S python -u\n", "python", json!(["-u", "b.py"])),
        ("f", "#!/usr/bin/env env\n", "/usr/bin/env", json!(["f"])),
        ("c", "#!/usr/bin/env node\n", "node", json!(["c"])),
        ("g", "#!/usr/bin/env -S FOO=1 bash -e\n", "/usr/bin/env", json!(["FOO=1", "bash", "-e", "g"])),
        ("h", "#!/usr/bin/env -S -u FOO bash\n", "/usr/bin/env", json!(["-u", "FOO", "bash", "h"])),
        ("d.sh", "echo no first line\n", "sh", json!(["d.sh"])),
        ("e.py", "#!relative/python\n", "python3", json!(["e.py"])),
    ] {
        let lab = Lab::new().set("PATH", "/usr/bin:/bin");
        lab.user(file, first);
        let ran = lab.run(&["hook", "add", "before_tool", file, "--name", "mine"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let declared: Value = serde_json::from_str(&read(&lab, "mine.json")).unwrap();
        let entry = &declared["hooks"]["before_tool"][0];
        assert_eq!((&entry["command"], &entry["args"]), (&json!(command), &args), "{file}");
    }
}

#[test]
fn a_removed_hook_takes_its_own_files_along_where_a_person_wants_it() {
    let own = ["mine.py", "cases/mine", "cases/mine.event.json"];
    let left = |lab: &Lab| own.map(|path| lab.home.join(".ollm/hooks").join(path).exists());
    for (answer, arguments, files) in [
        ("y\\n", &["hook", "remove", "mine"][..], [true; 3]),
        ("w\\n", &["hook", "remove", "mine"], [false; 3]),
        ("y\\n", &["hook", "remove", "mine", "--with-files"], [false; 3]),
    ] {
        let lab = Lab::new();
        lab.run(&["hook", "new", "mine"]);
        let ran = on_a_terminal(&lab, answer, arguments);
        assert_eq!((ran.code, left(&lab)), (0, files), "{ran:?}");
    }
    let lab = Lab::new();
    lab.run(&["hook", "new", "mine"]);
    assert_eq!(lab.run(&["hook", "remove", "mine"]).code, 64, "nobody can be asked");
    let shared = r#"{"hooks": {"before_tool": [{"name": "twin", "command": "python3", "args": ["mine.py"]}]}}"#;
    lab.user("twin.json", shared);
    insta::assert_snapshot!(lab.screen(&lab.run(&["hook", "remove", "mine", "--yes", "--with-files"])));
    assert_eq!(left(&lab), [true, false, false], "another hook needs the script");
    assert!(!lab.home.join(".ollm/hooks/cases").exists() && !lab.home.join(".ollm/hooks/mine.json").exists());
}
