//! What is shown is what runs, and only a person consents.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::json;

use super::{ID, guests, lab, standing};
use crate::lab::{Lab, OLLM, Ran, finish, shell_event};

/// Words that are trouble for a shell, a terminal or a hurried reader.
const WORDS: &[&str] = &[
    "plain",
    "two words",
    "",
    "it's",
    "\"quoted\"",
    "$(id)",
    "`id`",
    "a;b",
    "a|b>c",
    "*",
    "~",
    "--",
    "-n",
    "back\\slash",
    "new\nline",
    "tab\there",
    "ümlaut 🦀",
    "#x",
    "!x",
    "a=b",
];

#[test]
fn a18_what_is_shown_is_what_runs_word_by_word() {
    let lab = Lab::new();
    let dump = "for word in \"$@\"; do printf '%s\\0' \"$word\"; done > words";
    lab.user("dump.sh", dump);
    lab.workspace("dump.sh", dump);
    for (source, id) in
        [("user", "user:dump.json:before_tool:dump"), ("workspace", "workspace:dump.json:before_tool:dump")]
    {
        let args: Vec<&str> = std::iter::once("dump.sh").chain(WORDS.iter().copied()).collect();
        let file = json!({"hooks": {"before_tool": [{"name": "dump", "command": "sh", "args": args}]}}).to_string();
        if source == "user" {
            lab.user("dump.json", file)
        } else {
            lab.workspace("dump.json", file)
        };
        if source == "workspace" {
            fs::remove_file(lab.home.join(".ollm/hooks/dump.json")).unwrap();
            lab.approve(id);
        }
        lab.event(shell_event("ls"));
        let ran = fs::read(lab.project.join("words")).unwrap();
        fs::remove_file(lab.project.join("words")).unwrap();
        let shown = lab.run(&["hook", "show", id, "--json"]).answer()["command"].as_str().unwrap().to_owned();
        let parsed = Command::new("sh").args(["-c", &format!("printf '%s\\0' {shown}")]).output().unwrap().stdout;
        let words = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).unwrap().split('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let (ran, parsed) = (words(&ran), words(&parsed));
        assert_eq!(parsed[0], "sh", "{source}");
        assert!(parsed[1].ends_with("/.ollm/hooks/dump.sh"), "{source}: {}", parsed[1]);
        assert_eq!(parsed[2..], ran[..], "{source}");
    }
}

