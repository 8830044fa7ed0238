//! No process is left behind, after any end of ours. Roles run in processes of their own, because they end badly.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;

use ollm_mcp::{BlockingClient, Call, ClientContext, Ports, ReadyServer, ServerMemory};
use ollm_process::Children;
use serde_json::json;

use crate::support::{call, eventually, program, runs, scripted, settings, started, text, with};

/// A launcher that starts a helper and then becomes the server, as package runners do.
fn launched() -> ReadyServer {
    let script = "sleep 300 & exec \"$0\" \"$@\"";
    let scripted = scripted("deaf");
    let ollm_mcp::Endpoint::Stdio { program: python, args, .. } = &scripted.endpoint else { unreachable!() };
    let mut words = vec!["-c", script, python.to_str().unwrap()];
    words.extend(args.iter().map(String::as_str));
    program("/bin/sh", &words)
}

/// The processes of a group.
fn group(leader: u32) -> Vec<String> {
    let output = Command::new("ps").args(["-e", "-o", "pid=,pgid="]).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let member = |line: &str| {
        let mut words = line.split_whitespace();
        let (pid, group) = (words.next()?, words.next()?);
        (group == leader.to_string()).then(|| pid.to_owned())
    };
    lines.lines().filter_map(member).collect()
}

#[test]
fn a_dropped_fleet_leaves_nobody() {
    let fleet = with(launched());
    fleet.start("fake").unwrap();
    let child = text(&call(&fleet, "child", json!({})).unwrap()).to_owned();
    let members = group(fleet.server("fake").unwrap().status().process.unwrap());
    assert_eq!(members.len(), 3, "the server, the launcher's helper, and its own child: {members:?}");
    assert!(members.contains(&child));
    drop(fleet);
    for pid in members {
        eventually("nobody is left", || !runs(&pid));
    }
}

#[test]
fn a_replaced_server_leaves_nobody() {
    let fleet = started("deaf");
    let members = group(fleet.server("fake").unwrap().status().process.unwrap());
    assert!(!members.is_empty());
    fleet.add(scripted("normal"), ServerMemory::default());
    for pid in members {
        eventually("nobody is left", || !runs(&pid));
    }
    crate::support::assert_echoes(&fleet);
}

#[test]
fn a_crashed_server_leaves_nobody() {
    let fleet = started("normal");
    let child = text(&call(&fleet, "child", json!({})).unwrap()).to_owned();
    assert!(runs(&child));
    call(&fleet, "die", json!({})).unwrap_err();
    eventually("its child is gone", || !runs(&child));
}

#[test]
fn a_stopped_launcher_leaves_nobody() {
    let mut settings = settings();
    settings.timings.parting = std::time::Duration::from_millis(50);
    let fleet = crate::support::fleet(settings, Ports::default());
    fleet.add(launched(), ServerMemory::default());
    fleet.start("fake").unwrap();
    let members = group(fleet.server("fake").unwrap().status().process.unwrap());
    assert_eq!(members.len(), 2, "{members:?}");
    fleet.close();
    for pid in members {
        eventually("nobody is left", || !runs(&pid));
    }
}

/// This test program again, to play one role in a process of its own.
fn role(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("ROLE", test).stdout(Stdio::piped());
    command
}

/// What a role tells on a line of its own.
fn told(stdout: impl Read, word: &str) -> String {
    let lines = BufReader::new(stdout).lines();
    let told = |line: String| line.strip_prefix(word).map(|rest| rest.trim().to_owned());
    lines.map_while(Result::ok).find_map(told).unwrap()
}

#[test]
fn our_sudden_death_leaves_nobody() {
    let mut victim = role("orphans::victim").spawn().unwrap();
    let mut stdout = victim.stdout.take().unwrap();
    let leader: u32 = told(&mut stdout, "leader ").parse().unwrap();
    let members = group(leader);
    assert_eq!(members.len(), 3, "{members:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    for pid in members {
        eventually("nobody is left", || !runs(&pid));
    }
}

