//! A call of a tool that starts us twice: hooks run once, and both askers get the same answer, each in its own words.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::attacks::signed::make_key;
use crate::lab::{FOREVER, Lab, Ran, lines, outcome, start};

/// How long a decision is taken over.
const FRESH: Duration = Duration::from_secs(2);

const REFUSING: &str = r#"echo ran >> "$OLLM_HOOK_DIR/ran"; echo '{"decision": "block", "reason": "not today"}'"#;

fn event() -> Value {
    json!({"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"},
        "tool_use_id": "c1"})
}

/// The same event with another value.
fn with(name: &str, value: Value) -> Value {
    let mut event = event();
    event[name] = value;
    event
}

fn lab() -> Lab {
    Lab::with_hook("before_tool", "log", REFUSING)
}

fn ask(lab: &Lab, agent: &str, event: &Value) -> Ran {
    lab.event_from(agent, &event.to_string())
}

/// Starts us for a call, and leaves us running.
fn begin(lab: &Lab, arguments: &[&str], event: &Value) -> Child {
    let mut child = start(lab.ollm(&[&["hook", "run"], arguments].concat()));
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    child
}

/// How often the hook ran.
fn runs(lab: &Lab) -> usize {
    fs::read_to_string(lab.home.join(".ollm/hooks/ran")).unwrap_or_default().lines().count()
}

