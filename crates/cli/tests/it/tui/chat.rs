//! The panel of the chat: what streams, what is asked, and what the keys do in the running session.

use std::fs;

use serde_json::{Value, json};
use testkit::model_shapes::ollama_tags;
use testkit::{Asked, ModelReply, ModelServer};

use super::common::KeyCase;
use crate::lab::pty::{LARGE, Pty, Size};
use crate::lab::{Lab, eventually};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter", an_answer_is_markdown_and_nothing_in_it_reaches_the_terminal_as_an_order),
    ("Alt+Enter", an_input_may_have_several_lines),
    ("Ctrl+j", an_input_may_have_several_lines),
    ("Tab", tab_completes_commands_names_and_files),
    ("Ctrl+c", control_c_interrupts_a_tool_and_the_session_goes_on),
    ("Up", what_was_written_before_comes_back),
    ("Down", what_was_written_before_comes_back),
    ("Page Up", keys_and_wheel_scroll_the_talk),
    ("Page Down", keys_and_wheel_scroll_the_talk),
    ("Ctrl+Home", keys_and_wheel_scroll_the_talk),
    ("Ctrl+End", keys_and_wheel_scroll_the_talk),
    ("Ctrl+d", inputs_that_wait_are_not_begun_when_the_person_leaves),
    ("Esc", keys_and_wheel_scroll_the_talk),
];

fn call(tool: &str, args: &Value) -> String {
    json!({"tool_calls": [{"id": "1", "name": tool, "arguments": args}]}).to_string()
}

fn text(text: &str) -> String {
    json!({"content": text}).to_string()
}

/// A lab whose model answers with these lines.
fn lab(answers: &[String]) -> Lab {
    let lab = Lab::new();
    lab.write("talk.jsonl", answers.join("\n") + "\n");
    lab
}

fn chat(lab: &Lab, more: &[&str]) -> Pty {
    let mut chat = lab.pty(LARGE, &[&["tui", "--model", "replay:../talk.jsonl"], more].concat());
    chat.sees("approval");
    chat
}