#[test]
#[ignore = "a role that `our_sudden_death_leaves_nobody` starts"]
fn victim() {
    if env::var("ROLE").is_ok_and(|role| role == "orphans::victim") {
        let fleet = with(launched());
        call(&fleet, "child", json!({})).unwrap();
        println!("\nleader {}", fleet.server("fake").unwrap().status().process.unwrap());
        std::thread::park_timeout(crate::support::PATIENCE);
    }
}

#[test]
fn who_left_the_group_is_ended_when_all_is_closed() {
    let output = role("orphans::keeper").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!runs(&told(&*output.stdout, "daemon ")));
}

#[test]
#[ignore = "a role that `who_left_the_group_is_ended_when_all_is_closed` starts"]
fn keeper() {
    if env::var("ROLE").is_ok_and(|role| role == "orphans::keeper") {
        let _setup = ollm_process::ProcessSetup::new();
        let context = ClientContext::new(settings(), Ports::default(), Arc::new(Children::new()));
        let fleet = BlockingClient::new(Arc::new(context)).unwrap();
        fleet.add(scripted("normal"), ServerMemory::default());
        let stray = Call { tool: "stray".into(), ..Call::default() };
        let result = fleet.call("fake", stray).unwrap().wait().unwrap();
        let daemon = text(&result).to_owned();
        assert!(runs(&daemon));
        fleet.close();
        assert!(!runs(&daemon));
        println!("\ndaemon {daemon}");
    }
}

#[test]
fn who_is_stopped_while_starting_is_gone_once_that_is_told() {
    let mark = format!("starting-{}", std::process::id());
    let fleet = crate::support::fleet(settings(), Ports::default());
    for number in 0..200 {
        let mut ready = program(testkit::mcp_server().to_str().unwrap(), &[]);
        if let ollm_mcp::Endpoint::Stdio { env, .. } = &mut ready.endpoint {
            env.push(("MARK".into(), mark.clone()));
        }
        fleet.add(ready, ServerMemory::default());
        fleet.begin();
        // Only to strike at another moment each time.
        std::thread::sleep(some_moment(number) / 100);
        fleet.stop("fake").unwrap();
        assert_eq!(bearers(&mark), Vec::<String>::new(), "round {number}");
    }
}

/// Descendants that have left group, session and parent before the server starts. One keeps its streams.
const ESCAPES: [&str; 3] = [
    "(setsid sh -c '(sleep 300 &); sleep 300' &)",
    "(setsid setsid sh -c 'trap : TERM HUP; sleep 300; sleep 300' >/dev/null 2>&1 </dev/null &)",
    "(setsid sh -c '(setsid sh -c \"while :; do sleep 0.05; done\" &)' >/dev/null 2>&1 </dev/null &)",
];

#[test]
fn a_stopped_server_takes_along_who_left_its_group_and_nobody_else() {
    let mark = |name: &str| format!("{name}-{}", std::process::id());
    let server = testkit::mcp_server().to_str().unwrap();
    let fleet = crate::support::fleet(settings(), Ports::default());
    for (number, name) in ["one", "two"].into_iter().enumerate() {
        fleet
            .add(ReadyServer { name: name.into(), ..marked(&mark(name), 4 * number, server) }, ServerMemory::default());
        fleet.start(name).unwrap();
    }
    eventually("all have escaped", || bearers(&mark("one")).len() >= 4 && bearers(&mark("two")).len() >= 3);
    fleet.stop("one").unwrap();
    eventually("nobody of it is left", || bearers(&mark("one")).is_empty());
    let others = bearers(&mark("two"));
    assert!(others.len() >= 3, "nobody else is harmed: {others:?}");
    fleet.restart("two").unwrap();
    eventually("only new ones are left", || !others.iter().any(|pid| runs(pid)));
    drop(fleet);
    eventually("nobody is left at all", || bearers(&mark("two")).is_empty());
}

