//! Models as people meet them: a local Ollama, a first run without any, and small ones.

use std::io::Read;
use std::process::Stdio;

use serde_json::json;
use testkit::model_shapes::{ollama_answer, ollama_error, ollama_ps, ollama_show, ollama_tags};
use testkit::{ModelReply, ModelReplyEnd, ModelServer};

use crate::agent::{lab, text};
use crate::lab::{Lab, finish};
use crate::screens;

/// An Ollama with two models, of which only the second can call tools.
fn ollama() -> ModelServer {
    let steps = [
        json!({"status": "pulling manifest"}),
        json!({"status": "pulling 1a2b", "digest": "sha256:1a2b", "total": 2000, "completed": 2000}),
        json!({"status": "success"}),
    ];
    ModelServer::answering(move |asked| {
        let model = asked.body["model"].as_str().unwrap_or_default();
        Some(match asked.path.as_str() {
            "/api/tags" => ollama_tags(&["gemma:2b", "qwen3:4b"]),
            "/api/show" if model == "qwen3:4b" => ollama_show(&["completion", "tools", "thinking"], "num_ctx  8192"),
            "/api/show" if model == "gemma:2b" => ollama_show(&["completion"], ""),
            "/api/show" => ollama_error(404, "model not found"),
            "/api/ps" => ollama_ps(&[]),
            "/api/pull" if model == "qwen3:4b" => ModelReply::lines(&steps, 9),
            "/api/pull" if model == "half" => ModelReply::lines(&steps[..2], 9),
            "/api/pull" => ModelReply::lines(&[json!({"error": "pull model manifest: file does not exist"})], 9),
            "/api/chat" => ollama_answer("hm", "hello from qwen", &[], 4),
            _ => return None,
        })
    })
    .unwrap()
}

fn with(server: &ModelServer) -> Lab {
    Lab::new().set("OLLAMA_HOST", server.origin())
}

#[test]
fn model_list() {
    let lab = with(&ollama());
    insta::assert_snapshot!(lab.screen(&lab.run(&["model", "list"])));
    assert_eq!(lab.run(&["model", "list", "--json"]).answer()[1]["name"], "qwen3:4b");
}

#[test]
fn model_show() {
    let lab = with(&ollama());
    insta::assert_snapshot!(lab.screen(&lab.run(&["model", "show", "qwen3:4b"])));
    let shown = lab.run(&["model", "show", "qwen3:4b", "--json"]).answer();
    assert_eq!((&shown["contextLength"], &shown["loadedWith"]), (&json!(131_072), &json!(8192)));
    let missing = lab.run(&["model", "show", "gone"]);
    assert_eq!(missing.code, 64, "{missing:?}");
    assert!(missing.stderr.contains("`ollm model pull gone` fetches one"), "{missing:?}");
}