/// Everything that was said in all conversations.
fn transcripts(lab: &Lab) -> String {
    let sessions = fs::read_dir(lab.home.join(".ollm/sessions")).unwrap();
    sessions.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

fn leave(mut chat: Pty) {
    chat.types("\x04");
    let ran = chat.ends();
    assert!(ran.code == 0 && ran.has_restored(), "{ran:?}");
}

#[test]
fn an_answer_is_markdown_and_nothing_in_it_reaches_the_terminal_as_an_order() {
    let lab = lab(&[text("# Title\n\nSome **bold** words and \u{1b}[2J\u{202e}evil.\n\n- one\n- two")]);
    let mut chat = chat(&lab, &[]);
    chat.types("hello\r");
    let shown = chat.sees("• two");
    assert!(shown.contains("> hello") && shown.contains("Some bold words"), "{shown}");
    assert!(shown.contains(r"\u{1b}[2J\u{202e}evil"), "{shown}");
    leave(chat);
    assert!(transcripts(&lab).contains("hello"));
}

#[test]
fn an_edit_is_seen_as_a_difference_before_it_is_approved() {
    let lab = lab(&[call("write_file", &json!({"path": "a.txt", "content": "new\n"})), text("done")]);
    lab.write("project/a.txt", "old\n");
    let mut chat = chat(&lab, &[]);
    chat.types("go\r");
    let shown = chat.sees("May it run?");
    assert!(shown.contains("-old") && shown.contains("+new"), "{shown}");
    assert!(shown.contains("waits for your answer") && !shown.contains(" s · Ctrl-C"), "{shown}");
    assert_eq!(fs::read_to_string(lab.project.join("a.txt")).unwrap(), "old\n");
    chat.types("y\r").sees("done");
    assert_eq!(fs::read_to_string(lab.project.join("a.txt")).unwrap(), "new\n");
    leave(chat);
}

#[test]
fn what_is_typed_while_the_model_works_answers_no_question() {
    let lab = lab(&[call("shell", &json!({"command": "touch ran"})), text("done")]);
    let mut chat = chat(&lab, &[]);
    chat.types("go\ry\ryes\ra\r").sees("May it run?");
    chat.types("\x1b").sees("said no");
    assert!(!lab.project.join("ran").exists());
    leave(chat);
}

#[test]
fn control_c_interrupts_a_tool_and_the_session_goes_on() {
    let lab = lab(&[call("shell", &json!({"command": "sleep 1000"})), text("again")]);
    let mut chat = chat(&lab, &["--approval", "yolo"]);
    chat.types("go\r").sees("tool shell");
    let sleeps = || lab.processes().iter().any(|line| line.contains("sleep 1000"));
    eventually("the tool runs", sleeps);
    // More than once is no wish to leave.
    chat.types("\x03\x03\x03").sees("· interrupted");
    chat.sees("approval yolo");
    assert!(!sleeps(), "the tool is ended");
    chat.types("go on\r").sees("again");
    leave(chat);
}

#[test]
fn tab_completes_commands_names_and_files() {
    let lab = lab(&[text("well met")]);
    lab.user_hook("before_tool", "own", "exit 0\n", "");
    lab.write("project/notes.md", "x");
    let mut chat = chat(&lab, &[]);
    chat.types("/hoo\t").sees("> /hooks ");
    chat.types("dis\t").sees("> /hooks disable ");
    chat.types("user:o\t").sees("> /hooks disable user:own.json:before_tool:own");
    chat.types("\r").sees("is off");
    let switches = fs::read_to_string(lab.home.join(".ollm/state/switches.json")).unwrap();
    assert!(switches.contains("user:own.json:before_tool:own"), "{switches}");
    chat.types("/m\t").sees("/model");
    chat.types("\x03look at @no\t").sees("@notes.md");
    chat.types("\x03/skill foo \tx").sees("> /skill foo x");
    chat.types("\x03/hoks\r").sees("did you mean /hooks?");
    leave(chat);
}

#[test]
fn approval_clear_and_resume_change_the_running_conversation() {
    let lab = lab(&[text("first answer"), text("second answer")]);
    let mut chat = chat(&lab, &[]);
    chat.types("a first question\r").sees("first answer");
    chat.types("/approval auto\r").sees("approval auto");
    chat.types("/clear\r").sees_no_more("first answer");
    chat.sees("approval auto");
    chat.types("/resume nowhere\r").sees("error[");
    let shown = chat.sees("explains it");
    assert!(shown.contains("> /resume nowhere"), "what was said stays: {shown}");
    chat.types("/resume\r").sees("Which conversation goes on?");
    chat.types("\r").sees("first answer");
    chat.sees("a first question");
    leave(chat);
    assert_eq!(fs::read_dir(lab.home.join(".ollm/sessions")).unwrap().count(), 2);
}

#[test]
fn inputs_that_wait_are_not_begun_when_the_person_leaves() {
    let sleep = call("shell", &json!({"command": "sleep 1000"}));
    let lab = lab(&[sleep, text("one"), text("two"), text("three")]);
    let mut chat = chat(&lab, &["--approval", "yolo"]);
    chat.types("go\r").sees("tool shell");
    chat.types("a second input\ra third input\r").sees("2 waiting");
    leave(chat);
    let told = transcripts(&lab);
    assert!(told.contains("go") && !told.contains("second input") && !told.contains("third input"), "{told}");
}

#[test]
fn an_input_that_waits_is_shown_when_its_turn_comes() {
    let sleep = call("shell", &json!({"command": "sleep 1000"}));
    let lab = lab(&[sleep, text("the second answer")]);
    let mut chat = chat(&lab, &["--approval", "yolo"]);
    chat.types("go\r").sees("tool shell");
    let waiting = chat.types("what comes next\r").sees("1 waiting");
    assert!(!waiting.contains("what comes next"), "{waiting}");
    chat.types("\x03").sees("> what comes next");
    chat.sees("the second answer");
    leave(chat);
}

#[test]
fn two_chats_keep_what_was_written_in_both() {
    let lab = lab(&[text("well met")]);
    let (mut one, mut other) = (chat(&lab, &[]), chat(&lab, &[]));
    one.types("from the first\r").sees("well met");
    other.types("from the second\r").sees("well met");
    one.types("/session\r").sees(" message");
    leave(one);
    leave(other);
    let history = fs::read_to_string(lab.home.join(".ollm/state/chat-history")).unwrap();
    for line in ["from the first", "from the second", "/session"] {
        assert!(history.contains(line), "{line} is not in {history}");
    }
}

#[test]
fn without_a_model_the_panels_say_what_to_do_and_go_on() {
    let lab = Lab::new();
    let lab = lab.set("OLLAMA_HOST", "127.0.0.1:1");
    let mut panels = lab.pty(LARGE, &["tui"]);
    panels.sees("hint");
    panels.types("\x1b2").sees("Exit");
    let back = panels.types("\x1b1").sees("no conversation");
    assert_eq!(back.matches("E008").count(), 1, "a failure is told once: {back}");
    panels.types("\r").sees_no_more("Exit");
    panels.types("\x11");
    assert_eq!(panels.ends().code, 0);
}

#[test]
fn a_signal_in_the_middle_of_a_turn_ends_the_session_in_order() {
    let lab = lab(&[call("shell", &json!({"command": "sleep 1000"}))]);
    lab.user_hook("session_end", "bye", "touch \"$OLLM_PROJECT_DIR/ended\"\n", "");
    let mut chat = chat(&lab, &["--approval", "yolo"]);
    chat.types("go\r").sees("tool shell");
    chat.signal(15);
    let ran = chat.ends();
    assert!(ran.code == 143 && ran.has_restored(), "{ran:?}");
    assert!(lab.project.join("ended").exists());
}

#[test]
fn a_small_terminal_has_room_for_a_talk() {
    let lab = lab(&[text("a rather long answer that does not fit into one row of a small terminal")]);
    let mut chat = lab.pty(Size { rows: 12, columns: 40 }, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval ask");
    chat.types("hi\r").sees("small terminal");
    leave(chat);
}

#[test]
fn the_plain_chat_moves_completes_and_has_the_same_commands() {
    let lab = lab(&[call("shell", &json!({"command": "sleep 1000"})), text("**again**")]);
    let arguments = ["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"];
    let mut chat = lab.pty(LARGE, &arguments);
    chat.waits_for("> ").types("go\r");
    chat.sees("tool shell · ");
    // The terminal tells the tool as well, which may end before we end it.
    chat.types("\x03").waits_for("✗ shell").waits_for("> ");
    chat.sees_no_more("tool shell · ");
    chat.types("/hoo\t").waits_for("/hooks").types("\x15/aproval\r");
    chat.waits_for("did you mean /approval?").waits_for("> ").types("/approval auto\r");
    chat.waits_for("auto\r\n").waits_for("> ").types("/clear\r");
    chat.waits_for("Ctrl-D leaves").waits_for("> ").types("\x04");
    assert_eq!(chat.ends().code, 0);
}

#[test]
fn an_earlier_conversation_is_picked_and_recapped() {
    let lab = lab(&[text("a first answer")]);
    let ran = lab.run(&["run", "a first question", "--model", "replay:../talk.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut chat = lab.pty(LARGE, &["session", "resume", "--model", "replay:../talk.jsonl"]);
    let shown = chat.sees("Which conversation goes on?");
    assert!(shown.contains("1  ") && shown.contains("a first question"), "{shown}");
    chat.types("1\r");
    chat.sees("model: a first answer");
    chat.waits_for("> ").types("\x04");
    assert_eq!(chat.ends().code, 0);
    let nobody = lab.run(&["session", "resume"]);
    assert!(nobody.code == 64 && nobody.stderr.contains("ollm session list"), "{nobody:?}");
}

#[test]
fn what_is_typed_into_the_plain_chat_while_it_works_is_its_next_input() {
    let lab = lab(&[call("shell", &json!({"command": "cat gate"})), text("first answer"), text("second answer")]);
    let gate = lab.fifo("project/gate");
    let mut chat = lab.pty(LARGE, &["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    chat.waits_for("> ").types("one\r");
    chat.sees("tool shell · ");
    chat.types("two\rthree").sees("three");
    fs::write(&gate, "open").unwrap();
    chat.waits_for("first answer").waits_for("second answer");
    chat.sees("> three");
    chat.types("\x15\x04");
    assert_eq!(chat.ends().code, 0);
}

#[test]
fn what_is_typed_into_the_plain_chat_before_a_question_answers_nothing() {
    let lab = lab(&[call("shell", &json!({"command": "touch ran"})), text("the end")]);
    let gate = lab.fifo("gate");
    let script = "touch \"$OLLM_PROJECT_DIR/began\"\ncat \"$OLLM_PROJECT_DIR/../gate\" > /dev/null\n";
    lab.user_hook("before_tool", "slow", script, "");
    let mut chat = lab.pty(LARGE, &["chat", "--model", "replay:../talk.jsonl"]);
    chat.waits_for("> ").types("go\r");
    eventually("the hook runs", || lab.project.join("began").exists());
    chat.types("y\ryes\r").sees("yes");
    fs::write(&gate, "open").unwrap();
    chat.waits_for("May it run?");
    chat.types("n\r").waits_for("the end").waits_for("> ").types("\x04");
    assert_eq!(chat.ends().code, 0);
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn a_long_input_is_seen_from_its_first_row_on() {
    let lab = lab(&[text("well met")]);
    let mut chat = lab.pty(Size { rows: 24, columns: 40 }, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval");
    chat.types(&format!("begin{}finish", "x".repeat(60)));
    let shown = chat.sees("finish");
    assert!(shown.contains("> beginx"), "{shown}");
    chat.types("\x03").sees_no_more("begin");
    leave(chat);
}

#[test]
fn a_misspelt_word_of_a_command_names_the_nearest() {
    let lab = lab(&[text("well met")]);
    let mut chat = chat(&lab, &[]);
    chat.types("/hooks enalbe x\r").sees("did you mean `/hooks enable`?");
    chat.types("/help\r").sees("/hooks show|enable|disable|trust|untrust ID  what");
    leave(chat);
}

#[test]
fn tab_completes_models_that_are_named_or_served_with_and_without_their_provider() {
    let server = ModelServer::answering(|asked| match asked.path.as_str() {
        "/v1/models" => Some(ModelReply::json(200, &json!({"data": [{"id": "fake"}, {"id": "other-one"}]}))),
        "/api/tags" => Some(ollama_tags(&["gemma:2b", "qwen3:4b"])),
        _ => None,
    })
    .unwrap();
    let lab = lab(&[text("well met")]).set("OLLAMA_HOST", server.origin()).set("OPENAI_API_KEY", "sk-not-for-you");
    let lab = lab.set("OWN_KEY", "k-12345678");
    let is_known = |asked: &Asked| asked.authorization.as_deref() == Some("Bearer k-12345678");
    let completes = |chat: &mut Pty, typed: &str, whole: &str| {
        chat.types(&format!("/model {typed}\t")).sees(&format!("> /model {whole} "));
        chat.types("\x03").sees_no_more("> /model");
    };
    let model = |name: &str| format!("openai:{name}@{}", server.url());
    let mut chat = lab.pty(LARGE, &["tui", "--model", &model("typed")]);
    chat.sees("approval ask");
    for (typed, whole) in [
        ("oth", model("other-one")),
        ("openai:f", model("fake")),
        ("typ", model("typed")),
        ("qw", "ollama:qwen3:4b".to_owned()),
        ("ollama:g", "ollama:gemma:2b".to_owned()),
    ] {
        completes(&mut chat, typed, &whole);
    }
    leave(chat);
    assert!(server.asked().iter().all(|asked| asked.authorization.is_none()), "the server is no configured one");
    let config = json!({"provider": "openai", "name": "configured", "baseUrl": server.url(), "apiKeyEnv": "OWN_KEY"});
    lab.write("home/.ollm/config.yaml", json!({"model": config}).to_string());
    let mut chat = self::chat(&lab, &[]);
    for name in ["configured", "other-one"] {
        completes(&mut chat, &name[..3], &model(name));
    }
    leave(chat);
    assert!(server.asked().iter().any(|asked| asked.path == "/v1/models" && is_known(asked)));
}

#[test]
fn the_plain_chat_breaks_its_lists_between_words() {
    let lab = lab(&[text("well met")]);
    let mut chat = lab.pty(Size { rows: 60, columns: 80 }, &["chat", "--model", "replay:../talk.jsonl"]);
    chat.waits_for("> ");
    for command in ["/help", "/zork"] {
        chat.types(&format!("{command}\r"));
        let column = " ".repeat(29);
        chat.sees(&format!("untrust ID\n{column}what `ollm hook` does with one of them\n"));
        chat.sees(&format!(
            "\n/approval [MODE]             when you are asked before a tool runs: ask, auto,\n{column}yolo\n"
        ));
        chat.types("\x0c").sees_no_more("/ext reload");
    }
    // The editor must have the keyboard back: until then the terminal itself consumes Ctrl-D.
    chat.types("/mcp x y\r").waits_for("write /mcp,").waits_for("> ").types("\x04");
    assert_eq!(chat.ends().code, 0);
}

#[test]
fn an_input_may_have_several_lines() {
    let lab = lab(&[text("well met")]);
    let mut chat = chat(&lab, &[]);
    chat.types("one\x1b\rtwo\nthree\\\rfour").sees("four");
    chat.types("\r").sees("well met");
    leave(chat);
    let told = transcripts(&lab);
    assert!(told.contains(r"one\ntwo\nthree\nfour"), "{told}");
}

#[test]
fn what_was_written_before_comes_back() {
    let lab = lab(&[text("answer one"), text("answer two"), text("answer three"), text("answer four")]);
    let mut chat = chat(&lab, &[]);
    chat.types("first words\r").sees("answer one");
    chat.types("second words\r").sees("answer two");
    chat.types("half\x1b[A\x1b[A\r").sees("answer three");
    chat.types("half\x1b[A\x1b[A\x1b[B\x1b[B again\r").sees("answer four");
    leave(chat);
    let told = transcripts(&lab);
    assert_eq!((told.matches("first words").count(), told.matches("half again").count()), (2, 1), "{told}");
}

#[test]
fn keys_and_wheel_scroll_the_talk() {
    let lines: Vec<String> = (0..200).map(|line| format!("line {line}.")).collect();
    let lab = lab(&[text(&lines.join("\n\n"))]);
    let mut chat = chat(&lab, &[]);
    chat.types("go\r").sees("line 199.");
    for (up, down) in [("\x1b[5~", "\x1b[6~"), ("\x1b[<64;10;10M", "\x1b[<65;10;10M"), ("\x1b[1;5H", "\x1b[1;5F")] {
        chat.types(up).sees("there is more below");
        chat.types(down).sees_no_more("there is more below");
    }
    chat.types("\x1b[5~").sees("there is more below");
    chat.types("\x1b").sees_no_more("there is more below");
    leave(chat);
}

#[test]
fn model_and_compress_change_the_running_conversation() {
    let lab = lab(&[text("one."), text("two."), text("three."), text("the summary of all")]);
    lab.write("other.jsonl", text("the other model speaks") + "\n");
    let mut chat = chat(&lab, &[]);
    for answer in ["one.", "two.", "three."] {
        chat.types(&format!("go {}\r", "x".repeat(300))).sees(answer);
    }
    chat.types("/compress\r").sees("the summary of all");
    chat.types("/model replay:../other.jsonl\r").sees("other.jsonl");
    chat.types("go on\r").sees("the other model speaks");
    leave(chat);
}

#[test]
fn what_is_typed_before_the_picker_picks_nothing() {
    let lab = lab(&[text("first answer"), text("second answer")]);
    let mut chat = chat(&lab, &[]);
    chat.types("a first question\r").sees("first answer");
    chat.types("/clear\r").sees_no_more("first answer");
    chat.types("/resume\r\r\r").sees("Which conversation goes on?");
    chat.types("\x1b").sees_no_more("Which conversation goes on?");
    chat.types("hello\r").sees("first answer");
    leave(chat);
    assert_eq!(fs::read_dir(lab.home.join(".ollm/sessions")).unwrap().count(), 2);
}

#[test]
fn what_is_pasted_is_text_however_much_it_looks_like_keys() {
    let lab = lab(&[text("well met"), text("hi again")]);
    let pasted = "\x1b[200~one\x1b]0;title\x07 \x1b[2Jtwo \x03\x04\x11\u{202e}three\x1b[201~";
    for front in ["tui", "chat"] {
        let mut chat = lab.pty(LARGE, &[front, "--model", "replay:../talk.jsonl"]);
        if front == "tui" {
            chat.sees("approval");
        } else {
            chat.waits_for("> ");
        }
        chat.types(pasted).sees("three");
        chat.types("\r").sees("well met");
        if front == "chat" {
            chat.waits_for("well met").waits_for("> ");
        }
        chat.types("\x04");
        let ran = chat.ends();
        assert_eq!(ran.code, 0, "{ran:?}");
        for obeyed in ["title\u{7}", "\u{1b}]0;", "\u{202e}"] {
            assert!(!ran.stdout.contains(obeyed), "{front}: {obeyed:?} in {:?}", ran.stdout);
        }
    }
    let told = transcripts(&lab);
    assert!(!told.contains("\\u001b") && !told.contains("\\u0007"), "{told}");
}
