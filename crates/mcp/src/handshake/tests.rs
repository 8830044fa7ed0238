use std::collections::VecDeque;
use std::io;

use super::*;

/// A server that plays back a script: a list of messages after each of ours, with `ID` for the id of our request. At
/// the end of the script it is silent.
#[derive(Default)]
struct Scripted {
    replies: VecDeque<Vec<Value>>,
    waiting: VecDeque<Value>,
    sent: Vec<Value>,
    /// Whether the server closes the connection at the end of the script.
    ends: bool,
}

impl Scripted {
    fn new(replies: impl IntoIterator<Item = Vec<Value>>) -> Scripted {
        Scripted { replies: replies.into_iter().collect(), ..Scripted::default() }
    }

    fn methods(&self) -> Vec<&str> {
        self.sent.iter().map(|message| message["method"].as_str().unwrap_or("answer")).collect()
    }
}

impl Transport<RoleClient> for Scripted {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let message = serde_json::to_value(message).unwrap();
        for mut reply in self.replies.pop_front().unwrap_or_default() {
            if reply["id"] == "ID" {
                reply["id"] = message["id"].clone();
            }
            reply["jsonrpc"] = json!("2.0");
            self.waiting.push_back(reply);
        }
        self.sent.push(message);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.waiting.pop_front() {
            Some(message) => Some(serde_json::from_value(message).unwrap()),
            None if self.ends => None,
            None => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log() -> Log {
    Log::new(Vec::new(), Vec::new(), 100)
}

async fn meet(server: &mut Scripted, log: &Log) -> Result<ServerPeerInfo, String> {
    let us = ClientConfig::default();
    negotiate(server, &us, None, Duration::from_secs(1), log).await.map_err(|fault| fault.to_string())
}

fn refusal(code: i32, data: &Value) -> Value {
    json!({"id": "ID", "error": {"code": code, "message": "no", "data": data}})
}

fn unknown() -> Value {
    refusal(-32601, &Value::Null)
}

fn discovered() -> Value {
    json!({"id": "ID", "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    }})
}

fn welcome(changed: &Value) -> Value {
    let mut result =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
    result.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
    json!({"id": "ID", "result": result})
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_another_revision_is_asked_for_that() {
    let other = refusal(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0, &json!({"supported": ["2026-07-28"]}));
    let mut server = Scripted::new([vec![other], vec![discovered()]]);
    assert_eq!(meet(&mut server, &log()).await.unwrap().protocol_version.as_str(), "2026-07-28");
    assert_eq!(server.methods(), ["server/discover", "server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_revision_of_the_new_kind_is_asked_in_the_old_way() {
    for answer in [
        unknown(),
        refusal(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0, &json!({"supported": ["2024-11-05"]})),
        refusal(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0, &json!({"supported": 7})),
        json!({"id": "ID", "result": {"what": "is this"}}),
        json!({"id": null, "error": {"code": -32700, "message": "what?"}}),
    ] {
        let mut server = Scripted::new([vec![answer], vec![welcome(&json!({}))]]);
        assert_eq!(meet(&mut server, &log()).await.unwrap().protocol_version.as_str(), "2025-06-18");
        assert_eq!(server.methods(), ["server/discover", "initialize", "notifications/initialized"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_new_way_counts_where_the_old_way_is_refused() {
    let mut late = discovered();
    late["id"] = json!(DISCOVER);
    let mut server = Scripted::new([vec![], vec![late, refusal(-32600, &Value::Null)]]);
    assert_eq!(meet(&mut server, &log()).await.unwrap().protocol_version.as_str(), "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_both_ways_is_told() {
    for answer in [refusal(-32600, &Value::Null), json!({"id": null, "error": {"code": -32600, "message": "no"}})] {
        let mut server = Scripted::new([vec![unknown()], vec![answer]]);
        assert_eq!(meet(&mut server, &log()).await.unwrap_err(), "it refuses to be connected to: no (error -32600)");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_server_says_in_between_is_answered_logged_or_passed_over() {
    let between = [
        json!({"id": 7, "method": "ping"}),
        json!({"id": 8, "method": "roots/list"}),
        json!({"method": "notifications/message", "params": {"level": "info", "data": "hello"}}),
        json!({"method": "notifications/tools/list_changed"}),
        json!({"id": "nobody's", "result": {}}),
        json!({"id": 9, "result": {}}),
    ];
    let with = |answer: Value| between.iter().cloned().chain([answer]).collect::<Vec<_>>();
    let mut as_text = welcome(&json!({}));
    as_text["id"] = json!(INITIALIZE.to_string());
    let mut server = Scripted::new([with(unknown()), vec![], with(as_text)]);
    let log = log();
    assert!(meet(&mut server, &log).await.is_ok());
    assert_eq!(server.sent.iter().filter(|message| message["id"] == 7).count(), 2, "{:?}", server.sent);
    assert!(server.sent.iter().all(|message| message["id"] != 8), "{:?}", server.sent);
    let said = log.tail(0);
    assert!(said.contains("hello") && said.contains("tools/list_changed"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_greeting_that_is_none_is_told_by_its_field() {
    for (changed, expected) in [
        (json!({"protocolVersion": null}), "its answer to `initialize` has no `protocolVersion`"),
        (json!({"protocolVersion": 7}), "`protocolVersion` in its answer to `initialize` must be text"),
        (json!({"capabilities": []}), "`capabilities` in its answer to `initialize` must be an object"),
        (json!({"serverInfo": {"name": "s"}}), "its answer to `initialize` has no `serverInfo.version`"),
    ] {
        let mut server = Scripted::new([vec![unknown()], vec![welcome(&changed)]]);
        assert_eq!(meet(&mut server, &log()).await.unwrap_err(), expected);
    }
    let mut server = Scripted::new([vec![unknown()], vec![welcome(&json!({"capabilities": {"tools": 7}}))]]);
    let said = meet(&mut server, &log()).await.unwrap_err();
    assert!(said.starts_with("`capabilities` in its answer to `initialize` is wrong: "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_revision_and_an_end_are_told() {
    let mut server = Scripted::new([vec![unknown()], vec![welcome(&json!({"protocolVersion": "2099-01-01"}))]]);
    let expected = "it speaks revision `2099-01-01` of the protocol, which is unknown here";
    assert_eq!(meet(&mut server, &log()).await.unwrap_err(), expected);
    let mut server = Scripted { ends: true, ..Scripted::default() };
    assert_eq!(meet(&mut server, &log()).await.unwrap_err(), "it ended the connection before it answered");
}
