//! Logging in to servers on the web: a real issuer of tokens, a real browser's part, and what a hostile one tries.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Child;

use serde_json::json;
use testkit::RemoteServer;

use super::control::{await_states, chat, end};
use super::{asked, call, lab_with, server, text_of};
use crate::lab::pty::typed;
use crate::lab::{Lab, Ran, outcome, start};

/// A server that wants to know who we are, and a lab that has it declared.
fn pair(flags: &[&str]) -> (RemoteServer, Lab) {
    let remote = RemoteServer::start(&[&["--http", "--oauth"], flags].concat()).unwrap();
    let lab = lab_with(&json!({"url": remote.url}));
    (remote, lab)
}

/// A server that also writes down how often tokens were asked for.
fn logged(flags: &[&str]) -> (RemoteServer, Lab) {
    let lab = Lab::new();
    let log = lab.root.join("asked");
    let remote =
        RemoteServer::start(&[&["--http", "--oauth", "--log", log.to_str().unwrap()], flags].concat()).unwrap();
    super::declare(&lab, super::USER, &json!({"s": {"url": remote.url}}));
    (remote, lab)
}

/// A login that has shown the page it wants opened, or has ended before.
pub(super) struct Begun {
    pub(super) child: Child,
    pub(super) page: Option<String>,
    said: String,
}

pub(super) fn begin(lab: &Lab) -> Begun {
    until_page(start(lab.ollm(&["mcp", "login", "s", "--no-browser", "--json", "--timeout", "60s"])))
}

fn until_page(mut child: Child) -> Begun {
    let mut stderr = BufReader::with_capacity(1, child.stderr.take().unwrap());
    let mut said = String::new();
    let page = loop {
        let mut line = String::new();
        match stderr.read_line(&mut line).unwrap() {
            0 => break None,
            _ if line.starts_with("http") => break Some(line.trim().to_owned()),
            _ => said.push_str(&line),
        }
    };
    child.stderr = Some(stderr.into_inner());
    Begun { child, page, said }
}

/// What a browser does: asks, and says where it is sent.
pub(crate) fn get(url: &str) -> (u16, Option<String>) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let place =
        lines.take_while(|line| !line.is_empty()).find_map(|line| Some(line.strip_prefix("Location: ")?.to_owned()));
    (status, place)
}

pub(super) fn login(lab: &Lab) -> Ran {
    let begun = begin(lab);
    if let Some(page) = &begun.page {
        let (_, back) = get(page);
        get(&back.unwrap());
    }
    let mut ran = outcome(begun.child);
    ran.stderr.insert_str(0, &begun.said);
    ran
}

pub(super) fn echo(lab: &Lab) -> Ran {
    call(lab, "echo", &json!({"text": "hi"}))
}

fn assert_logged_out(lab: &Lab) {
    let ran = echo(lab);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("`ollm mcp login s` logs in"), "{ran:?}");
}

pub(crate) fn tokens(lab: &Lab) -> String {
    fs::read_to_string(lab.home.join(".ollm/state/mcp-tokens.json")).unwrap_or_default()
}

#[test]
fn a_person_logs_in_the_tools_work_and_logging_out_gives_everything_back() {
    let (_remote, lab) = pair(&[]);
    assert_logged_out(&lab);
    let started = lab.run(&["mcp", "start", "s", "--json"]);
    assert_eq!((started.code, &started.answer()[0]["state"]), (5, &json!("needs-auth")), "{started:?}");

    // What needs a login is remembered as a failure, until it is connected.
    let status = |lab: &Lab| lab.run(&["mcp", "status", "s", "--json"]).answer()[0].clone();
    let before = status(&lab);
    assert!(before["lastFailure"]["message"].as_str().unwrap().contains("ollm mcp login s"), "{before:#}");
    assert_eq!(before["login"], json!(null));

    let ran = login(&lab);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer = ran.answer();
    assert_eq!(
        (&answer["server"], &answer["scopes"], &answer["renewable"]),
        (&json!("s"), &json!(["tools"]), &json!(true))
    );
    let called = echo(&lab);
    assert_eq!(text_of(&called), "hi");
    let after = status(&lab);
    assert_eq!((&after["lastFailure"], &after["login"]["scopes"]), (&json!(null), &json!(["tools"])), "{after:#}");
    assert!(lab.run(&["mcp", "status"]).stderr.contains("server `s`: you are logged in at http://127.0.0.1:"));

    let file = lab.home.join(".ollm/state/mcp-tokens.json");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert!(tokens(&lab).contains("access-secret-"), "it is kept");
    let others = fs::read_dir(lab.home.join(".ollm/state")).unwrap().flatten().filter(|entry| entry.path() != file);
    for entry in others.filter(|entry| entry.path().is_file()) {
        assert!(!fs::read_to_string(entry.path()).unwrap().contains("-secret-"), "{entry:?}");
    }
    assert!(!format!("{ran:?}{called:?}{:?}", lab.run(&["mcp", "logs", "s"])).contains("-secret-"));

    let token = tokens(&lab);
    let out = lab.run(&["mcp", "logout", "s"]);
    assert!(out.code == 0 && out.stderr.contains("logged out at http://127.0.0.1:"), "{out:?}");
    assert_logged_out(&lab);
    lab.write("home/.ollm/state/mcp-tokens.json", token);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(echo(&lab).code, 5, "the issuer was told as well");
    let again = lab.run(&["mcp", "logout", "s"]);
    assert!(again.code == 0, "{again:?}");
    assert!(lab.run(&["mcp", "logout", "s"]).stderr.contains("no login to remove"));
}

