//! The panels: how long it takes until the first frame is on a terminal, beside a program that does nothing else.

use std::process::Command;

use serde_json::Value;

use crate::lab::Lab;
use crate::measure::row;

const ROUNDS: usize = 15;
const SAMPLES: usize = 20;

/// Starts each command on a terminal of its own, in turn, and prints the nanoseconds until its first frame is whole, one round
/// per line. A command is ended by a signal then.
const CLOCK: &str = r#"
import fcntl, json, os, pty, signal, struct, sys, termios, time
rounds, samples, commands = int(sys.argv[1]), int(sys.argv[2]), [command.split() for command in sys.argv[3:]]
def first_frame(command):
    ready, go = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.read(ready, 1)
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    began, seen = time.perf_counter_ns(), b""
    os.write(go, b"x")
    while b"\x1b[?2026l" not in seen:
        seen += os.read(terminal, 65536)
    took = time.perf_counter_ns() - began
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for end in (ready, go, terminal):
        os.close(end)
    return took
for _ in range(rounds):
    print(json.dumps(list(zip(*[[first_frame(command) for command in commands] for _ in range(samples)]))), flush=True)
"#;

pub(crate) fn tui(lab: &Lab) {
    let home = lab.root.join("tui-home");
    std::fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
    let bare = testkit::bare_screen();
    let panels = format!("{} tui --panel hooks", lab.ollm.display());
    let output = Command::new("python3")
        .args(["-c", CLOCK, &ROUNDS.to_string(), &SAMPLES.to_string(), bare.to_str().unwrap(), &panels])
        .env_clear()
        .env("HOME", &home)
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .current_dir(&home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("{ROUNDS} rounds of {SAMPLES} samples; ratio = median over rounds of p50(case) / p50(floor)\n");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut ratios: Vec<f64> = text.lines().map(|round| ratio(&serde_json::from_str(round).unwrap())).collect();
    row("first frame of the panels / of a bare ratatui program", 1.5, &mut ratios);
}

/// One round: the median of the panels by that of the bare program.
fn ratio(round: &Value) -> f64 {
    let median = |at: usize| {
        let mut times: Vec<f64> = round[at].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    median(1) / median(0)
}
