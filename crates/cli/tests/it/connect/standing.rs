//! How agents stand: which of them would ask twice, which have asked, and whose line leads nowhere.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{SETTINGS, call, line, read, status};
use crate::lab::{Lab, OLLM};

/// A lab in which no program is found but ours.
fn lab() -> Lab {
    let lab = Lab::new();
    let folder = lab.root.join("bin");
    fs::create_dir(&folder).unwrap();
    symlink(OLLM, folder.join("ollm")).unwrap();
    let path = folder.to_str().unwrap().to_owned();
    lab.set("PATH", &path)
}

fn connect(lab: &Lab, arguments: &[&str]) {
    let ran = lab.run(&[&["connect"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// The files by which an agent asks, and how each ends that.
fn ways_out(lab: &Lab, agent: &str) -> Vec<Value> {
    let status = status(lab, agent);
    let ways: Vec<Value> = status["askedBy"].as_array().unwrap().iter().map(|asker| asker["endedBy"].clone()).collect();
    assert_eq!(status["duplicated"], ways.len() > 1, "{status}");
    ways
}

#[test]
fn entries_of_a_person_and_of_a_project_are_duplicates_until_one_goes() {
    let lab = lab();
    connect(&lab, &["claude"]);
    assert_eq!(ways_out(&lab, "claude"), [json!("ollm disconnect claude")]);
    let ran = lab.run(&["connect", "claude", "--project"]);
    assert!(ran.stderr.contains("is told to ask more than once"), "{ran:?}");
    insta::assert_snapshot!(lab.screen(&lab.run(&["connect"])));
    let ways = ways_out(&lab, "claude");
    assert_eq!(ways, [json!("ollm disconnect claude"), json!("ollm disconnect claude --project")]);
    lab.run(&["disconnect", "claude", "--project"]);
    assert_eq!(ways_out(&lab, "claude").len(), 1);
    assert_eq!(lab.run(&["connect"]).code, 0);
}

#[test]
fn settings_of_another_agent_that_it_reads_are_duplicates() {
    let lab = lab();
    connect(&lab, &["claude"]);
    for agent in ["copilot", "cursor"] {
        assert_eq!(ways_out(&lab, agent).len(), 0, "{agent} is not connected itself");
        connect(&lab, &[agent]);
    }
    assert_eq!(ways_out(&lab, "copilot"), [json!("ollm disconnect copilot")], "it does not read a person's");
    assert_eq!(ways_out(&lab, "cursor"), [json!("ollm disconnect cursor"), json!("ollm disconnect claude")]);
    lab.run(&["disconnect", "claude"]);
    connect(&lab, &["claude", "--project"]);
    assert_eq!(ways_out(&lab, "claude").len(), 1);
    for agent in ["copilot", "cursor"] {
        let own = format!("ollm disconnect {agent}");
        assert_eq!(ways_out(&lab, agent), [json!(own), json!("ollm disconnect claude --project")]);
    }
    let told = lab.run(&["connect"]).stderr;
    assert!(told.contains("where its setting for third-party hooks is on"), "{told}");
}

#[test]
fn an_agent_that_does_not_number_its_calls_runs_hooks_each_time() {
    let lab = lab();
    for agent in ["gemini", "codex", "droid"] {
        connect(&lab, &[agent]);
        connect(&lab, &[agent, "--project"]);
    }
    let told = lab.run(&["connect"]).stderr;
    let line = |title: &str| told.lines().find(|line| line.contains(title) && line.contains("more than once")).unwrap();
    assert!(
        line("Factory Droid").ends_with("hooks run each time, because it does not number its tool calls"),
        "{told}"
    );
    assert!(line("Gemini CLI").ends_with("hooks run once all the same"), "{told}");
    assert!(line("Codex CLI").contains("hooks of a tool call run once all the same"), "{told}");
}

#[test]
fn a_home_that_is_a_project_has_one_file() {
    let lab = lab();
    fs::create_dir(lab.home.join(".git")).unwrap();
    connect(&lab, &["claude"]);
    let mut inside = lab.ollm(&["connect", "--json"]);
    inside.current_dir(&lab.home);
    let all = crate::lab::finish(inside, b"").answer();
    assert_eq!(all[0]["duplicated"], false, "{}", all[0]);
}

#[test]
fn an_agent_is_said_to_ask_only_after_it_asked() {
    let lab = lab();
    let mut seen = vec![lab.screen(&lab.run(&["connect", "claude"]))];
    seen.push(lab.screen(&lab.run(&["connect", "claude"])));
    assert!(lab.run(&["connect"]).stderr.contains("Claude Code is connected and has not asked yet"));
    assert_eq!(status(&lab, "claude")["asks"], false);

    call(&lab, &line(&lab), "git status");
    seen.push(lab.screen(&lab.run(&["connect", "claude"])));
    assert!(lab.run(&["connect"]).stderr.contains("Claude Code asks your hooks"));
    assert_eq!(status(&lab, "claude")["asks"], true);

    // What it asked before says nothing about the entries of now.
    lab.run(&["disconnect", "claude"]);
    assert_eq!(status(&lab, "claude")["asks"], false);
    seen.push(lab.screen(&lab.run(&["connect", "claude"])));
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn what_was_asked_before_an_agent_is_connected_says_nothing_of_the_connection() {
    let lab = lab();
    lab.event_from("claude", r#"{"hook_event_name": "Stop", "session_id": "s"}"#);
    connect(&lab, &["claude"]);
    assert_eq!(status(&lab, "claude")["lastFired"], Value::Null);
    call(&lab, &line(&lab), "git status");
    connect(&lab, &["claude", "--project"]);
    assert!(status(&lab, "claude")["lastFired"].is_string(), "it asks already");
}

#[test]
fn who_reads_the_settings_of_another_agent_is_not_taken_for_it() {
    for (agent, variable) in [("cursor", "CURSOR_PROJECT_DIR"), ("copilot", "COPILOT_PROJECT_DIR")] {
        let lab = lab();
        connect(&lab, &["claude"]);
        let folder = lab.project.to_str().unwrap().to_owned();
        let lab = lab.set(variable, &folder).set("CLAUDE_PROJECT_DIR", &folder);
        call(&lab, &line(&lab), "git status");
        assert_eq!(status(&lab, "claude")["lastFired"], Value::Null);
        assert!(status(&lab, agent)["lastFired"].is_string(), "{agent}");
    }
}

/// How a person's entry for Claude Code stands when it starts this in place of our program.
fn standing(lab: &Lab, program: &str) -> (String, String) {
    connect(lab, &["claude"]);
    let text = Value::from(program).to_string();
    lab.write(SETTINGS, read(lab, SETTINGS).replace(OLLM, &text[1..text.len() - 1]));
    let link = status(lab, "claude")["links"][0].clone();
    (link["state"].as_str().unwrap().to_owned(), link["detail"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_program_that_is_there_is_found_however_the_line_names_it() {
    let lab = lab();
    for folder in ["my tools", "o'brien", "home/.local", "project/bin"] {
        fs::create_dir(lab.root.join(folder)).unwrap();
        symlink(OLLM, lab.root.join(folder).join("ollm")).unwrap();
    }
    let root = lab.root.display();
    for program in [
        format!("'{root}/my tools/ollm'"),
        format!("\"{root}/my tools/ollm\""),
        format!("{root}/my\\ tools/ollm"),
        format!("'{root}/o'\\''brien/ollm'"),
        "~/.local/ollm".to_owned(),
        "$HOME/.local/ollm".to_owned(),
        "\"${HOME}/.local/ollm\"".to_owned(),
        "./bin/ollm".to_owned(),
        "bin/ollm".to_owned(),
        "ollm".to_owned(),
        "$WHO_KNOWS/ollm".to_owned(),
    ] {
        assert_eq!(standing(&lab, &program).0, "connected", "{program}");
    }
}

#[test]
fn a_program_that_moved_is_noticed_however_the_line_names_it() {
    let lab = lab();
    fs::create_dir(lab.root.join("my tools")).unwrap();
    symlink(lab.root.join("gone"), lab.root.join("my tools/ollm")).unwrap();
    let plain = lab.write("plain/ollm", "no program");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let root = lab.root.display();
    for (program, named) in [
        (format!("'{root}/my tools/ollm'"), format!("{root}/my tools/ollm")),
        (format!("'{root}/o'\\''brien/ollm'"), format!("{root}/o'brien/ollm")),
        (format!("{root}/plain/ollm"), format!("{root}/plain/ollm")),
        ("~/.local/ollm".to_owned(), "~/.local/ollm".to_owned()),
        ("\"$HOME/.local/ollm\"".to_owned(), "$HOME/.local/ollm".to_owned()),
        ("./bin/ollm".to_owned(), "./bin/ollm".to_owned()),
        ("bin/ollm".to_owned(), "bin/ollm".to_owned()),
        ("ollm-nightly".to_owned(), "ollm-nightly".to_owned()),
    ] {
        assert_eq!(standing(&lab, &program), ("moved".to_owned(), named), "{program}");
    }
    assert!(lab.run(&["connect"]).stdout.contains("names ollm-nightly, which is not on your PATH"));
}

#[test]
fn a_program_that_moved_is_noticed_in_files_of_our_own() {
    let lab = lab();
    for (agent, file) in [
        ("opencode", "home/.config/opencode/plugins/ollm.js"),
        ("cline", "home/Documents/Cline/Hooks/PreToolUse"),
        ("goose", "home/.agents/plugins/ollm/hooks/hooks.json"),
    ] {
        connect(&lab, &[agent]);
        lab.write(file, read(&lab, file).replace(OLLM, "'/gone/my tools/ollm'"));
        let link = status(&lab, agent)["links"][0].clone();
        assert_eq!((&link["state"], &link["detail"]), (&json!("moved"), &json!("/gone/my tools/ollm")), "{agent}");
    }
}

#[test]
fn a_projects_line_that_finds_no_program_is_said_to_do_nothing() {
    let lab = super::bare_lab();
    let ran = lab.run(&["connect", "claude", "--project"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("the line does nothing here: ollm is not on your PATH"), "{ran:?}");
    assert_eq!(status(&lab, "claude")["links"][0]["state"], "moved");
}
