//! A terminal made for a test: a program runs on it, the test types, and sees what is on the screen.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Lab, OLLM, Ran, python};

/// How long to wait for something that must come.
const PATIENCE: Duration = Duration::from_mins(1);

/// Starts a program on a terminal of its own. Orders come as lines: `t HEX` types, `s ROWS COLUMNS` resizes, `k NUMBER` sends
/// a signal. Everything the program writes goes out as it is; the exit status is that of the program.
const RELAY: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios
signal.alarm(240)
size = lambda rows, columns: struct.pack("HHHH", int(rows), int(columns), 0, 0)
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, size(sys.argv[1], sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
orders, sources = b"", [terminal, 0]
while terminal in sources:
    for source in select.select(sources, [], [])[0]:
        try:
            chunk = os.read(source, 65536)
        except OSError:
            chunk = b""
        if not chunk:
            sources.remove(source)
        elif source == terminal:
            os.write(1, chunk)
        else:
            orders += chunk
            while b"\n" in orders:
                order, orders = orders.split(b"\n", 1)
                word, *rest = order.split()
                if word == b"t":
                    os.write(terminal, bytes.fromhex(rest[0].decode()))
                elif word == b"s":
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size(*rest))
                elif word == b"k":
                    os.kill(pid, int(rest[0]))
status = os.waitpid(pid, 0)[1]
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
"#;

/// The size of a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

/// A terminal on which no sentence is wrapped.
pub(crate) const LARGE: Size = Size { rows: 45, columns: 180 };

/// What most terminals are.
pub(crate) const USUAL: Size = Size { rows: 24, columns: 80 };

/// A program on a terminal.
pub(crate) struct Pty {
    relay: Child,
    orders: Option<ChildStdin>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// How much of the stream earlier waits have used up.
    used: usize,
}

/// What came from the program.
struct Seen {
    stream: Vec<u8>,
    screen: vt100::Parser,
    is_over: bool,
}

impl Lab {
    /// Runs `ollm` on a terminal.
    pub(crate) fn pty(&self, size: Size, arguments: &[&str]) -> Pty {
        let command = std::iter::once(OLLM).chain(arguments.iter().copied()).collect::<Vec<_>>();
        Pty::start(self.program(python().to_str().unwrap()), size, &command)
    }
}

impl Pty {
    /// Runs a command on a terminal; `relay` is a Python with the surroundings that the command gets.
    pub(crate) fn start(mut relay: Command, size: Size, command: &[&str]) -> Pty {
        relay.args(["-c", RELAY, &size.rows.to_string(), &size.columns.to_string()]).args(command);
        relay.env("TERM", "xterm-256color").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut relay = relay.spawn().unwrap();
        let (orders, mut stdout) = (relay.stdin.take(), relay.stdout.take().unwrap());
        let screen = vt100::Parser::new(size.rows.try_into().unwrap(), size.columns.try_into().unwrap(), 0);
        let seen = Arc::new((Mutex::new(Seen { stream: Vec::new(), screen, is_over: false }), Condvar::new()));
        let fed = Arc::clone(&seen);
        thread::spawn(move || {
            let mut room = [0; 8 << 10];
            loop {
                let count = stdout.read(&mut room).unwrap_or(0);
                let mut seen = fed.0.lock().unwrap_or_else(PoisonError::into_inner);
                seen.stream.extend_from_slice(&room[..count]);
                seen.screen.process(&room[..count]);
                seen.is_over = count == 0;
                fed.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Pty { relay, orders, seen, used: 0 }
    }

    fn order(&mut self, order: &str) {
        // A program that has ended takes no orders.
        let _ = self.orders.as_mut().unwrap().write_all(format!("{order}\n").as_bytes());
    }

    /// Types this text; escape sequences are keys.
    pub(crate) fn types(&mut self, keys: &str) -> &mut Pty {
        let mut hex = String::new();
        keys.bytes().for_each(|byte| write!(hex, "{byte:02x}").unwrap());
        self.order(&format!("t {hex}"));
        self
    }

    pub(crate) fn resize(&mut self, size: Size) {
        {
            let mut seen = self.seen.0.lock().unwrap();
            let (rows, columns) = (size.rows.try_into().unwrap(), size.columns.try_into().unwrap());
            seen.screen.screen_mut().set_size(rows, columns);
        }
        self.order(&format!("s {} {}", size.rows, size.columns));
    }

    pub(crate) fn signal(&mut self, number: i32) {
        self.order(&format!("k {number}"));
    }

    /// Continues a program that is about to stop, until it writes this text: a signal that comes too early is lost.
    pub(crate) fn continues(&mut self, text: &str) -> &mut Pty {
        let used = self.used;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            self.signal(18);
            let seen = self.seen.0.lock().unwrap();
            let seen = self.seen.1.wait_timeout(seen, Duration::from_millis(100)).unwrap().0;
            if seen.stream[used..].windows(text.len()).any(|part| part == text.as_bytes()) {
                break;
            }
        }
        self.waits_for(text)
    }

    /// Waits until a text is somewhere on the screen; the whole screen then.
    pub(crate) fn sees(&mut self, text: &str) -> String {
        self.waits(&format!("{text:?} on the screen"), |seen| {
            let shown = seen.screen.screen().contents();
            shown.contains(text).then_some(shown)
        })
    }

    /// Waits until a text is no longer on the screen.
    pub(crate) fn sees_no_more(&mut self, text: &str) -> String {
        self.waits(&format!("the end of {text:?} on the screen"), |seen| {
            let shown = seen.screen.screen().contents();
            (!shown.contains(text)).then_some(shown)
        })
    }

    /// Waits until the program has written a text after all that was waited for before.
    pub(crate) fn waits_for(&mut self, text: &str) -> &mut Pty {
        let used = self.used;
        self.used = self.waits(&format!("{text:?}"), |seen| {
            let rest = &seen.stream[used..];
            rest.windows(text.len()).position(|part| part == text.as_bytes()).map(|at| used + at + text.len())
        });
        self
    }

    fn waits<T>(&self, what: &str, found: impl Fn(&Seen) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            if let Some(found) = found(&seen) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !seen.is_over,
                "waited for {what}, but saw\n{}",
                seen.screen.screen().contents()
            );
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits for the end; everything that was written, with plain line ends.
    pub(crate) fn ends(mut self) -> Ran {
        self.waits_for_end();
        let stream = self.seen.0.lock().unwrap().stream.clone();
        let code = self.relay.wait().unwrap().code().unwrap();
        Ran { stdout: String::from_utf8_lossy(&stream).replace("\r\n", "\n"), stderr: String::new(), code }
    }

    fn waits_for_end(&mut self) {
        let end = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        while !seen.is_over {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it does not end; the screen is\n{}", seen.screen.screen().contents());
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }
}

impl Ran {
    /// Whether a program that filled the screen left the terminal as it was.
    pub(crate) fn has_restored(&self) -> bool {
        let ending = self.stdout.rfind("\x1b[?1049h").map(|at| &self.stdout[at..]).unwrap_or_default();
        ["\x1b[<1u", "\x1b[?2004l", "\x1b[?1000l", "\x1b[?1049l", "\x1b[?25h"].iter().all(|part| ending.contains(part))
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.relay.kill();
        let _ = self.relay.wait();
    }
}
