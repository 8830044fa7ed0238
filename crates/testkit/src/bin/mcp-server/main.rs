//! A small MCP server, written by hand, that behaves well or badly on demand. It speaks on its standard streams, or
//! over HTTP with `--http`, or in the older way with events with `--sse`. Over the network it prints one line once it
//! listens: an object with its `url`.

mod events;
mod http;
mod oauth;
mod plan;
mod server;
mod stdio;
mod tools;

use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use plan::Plan;
use server::Server;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Plan::read(&words).and_then(|plan| run(&words, plan)) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            complain(&why);
            ExitCode::from(64)
        }
    }
}

fn run(words: &[String], plan: Plan) -> Result<u8, String> {
    if plan.stubborn && !plan.hardened {
        return Err(harden(words));
    }
    for line in &plan.stderr {
        complain(line);
    }
    if plan.child || plan.fork {
        let child = Command::new("sleep").arg("1000").stderr(Stdio::null()).spawn();
        child.map_err(|error| format!("cannot start a child: {error}"))?;
    }
    if plan.fork {
        return Ok(0);
    }
    if let Some(code) = plan.exit {
        return Ok(code);
    }
    let server = Arc::new(Server::new(plan));
    if server.plan.http || server.plan.sse { http::serve(&server) } else { stdio::serve(&server) }
}

/// Starts us anew with the polite signals ignored, which is inherited.
#[cfg(unix)]
fn harden(words: &[String]) -> String {
    use std::os::unix::process::CommandExt;
    let script = "trap '' TERM INT HUP; exec \"$0\" \"$@\" --hardened";
    let Ok(program) = std::env::current_exe() else { return "who are we?".to_owned() };
    let error = Command::new("/bin/sh").args(["-c", script]).arg(program).args(words).exec();
    format!("cannot start a shell: {error}")
}

#[cfg(not(unix))]
fn harden(_: &[String]) -> String {
    "there are no signals to ignore here".to_owned()
}

fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
