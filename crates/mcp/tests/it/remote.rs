//! Servers on the network: streamable HTTP, the older events, and those who send us elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use ollm_mcp::{Authorize, BlockingClient, Endpoint, PortFuture, Ports, ReadyServer, ServerMemory, ServerState};
use serde_json::{Value, json};

use crate::support::{assert_echoes, call, eventually, fleet, names, ready, settings, state, text, with};
use crate::web::{Body, Request, Response, Web};

fn http(url: &str) -> ReadyServer {
    ready("fake", Endpoint::Http { url: url.to_owned(), headers: vec![("X-Team".into(), "blue".into())] })
}

/// What a server of the handshake era says.
fn result(message: &Value) -> Value {
    let tool = json!({"name": "echo", "inputSchema": {"type": "object"}});
    match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool]}),
        "tools/call" => json!({"content": [], "structuredContent": message["params"]["arguments"]}),
        _ => json!({}),
    }
}

fn answer(message: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result(message)})
}

/// A server of the handshake era with sessions.
fn streamable(request: &Request) -> Response {
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/mcp") => {}
        ("DELETE", _) => return Response::empty(204),
        _ => return Response::empty(405),
    }
    let message = request.json();
    if message["method"] == "server/discover" {
        return Response { body: Body::Whole(b"Bad Request: no session".to_vec()), ..Response::empty(400) };
    }
    if message["method"] != "initialize" && request.header("mcp-session-id") != "s1" {
        return Response::empty(400);
    }
    if message.get("id").is_none() {
        return Response::empty(202);
    }
    Response::json(&answer(&message)).with("mcp-session-id", "s1")
}

#[test]
fn a_server_over_http_is_used_and_its_session_given_back() {
    let web = Web::start(streamable);
    let fleet = with(http(&format!("{}/mcp", web.url)));
    assert_echoes(&fleet);
    assert_eq!((state(&fleet), names(&fleet)), (ServerState::Ready, vec!["echo".to_owned()]));
    let memory = fleet.server("fake").unwrap().memory();
    assert_eq!(memory.revision.as_deref(), Some("2025-11-25"));
    fleet.close();
    let seen = web.seen();
    assert!(seen.iter().all(|request| request.header("x-team") == "blue"));
    assert!(seen.iter().any(|request| request.method == "DELETE" && request.header("mcp-session-id") == "s1"));
}

#[test]
fn answers_may_come_as_events() {
    let web = Web::start(|request| {
        let response = streamable(request);
        let Body::Whole(body) = &response.body else { unreachable!() };
        if response.status != 200 {
            return response;
        }
        let event = format!("event: message\ndata: {}\n\n", String::from_utf8_lossy(body));
        let response = Response { body: Body::Whole(event.into_bytes()), headers: Vec::new(), ..response };
        response.with("content-type", "text/event-stream").with("mcp-session-id", "s1")
    });
    assert_echoes(&with(http(&format!("{}/mcp", web.url))));
}

#[test]
fn a_large_answer_may_come_as_an_event() {
    const LARGE: usize = 17 << 20;
    let web = Web::start(|request| {
        let response = streamable(request);
        if !asks(request, "tools/call") {
            return response;
        }
        let told = json!({"content": [{"type": "text", "text": "x".repeat(LARGE)}]});
        let event = format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": told}));
        Response { body: Body::Whole(event.into_bytes()), ..Response::empty(200) }
            .with("content-type", "text/event-stream")
    });
    let fleet = with(http(&format!("{}/mcp", web.url)));
    assert_eq!(text(&call(&fleet, "echo", json!({})).unwrap()).len(), LARGE);
}

/// An answer, and a word for the log behind it, as one.
fn crowd(message: &Value) -> String {
    let params = json!({"level": "info", "data": format!("word about {}", message["method"])});
    json!([answer(message), {"jsonrpc": "2.0", "method": "notifications/message", "params": params}]).to_string()
}

#[test]
fn messages_may_come_several_as_one_in_every_transport() {
    let as_json = Web::start(|request| match streamable(request) {
        response if response.status == 200 => {
            Response { body: Body::Whole(crowd(&request.json()).into_bytes()), ..response }
        }
        response => response,
    });
    let as_events = Web::start(|request| match streamable(request) {
        response if response.status == 200 => {
            let event = format!("id: 7\ndata: {}\n\n", crowd(&request.json()));
            Response { body: Body::Whole(event.into_bytes()), ..Response::empty(200) }
                .with("content-type", "text/event-stream")
                .with("mcp-session-id", "s1")
        }
        response => response,
    });
    let (older, _) = events_of("/messages?session=1", crowd);
    for url in [format!("{}/mcp", as_json.url), format!("{}/mcp", as_events.url), format!("{}/sse", older.url)] {
        let fleet = with(http(&url));
        assert_echoes(&fleet);
        eventually("the words are heard", || {
            let (lines, _) = fleet.server("fake").unwrap().log(0);
            let word = |method: &str| lines.iter().any(|line| line.contains(&format!("word about \"{method}\"")));
            word("tools/list") && word("tools/call")
        });
    }
}

