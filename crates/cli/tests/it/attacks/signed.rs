//! Approvals that only a passphrase makes, and a policy that only root writes.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{ID, canaries, is_root, judged, lab, set_mode, standing};
use crate::embed::{ARGUMENTS, embed, talk};
use crate::lab::pty::{WHOLE, typed};
use crate::lab::{Lab, OLLM, Ran, finish, hook_file, shell_event};

const PASSPHRASE: &str = "correct horse";
const ASKED: &str = r"approval key: =>correct horse\n";

/// Makes a key for the user of a lab; what is approved already is signed.
pub(crate) fn make_key(lab: &Lab) {
    let type_it = |prompt: &str| format!("{prompt}: =>{PASSPHRASE}\\n");
    let (first, second) = (type_it("characters"), type_it("more"));
    let mut steps = vec![first.as_str(), second.as_str()];
    if lab.home.join(".ollm/trusted-hooks.json").exists() {
        steps.insert(0, r"[y/N] =>y\n");
    }
    let ran = typed(lab, &steps, &["trust", "init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stdout.contains(PASSPHRASE), "it is not shown: {ran:?}");
}

/// Approves the project's hook, as a person who knows the passphrase.
fn approve(lab: &Lab) -> Ran {
    typed(lab, &[r"[N]o: =>a\n", ASKED], &["hook", "trust", ID])
}

fn list(lab: &Lab) -> Value {
    serde_json::from_slice(&fs::read(lab.home.join(".ollm/trusted-hooks.json")).unwrap()).unwrap()
}

fn write_list(lab: &Lab, list: &Value) {
    lab.write("home/.ollm/trusted-hooks.json", list.to_string());
}

fn status(lab: &Lab) -> Value {
    lab.run(&["trust", "status", "--json"]).answer()
}

#[test]
fn s02_an_approval_is_made_and_withdrawn_with_the_passphrase() {
    let lab = lab();
    make_key(&lab);
    let ran = approve(&lab);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stdout.contains(PASSPHRASE) && !ran.stdout.contains("[o]nce"), "{ran:?}");
    assert_eq!(standing(&lab), "ran");
    let now = status(&lab);
    assert_eq!((&now["signed"], &now["counting"], &now["serial"]), (&json!(true), &json!(1), &json!(2)), "{now}");
    assert_eq!(lab.run(&["hook", "untrust", ID]).code, 4, "no person is there to ask");
    assert_eq!(standing(&lab), "ran");
    let ran = typed(&lab, &[ASKED], &["hook", "untrust", ID]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(standing(&lab), "untrusted");
    assert_eq!(list(&lab)["serial"], 3);
    let secret = lab.home.join(".ollm/approval.key");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(secret).unwrap().permissions()) & 0o777, 0o600);
}

#[test]
fn s02_a_wrong_passphrase_is_a_no_after_three_tries() {
    let lab = lab();
    make_key(&lab);
    let before = list(&lab);
    let wrong = r"approval key: =>wrong horse\n";
    let ran = typed(&lab, &[r"[N]o: =>a\n", wrong, wrong, wrong, ASKED], &["hook", "trust", ID]);
    assert!(ran.code == 4 && ran.stdout.contains("wrong 3 times"), "{ran:?}");
    let ran = typed(&lab, &[r"[N]o: =>a\n", r"approval key: =>\n", ASKED], &["hook", "trust", ID]);
    assert!(ran.code == 4 && ran.stdout.contains("no passphrase was given"), "{ran:?}");
    let ahead = [r"[N]o: =>a\ncorrect horse\n", r"approval key: =>\n"];
    let ran = typed(&lab, &ahead, &["hook", "trust", ID]);
    assert_eq!(ran.code, 4, "what was typed before the question is no passphrase: {ran:?}");
    assert_eq!((list(&lab), standing(&lab).as_str()), (before, "untrusted"));
    let ran = typed(&lab, &[r"[N]o: =>a\n", wrong, ASKED], &["hook", "trust", ID]);
    assert_eq!((ran.code, standing(&lab).as_str()), (0, "ran"), "{ran:?}");
}

