//! Files that change beside a conversation, and programs that share a project.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{OK, Watch, edited};
use crate::lab::pty::WHOLE;
use crate::lab::{Lab, OLLM, Ran, eventually, finish};
use crate::live::Chat;

/// A lab with hooks that write down each event of a file that they hear of.
fn lab() -> Lab {
    let lab = Lab::new();
    for event in ["file_created", "file_edited", "file_deleted"] {
        hear(&lab, event, r#", "filePatterns": ["*.txt"]"#);
    }
    lab
}

fn hear(lab: &Lab, event: &str, more: &str) {
    let script = "import json, os, sys\nevent = json.load(sys.stdin)\n\
                  line = event['event'] + ' ' + os.path.basename(event['data']['path']) + '\\n'\n\
                  open(os.path.expanduser('~/heard'), 'a').write(line)\nprint('{\"continue\": true}')\n";
    lab.user(&format!("{event}.py"), script);
    let entry = format!(r#"{{"name": "{event}", "command": "python3", "args": ["{event}.py"]{more}}}"#);
    lab.user(&format!("{event}.json"), format!(r#"{{"hooks": {{"{event}": [{entry}]}}}}"#));
}

fn heard(lab: &Lab) -> Vec<String> {
    let text = fs::read_to_string(lab.home.join("heard")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until hooks heard of this, and of nothing else.
#[track_caller]
fn hears(lab: &Lab, events: &[&str]) {
    eventually(&format!("{events:?} is heard, not {:?}", heard(lab)), || heard(lab).len() >= events.len());
    assert_eq!(heard(lab), events);
}

/// How many files were made to wait for.
static MARKS: AtomicUsize = AtomicUsize::new(0);

/// Waits until the watcher in charge has looked at everything so far.
#[track_caller]
fn is_looked_at(lab: &Lab) {
    let before = heard(lab).len();
    // What is written later is heard of later.
    let marks = [1, 2].map(|_| format!("mark-{}.txt", MARKS.fetch_add(1, Ordering::Relaxed)));
    for (count, mark) in marks.iter().enumerate() {
        lab.save(&format!("project/{mark}"), "");
        eventually("the mark is heard", || heard(lab).len() > before + count);
    }
    assert_eq!(heard(lab)[before..], marks.map(|mark| format!("file_created {mark}")));
}

fn call(tool: &str, args: &Value) -> Value {
    json!({"tool_calls": [{"id": "1", "name": tool, "arguments": args}]})
}

fn text(text: &str) -> Value {
    json!({"content": text})
}

#[test]
fn a_prompt_about_a_saved_file_reaches_the_running_chat() {
    let lab = Lab::new();
    let hook = r#"{"name": "lint", "eventType": "fileEdited", "filePatterns": ["*.txt"],
        "action": {"type": "askAgent", "prompt": "Look at {{file.path}}"}}"#;
    lab.user("lint.json", hook);
    lab.save("project/src/a.txt", "1\n");
    let expected = json!({"content": "I looked.", "expect": {"last": "Look at src/a.txt"}});
    let mut chat = Chat::new(&lab, &[expected]);
    // The person says nothing meanwhile.
    lab.save("project/src/a.txt", "2\n");
    let mut said = String::new();
    eventually("the model answers", || {
        said.push_str(&chat.say(""));
        said.contains("I looked.")
    });
    chat.end();
}

#[test]
fn our_own_file_tools_are_heard_once_and_the_shell_tool_too() {
    let lab = lab();
    let shell = "printf 3 > b.txt; rm a.txt";
    let mut chat = Chat::new(
        &lab,
        &[
            call("write_file", &json!({"path": "a.txt", "content": "1"})),
            call("edit_file", &json!({"path": "a.txt", "old": "1", "new": "2"})),
            call("shell", &json!({"command": shell})),
            text("Done."),
        ],
    );
    chat.say("go");
    hears(&lab, &["file_created a.txt", "file_edited a.txt", "file_deleted a.txt", "file_created b.txt"]);
    is_looked_at(&lab);
    chat.end();
}

#[test]
fn what_a_shell_does_to_a_file_of_ours_in_the_same_turn_is_told_with_the_difference() {
    let lab = lab();
    lab.user_hook("file_edited", "keep", &format!("cat >> ~/edits; {OK}"), r#", "filePatterns": ["a.txt"]"#);
    let answers = [
        call("write_file", &json!({"path": "a.txt", "content": "one\n"})),
        call("shell", &json!({"command": "echo two >> a.txt"})),
        text("Done."),
    ];
    let mut chat = Chat::new(&lab, &answers);
    chat.say("go");
    hears(&lab, &["file_created a.txt", "file_edited a.txt"]);
    chat.end();
    let edit: Value = serde_json::from_str(&fs::read_to_string(lab.home.join("edits")).unwrap()).unwrap();
    let diff = edit["data"]["diff"].as_str().unwrap_or_default();
    assert!(diff.contains("\n one\n+two\n"), "{edit:#}");
}

#[test]
fn what_a_shell_wrote_is_heard_before_a_file_tool_writes_over_it() {
    // Also in a folder that is made in the same turn.
    for path in ["a.txt", "new/deep/a.txt"] {
        let lab = lab();
        let write = |text: &str| format!("mkdir -p new/deep && printf {text} > {path}");
        let mut chat = Chat::new(
            &lab,
            &[
                call("shell", &json!({"command": write("1")})),
                call("edit_file", &json!({"path": path, "old": "1", "new": "2"})),
                call("edit_file", &json!({"path": path, "old": "2", "new": "3"})),
                call("shell", &json!({"command": write("4")})),
                call("delete_file", &json!({"path": path})),
                text("Done."),
            ],
        );
        chat.say("go");
        let edited = "file_edited a.txt";
        hears(&lab, &["file_created a.txt", edited, edited, edited, "file_deleted a.txt"]);
        is_looked_at(&lab);
        chat.end();
    }
}

/// A whole conversation that comes from a pipe.
fn piped(lab: &Lab, answers: &[Value], input: &str) -> Ran {
    lab.write("talk.jsonl", answers.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"));
    let chat = lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    let ran = finish(chat, input.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

#[test]
fn what_the_last_turn_of_a_chat_changed_is_heard_before_it_ends() {
    for input in ["go\n", "go\n/quit\n", "go\n/clear\n"] {
        let lab = lab();
        let shell = call("shell", &json!({"command": "printf 1 > a.txt"}));
        let ran = piped(&lab, &[shell, text("Done.")], input);
        assert_eq!(heard(&lab), ["file_created a.txt"], "{input} {ran:?}");
    }
}

#[test]
fn what_hooks_want_said_about_the_last_turn_is_answered_before_the_end() {
    let lab = Lab::new();
    let hook = r#"{"name": "lint", "eventType": "fileCreated", "action": {"type": "askAgent", "prompt": "Look at {{file.path}}"}}"#;
    lab.user("lint.json", hook);
    let answers = [
        call("shell", &json!({"command": "printf 1 > a.txt"})),
        text("Done."),
        json!({"content": "I looked.", "expect": {"last": "Look at a.txt"}}),
    ];
    assert!(piped(&lab, &answers, "go\n").stdout.contains("I looked."));
}

#[test]
fn many_prompts_about_one_checkout_are_bounded_and_the_rest_is_counted() {
    const MANY: usize = 40;
    let lab = Lab::new();
    let hook = r#"{"name": "lint", "eventType": "fileCreated", "filePatterns": ["*.txt"],
        "action": {"type": "askAgent", "prompt": "Look at {{file.path}}"}}"#;
    lab.user("lint.json", hook);
    let script = format!("for number in $(seq {MANY}); do echo x > $number.txt; done");
    let looks = std::iter::repeat_n(text("I looked."), 16);
    let answers: Vec<Value> =
        [call("shell", &json!({"command": script})), text("Done.")].into_iter().chain(looks).collect();
    let ran = piped(&lab, &answers, "go\n");
    assert_eq!(ran.stdout.matches("I looked.").count(), 16, "{ran:?}");
    let left_out = "a prompt of hook `lint` is left out: hooks have added 16 prompts already";
    assert_eq!(ran.stderr.matches(left_out).count(), 2, "{ran:?}");
    assert!(ran.stderr.contains(&format!("{left_out}; so are {} more", MANY - 17)), "{ran:?}");
}

#[test]
fn what_hooks_write_after_our_own_tools_is_no_edit() {
    let lab = lab();
    let script = format!("cat > /dev/null; sleep 0.3; echo more >> a.txt; {OK}");
    lab.user_hook("file_created", "append", &script, r#", "filePatterns": ["a.txt"]"#);
    let mut chat = Chat::new(&lab, &[call("write_file", &json!({"path": "a.txt", "content": "1\n"})), text("Done.")]);
    chat.say("go");
    hears(&lab, &["file_created a.txt"]);
    is_looked_at(&lab);
    chat.end();
}

#[test]
fn a_chat_comes_first_and_the_watcher_takes_over_when_it_ends() {
    let lab = lab();
    lab.save("project/a.txt", "0");
    let watch = Watch::new(&lab);
    lab.save("project/a.txt", "1");
    hears(&lab, &["file_edited a.txt"]);
    let chat = Chat::new(&lab, &[text("unused")]);
    watch.until("it waits", |line| line["type"] == "waiting");
    lab.save("project/a.txt", "2");
    hears(&lab, &["file_edited a.txt"; 2]);
    chat.end();
    let takes_over = || watch.lines.lock().unwrap().iter().filter(|line| line["type"] == "watching").count() == 2;
    eventually("it takes over", takes_over);
    lab.save("project/a.txt", "3");
    hears(&lab, &["file_edited a.txt"; 3]);
    is_looked_at(&lab);
}

#[test]
fn who_takes_over_from_the_dead_tells_what_they_did_not() {
    let lab = lab();
    lab.save("project/a.txt", "0");
    lab.save("project/b.txt", "0");
    let mut first = Watch::new(&lab);
    let second = Watch::begin(&lab, lab.ollm(&["watch", "--json"]));
    second.until("it waits", |line| line["type"] == "waiting");
    lab.save("project/a.txt", "1");
    first.until("it is told", |line| line["path"] == "a.txt");
    hears(&lab, &["file_edited a.txt"]);
    // It is killed before it can look.
    first.signal("STOP");
    lab.save("project/b.txt", "1");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    second.until("it takes over", |line| line["type"] == "watching");
    hears(&lab, &["file_edited a.txt", "file_edited b.txt"]);
    is_looked_at(&lab);
}

#[test]
fn what_other_programs_of_ours_tell_is_not_told_again() {
    let lab = lab();
    let path = lab.save("project/a.txt", "0");
    let _watch = Watch::new(&lab);
    lab.write(
        "talk.jsonl",
        [call("write_file", &json!({"path": "a.txt", "content": "1"})), text("Done.")]
            .map(|line| line.to_string())
            .join("\n"),
    );
    let ran = lab.run(&["run", "go", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    hears(&lab, &["file_edited a.txt"]);
    is_looked_at(&lab);
    fs::remove_file(lab.home.join("heard")).unwrap();
    // An agent that we are connected to tells us right after it wrote the file.
    let event = json!({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Write", "tool_use_id": "c",
        "tool_input": {"file_path": path}, "cwd": lab.project});
    let script = format!("printf 2 > {}; printf '%s' '{event}' | {OLLM} hook run --from claude", path.display());
    let mut shell = lab.program("sh");
    shell.args(["-c", &script]);
    assert_eq!(finish(shell, b"").code, 0);
    hears(&lab, &["file_edited a.txt"]);
    is_looked_at(&lab);
}

#[test]
fn prompts_about_what_the_agent_changes_come_to_an_end() {
    let lab = Lab::new();
    let hook = r#"{"name": "again", "eventType": "fileEdited", "filePatterns": ["*.txt"],
        "action": {"type": "askAgent", "prompt": "Change {{file.path}} again, it has {{file.content}}"}}"#;
    lab.user("again.json", hook);
    lab.save("project/a.txt", "0");
    let turn =
        |number: usize| [call("shell", &json!({"command": format!("printf {number} > a.txt")})), text("Changed.")];
    let answers: Vec<Value> = (1..=8).flat_map(turn).collect();
    let mut chat = Chat::new(&lab, &answers);
    chat.say("go");
    chat.was_told("a prompt of hook `again` is left out: its chain is 3 prompts long");
    assert_eq!(fs::read_to_string(lab.project.join("a.txt")).unwrap(), "4");
    chat.end();
}

#[test]
fn a_chat_goes_on_when_its_project_is_gone() {
    let lab = lab();
    let mut chat = Chat::new(&lab, &[text("Still here.")]);
    lab.save("project/a.txt", "1");
    hears(&lab, &["file_created a.txt"]);
    fs::remove_dir_all(&lab.project).unwrap();
    chat.was_told("is gone; nothing is watched any more");
    chat.say("");
    chat.end();
}

#[test]
fn a_prompt_reaches_a_chat_at_whose_terminal_nobody_types() {
    let lab = Lab::new();
    let hook = r#"{"name": "lint", "eventType": "fileEdited", "filePatterns": ["*.txt"],
        "action": {"type": "askAgent", "prompt": "Look at {{file.path}}"}}"#;
    lab.user("lint.json", hook);
    lab.save("project/a.txt", "1");
    lab.write("talk.jsonl", text("I looked.").to_string());
    let mut chat = lab.pty(WHOLE, &["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    chat.waits_for("Ctrl-D leaves").waits_for("> ");
    // The person presses no key.
    lab.save("project/a.txt", "2");
    chat.waits_for("I looked.").waits_for("> ").types("/session\r");
    chat.waits_for(" message").waits_for("> ").types("\x04");
    let ran = chat.ends();
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn an_edit_while_nobody_watches_is_not_heard_later() {
    let lab = lab();
    lab.save("project/a.txt", "1");
    let mut watch = Watch::new(&lab);
    assert_eq!(watch.events(), []);
    assert_eq!(watch.end(), 130);
    lab.save("project/a.txt", "2");
    let mut watch = Watch::new(&lab);
    lab.save("project/a.txt", "3");
    assert_eq!(watch.events(), [edited("a.txt")]);
    assert_eq!(heard(&lab), ["file_edited a.txt"]);
}