#[test]
fn whoever_uninstalls_an_extension_is_asked_about_logins_that_no_other_server_has() {
    for (answer, other, is_kept) in [("n", false, true), ("y", false, false), ("y", true, true)] {
        let remote = RemoteServer::start(&["--http", "--oauth"]).unwrap();
        let lab = Lab::new();
        let servers = json!({"s": {"url": remote.url}});
        let manifest = json!({"name": "guard", "version": "1.0.0", "description": "d", "mcpServers": servers});
        lab.write("home/.ollm/extensions/guard/manifest.json", manifest.to_string());
        let digest = lab.run(&["ext", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
        assert_eq!(lab.run(&["ext", "trust", "guard", "--digest", &digest]).code, 0);
        assert_eq!(login(&lab).code, 0);
        let granted = tokens(&lab);
        let question = format!("the login to server `s`)? [y/N] =>{answer}\\r");
        let steps = [r"[y/N] =>y\r", &question];
        if other {
            super::declare(&lab, super::USER, &json!({"t": {"url": remote.url}}));
        }
        let asked = if other { &steps[..1] } else { &steps };
        let ran = typed(&lab, asked, &["ext", "uninstall", "guard"]);
        assert_eq!((ran.code, tokens(&lab).contains("access-secret-")), (0, is_kept), "{answer} {other}: {ran:?}");
        if !is_kept {
            super::declare(&lab, super::USER, &json!({"s": {"url": remote.url}}));
            lab.write("home/.ollm/state/mcp-tokens.json", granted);
            assert_eq!(echo(&lab).code, 5, "the issuer was told as well");
        }
    }
}

#[test]
fn a_chat_that_runs_is_connected_after_a_login() {
    let (_remote, lab) = pair(&[]);
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let chat = chat(&lab);
    await_states(&lab, &["needs-auth"]);
    assert_eq!(login(&lab).code, 0);
    let ran = lab.run(&["mcp", "restart", "s", "--json"]);
    assert_eq!((ran.code, &ran.answer()[0]["state"]), (0, &json!("ready")), "{ran:?}");
    end(chat);
    lab.assert_nobody_is_left();
}

#[test]
fn what_is_about_to_expire_is_renewed_and_many_at_once_do_not_burn_it() {
    let (_remote, lab) = logged(&["--token-life", "5"]);
    assert_eq!(login(&lab).code, 0);
    let ran: Vec<Ran> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| echo(&lab))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(ran.iter().all(|ran| ran.code == 0), "{ran:?}");
    assert!(asked(&lab).iter().any(|line| line == "token refresh_token"));
}

#[test]
fn a_token_that_is_refused_is_renewed_once() {
    let (_remote, lab) = logged(&["--token-uses", "3"]);
    assert_eq!(login(&lab).code, 0);
    for _ in 0..3 {
        assert_eq!(text_of(&echo(&lab)), "hi");
    }
    assert!(asked(&lab).iter().filter(|line| *line == "token refresh_token").count() >= 2);
}

#[test]
fn what_the_issuer_took_back_is_forgotten_and_a_bad_moment_is_not() {
    let (remote, lab) = pair(&["--token-life", "5"]);
    assert_eq!(login(&lab).code, 0);
    let origin = remote.url.trim_end_matches("mcp").to_owned();
    let kept = tokens(&lab);
    let host = origin.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let refresh = kept.split("refresh-secret-").nth(1).unwrap();
    let number: String = refresh.chars().take_while(char::is_ascii_digit).collect();
    let body = format!("token=refresh-secret-{number}");
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(stream, "POST /revoke HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    assert_logged_out(&lab);
    assert!(!tokens(&lab).contains("-secret-"), "{}", tokens(&lab));

    let (_remote, lab) = pair(&["--token-life", "5", "--oauth-fault", "down"]);
    assert_eq!(login(&lab).code, 0);
    let ran = echo(&lab);
    assert!(ran.code == 5 && ran.stderr.contains("cannot be asked for more"), "{ran:?}");
    assert!(tokens(&lab).contains("-secret-"), "the issuer may be back in a moment");
}

#[test]
fn a_server_that_asks_nobody_needs_no_login() {
    let remote = RemoteServer::start(&["--http"]).unwrap();
    let ran = lab_with(&json!({"url": remote.url})).run(&["mcp", "login", "s", "--timeout", "20s"]);
    assert!(ran.code == 5 && ran.stderr.contains("it needs no login"), "{ran:?}");

    // One that answers a look with a stream without end, as servers may.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            BufReader::with_capacity(1, &stream).read_line(&mut line).unwrap();
            let answer = match line.split(' ').collect::<Vec<_>>()[..] {
                ["GET", "/mcp", ..] => "200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
                ["POST", ..] => {
                    "200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
                }
                _ => "404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            };
            let _ = write!(stream, "HTTP/1.1 {answer}");
            kept.push(stream);
        }
    });
    let ran = lab_with(&json!({"url": url})).run(&["mcp", "login", "s", "--timeout", "20s"]);
    assert!(ran.code == 5 && ran.stderr.contains("it needs no login"), "{ran:?}");
}

