//! Hooks switched on and off by a person, apart from the files that declare them.

use serde_json::json;

use crate::lab::{Lab, finish, hook_file, shell_event};

const REFUSE: &str = "printf '{\"continue\": false}'";

fn refusing(more: &str) -> Lab {
    let lab = Lab::new();
    lab.user_hook("before_tool", "no", REFUSE, more);
    lab
}

#[test]
fn a_hook_that_is_switched_off_does_not_run_until_it_is_switched_on() {
    let lab = refusing("");
    assert_eq!(lab.run(&["hook", "disable", "no"]).stdout, "user:no.json:before_tool:no is off\n");
    let ran = lab.event(shell_event("ls"));
    let skip = ran.skip("no");
    assert_eq!((ran.code, &skip["reason"]), (0, &json!("disabled")));
    assert_eq!(skip["detail"], "switched off; `ollm hook enable user:no.json:before_tool:no` switches it on");
    assert_eq!(lab.run(&["hook", "list", "--json"]).answer()[2]["enabled"], false);
    assert_eq!(lab.run(&["hook", "enable", "no"]).stdout, "user:no.json:before_tool:no is on\n");
    assert_eq!(lab.event(shell_event("ls")).code, 2);
}

#[test]
fn a_hook_that_its_file_switches_off_can_be_switched_on() {
    let lab = refusing(r#", "enabled": false"#);
    assert_eq!(lab.event(shell_event("ls")).code, 0);
    lab.run(&["hook", "enable", "no"]);
    assert_eq!(lab.event(shell_event("ls")).code, 2);
    lab.run(&["hook", "disable", "no"]);
    assert_eq!(lab.event(shell_event("ls")).code, 0);
}

#[test]
fn a_hook_is_off_for_as_long_as_was_said() {
    let lab = refusing("");
    assert!(lab.run(&["hook", "disable", "no", "--for", "10m"]).stdout.ends_with("is off for 10 min\n"));
    let detail = lab.event(shell_event("ls")).skip("no")["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("switched off for another 10 min;"), "{detail}");
    // What was said an hour ago no longer holds.
    let file = lab.home.join(".ollm/state/switches.json");
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["switches"]["hook:user:no.json:before_tool:no"]["until"] = json!(1);
    std::fs::write(&file, kept.to_string()).unwrap();
    assert_eq!(lab.event(shell_event("ls")).code, 2);
    for time in ["soon", "0s", "-5m", "10"] {
        assert_eq!(lab.run(&["hook", "disable", "no", &format!("--for={time}")]).code, 64, "{time}");
    }
}

#[test]
fn which_guards_are_on_is_said_in_the_configuration_alone() {
    let lab = Lab::new();
    let guard = "builtin:destructive-commands";
    let refused = lab.run(&["hook", "disable", guard]);
    assert!(refused.code == 64 && refused.stderr.contains("hooks.guards"), "{refused:?}");
    assert_eq!(lab.event(shell_event("rm -rf /usr")).code, 2);
    let agent = Lab::new().set("CLAUDECODE", "1");
    for arguments in
        [&["hook", "disable", guard][..], &["hook", "enable", guard], &["hook", "disable", guard, "--for", "5m"]]
    {
        let refused = agent.run(arguments);
        assert_eq!((refused.code, refused.stderr.contains("an agent may not switch hooks")), (4, true), "{refused:?}");
    }
    assert_eq!(agent.event(shell_event("rm -rf /usr")).code, 2);
    assert_eq!(lab.run(&["config", "set", "hooks.guards", "[self-protection]"]).code, 0);
    assert_eq!(lab.event(shell_event("rm -rf /usr")).code, 0);
}

#[test]
fn switching_a_hook_on_approves_nothing() {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", REFUSE, r#", "enabled": false"#);
    lab.run(&["hook", "enable", "guest"]);
    assert_eq!(lab.event(shell_event("ls")).skip("guest")["reason"], "untrusted");
}

#[test]
fn switches_that_cannot_be_relied_on_switch_nothing_and_are_told_of() {
    let lab = refusing("");
    let file = lab.write("home/.ollm/state/switches.json", "{");
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, ran.stderr.contains("nothing is switched on or off")), (2, true), "{ran:?}");
    assert_eq!(lab.run(&["hook", "disable", "no"]).code, 5);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "{");
}

#[test]
fn the_switch_of_a_project_s_hook_is_for_that_project_alone() {
    let lab = Lab::new();
    for project in ["project", "other"] {
        lab.write(&format!("{project}/.git/HEAD"), "");
        lab.write(&format!("{project}/.ollm/hooks/guest.sh"), "exit 0");
        lab.write(&format!("{project}/.ollm/hooks/guest.json"), hook_file("before_tool", "guest", ""));
    }
    lab.write("home/.ollm/config.yaml", "hooks: {trustWorkspace: true}\n");
    lab.user_hook("before_tool", "own", "exit 0", "");
    let runs = |project: &str, hook: &str| {
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(lab.root.join(project));
        let answer = finish(command, shell_event("ls").as_bytes()).answer();
        answer["hooks"].as_array().unwrap().iter().any(|ran| ran["name"] == hook)
    };
    assert_eq!(lab.run(&["hook", "disable", "guest"]).code, 0);
    assert_eq!([runs("project", "guest"), runs("other", "guest")], [false, true]);
    assert_eq!(lab.run(&["hook", "enable", "guest"]).code, 0);
    assert!(runs("project", "guest"));
    // A file of an older version: what it says of the user's hooks still counts.
    let switches = r#"{"version": 1, "switches": {
        "hook:user:own.json:before_tool:own": {"on": false}, "hook:workspace:guest.json:before_tool:guest": {"on": false}}}"#;
    lab.write("home/.ollm/state/switches.json", switches);
    assert_eq!([runs("project", "guest"), runs("project", "own")], [true, false]);
}

#[test]
fn hooks_that_are_off_all_together_show_as_such() {
    let lab = Lab::with_hook("before_tool", "mine", "exit 0");
    lab.write("home/.ollm/config.yaml", "hooks:\n  enabled: false\n");
    let listed = lab.run(&["hook", "list", "--json"]);
    let enabled: Vec<bool> =
        listed.answer().as_array().unwrap().iter().map(|hook| hook["enabled"].as_bool().unwrap()).collect();
    assert_eq!(enabled, [true, true, false], "the guards stay on");
    assert_eq!(listed.stderr.matches("hooks are off").count(), 1, "{}", listed.stderr);
    let listed = lab.run(&["hook", "list"]);
    assert!(listed.stdout.lines().last().unwrap().starts_with("mine                  disabled"), "{}", listed.stdout);
    assert_eq!(listed.stderr.matches("hooks are off").count(), 1, "{}", listed.stderr);
    let id = lab.run(&["hook", "list", "--json"]).answer()[2]["id"].as_str().unwrap().to_owned();
    let shown = lab.run(&["hook", "show", &id]);
    assert!(shown.stdout.contains("enabled     hooks.enabled is false (~/.ollm/config.yaml:2:12)"), "{}", shown.stdout);
    assert_eq!(lab.run(&["hook", "show", &id, "--json"]).answer()["enabled"], false);
}