/// How programs start servers: by becoming one, as a parent that stays, from the background, or not at all.
const LAUNCHERS: [&str; 4] = [
    "sleep 300 & exec \"$0\" --child",
    "sleep 300 & \"$0\" --stubborn; exit",
    "exec 3<&0; (\"$0\" --stubborn <&3 & sleep 300 & wait) & wait",
    "sleep 300 & echo $! >&2; while read -r line; do :; done",
];

/// A server behind one of the launchers; it and all that belongs to it bear a mark.
fn marked(mark: &str, number: usize, server: &str) -> ReadyServer {
    let (escape, launcher) = (ESCAPES[number % ESCAPES.len()], LAUNCHERS[number % LAUNCHERS.len()]);
    let mut ready = program("/bin/sh", &["-c", &format!("{escape}; {launcher}"), server]);
    if let ollm_mcp::Endpoint::Stdio { env, limits, .. } = &mut ready.endpoint {
        env.push(("MARK".into(), mark.to_owned()));
        limits.grace = std::time::Duration::from_millis(20);
    }
    ready
}

/// Those who run with a mark in their environment.
fn bearers(mark: &str) -> Vec<String> {
    let mark = format!("MARK={mark}\0");
    let numbers =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let bears = |pid: &String| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&mark) && runs(pid)
    };
    numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(bears).collect()
}

/// Somewhere within the first moments: in the midst of the start, of a call, or between.
fn some_moment(number: usize) -> std::time::Duration {
    std::time::Duration::from_micros(number as u64 * 7919 % 60_000)
}

fn slow() -> Call {
    crate::support::tool("slow", json!({"ms": 60_000}))
}

#[test]
fn a_hundred_servers_killed_at_any_moment_leave_nobody() {
    let mark = format!("server-{}", std::process::id());
    let mut settings = settings();
    settings.timings.parting = std::time::Duration::from_millis(20);
    let fleet = crate::support::fleet(settings, Ports::default());
    let server = testkit::mcp_server().to_str().unwrap();
    for number in 0..100 {
        fleet.add(marked(&mark, number, server), ServerMemory::default());
        let call = fleet.call("fake", slow()).unwrap();
        eventually("it runs", || !bearers(&mark).is_empty());
        // Only to strike at another moment, and at another process, each time.
        std::thread::sleep(some_moment(number));
        let victims = bearers(&mark);
        if let Some(pid) = victims.get(number % victims.len().max(1)) {
            Command::new("kill").args(["-9", pid]).stderr(Stdio::null()).status().unwrap();
        }
        fleet.stop("fake").unwrap();
        drop(call);
        eventually("nobody is left", || bearers(&mark).is_empty());
    }
}

#[test]
fn a_hundred_clients_killed_at_any_moment_leave_nobody() {
    let mark = format!("client-{}", std::process::id());
    for number in 0..100 {
        let mut client = role("orphans::client");
        client.env("MARKED", &mark).env("NUMBER", number.to_string()).env("SERVER", testkit::mcp_server());
        let mut client = client.spawn().unwrap();
        if number % 3 != 0 {
            eventually("its server runs", || !bearers(&mark).is_empty());
        }
        std::thread::sleep(some_moment(number));
        client.kill().unwrap();
        client.wait().unwrap();
        eventually("nobody is left", || bearers(&mark).is_empty());
    }
}

#[test]
#[ignore = "a role that `a_hundred_clients_killed_at_any_moment_leave_nobody` starts"]
fn client() {
    if env::var("ROLE").is_ok_and(|role| role == "orphans::client") {
        let [mark, number, server] = ["MARKED", "NUMBER", "SERVER"].map(|name| env::var(name).unwrap());
        let fleet = with(marked(&mark, number.parse().unwrap(), &server));
        let _ = fleet.call("fake", slow()).unwrap().wait();
    }
}