#[test]
fn a18_the_hooks_that_are_listed_are_the_hooks_that_run() {
    let lab = Lab::new();
    let flat = json!({"name": "flat", "command": "sh", "args": ["x.sh"], "surprise": {"command": "evil"}});
    let lone = json!({"hooks": {"before_tool": flat}});
    let nested = json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": "echo one >> ran"}, {"type": "command", "command": "echo two >> ran", "x": 1}]}]}});
    lab.workspace("x.sh", "echo flat >> ran");
    lab.workspace("flat.json", json!({"hooks": {"before_tool": [flat], "hooks": {"before_tool": [flat]}}}).to_string());
    lab.workspace("lone.json", lone.to_string());
    lab.workspace("nested.json", nested.to_string().replace("echo ", "echo nested "));
    lab.write("project/.config/agent/settings.json", nested.to_string());
    lab.write("project/.config/agent/settings.local.json", json!({"hooks": nested}).to_string());
    let listed = guests(&lab);
    assert!(listed.len() >= 3, "{listed:?}");
    for id in &listed {
        lab.approve(id);
    }
    let ran = lab.event(shell_event("ls"));
    let answer = ran.answer();
    let ids: BTreeSet<String> =
        answer["hooks"].as_array().unwrap().iter().map(|hook| hook["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((ids, &answer["skipped"]), (listed.clone(), &json!([])));
    let marks = fs::read_to_string(lab.project.join("ran")).unwrap();
    assert_eq!(marks.lines().count(), listed.len(), "{marks}");
}

#[test]
fn c06_an_agent_cannot_approve_or_withdraw_in_any_way() {
    for sign in ["OLLM_AGENT", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CURSOR_AGENT", "QWEN_CODE"] {
        let lab = lab();
        let digest = lab.digest(ID);
        let lab = lab.set(sign, "1");
        for arguments in [
            &["hook", "trust", ID, "--digest", &digest][..],
            &["hook", "trust", "--all"],
            &["hook", "trust", "--review"],
            &["hook", "untrust", "--all"],
        ] {
            assert_eq!(lab.run(arguments).code, 4, "{sign}: {arguments:?}");
        }
        assert_eq!(lab.run(&["hook", "trust", "--list"]).code, 0, "looking is free");
        assert_eq!(standing(&lab), "untrusted");
    }
}

#[test]
fn c06_an_agent_cannot_do_without_approval_by_loosening_guards_for_one_run() {
    let loosened = ["hooks.trustWorkspace=true", "hooks.guards=[]", "hooks.untrusted=skip"];
    let loosened = loosened.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = loosened.chain(["hook", "run"]).collect();
    let person = lab();
    finish(person.ollm(&arguments), shell_event("ls").as_bytes()).hook("guest");
    let agent = lab().set("CLAUDECODE", "1");
    assert_eq!(finish(agent.ollm(&arguments), shell_event("rm -rf /").as_bytes()).code, 2, "the guards stand");
    let ran = finish(agent.ollm(&arguments), shell_event("ls").as_bytes());
    assert_eq!((ran.skip("guest")["reason"].as_str(), ran.code), (Some("untrusted"), 0), "{ran:?}");
    assert!(ran.stderr.contains("`hooks.trustWorkspace` is ignored: an agent may only make it stricter"), "{ran:?}");
    let stricter = ["--set", "hooks.untrusted=block", "hook", "run"];
    let ran = finish(agent.ollm(&stricter), shell_event("ls").as_bytes());
    assert_eq!((ran.skip("guest")["reason"].as_str(), ran.code), (Some("untrusted"), 2), "{ran:?}");
}

#[test]
fn c06_an_agent_cannot_scaffold_a_hook_that_needs_no_approval() {
    let lab = Lab::new().set("CLAUDECODE", "1");
    assert_eq!(lab.run(&["hook", "new", "helper", "--for", "context", "--in", "sh"]).code, 4);
    assert_eq!(fs::read_dir(lab.home.join(".ollm/hooks")).unwrap().count(), 0);
    assert_eq!(lab.run(&["hook", "new", "helper", "--project", "--in", "sh"]).code, 0, "that one needs approval");
}

#[test]
fn c06_nobody_but_ollm_itself_hands_a_task_to_the_background() {
    let lab = lab();
    let job = json!({
        "program": "/bin/sh", "arg0": null, "args": ["-c", "touch ran"], "env": [], "cwd": lab.project, "stdin": "",
        "limits": {"timeout": 5, "output": 1000},
    });
    let task = json!({
        "hook": "a", "traceId": "t", "event": "before_tool", "dialect": "ollm", "reads": true, "hides": [],
        "task": {"job": job},
    });
    let piped = finish(lab.ollm(&["hook", "background"]), task.to_string().as_bytes());
    let file = lab.write("task.json", task.to_string());
    let redirected = lab.ollm(&["hook", "background"]).stdin(fs::File::open(file).unwrap()).output().unwrap().into();
    for ran in [piped, redirected] {
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.stderr.contains("is for ollm itself"), "{ran:?}");
    }
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn c06_a_hook_that_hides_where_it_runs_cannot_approve_either() {
    let lab = lab();
    let digest = lab.digest(ID);
    let clean = format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" {OLLM}");
    let script = format!("{clean} hook trust '{ID}' --digest {digest} 2>said; echo $? >> said");
    lab.user_hook("session_start", "helper", &script, "");
    lab.run(&["hook", "run", "session_start"]);
    let said = fs::read_to_string(lab.project.join("said")).unwrap();
    assert!(said.contains("an agent may not approve hooks") && said.ends_with("4\n"), "{said}");
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn c07_nothing_a_project_writes_reaches_the_terminal_unescaped() {
    let lab = Lab::new();
    let tricks = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\u{2066}\u{200b}\u{8}\r\u{9b}31m";
    let name = format!("evil{tricks}");
    let script = format!("{name}.sh");
    lab.workspace(&script.replace('/', ""), format!("echo '{tricks}' >&2; exit 1\n"));
    let entry = json!({"name": name, "id": "evil", "description": tricks, "matcher": "*", "command": "sh", "args": [script],
        "env": {"A": tricks}});
    lab.workspace(
        &format!("{name}.json"),
        json!({"hooks": {"before_tool": [entry], tricks: []}, tricks: 1}).to_string(),
    );
    let shell =
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": format!("true {tricks}")}]}]}});
    lab.write("project/.config/agent/settings.json", shell.to_string());
    let check = |what: &str, ran: &Ran| {
        for text in [&ran.stderr, &ran.stdout] {
            let raw: Vec<char> = text
                .chars()
                .filter(|letter| {
                    (letter.is_control() && *letter != '\n') || "\u{202e}\u{2066}\u{200b}".contains(*letter)
                })
                .collect();
            assert!(raw.is_empty(), "{what}: {text:?}");
        }
    };
    for arguments in [
        &["hook", "list"][..],
        &["hook", "show", "evil"],
        &["hook", "show", &name],
        &["hook", "show", tricks],
        &["hook", "plan", "before_tool"],
        &["hook", "plan", tricks],
        &["hook", "run", tricks],
        &["hook", "trust", "evil"],
        &["hook", "trust", tricks],
    ] {
        check(&format!("{arguments:?}"), &lab.run(arguments));
    }
    let told = |ran: Ran| Ran { stdout: String::new(), ..ran };
    check("untrusted", &told(lab.event(shell_event(tricks))));
    lab.approve("evil");
    check("failed", &told(lab.event(shell_event(tricks))));
    check("trust --list", &lab.run(&["hook", "trust", "--list"]));
    check("untrust", &lab.run(&["hook", "untrust", "evil"]));
}

#[test]
fn b18_a_sub_agent_gets_nothing_past_the_guards_either() {
    let lab = Lab::new();
    for command in ["rm -rf /", "ollm hook trust --all"] {
        let data = json!({"tool_name": "shell", "agent_id": "sub-1", "args": {"command": command}});
        let ran = lab.event(json!({"event": "before_tool", "data": data}).to_string());
        assert_eq!(ran.code, 2, "{command}: {ran:?}");
        let event = json!({
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "agent_id": "sub-1", "agent_type": "helper",
            "tool_input": {"command": command},
        });
        assert_eq!(lab.event_from("agent", &event.to_string()).code, 2, "{command}");
    }
}

#[test]
fn b18_a_rewrite_gets_nothing_past_the_guards_in_either_direction() {
    for (written, rewritten) in [("rm -rf /", "ls"), ("ls", "rm -rf /"), ("ls", "ls -l")] {
        let lab = Lab::new();
        let answer = json!({"decision": "modify", "modified_args": {"command": rewritten}});
        lab.user_hook("PreToolUse", "rewrite", &format!("printf '%s' '{answer}'"), "");
        let ran = lab.event(shell_event(written));
        let expected = if rewritten == "ls -l" { 0 } else { 2 };
        assert_eq!(ran.code, expected, "{written} to {rewritten}: {ran:?}");
        assert_eq!(ran.hook("rewrite")["status"], "ok", "{ran:?}");
    }
}

#[test]
fn s02_where_the_user_says_so_nothing_is_approved_by_digest() {
    let lab = lab();
    let digest = lab.digest(ID);
    lab.write("home/.ollm/config.yaml", "hooks: {approveByDigest: false}\n");
    let ran = lab.run(&["hook", "trust", ID, "--digest", &digest]);
    let why = "nothing is approved by digest: hooks.approveByDigest is false (~/.ollm/config.yaml:1:";
    assert!(ran.code == 4 && ran.stderr.contains(why), "{ran:?}");
    assert_eq!(standing(&lab), "untrusted");
    let loosened = lab.run(&["--set", "hooks.approveByDigest=true", "hook", "trust", ID, "--digest", &digest]);
    assert!(loosened.code == 4 && loosened.stderr.contains(why), "{loosened:?}");
    assert_eq!(standing(&lab), "untrusted", "who hides behind another process looks like a person");
}

/// Runs a command of `unshare` in the lab; nothing where this system or user makes no such namespaces.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn unshared(lab: &Lab, words: &[&str]) -> Option<Ran> {
    let mut hidden = lab.program("unshare");
    hidden.args(words);
    let ran = finish(hidden, b"");
    if ran.stderr.contains("unshare failed") || ran.stderr.contains("Operation not permitted") {
        eprintln!("skipped: this system makes no namespaces: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

#[test]
fn s02_a_namespace_made_by_an_agent_hides_nothing() {
    let lab = lab();
    let digest = lab.digest(ID);
    let approval = ["hook", "trust", ID, "--digest", &digest];
    let users = unshared(&lab, &[&["-Urpf", "--mount-proc", OLLM][..], &approval].concat());
    if let Some(ran) = users {
        assert!(ran.code == 4 && ran.stderr.contains("user namespace"), "{ran:?}");
    }
    // Root needs no namespace of users. What it starts first is the ancestor of all others.
    let line = format!("{OLLM} {}; exit $?", approval.join(" "));
    for more in [&[][..], &["-u", "-i"]] {
        if let Some(ran) = unshared(&lab, &[&["-pf", "--mount-proc"][..], more, &["sh", "-c", &line]].concat()) {
            assert!(ran.code == 4 && ran.stderr.contains("PID namespace"), "{more:?}: {ran:?}");
        }
    }
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn s02_a_list_of_processes_that_an_agent_made_counts_for_nothing() {
    let lab = lab();
    let digest = lab.digest(ID);
    for (process, parent) in [("self", 1), ("1", 0)] {
        let status = format!("PPid:\t{parent}\nUid:\t0\t0\t0\t0\n");
        for (file, text) in [("status", status.as_str()), ("cmdline", "init"), ("uid_map", "0 0 4294967295\n")] {
            lab.write(&format!("project/list/{process}/{file}"), text);
        }
    }
    // In place of all of it, and of what it says about the process that asks.
    for (made, place, sign) in [("list", "", "list of processes"), ("list/self", "/$$", "cannot be seen")] {
        let line = format!("mount --bind {made} /proc{place} && exec {OLLM} hook trust {ID} --digest {digest}");
        let Some(ran) = unshared(&lab, &["-Urm", "sh", "-c", &line]) else { return };
        assert!(ran.code == 4 && ran.stderr.contains(sign), "{ran:?}");
    }
    assert_eq!(standing(&lab), "untrusted");
}
