//! What `ollm doctor` finds, and that it finds nothing where everything works.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::extensions::files;
use crate::lab::{Lab, OLLM, Ran};

/// The findings of an area, in the form for people.
fn told(ran: &Ran, area: &str) -> Vec<String> {
    let findings = ran.answer()["findings"].as_array().unwrap().clone();
    let of_area = findings.iter().filter(|finding| finding["area"] == area);
    let line =
        |finding: &Value| [&finding["what"], &finding["help"]].map(|part| part.as_str().unwrap_or_default()).join("; ");
    of_area.map(line).collect()
}

fn faults(ran: &Ran) -> Vec<Value> {
    let findings = ran.answer()["findings"].as_array().unwrap().clone();
    findings.into_iter().filter(|finding| finding["weight"] == "fault").collect()
}

#[test]
fn where_everything_works_there_is_no_fault() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("before_tool", "fine", "exit 0", "");
    let ran = lab.run(&["doctor", "--json"]);
    assert_eq!((ran.code, faults(&ran)), (0, vec![]), "{}", ran.stderr);
    assert_eq!(ran.answer()["lookedAt"]["hooks"], "1 on, 0 off");
    assert_eq!(ran.answer()["lookedAt"]["guards"], "all on");
}

#[test]
fn each_thing_that_keeps_a_hook_from_running_is_a_fault_with_its_way_out() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("before_tool", "needs", "exit 0", r#", "requires": {"commands": ["no-such-program"]}"#);
    lab.workspace_hook("before_tool", "theirs", "exit 0", "");
    lab.user_hook("before_tool", "off", "exit 0", r#", "enabled": false"#);
    lab.user("broken.json", r#"{"hooks": {"before_tool": [{"name": "c", "comand": "/bin/true"}]}}"#);
    lab.write_executable("home/.ollm/hooks/forgotten.sh", "#!/bin/sh\n# before_tool\n");
    let ran = lab.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    let hooks = told(&ran, "hooks");
    assert_eq!(hooks.len(), 3, "{hooks:#?}");
    let of = |name: &str| hooks.iter().find(|what| what.contains(name)).unwrap();
    assert!(of(":needs").contains("no-such-program"), "{hooks:#?}");
    assert!(of(":theirs").contains("not approved") && of(":theirs").contains("`ollm hook trust"), "{hooks:#?}");
    assert!(of("forgotten.sh").contains("never runs"), "{hooks:#?}");
    let files = told(&ran, "files");
    assert!(files.iter().any(|what| what.contains("broken.json:1:") && what.contains("no `command`")), "{files:#?}");
    // What was approved and changed is told as such.
    lab.approve("theirs");
    lab.workspace_hook("before_tool", "theirs", "exit 1", "");
    let again = lab.run(&["doctor", "--json"]);
    assert!(told(&again, "hooks").iter().any(|what| what.contains("changed since it was approved")));
}

#[test]
fn whatever_is_not_as_it_was_meant_counts_and_names_its_command() {
    let lab = Lab::with_default_boxes().set("PATH", "/nowhere:relative");
    let config = "hooks:\n  timeout: soon\n  tiemout: 5\nmcp:\n  servers:\n    fetch: {command: uvx}\n";
    lab.write("home/.ollm/config.yaml", config);
    lab.user("broken.json", "{");
    lab.user("node.mjs", "0");
    lab.user(
        "fetch.json",
        json!({"hooks": {"git_commit": [{"name": "node", "command": "node", "args": ["node.mjs"]}]}}).to_string(),
    );
    lab.user(
        "absent.json",
        json!({"hooks": {"before_tool": [{"name": "absent", "command": "./gone.sh"}]}}).to_string(),
    );
    lab.write_executable("home/.ollm/hooks/forgotten.sh", "#!/bin/sh\n");
    lab.write("home/.ollm/trusted-hooks.json", "{");
    let ran = lab.run(&["doctor", "--json"]);
    for finding in ran.answer()["findings"].as_array().unwrap() {
        let help = finding["help"].as_str().unwrap_or_default();
        assert!(help.contains('`'), "no command: {finding:#}");
        let may_be_a_note = ["process", "model", "box"].iter().any(|area| finding["area"] == *area);
        assert!(finding["weight"] == "fault" || may_be_a_note, "{finding:#}");
    }
    let all = ran.answer().to_string();
    for command in [
        "${EDITOR:-vi} +1 ",
        "ollm config set hooks.timeout",
        "git init",
        "ollm hook edit user:absent.json",
        "ollm hook add",
        "sudo apt install nodejs",
        "pipx install uv",
        "export PATH=/nowhere",
    ] {
        assert!(all.contains(command), "{command}: {:#}", ran.answer());
    }
}

#[test]
fn what_keeps_several_hooks_from_running_is_told_once_with_its_own_way_out() {
    let lab = Lab::with_default_boxes();
    let entries = ["one", "two"].map(|name| json!({"name": name, "command": "uvx", "args": [name]}));
    lab.user("both.json", json!({"hooks": {"before_tool": entries}}).to_string());
    let folder = lab.home.join(".ollm/hooks");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let ran = lab.set("PATH", "/nowhere").run(&["doctor", "--json"]);
    let told: Vec<_> = faults(&ran).into_iter().filter(|fault| fault["code"] == "C024").collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    let (what, help) = (told[0]["what"].as_str().unwrap(), told[0]["help"].as_str().unwrap());
    assert!(what.contains("is writable by others") && what.ends_with("(also `user:both.json:before_tool:two`)"));
    assert!(help.starts_with("`chmod go-w ") && !help.contains("install"), "{help}");
}

#[test]
fn one_such_thing_alone_is_enough() {
    let codes = ["C003", "C004", "C014"];
    let texts = ["hooks:\n  tiemout: 5\n", "hooks:\n  timeout: soon\n", ""];
    for (code, text) in codes.into_iter().zip(texts) {
        let lab = Lab::with_default_boxes();
        lab.write("home/.ollm/config.yaml", text);
        if text.is_empty() {
            lab.write_executable("home/.ollm/hooks/forgotten.sh", "#!/bin/sh\n");
        }
        let ran = lab.run(&["doctor", "--json"]);
        let codes: Vec<_> = faults(&ran).iter().map(|fault| fault["code"].clone()).collect();
        assert_eq!((ran.code, codes), (1, vec![json!(code)]));
    }
}

#[test]
fn the_line_about_the_box_says_what_holds_it() {
    let told = Lab::with_default_boxes().run(&["doctor", "--json"]).answer()["lookedAt"]["box"].clone();
    let told = told.as_str().unwrap();
    let (commands, programs) = told.split_once("; hooks and servers: ").unwrap();
    assert!(["by namespaces", "by Landlock", "by nothing"].iter().any(|means| commands.contains(means)), "{told}");
    assert!(["by Landlock ", "by nothing"].iter().any(|means| programs.contains(means)), "{told}");
}

#[test]
fn guards_that_are_off_and_servers_that_cannot_start_are_faults() {
    let lab = Lab::with_default_boxes();
    lab.write(
        "home/.ollm/config.yaml",
        "hooks:\n  guards: [self-protection]\nmcp:\n  servers:\n    gone: {command: no-such-program}\n",
    );
    let ran = lab.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(told(&ran, "guards").iter().any(|what| what.contains("`destructive-commands` is off")));
    let servers = told(&ran, "servers");
    assert!(
        matches!(servers.as_slice(), [one] if one.contains("`gone`") && one.contains("not on PATH")),
        "{servers:?}"
    );
}

#[test]
fn a_fatal_file_is_told_once_and_the_rest_is_said_not_to_be_known() {
    let lab = Lab::with_default_boxes();
    lab.write("home/.ollm/config.yaml", "hooks:\n  guards: 7\n");
    let ran = lab.run(&["doctor", "--json"]);
    assert_eq!((ran.code, faults(&ran).len()), (1, 1));
    assert!(told(&ran, "files").iter().any(|what| what.contains("config.yaml:2:11")));
    assert_eq!(ran.answer()["lookedAt"]["hooks"], json!(null));
    let shown = lab.run(&["doctor"]);
    assert!(shown.stdout.contains("? hooks      not looked at"), "{}", shown.stdout);
}

#[test]
fn an_agent_whose_line_names_a_program_that_is_gone_is_a_fault() {
    let lab = Lab::with_default_boxes();
    lab.run(&["connect", "claude"]);
    let ran = lab.run(&["doctor", "--json"]);
    assert_eq!((ran.code, faults(&ran)), (0, vec![]), "{}", ran.stderr);
    assert_eq!(ran.answer()["lookedAt"]["agents"], "1 connected, 0 of them asked already");
    let file = lab.home.join(".claude/settings.json");
    let moved = fs::read_to_string(&file).unwrap().replace(OLLM, "/nowhere/ollm");
    fs::write(&file, moved).unwrap();
    let ran = lab.run(&["doctor", "--json"]);
    let agents = told(&ran, "agents");
    assert!(matches!(agents.as_slice(), [one] if one.contains("names /nowhere/ollm, which is gone")), "{agents:?}");
    assert_eq!((ran.code, &faults(&ran)[0]["help"]), (1, &json!("`ollm connect claude` connects it again")));
}

#[test]
fn the_line_that_stands_in_the_file_is_the_one_that_is_tried() {
    let lab = Lab::with_default_boxes();
    let answers = lab.write_executable("answers-nothing", "#!/bin/sh\ncat >/dev/null\necho '{}'\n");
    for (agent, file) in [
        ("claude", ".claude/settings.json"),
        ("kiro", ".kiro/hooks/ollm.json"),
        ("opencode", ".config/opencode/plugins/ollm.js"),
    ] {
        lab.run(&["connect", agent]);
        assert_eq!(faults(&lab.run(&["doctor", "--json"])), [] as [Value; 0], "{agent}");
        let file = lab.home.join(file);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(OLLM, answers.to_str().unwrap())).unwrap();
        let ran = lab.run(&["doctor", "--json"]);
        let found = told(&ran, "agents");
        assert!(matches!(found.as_slice(), [one] if one.contains("does not come to us")), "{agent}: {found:?}");
        assert_eq!(ran.code, 1);
        lab.run(&["connect", agent]);
    }
}

#[test]
fn a_line_that_came_with_a_project_is_tried_only_as_we_write_it() {
    let lab = Lab::with_default_boxes();
    let program = std::path::Path::new(OLLM).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", crate::lab::search_path().to_str().unwrap());
    let lab = lab.set("PATH", &path);
    for agent in ["claude", "kiro", "cursor"] {
        lab.run(&["connect", agent, "--project"]);
        assert_eq!(faults(&lab.run(&["doctor", "--json"])), [] as [Value; 0], "{agent}");
        lab.run(&["disconnect", agent, "--project"]);
    }
    lab.run(&["connect", "claude", "--project"]);
    let file = lab.project.join(".claude/settings.json");
    let right = fs::read_to_string(&file).unwrap();
    let mark = lab.project.join("ran");
    let evil = lab.write_executable("project/evil", &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    for line in [
        right.replace("; ollm hook run", &format!("; touch {}; ollm hook run", mark.display())),
        right.replace("; ollm hook run", &format!("; {} hook run", evil.display())),
        right.replace("command -v ollm >/dev/null", &format!("command -v ollm >{}", mark.display())),
    ] {
        fs::write(&file, line).unwrap();
        let ran = lab.run(&["doctor", "--json"]);
        assert!(!mark.exists(), "{ran:?}");
        let found = told(&ran, "agents");
        assert!(found.iter().any(|what| what.contains("so it was not tried")), "{found:?}");
    }
}

#[test]
fn the_event_by_which_a_line_is_tried_is_in_no_view_of_the_trace() {
    let lab = Lab::with_default_boxes();
    lab.run(&["connect", "claude"]);
    lab.run(&["doctor"]);
    assert_eq!(lab.run(&["trace", "list", "--json"]).answer(), json!([]));
    assert_eq!(lab.run(&["trace", "export", "--format", "json"]).answer(), json!([]));
    assert_eq!(lab.run(&["trace", "stats", "--json"]).answer()["events"], 0);
    let last = lab.run(&["trace", "last"]);
    assert!(last.code == 1 && last.stderr.contains("there is no trace yet"), "{last:?}");
    lab.event(crate::lab::shell_event("ls"));
    lab.run(&["doctor"]);
    assert_eq!(lab.run(&["trace", "last", "--json"]).answer()["event"], "before_tool");
}

#[test]
fn a_fault_of_an_entry_names_what_mends_that_entry() {
    let lab = Lab::with_default_boxes().set("PATH", "/usr/bin:/bin");
    lab.run(&["connect", "claude", "--project"]);
    let help = |lab: &Lab| faults(&lab.run(&["doctor", "--json"]))[0]["help"].clone();
    assert_eq!(
        help(&lab),
        format!("`export PATH={}:\"$PATH\"` finds it", std::path::Path::new(OLLM).parent().unwrap().display())
    );
    let file = lab.project.join(".claude/settings.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("; ollm hook run", "; /nowhere/ollm hook run")).unwrap();
    assert_eq!(help(&lab), "`ollm connect --project claude` connects it again");
    fs::write(&file, "[").unwrap();
    assert_eq!(help(&lab), format!("open it with `${{EDITOR:-vi}} {}`", file.display()));
}

#[test]
fn it_runs_nothing_and_changes_nothing() {
    let lab = Lab::with_default_boxes();
    let mark = lab.home.join("ran");
    lab.user_hook("before_tool", "marks", &format!("touch {}", mark.display()), "");
    let before = files(&lab.root);
    lab.run(&["doctor"]);
    assert!(!mark.exists());
    assert_eq!(files(&lab.root), before);
}

#[test]
fn a_project_within_the_project_is_told() {
    let lab = Lab::with_default_boxes();
    lab.write("project/sub/deep/.ollm/hooks/x.json", "{}");
    let told = told(&lab.run(&["doctor", "--json"]), "guards");
    let place = lab.project.join("sub/deep/.ollm").display().to_string();
    assert!(told.iter().any(|what| what.contains(&place) && what.contains("hooks of its own")), "{told:?}");
}

#[test]
fn what_needs_no_decision_is_mended_and_only_by_a_person() {
    let lab = Lab::with_default_boxes();
    lab.run(&["connect", "claude"]);
    let file = lab.home.join(".claude/settings.json");
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, right.replace(OLLM, "/nowhere/ollm")).unwrap();
    let found = lab.run(&["doctor", "--json"]);
    assert_eq!(faults(&found)[0]["fixable"], true, "{found:?}");
    let agent = finish_as_agent(&lab);
    assert!(agent.stderr.contains("an agent may not "), "{agent:?}");
    let mended = lab.run(&["doctor", "--fix", "--json"]);
    assert_eq!((mended.code, faults(&mended)), (0, vec![]), "{mended:?}");
    assert_eq!(mended.answer()["mended"], json!(["wrote the entries for Claude Code anew"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), right);
    // A person who took the entries out may not want them back.
    fs::write(&file, "{}").unwrap();
    let ran = lab.run(&["doctor", "--fix"]);
    assert!(ran.code == 1 && ran.stderr.contains("nothing that can be mended without you"), "{ran:?}");
}

fn finish_as_agent(lab: &Lab) -> Ran {
    let mut command = lab.ollm(&["doctor", "--fix"]);
    command.env("OLLM_AGENT", "1");
    crate::lab::finish(command, b"")
}

#[test]
fn missing_interpreters_and_events_that_nothing_sends_are_faults() {
    let lab = Lab::with_default_boxes().set("PATH", "/nowhere");
    lab.user("node.mjs", "0");
    let hook = json!({"name": "node", "command": "node", "args": ["node.mjs"]});
    lab.user("node.json", json!({"hooks": {"before_tool": [hook]}}).to_string());
    let ran = lab.run(&["doctor", "--json"]);
    let hooks = told(&ran, "hooks");
    assert!(
        matches!(hooks.as_slice(), [one] if one.contains(":node` does not run") && one.contains("`node`")),
        "{hooks:?}"
    );
    let lab = Lab::with_default_boxes();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    let git = lab.program("git").args(["init", "-q"]).status().unwrap();
    assert!(git.success());
    lab.user_hook("git_commit", "commits", "exit 0", "");
    let ran = lab.run(&["doctor", "--json"]);
    let hooks = told(&ran, "hooks");
    assert!(
        matches!(hooks.as_slice(), [one] if one.contains("git_commit") && one.contains("ollm git-hook install")),
        "{hooks:?}"
    );
    assert_eq!(ran.code, 1);
}

#[test]
fn a_script_that_nothing_here_can_read_is_told_before_it_fails() {
    let lab = Lab::with_default_boxes();
    let script =
        |name: &str, first: &str| lab.write_executable(&format!("home/.ollm/hooks/{name}"), &format!("{first}\n"));
    script("looked-up", "#!/usr/bin/env -S no-such-program -x");
    script("placed", "#!/no/such/program");
    script("own-path", "#!/usr/bin/env no-such-program");
    script("fine", "#!/usr/bin/env sh");
    let entry = |name: &str| json!({"name": name, "command": format!("./{name}")});
    let (mut gate, mut own) = (entry("placed"), entry("own-path"));
    gate["onFailure"] = json!("block");
    own["env"] = json!({"PATH": "/opt/tools"});
    let hooks = json!({"before_tool": [entry("looked-up"), gate, own, entry("fine")]});
    lab.user("hooks.json", json!({ "hooks": hooks }).to_string());
    let ran = lab.run(&["doctor", "--json"]);
    let hooks = told(&ran, "hooks");
    let [looked_up, placed] = hooks.as_slice() else { panic!("{hooks:#?}") };
    assert!(looked_up.contains(":looked-up` fails at each of its events: `no-such-program`"), "{hooks:#?}");
    assert!(
        placed.contains(":placed` fails at each of its events and holds them up: `/no/such/program`"),
        "{hooks:#?}"
    );
    assert!(hooks.iter().all(|hook| hook.contains("install it") && hook.contains("`ollm hook edit")), "{hooks:#?}");
    let data = json!({"tool_name": "shell", "args": {"command": "ls"}}).to_string();
    let failures = |lab: &Lab| -> Vec<bool> {
        let ran = lab.run(&["explain", "before_tool", "--data", &data, "--json"]).answer();
        let own = |hook: &&Value| !hook["id"].as_str().unwrap().starts_with("builtin:");
        ran["hooks"].as_array().unwrap().iter().filter(own).map(|hook| !hook["failure"].is_null()).collect()
    };
    assert_eq!(failures(&lab), [true, true, false, false]);
    let listed = lab.run(&["hook", "list"]).stdout;
    assert!(["looked-up", "placed"].iter().all(|name| listed.contains(&format!("{name} cannot run: `"))), "{listed}");
}

#[test]
fn what_is_kept_of_the_files_is_told_where_it_is_outdated() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("session_start", "fine", "exit 0", "");
    let kept = lab.home.join(".ollm/state/snapshots");
    // What changed just now is not kept.
    crate::lab::eventually("a snapshot", || {
        lab.run(&["hook", "run", "session_start"]);
        kept.read_dir().is_ok_and(|mut files| files.next().is_some())
    });
    assert!(!told(&lab.run(&["doctor", "--json"]), "files").iter().any(|what| what.contains("outdated")));
    lab.user_hook("session_start", "fine", "exit 0", ", \"timeout\": 4321");
    let outdated = lab.run(&["doctor", "--json"]);
    assert!(told(&outdated, "files").iter().any(|what| what.contains("outdated")));
    assert_eq!(outdated.code, 0, "it does no harm: {outdated:?}");
    lab.run(&["doctor", "--fix"]);
    assert!(!kept.exists());
}

#[test]
fn a_settings_file_is_validated_as_what_it_is_and_one_that_stops_everything_is_a_finding() {
    let lab = Lab::new();
    let file = lab.write("home/.ollm/config.yaml", "hooks:\n  timeout: 3s\n");
    let validate = || lab.run(&["hook", "validate", file.to_str().unwrap()]);
    assert_eq!(validate().code, 0, "{:?}", validate());
    lab.write("home/.ollm/config.yaml", "hooks:\n  timout: 3s\n");
    let wrong = validate();
    assert!(wrong.code == 1 && wrong.stderr.contains("did you mean `timeout`?"), "{wrong:?}");
    lab.write("home/.ollm/config.yaml", "hooks:\n  box: nowhere\n");
    for ran in [validate(), lab.run(&["hook", "validate"])] {
        assert!(ran.code == 1 && ran.stderr.contains("config.yaml:2:8") && ran.stderr.contains('^'), "{ran:?}");
    }
}

#[test]
fn an_empty_search_path_is_a_fault_with_one_that_works() {
    let lab = Lab::new();
    let mut command = lab.ollm(&["doctor", "--json"]);
    command.env_remove("PATH");
    let found = told(&crate::lab::finish(command, b""), "process");
    assert!(found.iter().any(|what| what.contains("PATH is empty") && what.contains("/usr/bin:/bin")), "{found:?}");
}

#[test]
fn hook_files_are_validated_wherever_they_are() {
    let lab = Lab::with_default_boxes();
    lab.workspace_hook("before_tool", "fine", "exit 0", "");
    let fine = lab.run(&["hook", "validate"]);
    assert_eq!((fine.code, fine.stderr.contains("nothing is wrong with the one hook")), (0, true), "{fine:?}");
    lab.write(
        "draft/one.json",
        r#"{"hooks": {"before_tool": [{"name": "a", "command": "sh", "args": ["gone.sh"], "tiemout": 5}]}}"#,
    );
    assert_eq!(lab.run(&["hook", "validate"]).code, 0, "nobody reads it");
    insta::assert_snapshot!(lab.screen(&lab.run(&["hook", "validate", "../draft/one.json"])));
    assert_eq!(lab.run(&["hook", "validate", "../draft", "--json"]).answer().as_array().unwrap().len(), 2);
    assert_eq!(lab.run(&["hook", "validate", "../nowhere.json"]).code, 1);
    lab.user_hook("before_tool", "mine", "exit 0", "");
    lab.user("cases/mine/broken.json", "{\n  oops\n}");
    lab.user("cases/gone/fine.json", r#"{"event": "before_tool", "expect": {}}"#);
    let servers = lab.write("home/.ollm/settings/mcp.json", r#"{"mcpServers": {"clock": {"comand": "true"}}}"#);
    let all = lab.run(&["hook", "validate"]);
    let names = |part: &str| assert!(all.code == 1 && all.stderr.contains(part), "{part}: {}", all.stderr);
    ["cases/mine/broken.json:2:3", "settings/mcp.json:1:27", "hooks/cases/gone\n"].into_iter().for_each(names);
    let one = lab.run(&["hook", "validate", servers.to_str().unwrap()]);
    assert!(one.code == 1 && one.stderr.contains("unknown key `comand`"), "{one:?}");
    let broken_case = lab.home.join(".ollm/hooks/cases/mine/broken.json");
    let one = lab.run(&["hook", "validate", broken_case.to_str().unwrap()]);
    assert!(one.code == 1 && one.stderr.contains("broken.json:2:3"), "{one:?}");
    let configuration = lab.run(&["config", "validate"]);
    assert!(configuration.code == 1 && configuration.stderr.contains("settings/mcp.json:1:27"), "{configuration:?}");
}
