//! Questions of servers to the person at the terminal, and to the model.

use serde_json::{Value, json};
use testkit::{ModelReply, ModelServer, answer_events};

use super::{call, lab_with, server, text_of};
use crate::lab::pty::typed;
use crate::lab::{Lab, Ran};

/// Calls the tool that asks this question, on a terminal, and types.
fn asked(lab: &Lab, question: &Value, steps: &[&str]) -> Ran {
    let args = json!({"question": question}).to_string();
    typed(lab, steps, &["mcp", "call", "s", "ask", "--args", &args, "--json"])
}

/// What the server heard; the screen holds the questions as well.
fn heard(ran: &Ran) -> Value {
    let (_, answer) = ran.stdout.rsplit_once("\n{").unwrap_or_else(|| panic!("{ran:?}"));
    let answer: Value = serde_json::from_str(&format!("{{{answer}")).unwrap_or_else(|error| panic!("{error} {ran:?}"));
    serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn form() -> Value {
    json!({"message": "Who are you?\nSay it \u{1b}[2Jplainly.", "requestedSchema": {"type": "object", "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "news": {"type": "boolean"},
    }, "required": ["name", "news"]}})
}

#[test]
fn a_form_is_shown_filled_in_checked_and_sent() {
    let lab = lab_with(&server(&[]));
    let steps = [
        r"anything else cancels: =>y\r",
        r"name: =>x\r",
        r"outside of its bounds=>",
        r"name: =>Ada\r",
        r"leaves it out): =>\r",
        r"[red]: =>2\r",
        r"(y/n): =>maybe\r",
        r"(y/n): =>n\r",
        r"anything else cancels: =>y\r",
    ];
    let ran = asked(&lab, &form(), &steps);
    assert_eq!(heard(&ran), json!({"action": "accept", "content": {"name": "Ada", "colour": "green", "news": false}}));
    for part in [
        "Server `s` asks you:\n  | Who are you?\n  | Say it \\u{1b}[2Jplainly.",
        "- name (text, required, at least 2 characters): Your name",
        "- age (whole number, optional, at least 0)",
        "- colour (one of these, optional, default red)\n      1. red\n      2. green",
        "no passwords, no keys",
        "it must be yes or no",
        "  | {\"name\":\"Ada\",\"colour\":\"green\",\"news\":false}\n  Send it to `s`?",
    ] {
        assert!(ran.stdout.contains(part), "{part} is not in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}

#[test]
fn a_person_may_decline_or_cancel_at_any_time() {
    let lab = lab_with(&server(&[]));
    for (steps, action) in [
        (&[r"cancels: =>n\r"][..], "decline"),
        (&[r"cancels: =>\r"], "cancel"),
        (&[r"cancels: =>\x04"], "cancel"),
        (&[r"cancels: =>y\r", r"name: =>\x04"], "cancel"),
    ] {
        assert_eq!(heard(&asked(&lab, &form(), steps)), json!({"action": action}), "{steps:?}");
    }
}

#[test]
fn a_form_that_cannot_be_shown_is_declined_and_told() {
    let lab = lab_with(&server(&[]));
    let many: serde_json::Map<_, _> = (0..33).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
    let question = json!({"message": "m", "requestedSchema": {"type": "object", "properties": many}});
    let ran = asked(&lab, &question, &[]);
    assert_eq!(heard(&ran), json!({"action": "decline"}));
    assert!(ran.stdout.contains("cannot be shown; it was declined: it has 33 fields"), "{ran:?}");
    let nested =
        json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}});
    let ran = asked(&lab, &nested, &[]);
    assert!(!ran.stdout.contains("cancels:") && !ran.stdout.contains("accept"), "{ran:?}");
}

#[test]
fn an_address_is_shown_whole_and_opened_only_after_a_yes() {
    for (answer, action, opened) in [("y", "accept", true), ("n", "decline", false), ("", "cancel", false)] {
        let lab = lab_with(&server(&[]));
        lab.write_executable("bin/xdg-open", "#!/bin/sh\nprintf '%s' \"$1\" > \"$HOME/opened\"\n");
        let path = format!("{}:/usr/bin:/bin", lab.root.join("bin").display());
        let lab = lab.set("PATH", &path);
        let url = "https://bank.example/pay?x=$(touch%20canary)&y=`id`";
        let question = json!({"mode": "url", "elicitationId": "1", "url": url, "message": "Pay"});
        let ran = asked(&lab, &question, &[&format!(r"cancels: =>{answer}\r")]);
        assert_eq!(heard(&ran)["action"], action, "{ran:?}");
        let shown = "https://bank.example/pay?x=%24%28touch%20canary%29&y=%60id%60";
        assert!(ran.stdout.contains("a page of bank.example") && ran.stdout.contains(shown), "{ran:?}");
        let file = lab.home.join("opened");
        if opened {
            crate::lab::eventually("the browser is opened", || {
                std::fs::read_to_string(&file).is_ok_and(|text| text == shown)
            });
        } else {
            assert!(!file.exists());
        }
    }
}

