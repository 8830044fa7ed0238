//! Boxes from the outside: real programs that try to get out of one, and real work that goes on in one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::agent::{call, lab, run, saved, task, text};
use crate::lab::{FOREVER, Lab, OLLM, Ran, finish};

mod attackers;
pub(crate) mod defaults;
mod evasions;
mod links;
mod narrow;
mod odd_places;
mod permissions;
mod repositories;
mod work;

/// What must be the same afterwards, with its content.
const PROTECTED: [&str; 7] = [
    "home/.ollm/config.yaml",
    "home/.ollm/hooks/guard.json",
    "home/.claude/settings.json",
    "home/.bashrc",
    "home/.ssh/authorized_keys",
    "project/.ollm/hooks/mine.json",
    "project/.git/hooks/pre-commit",
];

const CONTENT: &str = "{}\n";

fn guarded() -> Lab {
    let lab = Lab::with_default_boxes();
    protect(&lab);
    lab
}

fn protect(lab: &Lab) {
    for name in PROTECTED {
        let path = lab.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, CONTENT).unwrap();
    }
}

/// Panics if anything protected changed, or if something new would be read.
fn assert_intact(lab: &Lab, what: &str) {
    for name in PROTECTED {
        let now = fs::read_to_string(lab.root.join(name));
        assert_eq!(now.as_deref().ok(), Some(CONTENT), "{what}: {name}");
    }
    for name in [
        "home/.claude/settings.local.json",
        "home/.codex/hooks.json",
        "project/.claude/settings.json",
        "project/.mcp.json",
    ] {
        assert!(lab.root.join(name).symlink_metadata().is_err(), "{what}: {name} appeared");
    }
}

fn boxed(lab: &Lab, command: &[&str]) -> Ran {
    lab.run(&[&["box", "--"], command].concat())
}

/// Whether namespaces can be used here; a box then has to be whole.
fn namespaces_work() -> bool {
    let args = ["-Urm", "mount", "--bind", "/tmp", "/tmp"];
    Command::new("unshare").args(args).output().is_ok_and(|output| output.status.success())
}

/// Whether a box is whole here, and the reason on the screen if not.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn is_whole(lab: &Lab) -> bool {
    let ran = boxed(lab, &["true"]);
    if ran.code == 0 && ran.stderr.is_empty() {
        return true;
    }
    assert!(!namespaces_work(), "namespaces work here, and yet: {ran:?}");
    eprintln!("skipped: {}", ran.stderr);
    false
}

#[test]
fn a_command_in_a_box_has_our_streams_and_gives_its_exit_code() {
    let lab = guarded();
    let ran = finish(lab.ollm(&["box", "--", "sh", "-c", "cat; echo error >&2; exit 7"]), b"input");
    assert_eq!((ran.stdout.as_str(), ran.code), ("input", 7), "{ran:?}");
    assert!(ran.stderr.ends_with("error\n"));
    assert_eq!(boxed(&lab, &["sh", "-c", "kill -9 $$"]).code, 137);
    let ran = boxed(&lab, &["no-such-program"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("`no-such-program` is in no folder of your PATH"), "{ran:?}");
    assert_eq!(lab.run(&["box"]).code, 64);
    assert_eq!(lab.run(&["box", "--policy", "off", "--", "true"]).code, 64);
}

#[test]
fn where_namespaces_work_the_box_is_on_and_says_so() {
    let lab = lab(&[text("hello")]);
    if !is_whole(&lab) {
        return;
    }
    assert_eq!(run(&lab, &["--json"]).answer()["box"], json!({"state": "on", "reason": null}));
    let doctor = lab.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("\"box\""), "{doctor:?}");
}

