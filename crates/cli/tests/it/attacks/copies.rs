//! Code of a project that is exchanged after it was compared: what runs is the copy of what was approved.

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, shell_event};

/// What code leaves behind that was approved, and what code leaves behind that was not.
const APPROVED: &str = "touch approved\n";
const SWAPPED: &str = "touch swapped";

const HOOKS: &str = "project/.ollm/hooks/guest.json";
const SETTINGS: &str = "project/.config/agent/settings.json";

fn line(line: &str) -> (&'static str, Value) {
    let hook = json!({"type": "command", "name": "guest", "command": line});
    (SETTINGS, json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}))
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better without references")]
fn program(command: &str, args: &[&str], env: Value) -> (&'static str, Value) {
    (HOOKS, json!({"hooks": {"before_tool": [{"name": "guest", "command": command, "args": args, "env": env}]}}))
}

/// A project with one hook and its files.
fn project((file, declaration): &(&str, Value), files: &[(&str, &str)]) -> Lab {
    let lab = Lab::new();
    lab.write(file, declaration.to_string());
    for (file, content) in files {
        lab.write_executable(&format!("project/{file}"), content);
    }
    lab
}

fn guest(lab: &Lab) -> String {
    let hooks = lab.run(&["hook", "list", "--json"]).answer();
    let guest = hooks.as_array().unwrap().iter().find(|hook| hook["source"] == "workspace").unwrap();
    guest["id"].as_str().unwrap().to_owned()
}

/// Approves the hook, whose first words exchange a file of the project, and runs it.
fn swapped(declaration: &(&str, Value), files: &[(&str, &str)], what: &str) -> Ran {
    let lab = project(declaration, files);
    lab.approve(&guest(&lab));
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("guest")["status"], "ok", "{what}: {ran:?}");
    let left = |name: &str| lab.project.join(name).exists();
    assert_eq!((left("approved"), left("swapped")), (true, false), "{what}: {ran:?}");
    ran
}

#[test]
fn s04_shell_text_runs_the_copies_of_the_files_it_names() {
    let check: &[(&str, &str)] = &[("scripts/check.sh", "#!/bin/sh\ntouch approved\n")];
    let other: &[(&str, &str)] = &[("srv/run.sh", "#!/bin/sh\ntouch ../approved\n")];
    for (text, files) in [
        ("sh scripts/check.sh", check),
        ("sh 'scripts/check.sh' \"a b\"", check),
        (". ./scripts/check.sh", check),
        ("./scripts/check.sh", check),
        ("X=scripts; sh $X/check.sh", check),
        ("$PWD/scripts/check.sh", check),
        ("\"$OLLM_PROJECT_DIR\"/scripts/check.sh", check),
        ("sh ~/../project/scripts/check.sh", check),
        ("X=~/../project; . $X/scripts/check.sh", check),
        ("BASH_ENV=~/../project/scripts/check.sh bash -c :", check),
        ("BASH_ENV=scripts/check.sh; export BASH_ENV; bash -c :", check),
        ("export BASH_ENV=\"$PWD\"/scripts/check.sh; bash -c :", check),
        ("sh -c ./scripts/check.sh", check),
        ("sh -ec 'if true; then . ./scripts/check.sh; fi'", check),
        ("test -n \"$(sh scripts/check.sh; echo done)\"", check),
        ("cd srv && sh run.sh", other),
        ("sh -c 'cd srv && ./run.sh'", other),
    ] {
        let (file, _) = files[0];
        let text = format!("echo '{SWAPPED}; touch ../swapped' > {file}; {text}");
        swapped(&line(&text), files, &text);
        swapped(&program("sh", &["-c", &text], json!({})), files, &text);
    }
}

#[test]
fn s04_scripts_run_the_copies_of_what_they_name_by_the_working_folder() {
    let chain: &[(&str, &str)] = &[
        ("scripts/check.sh", "#!/bin/sh\n# ünicode\n. ./scripts/lib.sh\n"),
        ("scripts/lib.sh", "test -d .git && . \"$OLLM_PROJECT_DIR/scripts/deep.sh\"\n"),
        ("scripts/deep.sh", "sh -c 'cd scripts; sh ./end.sh'"),
        ("scripts/end.sh", "touch ../approved"),
    ];
    for (file, _) in chain {
        let text = format!("echo '{SWAPPED}' > {file}; sh scripts/check.sh");
        swapped(&line(&text), chain, &text);
    }
    // A script that exchanges what it loads itself.
    let own: &[(&str, &str)] = &[
        (".ollm/hooks/check.sh", "echo 'touch swapped' > scripts/lib.sh\n. ./scripts/lib.sh\n"),
        ("scripts/lib.sh", APPROVED),
    ];
    swapped(&program("sh", &["check.sh"], json!({})), own, "a script");
    let beside: &[(&str, &str)] = &[
        (".ollm/hooks/check.sh", "echo 'touch swapped' > .ollm/hooks/lib.sh\n. \"$OLLM_HOOK_DIR/lib.sh\"\n"),
        (".ollm/hooks/lib.sh", APPROVED),
    ];
    swapped(&program("sh", &["check.sh"], json!({})), beside, "beside a script");
}