#[test]
fn an_address_that_is_no_page_is_declined() {
    let lab = lab_with(&server(&[]));
    for url in ["file:///etc/passwd", "https://bank.example@evil.example/", "javascript:alert(1)"] {
        let question = json!({"mode": "url", "elicitationId": "1", "url": url, "message": "Look"});
        let ran = asked(&lab, &question, &[]);
        assert!(!ran.stdout.contains(r#""accept""#) && !ran.stdout.contains("cancels:"), "{url}: {ran:?}");
    }
}

#[test]
fn without_a_terminal_questions_are_declined() {
    let lab = lab_with(&server(&[]));
    let ran = call(&lab, "ask", &json!({}));
    assert_eq!(serde_json::from_str::<Value>(&text_of(&ran)).unwrap(), json!({"action": "decline"}));
    let ran = call(&lab, "sample", &json!({}));
    assert!(text_of(&ran).contains("-32601"), "{ran:?}");
}

/// A model that has one tool of the server called, answers the server, and then is done.
fn model(tool: &str, said: &str) -> ModelServer {
    let answer = |text: &str, calls: &[(&str, &str, &str)]| ModelReply::stream(&answer_events(text, calls, 8), 64);
    ModelServer::start(vec![answer("", &[("c", tool, "{}")]), answer(said, &[]), answer("done", &[])]).unwrap()
}

#[test]
fn a_run_asks_the_person_what_a_server_wants_to_know() {
    let lab = lab_with(&server(&[]));
    let call = r#"{"tool_calls": [{"id": "1", "name": "mcp__s__ask", "arguments": {}}]}"#;
    lab.write("talk.jsonl", format!("{call}\n{{\"content\": \"done\"}}\n"));
    let steps = [r"cancels: =>y\r", r"leaves it out): =>Ada\r", r"cancels: =>y\r"];
    let run = ["run", "go", "--model", "replay:../talk.jsonl", "--approval", "yolo"];
    let ran = typed(&lab, &steps, &run);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("What is your name?"), "{ran:?}");
    let told = std::fs::read_dir(lab.home.join(".ollm/sessions")).unwrap().flatten().next().unwrap().path();
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains(r#"\\\"name\\\":\\\"Ada\\\""#) || told.contains(r#"\"name\":\"Ada\""#), "{told}");
    lab.assert_nobody_is_left();
}

#[test]
fn the_persons_own_model_answers_a_server_after_the_person_said_yes_twice() {
    let model = model("mcp__s__sample", "Something.");
    let lab = lab_with(&server(&[]));
    let name = format!("openai:m@{}", model.url());
    let run = ["run", "go", "--model", &name, "--approval", "yolo"];
    let ran = typed(&lab, &[r"[N]o: =>y\r", r"[N]o: =>y\r"], &run);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in
        ["Server `s` wants to ask your model:\n  | user: Say something.", "The model answers `s`:\n  | Something."]
    {
        assert!(ran.stdout.contains(part), "{part} is not in {}", ran.stdout);
    }
    let asked = model.asked();
    let sampled = asked[1].body["messages"].as_array().unwrap();
    assert_eq!((sampled.len(), &sampled[0]["content"]), (1, &json!("Say something.")), "nothing of ours goes along");
    assert!(asked[1].body.get("tools").is_none_or(|tools| tools.as_array().is_none_or(Vec::is_empty)));
    assert!(asked[2].body.to_string().contains("Something."), "the server got the answer: {}", asked[2].body);
}

#[test]
fn the_model_is_not_lent_without_a_yes_or_against_the_users_will() {
    let refused = |lab: &Lab, steps: &[&str], questions: usize| {
        let model = model("mcp__s__sample", "done");
        let name = format!("openai:m@{}", model.url());
        let ran = typed(lab, steps, &["run", "go", "--model", &name, "--approval", "yolo"]);
        assert_eq!((ran.code, ran.stdout.matches("[N]o: ").count()), (0, questions), "{ran:?}");
        assert_eq!(model.asked().len(), 2, "{ran:?}");
    };
    refused(&lab_with(&server(&[])), &[r"[N]o: =>\r"], 1);
    let lab = lab_with(&server(&[]));
    lab.write("home/.ollm/config.yaml", "mcp:\n  sampling: deny\n");
    refused(&lab, &[], 0);
    let lab = lab_with(&server(&[]));
    lab.write("project/.ollm/config.yaml", "mcp:\n  sampling: allow\n");
    refused(&lab, &[r"[N]o: =>n\r"], 1);
}

#[test]
fn a_user_may_lend_the_model_without_questions_also_where_nobody_sits() {
    let model = model("mcp__s__sample", "Something.");
    let lab = lab_with(&server(&[]));
    lab.write("home/.ollm/config.yaml", "mcp:\n  sampling: allow\n");
    let name = format!("openai:m@{}", model.url());
    let ran = lab.run(&["run", "go", "--model", &name, "--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(model.asked()[2].body.to_string().contains("Something."));
}