/// The claims that were left.
fn claims(lab: &Lab) -> Vec<PathBuf> {
    let folder = lab.home.join(".ollm/state/calls");
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Asks about a call by two agents, one right after the other. On a machine that was too slow for that, asks again.
fn asked_in_turn(prepare: impl Fn(&Lab), askers: &[(&str, Value); 2]) -> (Lab, [Ran; 2]) {
    loop {
        let lab = lab();
        prepare(&lab);
        let first = ask(&lab, askers[0].0, &askers[0].1);
        let answered = Instant::now();
        let second = ask(&lab, askers[1].0, &askers[1].1);
        if answered.elapsed() < FRESH {
            return (lab, [first, second]);
        }
    }
}

fn times_asked_twice(askers: &[(&str, Value); 2]) -> usize {
    runs(&asked_in_turn(|_| {}, askers).0)
}

/// A hook of which the first run tells that it has begun, and goes on with this.
fn waiting_lab(then: &str) -> (Lab, PathBuf) {
    let lab = Lab::new();
    let begun = lab.fifo("begun");
    let script =
        format!("if mkdir \"$OLLM_HOOK_DIR/first\"; then echo begun > {}; {then}; fi; {REFUSING}", begun.display());
    lab.user_hook("before_tool", "log", &script, "");
    (lab, begun)
}

/// Asks about a call twice at the same time. On a machine that was too slow for that, asks again.
fn asked_at_once() -> (Lab, [Ran; 2]) {
    loop {
        let (lab, begun) = waiting_lab("read word < \"$OLLM_HOOK_DIR/go\"");
        let go = lab.fifo("home/.ollm/hooks/go");
        let first = begin(&lab, &["--from", "claude"], &event());
        lines(&begun, 1);
        let second = begin(&lab, &["--from", "claude"], &event());
        let goes_on = Instant::now();
        fs::write(&go, "now\n").unwrap();
        let answers = [outcome(first), outcome(second)];
        if goes_on.elapsed() < FRESH {
            return (lab, answers);
        }
    }
}

#[test]
fn two_askers_at_once_run_the_hooks_once_and_hear_the_same() {
    let (lab, [first, second]) = asked_at_once();
    assert_eq!(first, second);
    assert_eq!(first.answer()["hookSpecificOutput"]["permissionDecisionReason"], "not today");
    assert_eq!(runs(&lab), 1);
    let records = lab.run(&["trace", "list", "--json"]).answer();
    let [ran, repeated] = [&records[0], &records[1]];
    let (ran, repeated) = if ran["answeredBy"].is_null() { (ran, repeated) } else { (repeated, ran) };
    assert_eq!((&repeated["answeredBy"], &ran["answeredBy"]), (&ran["traceId"], &Value::Null));
    assert_eq!(repeated["verdict"]["flow"], "block");
    let shown = lab.run(&["trace", "show", repeated["traceId"].as_str().unwrap()]).stdout;
    assert!(shown.contains(&format!("answered by the run of {}", ran["traceId"].as_str().unwrap())), "{shown}");
}

#[test]
fn an_agent_that_reads_anothers_settings_hears_both_in_their_own_words() {
    let cursor = with("hook_event_name", json!("preToolUse"));
    let (lab, [first, second]) = asked_in_turn(|_| {}, &[("cursor", cursor), ("claude", event())]);
    assert_eq!(first.answer(), json!({"permission": "deny", "user_message": "not today"}));
    let told = &second.answer()["hookSpecificOutput"];
    assert_eq!((&told["permissionDecision"], &told["permissionDecisionReason"]), (&json!("deny"), &json!("not today")));
    assert_eq!(runs(&lab), 1);
}

#[test]
fn an_agent_that_numbers_no_calls_runs_them_once_by_its_own_line_and_by_that_of_another() {
    // GitHub Copilot runs the hooks of Claude Code's file after its own, with the same message.
    let mut copilot = with("timestamp", json!("2026-11-16T10:00:00.123Z"));
    copilot.as_object_mut().unwrap().shift_remove("tool_use_id");
    let (lab, [first, second]) = asked_in_turn(|_| {}, &[("copilot", copilot.clone()), ("claude", copilot.clone())]);
    assert_eq!(first.answer(), json!({"permissionDecision": "deny", "permissionDecisionReason": "not today"}));
    assert_eq!(second.answer()["hookSpecificOutput"]["permissionDecisionReason"], "not today");
    assert_eq!(runs(&lab), 1);
    let mut later = copilot.clone();
    later["timestamp"] = json!("2026-11-16T10:00:00.124Z");
    assert_eq!(times_asked_twice(&[("copilot", copilot), ("claude", later)]), 2);
}

#[test]
fn arguments_that_a_hook_changed_are_changed_for_both() {
    let rewriting =
        r#"echo ran >> "$OLLM_HOOK_DIR/ran"; echo '{"decision": "modify", "modified_args": {"command": "pwd"}}'"#;
    let prepare = |lab: &Lab| lab.user_hook("before_tool", "log", rewriting, "");
    let (lab, [first, second]) = asked_in_turn(prepare, &[("claude", event()), ("claude", event())]);
    assert_eq!(first.answer()["hookSpecificOutput"]["updatedInput"]["command"], "pwd");
    assert_eq!((runs(&lab), first), (1, second));
}

#[test]
fn another_call_is_judged_by_itself() {
    for other in [
        with("tool_use_id", json!("c2")),
        with("session_id", json!("s2")),
        with("tool_input", json!({"command": "ls -l"})),
        with("tool_name", json!("Read")),
        with("agent_id", json!("a sub-agent")),
        with("cwd", json!("/")),
    ] {
        assert_eq!(times_asked_twice(&[("claude", event()), ("claude", other.clone())]), 2, "{other}");
    }
    assert_eq!(times_asked_twice(&[("claude", event()), ("claude", with("timestamp", json!("later")))]), 1);
}

#[test]
fn calls_without_a_number_leave_nothing_and_are_judged_each_time() {
    for missing in ["tool_use_id", "session_id"] {
        let lab = lab();
        for value in [json!(null), json!("")] {
            ask(&lab, "claude", &with(missing, value));
        }
        assert_eq!((runs(&lab), claims(&lab)), (2, Vec::new()), "{missing}");
    }
    // A number that the dialect knows nothing of is none, and who asks without an agent is no agent.
    let lab = lab();
    let gemini = json!({"hook_event_name": "BeforeTool", "session_id": "s", "call_id": "c", "tool_name": "run_shell_command",
        "tool_input": {"command": "ls"}});
    let own =
        json!({"event": "before_tool", "data": {"session_id": "s", "call_id": "c", "tool_name": "shell", "args": {}}});
    for _ in 0..2 {
        ask(&lab, "gemini", &gemini);
        lab.event(own.to_string());
        lab.event_from("ollm", &own.to_string());
    }
    assert_eq!((runs(&lab), claims(&lab)), (6, Vec::new()));
}

#[test]
fn an_agent_that_stamps_its_events_is_answered_once_for_each_moment() {
    let gemini = |at: &str| {
        json!({"hook_event_name": "BeforeTool", "session_id": "s", "timestamp": at, "tool_name": "run_shell_command",
            "tool_input": {"command": "ls"}})
    };
    let moment = gemini("2026-11-16T10:00:00.123Z");
    assert_eq!(times_asked_twice(&[("gemini", moment.clone()), ("gemini", moment.clone())]), 1);
    assert_eq!(times_asked_twice(&[("gemini", moment.clone()), ("gemini", gemini("2026-11-16T10:00:00.124Z"))]), 2);
    let second = gemini("2026-11-16T10:00:00Z");
    assert_eq!(times_asked_twice(&[("gemini", second.clone()), ("gemini", second)]), 2, "a second is too long");
    let mut other = moment.clone();
    other["tool_input"]["command"] = "pwd".into();
    assert_eq!(times_asked_twice(&[("gemini", moment), ("gemini", other)]), 2);
    // One that reads the settings of another asks in its name.
    let lab = lab().set("COPILOT_PROJECT_DIR", "/p");
    let copilot = json!({"hook_event_name": "PreToolUse", "session_id": "s", "timestamp": "2026-11-16T10:00:00.123Z",
        "tool_name": "Bash", "tool_input": {"command": "ls"}});
    let started = Instant::now();
    for agent in ["copilot", "copilot", "claude"] {
        ask(&lab, agent, &copilot);
    }
    assert!(started.elapsed() >= FRESH || runs(&lab) == 1);
    // What is not known of an agent is not taken for granted.
    let droid = json!({"hook_event_name": "PreToolUse", "session_id": "s", "timestamp": "2026-11-16T10:00:00.123Z",
        "tool_name": "Execute", "tool_input": {"command": "ls"}});
    assert_eq!(times_asked_twice(&[("droid", droid.clone()), ("droid", droid)]), 2);
}

#[test]
fn a_call_that_no_hook_is_for_leaves_nothing() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "log", REFUSING, r#", "matcher": "other_tool""#);
    ask(&lab, "claude", &event());
    assert_eq!(claims(&lab), Vec::<PathBuf>::new());
}

