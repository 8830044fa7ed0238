//! A terminal made for a test: a program runs on it, the test types, and sees what is on the screen.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use testkit::PATIENCE;

use super::{Lab, OLLM, Ran, python};

/// Starts a program on a terminal of its own. Orders come as lines: `t HEX` types, `s ROWS COLUMNS` resizes, `k NUMBER`
/// sends a signal, `h` hangs up. Everything the program writes goes out unchanged; the exit status is that of the
/// program.
const RELAY: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios
signal.alarm(240)
size = lambda rows, columns: struct.pack("HHHH", int(rows), int(columns), 0, 0)
ready, go = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    # As a login does, whatever ignores signals around the tests.
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)
    os.read(ready, 1)
    os.execvp(sys.argv[4], sys.argv[4:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, size(sys.argv[1], sys.argv[2]))
os.write(terminal, bytes.fromhex(sys.argv[3]))
os.write(go, b"x")
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
                    os.write(terminal, bytes.fromhex(b"".join(rest).decode()))
                elif word == b"s":
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size(*rest))
                elif word == b"k":
                    os.kill(pid, int(rest[0]))
                elif word == b"h":
                    sources.remove(terminal)
                    os.close(terminal)
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

/// A terminal on which every question has room: pages are the business of other tests.
pub(crate) const WHOLE: Size = Size { rows: 500, columns: 200 };

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
    pub(crate) fn start(relay: Command, size: Size, command: &[&str]) -> Pty {
        Pty::start_typed_ahead(relay, size, "", command)
    }

    /// The same, with keys that were typed before the command began.
    pub(crate) fn start_typed_ahead(mut relay: Command, size: Size, ahead: &str, command: &[&str]) -> Pty {
        let (rows, columns) = (size.rows.to_string(), size.columns.to_string());
        relay.args(["-c", RELAY, &rows, &columns, &hex(ahead)]).args(command);
        // Tests answer faster than people read.
        if !relay.get_envs().any(|(name, _)| name == "OLLM_QUESTION_GRACE") {
            relay.env("OLLM_QUESTION_GRACE", "0");
        }
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
        self.order(&format!("t {}", hex(keys)));
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
        assert!(self.comes(&[text]).is_some(), "waited for {text:?}, but it ended:\n{}", self.written());
        self
    }

    /// Waits until the program has written one of these texts after all that was waited for before, or has ended: which it was.
    pub(crate) fn comes(&mut self, texts: &[&str]) -> Option<usize> {
        let used = self.used;
        let first = |seen: &Seen| {
            let rest = &seen.stream[used..];
            let place = |text: &str| rest.windows(text.len()).position(|part| part == text.as_bytes());
            let found = texts.iter().enumerate().filter_map(|(which, text)| Some((place(text)?, which)));
            found.min().map(|(at, which)| (used + at + texts[which].len(), which))
        };
        let found =
            self.waits(&format!("one of {texts:?}"), |seen| first(seen).map(Some).or(seen.is_over.then_some(None)));
        found.map(|(end, which)| {
            self.used = end;
            which
        })
    }

    /// Everything that was written, with plain line ends.
    fn written(&self) -> String {
        String::from_utf8_lossy(&self.seen.0.lock().unwrap().stream).replace("\r\n", "\n")
    }

    /// The process of the program on the terminal.
    pub(crate) fn process(&self) -> u32 {
        let relay = self.relay.id();
        let children = std::fs::read_to_string(format!("/proc/{relay}/task/{relay}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Waits until the program is stopped, as by Ctrl-Z.
    pub(crate) fn waits_for_stop(&self) {
        let stat = format!("/proc/{}/stat", self.process());
        let end = Instant::now() + PATIENCE;
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            assert!(Instant::now() < end, "it does not stop:\n{}", self.written());
            thread::yield_now();
        }
    }

    /// Closes the terminal.
    pub(crate) fn hangs_up(&mut self) {
        self.order("h");
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
        let code = self.relay.wait().unwrap().code().unwrap();
        Ran { stdout: self.written(), stderr: String::new(), code }
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

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// A text in which keys are written as `\\n`, `\\r` and `\\xNN`.
pub(crate) fn keys(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut keys = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.as_bytes() {
            [b'n', ..] => keys.extend(["\n", &part[1..]]),
            [b'r', ..] => keys.extend(["\r", &part[1..]]),
            [b't', ..] => keys.extend(["\t", &part[1..]]),
            [b'x', ..] => {
                keys.push(char::from(u8::from_str_radix(&part[1..3], 16).unwrap()));
                keys.push_str(&part[3..]);
            }
            _ => keys.extend(["\\", part]),
        }
    }
    keys
}

/// Runs a command on a terminal and types; each step is what to wait for, `=>`, and what to do then: to type keys, to
/// `<hang up>`, to `<terminate>` it, or to `<run> ` a command elsewhere.
pub(crate) fn typed(lab: &Lab, steps: &[&str], arguments: &[&str]) -> Ran {
    let mut pty = lab.pty(WHOLE, arguments);
    for step in steps.iter().filter(|step| !step.is_empty()) {
        let (before, deed) = step.split_once("=>").unwrap();
        if pty.comes(&[&keys(before)]).is_none() {
            break;
        }
        match deed {
            "<hang up>" => pty.hangs_up(),
            "<terminate>" => pty.signal(15),
            deed => match deed.strip_prefix("<run> ") {
                Some(command) => {
                    let ran = lab.program("sh").args(["-c", command]).stdout(Stdio::null()).status().unwrap();
                    assert!(ran.success(), "{command}");
                }
                None => drop(pty.types(&keys(deed))),
            },
        }
    }
    pty.ends()
}

impl Ran {
    /// Whether a program that filled the screen restored the terminal.
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