#[test]
fn s02_no_digest_approves_where_approvals_are_signed() {
    let lab = lab();
    make_key(&lab);
    let digest = lab.digest(ID);
    let ran = lab.run(&["hook", "trust", ID, "--digest", &digest]);
    assert!(ran.code == 4 && ran.stderr.contains("no terminal to ask on"), "{ran:?}");
    assert_eq!(standing(&lab), "untrusted");
    let ran = typed(&lab, &[ASKED], &["hook", "trust", ID, "--digest", &digest]);
    assert_eq!((ran.code, standing(&lab).as_str()), (0, "ran"), "{ran:?}");
}

#[test]
fn s02_a_list_that_was_edited_by_hand_counts_for_nothing_and_is_not_signed_along() {
    let lab = lab();
    lab.approve(ID);
    let unsigned = list(&lab);
    fs::remove_file(lab.home.join(".ollm/trusted-hooks.json")).unwrap();
    make_key(&lab);
    write_list(&lab, &unsigned);
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("is not signed, and hooks.approvalKey"), "{ran:?}");
    assert_eq!(lab.run(&["trust", "status"]).code, 1);

    lab.workspace_hook("before_tool", "other", "true", "");
    let ran = typed(&lab, &[r"[N]o: =>a\n", ASKED], &["hook", "trust", "workspace:other.json:before_tool:other"]);
    assert!(ran.code == 4 && ran.stdout.contains("ollm trust init"), "{ran:?}");
    assert!(!ran.stdout.contains("Passphrase"), "nobody is asked in vain: {ran:?}");
    assert_eq!(standing(&lab), "untrusted");

    // A person who looks at the list may sign it after all.
    let ran = typed(&lab, &[r"[y/N] =>y\n", ASKED], &["trust", "init"]);
    assert!(ran.code == 0 && ran.stdout.contains(ID), "{ran:?}");
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn s02_an_older_list_cannot_be_put_back() {
    let lab = lab();
    make_key(&lab);
    assert_eq!(approve(&lab).code, 0);
    let approved = list(&lab);
    assert_eq!(typed(&lab, &[ASKED], &["hook", "untrust", ID]).code, 0);
    write_list(&lab, &approved);
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("is an older list that was put back: it has serial 2, and 3 was seen"), "{ran:?}");
}