#[test]
fn who_waits_for_a_process_that_dies_runs_the_hooks_itself() {
    let (lab, begun) = waiting_lab(FOREVER);
    let mut first = begin(&lab, &["--from", "claude"], &event());
    lines(&begun, 1);
    let second = begin(&lab, &["--from", "claude"], &event());
    first.kill().unwrap();
    assert_eq!(outcome(second).answer()["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(runs(&lab), 1);
    outcome(first);
    lab.assert_nobody_is_left();
}

#[test]
fn waiting_ends_in_time_to_run_the_hooks_and_never_lets_the_call_pass() {
    let (lab, begun) = waiting_lab(FOREVER);
    let mut first = begin(&lab, &["--from", "claude"], &event());
    lines(&begun, 1);
    let second = outcome(begin(&lab, &["--from", "claude", "--within", "10s"], &event()));
    assert_eq!(second.answer()["hookSpecificOutput"]["permissionDecisionReason"], "not today");
    first.kill().unwrap();
    outcome(first);
    lab.assert_nobody_is_left();
}

#[test]
fn what_a_hook_that_was_ended_did_not_decide_is_asked_again() {
    let script = format!("echo ran >> \"$OLLM_HOOK_DIR/ran\"; {FOREVER}");
    let slow = |lab: &Lab| lab.user_hook("before_tool", "log", &script, r#", "timeout": "200ms""#);
    let (lab, _) = asked_in_turn(slow, &[("claude", event()), ("claude", event())]);
    assert_eq!(runs(&lab), 2);
    // One that failed by itself would do so again.
    let failing = r#"echo ran >> "$OLLM_HOOK_DIR/ran"; exit 1"#;
    let failing = |lab: &Lab| lab.user_hook("before_tool", "log", failing, r#", "onFailure": "block""#);
    let (lab, [first, second]) = asked_in_turn(failing, &[("claude", event()), ("claude", event())]);
    assert_eq!((runs(&lab), first), (1, second));
}

#[test]
fn a_decision_does_not_outlive_the_hooks_that_made_it() {
    let lab = lab();
    ask(&lab, "claude", &event());
    lab.user_hook("before_tool", "log", REFUSING, r#", "timeout": "9s""#);
    ask(&lab, "claude", &event());
    assert_eq!(runs(&lab), 2, "another declaration");
    lab.user_hook("before_tool", "more", REFUSING, "");
    ask(&lab, "claude", &event());
    assert_eq!(runs(&lab), 3, "one more hook, which a refusal keeps from running");
    lab.run(&["hook", "disable", "more"]);
    ask(&lab, "claude", &event());
    assert_eq!(runs(&lab), 4, "one was switched off");
}

#[test]
fn a_decision_that_is_old_damaged_or_open_to_others_counts_for_nothing() {
    type Spoil = fn(&PathBuf);
    let spoils: &[(&str, Spoil)] = &[
        ("old", |claim| {
            File::options().append(true).open(claim).unwrap().set_modified(SystemTime::now() - 2 * FRESH).unwrap();
        }),
        ("cut off", |claim| fs::write(claim, &fs::read(claim).unwrap()[..40]).unwrap()),
        ("empty", |claim| fs::write(claim, "").unwrap()),
        ("of another form", |claim| {
            fs::write(claim, fs::read_to_string(claim).unwrap().replace("\"version\":1", "\"version\":2")).unwrap();
        }),
        ("readable by others", |claim| {
            fs::set_permissions(claim, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        }),
        ("a link", |claim| {
            let elsewhere = claim.with_file_name("elsewhere");
            fs::rename(claim, &elsewhere).unwrap();
            std::os::unix::fs::symlink(elsewhere, claim).unwrap();
        }),
    ];
    for (what, spoil) in spoils {
        let lab = lab();
        let first = ask(&lab, "claude", &event());
        let [claim] = claims(&lab).try_into().unwrap();
        spoil(&claim);
        let second = ask(&lab, "claude", &event());
        assert_eq!((runs(&lab), second), (2, first), "{what}");
    }
}

/// Writes that a call may go on into the claim that it left.
fn forge(lab: &Lab) {
    for claim in claims(lab) {
        let forged = fs::read_to_string(&claim).unwrap().replace("\"flow\":\"block\"", "\"flow\":\"no_opinion\"");
        fs::write(claim, forged).unwrap();
    }
}

#[test]
fn a_guard_judges_each_time() {
    let lab = lab();
    let call = with("tool_input", json!({"command": "rm -rf ~"}));
    let first = ask(&lab, "claude", &call);
    assert!(first.stdout.contains("deny"), "{first:?}");
    assert_eq!(claims(&lab).len(), 1);
    forge(&lab);
    assert_eq!(ask(&lab, "claude", &call), first);
}

#[test]
fn where_approvals_are_signed_nothing_is_taken_over() {
    let lab = lab();
    make_key(&lab);
    for _ in 0..2 {
        ask(&lab, "claude", &event());
    }
    assert_eq!((runs(&lab), claims(&lab)), (2, Vec::new()));
}

#[test]
fn a_hook_that_asks_us_in_turn_is_not_waited_for_by_itself() {
    let lab = lab().set("OLLM_AGENT", "ollm");
    for _ in 0..2 {
        ask(&lab, "claude", &event());
    }
    assert_eq!((runs(&lab), claims(&lab)), (2, Vec::new()));
}
