//! Hooks that post the event, against real servers: good ones, and all kinds of bad ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ollm_engine::{Engine, Environment, Report, Status};
use ollm_net::Network;
use ollm_protocol::hook::action::HttpSpec;
use ollm_protocol::{ActionSpec, Flow, Hook, HookSpec, LimitsSpec, Rules, Source, Timeout};
use ollm_trust::Trust;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::support::{DIALECTS, PATIENCE, World, event, go_on, ran, refuse, sh, skipped, spoken, within};

/// A server on this machine that serves every connection in its own way.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn new(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, serve) = (Arc::clone(&connections), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let serve = Arc::clone(&serve);
                // A client that leaves early is no trouble of the test.
                thread::spawn(move || serve(stream));
            }
        });
        Server { address, connections }
    }

    /// A server that reads the request and then says these bytes.
    fn saying(response: impl Into<Vec<u8>>) -> Server {
        let response = response.into();
        Server::new(move |mut stream| {
            request(&mut stream);
            let _ = stream.write_all(&response);
        })
    }

    fn url(&self) -> String {
        format!("http://{}/hook?a=b", self.address)
    }
}

/// Head and body of a request.
fn request(stream: &mut impl Read) -> (Vec<String>, String) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let length = head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    (head, String::from_utf8(body).unwrap())
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn posts(url: &str) -> HookSpec {
    let action = ActionSpec::Http(HttpSpec { url: url.to_owned(), headers: Vec::new() });
    HookSpec { timeout: Some(Timeout::Exact(PATIENCE)), ..HookSpec::new("http", "before_tool", action) }
}

/// A world whose user lets hooks reach this machine.
fn lab(variables: &[(&str, &str)]) -> World {
    let mut world = World::with(variables);
    change(&mut world, |environment| environment.http_allow = vec!["127.0.0.1".to_owned()]);
    world
}

fn change(world: &mut World, change: impl FnOnce(&mut Environment)) {
    let mut environment = world.engine.environment().clone();
    change(&mut environment);
    world.engine = Engine::new(Trust::new(world.path("approvals.json"), std::time::SystemTime::now), environment);
}

/// A network that trusts the authorities in a file, and no others.
fn trusting(file: &Path) -> Network {
    Network::from_variables(|name| (name == "SSL_CERT_FILE").then(|| file.into()))
}

fn post(server: &Server) -> Report {
    lab(&[]).run(posts(&server.url()), &event())
}