#[test]
fn the_shell_tool_runs_in_a_box_in_every_mode_and_the_model_is_told() {
    // The name is put together where no guard reads it.
    let evil = "python3 -c \"n='.b'+'ashrc'; import os; open(os.path.expanduser('~/'+n),'a').write('evil')\"";
    for mode in ["ask", "auto", "yolo"] {
        let lab = lab(&[call("shell", json!({"command": evil})), text("done")]);
        protect(&lab);
        if !is_whole(&lab) {
            return;
        }
        // A person who says yes to the command does not open the box.
        let arguments = task(&["--approval", mode]);
        let ran = match mode {
            "yolo" => lab.run(&arguments),
            _ => crate::lab::pty::typed(&lab, &["May it run?=>y\\r", "done=>"], &arguments),
        };
        assert_intact(&lab, mode);
        let refused = json!(saved(&lab)).to_string();
        assert!(refused.contains("The box refused a change of a protected file"), "{mode}: {refused} {ran:?}");
    }
}

#[test]
fn a_refusal_is_explained_to_who_reads_the_errors_of_a_command() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let line = "The box refused a change of a protected file";
    let ran = boxed(&lab, &["sh", "-c", "echo evil > ~/.bashrc; echo done"]);
    assert_eq!(ran.stdout, "done\n");
    assert!(ran.stderr.contains("Read-only file system") && ran.stderr.contains(line), "{ran:?}");
    let mut shell = lab.program("sh");
    let script = "\"$OLLM\" box -- sh -c 'echo 1; echo evil > ~/.bashrc; echo 2; echo 3 >&2; echo 4' 2>&1";
    shell.args(["-c", script]).env("OLLM", OLLM);
    let ran = finish(shell, b"");
    assert!(ran.stdout.starts_with("1\n") && ran.stdout.contains("\n2\n3\n4\n"), "in their order: {ran:?}");
    assert!(ran.stdout.contains(line), "{ran:?}");
    assert_eq!(boxed(&lab, &["sh", "-c", "echo error >&2; exit 1"]).stderr, "error\n");
    if let Some(ran) = without_namespaces(&lab, "echo evil > ~/.bashrc") {
        assert!(ran.stderr.contains(line), "{ran:?}");
    }
}

