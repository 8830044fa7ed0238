//! The panels: how long it takes until the first frame is on a terminal, and until a key is, while a model streams; beside a program that
//! does nothing else.

use serde_json::Value;

use crate::lab::Lab;
use crate::measure::{row, scripted};

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

/// Types a letter again and again into a bare program and into the chat, whose model streams digits all the while. Prints the
/// nanoseconds until each is on the terminal, one round per line. The model speaks as Ollama does.
const KEYBOARD: &str = r#"
import fcntl, http.server, json, os, pty, select, signal, struct, sys, termios, threading, time
rounds, samples, bare, ollm = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self): self.answer([{"models": [{"name": "m", "model": "m"}]}])
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/api/chat":
            return self.answer([{"capabilities": ["completion", "tools"], "model_info": {}}])
        self.answer(self.digits())
    def digits(self):
        while True:
            yield {"model": "m", "message": {"role": "assistant", "content": "0123 "}, "done": False}
            time.sleep(0.002)
    def answer(self, lines):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        for line in lines:
            self.wfile.write(json.dumps(line).encode() + b"\n")
            self.wfile.flush()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["OLLAMA_HOST"] = "127.0.0.1:%d" % server.server_port
def start(command):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return pid, terminal
def until(terminal, text):
    seen, end = b"", time.monotonic() + 30
    while text not in seen:
        if time.monotonic() > end:
            sys.exit("waited for %r, but saw %r" % (text, seen[-2000:]))
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536)
def key(terminal):
    began = time.perf_counter_ns()
    os.write(terminal, b"Q")
    until(terminal, b"Q")
    return time.perf_counter_ns() - began
def typed(terminal):
    times = []
    for at in range(samples):
        times.append(key(terminal))
        # Where everything is full of one letter, another one changes nothing.
        os.write(terminal, b"\x7f")
        end = time.monotonic() + 0.005 + 0.0007 * at
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.001)[0]:
                os.read(terminal, 65536)
    return times
echo = start([bare])
chat = start([ollm, "tui", "--model", "ollama:m"])
until(echo[1], b"hello")
until(chat[1], b"approval")
os.write(chat[1], b"go\r")
until(chat[1], b"0123")
for _ in range(rounds):
    print(json.dumps([typed(echo[1]), typed(chat[1])]), flush=True)
for pid, _ in (echo, chat):
    os.kill(pid, signal.SIGKILL)
"#;

/// The longest that a key may take: a frame of sixty in a second.
const FRAME: f64 = 1e9 / 60.0;

pub(crate) fn tui(lab: &Lab) {
    let home = lab.root.join("tui-home");
    std::fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
    let bare = testkit::bare_screen();
    let (bare, ollm) = (bare.to_str().unwrap(), lab.ollm.display().to_string());
    println!("{ROUNDS} rounds of {SAMPLES} samples; ratio = median over rounds of p50(case) / p50(floor)\n");
    let rounds = scripted(&home, CLOCK, (ROUNDS, SAMPLES), &[bare, &format!("{ollm} tui --panel hooks")]);
    let mut ratios: Vec<f64> = rounds.iter().map(|round| percentile(round, 1, 50) / percentile(round, 0, 50)).collect();
    row("first frame of the panels / of a bare ratatui program", 1.5, &mut ratios);
    let rounds = scripted(&home, KEYBOARD, (ROUNDS, SAMPLES), &[bare, &ollm]);
    let mut ratios: Vec<f64> = rounds.iter().map(|round| percentile(round, 1, 50) / percentile(round, 0, 50)).collect();
    row("a key while a model streams / in a bare ratatui program", 4.0, &mut ratios);
    let mut ratios: Vec<f64> = rounds.iter().map(|round| percentile(round, 1, 95) / FRAME).collect();
    row("a key while a model streams, p95 / a frame of 16.7 ms", 1.0, &mut ratios);
}

/// A percentile of the times of one command in a round.
fn percentile(round: &Value, command: usize, percent: usize) -> f64 {
    let mut times: Vec<f64> = round[command].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    times[(times.len() - 1) * percent / 100]
}