#[test]
fn a_server_that_has_answered_did_not_take_as_long_as_the_slowest_hook_beside_it() {
    let mut world = lab(&[]);
    let answered = world.path("answered");
    let server = Server::new({
        let answered = answered.clone();
        move |mut stream| {
            request(&mut stream);
            stream.write_all(ok("{}").replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
            // The client closes the connection when it has read the answer.
            let _ = stream.read(&mut [0]);
            std::fs::write(&answered, "").unwrap();
        }
    });
    let waits = format!("until [ -e '{}' ]; do sleep 0.01; done", answered.display());
    world.add(HookSpec { parallel: true, ..posts(&server.url()) });
    world.add(HookSpec { parallel: true, ..sh("program", &waits) });
    let outcome = world.engine.dispatch(&event());
    let ends: Vec<_> = outcome.reports.iter().map(|report| report.started + report.duration).collect();
    assert_eq!(ran(&outcome), ["http", "program"]);
    assert!(ends[0] < ends[1], "{:?}", outcome.reports);
}

#[test]
fn the_event_is_posted_in_every_dialect_and_the_answer_is_read_in_it() {
    for dialect in DIALECTS {
        let (tell, told) = mpsc::channel();
        let answer = ok(&refuse(dialect, "not today").to_string());
        let tell = Mutex::new(tell);
        let server = Server::new(move |mut stream| {
            tell.lock().unwrap().send(request(&mut stream)).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let world = lab(&[]);
        let hook = world.hook(spoken(dialect, posts(&server.url())));
        let report = world.engine.run_one(&world.engine.trusted(&hook).unwrap(), &event()).unwrap();
        assert_eq!((report.status, report.verdict.flow), (Status::Blocked, Flow::Block), "{dialect}");
        assert_eq!(report.verdict.reasons, ["not today"]);
        let (head, body) = told.recv().unwrap();
        assert_eq!(head[0], "POST /hook?a=b HTTP/1.1");
        let addressee = ollm_protocol::dialect::Addressee::new("http", "1.0.0");
        assert_eq!(body.into_bytes(), hook.dialect.write_event(&event(), &addressee));
    }
}

#[test]
fn each_status_means_one_thing() {
    let refusal = refuse("ollm", "no").to_string();
    for (response, status, flow, error) in [
        (ok(&go_on("ollm").to_string()), Status::Ok, Flow::NoOpinion, None),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), Status::Ok, Flow::NoOpinion, None),
        (ok(""), Status::Ok, Flow::NoOpinion, None),
        (ok("hello"), Status::Failed, Flow::NoOpinion, Some("malformed")),
        (
            "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Status::Failed,
            Flow::NoOpinion,
            Some("status 500"),
        ),
        (
            "HTTP/1.1 404 Gone\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Status::Failed,
            Flow::NoOpinion,
            Some("status 404"),
        ),
        // A readable refusal counts, with any text around it.
        (
            format!("HTTP/1.1 403 No\r\ncontent-length: {}\r\n\r\n{refusal}", refusal.len()),
            Status::Blocked,
            Flow::Block,
            Some("status 403"),
        ),
        ("nonsense\r\n\r\n".to_owned(), Status::Failed, Flow::NoOpinion, Some("request failed")),
    ] {
        let report = post(&Server::saying(response.clone()));
        assert_eq!((report.status, report.verdict.flow), (status, flow), "{response}: {:?}", report.error);
        match error {
            None => assert_eq!(report.error, None, "{response}"),
            Some(word) => assert!(report.error.as_ref().is_some_and(|text| text.contains(word)), "{:?}", report.error),
        }
    }
}

#[test]
fn a_strict_dialect_takes_silence_for_a_failure_but_not_the_word_for_nothing() {
    let world = lab(&[]);
    let flow = |server: &Server| world.run(spoken("gate", posts(&server.url())), &event()).verdict.flow;
    assert_eq!(flow(&Server::saying(ok(""))), Flow::Block);
    assert_eq!(flow(&Server::saying("HTTP/1.1 204 No Content\r\n\r\n")), Flow::NoOpinion);
}

/// D4
#[test]
fn d04_a_redirect_is_a_failure_and_nobody_goes_there() {
    let elsewhere = Server::saying(ok(&go_on("ollm").to_string()));
    for (status, place) in
        [(301, elsewhere.url()), (307, elsewhere.url()), (308, elsewhere.url()), (302, "file:///etc/passwd".to_owned())]
    {
        let response = format!("HTTP/1.1 {status} There\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
        let report = post(&Server::saying(response));
        let expected = format!("answered with status {status}, which leads to `{place}`; redirects are not followed");
        assert_eq!((report.status, report.error), (Status::Failed, Some(expected)));
    }
    assert_eq!(elsewhere.connections.load(Ordering::Relaxed), 0);
}

/// D4
#[test]
fn d04_addresses_that_are_not_public_are_reached_only_when_they_are_listed() {
    let server = Server::saying(ok(&go_on("ollm").to_string()));
    let port = server.address.port();
    let world = World::new();
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"] {
        for scheme in ["http", "https"] {
            let report = world.run(posts(&format!("{scheme}://{host}:{port}/")), &event());
            assert_eq!(report.status, Status::Failed, "{scheme} {host}");
            let error = report.error.unwrap();
            assert!(error.contains("hooks.http.allow") || error.contains("was not found"), "{host}: {error}");
        }
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 0);
}

/// D4
#[test]
fn d04_a_proxy_opens_no_way_to_addresses_that_are_not_public() {
    let proxy = Server::saying("HTTP/1.1 200 Connection established\r\n\r\n");
    let address = format!("http://{}", proxy.address);
    let mut world = World::new();
    let network = Network::from_variables(|name| (name == "all_proxy").then(|| address.clone().into()));
    change(&mut world, |environment| environment.network = network);
    for host in ["10.0.0.1", "169.254.169.254", "2130706433", "0x7f.1", "[fd00::1]", "box.internal"] {
        for scheme in ["http", "https"] {
            let report = world.run(posts(&format!("{scheme}://{host}/")), &event());
            let error = report.error.unwrap();
            assert!(error.contains("hooks.http.allow") || error.contains("was not found"), "{host}: {error}");
        }
    }
    let plain = world.run(posts("http://hooks.invalid/"), &event());
    assert!(plain.error.unwrap().contains("was not found"), "a public name without TLS");
    assert_eq!(proxy.connections.load(Ordering::Relaxed), 0);
    world.run(posts("https://hooks.invalid/"), &event());
    assert_eq!(proxy.connections.load(Ordering::Relaxed), 1, "a public name over TLS");
}

/// D5
#[test]
fn d05_a_server_that_never_ends_is_left_at_the_deadline() {
    let drip = |line: &'static str| {
        Server::new(move |mut stream| {
            request(&mut stream);
            while stream.write_all(line.as_bytes()).is_ok() {
                thread::park_timeout(Duration::from_millis(20));
            }
        })
    };
    let silent = Server::new(|mut stream| {
        request(&mut stream);
        let _ = stream.read(&mut [0]);
    });
    let deaf = Server::new(|stream| {
        thread::park_timeout(PATIENCE);
        drop(stream);
    });
    let slow_body = Server::new(|mut stream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            thread::park_timeout(Duration::from_millis(20));
        }
    });
    for server in [drip("x"), drip("HTTP/1.1 100 Continue\r\n\r\n"), silent, deaf, slow_body] {
        let spec = within(Duration::from_millis(400), posts(&server.url()));
        let report = lab(&[]).run(spec, &event());
        assert_ne!(report.status, Status::Ok, "{:?}", report.error);
        assert!(report.duration < PATIENCE / 2, "{:?}", report.duration);
    }
}

