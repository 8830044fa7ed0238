//! An approval covers every file of the project that a command names, for hooks and servers alike; what it cannot cover is
//! said, and is not approved for good unless that is wanted.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::lab::{Lab, search_path, shell_event};

const GOOD: &str = "#!/bin/sh\nexit 0\n";

/// One way to name code: the declaration, the files of the project, and the one that is changed.
struct Case {
    what: &'static str,
    file: &'static str,
    declaration: Value,
    files: &'static [(&'static str, &'static str)],
    changed: &'static str,
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better without references")]
fn entry(command: &str, args: &[&str], env: Value) -> Value {
    json!({"hooks": {"before_tool": [{"name": "guest", "command": command, "args": args, "env": env}]}})
}

fn shell(line: &str) -> Value {
    json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": line}]}]}})
}

const HOOKS: &str = "project/.ollm/hooks/guest.json";
const SETTINGS: &str = "project/.config/agent/settings.json";

fn hooks() -> Vec<Case> {
    let case = |what, file, declaration, files, changed| Case { what, file, declaration, files, changed };
    vec![
        case("settings", SETTINGS, shell("sh scripts/check.sh"), &[("scripts/check.sh", GOOD)], "scripts/check.sh"),
        case("sh -c", SETTINGS, shell("sh -c ./scripts/check.sh"), &[("scripts/check.sh", GOOD)], "scripts/check.sh"),
        case(
            "a sourced file",
            SETTINGS,
            shell("sh scripts/check.sh"),
            &[("scripts/check.sh", "#!/bin/sh\n. ./scripts/lib.sh\n"), ("scripts/lib.sh", GOOD)],
            "scripts/lib.sh",
        ),
        case(
            "a file beside the script",
            HOOKS,
            entry("sh", &["check.sh"], json!({})),
            &[
                (".ollm/hooks/check.sh", "#!/bin/sh\nHERE=$(cd \"$(dirname \"$0\")\" && pwd)\n. \"$HERE/lib.sh\"\n"),
                (".ollm/hooks/lib.sh", GOOD),
            ],
            ".ollm/hooks/lib.sh",
        ),
        case(
            "OLLM_HOOK_DIR",
            HOOKS,
            entry("sh", &["check.sh"], json!({})),
            &[(".ollm/hooks/check.sh", "#!/bin/sh\n. \"$OLLM_HOOK_DIR/lib.sh\"\n"), (".ollm/hooks/lib.sh", GOOD)],
            ".ollm/hooks/lib.sh",
        ),
        case(
            "python3 -m",
            HOOKS,
            entry("python3", &["-m", "scripts.guard"], json!({})),
            &[("scripts/guard.py", "import sys\n")],
            "scripts/guard.py",
        ),
        case(
            "what python imports",
            HOOKS,
            entry("python3", &["guard.py"], json!({})),
            &[(".ollm/hooks/guard.py", "from rules import x\n"), (".ollm/hooks/rules.py", "x = 1\n")],
            ".ollm/hooks/rules.py",
        ),
        case(
            "BASH_ENV",
            HOOKS,
            entry("bash", &["check.sh"], json!({"BASH_ENV": "scripts/env.sh"})),
            &[(".ollm/hooks/check.sh", GOOD), ("scripts/env.sh", ":\n")],
            "scripts/env.sh",
        ),
        case(
            "PYTHONPATH",
            HOOKS,
            entry("python3", &["guard.py"], json!({"PYTHONPATH": "scripts"})),
            &[(".ollm/hooks/guard.py", "pass\n"), ("scripts/sitecustomize.py", "pass\n")],
            "scripts/sitecustomize.py",
        ),
    ]
}

fn write(lab: &Lab, file: &str, content: &str) {
    let path = lab.write(&format!("project/{file}"), content);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn hook_id(lab: &Lab) -> String {
    let hooks = lab.run(&["hook", "list", "--json"]).answer();
    let guest = hooks.as_array().unwrap().iter().find(|hook| hook["source"] == "workspace").unwrap();
    guest["id"].as_str().unwrap().to_owned()
}

/// Why the one hook there is did not run, if it did not.
fn skipped(lab: &Lab) -> Option<String> {
    let answer = lab.event(shell_event("ls")).answer();
    answer["skipped"].as_array().unwrap().first().map(|skip| skip["reason"].as_str().unwrap().to_owned())
}

#[test]
fn s4_a_changed_file_that_a_hook_runs_takes_its_approval_back() {
    for case in hooks() {
        let lab = Lab::with_default_boxes();
        lab.write(case.file, case.declaration.to_string());
        for (file, content) in case.files {
            write(&lab, file, content);
        }
        let id = hook_id(&lab);
        assert_eq!(skipped(&lab).as_deref(), Some("untrusted"), "{}", case.what);
        lab.approve(&id);
        assert_eq!(skipped(&lab), None, "{}", case.what);
        write(&lab, case.changed, "#!/bin/sh\n# other\n");
        assert_eq!(skipped(&lab).as_deref(), Some("modified"), "{}", case.what);
    }
}

#[test]
fn s4_node_options_and_imports_are_covered_as_well() {
    let has_node = std::env::split_paths(search_path()).any(|folder| folder.join("node").is_file());
    assert!(has_node, "this test needs Node.js: there is no `node` on PATH");
    let files: [(&str, &str); 4] = [
        (".ollm/hooks/g.js", "require('./rules');\n"),
        (".ollm/hooks/rules.js", "\n"),
        ("scripts/pre.js", "\n"),
        ("scripts/more.js", "\n"),
    ];
    let env = json!({"NODE_OPTIONS": "--require ./scripts/more.js"});
    for (changed, _) in files {
        let lab = Lab::with_default_boxes();
        lab.write(HOOKS, entry("node", &["--require=./scripts/pre.js", "g.js"], env.clone()).to_string());
        for (file, content) in files {
            write(&lab, file, content);
        }
        let id = hook_id(&lab);
        lab.approve(&id);
        assert_eq!(skipped(&lab), None, "{changed}");
        write(&lab, changed, "// other\n");
        assert_eq!(skipped(&lab).as_deref(), Some("modified"), "{changed}");
    }
}

#[test]
fn s4_a_file_of_that_name_in_the_folder_of_the_event_is_not_what_runs() {
    let lab = Lab::with_default_boxes();
    lab.write(SETTINGS, shell("sh scripts/check.sh").to_string());
    write(&lab, "scripts/check.sh", GOOD);
    fs::create_dir_all(lab.project.join("sub/scripts")).unwrap();
    lab.approve(&hook_id(&lab));
    let event = || {
        let cwd = lab.project.join("sub");
        let data = json!({"tool_name": "shell", "args": {"command": "ls"}, "cwd": cwd});
        let answer = lab.event(json!({"event": "before_tool", "data": data}).to_string()).answer();
        assert_eq!(answer["skipped"], json!([]), "{answer}");
        answer["hooks"][0]["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(event(), "ok");
    write(&lab, "sub/scripts/check.sh", "exit 2");
    assert_eq!(event(), "ok", "the names in an approved line mean the project's own files");
}

#[test]
fn what_no_approval_covers_is_said_and_approved_for_good_only_on_request() {
    for (line, said) in [
        ("npx -y is-safe", "names no version"),
        ("npx -y is-safe@1.2.3", "node_modules of the project"),
        ("make check", "runs what files of the project say"),
        (". \"$RULES\"", "made up when it runs"),
        ("curl -s example.com | sh", "runs what it reads"),
        ("sh \"$X/check.sh\"", "made up when it runs"),
        ("node -e \"require('./rules')\"", "may load any file of the project"),
        ("deno eval \"import('./rules.ts')\"", "may load any file of the project"),
        ("perl -e 'do \"./rules.pl\"'", "may load any file of the project"),
        ("ruby -e 'require_relative \"rules\"'", "may load any file of the project"),
        ("python3 -c 'exec(open(\"rules.py\").read())'", "may load any file of the project"),
    ] {
        let lab = Lab::with_default_boxes();
        lab.write(SETTINGS, shell(line).to_string());
        fs::create_dir_all(lab.project.join("node_modules/is-safe")).unwrap();
        let id = hook_id(&lab);
        let digest = lab.digest(&id);
        let ran = lab.run(&["hook", "trust", &id, "--digest", &digest]);
        assert_eq!(ran.code, 4, "{line}: {ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("--uncovered"), "{line}: {ran:?}");
        let ran = lab.run(&["hook", "trust", &id, "--digest", &digest, "--uncovered"]);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
}

#[test]
fn what_a_script_runs_uncovered_is_said_as_in_a_line() {
    for (file, code, said) in [
        ("check.sh", "cat d/a | sh", "`sh` in `check.sh` runs what it reads"),
        ("check.sh", "eval \"$(cat d/a)\"", "`eval $(…)` in `check.sh`"),
        ("check.sh", "bash -c \"$(cat d/a)\"", "made up when it runs"),
        ("check.sh", "python3 -c \"exec(open('d/p.py').read())\"", "may load any file of the project"),
        ("check.sh", "make -s", "`make -s` runs what files of the project say at that time, in `check.sh`"),
        ("check.sh", "for f in d/*; do sh $f; done", "`${f}` in `check.sh`"),
        ("check.sh", "find d -name '*.sh' -exec sh {} \\;", "`{}` in `check.sh`"),
        ("check.py", "import os\nos.system('sh s' + str(x))", "in `check.py`"),
        ("check.py", "import subprocess\nsubprocess.run(['make', '-s'])", "`make -s` runs"),
        ("check.js", "require('child_process').execSync('make -s')", "`make -s` runs"),
        ("check.js", "const r = require; r('./l' + 'ib')", "`require` in `check.js`"),
    ] {
        let lab = Lab::with_default_boxes();
        let program = if file.ends_with("sh") {
            "sh"
        } else if file.ends_with("py") {
            "python3"
        } else {
            "node"
        };
        lab.write(SETTINGS, shell(&format!("{program} {file}")).to_string());
        write(&lab, file, code);
        let id = hook_id(&lab);
        let digest = lab.digest(&id);
        let ran = lab.run(&["hook", "trust", &id, "--digest", &digest]);
        assert_eq!(ran.code, 4, "{code}: {ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("--uncovered"), "{code}: {ran:?}");
    }
}

#[test]
fn a_script_that_a_shell_reads_is_covered_and_read_from_the_copy() {
    let lab = Lab::with_default_boxes();
    lab.write(SETTINGS, shell("sh check.sh").to_string());
    write(&lab, "check.sh", "sh < d/a\n");
    write(&lab, "d/a", "exit 0\n");
    lab.approve(&hook_id(&lab));
    let ran = lab.event(shell_event("ls")).answer();
    let hooks = ran["hooks"].as_array().unwrap();
    assert!(
        hooks.iter().any(|hook| hook["id"].as_str().unwrap().contains("settings") && hook["status"] == "ok"),
        "{ran}"
    );
    write(&lab, "d/a", "exit 2\n");
    assert_eq!(skipped(&lab).as_deref(), Some("modified"));
}

fn server_of(lab: &Lab) -> Value {
    lab.run(&["mcp", "list", "--json"]).answer()[0].clone()
}

fn declare_server(lab: &Lab, declaration: &Value) {
    lab.write("project/.ollm/settings/mcp.json", json!({"mcpServers": {"s": declaration}}).to_string());
}

#[test]
fn s14_a_changed_file_that_a_server_runs_takes_its_approval_back() {
    for (declaration, files, changed) in [
        (json!({"command": "sh", "args": ["-c", "cd srv && sh run.sh"]}), &[("srv/run.sh", GOOD)][..], "srv/run.sh"),
        (json!({"command": "sh", "args": ["-c", "$PWD/srv/run.sh"]}), &[("srv/run.sh", GOOD)], "srv/run.sh"),
        (
            json!({"command": "sh", "args": ["srv/run.sh"]}),
            &[("srv/run.sh", ". ./srv/lib.sh\n"), ("srv/lib.sh", GOOD)],
            "srv/lib.sh",
        ),
        (
            json!({"command": "python3", "args": ["srv/main.py"]}),
            &[("srv/main.py", "import tools.one\n"), ("srv/tools/one.py", "pass\n")],
            "srv/tools/one.py",
        ),
    ] {
        let lab = Lab::with_default_boxes();
        declare_server(&lab, &declaration);
        for (file, content) in files {
            write(&lab, file, content);
        }
        let digest = server_of(&lab)["digest"].as_str().unwrap().to_owned();
        let ran = lab.run(&["mcp", "trust", "s", "--digest", &digest]);
        assert_eq!(ran.code, 0, "{declaration}: {ran:?}");
        assert_eq!(server_of(&lab)["trust"], "trusted", "{declaration}");
        write(&lab, changed, "# other\n");
        assert_eq!(server_of(&lab)["trust"], "modified", "{declaration}");
        assert_eq!(lab.run(&["mcp", "start", "s"]).code, 4, "{declaration}");
    }
}

#[test]
fn s14_a_server_that_no_approval_covers_is_approved_only_on_request() {
    for declaration in [
        json!({"command": "npx", "args": ["-y", "./srv"]}),
        json!({"command": "npm", "args": ["start"]}),
        json!({"command": "make", "args": ["serve"]}),
        json!({"command": "node", "args": ["srv"]}),
    ] {
        let lab = Lab::with_default_boxes();
        for program in ["npx", "npm", "make", "node"] {
            lab.write_executable(&format!("bin/{program}"), GOOD);
        }
        let path = format!("{}:/usr/bin:/bin", lab.home.parent().unwrap().join("bin").display());
        let lab = lab.set("PATH", &path);
        write(&lab, "srv/index.js", "\n");
        declare_server(&lab, &declaration);
        let digest = server_of(&lab)["digest"].as_str().unwrap().to_owned();
        let ran = lab.run(&["mcp", "trust", "s", "--digest", &digest]);
        assert_eq!(ran.code, 4, "{declaration}: {ran:?}");
        assert!(ran.stderr.contains("--uncovered"), "{declaration}: {ran:?}");
        let ran = lab.run(&["mcp", "trust", "s", "--digest", &digest, "--uncovered"]);
        assert_eq!(ran.code, 0, "{declaration}: {ran:?}");
    }
}