#[test]
fn a_stateless_server_over_http_is_used_without_a_session() {
    let moody = AtomicBool::new(true);
    let web = Web::start(move |request| {
        if request.method != "POST" {
            return Response::empty(405);
        }
        let message = request.json();
        assert_eq!(request.header("mcp-protocol-version"), "2026-07-28");
        assert_eq!(request.header("mcp-method"), message["method"].as_str().unwrap());
        let method = message["method"].as_str().unwrap();
        if method == "server/discover" && moody.swap(false, Ordering::Relaxed) {
            let data = json!({"supported": ["2099-01-01", "2026-07-28"], "requested": "2026-07-28"});
            let error = json!({"code": -32022, "message": "another one, please", "data": data});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Response { status: 400, ..Response::json(&answer) };
        }
        let result = match method {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }),
            _ => result(&message),
        };
        Response::json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    });
    let fleet = with(http(&web.url));
    assert_echoes(&fleet);
    assert_eq!(fleet.server("fake").unwrap().status().revision.as_deref(), Some("2026-07-28"));
}

#[test]
fn a_redirect_to_another_origin_is_refused_and_told_no_secret() {
    let elsewhere = Web::start(streamable);
    let target = format!("{}/mcp", elsewhere.url);
    for status in [301, 302, 307, 308] {
        let target = target.clone();
        let web = Web::start(move |_| Response::empty(status).with("location", target.clone()));
        let fleet = with(http(&web.url));
        let error = fleet.start("fake").unwrap_err().to_string();
        assert!(error.contains(&format!("it redirects to {}", elsewhere.url)), "{error}");
        assert!(matches!(state(&fleet), ServerState::Failed(_)));
    }
    assert!(elsewhere.seen().is_empty());
}

#[test]
fn a_redirect_within_the_origin_that_leads_nowhere_is_told_as_that() {
    for (status, told) in [(307, "more than 10 times"), (308, "more than 10 times"), (302, "with HTTP 302")] {
        let web = Web::start(move |_| Response::empty(status).with("location", "/again".to_owned()));
        let fleet = with(http(&web.url));
        let error = fleet.start("fake").unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains("not where it was declared to be"), "{error}");
    }
}

#[test]
fn a_redirect_within_the_origin_is_followed() {
    let web = Web::start(|request| match request.path.as_str() {
        "/mcp" => streamable(request),
        _ => Response::empty(307).with("location", "/mcp"),
    });
    assert_echoes(&with(http(&format!("{}/old", web.url))));
}

#[test]
fn a_server_that_wants_to_know_who_we_are_needs_a_login() {
    let challenge = "Bearer resource_metadata=\"http://x/meta\"";
    let web = Web::start(move |_| Response::empty(401).with("www-authenticate", challenge));
    let fleet = with(http(&web.url));
    let error = fleet.start("fake").unwrap_err().to_string();
    assert!(error.contains("it needs a login; log in, or declare"), "{error}");
    assert_eq!((state(&fleet).name(), state(&fleet).word()), ("needs-auth", "error"));
    let asked = web.seen().len();
    call(&fleet, "echo", json!({})).unwrap_err();
    assert_eq!(web.seen().len(), asked, "a call does not ask again");
}

/// Whether a request is a message of this kind.
fn asks(request: &Request, method: &str) -> bool {
    request.method == "POST" && request.json()["method"] == method
}

#[test]
fn a_server_that_declares_no_tools_is_not_asked_for_them() {
    let web = Web::start(|request| {
        if !asks(request, "initialize") {
            return streamable(request);
        }
        let mut answer = answer(&request.json());
        answer["result"]["capabilities"] = json!({});
        Response::json(&answer).with("mcp-session-id", "s1")
    });
    let fleet = with(http(&format!("{}/mcp", web.url)));
    fleet.start("fake").unwrap();
    assert_eq!((state(&fleet), names(&fleet)), (ServerState::Ready, Vec::new()));
    assert!(!web.seen().iter().any(|request| asks(request, "tools/list")));
}

#[test]
fn a_server_that_shows_its_tools_only_after_a_login_needs_one() {
    let web =
        Web::start(|request| if asks(request, "tools/list") { Response::empty(401) } else { streamable(request) });
    let fleet = with(http(&format!("{}/mcp", web.url)));
    let error = fleet.start("fake").unwrap_err().to_string();
    assert!(error.contains("it needs a login; log in, or declare"), "{error}");
    assert!(matches!(state(&fleet), ServerState::NeedsAuth(_)));
}

