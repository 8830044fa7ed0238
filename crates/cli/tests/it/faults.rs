//! Hooks that hang, flood, fork and die: each is stopped within its deadline, reported, and leaves nothing behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{FOREVER, Lab, OLLM, Ran, finish, lines, outcome, shell_event, start};

/// Far more than any run takes that honours its deadline, far less than a hook that is waited for.
const SOON: Duration = Duration::from_mins(2);

/// Runs one hook of the user under a memory limit, and makes sure that nothing of it is left.
fn run(event: &str, script: &str, more: &str) -> Ran {
    run_with(event, script, more, shell_event("ls").as_bytes())
}

fn run_with(event: &str, script: &str, more: &str, input: &[u8]) -> Ran {
    let lab = Lab::with_default_boxes();
    lab.user_hook(event, "hook", script, more);
    let begin = Instant::now();
    let ran = finish(lab.ollm_in_little_memory(&["hook", "run"]), input);
    assert!(begin.elapsed() < SOON);
    lab.assert_nobody_is_left();
    ran
}

fn status(ran: &Ran) -> (String, i32) {
    (ran.hook("hook")["status"].as_str().unwrap().to_owned(), ran.code)
}

fn error(ran: &Ran) -> String {
    ran.hook("hook")["error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn b01_a_hook_that_hangs_is_stopped_at_its_deadline() {
    let ran = run("before_tool", FOREVER, r#", "timeout": "200ms""#);
    assert_eq!(
        (status(&ran), error(&ran).as_str()),
        (("timeout".into(), 0), "did not answer within 200ms and was stopped")
    );
    assert_eq!(
        ran.stderr,
        "ollm: user hook `hook` (user:hook.json:before_tool:hook) failed: did not answer within 200ms and was stopped; \
         the call goes on: `\"onFailure\": \"block\"` in the hook would stop it\n"
    );
    let gate = run("pre-tool-call", FOREVER, r#", "timeout": "200ms""#);
    assert_eq!(status(&gate), ("timeout".into(), 2));
    let reason = gate.answer()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with(
            "user hook `hook` (user:hook.json:pre-tool-call:hook) failed: did not answer within 200ms and was stopped"
        ),
        "{reason}"
    );
}

#[test]
fn b02_a_hook_that_ignores_the_polite_signal_is_killed() {
    let ran = run("pre-tool-call", "trap '' TERM INT HUP; while :; do sleep 1000; done", r#", "timeout": "200ms""#);
    assert_eq!(status(&ran), ("timeout".into(), 2));
}

#[test]
fn the_rest_runs_after_a_hook_was_stopped() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("before_tool", "a", FOREVER, r#", "timeout": "200ms""#);
    lab.user_hook("before_tool", "b", "printf '{\"continue\": true}'", "");
    let ran = lab.event(shell_event("ls"));
    assert_eq!((&ran.hook("a")["status"], &ran.hook("b")["status"]), (&json!("timeout"), &json!("ok")));
}

#[test]
fn b03_a_descendant_that_keeps_the_output_open_cannot_hold_us() {
    for fork in ["(sleep 1000 &)", "(setsid sleep 1000 &)", "(setsid sh -c '(sleep 1000 &) ; sleep 1000' &)"] {
        let ran = run("before_tool", &format!("cat >/dev/null; {fork}; printf '{{\"continue\": true}}'"), "");
        assert_eq!(status(&ran), ("ok".into(), 0), "{fork}");
        assert_eq!(ran.hook("hook")["leaky"], true, "{fork}");
    }
}

#[test]
fn a_descendant_in_the_background_is_ended_with_its_hook() {
    let script = "cat >/dev/null; (setsid sleep 1000 >/dev/null 2>&1 </dev/null &); printf '{\"continue\": true}'";
    let ran = run("before_tool", script, "");
    assert_eq!((status(&ran), ran.hook("hook").get("leaky")), (("ok".into(), 0), None));
}

#[test]
fn b05_a_flood_on_either_stream_is_stopped_at_the_limit_within_bounded_memory() {
    for flood in ["yes", "yes >&2", "head -c 1000000000 /dev/zero", "head -c 1000000000 /dev/zero >&2"] {
        let ran = run("before_tool", flood, "");
        assert_eq!(status(&ran), ("failed".into(), 0), "{flood}");
        assert!(
            error(&ran).starts_with("wrote more than its limit `output` of 1048576 bytes and was stopped"),
            "{flood}: {ran:?}"
        );
        assert_eq!(status(&run("pre-tool-call", flood, "")), ("failed".into(), 2), "{flood}");
    }
}

#[test]
fn the_limit_of_the_output_can_be_set() {
    let ran = run("before_tool", "yes | head -c 5000", r#", "limits": {"output": "4KiB"}"#);
    assert!(error(&ran).starts_with("wrote more than its limit `output` of 4096 bytes and was stopped"), "{ran:?}");
}

fn large_event() -> Vec<u8> {
    let text = "x".repeat(8 << 20);
    json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}, "note": text}})
        .to_string()
        .into_bytes()
}

