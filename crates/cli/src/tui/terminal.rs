//! The terminal in the hands of the panels, and back as it was on every way out.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue};
use rustix::termios::{QueueSelector, tcflush};
use signal_hook::consts::SIGTSTP;

use super::panel::PanelName;
use super::screen::{Inbox, Message};

/// A frame is written in pieces of this size.
const BUFFER: usize = 64 << 10;
/// More events at once than anybody types.
const MOST_EVENTS: usize = 4096;

type PanicHook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// The terminal while it shows the panels. Dropped, it is as it was.
pub(crate) struct PanelTerminal {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    previous_hook: Arc<PanicHook>,
}

impl PanelTerminal {
    pub(crate) fn enter(inbox: Inbox) -> io::Result<PanelTerminal> {
        let previous_hook: Arc<PanicHook> = Arc::new(panic::take_hook());
        panic::set_hook(restoring(thread::current().id(), inbox, Arc::clone(&previous_hook)));
        let made = take_over().and_then(|()| blank());
        made.map(|terminal| PanelTerminal { terminal, previous_hook: Arc::clone(&previous_hook) })
            .inspect_err(|_| give_back())
    }

    /// Draws what changed.
    pub(crate) fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(frame)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// What was typed, clicked and pasted until now.
    #[expect(clippy::unused_self, reason = "keys are read by who holds the terminal")]
    pub(crate) fn events(&mut self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        while events.len() < MOST_EVENTS && event::poll(Duration::ZERO)? {
            events.push(event::read()?);
        }
        Ok(events)
    }

    /// Forgets what was typed until now: it was meant for something else.
    pub(crate) fn discard_input(&mut self) -> io::Result<()> {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.events().map(drop)
    }

    /// Lets something else use the terminal.
    pub(crate) fn suspend(&mut self, works: impl FnOnce()) -> io::Result<()> {
        give_back();
        works();
        self.resume()
    }

    /// Stops the process as Ctrl-Z does elsewhere; goes on when somebody continues it.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.suspend(|| drop(signal_hook::low_level::emulate_default_handler(SIGTSTP)))
    }

    /// Takes the terminal over again, whatever became of it meanwhile.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        take_over()?;
        execute!(io::stdout(), Clear(ClearType::All))?;
        // One that is cleared would ask the terminal for its cursor, and wait for an answer.
        self.terminal = blank()?;
        Ok(())
    }
}

impl Drop for PanelTerminal {
    fn drop(&mut self) {
        give_back();
        let previous = Arc::clone(&self.previous_hook);
        // A panic in this very thread cannot change hooks.
        if !thread::panicking() {
            panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}

/// A terminal on which nothing is drawn yet.
fn blank() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER, io::stdout())))
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableMouseCapture,
        EnableBracketedPaste,
        // Where a terminal knows it, Ctrl+M is another key than Enter; others ignore it.
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
        cursor::Hide
    )
}

/// Leaves the terminal as it was; one that is gone needs nothing.
fn give_back() {
    let _ = execute!(
        io::stdout(),
        EndSynchronizedUpdate,
        PopKeyboardEnhancementFlags,
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = io::stdout().flush();
    let _ = disable_raw_mode();
}

/// A panic of the panels is told on a terminal that can be read; one of another thread is told in the panels.
fn restoring(panels: ThreadId, inbox: Inbox, previous: Arc<PanicHook>) -> PanicHook {
    Box::new(move |info| {
        if thread::current().id() == panels {
            give_back();
            previous(info);
        } else {
            let text = ollm_store::one_line(&format!("a part of the program failed: {info}"));
            inbox.send(Message::Text { panel: PanelName::ALL[0], text: format!("{text}\n") });
        }
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc::sync_channel;

    use super::super::wakeup::Wakeup;
    use super::*;

    /// Runs a command on a terminal and prints what it wrote there.
    const TERMINAL: &str = "import pty, sys; pty.spawn(sys.argv[1:])";

    #[test]
    #[ignore = "the other test starts it on a terminal"]
    fn panics_on_a_terminal() {
        let (_wakeup, waker) = Wakeup::new().unwrap();
        let (sender, _messages) = sync_channel(1);
        let mut terminal = PanelTerminal::enter(Inbox::new(sender, waker)).unwrap();
        terminal.draw(|_| panic!("in the middle of a frame")).unwrap();
    }

    #[test]
    fn a_panic_is_told_on_a_terminal_that_is_as_it_was() {
        let test = "tui::terminal::tests::panics_on_a_terminal";
        let ran = Command::new("python3")
            .args(["-c", TERMINAL, std::env::current_exe().unwrap().to_str().unwrap()])
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env("TERM", "xterm-256color")
            .output()
            .unwrap();
        let written = String::from_utf8_lossy(&ran.stdout);
        let (before, after) = written.split_once("in the middle of a frame").unwrap_or_else(|| panic!("{written:?}"));
        for part in ["\x1b[<1u", "\x1b[?2004l", "\x1b[?1000l", "\x1b[?1049l", "\x1b[?25h"] {
            assert!(before.contains(part), "{part:?} is missing before the message: {written:?}");
        }
        assert!(!after.contains("\x1b[?1049h"), "{written:?}");
    }
}