#[test]
fn a_server_that_doubts_us_later_loses_its_tools_and_needs_a_login() {
    let web =
        Web::start(|request| if asks(request, "tools/call") { Response::empty(401) } else { streamable(request) });
    let fleet = with(http(&format!("{}/mcp", web.url)));
    fleet.start("fake").unwrap();
    let error = call(&fleet, "echo", json!({})).unwrap_err().to_string();
    assert!(error.contains("it needs a login; log in, or declare"), "{error}");
    eventually("its state says so", || matches!(state(&fleet), ServerState::NeedsAuth(_)));
    assert!(names(&fleet).is_empty());
}

#[test]
fn a_session_that_the_server_has_forgotten_is_made_anew() {
    let forgetful = AtomicBool::new(true);
    let web = Web::start(move |request| {
        let forgets = asks(request, "tools/call") && forgetful.swap(false, Ordering::Relaxed);
        if forgets { Response::empty(404) } else { streamable(request) }
    });
    let fleet = with(http(&format!("{}/mcp", web.url)));
    assert_echoes(&fleet);
    assert_eq!(web.seen().iter().filter(|request| asks(request, "initialize")).count(), 2);
}

struct Wallet(AtomicBool);

impl Authorize for Wallet {
    fn authorization<'a>(&'a self, _: &'a str) -> PortFuture<'a, Option<String>> {
        let fresh = self.0.load(Ordering::Relaxed);
        Box::pin(async move { Some(format!("Bearer {}", if fresh { "fresh" } else { "stale" })) })
    }

    fn refused<'a>(&'a self, _: &'a str, challenge: &'a str) -> PortFuture<'a, bool> {
        assert_eq!(challenge, "Bearer");
        Box::pin(async { !self.0.swap(true, Ordering::Relaxed) })
    }
}

#[test]
fn who_we_are_is_told_and_once_more_when_it_was_refused() {
    let web = Web::start(|request| match request.header("authorization") {
        "Bearer fresh" => streamable(request),
        _ => Response::empty(401).with("www-authenticate", "Bearer"),
    });
    let ports = Ports { authorize: Some(Arc::new(Wallet(AtomicBool::new(false)))), ..Ports::default() };
    let fleet = fleet(settings(), ports);
    fleet.add(http(&format!("{}/mcp", web.url)), ServerMemory::default());
    assert_echoes(&fleet);
    let stale = web.seen().iter().filter(|request| request.header("authorization") == "Bearer stale").count();
    assert_eq!(stale, 1);
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let web = Web::start(|request| match request.json()["method"].as_str() {
        Some("tools/call") => {
            let body = Body::Whole(format!("\"{}\"", "x".repeat(3_000_000)).into_bytes());
            Response { body, ..Response::empty(200) }.with("content-type", "application/json")
        }
        _ => streamable(request),
    });
    let mut settings = settings();
    settings.bounds.message = 1_000_000;
    let fleet = fleet(settings, Ports::default());
    fleet.add(http(&format!("{}/mcp", web.url)), ServerMemory::default());
    let error = call(&fleet, "echo", json!({})).unwrap_err().to_string();
    assert!(error.contains("its answer is larger than 1000000 bytes"), "{error}");
    assert_eq!(state(&fleet), ServerState::Ready);
}

#[test]
fn an_answer_of_too_many_values_is_refused_and_nothing_else() {
    let heavy = |message: &Value| {
        let text = answer(message).to_string();
        let list = format!("\"content\":[],\"more\":[{}]", vec!["[]"; 700_000].join(","));
        if message["method"] == "tools/call" && message["params"]["name"] == "heavy" {
            text.replace("\"content\":[]", &list)
        } else {
            text
        }
    };
    let plain = Web::start(move |request| match streamable(request) {
        response if response.status == 200 => {
            Response { body: Body::Whole(heavy(&request.json()).into_bytes()), ..response }
        }
        response => response,
    });
    let (older, _) = events_of("/messages?session=1", heavy);
    for url in [format!("{}/mcp", plain.url), format!("{}/sse", older.url)] {
        let fleet = with(http(&url));
        let error = call(&fleet, "heavy", json!({})).unwrap_err().to_string();
        assert!(error.contains("it holds more than 1000000 values"), "{error}");
        assert_echoes(&fleet);
    }
}

