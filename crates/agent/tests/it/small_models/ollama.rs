//! Ollama in its own language.

use std::time::Duration;

use ollm_agent::{Cancel, Connection, Model, Ollama, Patience, Question, TurnEnd};
use serde_json::{Value, json};
use testkit::model_shapes::{ollama_answer, ollama_counted, ollama_error, ollama_ps, ollama_show, ollama_tags};
use testkit::{ModelReply, ModelReplyEnd, ModelServer};

use super::{chat_server, chats, connection, ollama, patience, world};

#[test]
fn ollama_answers_in_its_own_language_with_thoughts_and_tools() {
    for size in [1, 3, 50] {
        let command = json!({"command": "echo hello"});
        let server = chat_server(vec![
            ollama_answer("hm, a shell", "let me see", &[("shell", command)], size),
            ollama_answer("", "all done", &[], size),
        ]);
        let mut world = world(ollama(&server));
        let turns = world.start().say("go", None);
        assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "all done"));
        assert_eq!(turns[0].tokens, Some(68));
        assert_eq!(world.shown("thought").concat().replace("thought ", ""), "hm, a shell");
        let second = chats(&server).remove(1).body;
        let messages = second["messages"].as_array().unwrap();
        let call = json!({"function": {"name": "shell", "arguments": {"command": "echo hello"}}});
        assert_eq!(messages[2], json!({"role": "assistant", "content": "let me see", "tool_calls": [call]}));
        assert_eq!(messages[3], json!({"role": "tool", "tool_name": "shell", "content": "hello"}));
        assert_eq!(second["stream"], true);
    }
}

#[test]
fn ollamas_faults_are_told() {
    let ask = |reply: ModelReply| {
        let server = chat_server(vec![reply]);
        let question = Question { messages: &[], tools: &[], most: 1000, cancel: &Cancel::default() };
        ollama(&server).answer(&question, &mut |_| {})
    };
    let missing = ask(ollama_error(404, "model 'm' not found")).unwrap_err().to_string();
    assert!(missing.ends_with("fetch it first: `ollama pull m`"), "{missing}");
    let (headers, pieces) = (vec!["Content-Type: text/html".to_owned()], vec![b"<html>Log in</html>".to_vec()]);
    let page = ModelReply::Pieces { status: 200, headers, pieces, end: ModelReplyEnd::Whole };
    for reply in [ModelReply::json(404, &json!({})), page] {
        let foreign = ask(reply).unwrap_err().to_string();
        assert!(foreign.contains("this is no Ollama"), "{foreign}");
    }
    let broken = ask(ModelReply::lines(&[json!({"error": "out of memory"})], 9)).unwrap_err().to_string();
    assert!(broken.contains("out of memory"), "{broken}");
    let half = json!({"message": {"role": "assistant", "content": "half"}, "done": false});
    assert_eq!(ask(ModelReply::lines(&[half], 9)).unwrap_err().code(), "dropped");
    let cut = ask(ollama_counted(("", "half"), &[], ("length", 5, 5), 9)).unwrap();
    assert!(cut.cut.is_some());
}

#[test]
fn ollamas_window_is_what_the_model_was_loaded_with() {
    let cancel = Cancel::default();
    let server = |ps: ModelReply, show: ModelReply| {
        ModelServer::answering(move |asked| match asked.path.as_str() {
            "/api/ps" => Some(ps.clone()),
            "/api/show" => Some(show.clone()),
            _ => None,
        })
        .unwrap()
    };
    let shown = || ollama_show(&["completion"], "stop \"<eot>\"\nnum_ctx                        8192");
    let loaded = server(ollama_ps(&[("other:1b", 1), ("m:latest", 4096)]), shown());
    assert_eq!(ollama(&loaded).window(&cancel), Some(4096));
    let unloaded = server(ollama_ps(&[]), shown());
    assert_eq!(ollama(&unloaded).window(&cancel), Some(8192));
    let silent = server(ollama_ps(&[]), ollama_show(&[], ""));
    assert_eq!(ollama(&silent).window(&cancel), None);
    let options = json!({"num_ctx": 2000}).as_object().unwrap().clone();
    let mut set = Ollama::new(Connection { options, ..connection(&silent) });
    assert_eq!(set.window(&cancel), Some(2000));
}

#[test]
fn the_models_of_an_ollama_are_listed_shown_and_fetched() {
    let cancel = Cancel::default();
    let steps: Vec<Value> = vec![
        json!({"status": "pulling manifest"}),
        json!({"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 40}),
        json!({"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 100}),
        json!({"status": "success"}),
    ];
    let server = ModelServer::answering(move |asked| match asked.path.as_str() {
        "/api/tags" => Some(ollama_tags(&["llama3.2:3b", "qwen3:4b"])),
        "/api/show" => Some(ollama_show(&["completion", "tools"], "")),
        "/api/pull" if asked.body["model"] == "gone" => {
            Some(ModelReply::lines(&[json!({"error": "pull model manifest: file does not exist"})], 9))
        }
        "/api/pull" if asked.body["model"] == "half" => Some(ModelReply::lines(&steps[..2], 9)),
        "/api/pull" => Some(ModelReply::lines(&steps, 9)),
        _ => None,
    })
    .unwrap();
    let names: Vec<String> = ollama(&server).list(&cancel).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["llama3.2:3b", "qwen3:4b"]);
    let details = ollama(&server).show(&cancel).unwrap();
    assert!(details.has_tools() && details.context_length == Some(131_072));
    let mut seen = Vec::new();
    ollama(&server).pull(&cancel, &mut |step| seen.push((step.completed, step.total))).unwrap();
    assert_eq!(seen, [(None, None), (Some(40), Some(100)), (Some(100), Some(100)), (None, None)]);
    let failed = |name: &str| {
        let model = Ollama::new(Connection { model: name.to_owned(), ..connection(&server) });
        model.pull(&cancel, &mut |_| {}).unwrap_err().to_string()
    };
    assert!(failed("gone").contains("file does not exist"));
    assert!(failed("half").contains("ended before its end"));
}

#[test]
fn a_download_may_take_longer_than_an_answer() {
    let step = json!({"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 40});
    let steps = [vec![step; 40], vec![json!({"status": "success"})]].concat();
    let server = ModelServer::start(vec![ModelReply::lines(&steps, 9)]).unwrap();
    let patience = Patience { answer: Duration::ZERO, ..patience() };
    let model = Ollama::new(Connection { patience, ..connection(&server) });
    model.pull(&Cancel::default(), &mut |_| {}).unwrap();
}
