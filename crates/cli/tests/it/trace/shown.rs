//! `ollm trace`: what people and programs are shown.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use regex_lite::Regex;
use serde_json::{Value, json};

use super::{GO_ON, REFUSE, id};
use crate::lab::{Lab, Ran, shell_event};

/// A lab with some history: a refused tool, one that went on, and the start of a session.
pub(super) fn furnished() -> Lab {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    lab.user_hook("before_tool", "log", "exit 3", r#", "matcher": "read_*""#);
    lab.user_hook("before_tool", "off", "", r#", "enabled": false"#);
    lab.event(shell_event("ls"));
    lab.user("guard.sh", GO_ON);
    lab.event(json!({"event": "before_tool", "data": {"tool_name": "read_file", "session_id": "s1"}}).to_string());
    lab.run(&["hook", "run", "session_start"]);
    lab
}

/// A screen without what differs from run to run.
pub(super) fn screen(lab: &Lab, ran: &Ran) -> String {
    let rules = [
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
        (r"\d{4}-\d\d-\d\d, UTC", "DAY, UTC"),
        (r"\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
        (r"\d\d:\d\d:\d\d\.\d{3}", "TIME"),
        (r" *\d+(\.\d+)? ms", " … ms"),
        (r" +[▇▏]+", " BAR"),
        (r" +\d+\.\d +", "  …  "),
        (r#""(startMs|durationMs)":[0-9.]+"#, r#""$1":0"#),
        (r"MS +RAN", "MS  RAN"),
        (r"ollm \d+\.\d+\.\d+", "ollm VERSION"),
        (r#""binary":"[^"]+""#, r#""binary":"VERSION""#),
    ];
    rules.iter().fold(lab.screen(ran), |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

#[test]
fn a_trace_of_any_length_is_counted_within_bounds() {
    let lab = Lab::new().set("OLLM_TRACE_MAX_SIZE", "64MiB");
    let record =
        json!({"version": 1, "traceId": "x", "time": "2026-01-01T00:00:00.000Z", "event": "error", "verdict": {}});
    lab.write("home/.ollm/trace/trace.jsonl", format!("{record}\n").repeat(100_001));
    let ran = lab.run(&["trace", "stats"]);
    assert!(ran.stdout.starts_with("100000 events from "), "{ran:?}");
    assert!(ran.stderr.contains("only the newest 100000 events are looked at"), "{}", ran.stderr);
}

#[test]
fn a_trace_in_full() {
    let lab = furnished();
    let blocked = lab.traces()[0]["traceId"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(screen(&lab, &lab.run(&["trace", "show", &blocked])));
}

#[test]
fn a_trace_with_a_failed_hook() {
    let lab = furnished();
    let failed = lab.traces()[1]["traceId"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(screen(&lab, &lab.run(&["trace", "show", &failed, "--format", "pretty"])));
}

#[test]
fn a_list_of_traces() {
    let lab = furnished();
    insta::assert_snapshot!(screen(&lab, &lab.run(&["trace", "list", "--long"])));
    let (short, long) = (lab.run(&["trace", "list"]).stdout, lab.run(&["trace", "list", "--long"]).stdout);
    let ids = |text: &str| -> Vec<String> {
        let rows = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3));
        rows.map(str::to_owned).collect()
    };
    for (short, long) in ids(&short).iter().zip(ids(&long)) {
        assert!(short.len() == 12 && long.ends_with(short), "{short} {long}");
        assert_eq!(lab.run(&["trace", "show", short]).code, 0, "the end of an id names its record");
    }
}

#[test]
fn the_last_trace_in_one_line() {
    let lab = furnished();
    insta::assert_snapshot!(screen(&lab, &lab.run(&["trace", "last", "--format", "compact"])));
}

#[test]
fn the_last_trace_as_json() {
    let lab = furnished();
    let last = lab.run(&["trace", "last", "--json"]);
    assert_eq!(last, lab.run(&["trace", "last", "--format", "json"]));
    assert_eq!(&last.answer(), lab.traces().last().unwrap());
    insta::assert_snapshot!(screen(&lab, &last));
}

#[test]
fn without_a_trace_there_is_nothing_to_show() {
    let lab = Lab::new();
    let last = lab.run(&["trace", "last"]);
    assert_eq!((last.code, last.stdout.as_str()), (1, ""));
    assert!(last.stderr.contains("there is no trace yet"), "{last:?}");
    let all = lab.run(&["trace", "list", "--json"]);
    assert_eq!((all.code, all.stdout.as_str()), (0, "[]\n"));
}

#[test]
fn a_trace_of_which_nothing_can_be_read_is_not_called_missing() {
    let lab = Lab::new();
    let folder = lab.home.join(".ollm/trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("trace.jsonl"), "{\"version\":99}\n").unwrap();
    let told = "ollm: one line of the trace is left out: it comes from a newer ollm\n\
                ollm: nothing else is in the trace\n";
    for arguments in [&["trace"][..], &["trace", "last"]] {
        let ran = lab.run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, told));
    }
}

/// The events that `trace list` shows, in its order.
fn listed(lab: &Lab, arguments: &[&str]) -> Vec<String> {
    let ran = lab.run(&[&["trace", "list", "--json"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = ran.answer().as_array().unwrap().clone();
    events.iter().map(|record| format!("{}/{}", record["event"].as_str().unwrap(), record["subject"])).collect()
}

#[test]
fn a_list_can_be_narrowed_down() {
    let lab = furnished();
    let (shell, read, start) = ("before_tool/\"shell\"", "before_tool/\"read_file\"", "session_start/null");
    assert_eq!(listed(&lab, &[]), [shell, read, start]);
    assert_eq!(listed(&lab, &["-n", "2"]), [read, start]);
    assert_eq!(listed(&lab, &["-n", "0"]), Vec::<String>::new());
    assert_eq!(listed(&lab, &["--blocked"]), [shell]);
    assert_eq!(listed(&lab, &["--event", "PreToolUse"]), [shell, read]);
    assert_eq!(listed(&lab, &["--event", "session_start", "-n", "1"]), [start]);
    assert_eq!(listed(&lab, &["--hook", "log"]), [read], "by name");
    assert_eq!(listed(&lab, &["--hook", "user:off.json:before_tool:off"]), [shell, read], "skipped ones too");
    assert_eq!(listed(&lab, &["--hook", "nobody"]), Vec::<String>::new());
    assert_eq!(listed(&lab, &["--since", "1h"]), [shell, read, start]);
    let old = json!({"version": 1, "traceId": "old", "time": "2001-01-01T00:00:00.000Z", "event": "error"});
    lab.write("home/.ollm/trace/trace.jsonl.1", old.to_string());
    assert_eq!(listed(&lab, &["--event", "error"]), ["error/null"], "older files are read as well");
    assert_eq!(listed(&lab, &["--event", "error", "--since", "2h"]), Vec::<String>::new());
}

#[test]
fn an_event_of_ones_own_is_found_by_its_name() {
    let lab = Lab::new();
    for name in ["deploy", "other"] {
        lab.run(&["hook", "run", "custom", "--data", &json!({"eventName": name}).to_string()]);
    }
    assert_eq!(listed(&lab, &["--event", "custom:deploy"]), ["custom/\"deploy\""]);
    assert_eq!(listed(&lab, &["--event", "custom"]).len(), 2);
}

#[test]
fn bad_filters_are_refused_with_the_way_out() {
    let lab = furnished();
    let unknown = lab.run(&["trace", "list", "--event", "befor_tool"]);
    assert!(unknown.code == 3 && unknown.stderr.contains("did you mean `before_tool`?"), "{unknown:?}");
    for (arguments, hint) in
        [(["--since", "yesterday"], "10m"), (["--format", "xml"], "compact"), (["-n", "many"], "many")]
    {
        let ran = lab.run(&[&["trace", "list"], &arguments[..]].concat());
        assert!(ran.code == 64 && ran.stderr.contains(hint), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_list_can_begin_and_end_at_a_time() {
    let lab = furnished();
    let time = lab.run(&["trace", "last", "--json"]).answer()["time"].as_str().unwrap().to_owned();
    let count = |option: &str, time: &str| listed(&lab, &[option, time]).len();
    let all = listed(&lab, &[]).len();
    assert_eq!((count("--until", &time), count("--since", time.get(..10).unwrap())), (all, all));
    assert!((1..all).contains(&count("--since", &time)), "{time}");
    assert_eq!((count("--until", "2020-01-02"), count("--since", "2020-01-02T15:04:05+01:00")), (0, all));
}

#[test]
fn a_trace_is_found_by_any_part_of_its_id_that_no_other_has() {
    let lab = furnished();
    let ids: Vec<String> = lab.traces().iter().map(|record| record["traceId"].as_str().unwrap().to_owned()).collect();
    for id in &ids {
        let shown = |part: &str| lab.run(&["trace", "show", part, "--json"]).answer()["traceId"].clone();
        assert_eq!(shown(id), id.as_str());
        assert_eq!(shown(&id[..id.len() - 1]), id.as_str());
        assert_eq!(shown(&id[24..]), id.as_str());
    }
    let many = lab.run(&["trace", "show", &ids[0][..4]]);
    assert!(many.code == 64 && many.stderr.contains(&ids[2]), "{many:?}");
    for nobody in ["ffffffff", "", "../.."] {
        let none = lab.run(&["trace", "show", nobody]);
        assert!(none.code == 64 && none.stderr.contains("trace list"), "{none:?}");
    }
}

#[test]
fn lines_that_are_no_records_are_left_out_and_counted() {
    let lab = furnished();
    let mut file = OpenOptions::new().append(true).open(lab.trace_file()).unwrap();
    file.write_all(b"{\"version\":1,\"traceId\":\"half\n\xff\xfe\n[]\n{\"version\":2,\"traceId\":\"new\"}\n").unwrap();
    // A full disk takes as much of a line as its last block holds.
    let size = fs::metadata(lab.trace_file()).unwrap().len();
    file.write_all(&fs::read(lab.trace_file()).unwrap()[..usize::try_from(512 - size % 512).unwrap()]).unwrap();
    let ran = lab.run(&["trace", "list", "--json"]);
    assert_eq!(ran.answer().as_array().unwrap().len(), 3);
    let told = "ollm: 4 lines of the trace are left out: each is damaged\n\
                ollm: one line of the trace is left out: it comes from a newer ollm\n";
    assert_eq!(ran.stderr, told);
    let next = lab.run(&["hook", "run", "session_end"]);
    assert_eq!(lab.run(&["trace", "last", "--json"]).answer()["traceId"], id(&next), "the torn line spoils nothing");
}

#[test]
fn a_record_behind_a_torn_line_is_found() {
    let lab = furnished();
    let mut file = OpenOptions::new().append(true).open(lab.trace_file()).unwrap();
    file.write_all(b"{\"version\":1,\"traceId\":\"torn in the middle of \xc3").unwrap();
    let next = lab.run(&["hook", "run", "session_end"]);
    let ran = lab.run(&["trace", "last", "--json"]);
    assert_eq!((&ran.answer()["traceId"], ran.stderr.as_str()), (&id(&next).into(), ""));
    assert_eq!(lab.run(&["trace", "list", "--json"]).answer().as_array().unwrap().len(), 4);
}

#[test]
fn c07_what_hides_reorders_or_controls_is_shown_escaped_in_every_form() {
    let lab = Lab::new();
    let evil = "a\u{1b}[2J\u{202e}b\u{9b}31m\u{7}\u{200b}\u{e0041}\r\nollm: all is well\u{2066}";
    lab.user(
        "evil.json",
        json!({"hooks": {"before_tool": [{"id": evil, "name": evil, "command": "sh", "args": ["evil.sh"]}]}})
            .to_string(),
    );
    lab.user("evil.sh", format!("printf '%s' '{evil}' >&2; exit 3"));
    let data = json!({"tool_name": evil, "session_id": evil, "cwd": evil, "args": {(evil): evil}});
    lab.event(json!({"event": "before_tool", "data": data}).to_string());
    for format in ["json", "pretty", "compact"] {
        for command in ["last", "list"] {
            let ran = lab.run(&["trace", command, "--format", format]);
            assert!(ran.code == 0 && ran.stdout.len() > 60, "{ran:?}");
            let hidden =
                |char: char| char.is_control() && char != '\n' || "\u{202e}\u{200b}\u{e0041}\u{2066}".contains(char);
            assert!(!ran.stdout.contains(hidden), "{format}: {:?}", ran.stdout);
            assert!(!ran.stdout.lines().any(|line| line.starts_with("ollm: all is well")), "{}", ran.stdout);
        }
    }
    let value: Value = lab.run(&["trace", "last", "--json"]).answer();
    assert_eq!(value["subject"], evil, "and nothing of it is lost");
}

#[test]
fn a_megabyte_of_data_leaves_a_small_record() {
    let lab = Lab::new();
    let data = json!({"tool_name": "shell", "args": {"command": "x".repeat(1 << 20), "list": vec!["y"; 10_000]}});
    lab.event(json!({"event": "before_tool", "data": data}).to_string());
    let size = fs::metadata(lab.trace_file()).unwrap().len();
    assert!(size < 16 << 10, "{size}");
    let command = lab.traces()[0]["data"]["args"]["command"].as_str().unwrap().to_owned();
    assert!(command.ends_with("… [cut, 1048576 bytes in all]"), "{command}");
}

#[test]
fn s07_what_is_off_is_in_the_record_also_where_nothing_is_told() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks:\n  enabled: false\n  guards: [self-protection]\n");
    let event = r#"{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    let ran = lab.event_from("agent", event);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let off = lab.run(&["trace", "last", "--json"]).answer()["off"].as_str().unwrap().to_owned();
    assert!(off.starts_with("hooks are off, except for the built-in guards: hooks.enabled is false"), "{off}");
    assert!(off.contains("guard `destructive-commands` is off: hooks.guards does not name it"), "{off}");
    let shown = lab.run(&["trace", "last"]).stdout;
    assert!(shown.lines().any(|line| line.trim_start().starts_with("off ") && line.ends_with(&off)), "{shown}");
    lab.write("home/.ollm/config.yaml", "");
    lab.event_from("agent", event);
    assert_eq!(lab.run(&["trace", "last", "--json"]).answer().get("off"), None);
}

#[test]
fn the_tests_of_a_connection_are_no_session() {
    let lab = Lab::with_hook("before_tool", "guard", GO_ON);
    let event = |session: &str| {
        let data = json!({"tool_name": "shell", "session_id": session, "args": {"command": "ls"}});
        lab.event(json!({"event": "before_tool", "data": data}).to_string());
    };
    event("ollm-test-0");
    let none = lab.run(&["trace"]);
    assert_eq!((none.code, none.stderr.contains("only tests of connections")), (1, true), "{none:?}");
    event("mine");
    event("ollm-test-1");
    assert!(lab.run(&["trace"]).stdout.starts_with("session mine,"));
    assert!(lab.run(&["trace", "--session", "ollm-test-1"]).stdout.starts_with("session ollm-test-1,"));
}

#[test]
fn why_a_hook_does_not_run_is_told_once_in_a_session() {
    let lab = Lab::with_hook("before_tool", "guard", GO_ON);
    lab.user_hook("before_tool", "off", GO_ON, r#", "enabled": false"#);
    lab.event(shell_event("ls"));
    lab.event(shell_event("ls"));
    let shown = lab.run(&["trace"]).stdout;
    assert_eq!(
        (shown.matches("`enabled` is false").count(), shown.matches("not run, as before: off (disabled)").count()),
        (1, 1),
        "{shown}"
    );
}