/// D5
#[test]
fn d05_an_endless_answer_is_cut_off() {
    let endless = Server::new(|mut stream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    let announced =
        Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_owned() + &" ".repeat(1 << 17));
    for server in [endless, announced] {
        let limits = LimitsSpec { output: Some(1 << 16), ..LimitsSpec::default() };
        let report = lab(&[]).run(HookSpec { limits, ..posts(&server.url()) }, &event());
        assert_eq!(report.status, Status::Failed);
        assert_eq!(report.error.as_deref(), Some("wrote more than its limit `output` of 65536 bytes and was stopped"));
    }
}

/// D5
#[test]
fn d05_a_packed_answer_is_not_unpacked() {
    // Ten mebibytes of zeros would come out of a few bytes; none of them do.
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 20\r\n\r\n";
    let bomb: Vec<u8> = head.bytes().chain(*b"\x1f\x8b\x08\0\0\0\0\0\0\x03").chain([0; 10]).collect();
    let report = post(&Server::saying(bomb));
    let expected = "the answer is packed as `gzip`, which was not asked for";
    assert_eq!((report.status, report.error.as_deref()), (Status::Failed, Some(expected)));
}

/// D5
#[test]
fn d05_a_head_that_is_too_large_is_a_failure() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "y".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "a: b\r\n".repeat(1 << 16));
    for response in [huge, many] {
        assert_eq!(post(&Server::saying(response)).status, Status::Failed);
    }
}

#[test]
fn a_server_that_is_not_there_is_a_failure_and_the_policy_applies() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = lab(&[]).run(spoken("gate", posts(&format!("http://{closed}/"))), &event());
    assert_eq!((report.status, report.verdict.flow), (Status::Failed, Flow::Block));
}