#[test]
fn tools_that_take_too_much_room_are_left_out() {
    let web = Web::start(|request| {
        let tool =
            |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "description": "x".repeat(900)});
        match streamable(request) {
            response if response.status == 200 && asks(request, "tools/list") => {
                let list = json!({"tools": [tool("echo"), tool("add")], "nextCursor": "more"});
                let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": list});
                Response::json(&answer).with("mcp-session-id", "s1")
            }
            response => response,
        }
    });
    let mut settings = settings();
    settings.bounds.list = 1500;
    let fleet = fleet(settings, Ports::default());
    fleet.add(http(&format!("{}/mcp", web.url)), ServerMemory::default());
    assert_echoes(&fleet);
    let status = fleet.server("fake").unwrap().status();
    let told = "its tools take more than 1500 bytes; the rest is left out".to_owned();
    assert_eq!((names(&fleet), status.warnings), (vec!["echo".to_owned()], vec![told]));
}

#[test]
fn an_address_where_nobody_listens_is_told() {
    let fleet = with(http("http://user:s3cret@127.0.0.1:1/mcp?key=s3cret"));
    let error = fleet.start("fake").unwrap_err().to_string();
    assert!(error.contains("(3 tries)") && error.contains("address: http://127.0.0.1:1/mcp"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    let error = with(http("ftp://x/")).start("fake").unwrap_err().to_string();
    assert!(error.contains("its `url` is no http or https address"), "{error}");
    let reserved = Endpoint::Http { url: "http://127.0.0.1:1".into(), headers: vec![("Accept".into(), "x".into())] };
    let error = with(ready("fake", reserved)).start("fake").unwrap_err().to_string();
    assert!(error.contains("the header `Accept` belongs to the protocol"), "{error}");
}

/// A server of the oldest kind: events at `/sse`, requests at an address that it names.
fn events(endpoint: &'static str) -> (Web, Arc<Mutex<Vec<Sender<String>>>>) {
    events_of(endpoint, |message| answer(message).to_string())
}

fn events_of(endpoint: &'static str, says: fn(&Value) -> String) -> (Web, Arc<Mutex<Vec<Sender<String>>>>) {
    let streams: Arc<Mutex<Vec<Sender<String>>>> = Arc::default();
    let kept = Arc::clone(&streams);
    let web = Web::start(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/sse") => {
            let (sender, pieces) = channel();
            sender.send(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n")).unwrap();
            kept.lock().unwrap().push(sender);
            Response { body: Body::Stream(pieces), ..Response::empty(200) }.with("content-type", "text/event-stream")
        }
        ("POST", "/messages?session=1") => {
            let message = request.json();
            if message.get("id").is_some() {
                let event = format!("event: message\ndata: {}\n\n", says(&message));
                kept.lock().unwrap().last().unwrap().send(event).unwrap();
            }
            Response::empty(202)
        }
        _ => Response::empty(404),
    });
    (web, streams)
}

fn older(web: &Web) -> BlockingClient {
    with(ready("fake", Endpoint::Sse { url: format!("{}/sse", web.url), headers: Vec::new() }))
}

#[test]
fn a_server_of_the_oldest_kind_is_used() {
    let (web, _) = events("/messages?session=1");
    let fleet = older(&web);
    assert_echoes(&fleet);
    assert_eq!(state(&fleet), ServerState::Ready);
}

#[test]
fn a_server_that_only_knows_the_oldest_kind_is_found_out() {
    let (web, _) = events("/messages?session=1");
    let fleet = with(http(&format!("{}/sse", web.url)));
    assert_echoes(&fleet);
}

#[test]
fn requests_do_not_follow_events_to_another_origin() {
    let (web, _) = events("http://127.0.0.1:1/messages?session=1");
    let error = older(&web).start("fake").unwrap_err().to_string();
    assert!(error.contains("it redirects to http://127.0.0.1:1"), "{error}");
}

#[test]
fn a_stream_of_events_that_ends_is_taken_up_again() {
    let (web, streams) = events("/messages?session=1");
    let fleet = older(&web);
    assert_echoes(&fleet);
    streams.lock().unwrap().clear();
    eventually("there is a new stream", || !streams.lock().unwrap().is_empty());
    eventually("it is ready again", || state(&fleet) == ServerState::Ready);
    assert_echoes(&fleet);
}

#[test]
fn a_server_on_the_network_that_comes_back_is_found_by_the_next_call() {
    let up = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&up);
    let web = Web::start(
        move |request| {
            if seen.load(Ordering::Relaxed) { streamable(request) } else { Response::empty(503) }
        },
    );
    let mut settings = settings();
    settings.timings.longest_pause = std::time::Duration::ZERO;
    let fleet = fleet(settings, Ports::default());
    fleet.add(http(&format!("{}/mcp", web.url)), ServerMemory::default());
    let error = fleet.start("fake").unwrap_err().to_string();
    assert!(error.contains("(3 tries): it answered HTTP 503"), "{error}");
    up.store(true, Ordering::Relaxed);
    assert_echoes(&fleet);
}