#[test]
fn a_model_is_fetched_or_it_is_told_why_not() {
    let lab = with(&ollama());
    let ran = lab.run(&["model", "pull", "qwen3:4b"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    insta::assert_snapshot!(screens::shown(&lab, &["model", "pull", "qwen3:4b"], &ran));
    let ran = lab.run(&["model", "pull", "gone"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("`gone` was not fetched") && ran.stderr.contains("file does not exist"), "{ran:?}");
    assert!(ran.stderr.contains("https://ollama.com/library") && !ran.stderr.contains("ask again"), "{ran:?}");
    let ran = lab.run(&["model", "pull", "half"]);
    assert!(ran.stderr.contains("broke off") && ran.stderr.contains("`ollm model pull half` fetches one"), "{ran:?}");
}

#[test]
fn the_server_and_the_key_of_another_provider_are_none_of_ollamas() {
    let (server, stranger) = (ollama(), ModelServer::answering(|_| None).unwrap());
    let lab = with(&server).set("MY_KEY", "k-12345678");
    for model in ["provider: openai\n  name: gpt", "name: openai:gpt"] {
        for address in [String::new(), format!("  baseUrl: {}\n", stranger.url())] {
            lab.write("home/.ollm/config.yaml", format!("model:\n  {model}\n{address}  apiKeyEnv: MY_KEY\n"));
            for arguments in [&["model", "list"][..], &["model", "show", "qwen3:4b"], &["model", "pull", "qwen3:4b"]] {
                assert_eq!(lab.run(arguments).code, 0, "{model} {address} {arguments:?}");
            }
        }
    }
    assert!(stranger.asked().is_empty());
    assert!(server.asked().iter().all(|asked| asked.authorization.is_none()));
    lab.write("home/.ollm/config.yaml", format!("model:\n  name: ollama:m@{}\n  apiKeyEnv: MY_KEY\n", server.origin()));
    assert_eq!(lab.set("OLLAMA_HOST", "127.0.0.1:9").run(&["model", "list"]).code, 0);
    assert_eq!(server.asked().last().unwrap().authorization.as_deref(), Some("Bearer k-12345678"));
}

#[test]
fn a_first_run_without_a_model() {
    let lab = Lab::new().set("OLLAMA_HOST", "127.0.0.1:9");
    insta::assert_snapshot!(lab.screen(&lab.run(&["run", "hello"])));
    let server = ModelServer::answering(|_| Some(ollama_tags(&[]))).unwrap();
    let ran = with(&server).run(&["run", "hello"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("has no model yet") && ran.stderr.contains("`ollm model pull qwen3:4b`"), "{ran:?}");
}

#[test]
fn the_latest_model_with_tools_answers_and_its_name_is_told() {
    let server = ollama();
    let ran = with(&server).run(&["run", "hello", "--json"]);
    let answer = ran.answer();
    assert_eq!((&answer["model"], &answer["response"]), (&json!("qwen3:4b"), &json!("hello from qwen")), "{ran:?}");
    assert!(ran.stderr.contains("no model is named, so qwen3:4b answers"), "{ran:?}");
    let chat = server.asked().into_iter().find(|asked| asked.path == "/api/chat").unwrap();
    assert!(chat.body["tools"].is_array());
    let ran = with(&ollama()).run(&["run", "hello", "--model", "qwen3:4b"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello from qwen\n", 0));
    assert!(!ran.stderr.contains("no model is named"), "{ran:?}");
    assert!(ran.stderr.contains("hm"), "thoughts are shown beside the answer: {ran:?}");
}

#[test]
fn where_no_model_can_call_tools_it_is_said() {
    let server = ModelServer::answering(|asked| {
        Some(match asked.path.as_str() {
            "/api/tags" => ollama_tags(&["gemma:2b", "phi:3b"]),
            "/api/show" => ollama_show(&["completion"], ""),
            "/api/chat" if asked.body["tools"].is_array() => ollama_error(400, "gemma:2b does not support tools"),
            "/api/chat" => ollama_answer("", "hello", &[], 4),
            _ => return None,
        })
    })
    .unwrap();
    let ran = with(&server).run(&["run", "hello"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello\n", 0), "{ran:?}");
    let told = "no model is named, so gemma:2b answers, the latest; none of the models there can call tools";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("cannot call tools"), "{ran:?}");
}

#[test]
fn a_closed_standard_output_ends_the_turn() {
    let words = "data: {\"choices\":[{\"delta\":{\"content\":\"and so on \"}}]}\n\n".repeat(20_000);
    let reply = ModelReply::bytes(words.as_bytes(), 4096, ModelReplyEnd::Hanging);
    let server = ModelServer::start(vec![reply]).unwrap();
    let lab = Lab::new();
    let model = format!("openai:m@{}", server.url());
    let mut child = lab.ollm(&["run", "go", "--model", &model]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 80]).unwrap();
    drop(output);
    // The server holds the connection for a minute; waiting for it would meet the test's own deadline.
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn an_answer_that_ran_out_of_tokens_is_a_finding() {
    let lab = lab(&[json!({"content": "half a sent", "finish": "length"})]);
    let ran = crate::agent::run(&lab, &["--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let answer = ran.answer();
    assert_eq!((&answer["truncated"], &answer["end"]), (&json!(true), &json!("bounded")));
    assert!(ran.stderr.contains("limit of tokens"), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "it is told once: {ran:?}");
}

#[test]
fn a_call_in_the_form_of_python_is_made_and_one_in_an_unknown_form_is_named() {
    let called = lab(&[text("```tool_code\nshell(command='echo made')\n```"), text("done")]);
    let ran = crate::agent::run(&called, &["--approval", "yolo"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    assert!(ran.stderr.contains("✓ shell: made"), "{ran:?}");
    let named = lab(&[text("<|channel|>commentary to=functions.shell<|message|>{\"command\": \"ls\"}")]);
    let ran = crate::agent::run(&named, &["--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("the answer looks like a call of shell"), "{ran:?}");
}

#[test]
fn a_server_that_falls_silent_is_waited_for_as_long_as_the_settings_say() {
    let half = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let server = ModelServer::start(vec![ModelReply::bytes(half, 99, ModelReplyEnd::Hanging)]).unwrap();
    let model = format!("openai:m@{}", server.url());
    let ran = Lab::new().set("OLLM_MODEL_TIMEOUT", "1s").run(&["run", "hi", "--model", &model]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("s; ask again, raise model.timeout, or take a smaller model"), "{ran:?}");
}

#[test]
fn a_chat_is_made_shorter_on_request() {
    let lab = lab(&[text("one"), text("two"), text("three"), text("the gist of it"), text("four")]);
    lab.user_hook("post_compress", "log", "cat > ../seen", "");
    let input = format!("a {0}\nb {0}\nc {0}\n/compress\nd\n", "x".repeat(300));
    let ran = finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), input.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("the gist of it\n") && ran.stdout.contains("four"), "{ran:?}");
    let seen: serde_json::Value = serde_json::from_slice(&std::fs::read(lab.root.join("seen")).unwrap()).unwrap();
    let data = &seen["data"];
    assert_eq!((&data["trigger"], &data["summary"]), (&json!("manual"), &json!("the gist of it")));
    assert!(data["size"].as_u64().unwrap() < data["maxSize"].as_u64().unwrap() && data["estimated"] == true, "{data}");
}

#[test]
fn instructions_of_the_project_reach_the_model_and_the_person_is_told() {
    let answer = json!({"content": "ok", "expect": {"contains": ["write tests first", "around the project"]}});
    let lab = lab(&[answer]);
    lab.write("home/project/.git/HEAD", "ref: refs/heads/main");
    lab.write("home/project/AGENTS.md", "write tests first");
    lab.write("home/AGENTS.md", "around the project");
    let mut command = lab.ollm(&["run", "go", "--model", "replay:../../talk.jsonl"]);
    command.current_dir(lab.root.join("home/project"));
    let ran = finish(command, b"");
    assert_eq!((ran.stdout.as_str(), ran.code), ("ok\n", 0), "{ran:?}");
    assert!(ran.stderr.contains("project/AGENTS.md is read as instructions for the model"), "{ran:?}");
}