#[test]
fn b04_a_hook_that_never_reads_its_input_is_no_trouble() {
    let event = large_event();
    let answers = run_with("before_tool", "printf '{\"continue\": true}'", "", &event);
    assert_eq!(status(&answers), ("ok".into(), 0));
    let hangs = run_with("before_tool", FOREVER, r#", "timeout": "300ms""#, &event);
    assert_eq!(status(&hangs), ("timeout".into(), 0));
    let closes = run_with("before_tool", "exec <&-; printf '{\"continue\": true}'", "", &event);
    assert_eq!(status(&closes), ("ok".into(), 0));
}

#[test]
fn a_large_event_reaches_the_hook_whole() {
    let ran = run_with(
        "before_tool",
        "printf '{\"continue\": true, \"data\": {\"bytes\": %s}}' \"$(wc -c)\"",
        "",
        &large_event(),
    );
    assert!(ran.answer()["data"]["bytes"].as_u64().unwrap() > 8 << 20);
}

#[test]
fn b10_a_hook_that_dies_by_a_signal_is_a_failure_that_names_it() {
    for (signal, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
        let ran = run("before_tool", &format!("kill -{signal} $$"), "");
        assert_eq!((status(&ran), error(&ran)), (("failed".into(), 0), format!("was killed by signal {number}")));
    }
}

#[test]
fn a_flood_of_brackets_is_a_failure() {
    for bracket in ["[", "{", "]", "{\"a\":"] {
        let script = format!("yes '{bracket}' | head -n 200000 | tr -d '\\n'");
        for (event, code) in [("before_tool", 0), ("pre-tool-call", 2)] {
            let ran = run(event, &script, "");
            assert_eq!(status(&ran), ("failed".into(), code), "{bracket} in {event}");
        }
    }
}

#[test]
fn a_refusal_nested_too_deeply_elsewhere_still_counts() {
    let script = "printf '{\"continue\": false, \"data\": '; yes '[' | head -n 5000 | tr -d '\\n'; yes ']' | head -n 5000 | tr -d '\\n'; printf '}'";
    assert_eq!(run("before_tool", script, "").code, 2);
}

#[test]
fn b09_a_program_that_cannot_be_started_is_a_failure_and_never_a_refusal() {
    let lab = Lab::with_default_boxes();
    lab.write("home/.ollm/hooks/not-executable", "#!/bin/sh\n");
    lab.write_executable("home/.ollm/hooks/bad-shebang", "#!/no/such/interpreter\n");
    lab.write_executable("home/.ollm/hooks/not-a-program", "\u{7f}ELF nonsense");
    let entries: Vec<_> = ["not-executable", "bad-shebang", "not-a-program"]
        .map(|name| json!({"name": name, "command": format!("./{name}")}))
        .into();
    lab.user("hooks.json", json!({"hooks": {"before_tool": entries, "after_tool": [{"name": "same", "command": "./bad-shebang", "onFailure": "block"}]}}).to_string());
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.code, 0);
    for (name, part) in [
        ("not-executable", "is not executable; run `chmod +x"),
        ("bad-shebang", "/no/such/interpreter"),
        ("not-a-program", "not-a-program"),
    ] {
        let hook = ran.hook(name);
        assert_eq!(hook["status"], "failed", "{hook}");
        assert!(hook["error"].as_str().unwrap().contains(part), "{hook}");
    }
    let blocked = lab.run(&["hook", "run", "after_tool"]);
    assert_eq!((blocked.code, blocked.hook("same")["status"].as_str()), (2, Some("failed")));
}