#[test]
fn the_time_for_a_login_covers_finding_out_how() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let lab = lab_with(&json!({"url": format!("http://{}/mcp", silent.local_addr().unwrap())}));
    let ran = lab.run(&["mcp", "login", "s", "--timeout", "300ms"]);
    assert!(ran.code == 5 && ran.stderr.contains("it did not say how to log in within 300 ms"), "{ran:?}");
}

#[test]
fn tokens_that_cannot_be_read_are_named_before_anybody_is_led_anywhere() {
    let (_remote, lab) = pair(&[]);
    assert_eq!(login(&lab).code, 0);
    let file = lab.home.join(".ollm/state/mcp-tokens.json");
    let spoil: [fn(&std::path::Path); 2] = [
        |file| fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap(),
        |file| {
            fs::write(file, "{broken").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        },
    ];
    for spoil in spoil {
        spoil(&file);
        let begun = begin(&lab);
        assert_eq!(begun.page, None, "nobody is led anywhere");
        let mut ran = outcome(begun.child);
        ran.stderr.insert_str(0, &begun.said);
        for ran in [ran, echo(&lab), lab.run(&["mcp", "logout", "s"])] {
            assert!(ran.code == 5 && ran.stderr.contains("mcp-tokens.json"), "{ran:?}");
        }
    }
}

#[test]
fn a_declared_header_that_is_refused_is_no_reason_to_log_in() {
    let remote = RemoteServer::start(&["--http", "--oauth"]).unwrap();
    let lab = lab_with(&json!({"url": remote.url, "headers": {"Authorization": "Bearer old-and-wrong"}}));
    for ran in [echo(&lab), lab.run(&["mcp", "start", "s"])] {
        assert!(ran.code == 5 && ran.stderr.contains("the `Authorization` header of its declaration"), "{ran:?}");
        assert!(!ran.stderr.contains("mcp login"), "{ran:?}");
    }
}

#[test]
fn d10_a_hostile_server_leads_nobody_astray() {
    for (fault, text) in [
        ("private", "10.0.0.1"),
        ("plain", "login.example"),
        ("token", "http://login.example is not encrypted"),
        ("issuer", "evil.example"),
        ("iss", "another issuer answered"),
        ("resource", "evil.example"),
        ("no-pkce", "S256"),
        ("unregistered", "oauth.clientId"),
        ("denied", "the issuer says no: access_denied: not today"),
    ] {
        let (_remote, lab) = pair(&["--oauth-fault", fault]);
        let ran = login(&lab);
        assert_eq!(ran.code, 5, "{fault}: {ran:?}");
        assert!(ran.stderr.contains(text), "{fault}: {ran:?}");
        assert!(!tokens(&lab).contains("-secret-"), "{fault}");
        assert!(!ran.stderr.contains("-secret-"), "{fault}: {ran:?}");
    }
}

