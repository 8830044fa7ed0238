//! A clock that jumps: every event leaves its record, and a reader sees all of them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::GO_ON;
use crate::lab::{Lab, finish};

/// The time of day is so many seconds off, or every other time it is asked for so many seconds more and less.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static __typeof__(clock_gettime) *real;
    static long calls;
    if (!real) real = (__typeof__(clock_gettime) *) dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, time);
    const char *offset = getenv("CLOCK_OFFSET"), *swing = getenv("CLOCK_SWING");
    if (clock == CLOCK_REALTIME && offset) time->tv_sec += atol(offset);
    if (clock == CLOCK_REALTIME && swing) time->tv_sec += __sync_add_and_fetch(&calls, 1) % 2 ? atol(swing) : -atol(swing);
    return done;
}
"#;

const YEARS: i64 = 10 * 365 * 86_400;
const OFFSETS: [i64; 6] = [0, YEARS, -YEARS, 86_400, -7200, 0];

struct Clock {
    lab: Lab,
    library: String,
}

impl Clock {
    fn new(lab: Lab) -> Clock {
        let library = lab.preloaded("clock", CLOCK);
        Clock { lab, library }
    }

    /// An event under a clock of its own; its number is its session's turn.
    fn event(&self, number: usize, variable: &str, seconds: i64) {
        let mut command = self.lab.ollm(&["hook", "run"]);
        command.env("LD_PRELOAD", &self.library).env(variable, seconds.to_string());
        let data = json!({"session_id": "one", "tool_name": "shell", "args": {"command": format!("echo {number}")}});
        let ran = finish(command, json!({"event": "before_tool", "data": data}).to_string().as_bytes());
        assert_eq!((ran.code, ran.hook("guard")["status"].as_str()), (0, Some("ok")), "{ran:?}");
    }
}

/// The numbers of the events, in the order in which records tell them.
fn numbers(records: &Value) -> Vec<String> {
    let of = |record: &Value| record["data"]["args"]["command"].as_str().unwrap().replace("echo ", "");
    records.as_array().unwrap().iter().map(of).collect()
}

fn all(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn records_of_a_clock_that_jumps_are_all_shown_in_the_order_of_their_events() {
    let clock = Clock::new(Lab::with_hook("before_tool", "guard", GO_ON));
    for (number, seconds) in OFFSETS.iter().enumerate() {
        clock.event(number, "CLOCK_OFFSET", *seconds);
    }
    let lab = &clock.lab;
    let answer = |arguments: &[&str]| lab.run(&[&["trace"], arguments].concat()).answer();
    let listed = answer(&["list", "--json"]);
    assert_eq!(numbers(&listed), all(OFFSETS.len()));
    assert_ne!(listed[1]["time"].as_str().unwrap().get(..4), listed[2]["time"].as_str().unwrap().get(..4));
    assert_eq!(numbers(&answer(&["--json"])), all(OFFSETS.len()));
    assert_eq!(numbers(&answer(&["export", "--format", "json"])), all(OFFSETS.len()));
    assert_eq!(numbers(&Value::from(vec![answer(&["last", "--json"])])), ["5"]);
    // A question about a span of time gets the records with such a time, in any place.
    assert_eq!(numbers(&answer(&["list", "--since", "1h", "--json"])), ["0", "1", "3", "5"]);
    assert_eq!(numbers(&answer(&["list", "--until", "1h", "--json"])), ["2", "4"]);
    let stats = answer(&["stats", "--json"]);
    assert_eq!((&stats["events"], &stats["from"], &stats["to"]), (&json!(6), &listed[2]["time"], &listed[1]["time"]));
    let chrome = answer(&["export", "--format", "chrome"]);
    let slices = chrome["traceEvents"].as_array().unwrap().iter().filter(|slice| slice["cat"] == "event");
    assert_eq!(slices.count(), OFFSETS.len());
    let page = lab.run(&["trace", "export", "--format", "html"]).stdout;
    assert_eq!(page.matches("<details").count(), OFFSETS.len());
    assert!(!page.contains("NaN") && !page.contains("x=\"-"), "{page}");
}

#[test]
fn a_clock_that_jumps_in_the_middle_of_an_event_makes_it_neither_long_nor_negative() {
    let clock = Clock::new(Lab::with_hook("before_tool", "guard", GO_ON));
    for number in 0..4 {
        clock.event(number, "CLOCK_SWING", YEARS);
    }
    let records = clock.lab.traces();
    assert_eq!(numbers(&Value::from(records.clone())), all(4));
    for record in records {
        let times = [&record["durationMs"], &record["hooks"][0]["startMs"], &record["hooks"][0]["durationMs"]];
        assert!(times.iter().all(|time| (0.0..600_000.0).contains(&time.as_f64().unwrap())), "{record:#}");
    }
}

/// A lab whose trace is rotated every few events.
fn rotating(files: &str) -> Clock {
    let lab = Lab::with_hook("before_tool", "guard", GO_ON);
    Clock::new(lab.set("OLLM_TRACE_MAX_SIZE", "4096").set("OLLM_TRACE_MAX_FILES", files))
}

#[test]
fn the_newest_records_are_kept_whatever_their_clock_says() {
    const COUNT: usize = 18;
    let clock = rotating("2");
    for (number, seconds) in OFFSETS.iter().cycle().take(COUNT).enumerate() {
        clock.event(number, "CLOCK_OFFSET", *seconds);
    }
    let kept = numbers(&clock.lab.run(&["trace", "list", "-n", "1000", "--json"]).answer());
    assert!((2..COUNT).contains(&kept.len()), "{kept:?}");
    assert_eq!(kept, all(COUNT)[COUNT - kept.len()..]);
}

#[test]
fn a_trace_is_followed_across_rotations_whatever_the_clock_says() {
    const COUNT: usize = 18;
    // Enough files that none is removed before it was read.
    let clock = rotating("100");
    clock.event(0, "CLOCK_OFFSET", 0);
    let mut following = clock.lab.ollm(&["trace", "follow", "--json"]);
    following.env("LD_PRELOAD", &clock.library).env("CLOCK_SWING", YEARS.to_string());
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut heard = Vec::new();
    // It hears only what comes after it listens, and it does not tell when that begins.
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while let Some(Ok(line)) = lines.next() {
            let _ = sender.send(serde_json::from_str::<Value>(&line).unwrap());
        }
    });
    let mut number = 1;
    while heard.is_empty() {
        clock.event(number, "CLOCK_OFFSET", 0);
        number += 1;
        heard.extend(receiver.try_iter());
    }
    for (at, seconds) in OFFSETS.iter().cycle().take(COUNT).enumerate() {
        clock.event(number + at, "CLOCK_OFFSET", *seconds);
    }
    let last = (number + COUNT - 1).to_string();
    while numbers(&Value::from(heard.clone())).last() != Some(&last) {
        heard.push(receiver.recv().unwrap());
    }
    following.kill().unwrap();
    following.wait().unwrap();
    reader.join().unwrap();
    let heard = numbers(&Value::from(heard));
    let first: usize = heard[0].parse().unwrap();
    assert_eq!(heard, all(number + COUNT)[first..], "nothing is lost, told twice or out of order");
    assert!(clock.lab.home.join(".ollm/trace/trace.jsonl.2").exists(), "it was rotated");
}