#[test]
fn s02_a_yes_in_a_conversation_needs_the_passphrase_too() {
    for (passphrase, runs) in [("wrong horse", false), (PASSPHRASE, true)] {
        for answer in ["o", "s"] {
            let lab = Lab::new();
            lab.workspace_hook("before_agent", "guest", "touch ../ran; echo '{\"continue\": true}'", "");
            lab.write("talk.jsonl", r#"{"content": "done"}"#);
            make_key(&lab);
            let (yes, secret) = (format!(r"[N]o: =>{answer}\n"), format!(r"approval key: =>{passphrase}\n"));
            let steps = [yes.as_str(), &secret, &secret, &secret];
            let ran = typed(&lab, &steps, &["run", "do it", "--model", "replay:../talk.jsonl"]);
            assert_eq!(lab.root.join("ran").exists(), runs, "{answer}: {ran:?}");
        }
    }
}

#[test]
fn s02_an_interrupt_after_a_passphrase_ends_the_turn_and_not_the_chat() {
    let lab = Lab::new();
    lab.workspace_hook("before_agent", "guest", "echo '{\"continue\": true}'", "");
    let call = json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": "sleep 1000"}}]});
    lab.write("talk.jsonl", format!("{call}\n{}\n", json!({"content": "again"})));
    make_key(&lab);
    let mut chat = lab.pty(WHOLE, &["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    chat.waits_for("> ").types("go\r").waits_for("[N]o: ").types("s\r");
    chat.waits_for("approval key: ").types(&format!("{PASSPHRASE}\r"));
    chat.sees("tool shell · ");
    chat.types("\x03").waits_for("interrupted").waits_for("> ").types("go on\r");
    chat.waits_for("again").waits_for("> ").types("\x04");
    assert_eq!(chat.ends().code, 0);
}

#[test]
fn s02_extensions_and_servers_are_approved_in_the_same_signed_list() {
    let lab = Lab::new();
    lab.write(
        "project/.ollm/extensions/one/manifest.json",
        r#"{"name": "one", "version": "1.0.0", "description": "d"}"#,
    );
    let server = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", "true"]}}});
    lab.write("project/.ollm/settings/mcp.json", server.to_string());
    make_key(&lab);
    let standing = || {
        let (extensions, servers) = (lab.run(&["ext", "list", "--json"]), lab.run(&["mcp", "list", "--json"]));
        let trust = |ran: &Ran| ran.answer()[0]["trust"].as_str().unwrap_or_default().to_owned();
        (trust(&extensions), trust(&servers))
    };
    let before = standing();
    for (command, name) in [("ext", "one"), ("mcp", "s")] {
        let wrong = r"approval key: =>wrong horse\n";
        let ran = typed(&lab, &[r"[y/N] =>y\n", wrong, wrong, wrong], &[command, "trust", name]);
        assert!(ran.code == 4 && ran.stdout.contains("wrong 3 times"), "{ran:?}");
        assert_eq!(standing(), before);
    }
    for (command, name) in [("ext", "one"), ("mcp", "s")] {
        let ran = typed(&lab, &[r"[y/N] =>y\n", ASKED], &[command, "trust", name]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let after = standing();
    assert!(after.0 != before.0 && after.1 != before.1, "{before:?} {after:?}");
    let mut edited = list(&lab);
    edited["approvals"][0]["approvedBy"] = json!("somebody else");
    write_list(&lab, &edited);
    assert_eq!(standing(), before);
}

#[test]
fn s02_only_a_person_at_a_terminal_makes_a_key() {
    let lab = lab();
    lab.approve(ID);
    let ran = lab.run(&["trust", "init"]);
    assert!(ran.code == 4 && ran.stderr.contains("no terminal"), "{ran:?}");
    let steps = [r"[y/N] =>y\n", r"characters: =>correct horse\n", r"more: =>correct hearse\n"];
    assert_eq!(typed(&lab, &steps, &["trust", "init"]).code, 64);
    assert_eq!(typed(&lab, &[r"[y/N] =>n\n"], &["trust", "init"]).code, 4);
    let short = [r"[y/N] =>y\n", r"characters: =>short\n", r"more: =>short\n"];
    assert_eq!(typed(&lab, &short, &["trust", "init"]).code, 64);
    let lab = lab.set("CLAUDECODE", "1");
    assert_eq!(typed(&lab, &steps, &["trust", "init"]).code, 4);
    assert!(!lab.home.join(".ollm/approval.key").exists());
    assert!(!fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap().contains("approvalKey"));
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn s02_a_key_that_is_there_is_taken_again() {
    let lab = lab();
    make_key(&lab);
    let before = fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap();
    lab.write("home/.ollm/config.yaml", "");
    lab.approve(ID);
    let ran = typed(&lab, &[r"[y/N] =>y\n", ASKED], &["trust", "init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap(), before);
    assert_eq!((standing(&lab).as_str(), &status(&lab)["counting"]), ("ran", &json!(1)));
    fs::remove_file(lab.home.join(".ollm/approval.key")).unwrap();
    let ran = typed(&lab, &[r"[y/N] =>y\n"], &["trust", "init"]);
    assert!(ran.code == 5 && ran.stdout.contains("approval.key is not there"), "{ran:?}");
    assert_eq!(standing(&lab), "ran", "what was signed stays signed");
}

#[test]
fn s02_the_key_cannot_be_set_for_one_run_or_by_a_variable() {
    let lab = lab();
    make_key(&lab);
    assert_eq!(approve(&lab).code, 0);
    let other = "hooks.approvalKey=RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    let ran = lab.run(&["--set", other, "hook", "list"]);
    assert!(ran.code == 64 && ran.stderr.contains("counts only in config.yaml of the user"), "{ran:?}");
    let lab = lab.set("OLLM_HOOKS_APPROVAL_KEY", "x");
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn s02_an_agent_changes_neither_the_key_nor_what_was_seen_nor_the_policy() {
    let lab = Lab::new();
    for file in
        ["~/.ollm/approval.key", "~/.ollm/approval.pub", "~/.ollm/state/approval-serial.json", "/etc/ollm/policy.yaml"]
    {
        for command in [format!("echo x > {file}"), format!("rm {file}"), format!("sudo cp x {file}")] {
            let ran = lab.event(shell_event(&command));
            assert_eq!(ran.code, 2, "{command}: {ran:?}");
        }
    }
}

/// A machine whose `/etc` holds a policy and nothing else, in a mount namespace of its own.
struct Machine<'a> {
    lab: &'a Lab,
}

impl Machine<'_> {
    #[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
    fn new<'a>(lab: &'a Lab, policy: &str) -> Option<Machine<'a>> {
        if !is_root(lab) {
            return None;
        }
        lab.write("etc/ollm/policy.yaml", policy);
        let machine = Machine { lab };
        let ran = finish(machine.command("true", &[]), b"");
        if ran.code != 0 {
            eprintln!("skipped: this system makes no mount namespaces: {}", ran.stderr);
        }
        (ran.code == 0).then_some(machine)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.lab.program("unshare");
        let etc = self.lab.root.join("etc");
        command.args(["-m", "sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\""]).arg(etc).arg(program);
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(OLLM, arguments), b"")
    }

    fn event(&self) -> Ran {
        finish(self.command(OLLM, &["hook", "run"]), shell_event("ls").as_bytes())
    }
}

#[test]
fn s02_what_the_policy_demands_holds_whatever_the_user_files_say() {
    let lab = lab();
    make_key(&lab);
    assert_eq!(approve(&lab).code, 0);
    let key = status(&lab)["key"].as_str().unwrap().to_owned();
    let Some(machine) = Machine::new(&lab, &format!("hooks:\n  approvalKey: {key}\n")) else { return };
    assert_eq!(judged(&lab, &machine.event()), "ran");

    // The key is gone from the user's file, and what is planted there counts for nothing.
    lab.write("home/.ollm/config.yaml", "hooks:\n  trustWorkspace: true\n");
    assert_eq!(judged(&lab, &machine.event()), "ran");
    let signed = list(&lab);
    let mut planted = signed.clone();
    planted["signature"] = Value::Null;
    write_list(&lab, &planted);
    let ran = machine.event();
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("/etc/ollm/policy.yaml"), "{ran:?}");
    assert!(ran.stderr.contains("`trustWorkspace` is ignored"), "{ran:?}");
    write_list(&lab, &signed);

    // Without what the key signed of the last serial, no list counts.
    let memory = lab.home.join(".ollm/state/approval-serial.json");
    let kept = fs::read(&memory).unwrap();
    fs::remove_file(&memory).unwrap();
    let ran = machine.event();
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("may be an older list"), "{ran:?}");

    // An attacker who puts back an older list with all that was seen of newer ones meets the floor.
    fs::write(&memory, kept).unwrap();
    lab.write("etc/ollm/policy.yaml", format!("hooks:\n  approvalKey: {key}\n  approvalSerial: 3\n"));
    let ran = machine.event();
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("hooks.approvalSerial of the machine's policy is 3"), "{ran:?}");

    let shown = machine.run(&["config", "get", "hooks.approvalKey", "--json"]).answer();
    assert_eq!((&shown["layer"], &shown["file"]), (&json!("policy"), &json!("/etc/ollm/policy.yaml")));
    let told = machine.run(&["trust", "status", "--json"]).answer();
    assert_eq!((&told["byPolicy"], &told["counting"], &told["leastSerial"]), (&json!(true), &json!(0), &json!(3)));
    assert_eq!(told["policy"]["fixed"].as_array().unwrap().len(), 2, "{told}");
}

#[test]
fn s02_no_file_of_the_user_turns_off_a_guard_that_the_policy_wants() {
    let lab = lab();
    let Some(machine) = Machine::new(&lab, "hooks:\n  guards: true\n") else { return };
    lab.write("home/.ollm/config.yaml", "hooks: {guards: []}\n");
    let destroy = |command: Command| finish(command, shell_event("mkfs.ext4 /dev/sda1").as_bytes()).code;
    assert_eq!(destroy(lab.ollm(&["hook", "run"])), 0);
    assert_eq!(destroy(machine.command(OLLM, &["hook", "run"])), 2);
}

#[test]
fn s02_what_the_policy_requires_is_asked_each_time_a_call_is() {
    let lab = lab();
    let log = lab.root.join("log");
    lab.write("etc/ollm/hooks/log.json", hook_file("before_tool", "log", ""));
    lab.write("etc/ollm/hooks/log.sh", format!("echo ran >> {}", log.display()));
    let Some(machine) = Machine::new(&lab, "hooks:\n  guards: true\n") else { return };
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_use_id": "c", "tool_name": "Bash",
        "tool_input": {"command": "ls"}});
    for _ in 0..2 {
        finish(machine.command(OLLM, &["hook", "run", "--from", "claude"]), call.to_string().as_bytes());
    }
    assert_eq!(fs::read_to_string(log).unwrap().lines().count(), 2);
    assert!(!lab.home.join(".ollm/state/calls").exists());
}