#[test]
fn s04_modules_and_variables_that_load_code_lead_to_the_copy() {
    let touch = "open('approved', 'w').close()\n";
    let swap = |file: &str| format!("echo 'open(\"swapped\", \"w\").close()' > {file}; ");
    let module: &[(&str, &str)] = &[("scripts/guard.py", "import scripts.rules\n"), ("scripts/rules.py", touch)];
    for (file, _) in module {
        swapped(&line(&format!("{}python3 -m scripts.guard", swap(file))), module, file);
    }
    swapped(&line(&format!("{}python3 -c 'import scripts.guard'", swap("scripts/rules.py"))), module, "python3 -c");
    let script: &[(&str, &str)] = &[("scripts/guard.py", "import rules\n"), ("scripts/rules.py", touch)];
    for (file, _) in script {
        swapped(&line(&format!("{}python3 scripts/guard.py", swap(file))), script, file);
    }
    let env: &[(&str, &str)] = &[("scripts/env.sh", APPROVED), ("scripts/pre.sh", "")];
    let text = "echo 'touch swapped' > scripts/env.sh; exec bash -c true";
    swapped(&program("sh", &["-c", text], json!({"BASH_ENV": "scripts/env.sh"})), env, "BASH_ENV");
}

#[test]
fn s04_a_hook_that_runs_from_its_copy_stays_in_the_root_of_its_project() {
    let text = "sh scripts/check.sh {{tool_name}}";
    let check =
        "#!/bin/sh\ntest -d .git && test \"$PWD\" = \"$OLLM_PROJECT_DIR\" && test \"$1\" = shell && touch approved\n";
    swapped(&line(text), &[("scripts/check.sh", check)], text);
}

#[test]
fn s04_an_interpreter_that_depends_on_the_working_folder_is_refused() {
    for first in [
        "#!./scripts/interp",
        "#! scripts/interp",
        "#!\tinterp",
        "#!/usr/bin/env ./scripts/interp",
        "#!/usr/bin/env -S -u X ./scripts/interp",
        "#!/usr/bin/env -S PATH=scripts interp",
        "#!/usr/bin/env -S ENV=scripts/interp sh",
    ] {
        let script = format!("{first}\n");
        let files: &[(&str, &str)] = &[(".ollm/hooks/check", &script), ("scripts/interp", "#!/bin/sh\ntouch ran\n")];
        let lab = project(&program("./check", &[], json!({})), files);
        let id = guest(&lab);
        let refused = lab.run(&["hook", "trust", &id, "--digest", &format!("sha256:{}", "0".repeat(64))]);
        assert_ne!(refused.code, 0, "{first}: {refused:?}");
        assert!(refused.stderr.contains("write an absolute path behind `#!`"), "{first}: {refused:?}");
        // One that was fine when it was approved.
        lab.write_executable("project/.ollm/hooks/check", "#!/bin/sh\n");
        lab.approve(&id);
        lab.write_executable("project/.ollm/hooks/check", &script);
        let skip = lab.event(shell_event("ls")).skip("guest");
        assert_eq!(skip["reason"], "unsafe", "{first}: {skip}");
        assert!(skip["detail"].as_str().unwrap().contains("behind `#!`"), "{first}: {skip}");
        assert!(!lab.project.join("ran").exists(), "{first}");
    }
}

#[test]
fn s04_a_server_with_such_an_interpreter_is_refused_as_well() {
    let lab = Lab::new();
    lab.write_executable("project/srv/run", "#!./srv/interp\n");
    lab.write_executable("project/srv/interp", "#!/bin/sh\ntouch ran\n");
    let command = lab.project.join("srv/run");
    let declaration =
        json!({"mcpServers": {"s": {"command": command}, "t": {"command": "sh", "args": ["-c", "srv/run"]}}});
    lab.write("project/.ollm/settings/mcp.json", declaration.to_string());
    for server in ["s", "t"] {
        let refused = lab.run(&["mcp", "trust", server, "--digest", &format!("sha256:{}", "0".repeat(64))]);
        assert!(refused.code != 0 && refused.stderr.contains("behind `#!`"), "{refused:?}");
        let started = lab.run(&["mcp", "start", server]);
        assert!(started.code != 0 && !lab.project.join("ran").exists(), "{started:?}");
    }
    let manifest =
        json!({"name": "x", "version": "1.0.0", "description": "x", "mcpServers": {"y": {"command": "./run"}}});
    lab.write("home/.ollm/extensions/x/manifest.json", manifest.to_string());
    lab.write_executable("home/.ollm/extensions/x/run", "#!./interp\n");
    let digest = lab.run(&["ext", "info", "x", "--json"]).answer()["digest"].as_str().unwrap().to_owned();
    let trusted = lab.run(&["ext", "trust", "x", "--digest", &digest]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let started = lab.run(&["mcp", "start", "y"]);
    assert!(started.stderr.contains("is not started") && started.stderr.contains("behind `#!`"), "{started:?}");
}

#[test]
fn s04_a_server_runs_from_the_copy_of_what_its_shell_text_or_variables_name() {
    for (text, env) in [
        ("echo 'touch swapped' > srv/run.sh; sh srv/run.sh", json!({})),
        ("echo 'touch swapped' > srv/run.sh; exec bash -c true", json!({"BASH_ENV": "srv/run.sh"})),
    ] {
        let lab = Lab::new();
        lab.write_executable("project/srv/run.sh", "#!/bin/sh\ntouch approved\n");
        let declaration = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", text], "env": env}}});
        lab.write("project/.ollm/settings/mcp.json", declaration.to_string());
        let digest = lab.run(&["mcp", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
        assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest]).code, 0);
        let started = lab.run(&["mcp", "start", "s"]);
        assert!(lab.project.join("approved").exists(), "{text}: {started:?}");
        assert!(!lab.project.join("swapped").exists(), "{text}");
    }
}
