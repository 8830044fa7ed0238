//! Servers that misbehave: bounded, told truthfully, and without effect on others.

use std::time::{Duration, Instant};

use ollm_mcp::{Bounds, CallErrorKind, Endpoint, Ports, ReadyServer, ServerMemory, ServerState, Settings};
use serde_json::json;

use crate::support::{
    PATIENCE, assert_echoes, call, eventually, fleet, names, program, runs, scripted, settings, started, state, text,
    with,
};

fn failure(ready: ReadyServer) -> String {
    let fleet = with(ready);
    fleet.start("fake").unwrap_err();
    assert!(names(&fleet).is_empty());
    match state(&fleet) {
        ServerState::Failed(text) => text,
        other => panic!("{other:?}"),
    }
}

fn impatient(ready: ReadyServer) -> ReadyServer {
    ReadyServer { connect_timeout: Duration::from_millis(300), ..ready }
}

#[test]
fn a_program_that_does_not_exist_is_named_at_once() {
    let text = failure(program("/does/not/exist", &["--token", "s3cret-s3cret"]));
    let command = "command: /does/not/exist --token '[redacted]'";
    assert_eq!(text, format!("it did not start: `/does/not/exist` does not exist; {command}"));
}

#[test]
fn a_program_that_exits_at_once_is_tried_three_times_and_its_last_words_told() {
    let mut ready = scripted("exit");
    if let Endpoint::Stdio { env, .. } = &mut ready.endpoint {
        env.push(("API_KEY".into(), "s3cret-s3cret".into()));
    }
    let text = failure(ready);
    assert!(
        text.starts_with("it did not start (3 tries): it ended the connection before it answered; command: "),
        "{text}"
    );
    assert!(text.contains("server.py exit; it exited with code 3; its last words:\ncannot find my keys"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time() {
    let text = failure(impatient(scripted("mute")));
    assert!(text.starts_with("it did not start (3 tries): it did not answer within 300 ms; command: "), "{text}");
}

#[test]
fn a_server_that_speaks_an_unknown_revision_is_not_connected_to() {
    let text = failure(scripted("future"));
    assert!(text.contains("it speaks revision `2099-01-01` of the protocol"), "{text}");
}

#[test]
fn what_a_server_says_before_it_speaks_the_protocol_is_put_up_with() {
    assert_echoes(&started("banner"));
    assert_echoes(&started("loud"));
}

#[test]
fn a_flood_on_standard_output_is_cut_off() {
    for mode in ["rubbish", "endless"] {
        let mut settings = settings();
        settings.bounds = Bounds { message: 64 * 1024, ..settings.bounds };
        let fleet = fleet(settings, Ports::default());
        fleet.add(scripted(mode), ServerMemory::default());
        let error = fleet.start("fake").unwrap_err().to_string();
        assert!(error.contains("it wrote far too much that is no message"), "{error}");
    }
}

#[test]
fn what_stands_on_a_line_that_never_ends_is_told() {
    let mut settings = settings();
    settings.timings.tries = 1;
    let fleet = fleet(settings, Ports::default());
    // It has heard us before it ends, so that its end comes behind what it says.
    fleet.add(program("/bin/sh", &["-c", "read line; printf 'Password: '"]), ServerMemory::default());
    let error = fleet.start("fake").unwrap_err().to_string();
    assert!(error.contains("its last words:\nstdout: Password:"), "{error}");
}

#[test]
fn an_answer_that_is_too_large_fails_its_call_only() {
    let mut settings = settings();
    settings.bounds.message = 100_000;
    let fleet = fleet(settings, Ports::default());
    fleet.add(scripted("normal"), ServerMemory::default());
    let error = call(&fleet, "huge", json!({"size": 150_000})).unwrap_err();
    assert!(error.to_string().contains("it is longer than 100000 bytes"), "{error}");
    assert_echoes(&fleet);
    assert_eq!(state(&fleet), ServerState::Ready);
}

#[test]
fn a_program_that_leaves_its_work_to_a_child_and_exits_has_failed() {
    let fleet = with(scripted("daemon"));
    // Its child may answer before the exit is seen; that does not help it for long.
    let _ = fleet.start("fake");
    eventually("it is seen to be gone", || matches!(state(&fleet), ServerState::Failed(_) | ServerState::Crashed(_)));
    assert!(names(&fleet).is_empty());
    let text = state(&fleet).problem().unwrap().to_owned();
    assert!(text.contains("it exited with code 0"), "{text}");
}

#[test]
fn ten_thousand_tools_are_cut_with_a_warning() {
    let fleet = started("many");
    let status = fleet.server("fake").unwrap().status();
    assert_eq!((status.state, status.tools), (ServerState::Ready, 2048));
    assert_eq!(status.warnings, ["it lists more than 2048 tools; the rest is left out"]);
    let error = call(&fleet, "tool1", json!({})).unwrap();
    assert!(error.is_null() || error.is_object());
}

#[test]
fn pages_are_followed_but_not_in_circles() {
    assert_eq!(names(&started("pages")), ["page0", "page1", "page2"]);
    let fleet = started("circle");
    assert_eq!(names(&fleet), ["again", "again"]);
    let warnings = fleet.server("fake").unwrap().status().warnings;
    assert_eq!(warnings, ["its pages of tools go round in circles; the rest is left out"]);
}

#[test]
fn a_list_that_goes_wrong_later_keeps_what_came_before() {
    for (mode, warning) in [
        ("torn", "page 2 of its tools cannot be read; the rest is left out"),
        ("wordy", "its word for the next page of tools is over 65536 bytes; the rest is left out"),
        ("unending", "it lists its tools on more than 100 pages; the rest is left out"),
    ] {
        let fleet = started(mode);
        let status = fleet.server("fake").unwrap().status();
        assert_eq!((names(&fleet), status.state), (vec!["first".to_owned()], ServerState::Ready), "{mode}");
        assert_eq!(status.warnings, [warning]);
    }
}

#[test]
fn a_list_that_never_comes_is_not_waited_for() {
    let bounds = Bounds { listing: Duration::from_millis(300), ..Bounds::default() };
    let fleet = fleet(Settings { bounds, ..settings() }, Ports::default());
    fleet.add(scripted("listless"), ServerMemory::default());
    fleet.start("fake").unwrap();
    let ServerState::Degraded(why) = state(&fleet) else { panic!("{:?}", state(&fleet)) };
    assert!(why.starts_with("its tools cannot be listed: "), "{why}");
    assert!(why.contains("tools/list") && names(&fleet).is_empty(), "{why}");
    assert_echoes(&fleet);
}

#[test]
fn one_bad_tool_does_not_drop_the_list() {
    let fleet = started("odd");
    assert_eq!(names(&fleet), ["good", "better"]);
    assert_eq!(state(&fleet), ServerState::Ready);
}

#[test]
fn a_server_whose_tools_cannot_be_listed_is_degraded() {
    let fleet = started("unlisted");
    let why = "its tools cannot be listed: its answer to `tools/list` has no list of tools; its last words:\n\
               info: hello from the log";
    assert_eq!(state(&fleet), ServerState::Degraded(why.to_owned()));
    assert_echoes(&fleet);
}

#[test]
fn a_server_that_dies_in_a_call_loses_its_tools_and_comes_back_with_the_next_call() {
    let fleet = started("normal");
    let error = call(&fleet, "die", json!({})).unwrap_err();
    match &error.kind {
        CallErrorKind::Lost(text) => {
            assert!(text.starts_with("it exited with code 9; its last words:\n"), "{text}");
            assert!(text.contains("dying now"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(state(&fleet), ServerState::Crashed(_)), "{:?}", state(&fleet));
    assert!(names(&fleet).is_empty());
    assert_echoes(&fleet);
    assert_eq!((state(&fleet), names(&fleet).len()), (ServerState::Ready, 13));
}

#[test]
fn a_server_that_may_restart_does_so_until_it_crashes_in_a_loop() {
    let fleet = with(ReadyServer { auto_restart: true, ..scripted("normal") });
    fleet.start("fake").unwrap();
    for _ in 0..2 {
        call(&fleet, "die", json!({})).unwrap_err();
        eventually("it is back", || state(&fleet) == ServerState::Ready);
    }
    call(&fleet, "die", json!({})).unwrap_err();
    let text = match state(&fleet) {
        ServerState::Crashed(text) => text,
        other => panic!("{other:?}"),
    };
    assert!(text.starts_with("it crashed 3 times within 60 s; start it again; "), "{text}");
    let error = call(&fleet, "echo", json!({})).unwrap_err();
    assert!(matches!(&error.kind, CallErrorKind::Unavailable(why) if why.starts_with("it crashed 3 times")), "{error}");
    fleet.restart("fake").unwrap();
    assert_echoes(&fleet);
}

#[test]
fn a_server_that_is_killed_is_noticed_without_a_call() {
    let fleet = started("normal");
    let pid = fleet.server("fake").unwrap().status().process.unwrap();
    std::process::Command::new("/bin/kill").args(["-9", &pid.to_string()]).status().unwrap();
    eventually("it is seen to be gone", || matches!(state(&fleet), ServerState::Crashed(_)));
    let text = state(&fleet).problem().unwrap().to_owned();
    assert!(text.starts_with("it was ended by signal 9"), "{text}");
}

#[test]
fn a_server_that_stops_answering_is_degraded_and_then_gone() {
    let mut settings = settings();
    settings.timings.health = Some(Duration::from_millis(50));
    settings.timings.ping = Duration::from_millis(50);
    let fleet = fleet(settings, Ports::default());
    fleet.add(scripted("hung"), ServerMemory::default());
    fleet.start("fake").unwrap();
    eventually("it is degraded, or gone already", || {
        let state = state(&fleet);
        let told = state.problem().is_some_and(|text| text.contains("; its last words:\nI shall say no more"));
        told && matches!(state, ServerState::Degraded(_) | ServerState::Crashed(_))
    });
    eventually("it is gone", || matches!(state(&fleet), ServerState::Crashed(_)));
    let text = state(&fleet).problem().unwrap().to_owned();
    assert!(text.starts_with("it does not answer any more; its last words:\nI shall say no more"), "{text}");
}

#[test]
fn a_server_that_answers_pings_stays_ready() {
    let mut settings = settings();
    settings.timings.health = Some(Duration::from_millis(1));
    let fleet = fleet(settings, Ports::default());
    fleet.add(scripted("normal"), ServerMemory::default());
    fleet.start("fake").unwrap();
    for _ in 0..20 {
        assert_echoes(&fleet);
        assert_eq!(state(&fleet), ServerState::Ready);
    }
}

#[test]
fn a_server_that_ignores_the_end_of_its_input_and_the_polite_signal_is_killed() {
    let mut settings = settings();
    settings.timings.parting = Duration::from_millis(100);
    let fleet = fleet(settings, Ports::default());
    fleet.add(scripted("deaf"), ServerMemory::default());
    fleet.start("fake").unwrap();
    let child = text(&call(&fleet, "child", json!({})).unwrap()).to_owned();
    let pid = fleet.server("fake").unwrap().status().process.unwrap().to_string();
    assert!(runs(&pid) && runs(&child));
    fleet.stop("fake").unwrap();
    assert!(!runs(&pid));
    eventually("its child is gone", || !runs(&child));
    assert_eq!(state(&fleet), ServerState::Stopped);
}

#[test]
fn a_start_can_be_stopped() {
    let fleet = with(scripted("mute"));
    let started = Instant::now();
    fleet.server("fake").unwrap().begin();
    eventually("it is starting", || state(&fleet) == ServerState::Starting(1));
    fleet.stop("fake").unwrap();
    assert_eq!(state(&fleet), ServerState::Stopped);
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_bad_server_does_not_hold_up_a_good_one() {
    let fleet = with(scripted("normal"));
    fleet.add(ReadyServer { name: "mute".into(), ..scripted("mute") }, ServerMemory::default());
    fleet.add(ReadyServer { name: "gone".into(), ..program("/does/not/exist", &[]) }, ServerMemory::default());
    fleet.begin();
    assert_echoes(&fleet);
    let state = |name: &str| fleet.server(name).unwrap().status().state.name();
    assert_eq!((state("fake"), state("mute")), ("ready", "starting"));
    eventually("the one that is not there has failed", || state("gone") == "failed");
}

/// The server of the workshop, which says something before it misbehaves.
fn workshop(name: &str, flags: &[&str]) -> ReadyServer {
    let flags = [&["--stderr", "the last straw"], flags].concat();
    let server = program(testkit::mcp_server().to_str().unwrap(), &flags);
    ReadyServer { name: name.into(), connect_timeout: Duration::from_secs(2), ..server }
}

#[test]
fn whatever_goes_wrong_at_the_start_is_told_with_name_and_last_words_and_hurts_nobody() {
    let mut settings = settings();
    (settings.timings.tries, settings.timings.parting) = (1, Duration::from_millis(50));
    let fleet = fleet(settings, Ports::default());
    fleet.add(workshop("good", &[]), ServerMemory::default());
    fleet.start("good").unwrap();
    for (flags, why) in [
        (&["--exit", "0"][..], "it exited with code 0"),
        (&["--mute"], "it did not answer within 2 s"),
        (&["--garbage"], "it did not answer within 2 s"),
        (&["--mute", "--flood", "stdout"], "stdout: nothing to see here ("),
        (&["--mute", "--long-line", "100000000"], "it did not answer within 2 s"),
        (&["--fork"], "it exited with code 0"),
        (&["--stubborn", "--revision", "1999-01-01"], "`1999-01-01`"),
    ] {
        fleet.add(workshop("bad", flags), ServerMemory::default());
        let error = fleet.start("bad").map_or_else(
            |error| error.to_string(),
            |()| {
                // A child may answer before the exit of its parent is seen.
                let bad = fleet.server("bad").unwrap();
                eventually("it is seen to be gone", || {
                    bad.status().state.problem().is_some_and(|why| why.contains("exited"))
                });
                format!("MCP server `bad`: {}", bad.status().state.problem().unwrap())
            },
        );
        assert!(error.starts_with("MCP server `bad`: it ") && error.contains(why), "{flags:?} {error}");
        assert!(error.contains("its last words:\nthe last straw") && error.len() < 8_192, "{flags:?} {error}");
        let echo = crate::support::tool("echo", json!({"text": "still here"}));
        assert_eq!(text(&fleet.call("good", echo).unwrap().wait().unwrap()), "still here", "{flags:?}");
    }
}

#[test]
fn whatever_goes_wrong_in_a_call_is_told_with_the_name_and_hurts_no_other_call() {
    let fleet = fleet(settings(), Ports::default());
    fleet.add(workshop("good", &[]), ServerMemory::default());
    let neighbour = fleet.call("good", crate::support::tool("slow", json!({"ms": 60_000}))).unwrap();
    let short = Some(Duration::from_millis(50));
    for (flags, tool, args, timeout, why) in [
        (&["--die-in-call"][..], "echo", json!({}), None, "it exited with code 3"),
        (&["--refuse"], "echo", json!({}), None, "no call is answered"),
        (&[], "error", json!({}), None, "something is wrong inside"),
        (&[], "slow", json!({"ms": 60_000}), short, "`slow`"),
        (&[], "big", json!({"bytes": 100_000_000}), None, "longer than 64 MiB"),
    ] {
        fleet.add(workshop("bad", flags), ServerMemory::default());
        let call = ollm_mcp::Call { timeout, ..crate::support::tool(tool, args) };
        let error = fleet.call("bad", call).unwrap().wait().unwrap_err().to_string();
        assert!(error.starts_with("MCP server `bad`: ") && error.contains(why), "{flags:?} {tool} {error}");
        assert!(error.ends_with("; its last words:\nthe last straw"), "{flags:?} {tool} {error}");
        assert!(neighbour.wait_for(Duration::ZERO).is_none());
    }
}