#[test]
fn s02_what_the_policy_requires_holds_in_a_program_that_embeds_us() {
    let lab = lab();
    lab.write("etc/ollm/hooks/no.json", hook_file("before_tool", "no", ""));
    lab.write("etc/ollm/hooks/no.sh", r#"printf '{"continue": false, "systemMessage": "the machine says no"}'"#);
    let Some(machine) = Machine::new(&lab, "hooks:\n  guards: true\n") else { return };
    talk(&lab, &["ls"]);
    let mut command = machine.command(embed().to_str().unwrap(), &ARGUMENTS);
    command.current_dir(&lab.project);
    let ran = finish(command, b"");
    assert!(ran.stdout.contains("refused at before_tool: no: the machine says no"), "{ran:?}");
}

#[test]
fn s02_a_policy_that_others_can_write_stops_everything() {
    let lab = lab();
    let Some(machine) = Machine::new(&lab, "hooks:\n  guards: true\n") else { return };
    assert_eq!(machine.event().code, 0);
    for (path, mode, fine) in [("etc/ollm/policy.yaml", 0o646, 0o644), ("etc/ollm", 0o777, 0o755)] {
        set_mode(&lab.root.join(path), mode);
        let ran = machine.event();
        assert!(ran.code == 3 && ran.stderr.contains("the policy cannot be relied on"), "{path}: {ran:?}");
        assert_eq!(machine.run(&["mcp", "list"]).code, 3);
        set_mode(&lab.root.join(path), fine);
    }
    assert_eq!(canaries(&lab), 0);
}

#[test]
fn s02_what_the_policy_requires_runs_whatever_the_user_does() {
    let lab = Lab::new();
    let Some(machine) = Machine::new(&lab, "") else { return };
    lab.write("etc/ollm/hooks/audit.json", hook_file("before_tool", "audit", r#", "onFailure": "block""#));
    lab.write(
        "etc/ollm/hooks/audit.sh",
        "grep -q forbidden && echo '{\"continue\": false}' || echo '{\"continue\": true}'\n",
    );
    let asked = |command: &str| finish(machine.command(OLLM, &["hook", "run"]), shell_event(command).as_bytes());
    let ran = asked("ls");
    assert_eq!((ran.code, &ran.hook("audit")["source"]), (0, &json!("policy")), "{ran:?}");
    assert_eq!(asked("forbidden").code, 2);

    let id = "policy:audit.json:before_tool:audit";
    for command in ["disable", "edit", "remove"] {
        let ran = machine.run(&["hook", command, id]);
        assert!(ran.code == 64 && ran.stderr.contains("is required by the machine's policy"), "{command}: {ran:?}");
    }
    let switches = json!({"version": 1, "switches": {format!("hook:{id}"): {"on": false}}});
    lab.write("home/.ollm/state/switches.json", switches.to_string());
    lab.write(
        "home/.ollm/config.yaml",
        "hooks:\n  enabled: false\n  timeout: 1\n  rateLimit: {perMinute: 1}\n  whitelist: [node]\n",
    );
    assert_eq!([asked("ls").code, asked("ls").code, asked("forbidden").code], [0, 0, 2]);
    let off = asked("ls").stderr;
    assert!(off.contains("except for the built-in guards and those that the policy requires"), "{off}");

    // No hook gets past it by rewriting what it has seen.
    let rewrite = r#"echo '{"continue": true, "decision": "modify", "modified_args": {"command": "forbidden"}}'"#;
    lab.write("home/.ollm/config.yaml", "");
    lab.user_hook("before_tool", "rewrite", rewrite, "");
    let ran = asked("ls");
    assert_eq!((ran.code, &ran.hook("rewrite")["status"]), (2, &json!("ok")), "{ran:?}");
}
