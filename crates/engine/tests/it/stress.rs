//! Many dispatches at once: no verdict is lost, none goes to another event.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ollm_engine::Status;
use ollm_protocol::{Event, EventKind, Flow};

use crate::support::{World, command};

const DISPATCHES: usize = 10_000;

/// Refuses, with the session id of the event as the reason.
const ECHO: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    static char text[65536], answer[512];
    static const char key[] = "\"session_id\":\"";
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text - 1 && (got = read(0, text + length, sizeof text - 1 - length)) > 0) length += got;
    char *start = strstr(text, key);
    if (!start) return 3;
    start += sizeof key - 1;
    start[strcspn(start, "\"")] = 0;
    int size = snprintf(answer, sizeof answer, "{\"continue\":false,\"systemMessage\":\"%s\"}", start);
    return write(1, answer, size) == size ? 0 : 4;
}
"#;

/// The same where there is no C compiler.
const ECHO_SH: &str = r#"#!/bin/sh
read -r line
id=${line#*'"session_id":"'}
printf '{"continue":false,"systemMessage":"%s"}' "${id%%'"'*}"
"#;

fn echo(world: &World) -> PathBuf {
    let source = world.file("echo.c", ECHO);
    let program = world.path("echo");
    let compiles = |more: &[&str]| {
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-o"]).arg(&program).arg(&source).args(more);
        compiler.output().is_ok_and(|output| output.status.success())
    };
    if compiles(&["-static"]) || compiles(&[]) { program } else { world.script("echo.sh", ECHO_SH) }
}

#[test]
fn b14_ten_thousand_refusals_at_once_arrive_each_at_its_own_event() {
    let mut world = World::new();
    let program = echo(&world);
    world.add(command("echo", program, &[]));
    let engine = &world.engine;
    let next = AtomicUsize::new(0);

    let refusals: usize = thread::scope(|scope| {
        let count = || {
            let mut refusals = 0;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= DISPATCHES {
                    return refusals;
                }
                let id = format!("event-{number}");
                let session = [("tool_name", "shell".into()), ("session_id", id.clone().into())];
                let outcome = engine.dispatch(&Event::unchecked(EventKind::BeforeTool, session));
                assert_eq!(outcome.reports[0].status, Status::Blocked, "{outcome:?}");
                assert_eq!((outcome.verdict.flow, outcome.verdict.reasons), (Flow::Block, vec![id]));
                refusals += 1;
            }
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(count)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(refusals, DISPATCHES);
}