#[test]
fn b09_a_missing_script_or_interpreter_is_a_skip_and_in_gate_a_failure() {
    let lab = Lab::with_default_boxes();
    lab.user("a.json", crate::lab::hook_file("before_tool", "no-script", ""));
    lab.user("b.json", r#"{"hooks": {"before_tool": [{"name": "no-program", "command": "uvx", "args": ["x"]}]}}"#);
    let lab = lab.set("PATH", "/nonexistent");
    let ran = lab.event(shell_event("ls"));
    let (script, program) = (ran.skip("no-script"), ran.skip("no-program"));
    assert_eq!((&script["reason"], &program["reason"], ran.code), (&json!("missing"), &json!("missing"), 0));
    assert!(program["detail"].as_str().unwrap().starts_with("`uvx` is not on PATH"), "{program}");
    let gate = Lab::with_default_boxes();
    gate.user("a.json", crate::lab::hook_file("pre-tool-call", "no-script", ""));
    let ran = gate.event(shell_event("ls"));
    assert_eq!((ran.code, ran.hook("no-script")["status"].as_str()), (2, Some("failed")));
    assert!(ran.answer()["reason"].as_str().unwrap().contains("no-script.sh does not exist"), "{ran:?}");
}

#[test]
fn b11_limits_hold_a_hook_back_and_nobody_else() {
    let script = "import json, sys\ntry:\n    x = bytearray(1 << 30)\nexcept MemoryError:\n    x = None\n\
                  json.dump({'continue': True, 'data': {'held': x is None}}, sys.stdout)\n";
    let lab = Lab::with_default_boxes();
    lab.user("greedy.py", script);
    lab.user("greedy.json", r#"{"hooks": {"before_tool": [{"name": "hook", "command": "python3", "args": ["greedy.py"], "limits": {"memory": "256MiB"}}]}}"#);
    let ran = lab.event(shell_event("ls"));
    assert_eq!((status(&ran), &ran.answer()["data"]["held"]), (("ok".into(), 0), &json!(true)));
}

#[test]
fn b11_a_hook_that_opens_a_million_files_is_held_back() {
    let script = "import json, os, sys\nopened = 0\ntry:\n    while opened < 1000000:\n        \
                  os.open('/dev/null', os.O_RDONLY)\n        opened += 1\nexcept OSError:\n    pass\n\
                  json.dump({'continue': True, 'data': {'opened': opened}}, sys.stdout)\n";
    let lab = Lab::with_default_boxes();
    lab.user("greedy.py", script);
    lab.user("greedy.json", r#"{"hooks": {"before_tool": [{"name": "hook", "command": "python3", "args": ["greedy.py"], "limits": {"files": 64}}]}}"#);
    let ran = lab.event(shell_event("ls"));
    assert_eq!(status(&ran), ("ok".into(), 0));
    assert!(ran.answer()["data"]["opened"].as_u64().unwrap() <= 64, "{ran:?}");
}

/// A hook that has a grandchild and says when both run; `start` stands before the grandchild's command.
fn busy(lab: &Lab, start: &str) -> std::path::PathBuf {
    let fifo = lab.fifo("ready");
    let path = fifo.display();
    lab.user_hook(
        "before_tool",
        "busy",
        &format!("{start} sh -c 'echo grandchild > {path}; sleep 1000' &\necho hook > {path}; sleep 1000"),
        "",
    );
    fifo
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The signals that ask a program to end, without those that `nohup` or a shell's `&` has these tests ignore: they stay ignored.
fn polite() -> impl Iterator<Item = (&'static str, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
    [("-TERM", 15), ("-INT", 2), ("-HUP", 1)].into_iter().filter(move |(_, signal)| ignored >> (signal - 1) & 1 == 0)
}

/// What the host sees: the signal by which `ollm` died, and nothing that could pass for an answer.
fn assert_died(child: Child, signal: i32) {
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.signal(), output.stdout, output.stderr), (Some(signal), Vec::new(), Vec::new()));
}

/// Starts `ollm` and waits until a hook and its grandchild run.
fn start_busy(lab: &Lab, start_of_grandchild: &str) -> Child {
    let fifo = busy(lab, start_of_grandchild);
    let mut child = start(lab.ollm(&["hook", "run"]));
    child.stdin.take().unwrap().write_all(shell_event("ls").as_bytes()).unwrap();
    let mut ready = two(&fifo);
    ready.sort();
    assert_eq!(ready, ["grandchild", "hook"]);
    child
}

/// Ends `ollm` while a hook and its grandchild run.
fn die_midway((name, signal): (&str, i32), start_of_grandchild: &str) -> Lab {
    let lab = Lab::with_default_boxes();
    let child = start_busy(&lab, start_of_grandchild);
    kill(name, child.id());
    assert_died(child, signal);
    lab
}

#[test]
fn b12_our_own_death_leaves_no_hook_and_no_grandchild() {
    for signal in [("-KILL", 9)].into_iter().chain(polite()) {
        die_midway(signal, "").assert_nobody_is_left();
    }
}

#[test]
fn our_own_death_leaves_nothing_that_left_its_group_either() {
    for signal in [("-KILL", 9)].into_iter().chain(polite()) {
        die_midway(signal, "setsid").assert_nobody_is_left();
        die_midway(signal, "trap '' TERM INT HUP; setsid").assert_nobody_is_left();
        die_midway(signal, "exec >/dev/null 2>&1 </dev/null; setsid setsid").assert_nobody_is_left();
        die_midway(signal, "setsid setsid -f").assert_nobody_is_left();
    }
}

#[test]
fn our_own_death_leaves_nothing_of_a_hook_that_runs_us() {
    let lab = Lab::with_default_boxes();
    let (ready, list) = (lab.fifo("ready"), lab.root.join("list"));
    let daemon =
        format!("printf %s \"$OLLM_LIFELINE\" > {}; echo up > {}; sleep 1000", list.display(), ready.display());
    lab.user_hook("after_tool", "inner", &format!("setsid setsid -f sh -c '{daemon}' >/dev/null 2>&1; sleep 1000"), "");
    let event = r#"{"event": "after_tool", "data": {"tool_name": "shell"}}"#;
    lab.user_hook("before_tool", "outer", &format!("echo '{event}' | {OLLM} hook run"), "");
    let mut child = start(lab.ollm(&["hook", "run"]));
    child.stdin.take().unwrap().write_all(shell_event("ls").as_bytes()).unwrap();
    assert_eq!(lines(&ready, 1), ["up"]);
    assert_eq!(std::fs::read_to_string(list).unwrap().matches(',').count(), 2, "both guards know it");
    kill("-KILL", child.id());
    assert_died(child, 9);
    lab.assert_nobody_is_left();
}

#[test]
fn of_several_polite_signals_the_first_is_what_we_die_of() {
    let lab = Lab::with_default_boxes();
    let child = start_busy(&lab, "trap 'touch $OLLM_PROJECT_DIR/asked; exec sleep 1000' TERM; setsid");
    kill("-TERM", child.id());
    while !lab.project.join("asked").exists() && !lab.processes().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill("-HUP", child.id());
    kill("-INT", child.id());
    assert_died(child, 15);
    lab.assert_nobody_is_left();
}

#[test]
fn no_hook_starts_once_we_were_asked_to_end() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("before_tool", "next", "touch \"$OLLM_PROJECT_DIR/ran\"", r#", "priority": "low""#);
    let child = start_busy(&lab, "setsid");
    kill("-TERM", child.id());
    assert_died(child, 15);
    lab.assert_nobody_is_left();
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn a_signal_that_we_were_started_to_ignore_is_ignored() {
    let lab = Lab::with_default_boxes();
    let (ready, go) = (lab.fifo("ready"), lab.fifo("go"));
    let script = format!("echo hook > {}; cat {}", ready.display(), go.display());
    lab.user_hook("before_tool", "hook", &script, "");
    let mut command = lab.program("/bin/sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" hook run", OLLM]);
    let mut child = start(command);
    child.stdin.take().unwrap().write_all(shell_event("ls").as_bytes()).unwrap();
    assert_eq!(lines(&ready, 1), ["hook"]);
    kill("-HUP", child.id());
    std::fs::write(go, r#"{"continue": true}"#).unwrap();
    assert_eq!(status(&outcome(child)), ("ok".into(), 0));
}

#[test]
fn a_signal_while_we_wait_for_the_event_ends_us_at_once() {
    for (name, signal) in polite() {
        let lab = Lab::with_default_boxes();
        let mut child = start(lab.ollm(&["hook", "run"]));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(br#"{"event": "#).unwrap();
        kill(name, child.id());
        assert_died(child, signal);
    }
}

#[test]
fn a_polite_end_of_the_demo_leaves_neither_hooks_nor_home() {
    let lab = Lab::with_default_boxes();
    let temporary = lab.root.join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let lab = lab.set("TMPDIR", temporary.to_str().unwrap());
    let mut child = start(lab.ollm(&["demo"]));
    // The hook that runs into its deadline is among the later ones, so there is time after the first line.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    kill("-INT", child.id());
    // What it still tells must not stop it.
    stdout.read_to_string(&mut String::new()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lab.assert_nobody_is_left();
    assert_eq!(std::fs::read_dir(temporary).unwrap().count(), 0);
}

/// Both lines, whether they come through one opening of the pipe or two.
fn two(fifo: &std::path::Path) -> Vec<String> {
    // Open for writing too: between two writers there is no end, after which the second would wait for a reader in vain.
    let fifo = std::fs::File::options().read(true).write(true).open(fifo).unwrap();
    std::io::BufReader::new(fifo).lines().take(2).map(Result::unwrap).collect()
}

#[test]
fn b13_an_event_that_stops_halfway_is_given_up() {
    let lab = Lab::with_hook("before_tool", "hook", "touch ran");
    let begin = Instant::now();
    let stalled: Vec<_> = [(3, &[][..]), (2, &["--from", "agent"])]
        .into_iter()
        .map(|(code, host)| {
            let mut child = start(lab.ollm(&[&["hook", "run"], host].concat()));
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(br#"{"event": "before_tool", "da"#).unwrap();
            (code, child, stdin)
        })
        .collect();
    for (code, child, _open) in stalled {
        let ran = outcome(child);
        assert!(begin.elapsed() < SOON);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""));
        assert!(ran.stderr.contains("only a part of the event arrived within 10s"), "{}", ran.stderr);
    }
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn half_an_event_is_answered_before_its_host_goes_on_without_us() {
    let lab = Lab::with_hook("before_tool", "hook", "touch ran");
    let cases = [
        // What is refused, and what an agent would only do again.
        (&["PreToolUse", "--from", "claude", "--within", "2s"][..], true),
        (&["SessionEnd", "--from", "claude"][..], false),
        (&["Stop", "--from", "droid", "--within", "2s"][..], false),
    ];
    let stalled = cases.map(|(arguments, refused)| {
        let mut child = start(lab.ollm(&[&["hook", "run"], arguments].concat()));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(br#"{"hook_event_name": "PreTo"#).unwrap();
        (refused, child, stdin)
    });
    for (refused, child, _open) in stalled {
        let ran = outcome(child);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("when the time was up that its host waits"), "{ran:?}");
        let decides = ran.answer().as_object().unwrap().keys().any(|key| key != "systemMessage");
        assert_eq!(decides, refused, "{ran:?}");
    }
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn a_host_that_waits_longer_than_a_clock_can_tell_still_gets_an_answer() {
    let lab = Lab::with_hook("before_tool", "hook", "echo '{\"continue\": false}'");
    let event = br#"{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    for time in ["9223372036854775807s", "1000000000000d"] {
        let ran = finish(lab.ollm(&["hook", "run", "--from", "claude", "--within", time]), event);
        assert!(ran.code == 0 && ran.stdout.contains("deny"), "{time}: {ran:?}");
    }
}

#[test]
fn b14_events_at_the_same_time_do_not_disturb_one_another() {
    let lab = Lab::with_hook("before_tool", "echo", "printf '{\"continue\": true, \"data\": %s}' \"$(cat)\"");
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let lab = &lab;
            scope.spawn(move || {
                for turn in 0..10 {
                    let text = format!("{worker}-{turn}");
                    let answer = lab.event(shell_event(&text)).answer();
                    assert_eq!(answer["data"]["data"]["args"]["command"], text);
                }
            });
        }
    });
}

#[test]
fn without_standard_streams_the_answer_goes_nowhere() {
    let lab = Lab::with_hook("before_tool", "hook", "exit 0");
    let mut command = lab.program("sh");
    command.args(["-c", &format!("exec {OLLM} hook run before_tool <&- >&- 2>&-")]);
    let ran = finish(command, b"");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("", "", 0));
    let kept = std::fs::read_to_string(lab.home.join(".ollm/trace/trace.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1, "{kept}");
    assert!(!kept.contains("systemMessage"), "{kept}");
}

#[test]
fn an_answer_that_nobody_reads_is_not_our_death() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Lab::with_default_boxes().ollm(&["hook", "run", "before_tool"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