#[test]
fn what_appears_is_moved_aside_and_told_to_the_model_and_the_person() {
    // Backwards, so that the guards find no name in it.
    let evil = "python3 -c \"import os; d=os.path.expanduser('edualc./~'[::-1]); os.makedirs(d, exist_ok=True); open(os.path.join(d,'nosj.lacol.sgnittes'[::-1]),'w').write('evil')\"";
    for form in [&[][..], &["--json"]] {
        let lab = lab(&[call("shell", json!({"command": evil})), text("done")]);
        protect(&lab);
        let ran = run(&lab, &[&["--approval", "yolo"], form].concat());
        assert_intact(&lab, evil);
        assert_eq!(
            fs::read_to_string(lab.home.join(".claude/settings.local.json.set-aside-1")).ok().as_deref(),
            Some("evil"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("is protected and was made by the command"), "{ran:?}");
    }
}

#[test]
fn a_daemon_ends_with_its_command() {
    let lab = guarded();
    let ran = boxed(&lab, &["sh", "-c", &format!("setsid {FOREVER} > /dev/null 2>&1 & exit 0")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    lab.assert_nobody_is_left();
    let ran = boxed(&lab, &["sh", "-c", &format!("(env -i setsid {FOREVER} &) > /dev/null 2>&1; exit 0")]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn only_the_users_file_or_the_policy_switches_the_box_off() {
    let lab = lab(&[text("hello")]);
    if !is_whole(&lab) {
        return;
    }
    lab.write("project/.ollm/config.yaml", "agent:\n  box: off\n");
    let ran = run(&lab, &["--json"]);
    assert_eq!(ran.answer()["box"]["state"], "on");
    assert!(ran.stderr.contains("a project cannot open the box of the user"), "{ran:?}");
    assert_ne!(lab.run(&["--set", "agent.box=off", "doctor"]).code, 0);
    lab.write("project/.ollm/config.yaml", "version: 1\n");
    lab.write("home/.ollm/config.yaml", "agent:\n  box: off\n");
    let ran = run(&lab, &["--json"]);
    assert_eq!(ran.answer()["box"]["state"], "off");
    assert!(ran.stderr.contains("shell commands run without a box"), "{ran:?}");
    lab.write("home/.ollm/config.yaml", "agent:\n  box: maybe\n");
    assert_eq!(run(&lab, &["--json"]).code, 3);
    lab.write("home/.ollm/config.yaml", "agent:\n  boxSockets: [nobody]\n");
    assert_eq!(run(&lab, &["--json"]).code, 3);
}

/// Runs its arguments where no namespaces can be made.
const NO_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";

/// A script in a box where no namespaces can be made; nothing if there is no such box here.
fn without_namespaces(lab: &Lab, inside: &str) -> Option<Ran> {
    partial_box(lab, &[], inside)
}

/// The same with these options.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn partial_box(lab: &Lab, options: &[&str], inside: &str) -> Option<Ran> {
    if !namespaces_work() || !Path::new("/proc/sys/user/max_user_namespaces").exists() {
        eprintln!("skipped: namespaces do not work here anyway");
        return None;
    }
    let mut command = lab.program("unshare");
    command.args(["-Ur", "sh", "-c", NO_NAMESPACES, "sh", OLLM, "box"]).args(options).args(["--", "sh", "-c", inside]);
    let ran = finish(command, b"");
    if ran.stderr.contains("there is no box on this machine") {
        eprintln!("skipped: {}", ran.stderr);
        return None;
    }
    assert!(ran.stderr.contains("the box is partial: the kernel allows no user namespace"), "{ran:?}");
    Some(ran)
}

#[test]
fn without_namespaces_the_box_is_partial_and_says_why() {
    let lab = guarded();
    let attack = "echo evil > ~/.bashrc; rm -rf ~/.ollm; echo evil > .git/hooks/pre-commit; mkdir .claude; echo evil > .claude/settings.json; echo x > ok";
    let Some(ran) = without_namespaces(&lab, attack) else { return };
    for name in PROTECTED {
        assert_eq!(fs::read_to_string(lab.root.join(name)).unwrap(), CONTENT, "{name}: {ran:?}");
    }
    assert!(!lab.project.join(".claude/settings.json").exists());
    assert!(lab.project.join("ok").exists(), "{ran:?}");
}

#[test]
fn sudo_says_why_it_cannot_work() {
    let words = "sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.";
    let lab = lab(&[call("shell", json!({"command": "./sudo true"})), text("done")]);
    lab.write_executable("project/sudo", &format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"));
    let ran = run(&lab, &["--approval", "yolo"]);
    assert!(ran.stderr.contains("`sudo` cannot work in the box"), "{ran:?}");
}

#[test]
fn sockets_that_lead_out_are_hidden_unless_the_user_names_them() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    fs::create_dir_all(lab.root.join("run")).unwrap();
    let lab = lab.set("XDG_RUNTIME_DIR", "/nonexistent");
    let socket = lab.home.join(".docker/run");
    fs::create_dir_all(&socket).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(socket.join("docker.sock")).unwrap();
    let connect =
        "import os,socket; s=socket.socket(socket.AF_UNIX); s.connect(os.path.expanduser('~/.docker/run/docker.sock'))";
    assert_ne!(boxed(&lab, &["python3", "-c", connect]).code, 0);
    lab.write("home/.ollm/config.yaml", "agent:\n  boxSockets: [docker]\n");
    let ran = boxed(&lab, &["python3", "-c", connect]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A folder that we may write to and that is no temporary one, wherever this repository lies.
fn lasting_folder() -> PathBuf {
    let temporary = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from).into_iter().chain([std::env::temp_dir()]);
    let temporary: Vec<PathBuf> = temporary.filter_map(|folder| folder.canonicalize().ok()).collect();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let folders = [Some(env!("CARGO_MANIFEST_DIR").into()), home, Some("/opt".into()), Some("/".into())];
    let is_lasting = |folder: &PathBuf| {
        !temporary.iter().any(|temporary| folder.starts_with(temporary))
            && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
    };
    folders.into_iter().flatten().filter_map(|folder| folder.canonicalize().ok()).find(is_lasting).unwrap()
}

#[test]
fn the_settings_of_the_box_can_stand_in_one_map() {
    let lab = guarded();
    lab.write("home/.ollm/config.yaml", "agent:\n  box:\n    policy: strict\n    sockets: [docker]\n");
    let value = |key: &str| lab.run(&["config", "get", key]).stdout.trim().to_owned();
    assert_eq!((value("agent.box"), value("agent.box.sockets")), ("strict".to_owned(), value("agent.boxSockets")));
    assert!(value("agent.boxSockets").contains("docker"));
    for (key, new) in [("agent.box.policy", "on"), ("agent.boxSockets", "[tmux]"), ("agent.box", "strict")] {
        let set = lab.run(&["config", "set", key, new]);
        assert_eq!(set.code, 0, "{set:?}");
    }
    let text = fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap();
    assert_eq!(text, "agent:\n  box:\n    policy: strict\n    sockets: [tmux]\n");
    lab.write("home/.ollm/config.yaml", "agent:\n  box:\n    sockets: [nobody]\n");
    assert_ne!(boxed(&lab, &["true"]).code, 0);
    lab.write("home/.ollm/config.yaml", "agent:\n  box:\n    socket: [docker]\n");
    let set = lab.run(&["config", "validate"]);
    assert!(set.stdout.contains("unknown key `socket`") || set.stderr.contains("unknown key `socket`"), "{set:?}");
    lab.write("home/.ollm/config.yaml", CONTENT);
    assert_eq!(lab.run(&["config", "set", "agent.box.sockets", "[docker]"]).code, 0);
    assert!(value("agent.box.sockets").contains("docker"));
}

#[test]
fn the_strict_policy_leaves_only_the_project_temporary_folders_and_caches_writable_and_hides_secrets() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    // The lab lies in a temporary folder, so a place that is none has to be outside of it.
    let strict = |script: &str| lab.run(&["box", "--policy", "strict", "--", "sh", "-c", script]);
    assert_eq!(strict("echo x > file && echo x > /tmp/ollm-box-test && rm /tmp/ollm-box-test").code, 0);
    let here = lasting_folder();
    assert_ne!(strict(&format!("touch {}/ollm-box-test", here.display())).code, 0);
    assert!(!here.join("ollm-box-test").exists());
    let ran = strict("cat ~/.ssh/authorized_keys");
    assert_eq!((ran.stdout.as_str(), ran.code != 0), ("", true), "{ran:?}");
    assert_intact(&lab, "strict");
}

#[test]
fn a_connected_agent_has_its_commands_rewritten_for_the_box_where_it_lets_a_hook_change_them() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let connected = lab.run(&["connect", "claude", "--box"]);
    assert_eq!(connected.code, 0, "{connected:?}");
    let settings = fs::read_to_string(lab.home.join(".claude/settings.json")).unwrap();
    assert_eq!(settings.matches("--box").count(), 1, "{settings}");
    lab.write("home/.claude/settings.json", CONTENT);
    lab.write("project/evil.py", "import os; open(os.path.expanduser('~/.bash' + 'rc'), 'w').write('evil')");
    // A command that begins as a boxed one may have another behind it.
    for start in [String::new(), format!("{OLLM} box -- true; ")] {
        let command = format!("{start}python3 evil.py; echo 'it''s done'");
        let event = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": lab.project, "tool_name": "Bash",
            "tool_input": {"command": command}});
        let asked = finish(lab.ollm(&["hook", "run", "--from", "claude", "--box"]), event.to_string().as_bytes());
        let command = asked.answer()["hookSpecificOutput"]["updatedInput"]["command"].as_str().unwrap().to_owned();
        let mut shell = lab.program("bash");
        shell.args(["-c", &command]);
        let ran = finish(shell, b"");
        assert_eq!((ran.stdout.as_str(), ran.code), ("its done\n", 0), "{ran:?}");
        assert_intact(&lab, &command);
    }
    let refused = lab.run(&["connect", "qwen", "--box"]);
    assert_eq!(refused.code, 64);
    assert!(refused.stderr.contains("lets no hook change a command"), "{refused:?}");
}