#[test]
fn s11_nobody_logs_in_where_the_metadata_does_not_promise_s256() {
    for fault in ["no-pkce", "pkce-unsaid", "pkce-empty"] {
        let (_remote, lab) = logged(&["--oauth-fault", fault]);
        let begun = begin(&lab);
        assert_eq!(begun.page, None, "{fault}: nobody is led anywhere");
        let mut ran = outcome(begun.child);
        ran.stderr.insert_str(0, &begun.said);
        assert!(ran.code == 5 && ran.stderr.contains("S256"), "{fault}: {ran:?}");
        assert!(!asked(&lab).iter().any(|line| line.contains("register")), "{fault}: we registered");
    }
}

#[test]
fn s11_without_any_metadata_the_usual_places_are_asked_with_s256() {
    let (_remote, lab) = pair(&["--oauth-fault", "no-metadata"]);
    let begun = begin(&lab);
    let page = begun.page.unwrap_or_else(|| panic!("{}", begun.said));
    assert!(page.contains("code_challenge_method=S256"), "{page}");
    let (_, back) = get(&page);
    get(&back.unwrap());
    let ran = outcome(begun.child);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(text_of(&echo(&lab)), "hi");
}

#[test]
fn a_visitor_with_a_wrong_state_is_turned_away_and_told() {
    let (_remote, lab) = pair(&[]);
    let Begun { child, page, .. } = begin(&lab);
    let (_, back) = get(&page.unwrap());
    let back = back.unwrap();
    let (place, _) = back.split_once('?').unwrap();
    assert_eq!(get(&format!("{place}?code=stolen&state=guessed")).0, 400);
    assert_eq!(get(&format!("{}/favicon.ico", place.trim_end_matches("/callback"))).0, 404);
    assert_eq!(get(&back).0, 200);
    let ran = outcome(child);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("wrong state"), "{ran:?}");
    assert_eq!(text_of(&echo(&lab)), "hi");
}

#[test]
fn a_token_is_never_sent_to_another_origin() {
    let (remote, lab) = pair(&[]);
    assert_eq!(login(&lab).code, 0);
    let port = remote.url.trim_end_matches("/mcp").rsplit(':').next().unwrap().to_owned();
    drop(remote);
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let target = format!("http://{}/mcp", elsewhere.local_addr().unwrap());
    let _turned = RemoteServer::start(&["--http", "--port", &port, "--redirect", &target]).unwrap();
    let ran = lab.run(&["mcp", "tools", "s", "--refresh"]);
    assert!(ran.code == 5 && ran.stderr.contains("redirects to"), "{ran:?}");
    assert!(elsewhere.accept().is_err(), "nobody came");
    super::declare(&lab, super::USER, &json!({"s": {"url": target}}));
    let _ = elsewhere.set_nonblocking(false);
    let caught = std::thread::spawn(move || {
        let (mut stream, _) = elsewhere.accept().unwrap();
        let mut head = [0; 4096];
        let count = stream.read(&mut head).unwrap();
        String::from_utf8_lossy(&head[..count]).into_owned()
    });
    lab.run(&["mcp", "tools", "s", "--refresh"]);
    let head = caught.join().unwrap().to_lowercase();
    assert!(!head.contains("authorization"), "a token belongs to the address it was granted for: {head}");
}

#[test]
fn an_issuer_that_knows_us_already_is_told_our_name() {
    let remote = RemoteServer::start(&["--http", "--oauth", "--oauth-fault", "unregistered"]).unwrap();
    let lab = lab_with(&json!({"url": remote.url, "oauth": {"clientId": "known-client", "scopes": ["tools"]}}));
    let ran = login(&lab);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(text_of(&echo(&lab)), "hi");
}

#[test]
fn only_a_person_logs_in_and_only_where_there_is_somewhere_to() {
    let lab = lab_with(&server(&[]));
    let ran = lab.run(&["mcp", "login", "s"]);
    assert!(ran.code == 64 && ran.stderr.contains("nothing to log in to"), "{ran:?}");
    let (_remote, lab) = pair(&[]);
    let lab = lab.set("OLLM_AGENT", "1");
    let ran = lab.run(&["mcp", "login", "s"]);
    assert!(ran.code == 4 && ran.stderr.contains("an agent may not log in"), "{ran:?}");
    let open = RemoteServer::start(&["--http"]).unwrap();
    let lab = lab_with(&json!({"url": open.url}));
    let ran = lab.run(&["mcp", "login", "s", "--no-browser", "--timeout", "1s"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    let lab = lab_with(&json!({"url": open.url, "headers": {"Authorization": "Bearer x"}}));
    assert_eq!(lab.run(&["mcp", "login", "s"]).code, 3);
}
