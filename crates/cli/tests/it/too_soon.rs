//! Every kind of question on the plain terminal: what is typed before it is there, or right after that, answers nothing.

use serde_json::json;

use crate::extensions::{QUIET, extension};
use crate::lab::pty::{Pty, WHOLE, keys};
use crate::lab::{Lab, OLLM, python};

/// A question, the answer that has an effect, and whether it had one.
struct Question {
    arguments: &'static [&'static str],
    shown: &'static str,
    answer: &'static str,
    is_done: fn(&Lab, &str) -> bool,
}

const QUESTIONS: &[Question] = &[
    Question {
        arguments: &["hook", "trust", "workspace:guest.json:file_deleted:guest"],
        shown: "[N]o: ",
        answer: "a\\n",
        is_done: |lab, _| {
            let hooks = lab.run(&["hook", "list", "--json"]).answer();
            hooks.as_array().unwrap().iter().any(|hook| hook["name"] == "guest" && hook["trust"] == "trusted")
        },
    },
    Question {
        arguments: &["ext", "uninstall", "kept"],
        shown: "[y/N] ",
        answer: "y\\n",
        is_done: |lab, _| !lab.home.join(".ollm/extensions/kept").exists(),
    },
    Question {
        arguments: &["ext", "set", "kept", "token"],
        shown: "): ",
        answer: "hush-hush\\n",
        is_done: |lab, _| {
            let kept = lab.run(&["ext", "info", "kept", "--json"]).answer();
            !kept["settingDetails"][0]["value"].is_null()
        },
    },
    Question {
        arguments: &["skill", "run", "explain"],
        shown: "file: ",
        answer: "x.rs\\n",
        is_done: |_, written| written.contains("Explain x.rs to me."),
    },
    Question {
        arguments: &["session", "resume", "--model", "replay:../talk.jsonl"],
        shown: "Enter for none]: ",
        answer: "1\\n",
        is_done: |_, written| written.contains("a first answer"),
    },
    Question {
        arguments: &["run", "do it", "--model", "replay:../calls.jsonl"],
        shown: "[N]o: ",
        answer: "y\\n",
        is_done: |lab, _| lab.project.join("ran").exists(),
    },
];

fn lab() -> Lab {
    let lab = Lab::new().set("OLLM_KEYRING", "off");
    lab.workspace_hook("file_deleted", "guest", "exit 0\n", "");
    let more = json!({
        "settings": [{"name": "token", "description": "who you are", "sensitive": true}],
        "skills": [{"name": "explain", "description": "Explains", "prompt": "Explain {{file}} to me."}],
        "hooks": {},
    });
    extension(&lab, "home", "kept", QUIET, &more);
    assert_eq!(lab.run(&["ext", "trust", "kept", "--digest", &digest(&lab)]).code, 0);
    lab.write("talk.jsonl", "{\"content\": \"a first answer\"}\n");
    let call = json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": "touch ran"}}]});
    lab.write("calls.jsonl", format!("{call}\n{}\n", json!({"content": "done"})));
    let ran = lab.run(&["run", "a first question", "--model", "replay:../talk.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    lab
}

/// What the extension is approved by.
fn digest(lab: &Lab) -> String {
    lab.run(&["ext", "info", "kept", "--json"]).answer()["digest"].as_str().unwrap().to_owned()
}

fn asked(question: &Question, lab: &Lab, ahead: &str) -> Pty {
    let command: Vec<&str> = std::iter::once(OLLM).chain(question.arguments.iter().copied()).collect();
    let relay = lab.program(python().to_str().unwrap());
    let mut pty = Pty::start_typed_ahead(relay, WHOLE, &keys(ahead), &command);
    pty.waits_for(question.shown);
    pty
}

#[test]
fn what_is_typed_before_a_question_answers_none_of_any_kind() {
    for question in QUESTIONS {
        let lab = lab();
        let ahead = question.answer.repeat(3);
        let mut pty = asked(question, &lab, &ahead);
        pty.types("\x04");
        let ran = pty.ends();
        assert!(!(question.is_done)(&lab, &ran.stdout), "{:?}: {ran:?}", question.arguments);
    }
}

#[test]
fn what_is_typed_right_after_a_question_appeared_answers_none_of_any_kind() {
    for question in QUESTIONS {
        let lab = lab().set("OLLM_QUESTION_GRACE", "3600000");
        let mut pty = asked(question, &lab, "");
        for _ in 0..2 {
            pty.types(&keys(question.answer)).waits_for("That came too soon").waits_for(question.shown);
        }
        pty.types("\x04");
        let ran = pty.ends();
        assert!(!(question.is_done)(&lab, &ran.stdout), "{:?}: {ran:?}", question.arguments);
    }
}

#[test]
fn an_answer_in_time_counts_for_every_kind() {
    for question in QUESTIONS {
        let lab = lab();
        let mut pty = asked(question, &lab, "");
        pty.types(&keys(question.answer));
        if question.arguments.first() == Some(&"session") {
            pty.waits_for("> ").types("\x04");
        }
        let ran = pty.ends();
        assert!((question.is_done)(&lab, &ran.stdout), "{:?}: {ran:?}", question.arguments);
    }
}
