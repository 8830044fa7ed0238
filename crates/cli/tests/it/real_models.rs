//! A real server with a real small model; `scripts/real-models.sh` starts one and says where it is.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{ModelReply, ModelServer, answer_events};

use crate::lab::{Lab, finish};

/// Where the server is, and which tests it is for; nothing where none was started.
fn server(tests: &str) -> Option<String> {
    let is_meant = std::env::var("OLLM_REAL_MODEL_TESTS").is_ok_and(|meant| meant == tests);
    std::env::var("OLLM_REAL_MODEL").ok().filter(|_| is_meant).map(|url| format!("openai:real@{url}"))
}

/// A lab whose hooks write down every event and speak to the model.
fn talkative() -> Lab {
    listening(|event| json!({"continue": true, "systemMessage": format!("a note of {event}")}))
}

/// A lab whose hooks write down every event, and answer this.
fn listening(answer: fn(&str) -> Value) -> Lab {
    let lab = Lab::new();
    let events =
        ["session_start", "before_agent", "before_model", "after_model", "before_tool", "after_tool", "after_agent"];
    for event in events.iter().chain(&["context_overflow", "pre_compress", "post_compress", "session_end"]) {
        let script = format!("cat >> ../{event}; echo >> ../{event}; echo '{}'", answer(event));
        lab.user_hook(event, &format!("log-{event}"), &script, "");
    }
    lab
}

fn heard(lab: &Lab, event: &str) -> Vec<Value> {
    let text = fs::read_to_string(lab.root.join(event)).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_small_model_answers_with_hooks_around_it_and_a_conversation_goes_on() {
    let Some(model) = server("small") else { return };
    let lab = talkative();
    let task = |prompt: &str, more: &[&str]| {
        let arguments = [&["--set", "model.maxTokens=24", "run", prompt, "--model", &model, "--json"], more].concat();
        finish(lab.ollm(&arguments), b"")
    };
    // The model may be cut at its limit of tokens, which is a finding and no failure.
    let first = task("Say hello.", &[]);
    assert!(matches!(first.code, 0 | 1), "{first:?}");
    assert!(!first.answer()["response"].as_str().unwrap().is_empty(), "{first:?}");
    let second = task("And again.", &["--continue"]);
    assert!(matches!(second.code, 0 | 1), "{second:?}");
    assert_eq!(heard(&lab, "before_model").len(), 2);
    assert!(heard(&lab, "after_model").iter().all(|event| event["data"]["tokens"].as_u64() > Some(0)));
    assert_eq!(heard(&lab, "session_end").len(), 2);
}

#[test]
fn a_small_window_is_kept_by_compression() {
    let Some(model) = server("small") else { return };
    let lab = talkative();
    let turn = format!("Remember this. {}\n", "The quick brown fox jumps over the lazy dog. ".repeat(20));
    let chat = lab.ollm(&["--set", "model.maxTokens=16", "chat", "--model", &model]);
    let ran = finish(chat, turn.repeat(9).as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stderr.contains("too long for the model"), "{ran:?}");
    let overflows = heard(&lab, "context_overflow");
    assert!(!overflows.is_empty(), "{ran:?}");
    for event in &overflows {
        let data = &event["data"];
        assert_eq!(data["maxSize"], 2048, "the server tells its window");
        assert!((0.0..=1.0).contains(&data["utilization"].as_f64().unwrap()), "{data}");
    }
    let (pre, post) = (heard(&lab, "pre_compress"), heard(&lab, "post_compress"));
    assert_eq!(pre.len(), post.len());
    assert!(post[0]["data"]["size"].as_u64() < pre[0]["data"]["size"].as_u64());
}

#[test]
fn a_prompt_beyond_the_window_is_told_once_and_the_conversation_goes_on() {
    let Some(model) = server("small") else { return };
    let lab = Lab::new();
    let long = "word ".repeat(9000);
    let ran = finish(lab.ollm(&["run", &long, "--model", &model]), b"");
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("too long for the model").count(), 1, "{}", ran.stderr);
    let again = finish(
        lab.ollm(&["--set", "model.maxTokens=8", "run", "Hello", "--continue", "--model", &model, "--json"]),
        b"",
    );
    assert!(matches!(again.code, 0 | 1), "{again:?}");
}

/// How long after its start a program shows the first words of the model.
fn first_words(mut command: Command, are_there: fn(&str) -> bool) -> Duration {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut output, mut seen, mut buffer) = (child.stdout.take().unwrap(), Vec::new(), [0; 4096]);
    let took = loop {
        let count = output.read(&mut buffer).unwrap();
        assert!(count > 0, "no words: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
        if are_there(&String::from_utf8_lossy(&seen)) {
            break began.elapsed();
        }
    };
    output.read_to_end(&mut seen).unwrap();
    child.wait().unwrap();
    took
}

#[test]
fn the_first_words_are_timed_beside_those_of_the_program_curl() {
    let Some(model) = server("words") else { return };
    let lab = Lab::new();
    let ask = |model: &str| {
        lab.ollm(&["run", "Hello", "--set", "model.maxTokens=8", "--set", "model.cache_prompt=false", "--model", model])
    };
    // The same question for both, as another server hears it.
    let other = ModelServer::start(vec![ModelReply::stream(&answer_events("ok", &[], 9), 99)]).unwrap();
    assert_eq!(finish(ask(&format!("openai:real@{}", other.url())), b"").code, 0);
    let question = lab.write("question.json", other.asked()[0].body.to_string());
    let curl = || {
        let mut curl = Command::new("curl");
        curl.args(["-q", "-sN", "--noproxy", "*", "-H", "Content-Type: application/json", "-d"]);
        curl.arg(format!("@{}", question.display()));
        curl.arg(format!("{}/chat/completions", model.split_once('@').unwrap().1));
        first_words(curl, |seen| {
            seen.split("\"content\":\"").skip(1).any(|rest| !rest.starts_with('"') && !rest.is_empty())
        })
    };
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("there is no program `curl` here to compare with");
        return;
    }
    let times: Vec<_> = (0..9).map(|_| (first_words(ask(&model), |seen| !seen.is_empty()), curl())).collect();
    let ours = times.iter().map(|(ours, _)| *ours).min().unwrap();
    let theirs = times.iter().map(|(_, curl)| *curl).min().unwrap();
    println!(
        "first words since the start: {} ms, of `curl` {} ms, {:.3} times as long",
        ours.as_millis(),
        theirs.as_millis(),
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

#[test]
fn a_model_with_tools_calls_them_and_a_hook_can_refuse() {
    let Some(model) = server("tools") else { return };
    // So small a model takes notes for more than they are, and a file with a password for none of its business.
    let lab = listening(|_| json!({"continue": true}));
    lab.write("project/notes.txt", "The flower of the day is the tulip.\n");
    let prompt = "Read the file notes.txt and tell me which flower it names.";
    let arguments = ["--set", "model.temperature=0", "run", prompt, "--model", &model, "--approval", "yolo", "--json"];
    let ran = finish(lab.ollm(&arguments), b"");
    assert!(matches!(ran.code, 0 | 1), "{ran:?}");
    let calls = heard(&lab, "before_tool");
    assert!(!calls.is_empty(), "it calls a tool, natively or written as text: {ran:?}");
    assert_eq!(calls.len(), heard(&lab, "after_tool").len());
    lab.user_hook("before_tool", "refuse", "echo '{\"continue\": false, \"systemMessage\": \"no tools today\"}'", "");
    let ran = finish(lab.ollm(&arguments), b"");
    assert_eq!(ran.answer()["turns"][0]["toolCalls"], json!([]), "{ran:?}");
}