/// A server with a certificate of its own, and that certificate.
fn secure(names: &[&str]) -> (Server, String, Receiver<bool>) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let server = Server::new(move |stream| {
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        let (head, _) = request(&mut stream);
        tell.lock().unwrap().send(!head.is_empty()).unwrap();
        let _ = stream.write_all(ok(&go_on("ollm").to_string()).as_bytes());
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    (server, made.cert.pem(), told)
}

/// D5
#[test]
fn d05_a_bad_certificate_is_a_failure_and_nothing_is_sent() {
    let (server, own, told) = secure(&["localhost"]);
    let unknown = lab(&[]).run(posts(&format!("https://127.0.0.1:{}/", server.address.port())), &event());
    assert_eq!(unknown.status, Status::Failed);
    assert!(unknown.error.as_ref().unwrap().contains("certificate"), "{:?}", unknown.error);
    assert!(!told.recv().unwrap(), "the event was sent");

    // Vouched for, but for another name.
    let mut world = lab(&[]);
    let path = world.file("ca.pem", own);
    change(&mut world, |environment| environment.network = trusting(&path));
    let wrong = world.run(posts(&format!("https://127.0.0.1:{}/", server.address.port())), &event());
    assert_eq!(wrong.status, Status::Failed);
    assert!(wrong.error.as_ref().unwrap().contains("certificate"), "{:?}", wrong.error);
    assert!(!told.recv().unwrap(), "the event was sent");
}

#[test]
fn a_certificate_that_is_vouched_for_is_taken() {
    let (server, own, told) = secure(&["127.0.0.1"]);
    let mut world = lab(&[]);
    let path = world.file("ca.pem", own);
    change(&mut world, |environment| environment.network = trusting(&path));
    let report = world.run(posts(&format!("https://127.0.0.1:{}/", server.address.port())), &event());
    assert_eq!((report.status, report.error), (Status::Ok, None));
    assert!(told.recv().unwrap());
}

#[test]
fn headers_carry_passed_variables_which_are_never_shown() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let server = Server::new(move |mut stream| {
        let (head, _) = request(&mut stream);
        tell.lock().unwrap().send(head).unwrap();
        let echo = json!({"continue": true, "systemMessage": "you sent hunter2hunter2"}).to_string();
        stream.write_all(ok(&echo).as_bytes()).unwrap();
    });
    let world = lab(&[("HOOK_AUTH", "hunter2hunter2")]);
    let headers = vec![("Authorization".to_owned(), "Bearer ${HOOK_AUTH}".to_owned())];
    let spec = HookSpec {
        action: ActionSpec::Http(HttpSpec { url: server.url(), headers }),
        pass_env: vec!["HOOK_AUTH".to_owned()],
        ..posts("https://x")
    };
    let report = world.run(spec.clone(), &event());
    assert!(told.recv().unwrap().iter().any(|line| line.to_lowercase() == "authorization: bearer hunter2hunter2"));
    assert!(!format!("{report:?}").contains("hunter2"), "{report:?}");

    let report = lab(&[]).run(spec, &event());
    assert_eq!(report.error.as_deref(), Some("header `Authorization` needs the variable HOOK_AUTH, which is not set"));
}

#[test]
fn a_hook_of_the_project_posts_nothing_before_it_is_approved() {
    let server = Server::saying(ok(&go_on("ollm").to_string()));
    let mut world = lab(&[]);
    let hook = world.add(HookSpec { source: Source::Workspace, ..posts(&server.url()) });
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("http", "untrusted")]);
    assert_eq!(server.connections.load(Ordering::Relaxed), 0);
    world.approve(&hook);
    assert_eq!(world.engine.dispatch(&event()).reports[0].status, Status::Ok);

    // Another address is another hook.
    world.engine.registry.clear();
    let moved = ActionSpec::Http(HttpSpec { url: format!("{}&c=d", server.url()), headers: Vec::new() });
    let moved = Hook::new(HookSpec { action: moved, ..hook.spec.clone() }, &Rules::default()).unwrap();
    world.engine.registry.register(moved).unwrap();
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("http", "modified")]);
}

#[test]
fn a_credential_written_into_a_header_is_never_shown_either() {
    let echo = json!({"continue": true, "systemMessage": "you sent hunter2hunter2"}).to_string();
    let server = Server::saying(ok(&echo));
    let headers = vec![("Authorization".to_owned(), "Bearer hunter2hunter2".to_owned())];
    let spec = HookSpec { action: ActionSpec::Http(HttpSpec { url: server.url(), headers }), ..posts("https://x") };
    let report = lab(&[]).run(spec, &event());
    assert_eq!(report.verdict.system_messages.len(), 1);
    assert!(!report.verdict.system_messages[0].contains("hunter2"), "{:?}", report.verdict.system_messages);
}
