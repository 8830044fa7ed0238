//! What `ollm doctor` finds, and that it finds nothing where everything works.

use std::fs;

use serde_json::{Value, json};

use crate::extensions::files;
use crate::lab::{Lab, OLLM, Ran};

/// The findings of an area, as they are told.
fn told(ran: &Ran, area: &str) -> Vec<String> {
    let findings = ran.answer()["findings"].as_array().unwrap().clone();
    let of_area = findings.iter().filter(|finding| finding["area"] == area);
    of_area.map(|finding| finding["what"].as_str().unwrap().to_owned()).collect()
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
fn a_fault_of_an_entry_names_what_mends_that_entry() {
    let lab = Lab::with_default_boxes().set("PATH", "/usr/bin:/bin");
    lab.run(&["connect", "claude", "--project"]);
    let help = |lab: &Lab| faults(&lab.run(&["doctor", "--json"]))[0]["help"].clone();
    assert_eq!(help(&lab), "put its folder on your PATH");
    let file = lab.project.join(".claude/settings.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("; ollm hook run", "; /nowhere/ollm hook run")).unwrap();
    assert_eq!(help(&lab), "`ollm connect --project claude` connects it again");
    fs::write(&file, "[").unwrap();
    assert_eq!(help(&lab), "mend the file");
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
    // Who took the entries out may not want them back.
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
    assert!(told(&lab.run(&["doctor", "--json"]), "files").iter().any(|what| what.contains("outdated")));
    lab.run(&["doctor", "--fix"]);
    assert!(!kept.exists());
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
    lab.user("cases/fine/broken.json", "{");
    lab.user_hook("before_tool", "mine", "exit 0", "");
    lab.user("cases/mine/broken.json", "{");
    let all = lab.run(&["hook", "validate"]);
    assert!(all.code == 1 && all.stderr.contains("cases/mine/broken.json"), "{all:?}");
}
